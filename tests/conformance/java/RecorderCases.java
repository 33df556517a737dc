// What the tests of the kit's recorder ask of it; compiled with the kit.

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.List;
import purgatorio.kit.Promises;
import purgatorio.kit.TraceRecorder;

public final class RecorderCases {
  private static final Promises PROMISES =
      new Promises("it \"is\" \\ ours", "locked").version("1").tickNs(1).wheelSize(8).earlyNs(3).earlyRealNs(0).lateNs(5).purgeInterval(3);

  private static final class Full extends OutputStream {
    private int room = 400;

    @Override
    public void write(int one) throws IOException {
      if (room-- <= 0) {
        throw new IOException("no space left");
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    List<String> all = List.of("try_complete_else_watch", "timer_add", "ready", "gauge", "quiesce", "on_complete");
    if (arguments[0].equals("full-disk")) {
      TraceRecorder recorder = new TraceRecorder(new Full(), PROMISES.header("r", "monotonic", all), null, 100);
      for (int index = 0; index < 10; index++) {
        recorder.call("timer_fire", "t-" + index, null, null);
      }
      try {
        recorder.close();
      } catch (IOException told) {
        System.out.println(told.getMessage() + "; dropped " + recorder.dropped() + ", written " + recorder.events());
      }
      return;
    }
    TraceRecorder recorder = TraceRecorder.toFile(Path.of(arguments[1]), PROMISES, "the run", all);
    switch (arguments[0]) {
      case "every-field":
        long c = recorder.call("try_complete_else_watch", "op-\u00e9\n\uD83D\uDE00", List.of("a", "b"), Long.MIN_VALUE);
        recorder.at("ready", "op-\u00e9\n\uD83D\uDE00", null, recorder.now());
        recorder.ret("try_complete_else_watch", c, "op-\u00e9\n\uD83D\uDE00", 0L, null, null);
        c = recorder.call("timer_add", "op-2", null, 7L);
        recorder.ret("timer_add", c, "op-2", null, null, recorder.calledT() + 7);
        c = recorder.call("on_complete", "op-2", null, null);
        recorder.ret("on_complete", c, "op-2", null, new IllegalStateException("no"), null);
        c = recorder.call("gauge", null, null, null);
        recorder.retGauge(c, 2L, null);
        recorder.quiesce(null, null);
        recorder.close();
        break;
      case "many-threads":
        Thread[] threads = new Thread[8];
        for (int index = 0; index < threads.length; index++) {
          String name = "w-" + index % 4;
          threads[index] =
              new Thread(
                  () -> {
                    for (int turn = 0; turn < 5_000; turn++) {
                      long mine = recorder.call("timer_fire", "t", null, null);
                      recorder.ret("timer_fire", mine, "t", null, null, null);
                    }
                  },
                  name);
          threads[index].start();
        }
        for (Thread thread : threads) {
          thread.join();
        }
        recorder.close();
        break;
      case "deadlock":
        Object one = new Object();
        Object other = new Object();
        java.util.concurrent.CyclicBarrier both = new java.util.concurrent.CyclicBarrier(2);
        new Thread(() -> crossing(one, other, both), "left").start();
        crossing(other, one, both);
        break;
      case "exit-without-close":
        for (int index = 0; index < 1_000; index++) {
          recorder.call("timer_fire", "t-" + index, null, null);
        }
        System.exit(0);
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  private static void crossing(Object first, Object second, java.util.concurrent.CyclicBarrier both) {
    synchronized (first) {
      try {
        both.await();
      } catch (Exception never) {
        throw new IllegalStateException(never);
      }
      synchronized (second) {
        System.out.println("past it");
      }
    }
  }
}
