package purgatorio;

import java.io.BufferedReader;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import purgatorio.kit.Json;
import purgatorio.kit.OperationHooks;
import purgatorio.kit.TimerUnderTest;
import purgatorio.kit.TraceRecorder;

/**
 * Runs a plan of timer operations, given as JSON lines on standard input, and prints what happened as JSON lines.
 *
 * In:  start, then add and cancel in any number, then go. Out: ready, then events in the form of the trace format, in
 * their order, then done. When standard input ends the process ends, so that it never outlives its parent. Everything is recorded at the timer's boundary; times are System.nanoTime().
 */
public final class Driver {
    private static final long GAUGE_EVERY_NS = 5000000L;

    private static final class Step {
        boolean cancel;
        long atNs;
        int slot;
        String id;
        long delayNs;
    }

    private final PrintStream out;
    private TraceRecorder recorder;
    private TimerUnderTest timer;
    private int timers;
    private AtomicReferenceArray handles;
    private AtomicIntegerArray settled;
    private final AtomicLong open = new AtomicLong();
    private final AtomicLong skipped = new AtomicLong();
    private long startT;
    private long giveUpT;

    private Driver(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        try {
            new Driver(out).run(in);
            out.flush();
            Runtime.getRuntime().halt(0);
        } catch (Throwable problem) {
            problem.printStackTrace();
            Runtime.getRuntime().halt(3);
        }
    }

    static long number(Map fields, String name) {
        Object value = fields.get(name);
        if (!(value instanceof Long)) {
            throw new IllegalArgumentException(name + " is missing or no integer");
        }
        return ((Long) value).longValue();
    }

