import java.util.function.BiConsumer;
import kafka.server.DelayedOperationPurgatory;

/** How a purgatory of Kafka 0.10 and 0.11 is made. */
final class Made {
  private Made() {}

  static DelayedOperationPurgatory<Base> purgatory(BiConsumer<Object, Runnable> hook, int interval, boolean reaping) {
    return new DelayedOperationPurgatory<>("test", new HookedTimer(hook), 0, interval, reaping);
  }

  /** A turn of the reaper. */
  static void turn(DelayedOperationPurgatory<Base> purgatory) {
    purgatory.advanceClock(0);
  }
}
