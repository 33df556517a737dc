import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import org.apache.kafka.common.utils.SystemTime;
import purgatorio.kit.Promises;

/**
 * One run's time: who moves Kafka's clock, and when nothing is under way any more.
 *
 * <p>In real time Kafka's own reaper does its work. In virtual time one thread of ours takes its place.
 */
final class KafkaTime {
  static final long NS_IN_MS = 1_000_000;
  private static final long PURGED_MS = 450; // two turns of Kafka's reaper, which waits for 200 ms in each

  private final boolean virtual;
  private final ExecutorService reaper;
  private Callable<Boolean> turn;
  private ExecutorService tasks;

  KafkaTime(boolean virtual, long nowNs) {
    this.virtual = virtual;
    if (virtual) {
      SystemTime.set(nowNs);
    } else {
      SystemTime.useMachine();
    }
    ThreadFactory factory =
        work -> {
          Thread thread = new Thread(work, "reaper");
          thread.setDaemon(true);
          return thread;
        };
    reaper = Executors.newSingleThreadExecutor(factory);
  }

  /** The release, as the jar of its clients names it. */
  static String release() throws IOException {
    Properties named = new Properties();
    try (InputStream file = KafkaTime.class.getResourceAsStream("/kafka/kafka-version.properties")) {
      named.load(file);
    }
    return named.getProperty("version");
  }

  /** What every release promises: all is in whole milliseconds, by a timer with a tick of one. */
  static Promises promises(String profile, int purgeInterval) {
    return new Promises("kafka", profile)
        .tickNs(NS_IN_MS)
        .unitNs(NS_IN_MS)
        .wheelSize(20)
        .earlyNs(0)
        .earlyRealNs(NS_IN_MS)
        .lateNs(0)
        .lateRealNs(NS_IN_MS)
        .purgeInterval(purgeInterval)
        .lanes(8)
        .can("purgatory", "timer", "virtual-time", "real-time", "cancel", "force", "gauge", "add-same");
  }

  /**
   * What a turn of the reaper is, and who runs the timer's tasks.
   *
   * @param turn moves the timer's clock and purges; whether something was due
   */
  void runs(Callable<Boolean> turn, ExecutorService tasks) {
    this.turn = turn;
    this.tasks = tasks;
  }

  /** A timer alone has no reaper of Kafka's: in real time this one has its turn again and again. */
  void reapInRealTime() {
    if (!virtual) {
      reaper.execute(
          () -> {
            try {
              while (true) {
                turn.call();
              }
            } catch (Exception closed) {
              // Interrupted by close().
            }
          });
    }
  }

  void advanceTo(long nowNs) throws Exception {
    SystemTime.set(nowNs);
    settle();
  }

  /** Return when Kafka's threads have done what is due: the reaper its turn, and the executor what that gave it. */
  void settle() throws Exception {
    if (!virtual) {
      Thread.sleep(PURGED_MS);
      drain();
      return;
    }
    try {
      boolean due = true;
      while (due) {
        // What a task registers with a delay of zero waits for the next turn.
        due = reaper.submit(turn).get();
        drain();
      }
    } catch (RejectedExecutionException stopped) {
      // The last turn was made.
    }
  }

  /** Tasks run one after the other: when an empty one behind them has run, so have they. */
  private void drain() throws Exception {
    tasks.submit(() -> {}).get();
  }

  void close() {
    reaper.shutdownNow();
  }

  /** A field of Kafka's that is private, by its name or its name's end, as Scala has it. */
  static Object field(Object of, String name) throws IllegalAccessException {
    return found(of, name).get(of);
  }

  static Field found(Object of, String name) {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name) || field.getName().endsWith("$" + name)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    throw new IllegalStateException(of.getClass() + " has no field " + name);
  }
}
