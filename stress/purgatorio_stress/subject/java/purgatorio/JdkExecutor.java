package purgatorio;

import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The JDK's ScheduledThreadPoolExecutor with `pool` threads. */
final class JdkExecutor implements TimerUnderTest {
    private final ScheduledThreadPoolExecutor executor;

    JdkExecutor(Map options) {
        executor = new ScheduledThreadPoolExecutor((int) Driver.number(options, "pool"), new NamedThreads("executor"));
    }

    public Object add(Runnable task, long delayNs) {
        return executor.schedule(task, delayNs, TimeUnit.NANOSECONDS);
    }

    public boolean cancel(Object handle) {
        return ((Future) handle).cancel(false);
    }

    public long pending() {
        return EventLog.NONE;
    }

    public void stop() {
        executor.shutdownNow();
    }
}
