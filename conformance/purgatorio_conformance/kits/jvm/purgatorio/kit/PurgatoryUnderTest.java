package purgatorio.kit;

import java.util.List;

/**
 * A purgatory that is driven: one object a run. All methods may be called by several threads at once, but for
 * {@link #advanceTo} and {@link #close}. A method with a body here needs to be overridden only if its capability is
 * declared. (An abstract class, because janino knows no default method of an interface.)
 *
 * @param <O> the type of its operations
 */
public abstract class PurgatoryUnderTest<O> {
    /** A new operation with this time-out, in no list yet, whose callbacks go to {@code hooks}. */
    public abstract O operation(OperationHooks hooks, long delayNs) throws Exception;

    /** Try it; unless that completes it, watch it under its keys and start its time-out. Whether this completed it. */
    public abstract boolean tryCompleteElseWatch(O operation, List<String> keys) throws Exception;

    /** Try the operations that are watched under the key. Returns the number of completed operations. */
    public abstract int checkAndComplete(String key) throws Exception;

    /**
     * {@code force}: complete it now, ready or not; whether this did. May come before {@code tryCompleteElseWatch} of
     * the operation, or during it.
     */
    public boolean forceComplete(O operation) throws Exception {
        throw Factory.undeclared("forceComplete");
    }

    /** {@code cancel-key}: remove the operations of the key without completing them. */
    public List<O> cancelForKey(String key) throws Exception {
        throw Factory.undeclared("cancelForKey");
    }

    /** {@code gauge}: entries in the watch lists; null if that is not known. */
    public Long watched() throws Exception {
        return null;
    }

    /** {@code gauge}: tasks in the timer; null if that is not known. */
    public Long delayed() throws Exception {
        return null;
    }

    /** {@code gauge}: keys that have a list, for P4; null if that is not known. */
    public Long keys() throws Exception {
        return null;
    }

    /** {@code virtual-time}: it is {@code nowNs} now; run all that is due before returning. */
    public void advanceTo(long nowNs) throws Exception {
        throw Factory.undeclared("advanceTo");
    }

    /**
     * Return when nothing is under way any more. In virtual time this is called after every call, and waits for what the
     * implementation's own threads do because of it; in real time at the end of a run, and the purge has had its turn.
     */
    public abstract void settle() throws Exception;

    /** The run is over: end its threads. */
    public abstract void close() throws Exception;
}
