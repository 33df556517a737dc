package purgatorio.kit;

import java.util.List;

/**
 * A purgatory that is driven: one object a run. All methods may be called by several threads at once, but for
 * {@link #advanceTo} and {@link #close}.
 *
 * @param <O> the type of its operations
 */
public interface PurgatoryUnderTest<O> {
    /** A new operation with this time-out, in no list yet, whose callbacks go to {@code hooks}. */
    O operation(OperationHooks hooks, long delayNs) throws Exception;

    /** Try it; unless that completes it, watch it under its keys and start its time-out. Whether this completed it. */
    boolean tryCompleteElseWatch(O operation, List<String> keys) throws Exception;

    /** Try the operations that are watched under the key. Returns the number of completed operations. */
    int checkAndComplete(String key) throws Exception;

    /**
     * Complete it now, ready or not; whether this did. Only if {@code force} is declared. May come before
     * {@code tryCompleteElseWatch} of the operation, or during it.
     */
    boolean forceComplete(O operation) throws Exception;

    /** Remove the operations of the key without completing them. Only if {@code cancel-key} is declared. */
    List<O> cancelForKey(String key) throws Exception;

    /** Entries in the watch lists; null if that is not known. */
    Long watched() throws Exception;

    /** Tasks in the timer; null if that is not known. */
    Long delayed() throws Exception;

    /** Virtual time: it is {@code nowNs} now; run all that is due before returning. */
    void advanceTo(long nowNs) throws Exception;

    /**
     * Return when nothing is under way any more. In virtual time this is called after every call, and waits for what the
     * implementation's own threads do because of it; in real time at the end of a run, and the purge has had its turn.
     */
    void settle() throws Exception;

    /** The run is over: end its threads. */
    void close() throws Exception;
}
