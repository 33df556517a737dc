package purgatorio;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * The workloads U1, U2 and U4 of `purgatorio bench timer` on timers of the JVM.
 *
 * Arguments: a file of big-endian longs (size, churns, then the delays in ms, the indices and delays of the churn, the
 * order of the last cancels) and how often to add each. On standard input one name of a timer a line; for each a line
 * comes back: nanoseconds of CPU time for add, churn and cancel, of the calling thread and the timer's own together.
 */
public final class TimerBench {
    /** Added to every delay: the clock is the real one, and nothing is to fire while this runs. */
    private static final long FAR_MS = 36000000L;

    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    private static final class Nothing implements Runnable {
        public void run() {
            // Never comes to this.
        }
    }

    private static final class Threads implements ThreadFactory {
        private Thread last;

        public Thread newThread(Runnable work) {
            last = new Thread(work, "timer");
            last.setDaemon(true);
            return last;
        }
    }

    private interface Timer {
        Object add(long delayNs);

        void cancel(Object handle);

        void stop();
    }

    private static final class Wheel implements Timer {
        private final HashedWheelTimer wheel;
        private final io.netty.util.TimerTask task = new WheelTask();

        Wheel(ThreadFactory threads) {
            wheel = new HashedWheelTimer(threads, 1, TimeUnit.MILLISECONDS, 512);
            wheel.start();
        }

        public Object add(long delayNs) {
            return wheel.newTimeout(task, delayNs, TimeUnit.NANOSECONDS);
        }

        public void cancel(Object handle) {
            ((Timeout) handle).cancel();
        }

        public void stop() {
            wheel.stop();
        }
    }

    private static final class WheelTask implements io.netty.util.TimerTask {
        public void run(Timeout timeout) {
            // Never comes to this.
        }
    }

    private static final class Executor implements Timer {
        private final ScheduledThreadPoolExecutor pool;
        private final Runnable task = new Nothing();

        Executor(boolean remove, ThreadFactory threads) {
            pool = new ScheduledThreadPoolExecutor(1, threads);
            pool.setRemoveOnCancelPolicy(remove);
        }

        public Object add(long delayNs) {
            return pool.schedule(task, delayNs, TimeUnit.NANOSECONDS);
        }

        public void cancel(Object handle) {
            ((ScheduledFuture) handle).cancel(false);
        }

        public void stop() {
            pool.shutdownNow();
        }
    }

    private static final class Kafka implements Timer {
        private final KafkaWheel wheel = new KafkaWheel();

        public Object add(long delayNs) {
            // The far time is for timers that run; this one is not driven, and its levels should be those of the delays.
            return wheel.add(delayNs / 1000000L - FAR_MS);
        }

        public void cancel(Object handle) {
            wheel.cancel(handle);
        }

        public void stop() {
            if (wheel.size() != 0) {
                throw new IllegalStateException(wheel.size() + " left");
            }
        }
    }

    private final int size;
    private final long[] delays;
    private final int[] churned;
    private final long[] newDelays;
    private final int[] order;
    private final int copies;

    private TimerBench(DataInputStream in, int copies) throws Exception {
        this.copies = copies;
        size = (int) in.readLong();
        int churns = (int) in.readLong();
        delays = longs(in, size);
        churned = ints(in, churns);
        newDelays = longs(in, churns);
        order = ints(in, size);
    }

    private static long[] longs(DataInputStream in, int count) throws Exception {
        long[] read = new long[count];
        for (int index = 0; index < count; index++) {
            read[index] = (in.readLong() + FAR_MS) * 1000000L;
        }
        return read;
    }

    private static int[] ints(DataInputStream in, int count) throws Exception {
        int[] read = new int[count];
        for (int index = 0; index < count; index++) {
            read[index] = (int) in.readLong();
        }
        return read;
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream file = new DataInputStream(new BufferedInputStream(new FileInputStream(arguments[0]), 65536));
        TimerBench bench = new TimerBench(file, Integer.parseInt(arguments[1]));
        file.close();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String name = in.readLine(); name != null; name = in.readLine()) {
            System.out.println(bench.play(name));
            System.out.flush();
        }
    }

    private static Timer timer(String name, Threads threads) {
        if ("netty".equals(name)) {
            return new Wheel(threads);
        }
        if ("kafka".equals(name)) {
            return new Kafka();
        }
        return new Executor("stpe-remove".equals(name), threads);
    }

    private String play(String name) throws Exception {
        long[] spent = new long[3];
        for (int copy = 0; copy < copies; copy++) {
            Threads threads = new Threads();
            Timer timer = timer(name, threads);
            Object[] handles = new Object[size];
            timer.cancel(timer.add(FAR_MS * 1000000L));
            long start = cpu(threads);
            for (int index = 0; index < size; index++) {
                handles[index] = timer.add(delays[index]);
            }
            settle(size);
            long added = cpu(threads);
            spent[0] += added - start;
            for (int index = 0; index < churned.length; index++) {
                int slot = churned[index];
                timer.cancel(handles[slot]);
                handles[slot] = timer.add(newDelays[index]);
            }
            settle(churned.length);
            long churnEnd = cpu(threads);
            spent[1] += churnEnd - added;
            for (int index = 0; index < size; index++) {
                timer.cancel(handles[order[index]]);
                handles[order[index]] = null;
            }
            settle(size);
            spent[2] += cpu(threads) - churnEnd;
            timer.stop();
        }
        return spent[0] + " " + spent[1] + " " + spent[2];
    }

    private static long cpu(Threads threads) {
        long own = CPU.getCurrentThreadCpuTime();
        long other = threads.last == null ? 0 : CPU.getThreadCpuTime(threads.last.getId());
        return own + Math.max(0, other);
    }

    /** Netty's worker links and unlinks what the caller queued, at most 100,000 a tick: let it come to the end. */
    private static void settle(int operations) throws InterruptedException {
        Thread.sleep(10 + operations / 20000);
    }
}
