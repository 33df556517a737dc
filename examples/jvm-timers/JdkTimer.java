import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.TimerUnderTest;

/** The JDK's. "Delayed tasks execute no sooner than they are enabled, but without any real-time guarantees". */
public final class JdkTimer extends TimerUnderTest<ScheduledFuture<?>> {
  private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(2);

  @Override
  public ScheduledFuture<?> add(Runnable task, long delayNs) {
    return executor.schedule(task, delayNs, TimeUnit.NANOSECONDS);
  }

  @Override
  public Boolean cancel(ScheduledFuture<?> task) {
    return task.cancel(false);
  }

  @Override
  public void close() {
    executor.shutdownNow();
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("jdk", "jdk-scheduled-executor", ScheduledThreadPoolExecutor.class)
            .version(System.getProperty("java.version"))
            .earlyNs(0),
        JdkTimer::new,
        arguments);
  }
}
