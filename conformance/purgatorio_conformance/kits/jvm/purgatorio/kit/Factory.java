package purgatorio.kit;

/** Creates the subject of each run. Parts that {@link Promises#can} does not name are never requested. */
public interface Factory {
    /**
     * A purgatory with nothing in it.
     *
     * @param virtual whether time is {@code nowNs} until {@link PurgatoryUnderTest#advanceTo} says otherwise, and not the
     *     machine's
     */
    PurgatoryUnderTest<?> purgatory(boolean virtual, long nowNs) throws Exception;

    /** A timer with nothing in it; see {@link #purgatory}. */
    TimerUnderTest<?> timer(boolean virtual, long nowNs) throws Exception;
}
