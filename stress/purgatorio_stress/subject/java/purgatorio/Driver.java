package purgatorio;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs a plan of timer operations, given as JSON lines on standard input, and prints what happened as JSON lines.
 *
 * In:  start, then add and cancel in any number, then go. Out: ready, then events in the form of the trace format (in
 * order within a thread only), then done. When standard input ends the process ends, so that it never outlives its
 * parent. Everything is recorded at the timer's boundary; times are System.nanoTime().
 */
public final class Driver {
    private static final long PRINT_EVERY_NS = 100000000L;
    private static final long GAUGE_EVERY_NS = 5000000L;

    private static final class Step {
        boolean cancel;
        long atNs;
        int slot;
        String id;
        long delayNs;
    }

    private final EventLog log = new EventLog();
    private final List buffers = new ArrayList();
    private final ThreadLocal ownBuffer = new ThreadLocal();
    private final PrintStream out;
    private TimerUnderTest timer;
    private EventLog.Buffer mainBuffer;
    private int timers;
    private AtomicReferenceArray handles;
    private AtomicIntegerArray settled;
    private final AtomicLong open = new AtomicLong();
    private final AtomicLong skipped = new AtomicLong();
    private long printed;
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

    /** A buffer for a thread of this name; a second one of the same name gets a number, so that each has its lane. */
    private EventLog.Buffer buffer(String thread, int capacity) {
        synchronized (buffers) {
            EventLog.Buffer buffer = log.new Buffer(lane(thread), capacity);
            buffers.add(buffer);
            return buffer;
        }
    }

    private String lane(String thread) {
        String plain = thread.replaceAll("[^A-Za-z0-9._-]", "-");
        String name = plain;
        for (int count = 2; taken(name); count++) {
            name = plain + "_" + count;
        }
        return name;
    }

    private boolean taken(String name) {
        for (int index = 0; index < buffers.size(); index++) {
            if (((EventLog.Buffer) buffers.get(index)).thread().equals(name)) {
                return true;
            }
        }
        return false;
    }

    /** The buffer of the thread that a task runs on: the timer's own, or a caller's where the timer borrows it. */
    private EventLog.Buffer own() {
        EventLog.Buffer own = (EventLog.Buffer) ownBuffer.get();
        if (own == null) {
            own = buffer(Thread.currentThread().getName(), 2 * timers + 8);
            ownBuffer.set(own);
        }
        return own;
    }

    static long number(Map fields, String name) {
        Object value = fields.get(name);
        if (!(value instanceof Long)) {
            throw new IllegalArgumentException(name + " is missing or no integer");
        }
        return ((Long) value).longValue();
    }

