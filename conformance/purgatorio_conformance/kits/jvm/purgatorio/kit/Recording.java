package purgatorio.kit;

import java.util.List;

/**
 * What writes down calls, returns and points, by the names of the trace format. {@link TraceRecorder} writes a trace;
 * behind the protocol the same words become events of purgatorio-subject/1.
 *
 * <p>A call is recorded before it starts and a return after it ended, on the thread that makes it. Any argument that is
 * null is left out. All methods may be called by any number of threads.
 */
public interface Recording {
    /** What {@link #call} answers for a call that was not recorded; its return is not recorded either. */
    long DROPPED = -1;

    /**
     * The function {@code f} is about to be called.
     *
     * @param id of the operation or task
     * @param keys the keys that it is watched under, or the key that is checked or cancelled
     * @param delayNs time-out or delay
     * @return what {@link #ret} needs
     */
    long call(String f, String id, List<String> keys, Long delayNs);

    /**
     * The call has ended.
     *
     * @param c what {@link #call} answered
     * @param out its result; booleans as 0 and 1, counts
     * @param error the exception that it threw
     * @param deadlineT of a {@code timer_add}: the earliest moment that the timer may mean, by {@link #now}
     */
    void ret(String f, long c, String id, Long out, Throwable error, Long deadlineT);

    /**
     * A point: a statement that is true from now on, and became true at some time after {@code sinceT}.
     *
     * @param sinceT of {@code ready}: the time just before the condition became true, by {@link #now}
     */
    void at(String f, String id, List<String> keys, Long sinceT);

    /** The clock of all times here, in nanoseconds. */
    long now();

    /** The time of the last call that this thread recorded. Deadlines count from it. */
    long calledT();
}
