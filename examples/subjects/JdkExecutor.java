// The JDK's ScheduledThreadPoolExecutor as a subject of purgatorio-subject/1, in real time; needs a JDK, nothing else.
//
//     purgatorio verify --engine process --command 'java examples/subjects/JdkExecutor.java'
//
// Tasks run on a thread of the executor, so what they report comes whenever it comes: one lock keeps lines whole.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class JdkExecutor {
  private static final Pattern TEXT = Pattern.compile("\"(m|id)\":\"([^\"]*)\"");
  private static final Pattern NUMBER = Pattern.compile("\"(n|delay_ns)\":(-?[0-9]+)");
  private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

  private static final String DESCRIPTION =
      "\"protocol\":\"purgatorio-subject/1\",\"name\":\"ScheduledThreadPoolExecutor\",\"language\":\"Java\","
          + "\"version\":\"" + System.getProperty("java.version") + "\",\"profile\":\"jdk-scheduled-executor\","
          + "\"capabilities\":[\"timer\",\"real-time\",\"cancel\",\"gauge\"],\"reports\":[\"timer_fire\"],"
          + "\"tick_ns\":1000000,\"early_ns\":0,"
          + "\"least_delay_ns\":" + Long.MIN_VALUE + ",\"most_delay_ns\":" + Long.MAX_VALUE;

  private final Map<String, Future<?>> futures = new ConcurrentHashMap<>();
  private ScheduledThreadPoolExecutor executor;

  private static synchronized void say(String line) {
    OUT.print("{" + line + "}\n");
    OUT.flush();
  }

  /** What the answer to a call says besides its number. */
  private String answer(String name, String id, long delayNs) {
    switch (name) {
      case "start":
        if (executor != null) {
          executor.shutdownNow(); // the threads of the previous run
        }
        executor = new ScheduledThreadPoolExecutor(1);
        executor.setRemoveOnCancelPolicy(true);
        futures.clear();
        return "";
      case "add":
        Runnable task = () -> say("\"m\":\"fired\",\"id\":\"" + id + "\",\"th\":\"pool\"");
        futures.put(id, executor.schedule(task, delayNs, TimeUnit.NANOSECONDS));
        return "";
      case "cancel":
        return ",\"out\":" + (futures.get(id).cancel(false) ? 1 : 0);
      case "gauge":
      case "quiesce":
        return ",\"delayed\":" + executor.getQueue().size();
      case "stop":
        executor.shutdownNow();
        return "";
      default:
        return ",\"err\":\"UnknownCall\"";
    }
  }

  public static void main(String[] arguments) throws IOException {
    JdkExecutor subject = new JdkExecutor();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      // The driver's lines are flat, and the ids that it makes hold nothing that JSON escapes.
      String name = "", id = "";
      long number = 0, delayNs = 0;
      for (Matcher found = TEXT.matcher(line); found.find(); ) {
        if (found.group(1).equals("m")) name = found.group(2);
        else id = found.group(2);
      }
      for (Matcher found = NUMBER.matcher(line); found.find(); ) {
        if (found.group(1).equals("n")) number = Long.parseLong(found.group(2));
        else delayNs = Long.parseLong(found.group(2));
      }
      if (name.equals("describe")) {
        say("\"m\":\"description\",\"n\":" + number + "," + DESCRIPTION);
      } else {
        say("\"m\":\"answer\",\"n\":" + number + subject.answer(name, id, delayNs));
      }
    }
  }
}
