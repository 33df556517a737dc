package purgatorio;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.TimerUnderTest;

/** Netty's HashedWheelTimer; its tasks run on its one worker thread. */
final class NettyWheel extends TimerUnderTest {
    private final HashedWheelTimer wheel;

    NettyWheel(Map options) {
        wheel = new HashedWheelTimer(new NamedThreads("wheel"), Timers.number(options, "tick_ns"),
                TimeUnit.NANOSECONDS, (int) Timers.number(options, "wheel_size"), true,
                options.containsKey("max_pending") ? Timers.number(options, "max_pending") : 0L);
        wheel.start();
    }

    private static final class Task implements TimerTask {
        private final Runnable task;

        Task(Runnable task) {
            this.task = task;
        }

        public void run(Timeout timeout) {
            task.run();
        }
    }

    public Object add(Runnable task, long delayNs) {
        return wheel.newTimeout(new Task(task), delayNs, TimeUnit.NANOSECONDS);
    }

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(((Timeout) handle).cancel());
    }

    public Long size() {
        return Long.valueOf(wheel.pendingTimeouts());
    }

    public Object addAgain(Object handle, long delayNs) {
        throw new IllegalStateException("not declared");
    }

    public void advanceTo(long nowNs) {
        throw new IllegalStateException("not declared");
    }

    /**
     * Wait until the worker has taken the cancelled timeouts out of its count, which it does at the start of a tick: when
     * a second task, added after a first one has run, runs too, a whole tick has passed.
     */
    public void settle() throws InterruptedException {
        for (int turn = 0; turn < 2; turn++) {
            final CountDownLatch ran = new CountDownLatch(1);
            wheel.newTimeout(new Task(new Opens(ran)), 0, TimeUnit.NANOSECONDS);
            ran.await();
        }
    }

    private static final class Opens implements Runnable {
        private final CountDownLatch ran;

        Opens(CountDownLatch ran) {
            this.ran = ran;
        }

        public void run() {
            ran.countDown();
        }
    }

    public void close() {
        wheel.stop();
    }
}