    private void run(BufferedReader in) throws Exception {
        Map start = Json.read(in.readLine());
        int threads = (int) number(start, "threads");
        timers = (int) number(start, "timers");
        handles = new AtomicReferenceArray(timers);
        settled = new AtomicIntegerArray(timers);
        List[] plans = new List[threads];
        for (int index = 0; index < threads; index++) {
            plans[index] = new ArrayList();
        }
        readPlan(in, plans);
        dieWithParent(in);
        timer = adapter(start);
        WallClock wall = new WallClock();
        Oversleep control = new Oversleep();
        control.start();
        say("{\"kind\":\"ready\",\"java\":\"" + System.getProperty("java.version") + "\"}\n");
        recorder = new TraceRecorder(new Kept(out), null, null, TraceRecorder.CAPACITY);
        startT = System.nanoTime() + 20000000L;
        giveUpT = startT + number(start, "give_up_ns");
        Thread[] running = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            String name = "caller-" + index;
            running[index] = new Thread(new Caller(plans[index]), name);
        }
        for (int index = 0; index < threads; index++) {
            running[index].start();
        }
        watch(running, wall);
        probe(timers - 2);
        probe(timers - 1);
        if (open.get() == 0) {
            recorder.quiesce(null, timer.size());
        }
        timer.close();
        recorder.close();
        say("{\"kind\":\"done\",\"events\":" + recorder.events() + ",\"dropped\":" + recorder.dropped() + ",\"skipped\":" + skipped.get()
                + ",\"open\":" + open.get() + ",\"oversleep_ns\":" + control.worstNs() + ",\"wall_shift_ns\":"
                + wall.shiftNs() + ",\"oversleeps_ns\":" + control.oversleepsNs() + "}\n");
    }

    /** The adapter of this name, made with the fields of the start message as its options. */
    private static TimerUnderTest adapter(Map start) throws Exception {
        Class named = Class.forName("purgatorio." + start.get("adapter"));
        return (TimerUnderTest) named.getDeclaredConstructor(new Class[] {Map.class}).newInstance(new Object[] {start});
    }

    private void readPlan(BufferedReader in, List[] plans) throws Exception {
        while (true) {
            String line = in.readLine();
            if (line == null) {
                throw new IllegalArgumentException("the plan ends without go");
            }
            Map fields = Json.read(line);
            String kind = (String) fields.get("m");
            if ("go".equals(kind)) {
                return;
            }
            Step step = new Step();
            step.cancel = "cancel".equals(kind);
            if (!step.cancel && !"add".equals(kind)) {
                throw new IllegalArgumentException("unknown message " + kind);
            }
            step.atNs = number(fields, "at_ns");
            step.slot = (int) number(fields, "slot");
            step.id = (String) fields.get("id");
            step.delayNs = step.cancel ? 0 : number(fields, "delay_ns");
            plans[(int) number(fields, "thread")].add(step);
        }
    }

    private static final class ParentWatch implements Runnable {
        private final BufferedReader in;

        ParentWatch(BufferedReader in) {
            this.in = in;
        }

        public void run() {
            try {
                while (in.readLine() != null) {
                    // The plan has ended: nothing that may come now means anything.
                }
            } catch (IOException gone) {
                // The same as the end of the stream.
            }
            Runtime.getRuntime().halt(4);
        }
    }

    private static void dieWithParent(BufferedReader in) {
        Thread watch = new Thread(new ParentWatch(in), "parent-watch");
        watch.setDaemon(true);
        watch.start();
    }

    /** One calling thread: waits for the time of each step and takes it. */
    private final class Caller implements Runnable {
        private final List plan;

        Caller(List plan) {
            this.plan = plan;
        }

        public void run() {
            for (int index = 0; index < plan.size(); index++) {
                Step step = (Step) plan.get(index);
                long left = startT + step.atNs - System.nanoTime();
                while (left > 0) {
                    LockSupport.parkNanos(left);
                    left = startT + step.atNs - System.nanoTime();
                }
                if (step.cancel) {
                    cancel(step.slot, step.id);
                } else {
                    add(step.slot, step.id, step.delayNs);
                }
            }
        }
    }

    /** A task that records its own run, and counts its timer as settled. */
    private final class Fire implements Runnable {
        private final int slot;
        private final String id;

        Fire(int slot, String id) {
            this.slot = slot;
            this.id = id;
        }

        public void run() {
            recorder.ret("timer_fire", recorder.call("timer_fire", id, null, null), id, null, null, null);
            settle(slot);
        }
    }

    private void settle(int slot) {
        if (settled.compareAndSet(slot, 0, 1)) {
            open.decrementAndGet();
        }
    }

    private void add(int slot, String id, long delayNs) {
        open.incrementAndGet();
        Fire task = new Fire(slot, id);
        long c = recorder.call("timer_add", id, null, Long.valueOf(delayNs));
        long calledT = recorder.calledT();
        try {
            Object handle = timer.add(task, delayNs);
            recorder.ret("timer_add", c, id, null, null, Long.valueOf(OperationHooks.deadline(calledT, delayNs)));
            handles.set(slot, handle);
        } catch (Throwable refused) {
            recorder.ret("timer_add", c, id, null, refused, null);
            settle(slot);
        }
    }

    private void cancel(int slot, String id) {
        Object handle = handles.get(slot);
        if (handle == null) {
            // The thread that adds it is late, or the add was refused: there is nothing to cancel.
            skipped.incrementAndGet();
            return;
        }
        long c = recorder.call("timer_cancel", id, null, null);
        try {
            boolean won = timer.cancel(handle).booleanValue();
            recorder.ret("timer_cancel", c, id, Long.valueOf(won ? 1 : 0), null, null);
            if (won) {
                settle(slot);
            }
        } catch (Throwable problem) {
            recorder.ret("timer_cancel", c, id, null, problem, null);
        }
    }

    /**
     * Take readings until every caller has ended and every timer has fired or was cancelled, or the time
     * that the plan can need at most is over: then a task is lost, and the trace shows it.
     */
    private void watch(Thread[] running, WallClock wall) throws Exception {
        boolean counts = timer.size() != null;
        while ((alive(running) || open.get() > 0) && System.nanoTime() < giveUpT) {
            if (counts) {
                long c = recorder.call("gauge", null, null, null);
                recorder.retGauge(c, null, timer.size());
            }
            wall.look();
            LockSupport.parkNanos(GAUGE_EVERY_NS);
        }
    }

    private static boolean alive(Thread[] running) {
        for (int index = 0; index < running.length; index++) {
            if (running[index].isAlive()) {
                return true;
            }
        }
        return false;
    }

    /**
     * A timer of delay zero, waited for. Netty takes a cancelled timeout out of its count at the start of its next
     * tick; when a second probe, added after the first has fired, fires too, a whole tick has passed since all else.
     */
    private void probe(int slot) {
        add(slot, "probe-" + slot, 0);
        while (settled.get(slot) == 0 && System.nanoTime() < giveUpT) {
            LockSupport.parkNanos(GAUGE_EVERY_NS);
        }
    }

    private void say(String lines) {
        out.print(lines);
        out.flush();
    }

    /** Standard output, which is not over when the recorder is. */
    private static final class Kept extends FilterOutputStream {
        Kept(OutputStream out) {
            super(out);
        }

        public void write(byte[] bytes, int from, int count) throws IOException {
            out.write(bytes, from, count);
        }

        public void close() throws IOException {
            flush();
        }
    }
}
