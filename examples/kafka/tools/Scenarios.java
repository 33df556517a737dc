package tools;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.utils.SystemTime;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/** What Kafka's purgatory and timer promise, a scenario each: two threads at most, and what must hold after them. */
public final class Scenarios {
  record Key(String keyLabel) implements DelayedOperationKey {}

  static final Key KEY = new Key("k");

  /** An operation that is complete when its event has come. */
  static final class Operation extends DelayedOperation {
    volatile boolean ready;
    final AtomicInteger completions = new AtomicInteger();
    Runnable then = () -> {};

    Operation(long delayMs) {
      super(delayMs);
    }

    @Override
    public boolean tryComplete() {
      return ready && forceComplete();
    }

    @Override
    public void onComplete() {
      if (completions.incrementAndGet() < 3) then.run();
    }

    @Override
    public void onExpiration() {}
  }

  /** A task that counts its runs. */
  static final class Task extends TimerTask {
    final AtomicInteger runs = new AtomicInteger();

    Task(long delayMs) {
      super(delayMs);
    }

    @Override
    public void run() {
      runs.incrementAndGet();
    }
  }

  final SystemTimer timer;
  final DelayedOperationPurgatory<Operation> purgatory;

  Scenarios() {
    SystemTime.set(0);
    timer = new SystemTimer("test", 1, 20, 0);
    purgatory = new DelayedOperationPurgatory<>("test", timer, 0, 10, false, true);
  }

  void register(Operation operation) {
    purgatory.tryCompleteElseWatch(operation, List.of(KEY));
  }

  int event(Operation operation) {
    operation.ready = true;
    return purgatory.checkAndComplete(KEY);
  }

  void moveTo(long ms) {
    SystemTime.set(ms * 1_000_000);
    try {
      while (timer.advanceClock(0)) {}
    } catch (InterruptedException stopped) {
      throw new IllegalStateException(stopped);
    }
  }

  static void require(boolean held, String promise) {
    if (!held) throw new AssertionError(promise);
  }

  static void beside(Runnable first, Runnable second) {
    Thread one = new Thread(first);
    Thread two = new Thread(second);
    one.start();
    two.start();
    try {
      one.join();
      two.join();
    } catch (InterruptedException stopped) {
      throw new IllegalStateException(stopped);
    }
  }

  public static void eventBesideRegistration() {
    Scenarios its = new Scenarios();
    Operation operation = new Operation(1000);
    beside(() -> its.register(operation), () -> its.event(operation));
    require(operation.completions.get() == 1, "an event beside a registration completes it");
    require(its.purgatory.numDelayed() == 0, "nothing that is completed waits in the timer");
    its.timer.close();
  }

  public static void eventOfAnother() {
    Scenarios its = new Scenarios();
    Operation other = new Operation(1000);
    Operation operation = new Operation(1000);
    its.register(other);
    beside(() -> its.register(operation), () -> its.event(other));
    its.event(operation);
    require(operation.completions.get() == 1, "an event behind a registration completes it");
    its.timer.close();
  }

  public static void forceBesideRegistration() {
    Scenarios its = new Scenarios();
    Operation operation = new Operation(1000);
    beside(() -> its.register(operation), operation::forceComplete);
    require(operation.completions.get() == 1, "a force completes once");
    require(its.purgatory.numDelayed() == 0, "nothing that is completed waits in the timer");
    its.timer.close();
  }

  public static void callbackComesBack() {
    Scenarios its = new Scenarios();
    Operation operation = new Operation(1000);
    operation.then = () -> its.purgatory.checkAndComplete(KEY);
    its.register(operation);
    beside(() -> its.event(operation), () -> its.event(operation));
    require(operation.completions.get() == 1, "an operation is completed once");
    its.timer.close();
  }

  public static void expiryBesideEvent() {
    Scenarios its = new Scenarios();
    Operation operation = new Operation(2);
    Operation second = new Operation(2);
    operation.then = second.then = () -> its.purgatory.checkAndComplete(KEY);
    its.register(operation);
    its.register(second);
    beside(() -> its.moveTo(2), () -> its.event(operation));
    its.timer.close();
    require(operation.completions.get() == 1 && second.completions.get() == 1, "each is completed once");
  }

  public static void cancelBesideMove() {
    Scenarios its = new Scenarios();
    Task task = new Task(30);
    its.timer.add(task);
    beside(() -> its.moveTo(20), task::cancel);
    its.moveTo(40);
    its.timer.close();
    require(task.runs.get() == 0, "what is cancelled before its time does not run");
    require(its.timer.size() == 0, "nothing is left in the timer");
  }

  public static void notEarly() {
    Scenarios its = new Scenarios();
    Task task = new Task(1);
    its.timer.add(task);
    its.timer.close();
    require(task.runs.get() == 0, "a task does not run before its time");
  }

  public static void longDelayLater() {
    Scenarios its = new Scenarios();
    for (int ms = 0; ms <= 500; ms += 10) {
      its.timer.add(new Task(30));
      its.moveTo(ms);
    }
    its.moveTo(530);
    its.timer.close();
    require(its.timer.size() == 0, "each task runs at its time");
  }
}
