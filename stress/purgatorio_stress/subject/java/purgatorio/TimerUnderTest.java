package purgatorio;

/**
 * What a timer must offer to be driven. A new JVM timer is one class of this package that implements this and has a
 * constructor that takes the fields of the start message (Map of String to Long or String): that is all the driver asks.
 */
interface TimerUnderTest {
    /** Schedule the task; returns the handle that cancel takes. What the timer throws is recorded and survived. */
    Object add(Runnable task, long delayNs);

    /** Cancel; true if this call won. */
    boolean cancel(Object handle);

    /** Tasks that the timer says are pending; EventLog.NONE if it has no such count. */
    long pending();

    void stop();
}
