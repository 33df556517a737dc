package purgatorio;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.sparkproject.jetty.util.thread.ScheduledExecutorScheduler;
import org.sparkproject.jetty.util.thread.Scheduler;
import org.sparkproject.jetty.util.thread.TimerScheduler;
import purgatorio.kit.TimerUnderTest;

/**
 * Jetty's schedulers, as Spark shades them: with `jdk_timer` 1 the TimerScheduler on java.util.Timer, which is given whole
 * milliseconds by the plan, else the ScheduledExecutorScheduler.
 */
final class JettyScheduler extends TimerUnderTest {
    private final Scheduler scheduler;

    JettyScheduler(Map options) throws Exception {
        boolean onTimer = Timers.number(options, "jdk_timer") == 1;
        scheduler = onTimer
                ? (Scheduler) new TimerScheduler("scheduler", true)
                : (Scheduler) new ScheduledExecutorScheduler("scheduler", true);
        scheduler.start();
    }

    public Object add(Runnable task, long delayNs) {
        return scheduler.schedule(task, delayNs, TimeUnit.NANOSECONDS);
    }

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(((Scheduler.Task) handle).cancel());
    }

    public void close() {
        try {
            scheduler.stop();
        } catch (Exception ignored) {
            // The process ends in any case.
        }
    }
}
