import java.util.function.Supplier;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.Promises;
import purgatorio.kit.TimerUnderTest;

/** The main method of an adapter that has a timer, by the machine's clock, and nothing else. */
final class OneTimer {
  static final long NS_IN_MS = 1_000_000;

  private OneTimer() {}

  /** What every one of them can do. */
  static Promises promises(String name, String profile, Class<?> of) {
    Package made = of.getPackage();
    String version = made == null ? null : made.getImplementationVersion();
    return new Promises(name, profile).version(version == null ? "" : version).lanes(4).can("timer", "real-time", "cancel");
  }

  static void run(Promises promises, Supplier<TimerUnderTest<?>> make, String[] arguments) throws Exception {
    Factory factory =
        new Factory() {

          @Override
          public TimerUnderTest<?> timer(boolean virtual, long nowNs) {
            return make.get();
          }
        };
    Kit.run(promises, factory, arguments);
  }
}
