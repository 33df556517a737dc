import java.time.Duration;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Cancellable;
import purgatorio.kit.TimerUnderTest;

/**
 * org.apache.pekko:pekko-actor. "Schedules a Runnable to be run once with a delay, i.e. a time period that has to pass before
 * the runnable is executed". "Returns true if the cancellation was successful" (Cancellable.cancel).
 */
public final class PekkoTimer extends TimerUnderTest<Cancellable> {
  private final ActorSystem system = ActorSystem.create("timers");

  @Override
  public Cancellable add(Runnable task, long delayNs) {
    return system.scheduler().scheduleOnce(Duration.ofNanos(delayNs), task, system.dispatcher());
  }

  @Override
  public Boolean cancel(Cancellable task) {
    return task.cancel();
  }

  @Override
  public void close() {
    system.terminate();
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("pekko", "timer", ActorSystem.class)
            .earlyNs(0)
            .delaysNs(0, 86_400L * 1_000 * OneTimer.NS_IN_MS), // "Task scheduled with too long a delay" beyond its wheel
        PekkoTimer::new,
        arguments);
  }
}
