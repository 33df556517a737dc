// Kafka 0.9 to 3.9: kafka.server.DelayedOperationPurgatory, which is Scala, and the timer under it.

import java.lang.reflect.Method;
import java.util.List;
import java.util.function.BiConsumer;
import kafka.server.DelayedOperationPurgatory;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;
import purgatorio.kit.TimerUnderTest;
import scala.collection.JavaConverters;

public final class KafkaScala extends Factory {
  private static final int PURGE_INTERVAL = 10;

  /** An operation whose callbacks are handed on to the kit. */
  private static final class Operation extends Base {
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
    DelayedOperationPurgatory<Base> kafka = Made.purgatory(hook, PURGE_INTERVAL, !virtual);
    HookedTimer timer = (HookedTimer) KafkaTime.field(kafka, "timeoutTimer");
    time.runs(
        () -> {
          boolean due = timer.advanceClock(0);
          Made.turn(kafka);
          return due;
        },
        timer.tasks());
    Method delayed = method("numDelayed", "delayed");
    return new PurgatoryUnderTest<>() {
      @Override
      public Operation operation(OperationHooks hooks, long delayNs) {
        return new Operation(hooks, delayNs);
      }

      @Override
      @SuppressWarnings("deprecation") // newer converters are in no older Scala
      public boolean tryCompleteElseWatch(Operation operation, List<String> keys) {
        List<Object> objects = List.copyOf(keys);
        return kafka.tryCompleteElseWatch(operation, JavaConverters.asScalaBufferConverter(objects).asScala().toList());
      }

      @Override
      public int checkAndComplete(String key) {
        return kafka.checkAndComplete(key);
      }

      @Override
      public boolean forceComplete(Operation operation) {
        return operation.forceComplete();
      }

      @Override
      @SuppressWarnings({"unchecked", "deprecation"}) // nothing else is registered here
      public List<Operation> cancelForKey(String key) throws Exception {
        Object back = DelayedOperationPurgatory.class.getMethod("cancelForKey", Object.class).invoke(kafka, key);
        return JavaConverters.seqAsJavaListConverter((scala.collection.Seq<Operation>) back).asJava();
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
      public Long delayed() throws Exception {
        return (long) (int) delayed.invoke(kafka);
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
        kafka.shutdown();
      }
    };
  }

  /** A task of the timer alone. */
  private static final class Task extends Base {
    private final Runnable task;

    Task(Runnable task, long delayNs) {
      super(delayNs / KafkaTime.NS_IN_MS);
      this.task = task;
    }

    @Override
    public void run() {
      task.run();
    }

    @Override
    public boolean tryComplete() {
      throw new IllegalStateException("it is in no purgatory");
    }

    @Override
    public void onComplete() {}

    @Override
    public void onExpiration() {}
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

  /** The method of the purgatory that has one of these names in this release; null if none has. */
  private static Method method(String... names) {
    for (String name : names) {
      for (Method method : DelayedOperationPurgatory.class.getMethods()) {
        if (method.getName().equals(name)) {
          return method;
        }
      }
    }
    return null;
  }

  public static void main(String[] arguments) throws Exception {
    // Up to 4.0 an expiry completes without the operation's lock (KAFKA-19312).
    Promises promises = KafkaTime.promises("pending-flag", PURGE_INTERVAL).version(KafkaTime.release());
    if (method("cancelForKey") != null) {
      promises.can("cancel-key");
    }
    Kit.run(promises, new KafkaScala(), arguments);
  }
}
