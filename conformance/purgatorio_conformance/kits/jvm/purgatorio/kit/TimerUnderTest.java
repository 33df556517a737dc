package purgatorio.kit;

/**
 * A timer that is driven: one object a run. {@link #add} and {@link #cancel} may be called by several threads at once.
 *
 * @param <H> what identifies a task that was added
 */
public interface TimerUnderTest<H> {
    /** Run the task when {@code delayNs} have passed. An exception of the timer is recorded, and the run continues. */
    H add(Runnable task, long delayNs) throws Exception;

    /**
     * Cancel it; whether this call did, or null if the timer does not say. Only if {@code cancel} is declared. {@code
     * handle} is null where a cancel comes before its add has returned one: it may throw then, and has done nothing.
     */
    Boolean cancel(H handle) throws Exception;

    /** Tasks that it says are pending; null if it has no such count. */
    Long size() throws Exception;

    /** The run is over: end its threads. */
    void close() throws Exception;

    /** A timer with periodic tasks: each runs until it is cancelled. Only declared methods are called. */
    public interface Periodic<H> extends TimerUnderTest<H> {
        /** Run the task when {@code firstNs} have passed, and then at every period from that deadline on. */
        H fixedRate(Runnable task, long firstNs, long periodNs) throws Exception;

        /** Run the task when {@code firstNs} have passed, and then a period after the end of each run. */
        H fixedDelay(Runnable task, long firstNs, long periodNs) throws Exception;
    }

    /** A timer whose deadlines can be moved. Only if {@code reset} is declared. */
    public interface Resettable<H> extends TimerUnderTest<H> {
        /**
         * Move the deadline of a task to {@code delayNs} from now; false if it is over, and then nothing is armed; null if
         * a thread may have begun to run it, or if the timer does not say.
         */
        Boolean reset(H handle, long delayNs) throws Exception;
    }

    /** A timer whose time is the driver's, or whose tasks can be added again; a plain one needs none of this. */
    public interface Driven<H> extends TimerUnderTest<H> {
        /**
         * Add a task again: a finished task starts again, a waiting task is moved. Only if {@code add-again} is declared,
         * or {@code add-same}: then {@code delayNs} is the same as the first time.
         */
        H addAgain(H handle, long delayNs) throws Exception;

        /** Virtual time: it is {@code nowNs} now; run all that is due before returning. */
        void advanceTo(long nowNs) throws Exception;

        /** See {@link PurgatoryUnderTest#settle}. */
        void settle() throws Exception;
    }
}
