import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.BiConsumer;
import kafka.utils.timer.Timer;
import kafka.utils.timer.TimerTask;
import org.apache.kafka.common.utils.SystemTime;

/** The timer of Kafka 0.9, told of each task that it is given. A purgatory of 0.9 makes its own, whose place this takes. */
final class HookedTimer extends Timer {
  private final ExecutorService tasks;
  private final BiConsumer<Object, Runnable> hook;
  private final boolean waits;

  HookedTimer(BiConsumer<Object, Runnable> hook) {
    this(Executors.newFixedThreadPool(1), hook, true);
  }

  HookedTimer(ExecutorService tasks, BiConsumer<Object, Runnable> hook, boolean waits) {
    super(tasks, 1, 20, new SystemTime().milliseconds());
    this.tasks = tasks;
    this.hook = hook;
    this.waits = waits;
  }

  /** The turn of a reaper whose time is virtual does not wait. */
  @Override
  public boolean advanceClock(long waitMs) {
    return super.advanceClock(waits ? waitMs : 0);
  }

  @Override
  public void add(TimerTask task) {
    hook.accept(task, () -> super.add(task));
  }

  ExecutorService tasks() {
    return tasks;
  }

  void close() {
    tasks.shutdownNow();
  }
}
