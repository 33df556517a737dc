// Kafka 4.0 and later: org.apache.kafka.server.purgatory, and the timer under it.

import java.lang.reflect.Method;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.TimerTask;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;
import purgatorio.kit.TimerUnderTest;

public final class KafkaJava extends Factory {
  private static final int PURGE_INTERVAL = 10;

  private record Key(String keyLabel) implements DelayedOperationKey {}

  /** An operation whose callbacks are handed on to the kit. */
  private static final class Operation extends DelayedOperation {
    private final OperationHooks hooks;

    Operation(OperationHooks hooks, long delayNs) {
      super(delayNs / KafkaTime.NS_IN_MS);
      this.hooks = hooks;
    }

    @Override
    public boolean tryComplete() {
      return hooks.tryComplete(this::forceComplete);
    }

    @Override
    public boolean forceComplete() {
      return hooks.forceComplete(super::forceComplete);
    }

    @Override
    public void onComplete() {
      hooks.onComplete();
    }

    @Override
    public void onExpiration() {
      hooks.onExpiration();
    }

    @Override
    public void cancel() {
      hooks.timerCancel(super::cancel);
    }

    @Override
    public void run() {
      hooks.timerFire(super::run);
    }
  }

  @Override
  public PurgatoryUnderTest<Operation> purgatory(boolean virtual, long nowNs) throws Exception {
    KafkaTime time = new KafkaTime(virtual, nowNs);
    // Not every task is an operation: a shutdown adds another.
    BiConsumer<Object, Runnable> hook =
        (task, add) -> {
          if (task instanceof Operation) {
            ((Operation) task).hooks.timerAdd(add);
          } else {
            add.run();
          }
        };
    HookedTimer timer = new HookedTimer(hook);
    DelayedOperationPurgatory<Operation> kafka =
        new DelayedOperationPurgatory<>("test", timer, 0, PURGE_INTERVAL, !virtual, true);
    Method turn = DelayedOperationPurgatory.class.getDeclaredMethod("advanceClock", long.class);
    turn.setAccessible(true);
    time.runs(
        () -> {
          boolean due = timer.advanceClock(0);
          turn.invoke(kafka, 0L);
          return due;
        },
        timer.tasks());
    return new PurgatoryUnderTest<>() {
      @Override
      public Operation operation(OperationHooks hooks, long delayNs) {
        return new Operation(hooks, delayNs);
      }

      @Override
      public boolean tryCompleteElseWatch(Operation operation, List<String> keys) {
        return kafka.tryCompleteElseWatch(operation, keys.stream().map(Key::new).toList());
      }

      @Override
      public int checkAndComplete(String key) {
        return kafka.checkAndComplete(new Key(key));
      }

      @Override
      public boolean forceComplete(Operation operation) {
        return operation.forceComplete();
      }

      @Override
      public List<Operation> cancelForKey(String key) {
        return kafka.cancelForKey(new Key(key));
      }

      @Override
      public Long keys() throws Exception {
        return KafkaKeys.count(kafka);
      }

      @Override
      public Long watched() {
        return (long) kafka.watched();
      }

      @Override
      public Long delayed() {
        return (long) kafka.numDelayed();
      }

      @Override
      public void advanceTo(long now) throws Exception {
        time.advanceTo(now);
      }

      @Override
      public void settle() throws Exception {
        time.settle();
      }

      @Override
      public void close() throws Exception {
        time.close();
        kafka.shutdown();
      }
    };
  }

  /** A task of the timer alone. */
  private static final class Task extends TimerTask {
    private final Runnable task;

    Task(Runnable task, long delayNs) {
      super(delayNs / KafkaTime.NS_IN_MS);
      this.task = task;
    }

    @Override
    public void run() {
      task.run();
    }
  }

  @Override
  public TimerUnderTest<?> timer(boolean virtual, long nowNs) throws Exception {
    KafkaTime time = new KafkaTime(virtual, nowNs);
    HookedTimer timer = new HookedTimer((task, add) -> add.run());
    time.runs(() -> timer.advanceClock(virtual ? 0 : 200), timer.tasks());
    time.reapInRealTime();
    return new TimerUnderTest<Task>() {
      @Override
      public Task add(Runnable task, long delayNs) {
        return addAgain(new Task(task, delayNs), delayNs);
      }

      @Override
      public Task addAgain(Task task, long delayNs) {
        timer.add(task);
        return task;
      }

      @Override
      public Boolean cancel(Task task) {
        task.cancel();
        return null;
      }

      @Override
      public Long size() {
        return (long) timer.size();
      }

      @Override
      public void advanceTo(long now) throws Exception {
        time.advanceTo(now);
      }

      @Override
      public void settle() throws Exception {
        time.settle();
      }

      @Override
      public void close() {
        time.close();
        timer.close();
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    String version = KafkaTime.release();
    // Up to 4.0 an expiry completes without the operation's lock (KAFKA-19312).
    String profile = version.startsWith("4.0") ? "pending-flag" : "locked";
    Promises promises = KafkaTime.promises(profile, PURGE_INTERVAL).version(version).can("cancel-key", "drains");
    Kit.run(promises, new KafkaJava(), arguments);
  }
}
