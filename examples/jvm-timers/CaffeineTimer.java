import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.RemovalCause;
import com.github.benmanes.caffeine.cache.Scheduler;
import purgatorio.kit.TimerUnderTest;

/**
 * com.github.ben-manes.caffeine:caffeine, entries that expire. "Each entry should be automatically removed from the cache once
 * a duration has elapsed", when maintenance comes to it; an entry that was invalidated does not expire.
 */
public final class CaffeineTimer extends TimerUnderTest<CaffeineTimer.Entry> {
  /** A task as a key, and its duration. */
  static final class Entry {
    final Runnable task;
    final long delayNs;

    Entry(Runnable task, long delayNs) {
      this.task = task;
      this.delayNs = delayNs;
    }
  }

  private final Cache<Entry, Boolean> cache =
      Caffeine.newBuilder()
          .scheduler(Scheduler.systemScheduler())
          .expireAfter(Expiry.<Entry, Boolean>creating((entry, value) -> java.time.Duration.ofNanos(entry.delayNs)))
          .removalListener(CaffeineTimer::removed)
          .build();

  private static void removed(Entry entry, Boolean value, RemovalCause why) {
    if (why == RemovalCause.EXPIRED) {
      entry.task.run();
    }
  }

  @Override
  public Entry add(Runnable task, long delayNs) {
    Entry entry = new Entry(task, delayNs);
    cache.put(entry, true);
    return entry;
  }

  @Override
  public Boolean cancel(Entry entry) {
    return cache.asMap().remove(entry) != null;
  }

  @Override
  public void close() {
    cache.invalidateAll();
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("caffeine", "caffeine-expiry", Cache.class).earlyNs(0),
        CaffeineTimer::new,
        arguments);
  }
}
