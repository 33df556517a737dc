// A timer whose two threads have one name, for the kit's tests.

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.Promises;
import purgatorio.kit.TimerUnderTest;

public final class NamesakePool extends Factory {

  @Override
  public TimerUnderTest<?> timer(boolean virtual, long nowNs) {
    ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(2, work -> new Thread(work, "worker"));
    return new TimerUnderTest<ScheduledFuture<?>>() {
      @Override
      public ScheduledFuture<?> add(Runnable task, long delayNs) {
        return pool.schedule(task, delayNs, TimeUnit.NANOSECONDS);
      }

      @Override
      public Boolean cancel(ScheduledFuture<?> task) {
        return task.cancel(false);
      }

      @Override
      public void close() {
        pool.shutdownNow();
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    Promises promises = new Promises("namesakes", "timer").lanes(2).can("timer", "real-time", "cancel");
    Kit.run(promises, new NamesakePool(), arguments);
  }
}
