package tools;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;

/** Kafka's purgatory as a data structure: what one may call, and what must hold at rest. */
@Param(name = "id", gen = IntGen.class, conf = "0:2")
public class LincheckTest {
  private final Scenarios its = new Scenarios();
  private final Scenarios.Operation[] operations = {its(), its(), its()};
  private final boolean[] registered = new boolean[3];

  private Scenarios.Operation its() {
    Scenarios.Operation operation = new Scenarios.Operation(1000);
    operation.then = () -> its.purgatory.checkAndComplete(Scenarios.KEY);
    return operation;
  }

  @Operation
  public void register(@Param(name = "id") int id) {
    synchronized (registered) {
      if (registered[id]) return;
      registered[id] = true;
    }
    its.register(operations[id]);
  }

  @Operation
  public void event(@Param(name = "id") int id) {
    its.event(operations[id]);
  }

  @Operation
  public void force(@Param(name = "id") int id) {
    operations[id].forceComplete();
  }

  @Validate
  public void atRest() {
    int waiting = 0;
    for (int id = 0; id < 3; id++) {
      Scenarios.Operation operation = operations[id];
      int completions = operation.completions.get();
      Scenarios.require(completions < 2, "completed twice");
      if (registered[id] && operation.ready) Scenarios.require(completions == 1, "an event is lost");
      if (registered[id] && completions == 0) waiting++;
    }
    Scenarios.require(its.purgatory.numDelayed() == waiting, "the timer holds what is completed");
  }

  public static void main(String[] arguments) {
    try {
      new ModelCheckingOptions()
          .loopBound(2000) // a purgatory makes 512 lists
          .actorsBefore(1)
          .actorsPerThread(2)
          .actorsAfter(1)
          .invocationsPerIteration(200)
          .minimizeFailedScenario(false)
          .check(LincheckTest.class);
    } catch (AssertionError found) {
      System.out.println("found: " + found.getMessage());
    }
  }
}
