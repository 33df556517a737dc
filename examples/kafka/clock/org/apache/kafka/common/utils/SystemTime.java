package org.apache.kafka.common.utils;

import java.util.function.Supplier;

/**
 * Kafka's clock, which can be set: this class lies before Kafka's jars in the class path, so it takes the place of the
 * one in them. Nothing else of Kafka is replaced.
 */
public class SystemTime implements Time {
  private static final long MACHINE = -1;
  private static final long NS_IN_MS = 1_000_000;

  /** In virtual time, what the clock says; {@link #MACHINE} where it is the machine's. */
  private static volatile long virtualMs = MACHINE;

  /** From 3.8 on, {@code Time.SYSTEM} is made by this. */
  public static SystemTime getSystemTime() {
    return new SystemTime();
  }

  /** From now on it is {@code nowNs}, until this is called again. */
  public static void set(long nowNs) {
    virtualMs = nowNs / NS_IN_MS;
  }

  /** From now on the clock is the machine's. */
  public static void useMachine() {
    virtualMs = MACHINE;
  }

  public long milliseconds() {
    return virtualMs == MACHINE ? System.currentTimeMillis() : virtualMs;
  }

  public long hiResClockMs() {
    return virtualMs == MACHINE ? System.nanoTime() / NS_IN_MS : virtualMs;
  }

  public long nanoseconds() {
    return virtualMs == MACHINE ? System.nanoTime() : virtualMs * NS_IN_MS;
  }

  public void sleep(long ms) {
    throw new UnsupportedOperationException("nothing under test sleeps by this clock");
  }

  public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
    throw new UnsupportedOperationException("nothing under test waits by this clock");
  }
}
