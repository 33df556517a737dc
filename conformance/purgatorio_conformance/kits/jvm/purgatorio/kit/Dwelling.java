package purgatorio.kit;

import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/** A gate that pauses no thread: callbacks wait there for a random time, mostly none, so that they overlap. */
@SuppressWarnings("cast") // janino does not infer them
final class Dwelling implements Gate {
    private static final int MOST_NS = 1000000;
    private final ThreadLocal<Random> dice = new ThreadLocal<Random>();

    public void pass(String f, String id) {
        Random own = (Random) dice.get();
        if (own == null) {
            own = new Random(System.nanoTime());
            dice.set(own);
        }
        int kind = own.nextInt(8);
        if (kind == 0) {
            LockSupport.parkNanos(own.nextInt(MOST_NS));
        } else if (kind < 3) {
            turn(own.nextInt(30000));
        }
    }

    /** Let so much time pass without sleeping. */
    static void turn(long ns) {
        long untilT = System.nanoTime() + ns;
        while (System.nanoTime() < untilT) {
            Thread.yield();
        }
    }
}
