package purgatorio;

import java.time.Instant;

/**
 * How far the wall clock ran ahead of System.nanoTime() while a run lasted: a timer that goes by the wall clock is early
 * by as much when somebody sets that clock forward, and keeps its promise all the same.
 *
 * Each look reads the wall clock between two readings of the other, which bounds the distance of the two from both
 * sides. What comes out is what is certain: a thread that was held up between the readings widens the bounds only.
 */
final class WallClock {
    private long most = Long.MIN_VALUE;
    private long least = Long.MAX_VALUE;

    WallClock() {
        look();
    }

    void look() {
        long before = System.nanoTime();
        Instant wall = Instant.now();
        long after = System.nanoTime();
        long wallNs = wall.getEpochSecond() * 1000000000L + wall.getNano();
        most = Math.max(most, wallNs - after);
        least = Math.min(least, wallNs - before);
    }

    long shiftNs() {
        return Math.max(0, most - least);
    }
}
