// The adapter of a class with a predicate and a callback. See docs/jvm-kit.md.

import java.util.List;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;

public final class RequestsAdapter extends Factory {
  private static final class Operation extends Requests.Request {
    final OperationHooks hooks;

    Operation(OperationHooks hooks, long delayNs) {
      super(() -> true, ready -> hooks.onComplete(), delayNs); // `test` below takes the place of the predicate
      this.hooks = hooks;
    }
  }

  /** The steps, told to the hooks. */
  private static final class Told extends Requests {
    private static OperationHooks hooks(Request request) {
      return ((Operation) request).hooks;
    }

    @Override
    boolean test(Request request) {
      return hooks(request).tryComplete(() -> answer(request, true));
    }

    @Override
    boolean answer(Request request, boolean ready) {
      return hooks(request).forceComplete(() -> super.answer(request, ready));
    }

    @Override
    void arm(Request request) {
      hooks(request).timerAdd(() -> super.arm(request));
    }

    @Override
    void disarm(Request request) {
      hooks(request).timerCancel(() -> super.disarm(request));
    }

    @Override
    boolean expire(Request request) {
      hooks(request).timerFire(() -> {
        if (super.expire(request)) {
          hooks(request).onExpiration();
        }
      });
      return false;
    }
  }

  @Override
  public PurgatoryUnderTest<?> purgatory(boolean virtual, long nowNs) {
    Told requests = new Told();
    return new PurgatoryUnderTest<Operation>() {
      @Override
      public Operation operation(OperationHooks hooks, long delayNs) {
        return new Operation(hooks, delayNs);
      }

      @Override
      public boolean tryCompleteElseWatch(Operation operation, List<String> keys) {
        return requests.await(operation, keys);
      }

      @Override
      public int checkAndComplete(String key) {
        return requests.arrived(key);
      }

      @Override
      public boolean forceComplete(Operation operation) {
        return requests.answer(operation, false);
      }

      @Override
      public Long watched() {
        return requests.waiting.values().stream().mapToLong(List::size).sum();
      }

      @Override
      public Long delayed() {
        return (long) requests.timer.getQueue().size();
      }

      @Override
      public Long keys() {
        return (long) requests.waiting.size();
      }

      @Override
      public void settle() throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(100);
      }

      @Override
      public void close() {
        requests.close();
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    Promises promises = new Promises("requests-jvm", "lock-free").tickNs(1).earlyNs(0).lateNs(0).purgeInterval(0);
    promises.lanes(4).can("purgatory", "real-time", "force", "gauge");
    Kit.run(promises, new RequestsAdapter(), arguments);
  }
}
