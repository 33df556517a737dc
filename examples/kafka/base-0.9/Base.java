import kafka.server.DelayedOperation;
import kafka.utils.timer.TimerTaskEntry;
import org.apache.kafka.common.utils.SystemTime;

/**
 * What Kafka 0.9 calls an operation. There its time-out counts from its construction; here, as in every later release, from
 * the moment at which the timer is given it.
 */
abstract class Base extends DelayedOperation {
  private static final SystemTime CLOCK = new SystemTime();
  private final long waitMs;
  private volatile long expirationMs;

  Base(long delayMs) {
    super(delayMs);
    waitMs = delayMs;
  }

  @Override
  public void setTimerTaskEntry(TimerTaskEntry entry) {
    expirationMs = CLOCK.milliseconds() + waitMs;
    super.setTimerTaskEntry(entry);
  }

  @Override
  public long expirationMs() {
    return expirationMs;
  }
}
