package purgatorio;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.RemovalCause;
import com.github.benmanes.caffeine.cache.RemovalListener;
import com.github.benmanes.caffeine.cache.Ticker;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.LockSupport;
import purgatorio.kit.TimerUnderTest;

/**
 * Caffeine's TimerWheel, by the only public way to it: an entry of a cache with variable expiry stands for a task. The
 * entry is written with the delay as its life time; its removal as EXPIRED is the fire; invalidating it is the cancel.
 *
 * Caffeine has no thread of its own: a thread here calls cleanUp() every few milliseconds, and writes do maintenance
 * too, on the threads of the callers (the executor runs what it is given at once).
 */
final class CaffeineExpiry extends TimerUnderTest {
    private static final long CLEAN_EVERY_NS = 2000000L;

    private final Cache cache;
    private volatile boolean stopped;

    CaffeineExpiry(Map options) {
        cache = Caffeine.newBuilder()
                .ticker(new Clock())
                .executor(new AtOnce())
                .expireAfter(new LifeTime())
                .removalListener(new Fires())
                .build();
        new NamedThreads("cleaner").newThread(new Cleaner()).start();
    }

    /** The key of an entry: an object of its own for each task. */
    private static final class Task {
        final Runnable task;
        final long delayNs;

        Task(Runnable task, long delayNs) {
            this.task = task;
            this.delayNs = delayNs;
        }
    }

    private static final class Clock implements Ticker {
        public long read() {
            return System.nanoTime();
        }
    }

    private static final class AtOnce implements Executor {
        public void execute(Runnable work) {
            work.run();
        }
    }

    private static final class LifeTime implements Expiry {
        public long expireAfterCreate(Object key, Object value, long nowNs) {
            return ((Task) key).delayNs;
        }

        public long expireAfterUpdate(Object key, Object value, long nowNs, long leftNs) {
            return leftNs;
        }

        public long expireAfterRead(Object key, Object value, long nowNs, long leftNs) {
            return leftNs;
        }
    }

    private static final class Fires implements RemovalListener {
        public void onRemoval(Object key, Object value, RemovalCause cause) {
            if (cause == RemovalCause.EXPIRED) {
                ((Task) key).task.run();
            }
        }
    }

    private final class Cleaner implements Runnable {
        public void run() {
            while (!stopped) {
                cache.cleanUp();
                LockSupport.parkNanos(CLEAN_EVERY_NS);
            }
        }
    }

    public Object add(Runnable task, long delayNs) {
        Task key = new Task(task, delayNs);
        cache.put(key, Boolean.TRUE);
        return key;
    }

    /** Removing an entry answers with its value only if it was there and had not expired. */
    public Boolean cancel(Object handle) {
        return Boolean.valueOf(cache.asMap().remove(handle) != null);
    }

    public void close() {
        stopped = true;
    }
}
