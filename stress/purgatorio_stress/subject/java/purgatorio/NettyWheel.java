package purgatorio;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/** Netty's HashedWheelTimer; its tasks run on its one worker thread. */
final class NettyWheel implements TimerUnderTest {
    private final HashedWheelTimer wheel;

    NettyWheel(long tickNs, int wheelSize, long maxPending, ThreadFactory threads) {
        wheel = new HashedWheelTimer(threads, tickNs, TimeUnit.NANOSECONDS, wheelSize, true, maxPending);
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

    public boolean cancel(Object handle) {
        return ((Timeout) handle).cancel();
    }

    public long pending() {
        return wheel.pendingTimeouts();
    }

    public void stop() {
        wheel.stop();
    }
}
