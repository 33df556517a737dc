package purgatorio;

import java.util.concurrent.locks.LockSupport;

/**
 * A control: a thread that does nothing but sleep a millisecond and measure how much longer it took. What it saw at
 * worst is lateness of the machine and the JVM, not of the timer beside it.
 */
final class Oversleep extends Thread {
    private static final long NAP_NS = 1000000L;
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
            worstNs = Math.max(worstNs, System.nanoTime() - start - NAP_NS);
        }
    }

    long worstNs() {
        stopped = true;
        return worstNs;
    }
}
