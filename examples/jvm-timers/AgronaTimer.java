import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.agrona.DeadlineTimerWheel;
import purgatorio.kit.TimerUnderTest;

/**
 * org.agrona:agrona. The wheel is for one thread, so each call is made under one lock. "Timers are cancelled by id", and one
 * that was cancelled does not expire.
 */
public final class AgronaTimer implements TimerUnderTest<Long> {
  private static final long TICK_NS = 1L << 20;
  private final Map<Long, Runnable> tasks = new ConcurrentHashMap<>();
  private final DeadlineTimerWheel wheel =
      new DeadlineTimerWheel(TimeUnit.NANOSECONDS, System.nanoTime(), TICK_NS, 512);
  private volatile boolean over;

  private AgronaTimer() {
    Thread poller = new Thread(this::poll, "poller");
    poller.setDaemon(true);
    poller.start();
  }

  private void poll() {
    while (!over) {
      Long[] due = new Long[1];
      synchronized (wheel) {
        wheel.poll(System.nanoTime(), (unit, now, id) -> (due[0] = id) != null, 1);
      }
      Runnable task = due[0] == null ? null : tasks.remove(due[0]);
      if (task != null) {
        task.run();
      } else {
        Thread.yield();
      }
    }
  }

  @Override
  public Long add(Runnable task, long delayNs) {
    synchronized (wheel) {
      long id = wheel.scheduleTimer(System.nanoTime() + delayNs);
      tasks.put(id, task);
      return id;
    }
  }

  @Override
  public Boolean cancel(Long id) {
    synchronized (wheel) {
      return wheel.cancelTimer(id) && tasks.remove(id) != null;
    }
  }

  @Override
  public Long size() {
    synchronized (wheel) {
      return wheel.timerCount();
    }
  }

  @Override
  public void close() {
    over = true;
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("agrona", "timer", DeadlineTimerWheel.class)
            .tickNs(TICK_NS)
            .wheelSize(512)
            .earlyNs(0)
            .lateNs(TICK_NS)
            .can("gauge"),
        AgronaTimer::new,
        arguments);
  }
}
