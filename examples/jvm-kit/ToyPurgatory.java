// A purgatory in a hundred lines, with threads of its own: what the adapter beside it is about.

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/** Operations wait under keys until a check completes them, or until their time-out. One lock an operation. */
class ToyPurgatory {
  /** One character of the toy is another; {@code purgatorio verify} says what that breaks. */
  enum Bug { NONE, NO_RECHECK, GIVE_UP, FORCE_WITHOUT_LOCK, NO_DISARM, DROPS_UNSEEN }

  /** What waits. Subclasses say when it can be completed, and what is done then. */
  abstract static class Operation {
    final long delayNs;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile boolean completed;
    private volatile Future<?> timeOut;
    private Bug bug = Bug.NONE;

    Operation(long delayNs) {
      this.delayNs = delayNs;
    }

    /** Completes it if it can be completed; whether this call did. Called under its lock. */
    abstract boolean tryComplete();

    abstract void onComplete();

    abstract void onExpiration();

    boolean forceComplete() {
      // Two completions that force each other must not wait for each other's lock.
      if (completed || bug == Bug.FORCE_WITHOUT_LOCK) {
        return !completed && complete();
      }
      lock.lock();
      try {
        return !completed && complete();
      } finally {
        lock.unlock();
      }
    }

    private boolean complete() {
      completed = true;
      if (bug != Bug.NO_DISARM) {
        disarm();
      }
      onComplete();
      return true;
    }

    void disarm() {
      Future<?> armed = timeOut;
      if (armed != null) {
        armed.cancel(false);
      }
    }

    void expire() {
      if (forceComplete()) {
        onExpiration();
      }
    }

    private boolean tryUnderLock() {
      if (bug == Bug.GIVE_UP && !lock.tryLock()) {
        return false;
      }
      if (bug != Bug.GIVE_UP) {
        lock.lock();
      }
      try {
        return !completed && tryComplete();
      } finally {
        lock.unlock();
      }
    }
  }

  private final Map<Object, Queue<Operation>> watched = new ConcurrentHashMap<>();
  private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
  private final Bug bug;

  ToyPurgatory(Bug bug) {
    this.bug = bug;
    executor.setRemoveOnCancelPolicy(true);
  }

  boolean tryCompleteElseWatch(Operation operation, List<?> keys) {
    operation.bug = bug;
    operation.lock.lock();
    try {
      if (!operation.completed && operation.tryComplete()) {
        return true;
      }
      for (Object key : keys) {
        synchronized (watched) {
          watched.computeIfAbsent(key, k -> new ConcurrentLinkedQueue<>()).add(operation);
        }
      }
      if (bug != Bug.NO_RECHECK && !operation.completed && operation.tryComplete()) {
        return true;
      }
    } finally {
      operation.lock.unlock();
    }
    arm(operation);
    if (operation.completed) {
      operation.disarm();
    }
    return false;
  }

  /** The operation's time-out begins. */
  void arm(Operation operation) {
    if (!operation.completed) {
      operation.timeOut = executor.schedule(operation::expire, operation.delayNs, TimeUnit.NANOSECONDS);
    }
  }

  int checkAndComplete(Object key) {
    Queue<Operation> there = watched.get(key);
    if (there == null) {
      return 0;
    }
    int count = 0;
    Iterator<Operation> all = there.iterator();
    while (all.hasNext()) {
      Operation operation = all.next();
      if (operation.completed) {
        all.remove();
      } else if (operation.tryUnderLock()) {
        all.remove();
        count++;
      }
    }
    if (there.isEmpty()) {
      drop(key, there);
    }
    return count;
  }

  /** A key that nobody waits under is forgotten: if nobody has come meanwhile. */
  private void drop(Object key, Queue<Operation> there) {
    if (bug == Bug.DROPS_UNSEEN) {
      watched.remove(key, there);
      return;
    }
    synchronized (watched) {
      if (there.isEmpty()) {
        watched.remove(key, there);
      }
    }
  }

  List<Operation> cancelForKey(Object key) {
    Queue<Operation> there;
    synchronized (watched) {
      // Whoever has found the list has put its operation there too: none is put on a list that is gone.
      there = watched.remove(key);
    }
    List<Operation> back = new ArrayList<>();
    for (Operation operation = there == null ? null : there.poll(); operation != null; operation = there.poll()) {
      operation.disarm();
      back.add(operation);
    }
    return back;
  }

  long keys() {
    return watched.size();
  }

  /** Entries of completed operations leave the lists at once when somebody asks for the size. */
  long watched() {
    synchronized (watched) {
      long entries = 0;
      for (Queue<Operation> list : watched.values()) {
        list.removeIf(operation -> operation.completed);
        entries += list.size();
      }
      watched.values().removeIf(Queue::isEmpty);
      return entries;
    }
  }

  long delayed() {
    return executor.getQueue().size();
  }

  void close() {
    executor.shutdownNow();
  }
}
