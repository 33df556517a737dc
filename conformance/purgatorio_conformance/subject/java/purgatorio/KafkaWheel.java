package purgatorio;

import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * A port of the structure of Kafka's SystemTimer for benchmarks of add and cancel: the task, its entry, the bucket, the
 * chain of wheels, with Kafka's locks and its counter. It is not driven: nothing fires.
 */
final class KafkaWheel {
    private static final class Task {
        Entry entry;

        synchronized void cancel() {
            if (entry != null) {
                entry.remove();
                entry = null;
            }
        }

        synchronized void setEntry(Entry next) {
            if (entry != null && entry != next) {
                entry.remove();
            }
            entry = next;
        }

        synchronized Entry entry() {
            return entry;
        }
    }

    private static final class Entry {
        final Task task;
        final long expirationMs;
        volatile Bucket list;
        Entry next;
        Entry previous;

        Entry(Task task, long expirationMs) {
            this.task = task;
            this.expirationMs = expirationMs;
            if (task != null) {
                task.setEntry(this);
            }
        }

        boolean cancelled() {
            return task.entry() != this;
        }

        void remove() {
            Bucket current = list;
            while (current != null) {
                current.remove(this);
                current = list;
            }
        }
    }

    private static final class Bucket implements Delayed {
        final AtomicInteger counter;
        final AtomicLong expiration = new AtomicLong(-1L);
        final Entry root = new Entry(null, -1L);

        Bucket(AtomicInteger counter) {
            this.counter = counter;
            root.next = root;
            root.previous = root;
        }

        boolean setExpiration(long expirationMs) {
            return expiration.getAndSet(expirationMs) != expirationMs;
        }

        void add(Entry entry) {
            boolean done = false;
            while (!done) {
                entry.remove();
                synchronized (this) {
                    synchronized (entry) {
                        if (entry.list == null) {
                            Entry tail = root.previous;
                            entry.next = root;
                            entry.previous = tail;
                            entry.list = this;
                            tail.next = entry;
                            root.previous = entry;
                            counter.incrementAndGet();
                            done = true;
                        }
                    }
                }
            }
        }

        synchronized void remove(Entry entry) {
            synchronized (entry) {
                if (entry.list == this) {
                    entry.next.previous = entry.previous;
                    entry.previous.next = entry.next;
                    entry.next = null;
                    entry.previous = null;
                    entry.list = null;
                    counter.decrementAndGet();
                }
            }
        }

        public long getDelay(TimeUnit unit) {
            long leftMs = expiration.get() - System.nanoTime() / 1000000L;
            return unit.convert(Math.max(leftMs, 0L), TimeUnit.MILLISECONDS);
        }

        public int compareTo(Object other) {
            long mine = expiration.get();
            long theirs = ((Bucket) other).expiration.get();
            return mine < theirs ? -1 : mine == theirs ? 0 : 1;
        }
    }

    private static final class Wheel {
        final long tickMs;
        final int size;
        final long startMs;
        final long intervalMs;
        final AtomicInteger counter;
        final DelayQueue queue;
        final Bucket[] buckets;
        final long currentMs;
        volatile Wheel overflow;

        Wheel(long tickMs, int size, long startMs, AtomicInteger counter, DelayQueue queue) {
            this.tickMs = tickMs;
            this.size = size;
            this.startMs = startMs;
            this.counter = counter;
            this.queue = queue;
            intervalMs = tickMs * size;
            currentMs = startMs - startMs % tickMs;
            buckets = new Bucket[size];
            for (int index = 0; index < size; index++) {
                buckets[index] = new Bucket(counter);
            }
        }

        synchronized void addOverflow() {
            if (overflow == null) {
                overflow = new Wheel(intervalMs, size, currentMs, counter, queue);
            }
        }

        boolean add(Entry entry) {
            long expirationMs = entry.expirationMs;
            if (entry.cancelled() || expirationMs < currentMs + tickMs) {
                return false;
            }
            if (expirationMs < currentMs + intervalMs) {
                long number = expirationMs / tickMs;
                Bucket bucket = buckets[(int) (number % size)];
                bucket.add(entry);
                if (bucket.setExpiration(number * tickMs)) {
                    queue.offer(bucket);
                }
                return true;
            }
            if (overflow == null) {
                addOverflow();
            }
            return overflow.add(entry);
        }
    }

    private final AtomicInteger counter = new AtomicInteger(0);
    private final DelayQueue queue = new DelayQueue();
    private final ReentrantReadWriteLock gate = new ReentrantReadWriteLock();
    private final Wheel wheel = new Wheel(1L, 20, System.nanoTime() / 1000000L, counter, queue);

    Object add(long delayMs) {
        gate.readLock().lock();
        try {
            Task task = new Task();
            wheel.add(new Entry(task, delayMs + System.nanoTime() / 1000000L));
            return task;
        } finally {
            gate.readLock().unlock();
        }
    }

    void cancel(Object task) {
        ((Task) task).cancel();
    }

    int size() {
        return counter.get();
    }
}
