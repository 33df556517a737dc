package purgatorio;

import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import purgatorio.kit.TimerUnderTest;

/** java.util.Timer. Its delays are milliseconds: the plan holds no other. */
final class JdkTimer extends TimerUnderTest {
    private final Timer timer = new Timer("timer", true);

    private final boolean restarts;

    JdkTimer(Map options) {
        restarts = "restart".equals(options.get("catch_up"));
    }

    private static final class Task extends TimerTask {
        private final Runnable task;

        Task(Runnable task) {
            this.task = task;
        }

        public void run() {
            task.run();
        }
    }

    public Object add(Runnable task, long delayNs) {
        Task wrapped = new Task(task);
        timer.schedule(wrapped, delayNs / 1000000L);
        return wrapped;
    }

    public Object fixedRate(Runnable task, long firstNs, long periodNs) {
        Task wrapped = new Task(task);
        if (restarts) {
            timer.schedule(wrapped, firstNs / 1000000L, periodNs / 1000000L);
        } else {
            timer.scheduleAtFixedRate(wrapped, firstNs / 1000000L, periodNs / 1000000L);
        }
        return wrapped;
    }

    public Object fixedDelay(Runnable task, long firstNs, long periodNs) {
        throw new IllegalStateException("not declared: its delay counts from the start of a run");
    }

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(((TimerTask) handle).cancel());
    }

    public void close() {
        timer.cancel();
    }
}
