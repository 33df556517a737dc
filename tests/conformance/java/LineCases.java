import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.Promises;
import purgatorio.kit.TimerUnderTest;

/**
 * A timer that knows nothing of steps: {@code -Dcase=} clean, lost (an add beside another), counted (a read and a
 * write of one line), dies; moved (what is added again while time puts it back is there twice), forgets (what is added
 * again while its run begins is removed with it), again (neither).
 */
public final class LineCases extends Factory {
  private static final String CASE = System.getProperty("case", "clean");

  private static final class Task {
    final Runnable action;
    final long deadlineNs;

    Task(Runnable action, long deadlineNs) {
      this.action = action;
      this.deadlineNs = deadlineNs;
    }
  }

  /** The tasks are a list that is replaced by another; only in the case clean under a lock. */
  private static final class Tasks extends TimerUnderTest<Task> {
    private volatile List<Task> tasks = new ArrayList<>();
    private volatile boolean adding;
    private volatile long nowNs;
    private final AtomicInteger count = new AtomicInteger();

    Tasks(long nowNs) {
      this.nowNs = nowNs;
    }

    @Override
    public Task add(Runnable action, long delayNs) {
      Task task = new Task(action, nowNs + delayNs);
      if (CASE.equals("lost")) {
        put(task);
        return task;
      }
      if (CASE.equals("dies") && adding) {
        Runtime.getRuntime().halt(7);
      }
      synchronized (this) {
        adding = true;
        put(task);
        adding = false;
      }
      count.set(count.get() + 1);
      return task;
    }

    private void put(Task task) {
      List<Task> more = new ArrayList<>(tasks);
      more.add(task);
      tasks = more;
    }

    @Override
    public synchronized Task addAgain(Task task, long delayNs) {
      List<Task> fewer = new ArrayList<>(tasks);
      fewer.remove(task);
      tasks = fewer;
      Task again = new Task(task.action, nowNs + delayNs);
      put(again);
      return again;
    }

    @Override
    public synchronized Boolean cancel(Task task) {
      List<Task> fewer = new ArrayList<>(tasks);
      boolean there = fewer.remove(task);
      tasks = fewer;
      count.addAndGet(there ? -1 : 0);
      return there;
    }

    @Override
    public Long size() {
      return (long) (CASE.equals("counted") ? count.get() : tasks.size());
    }

    @Override
    public void advanceTo(long now) {
      nowNs = now;
      for (Task task : CASE.equals("moved") ? dueAndPutBack() : CASE.equals("forgets") ? dueByAction() : due()) {
        try {
          task.action.run();
        } catch (RuntimeException itsOwn) {
          // The next one is not to suffer for it.
        }
      }
    }

    private synchronized List<Task> due() {
      List<Task> due = new ArrayList<>();
      List<Task> later = new ArrayList<>();
      for (Task task : tasks) {
        (task.deadlineNs <= nowNs ? due : later).add(task);
      }
      tasks = later;
      count.addAndGet(-due.size());
      return due;
    }

    private List<Task> dueByAction() {
      List<Task> due = new ArrayList<>(tasks);
      due.removeIf(task -> task.deadlineNs > nowNs);
      for (Task ends : due) {
        synchronized (this) {
          tasks = new ArrayList<>(tasks);
          tasks.removeIf(task -> task.action == ends.action);
        }
      }
      return due;
    }

    private List<Task> dueAndPutBack() {
      List<Task> moving;
      synchronized (this) {
        moving = tasks;
        tasks = new ArrayList<>();
      }
      List<Task> due = new ArrayList<>();
      for (Task task : moving) {
        if (task.deadlineNs <= nowNs) {
          due.add(task);
          continue;
        }
        synchronized (this) {
          put(task);
        }
      }
      return due;
    }

    @Override
    public void close() {}
  }

  @Override
  public TimerUnderTest<?> timer(boolean virtual, long nowNs) {
    return new Tasks(nowNs);
  }

  public static void main(String[] arguments) throws Exception {
    Promises promises =
        new Promises("lines-" + CASE, "timer-cancel-barrier")
            .tickNs(1_000_000)
            .earlyNs(0)
            .lateNs(0)
            .lanes(2)
            .can("timer", "virtual-time", "cancel", "gauge");
    if (CASE.equals("moved") || CASE.equals("forgets") || CASE.equals("again")) {
      promises.can("add-same");
    }
    Kit.run(promises, new LineCases(), arguments);
  }
}
