package purgatorio.kit;

/**
 * A timer that is driven: one object a run. {@link #add} and {@link #cancel} may be called by several threads at once. A
 * method with a body here needs to be overridden only if its capability is declared.
 *
 * @param <H> what identifies a task that was added
 */
public abstract class TimerUnderTest<H> {
    /** Run the task when {@code delayNs} have passed. An exception of the timer is recorded, and the run continues. */
    public abstract H add(Runnable task, long delayNs) throws Exception;

    /**
     * {@code cancel}: cancel it; whether this call did, or null if the timer does not say. {@code handle} is null where
     * a cancel comes before its add has returned one: it may throw then, and has done nothing.
     */
    public Boolean cancel(H handle) throws Exception {
        throw Factory.undeclared("cancel");
    }

    /** {@code gauge}: tasks that it says are pending; null if it has no such count. */
    public Long size() throws Exception {
        return null;
    }

    /** The run is over: end its threads. */
    public abstract void close() throws Exception;

    /**
     * {@code add-again}: add a task again: a finished task starts again, a waiting task is moved. {@code add-same}: the
     * same, and {@code delayNs} is the same as the first time.
     */
    public H addAgain(H handle, long delayNs) throws Exception {
        throw Factory.undeclared("addAgain");
    }

    /** {@code fixed-rate}: run the task when {@code firstNs} have passed, and at every period from then on, until a cancel. */
    public H fixedRate(Runnable task, long firstNs, long periodNs) throws Exception {
        throw Factory.undeclared("fixedRate");
    }

    /** {@code fixed-delay}: run the task when {@code firstNs} have passed, and a period after the end of each run. */
    public H fixedDelay(Runnable task, long firstNs, long periodNs) throws Exception {
        throw Factory.undeclared("fixedDelay");
    }

    /**
     * {@code reset}: move the deadline of a task to {@code delayNs} from now; false if it is over, and then nothing is
     * armed; null if a thread may have begun to run it, or if the timer does not say.
     */
    public Boolean reset(H handle, long delayNs) throws Exception {
        throw Factory.undeclared("reset");
    }

    /** {@code virtual-time}: it is {@code nowNs} now; run all that is due before returning. */
    public void advanceTo(long nowNs) throws Exception {
        throw Factory.undeclared("advanceTo");
    }

    /** See {@link PurgatoryUnderTest#settle}. A timer without work after its calls needs none. */
    public void settle() throws Exception {
    }
}
