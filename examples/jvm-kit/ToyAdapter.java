// The whole adapter: one class for every path. See docs/jvm-kit.md.

import java.util.List;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;

public final class ToyAdapter extends Factory {
  private static final ToyPurgatory.Bug BUG = ToyPurgatory.Bug.valueOf(System.getProperty("bug", "NONE"));

  /** An operation whose callbacks are handed on to the kit. */
  private static final class Operation extends ToyPurgatory.Operation {
    private final OperationHooks hooks;

    Operation(OperationHooks hooks, long delayNs) {
      super(delayNs);
      this.hooks = hooks;
    }

    @Override
    boolean tryComplete() {
      return hooks.tryComplete(this::forceComplete);
    }

    @Override
    boolean forceComplete() {
      return hooks.forceComplete(super::forceComplete);
    }

    @Override
    void onComplete() {
      hooks.onComplete();
    }

    @Override
    void onExpiration() {
      hooks.onExpiration();
    }

    @Override
    void disarm() {
      hooks.timerCancel(super::disarm);
    }

    @Override
    void expire() {
      hooks.timerFire(super::expire);
    }
  }

  @Override
  public PurgatoryUnderTest<Operation> purgatory(boolean virtual, long nowNs) {
    ToyPurgatory toy =
        new ToyPurgatory(BUG) {
          @Override
          void arm(ToyPurgatory.Operation operation) {
            ((ToyAdapter.Operation) operation).hooks.timerAdd(() -> super.arm(operation));
          }
        };
    return new PurgatoryUnderTest<>() {
      @Override
      public Operation operation(OperationHooks hooks, long delayNs) {
        return new Operation(hooks, delayNs);
      }

      @Override
      public boolean tryCompleteElseWatch(Operation operation, List<String> keys) {
        return toy.tryCompleteElseWatch(operation, keys);
      }

      @Override
      public int checkAndComplete(String key) {
        return toy.checkAndComplete(key);
      }

      @Override
      public boolean forceComplete(Operation operation) {
        return operation.forceComplete();
      }

      @Override
      @SuppressWarnings("unchecked") // nothing else is registered here
      public List<Operation> cancelForKey(String key) {
        return (List<Operation>) (List<?>) toy.cancelForKey(key);
      }

      @Override
      public Long keys() {
        return toy.keys();
      }

      @Override
      public Long watched() {
        return toy.watched();
      }

      @Override
      public Long delayed() {
        return toy.delayed();
      }

      @Override
      public void settle() throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(100);
      }

      @Override
      public void close() {
        toy.close();
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    Promises promises =
        new Promises("toy-purgatory-jvm", "locked")
            .version("1")
            .tickNs(1)
            .earlyNs(0)
            .lateNs(0)
            .purgeInterval(0)
            .lanes(8)
            .can("purgatory", "real-time", "cancel-key", "force", "gauge");
    Kit.run(promises, new ToyAdapter(), arguments);
  }
}
