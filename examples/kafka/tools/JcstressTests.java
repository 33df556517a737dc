package tools;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** The same scenarios for jcstress: each actor a thread, and the arbiter looks behind both. */
public class JcstressTests {
  @JCStressTest
  @Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "completed once, nothing waits")
  @Outcome(expect = Expect.FORBIDDEN, desc = "lost, or left in the timer")
  @State
  public static class EventBesideRegistration {
    final Scenarios its = new Scenarios();
    final Scenarios.Operation operation = new Scenarios.Operation(1000);

    @Actor
    public void registers() {
      its.register(operation);
    }

    @Actor
    public void event() {
      its.event(operation);
    }

    @Arbiter
    public void after(II_Result seen) {
      seen.r1 = operation.completions.get();
      seen.r2 = its.purgatory.numDelayed();
    }
  }

  @JCStressTest
  @Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "completed by the second event")
  @Outcome(expect = Expect.FORBIDDEN, desc = "lost")
  @State
  public static class EventOfAnother {
    final Scenarios its = new Scenarios();
    final Scenarios.Operation other = new Scenarios.Operation(1000);
    final Scenarios.Operation operation = new Scenarios.Operation(1000);

    public EventOfAnother() {
      its.register(other);
    }

    @Actor
    public void registers() {
      its.register(operation);
    }

    @Actor
    public void event() {
      its.event(other);
    }

    @Arbiter
    public void after(II_Result seen) {
      its.event(operation);
      seen.r1 = operation.completions.get();
      seen.r2 = its.purgatory.numDelayed();
    }
  }

  @JCStressTest
  @Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "completed once, nothing waits")
  @Outcome(expect = Expect.FORBIDDEN, desc = "twice, or left in the timer")
  @State
  public static class ForceBesideRegistration {
    final Scenarios its = new Scenarios();
    final Scenarios.Operation operation = new Scenarios.Operation(1000);

    @Actor
    public void registers() {
      its.register(operation);
    }

    @Actor
    public void forces() {
      operation.forceComplete();
    }

    @Arbiter
    public void after(II_Result seen) {
      seen.r1 = operation.completions.get();
      seen.r2 = its.purgatory.numDelayed();
    }
  }

  @JCStressTest
  @Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "completed once")
  @Outcome(expect = Expect.FORBIDDEN, desc = "twice")
  @State
  public static class CallbackComesBack {
    final Scenarios its = new Scenarios();
    final Scenarios.Operation operation = new Scenarios.Operation(1000);

    public CallbackComesBack() {
      operation.then = () -> its.purgatory.checkAndComplete(Scenarios.KEY);
      its.register(operation);
    }

    @Actor
    public void event() {
      its.event(operation);
    }

    @Actor
    public void again() {
      its.event(operation);
    }

    @Arbiter
    public void after(II_Result seen) {
      seen.r1 = operation.completions.get();
      seen.r2 = its.purgatory.numDelayed();
    }
  }

  @JCStressTest
  @Outcome(id = "0, 0", expect = Expect.ACCEPTABLE, desc = "a cancelled task does not run")
  @Outcome(expect = Expect.FORBIDDEN, desc = "it runs, or stays")
  @State
  public static class CancelBesideMove {
    final Scenarios its = new Scenarios();
    final Scenarios.Task task = new Scenarios.Task(30);

    public CancelBesideMove() {
      its.timer.add(task);
    }

    @Actor
    public void moves() {
      its.moveTo(20);
    }

    @Actor
    public void cancels() {
      task.cancel();
    }

    @Arbiter
    public void after(II_Result seen) {
      its.moveTo(40);
      its.timer.close();
      seen.r1 = task.runs.get();
      seen.r2 = its.timer.size();
    }
  }

  @JCStressTest
  @Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "completed once")
  @Outcome(expect = Expect.FORBIDDEN, desc = "lost, twice or stuck")
  @State
  public static class ExpiryBesideEvent {
    final Scenarios its = new Scenarios();
    final Scenarios.Operation operation = new Scenarios.Operation(2);

    public ExpiryBesideEvent() {
      Scenarios.Operation second = new Scenarios.Operation(2);
      operation.then = second.then = () -> its.purgatory.checkAndComplete(Scenarios.KEY);
      its.register(operation);
      its.register(second);
    }

    @Actor
    public void moves() {
      its.moveTo(2);
    }

    @Actor
    public void event() {
      its.event(operation);
    }

    @Arbiter
    public void after(II_Result seen) {
      its.timer.close();
      seen.r1 = operation.completions.get();
      seen.r2 = its.purgatory.numDelayed();
    }
  }
}
