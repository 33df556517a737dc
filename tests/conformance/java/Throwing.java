// The example's adapter, but each force ends with an exception, for the kit's tests.

import java.lang.reflect.Proxy;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;
import purgatorio.kit.TimerUnderTest;

public final class Throwing implements Factory {
  @Override
  public PurgatoryUnderTest<?> purgatory(boolean virtual, long nowNs) {
    PurgatoryUnderTest<?> toy = new ToyAdapter().purgatory(virtual, nowNs);
    Class<?>[] types = {PurgatoryUnderTest.class};
    return (PurgatoryUnderTest<?>) Proxy.newProxyInstance(Throwing.class.getClassLoader(), types, (proxy, method, its) -> {
      if (method.getName().equals("forceComplete")) {
        throw new IllegalStateException("not registered");
      }
      return method.invoke(toy, its);
    });
  }

  @Override
  public TimerUnderTest<?> timer(boolean virtual, long nowNs) {
    throw new UnsupportedOperationException();
  }

  public static void main(String[] arguments) throws Exception {
    Kit.run(new Promises("throwing", "locked").can("purgatory", "real-time", "force"), new Throwing(), arguments);
  }
}
