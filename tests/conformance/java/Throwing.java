// The example's adapter, but each force ends with an exception, for the kit's tests.

import java.util.List;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;

public final class Throwing extends Factory {
  @Override
  public PurgatoryUnderTest<?> purgatory(boolean virtual, long nowNs) {
    return throwing(new ToyAdapter().purgatory(virtual, nowNs));
  }

  private static <O> PurgatoryUnderTest<O> throwing(PurgatoryUnderTest<O> toy) {
    return new PurgatoryUnderTest<O>() {
      @Override
      public O operation(OperationHooks hooks, long delayNs) throws Exception {
        return toy.operation(hooks, delayNs);
      }

      @Override
      public boolean tryCompleteElseWatch(O operation, List<String> keys) throws Exception {
        return toy.tryCompleteElseWatch(operation, keys);
      }

      @Override
      public int checkAndComplete(String key) throws Exception {
        return toy.checkAndComplete(key);
      }

      @Override
      public boolean forceComplete(O operation) {
        throw new IllegalStateException("not registered");
      }

      @Override
      public void settle() throws Exception {
        toy.settle();
      }

      @Override
      public void close() throws Exception {
        toy.close();
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    Kit.run(new Promises("throwing", "locked").can("purgatory", "real-time", "force"), new Throwing(), arguments);
  }
}
