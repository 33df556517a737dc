package purgatorio.kit;

import java.util.function.BooleanSupplier;

/**
 * What happens to one operation, told from within its callbacks. The operation of your purgatory hands each callback on
 * to the method of the same name here, with what it inherits as the argument:
 *
 * <pre>
 * final class Operation extends DelayedOperation {
 *     final OperationHooks hooks;
 *
 *     public boolean tryComplete() { return hooks.tryComplete(this::forceComplete); }
 *     public boolean forceComplete() { return hooks.forceComplete(super::forceComplete); }
 *     public void onComplete() { hooks.onComplete(); }
 *     public void onExpiration() { hooks.onExpiration(); }
 *     public void cancel() { hooks.timerCancel(super::cancel); }
 *     public void run() { hooks.timerFire(super::run); }
 * }
 * </pre>
 *
 * <p>Hand on all of them: the kit declares that each is reported, and one that is not looks like one that never happens.
 * What you cannot hand on, declare with {@link Promises#lacks}.
 */
public final class OperationHooks {
    /** Of the operation, unique in a run. */
    public final String id;

    private final long delayNs;
    private final Recording recording;
    private final Gate gate;
    private long units = 1;
    private volatile boolean ready;
    private volatile Runnable completing;

    OperationHooks(String id, long delayNs, Recording recording, Gate gate) {
        this.id = id;
        this.delayNs = delayNs;
        this.recording = recording;
        this.gate = gate;
    }

    /** Its time-out. */
    public long delayNs() {
        return delayNs;
    }

    /** The number of units that it waits for, with the capability `amounts`. */
    public long units() {
        return units;
    }

    void waitFor(long amount) {
        units = amount;
    }

    /** The condition is true from now on. */
    void becomeReady() {
        ready = true;
    }

    /** What its completion does besides. */
    void whenCompleting(Runnable action) {
        completing = action;
    }

    /** The condition: {@code forceComplete} is called if it holds. Whether that call completed the operation. */
    public boolean tryComplete(BooleanSupplier forceComplete) {
        long c = recording.call("try_complete", id, null, null);
        Throwable error = null;
        Long out = null;
        try {
            boolean seen = ready;
            gate.pass("try_complete", id);
            boolean done = seen && forceComplete.getAsBoolean();
            out = Long.valueOf(done ? 1 : 0);
            return done;
        } catch (RuntimeException thrown) {
            error = thrown;
            throw thrown;
        } finally {
            recording.ret("try_complete", c, id, out, error, null);
        }
    }

    /** Completes the operation by its inherited method; returns whether this call completed it. */
    public boolean forceComplete(BooleanSupplier inherited) {
        long c = recording.call("force_complete", id, null, null);
        Throwable error = null;
        Long out = null;
        try {
            gate.pass("force_complete", id);
            boolean done = inherited.getAsBoolean();
            out = Long.valueOf(done ? 1 : 0);
            return done;
        } catch (RuntimeException thrown) {
            error = thrown;
            throw thrown;
        } finally {
            recording.ret("force_complete", c, id, out, error, null);
        }
    }

    /** The callback of completion. */
    public void onComplete() {
        within("on_complete", null, completing);
    }

    /** The callback of expiration. */
    public void onExpiration() {
        within("on_expiration", null, null);
    }

    /** The operation's time-out is given to the timer by {@code inherited}. */
    public void timerAdd(Runnable inherited) {
        within("timer_add", Long.valueOf(delayNs), inherited);
    }

    /** Its time-out is taken back by {@code inherited}. */
    public void timerCancel(Runnable inherited) {
        within("timer_cancel", null, inherited);
    }

    /** The timer runs the operation: its time is over. */
    public void timerFire(Runnable inherited) {
        within("timer_fire", null, inherited);
    }

    private void within(String f, Long delay, Runnable action) {
        long c = recording.call(f, id, null, delay);
        long calledT = recording.calledT();
        Throwable error = null;
        try {
            gate.pass(f, id);
            if (action != null) {
                action.run();
            }
        } catch (RuntimeException thrown) {
            error = thrown;
            throw thrown;
        } finally {
            Long deadline = delay == null || error != null ? null : Long.valueOf(deadline(calledT, delayNs));
            recording.ret(f, c, id, null, error, deadline);
        }
    }

    /** A delay below zero is due at once; one beyond the clock's range is due at its end. */
    public static long deadline(long nowT, long delayNs) {
        long wait = Math.max(0, delayNs);
        return nowT > Long.MAX_VALUE - wait ? Long.MAX_VALUE : nowT + wait;
    }
}
