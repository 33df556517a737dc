package purgatorio;

/** What a timer must offer to be driven. A new JVM timer is one class that implements this, and a row in Driver. */
interface TimerUnderTest {
    /** Schedule the task; returns the handle that cancel takes. What the timer throws is recorded and survived. */
    Object add(Runnable task, long delayNs);

    /** Cancel; true if this call won. */
    boolean cancel(Object handle);

    /** Tasks that the timer says are pending. */
    long pending();

    void stop();
}
