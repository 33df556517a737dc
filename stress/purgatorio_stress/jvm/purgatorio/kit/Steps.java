package purgatorio.kit;

/**
 * The steps of the code under test, at which a thread may be stopped though no callback is near. Callbacks are steps by
 * themselves. Call {@link #step} wherever else the implementation comes into code of yours: in {@code hashCode} and
 * {@code equals} of your keys, in its clock, its executor, its locks. Threads for which nobody counts pay next to nothing.
 */
public final class Steps {
    private static final ThreadLocal<Steps> COUNTING = new ThreadLocal<Steps>();
    private static final Steps NOBODY = new Steps(-1, null);

    private final Gate gate;
    private long left;

    private Steps(long left, Gate gate) {
        this.left = left;
        this.gate = gate;
    }

    /** The calling thread has come to a step. */
    public static void step() {
        Steps own = (Steps) COUNTING.get();
        if (own != null && own.left >= 0 && own.left-- == 0) {
            own.gate.pass("step", null);
        }
    }

    /** From here on this thread stops at its step of this number, if there is one; what was counted before. */
    static Steps count(Long number, Gate gate) {
        Steps before = (Steps) COUNTING.get();
        COUNTING.set(number == null ? NOBODY : new Steps(number.longValue(), gate));
        return before == null ? NOBODY : before;
    }

    /** What was counted before is counted on. */
    void goOn() {
        COUNTING.set(this);
    }
}
