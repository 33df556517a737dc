package purgatorio;

import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import purgatorio.kit.TimerUnderTest;

/** java.util.Timer. Its delays are milliseconds: the plan holds no other. */
final class JdkTimer implements TimerUnderTest {
    private final Timer timer = new Timer("timer", true);

    JdkTimer(Map options) {
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

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(((TimerTask) handle).cancel());
    }

    public Long size() {
        return null;
    }

    public void close() {
        timer.cancel();
    }
}
