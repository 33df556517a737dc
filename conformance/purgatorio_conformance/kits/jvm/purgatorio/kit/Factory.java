package purgatorio.kit;

/** Makes what is driven, anew for each run. A part that {@link Promises#can} does not name is never asked for. */
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
