package purgatorio.kit;

/** Creates the subject of each run. Override what {@link Promises#can} names: the other method is never called. */
public abstract class Factory {
    /**
     * A purgatory with nothing in it.
     *
     * @param virtual whether time is {@code nowNs} until {@link PurgatoryUnderTest#advanceTo} says otherwise, and not the
     *     machine's
     */
    public PurgatoryUnderTest<?> purgatory(boolean virtual, long nowNs) throws Exception {
        throw undeclared("purgatory");
    }

    /** A timer with nothing in it; see {@link #purgatory}. */
    public TimerUnderTest<?> timer(boolean virtual, long nowNs) throws Exception {
        throw undeclared("timer");
    }

    /** The error of a declared capability whose method is not overridden. */
    static UnsupportedOperationException undeclared(String method) {
        return new UnsupportedOperationException("the promises declare it, so the adapter must override " + method);
    }
}
