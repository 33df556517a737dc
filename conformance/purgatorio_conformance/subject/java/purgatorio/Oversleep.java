package purgatorio;

import java.util.concurrent.locks.LockSupport;

/**
 * A control: a thread that does nothing but sleep five milliseconds and measure how much longer it took. What it saw is
 * lateness of the machine and the JVM, not of the timer beside it.
 */
final class Oversleep extends Thread {
    private static final long NAP_NS = 5000000L;
    /** Kept naps, 25 s of them: with at most 11 characters each, their array fits into a line of the driver. */
    private static final int MAX_NAPS = 5000;
    private static final long MOST_NS = 9999999999L;
    private final long[] oversleepsNs = new long[MAX_NAPS];
    private volatile int naps;
    private volatile long worstNs;
    private volatile boolean stopped;

    Oversleep() {
        super("oversleep");
        setDaemon(true);
    }

    public void run() {
        while (!stopped) {
            long start = System.nanoTime();
            LockSupport.parkNanos(NAP_NS);
            long over = Math.max(0L, System.nanoTime() - start - NAP_NS);
            int at = naps;
            if (at < MAX_NAPS) {
                oversleepsNs[at] = Math.min(over, MOST_NS);
                naps = at + 1;
            }
            // Last, so that a worst that is read before the others is among them.
            worstNs = Math.max(worstNs, over);
        }
    }

    long worstNs() {
        stopped = true;
        return worstNs;
    }

    /** What the naps that were kept came to, as a JSON array: at most MAX_NAPS numbers. */
    String oversleepsNs() {
        stopped = true;
        int kept = naps;
        StringBuilder text = new StringBuilder("[");
        for (int at = 0; at < kept; at++) {
            text.append(at == 0 ? "" : ",").append(oversleepsNs[at]);
        }
        return text.append(']').toString();
    }
}
