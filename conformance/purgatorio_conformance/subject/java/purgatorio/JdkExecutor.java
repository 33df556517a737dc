package purgatorio;

import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.TimerUnderTest;

/** The JDK's ScheduledThreadPoolExecutor with `pool` threads. */
final class JdkExecutor extends TimerUnderTest {
    private final ScheduledThreadPoolExecutor executor;

    JdkExecutor(Map options) {
        executor = new ScheduledThreadPoolExecutor((int) Timers.number(options, "pool"), new NamedThreads("executor"));
    }

    public Object add(Runnable task, long delayNs) {
        return executor.schedule(task, delayNs, TimeUnit.NANOSECONDS);
    }

    public Object fixedRate(Runnable task, long firstNs, long periodNs) {
        return executor.scheduleAtFixedRate(task, firstNs, periodNs, TimeUnit.NANOSECONDS);
    }

    public Object fixedDelay(Runnable task, long firstNs, long periodNs) {
        return executor.scheduleWithFixedDelay(task, firstNs, periodNs, TimeUnit.NANOSECONDS);
    }

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(((Future) handle).cancel(false));
    }

    public void close() {
        executor.shutdownNow();
    }
}