    private void run(BufferedReader in) throws Exception {
        Map start = FlatJson.read(in.readLine());
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
        mainBuffer = buffer("main", 200000);
        ownBuffer.set(mainBuffer);
        timer = adapter(start);
        WallClock wall = new WallClock();
        Oversleep control = new Oversleep();
        control.start();
        say("{\"kind\":\"ready\",\"java\":\"" + System.getProperty("java.version") + "\"}\n");
        startT = System.nanoTime() + 20000000L;
        giveUpT = startT + number(start, "give_up_ns");
        Thread[] running = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            String name = "caller-" + index;
            // Its own calls, and every fire: a timer may run its tasks on the thread of a caller.
            EventLog.Buffer own = buffer(name, 2 * plans[index].size() + 2 * timers + 8);
            running[index] = new Thread(new Caller(plans[index], own), name);
        }
        for (int index = 0; index < threads; index++) {
            running[index].start();
        }
        watch(running, wall);
        probe(timers - 2);
        probe(timers - 1);
        if (open.get() == 0) {
            mainBuffer.at(EventLog.QUIESCE, timer.pending());
        }
        timer.stop();
        print();
        int dropped = 0;
        for (int index = 0; index < buffers.size(); index++) {
            dropped += ((EventLog.Buffer) buffers.get(index)).dropped();
        }
        say("{\"kind\":\"done\",\"events\":" + printed + ",\"dropped\":" + dropped + ",\"skipped\":" + skipped.get()
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
            Map fields = FlatJson.read(line);
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
            } catch (java.io.IOException gone) {
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
        private final EventLog.Buffer own;

        Caller(List plan, EventLog.Buffer own) {
            this.plan = plan;
            this.own = own;
        }

        public void run() {
            ownBuffer.set(own);
            for (int index = 0; index < plan.size(); index++) {
                Step step = (Step) plan.get(index);
                long left = startT + step.atNs - System.nanoTime();
                while (left > 0) {
                    LockSupport.parkNanos(left);
                    left = startT + step.atNs - System.nanoTime();
                }
                if (step.cancel) {
                    cancel(own, step.slot, step.id);
                } else {
                    add(own, step.slot, step.id, step.delayNs);
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
            EventLog.Buffer own = own();
            long c = own.call(EventLog.FIRE, id, EventLog.NONE);
            own.ret(EventLog.FIRE, id, c, EventLog.NONE, EventLog.NONE, null);
            settle(slot);
        }
    }

    private void settle(int slot) {
        if (settled.compareAndSet(slot, 0, 1)) {
            open.decrementAndGet();
        }
    }

    private void add(EventLog.Buffer own, int slot, String id, long delayNs) {
        open.incrementAndGet();
        Fire task = new Fire(slot, id);
        long c = own.call(EventLog.ADD, id, delayNs);
        long callT = c < 0 ? System.nanoTime() : own.lastTime();
        try {
            Object handle = timer.add(task, delayNs);
            own.ret(EventLog.ADD, id, c, deadline(callT, delayNs), EventLog.NONE, null);
            handles.set(slot, handle);
        } catch (Throwable refused) {
            own.ret(EventLog.ADD, id, c, EventLog.NONE, EventLog.NONE, refused.getClass().getSimpleName());
            settle(slot);
        }
    }

    /** A delay below zero is due at once; one beyond the clock's range is due at its end. */
    private static long deadline(long callT, long delayNs) {
        long wait = Math.max(0, delayNs);
        return callT > Long.MAX_VALUE - wait ? Long.MAX_VALUE : callT + wait;
    }

    private void cancel(EventLog.Buffer own, int slot, String id) {
        Object handle = handles.get(slot);
        if (handle == null) {
            // The thread that adds it is late, or the add was refused: there is nothing to cancel.
            skipped.incrementAndGet();
            return;
        }
        long c = own.call(EventLog.CANCEL, id, EventLog.NONE);
        try {
            boolean won = timer.cancel(handle);
            own.ret(EventLog.CANCEL, id, c, EventLog.NONE, won ? 1 : 0, null);
            if (won) {
                settle(slot);
            }
        } catch (Throwable problem) {
            own.ret(EventLog.CANCEL, id, c, EventLog.NONE, EventLog.NONE, problem.getClass().getSimpleName());
        }
    }

    /**
     * Take readings and print until every caller has ended and every timer has fired or was cancelled, or the time
     * that the plan can need at most is over: then a task is lost, and the trace shows it.
     */
    private void watch(Thread[] running, WallClock wall) {
        boolean counts = timer.pending() != EventLog.NONE;
        long nextPrintT = System.nanoTime() + PRINT_EVERY_NS;
        while ((alive(running) || open.get() > 0) && System.nanoTime() < giveUpT) {
            if (counts) {
                long c = mainBuffer.call(EventLog.GAUGE, null, EventLog.NONE);
                long reading = timer.pending();
                mainBuffer.ret(EventLog.GAUGE, null, c, EventLog.NONE, reading, null);
            }
            wall.look();
            LockSupport.parkNanos(GAUGE_EVERY_NS);
            if (System.nanoTime() >= nextPrintT) {
                print();
                nextPrintT += PRINT_EVERY_NS;
            }
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
        add(mainBuffer, slot, "probe-" + slot, 0);
        while (settled.get(slot) == 0 && System.nanoTime() < giveUpT) {
            LockSupport.parkNanos(GAUGE_EVERY_NS);
        }
    }

    private void print() {
        StringBuilder lines = new StringBuilder();
        synchronized (buffers) {
            for (int index = 0; index < buffers.size(); index++) {
                printed += ((EventLog.Buffer) buffers.get(index)).print(lines);
            }
        }
        say(lines.toString());
    }

    private void say(String lines) {
        out.print(lines);
        out.flush();
    }
}
