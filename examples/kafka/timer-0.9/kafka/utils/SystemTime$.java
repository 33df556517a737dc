package kafka.utils;

/** In 0.9 the timer reads Scala's object of this name, which here reads the clock that can be set. */
public final class SystemTime$ implements Time {
  public static final SystemTime$ MODULE$ = new SystemTime$();
  private final org.apache.kafka.common.utils.SystemTime clock = new org.apache.kafka.common.utils.SystemTime();

  public long milliseconds() {
    return clock.milliseconds();
  }

  public long nanoseconds() {
    return clock.nanoseconds();
  }

  public void sleep(long ms) {
    clock.sleep(ms);
  }
}
