package purgatorio.kit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A purgatory, a timer, or both, behind purgatorio-subject/1.2: what {@code purgatorio verify --command} drives.
 *
 * <p>A thread for each lane makes the driver's calls; a thread that comes to a gate of the run says so and makes there
 * what calls it is told to, until it may go on. The process ends when standard input does.
 */
@SuppressWarnings({"cast", "unchecked", "rawtypes"}) // the compiler cannot infer the types of these casts
public final class Subject {
    /** Where a thread may be asked to stop, and what events tell of. */
    static final List<String> OF_OPERATIONS = Collections.unmodifiableList(Arrays.asList(new String[] {
        "try_complete", "force_complete", "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire"}));

    private static final List<String> OF_TASKS = Collections.singletonList("timer_fire");

    private final Promises promises;
    private final Factory factory;
    private final OutputStream out;
    private final List<String> reports;
    private final ThreadLocal<Long> under = new ThreadLocal<Long>();
    private final ThreadLocal<String> called = new ThreadLocal<String>();
    private final Map<String, Thread> owners = new HashMap<String, Thread>();
    private final AtomicLong holds = new AtomicLong();
    private final AtomicInteger unanswered = new AtomicInteger();
    private Run run;

    /**
     * The word to go on for threads that stand at gates. The first to wake waits for the last, turning, so that they run
     * at once and not one wake-up apart; but not for long, since a processor may be missing.
     */
    private static final class Onward {
        private static final long TOGETHER_NS = 2000000L;
        private final boolean fail;
        private final AtomicInteger missing;

        Onward(int threads, boolean fail) {
            this.missing = new AtomicInteger(threads);
            this.fail = fail;
        }

        void together() {
            long untilT = System.nanoTime() + TOGETHER_NS;
            missing.decrementAndGet();
            while (missing.get() > 0 && System.nanoTime() < untilT) {
                Thread.yield();
            }
        }
    }

    private Subject(Promises promises, Factory factory, OutputStream out) {
        this.promises = promises;
        this.factory = factory;
        this.out = out;
        this.reports = promises.knows("purgatory") ? promises.reported(OF_OPERATIONS) : OF_TASKS;
    }

