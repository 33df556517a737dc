package purgatorio;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import purgatorio.kit.TimerUnderTest;

/** Netty's HashedWheelTimer; its tasks run on its one worker thread. */
final class NettyWheel implements TimerUnderTest {
    private final HashedWheelTimer wheel;

    NettyWheel(Map options) {
        wheel = new HashedWheelTimer(new NamedThreads("wheel"), Driver.number(options, "tick_ns"),
                TimeUnit.NANOSECONDS, (int) Driver.number(options, "wheel_size"), true,
                Driver.number(options, "max_pending"));
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

    public void close() {
        wheel.stop();
    }
}
