// Describes a purgatory whose adapter cannot reach its time-outs, for the kit's tests.

import purgatorio.kit.Kit;
import purgatorio.kit.Promises;

public final class Lacking {
  public static void main(String[] arguments) throws Exception {
    Promises promises = new Promises("lacking", "locked").can("purgatory", "real-time");
    Kit.run(promises.lacks("failing", "timer_add", "timer_cancel", "timer_fire"), null, arguments);
  }
}