    /** Answer the calls on {@code in} to its end. */
    public static void serve(Promises promises, Factory factory, InputStream in, OutputStream out)
            throws IOException, InterruptedException {
        Subject subject = new Subject(promises, factory, out);
        subject.readAll(new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)));
    }

    private void readAll(BufferedReader in) throws IOException, InterruptedException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> call = Json.read(line);
            String name = (String) call.get("m");
            if ("describe".equals(name)) {
                say("\"m\":\"description\",\"n\":" + number(call, "n") + "," + promises.description(reports));
            } else if ("start".equals(name)) {
                start(call);
            } else {
                run.take(name, call);
            }
        }
        // Calls that were read are answered, except a call that waits for the driver.
        for (int wait = 0; wait < 100 && unanswered.get() > 0; wait++) {
            Thread.sleep(10);
        }
    }

    /** A run may end in the midst of anything: its threads are let go, and say no more. */
    private void start(Map<String, Object> call) {
        if (run != null) {
            run.abandon();
        }
        String said = "";
        try {
            run = new Run(call);
        } catch (Throwable thrown) {
            said = error(thrown);
        }
        say("\"m\":\"answer\",\"n\":" + number(call, "n") + said);
    }

    private static String error(Throwable thrown) {
        if (!(thrown instanceof Gate.Failure)) {
            thrown.printStackTrace();
        }
        StringBuilder said = new StringBuilder(",\"err\":");
        Json.text(said, thrown.getClass().getSimpleName());
        return said.toString();
    }

    private void say(String line) {
        byte[] bytes = ("{" + line + "}\n").getBytes(StandardCharsets.UTF_8);
        synchronized (out) {
            try {
                out.write(bytes);
                out.flush();
            } catch (IOException gone) {
                // The driver has ended, and so does standard input.
                Runtime.getRuntime().halt(4);
            }
        }
    }

    static long number(Map<String, Object> call, String name) {
        Object value = call.get(name);
        if (!(value instanceof Long)) {
            throw new IllegalArgumentException(name + " is missing or no integer");
        }
        return ((Long) value).longValue();
    }

    private static String out(boolean value) {
        return value ? ",\"out\":1" : ",\"out\":0";
    }

    /** Which thread it is that says this: the one of a call, or the implementation's own. */
    private void here(StringBuilder line) {
        Long call = (Long) under.get();
        if (call != null) {
            line.append(",\"during\":").append(call.longValue());
        } else {
            line.append(",\"th\":");
            Json.text(line, name(Thread.currentThread()));
        }
    }

    /** The name of the thread, with a number if another living thread has the same name. */
    private String name(Thread thread) {
        String name = (String) called.get();
        if (name == null) {
            String given = thread.getName();
            String first = given.length() > 60 ? given.substring(0, 60) : given;
            synchronized (owners) {
                name = first;
                for (int number = 2; owners.containsKey(name) && ((Thread) owners.get(name)).isAlive(); number++) {
                    name = first + "#" + number;
                }
                owners.put(name, thread);
            }
            called.set(name);
        }
        return name;
    }

    /** Behind the last call of a lane. */
    private static final Object END = new Object();

    /** Ends the threads of a run that was left, which may take them a while. */
    private static final class Closer implements Runnable {
        private final Run run;

        Closer(Run run) {
            this.run = run;
        }

        public void run() {
            try {
                run.close();
            } catch (Throwable problem) {
                problem.printStackTrace();
            }
        }
    }

    /** One run: the subject, its operations and tasks, and their events. */
    private final class Run implements Recording, Gate {
        private final boolean virtual;
        private final Set<Object> gates = new HashSet<Object>();
        private final Gate dwelling = Boolean.getBoolean("purgatorio.still") ? null : new Dwelling();
        private final PurgatoryUnderTest<Object> purgatory;
        private final TimerUnderTest<Object> timer;
        private final Map<String, Object> handles = new ConcurrentHashMap<String, Object>();
        private final Map<String, OperationHooks> operations = new ConcurrentHashMap<String, OperationHooks>();
        private final Map<Object, String> names =
                Collections.synchronizedMap(new IdentityHashMap<Object, String>());
        private final List<LinkedBlockingQueue<Object>> lanes = new ArrayList<LinkedBlockingQueue<Object>>();
        private final Map<Long, LinkedBlockingQueue<Object>> held =
                new ConcurrentHashMap<Long, LinkedBlockingQueue<Object>>();
        private final Set<Thread> settling = new HashSet<Thread>();
        private volatile boolean over;

        Run(Map<String, Object> start) throws Exception {
            virtual = "virtual".equals(start.get("time"));
            long nowNs = virtual ? number(start, "now_ns") : 0;
            if (start.containsKey("gates")) {
                gates.addAll((List<Object>) start.get("gates"));
            }
            boolean ofTimer = "timer".equals(start.get("part"));
            timer = ofTimer ? (TimerUnderTest<Object>) factory.timer(virtual, nowNs) : null;
            purgatory = ofTimer ? null : (PurgatoryUnderTest<Object>) factory.purgatory(virtual, nowNs);
            for (int index = 0; index < promises.lanes(); index++) {
                lanes.add(new LinkedBlockingQueue<Object>());
                Thread lane = new Thread(new Lane((LinkedBlockingQueue<Object>) lanes.get(index)), "lane-" + index);
                lane.setDaemon(true);
                lane.start();
            }
        }

        /** Hand the call to the thread that is to make it; called by the reader, which makes none itself. */
        void take(String name, Map<String, Object> call) throws InterruptedException {
            if ("go".equals(name)) {
                say("\"m\":\"answer\",\"n\":" + number(call, "n"));
                letGo((List<Object>) call.get("holds"), Long.valueOf(1).equals(call.get("fail")));
            } else if (call.containsKey("hold")) {
                ((LinkedBlockingQueue<Object>) held.get(call.get("hold"))).put(call);
            } else {
                unanswered.incrementAndGet();
                Object lane = call.get("lane");
                ((LinkedBlockingQueue<Object>) lanes.get(lane == null ? 0 : ((Long) lane).intValue())).put(call);
            }
        }

        private void letGo(List<Object> numbers, boolean fail) throws InterruptedException {
            Onward word = new Onward(numbers.size(), fail);
            List<Object> queues = new ArrayList<Object>();
            for (int index = 0; index < numbers.size(); index++) {
                Object queue = held.remove(numbers.get(index));
                if (queue == null) {
                    throw new IllegalArgumentException("no thread is paused with the number " + numbers.get(index)
                        + ": only a shortest list of virtual time can be typed in");
                }
                queues.add(queue);
            }
            for (int index = 0; index < queues.size(); index++) {
                ((LinkedBlockingQueue<Object>) queues.get(index)).put(word);
            }
        }

        /** Write the message unless the run has ended, because a late thread must not write into the next run. */
        private void report(String line) {
            synchronized (out) {
                if (!over) {
                    say(line);
                }
            }
        }

        /** The driver has gone on to another run. */
        void abandon() {
            boolean stopped = over;
            synchronized (settling) {
                // Paused threads are resumed below, and no other thread is paused any more.
                over = true;
            }
            try {
                letGo(new ArrayList<Object>(held.keySet()), false);
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
            for (int index = 0; index < lanes.size(); index++) {
                ((LinkedBlockingQueue<Object>) lanes.get(index)).add(END);
            }
            if (!stopped) {
                Thread closer = new Thread(new Closer(this), "closer");
                closer.setDaemon(true);
                closer.start();
            }
        }

        private final class Lane implements Runnable {
            private final LinkedBlockingQueue<Object> calls;

            Lane(LinkedBlockingQueue<Object> calls) {
                this.calls = calls;
            }

            public void run() {
                while (true) {
                    try {
                        Object next = calls.take();
                        if (next == END) {
                            return;
                        }
                        try {
                            make((Map<String, Object>) next);
                        } finally {
                            unanswered.decrementAndGet();
                        }
                    } catch (InterruptedException late) {
                        // A gate was reached while this thread settled, which it does no more.
                    }
                }
            }
        }

        /** Make one call on this thread, and answer it. */
        private void make(Map<String, Object> call) {
            Long before = (Long) under.get();
            under.set((Long) call.get("n"));
            String name = (String) call.get("m");
            String begun = time();
            String said;
            try {
                said = answer(name, call);
            } catch (Throwable thrown) {
                said = error(thrown);
            }
            under.set(before);
            String line = "\"m\":\"answer\",\"n\":" + number(call, "n") + said + begun;
            if ("stop".equals(name)) {
                say(line);
            } else {
                report(line);
            }
        }

        private String answer(String name, Map<String, Object> call) throws Exception {
            if ("stop".equals(name)) {
                over = !Long.valueOf(1).equals(call.get("drain"));
                close();
                return "";
            }
            if ("quiesce".equals(name)) {
                settle(name);
                return sizes();
            }
            String said = "gauge".equals(name) ? sizes() : timer == null ? ofPurgatory(name, call) : ofTimer(name, call);
            // A thread that the debugger pauses is not visible here. The wait may be for this thread.
            if (!Long.valueOf(0).equals(call.get("settle"))) {
                settle(name);
            }
            return said;
        }

        private String ofTimer(String name, Map<String, Object> call) throws Exception {
            if ("advance".equals(name)) {
                timer.advanceTo(number(call, "now_ns"));
                return "";
            }
            String id = (String) call.get("id");
            if ("add".equals(name)) {
                Object before = handles.get(id);
                long delayNs = number(call, "delay_ns");
                handles.put(id, before == null ? timer.add(new Task(id), delayNs) : timer.addAgain(before, delayNs));
                return "";
            }
            if ("repeat".equals(name)) {
                long firstNs = number(call, "delay_ns");
                long periodNs = number(call, "period_ns");
                boolean rate = "fixed-rate".equals(call.get("kind"));
                Runnable task = new Task(id);
                handles.put(id, rate ? timer.fixedRate(task, firstNs, periodNs) : timer.fixedDelay(task, firstNs, periodNs));
                return "";
            }
            if ("reset".equals(name)) {
                Boolean moved = timer.reset(handles.get(id), number(call, "delay_ns"));
                return moved == null ? "" : out(moved.booleanValue());
            }
            if ("cancel".equals(name)) {
                Object handle = handles.get(id);
                // It comes before its add has returned: the adapter has no handle yet.
                Boolean won = handle == null ? Boolean.FALSE : timer.cancel(handle);
                return won == null ? "" : out(won.booleanValue());
            }
            throw new IllegalArgumentException("unknown call " + name);
        }

        private final class Task implements Runnable {
            private final String id;

            Task(String id) {
                this.id = id;
            }

            public void run() {
                long c = call("timer_fire", id, null, null);
                try {
                    pass("timer_fire", id);
                } finally {
                    ret("timer_fire", c, id, null, null, null);
                }
            }
        }

        private String ofPurgatory(String name, Map<String, Object> call) throws Exception {
            if ("advance".equals(name)) {
                purgatory.advanceTo(number(call, "now_ns"));
                return "";
            }
            if ("check".equals(name)) {
                return ",\"out\":" + purgatory.checkAndComplete((String) call.get("key"));
            }
            if ("cancel_key".equals(name)) {
                return givenBack(purgatory.cancelForKey((String) call.get("key")));
            }
            String id = (String) call.get("id");
            if ("register".equals(name)) {
                return register(id, (List<Object>) call.get("keys"), number(call, "delay_ns"), call.get("units"));
            }
            if ("ready".equals(name)) {
                becomeReady(id);
                return "";
            }
            if ("force".equals(name)) {
                return out(purgatory.forceComplete(handles.get(id)));
            }
            throw new IllegalArgumentException("unknown call " + name);
        }

        private final Set<String> readyBefore = new HashSet<String>();

        private String register(String id, List<Object> keys, long delayNs, Object units) throws Exception {
            OperationHooks hooks = new OperationHooks(id, delayNs, this, this);
            if (units != null) {
                hooks.waitFor(((Number) units).longValue());
            }
            Object operation = purgatory.operation(hooks, delayNs);
            names.put(operation, id);
            handles.put(id, operation);
            synchronized (readyBefore) {
                operations.put(id, hooks);
                if (readyBefore.remove(id)) {
                    hooks.becomeReady();
                }
            }
            List<String> texts = new ArrayList<String>();
            for (int index = 0; index < keys.size(); index++) {
                texts.add((String) keys.get(index));
            }
            return out(purgatory.tryCompleteElseWatch(operation, texts));
        }

        private void becomeReady(String id) {
            synchronized (readyBefore) {
                OperationHooks hooks = (OperationHooks) operations.get(id);
                if (hooks == null) {
                    readyBefore.add(id);
                } else {
                    hooks.becomeReady();
                }
            }
        }

        private String givenBack(List<Object> operations) {
            List<String> ids = new ArrayList<String>();
            for (int index = 0; index < operations.size(); index++) {
                ids.add((String) names.get(operations.get(index)));
            }
            StringBuilder line = new StringBuilder(",\"ids\":");
            Json.texts(line, ids);
            return line.toString();
        }

        private String sizes() throws Exception {
            Long watched = purgatory == null ? null : purgatory.watched();
            Long delayed = purgatory == null ? timer.size() : purgatory.delayed();
            Long keys = purgatory == null ? null : purgatory.keys();
            return (watched == null ? "" : ",\"watched\":" + watched) + (delayed == null ? "" : ",\"delayed\":" + delayed)
                + (keys == null ? "" : ",\"keys\":" + keys);
        }

        /**
         * In virtual time nothing happens outside of a call: what it caused comes to its end, or to a gate. Whoever waits
         * for that is woken when a thread comes to one.
         */
        private void settle(String name) throws Exception {
            if (!virtual && !"quiesce".equals(name)) {
                return;
            }
            synchronized (settling) {
                if (!held.isEmpty()) {
                    return;
                }
                settling.add(Thread.currentThread());
            }
            try {
                if (purgatory != null) {
                    purgatory.settle();
                } else {
                    timer.settle();
                }
            } catch (InterruptedException atAGate) {
                // The driver resumes paused threads.
            } finally {
                synchronized (settling) {
                    settling.remove(Thread.currentThread());
                    Thread.interrupted();
                }
            }
        }

        void close() throws Exception {
            if (purgatory != null) {
                purgatory.close();
            } else {
                timer.close();
            }
        }

        public long now() {
            return 0;
        }

        public long calledT() {
            return 0;
        }

        public long call(String f, String id, List<String> keys, Long delayNs) {
            tell("enter", f, id, "");
            return 0;
        }

        public void ret(String f, long c, String id, Long out, Throwable error, Long deadlineT) {
            StringBuilder result = new StringBuilder(out == null ? "" : ",\"out\":" + out);
            if (error != null) {
                result.append(",\"err\":");
                Json.text(result, error.getClass().getSimpleName());
            }
            tell("leave", f, id, result.toString());
        }

        public void at(String f, String id, List<String> keys, Long sinceT) {
            tell("enter", f, id, "");
            tell("leave", f, id, "");
        }

        private void tell(String kind, String f, String id, String more) {
            if (!reports.contains(f)) {
                return;
            }
            StringBuilder line = new StringBuilder("\"m\":\"").append(kind).append("\",\"f\":\"").append(f);
            line.append("\",\"id\":");
            Json.text(line, id);
            line.append(more).append(time());
            here(line);
            report(line.toString());
        }

        /** In real time, a field of our own: when a call began, or an event happened. Purgatorio's own subjects use it. */
        private String time() {
            return virtual ? "" : ",\"x_t\":" + System.nanoTime();
        }

        public void pass(String f, String id) {
            if (over || !gates.contains(f)) {
                if (!over && !virtual && gates.isEmpty() && dwelling != null) {
                    dwelling.pass(f, id);
                }
                return;
            }
            Long hold = Long.valueOf(holds.getAndIncrement());
            LinkedBlockingQueue<Object> there = new LinkedBlockingQueue<Object>();
            synchronized (settling) {
                if (over) {
                    return;
                }
                held.put(hold, there);
                for (Object waiter : settling) {
                    if (waiter != Thread.currentThread()) {
                        ((Thread) waiter).interrupt();
                    }
                }
            }
            StringBuilder line = new StringBuilder("\"m\":\"held\",\"hold\":").append(hold.longValue());
            line.append(",\"f\":\"").append(f).append('"');
            if (id != null) {
                line.append(",\"id\":");
                Json.text(line, id);
            }
            here(line);
            report(line.toString());
            while (true) {
                try {
                    Object next = there.take();
                    if (next instanceof Onward) {
                        ((Onward) next).together();
                        if (((Onward) next).fail) {
                            throw new Gate.Failure(f);
                        }
                        return;
                    }
                    make((Map<String, Object>) next);
                } catch (InterruptedException later) {
                    // A timer that closes interrupts its threads. A paused thread stays paused until it is resumed.
                }
            }
        }
    }
}
