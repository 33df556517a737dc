package purgatorio;

import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.Factory;
import purgatorio.kit.Promises;
import purgatorio.kit.PurgatoryUnderTest;
import purgatorio.kit.Subject;
import purgatorio.kit.TimerUnderTest;

/** The JDK's periodic timers behind the subject protocol: `executor N` with so many threads, `timer`, or `timer-restart`. */
public final class PeriodicJdk {
    private PeriodicJdk() {}

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        String which = arguments[0];
        boolean executor = "executor".equals(which);
        boolean restarts = "timer-restart".equals(which);
        int pool = executor ? Integer.parseInt(arguments[1]) : 1;
        String name = executor ? "java.util.concurrent.ScheduledThreadPoolExecutor" : "java.util.Timer";
        Promises promises = new Promises(name, executor ? "jdk-scheduled-executor" : "timer");
        promises.version(System.getProperty("java.version")).tickNs(1000000L).earlyNs(executor ? 0 : 1000000L).lateNs(0);
        promises.can("timer", "real-time", "cancel", "fixed-rate").catchUp(restarts ? "restart" : "burst");
        if (executor) {
            promises.can("fixed-delay");
        } else {
            promises.unitNs(1000000L);
        }
        Subject.serve(promises, new Timers(pool, executor, restarts), System.in, System.out);
    }

    private static final class Timers implements Factory {
        private final int pool;
        private final boolean executor;
        private final boolean restarts;

        Timers(int pool, boolean executor, boolean restarts) {
            this.pool = pool;
            this.executor = executor;
            this.restarts = restarts;
        }

        public TimerUnderTest timer(boolean virtual, long nowNs) {
            return executor ? (TimerUnderTest) new Executor(pool) : (TimerUnderTest) new OfTimer(restarts);
        }

        public PurgatoryUnderTest purgatory(boolean virtual, long nowNs) {
            throw new IllegalStateException("a timer only");
        }
    }

    private static final class Executor implements TimerUnderTest.Periodic {
        private final ScheduledThreadPoolExecutor executor;

        Executor(int pool) {
            executor = new ScheduledThreadPoolExecutor(pool, new NamedThreads("executor"));
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

        public Long size() {
            return null;
        }

        public void close() {
            executor.shutdownNow();
        }
    }

    private static final class OfTimer implements TimerUnderTest.Periodic {
        private static final long MS = 1000000L;
        private final Timer timer = new Timer("timer", true);
        private final boolean restarts;

        OfTimer(boolean restarts) {
            this.restarts = restarts;
        }

        public Object add(Runnable task, long delayNs) {
            Run run = new Run(task);
            timer.schedule(run, delayNs / MS);
            return run;
        }

        public Object fixedRate(Runnable task, long firstNs, long periodNs) {
            Run run = new Run(task);
            if (restarts) {
                timer.schedule(run, firstNs / MS, periodNs / MS);
            } else {
                timer.scheduleAtFixedRate(run, firstNs / MS, periodNs / MS);
            }
            return run;
        }

        public Object fixedDelay(Runnable task, long firstNs, long periodNs) {
            throw new IllegalStateException("not declared: its delay counts from the start of a run");
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

    private static final class Run extends TimerTask {
        private final Runnable task;

        Run(Runnable task) {
            this.task = task;
        }

        public void run() {
            task.run();
        }
    }
}
