import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import kafka.server.DelayedOperationPurgatory;
import kafka.utils.ShutdownableThread;

/** How a purgatory of Kafka 0.9 is made, which makes its own timer and always has a reaper. */
final class Made {
  private Made() {}

  static DelayedOperationPurgatory<Base> purgatory(BiConsumer<Object, Runnable> hook, int interval, boolean reaping)
      throws ReflectiveOperationException {
    DelayedOperationPurgatory<Base> made = new DelayedOperationPurgatory<>("test", 0, interval);
    if (!reaping) {
      ShutdownableThread reaper = (ShutdownableThread) KafkaTime.field(made, "expirationReaper");
      reaper.initiateShutdown();
      reaper.interrupt();
    }
    ExecutorService tasks = (ExecutorService) KafkaTime.field(made, "executor");
    KafkaTime.found(made, "timeoutTimer").set(made, new HookedTimer(tasks, hook, reaping));
    return made;
  }

  /** A turn of the reaper. */
  static void turn(DelayedOperationPurgatory<Base> purgatory) throws ReflectiveOperationException {
    ((ShutdownableThread) KafkaTime.field(purgatory, "expirationReaper")).doWork();
  }
}
