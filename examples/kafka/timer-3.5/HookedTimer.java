import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.common.utils.SystemTime;

/** The timer of Kafka 3.5 and later, told of each task that it is given. */
final class HookedTimer extends SystemTimer {
  private final BiConsumer<Object, Runnable> hook;

  HookedTimer(BiConsumer<Object, Runnable> hook) {
    super("test", 1, 20, new SystemTime().hiResClockMs());
    this.hook = hook;
  }

  @Override
  public void add(TimerTask task) {
    hook.accept(task, () -> super.add(task));
  }

  ExecutorService tasks() throws IllegalAccessException {
    return (ExecutorService) KafkaTime.field(this, "taskExecutor");
  }
}
