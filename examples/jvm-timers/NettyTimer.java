import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.TimerUnderTest;

/** io.netty:netty-common. "True if the cancellation completed successfully, otherwise false" (Timeout.cancel). */
public final class NettyTimer extends TimerUnderTest<Timeout> {
  private final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 512);

  @Override
  public Timeout add(Runnable task, long delayNs) {
    return timer.newTimeout(ignored -> task.run(), delayNs, TimeUnit.NANOSECONDS);
  }

  @Override
  public Boolean cancel(Timeout timeout) {
    return timeout.cancel();
  }

  @Override
  public Long size() {
    return timer.pendingTimeouts();
  }

  @Override
  public void close() {
    timer.stop();
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("netty", "netty-hashed-wheel", HashedWheelTimer.class)
            .tickNs(OneTimer.NS_IN_MS)
            .wheelSize(512)
            .earlyNs(0)
            .lateNs(OneTimer.NS_IN_MS)
            .can("gauge"),
        NettyTimer::new,
        arguments);
  }
}
