package purgatorio.kit;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Races the threads of this JVM through the scenarios of docs/stress.md, round after round, and records what they do.
 *
 * <p>A crew of threads sets up a round of its own (operations and keys that nobody else has), meets, spins for a moment
 * of its own, and acts; several crews share one purgatory or timer. Callbacks dwell: a thread inside one may be held up
 * there, some microseconds or up to a millisecond, as its dice say. Most time-outs never pass, for an expiry would hide a
 * lost completion. What came of it is for {@code purgatorio check} to say: nothing is judged here, but for calls that
 * never return, or end with an exception (P3). After an exception the crew leaves the round, and goes on with the next.
 */
@SuppressWarnings({"cast", "unchecked", "rawtypes"}) // as in Subject
final class Races {
    private static final long MS = 1000000L;
    private static final long NEVER_NS = 600000 * MS;
    private static final long STUCK_NS = 20000 * MS;
    private static final long LATE_SLACK_NS = 10000 * MS;
    private static final int CREWS = 4;
    private static final int MOST_THREADS = 3;
    /** Between two stretches all come to rest, and the sizes are read. */
    private static final int STRETCHES = 5;
    private static final long NEW_TIMERS_MOST = 500;

    private static final List<String> OF_TIMERS = Collections.unmodifiableList(Arrays.asList(new String[] {
        "timer_add", "timer_cancel", "timer_fire", "gauge", "quiesce"}));
    private static final List<String> OF_PURGATORIES = Collections.unmodifiableList(Arrays.asList(new String[] {
        "try_complete_else_watch", "check_and_complete", "cancel_for_key", "cancelled", "force_complete", "try_complete",
        "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire", "ready", "gauge", "quiesce"}));

    /**
     * The programs of a crew: a name, the capability that it needs, what the first thread prepares, and what each thread
     * does at once. {@code op} makes an operation of a number, a time-out and keys; {@code near} waits until about the
     * deadline of what was prepared. Delays are milliseconds: {@code 1..3} is random, {@code 0/20} one time in four 20.
     */
    private static final String[][] PURGATORIES = {
        {"registration-against-event", "", "op 0 never 0", "register 0", "event 0"},
        {"two-events", "", "op 0 never 0; register 0", "check 0", "event 0"},
        {"three-events", "", "op 0 never 0; register 0", "event 0", "check 0", "check 0"},
        {"not-completable", "force", "op 0 never 0; register 0", "check 0; force 0", "check 0"},
        {"force-against-force", "force", "op 0 never 0; register 0", "force 0", "force 0"},
        {"force-against-event", "force", "op 0 never 0; register 0", "force 0", "event 0"},
        {"event-against-expiry", "", "op 0 1..3 0; register 0", "near; event 0", "near; check 0"},
        {"emptying-key", "", "op 0 never 0; op 1 never 0; register 0", "event 0", "register 1; event 1"},
        {"purge-against-watch", "force", "op 0 never 01; op 1 never 01; register 0", "force 0", "register 1; event 1"},
        {"garbage", "force", "nothing", "op 0 never 012; register 0; force 0; again 24"},
        {"key-cancel-against-completion", "cancel-key", "op 0 never 0; register 0", "cancel-key 0", "event 0"},
        {"key-cancel-before-expiry", "cancel-key", "op 0 30 0; register 0", "cancel-key 0", "check 0"},
        {"re-entrant-completion", "force", "op 0 never 0; checks 0 0; register 0; op 1 never 0; checks 1 0; register 1;"
            + " ready 0; ready 1", "check 0", "force 0"},
        {"crossing-completion", "", "op 0 never 0; checks 0 1; register 0; op 1 never 1; checks 1 0; register 1; ready 0;"
            + " ready 1", "check 0", "check 1"},
        {"completed-while-watching", "force", "op 0 never 012", "register 0", "force 0"},
        {"completed-before-timer", "", "op 0 20 0", "register 0", "event 0; check 0"},
    };
    private static final String[][] TIMERS = {
        {"cancel-against-fire", "cancel", "add 0 1..4", "near; cancel 0", "near; add 1 0..2"},
        // A bucket of the second level is moved down at a multiple of its width.
        {"cancel-against-flush", "cancel", "add 0 21..44; add 1 21..44; boundary 20", "near; cancel 0", "near; cancel 1"},
        {"add-against-drain", "", "add 3 1", "near; add 0 0..3/20..23", "near; add 1 0..3/20..23",
            "near; add 2 0..3/20..23"},
        {"earlier-against-sleep", "", "add 3 60", "add 0 50", "add 1 1"},
    };
    /** Each round has a timer of its own, in which nothing has happened yet. */
    private static final String[][] NEW_TIMERS = {{"overflow-twice", "", "new", "add 0 25", "add 1 25", "add 2 25"}};

    private static final class Scenario {
        final String name;
        final String needs;
        final String[][] prepares;
        final String[][][] acts;

        Scenario(String[] row) {
            name = row[0];
            needs = row[1];
            prepares = words(row[2]);
            acts = new String[row.length - 3][][];
            for (int who = 0; who < acts.length; who++) {
                acts[who] = words(row[3 + who]);
            }
        }

        private static String[][] words(String program) {
            String[] steps = program.split("; ");
            String[][] words = new String[steps.length][];
            for (int index = 0; index < steps.length; index++) {
                words[index] = steps[index].split(" ");
            }
            return words;
        }
    }

    private final Promises promises;
    private final Factory factory;
    private final String part;
    private final long seed;
    private final List<Scenario> scenarios = new ArrayList<Scenario>();
    private final AtomicLong progress = new AtomicLong();
    private final AtomicLong left = new AtomicLong();
    /** How often each call ended with an exception, by what is said of it. */
    private final Map<String, Integer> thrown = new TreeMap<String, Integer>();
    private TraceRecorder recorder;
    private PurgatoryUnderTest<Object> purgatory;
    private volatile TimerUnderTest<Object> timer;

    Races(Promises promises, Factory factory, String part, String only, long seed) {
        this.promises = promises;
        this.factory = factory;
        this.part = part;
        this.seed = seed;
        String[][] all = part.equals("purgatory") ? PURGATORIES : part.equals("timer") ? TIMERS : NEW_TIMERS;
        for (int index = 0; index < all.length; index++) {
            Scenario one = new Scenario(all[index]);
            if ((only == null || one.name.equals(only)) && (one.needs.isEmpty() || promises.knows(one.needs))) {
                scenarios.add(one);
            }
        }
    }

    /** The parts that can be raced, with this or any scenario. Throws IllegalArgumentException if there is none. */
    static List<String> parts(Promises promises, String only) {
        List<String> parts = new ArrayList<String>();
        String[] all = {"timer", "new-timers", "purgatory"};
        for (int index = 0; index < all.length; index++) {
            if (promises.knows(all[index].equals("purgatory") ? "purgatory" : "timer")
                    && !new Races(promises, null, all[index], only, 0).scenarios.isEmpty()) {
                parts.add(all[index]);
            }
        }
        if (parts.isEmpty()) {
            throw new IllegalArgumentException("no scenario " + only + " for " + promises.name());
        }
        return parts;
    }

    static String listed(Promises promises) {
        StringBuilder lines = new StringBuilder();
        List<String> parts = parts(promises, null);
        for (int index = 0; index < parts.size(); index++) {
            String part = (String) parts.get(index);
            List<Scenario> all = new Races(promises, null, part, null, 0).scenarios;
            for (int at = 0; at < all.size(); at++) {
                Scenario one = (Scenario) all.get(at);
                lines.append(part).append(' ').append(one.name).append(", ").append(one.acts.length).append(" threads\n");
            }
        }
        return lines.toString();
    }

    /** Race so many rounds into the file; whether all of them ended, and no call with an exception. */
    boolean run(Path file, long rounds) throws Exception {
        boolean ofTimer = !part.equals("purgatory");
        String run = file.getFileName().toString();
        run = run.substring(0, run.indexOf(".jsonl"));
        recorder = TraceRecorder.toFile(file, promises.lateBy(LATE_SLACK_NS), run, recorded());
        if (part.equals("timer")) {
            timer = (TimerUnderTest<Object>) factory.timer(false, 0);
        } else if (part.equals("purgatory")) {
            purgatory = (PurgatoryUnderTest<Object>) factory.purgatory(false, 0);
        }
        long most = part.equals("new-timers") ? Math.min(rounds, NEW_TIMERS_MOST) : rounds;
        Crew[] crews = new Crew[CREWS];
        for (int index = 0; index < CREWS; index++) {
            crews[index] = new Crew(index);
        }
        boolean ended = true;
        for (int stretch = 0; ended && stretch < STRETCHES; stretch++) {
            left.set(most * (stretch + 1) / STRETCHES - most * stretch / STRETCHES);
            ended = watch(started(crews, stretch));
            if (ended) {
                rest();
            }
        }
        for (int index = 0; index < newTimers.size(); index++) {
            ((TimerUnderTest<Object>) newTimers.get(index)).close();
        }
        if (ended) {
            recorder.close();
        } else {
            recorder.closeUnfinished();
        }
        System.out.println(file + ": " + progress.get() + " rounds, " + recorder.events() + " events, "
                + recorder.dropped() + " dropped" + (ended ? "" : ", STUCK"));
        Object[] told = thrown.keySet().toArray();
        for (int index = 0; index < told.length; index++) {
            System.out.println(told[index] + ": " + thrown.get(told[index]) + " times");
        }
        return ended && thrown.isEmpty();
    }

    /** Say of an exception out of the adapter, the first time: which call, where the adapter made it, and the stack. */
    private void tell(Throwable problem, Scenario during) {
        StackTraceElement[] stack = problem.getStackTrace();
        int at = 0;
        while (at < stack.length && !stack[at].getClassName().startsWith("purgatorio.kit.Races")) {
            at++;
        }
        // The JVM leaves out the stack of an exception that it has thrown often.
        String call = at == 0 || at == stack.length ? "a call" : stack[at - 1].toString();
        String said = "P3: your adapter threw " + problem.getClass().getSimpleName() + " in " + call;
        synchronized (thrown) {
            Integer times = (Integer) thrown.get(said);
            thrown.put(said, Integer.valueOf(times == null ? 1 : times.intValue() + 1));
            if (times == null) {
                System.err.print(said + ", in the race " + during.name + "\n");
                problem.printStackTrace();
            }
        }
    }

    private List<Thread> started(Crew[] crews, int stretch) {
        List<Thread> threads = new ArrayList<Thread>();
        for (int index = 0; index < crews.length; index++) {
            for (int who = 0; who < MOST_THREADS; who++) {
                Thread thread = new Thread(new Member(crews[index], who, stretch), "crew-" + index + "-" + who);
                thread.setDaemon(true);
                threads.add(thread);
            }
        }
        for (int index = 0; index < threads.size(); index++) {
            ((Thread) threads.get(index)).start();
        }
        return threads;
    }

    /** The counts of many timers are not one count. */
    private List<String> recorded() {
        return part.equals("purgatory") ? promises.reported(OF_PURGATORIES) : part.equals("timer") ? OF_TIMERS : OF_TIMERS.subList(0, 3);
    }

    /** Read the sizes now and then, until all have ended or none gets on any more. */
    private boolean watch(List<Thread> threads) throws Exception {
        long seen = -1;
        long sinceT = System.nanoTime();
        while (alive(threads)) {
            gauge();
            LockSupport.parkNanos(5 * MS);
            long now = progress.get();
            if (now != seen) {
                seen = now;
                sinceT = System.nanoTime();
            } else if (System.nanoTime() - sinceT > STUCK_NS) {
                tellStacks();
                return false;
            }
        }
        return true;
    }

    private static boolean alive(List<Thread> threads) {
        for (int index = 0; index < threads.size(); index++) {
            if (((Thread) threads.get(index)).isAlive()) {
                return true;
            }
        }
        return false;
    }

    private static void tellStacks() {
        System.err.println("P3: no round ended for " + STUCK_NS / (1000 * MS) + " s; the threads:");
        ThreadInfo[] all = ManagementFactory.getThreadMXBean().dumpAllThreads(true, true);
        for (int index = 0; index < all.length; index++) {
            System.err.print(all[index]);
        }
    }

    private final AtomicLong pending = new AtomicLong();
    private final List<Object> newTimers = Collections.synchronizedList(new ArrayList<Object>());

    /** Wait for the tasks that are still to fire, then for rest, and take a last reading. */
    private void rest() throws Exception {
        long untilT = System.nanoTime() + 2 * LATE_SLACK_NS;
        while (pending.get() > 0 && System.nanoTime() < untilT) {
            LockSupport.parkNanos(5 * MS);
        }
        if (purgatory != null) {
            purgatory.settle();
            recorder.quiesce(purgatory.watched(), purgatory.delayed());
        } else if (timer != null && pending.get() == 0) {
            Thread.sleep(50);
            recorder.quiesce(null, timer.size());
        }
    }

    private void gauge() throws Exception {
        if (!promises.knows("gauge") || part.equals("new-timers")) {
            return;
        }
        long c = recorder.call("gauge", null, null, null);
        if (purgatory != null) {
            recorder.retGauge(c, purgatory.watched(), purgatory.delayed());
        } else {
            recorder.retGauge(c, null, timer.size());
        }
    }

    /** Threads that act together, and their objects in this round. */
    private final class Crew implements Gate {
        private final int number;
        private final AtomicInteger arrived = new AtomicInteger();
        private final ThreadLocal<Random> dice = new ThreadLocal<Random>();
        private final Gate dwelling = new Dwelling();
        private volatile int phase;
        /** A call of this round has ended with an exception: what it was to make may be missing. */
        private volatile boolean spoiled;
        private volatile Scenario scenario;
        private long round;
        private OperationHooks[] hooks = new OperationHooks[2];
        private Object[] operations = new Object[2];
        private String[][] keys = new String[2][];
        private volatile long deadlineT;

        Crew(int number) {
            this.number = number;
        }

        void member(int who, int stretch) throws Exception {
            Random own = new Random(seed * 1000003 + stretch * 10007 + number * 101 + who);
            dice.set(own);
            while (true) {
                if (who == 0) {
                    scenario = left.getAndDecrement() > 0 ? next(own) : null;
                    if (scenario != null) {
                        spoiled = false;
                        deadlineT = attempt(scenario.prepares);
                    }
                }
                meet();
                if (scenario == null) {
                    return;
                }
                if (who < scenario.acts.length && !spoiled) {
                    Dwelling.turn(own.nextInt(4) == 0 ? own.nextInt(200000) : own.nextInt(5000));
                    attempt(scenario.acts[who]);
                }
                meet();
                if (who == 0) {
                    progress.incrementAndGet();
                }
            }
        }

        private Scenario next(Random own) {
            round++;
            return (Scenario) scenarios.get(own.nextInt(scenarios.size()));
        }

        /** All members have come here. The wait turns a little before it sleeps, so that they leave together. */
        private void meet() {
            int mine = phase;
            if (arrived.incrementAndGet() == MOST_THREADS) {
                arrived.set(0);
                phase = mine + 1;
                return;
            }
            for (int turn = 0; phase == mine; turn++) {
                if (turn < 200) {
                    Thread.yield();
                } else {
                    LockSupport.parkNanos(20000);
                }
            }
        }

        public void pass(String f, String id) {
            dwelling.pass(f, id);
        }

        /** Make the calls of a program, up to one that ends with an exception. */
        private long attempt(String[][] program) {
            try {
                return perform(program);
            } catch (Throwable problem) {
                spoiled = true;
                tell(problem, scenario);
                return 0;
            }
        }

        /** Returns the deadline of the operation or task that it added last. */
        private long perform(String[][] program) throws Exception {
            long dueT = 0;
            int times = 1;
            for (int step = 0; step < program.length; step++) {
                String[] words = program[step];
                String what = words[0];
                int which = words.length > 1 ? Integer.parseInt(words[1]) : 0;
                if (what.equals("op") || what.equals("add")) {
                    long delayNs = delayNs(words[2]);
                    dueT = System.nanoTime() + delayNs;
                    if (what.equals("op")) {
                        operation(which, delayNs, words[3]);
                    } else {
                        added[which] = add(newTimer == null ? timer : newTimer, which, delayNs);
                    }
                } else if (what.equals("register")) {
                    register(which);
                } else if (what.equals("ready")) {
                    ready(which);
                } else if (what.equals("event")) {
                    ready(which);
                    check(keys[which][keys[which].length - 1]);
                } else if (what.equals("check")) {
                    check(key(which));
                } else if (what.equals("checks")) {
                    hooks[which].whenCompleting(checking(key(Integer.parseInt(words[2]))));
                } else if (what.equals("force")) {
                    purgatory.forceComplete(operations[which]);
                } else if (what.equals("cancel-key")) {
                    cancelKey(key(which));
                } else if (what.equals("cancel")) {
                    cancel(added[which]);
                } else if (what.equals("new")) {
                    takeNewTimer();
                } else if (what.equals("near")) {
                    near(deadlineT);
                } else if (what.equals("boundary")) {
                    dueT = (System.nanoTime() / (which * MS) + 1) * which * MS;
                } else if (what.equals("again")) {
                    round++;
                    step = times++ < which ? -1 : step;
                }
            }
            return dueT;
        }

        private long delayNs(String text) {
            if (text.equals("never")) {
                return NEVER_NS;
            }
            String[] either = text.split("/");
            String[] ends = either[either.length > 1 && random(4) == 0 ? 1 : 0].split("\\.\\.");
            int least = Integer.parseInt(ends[0]);
            return (least + random(Integer.parseInt(ends[ends.length - 1]) - least + 1)) * MS;
        }

        String key(int which) {
            return "k" + number + "-" + round + (which == 0 ? "" : "-" + which);
        }

        void operation(int which, long delayNs, String itsKeys) throws Exception {
            String id = "op-" + number + "-" + round + "-" + which;
            OperationHooks made = new OperationHooks(id, delayNs, recorder, this);
            hooks[which] = made;
            operations[which] = purgatory.operation(made, delayNs);
            keys[which] = new String[itsKeys.length()];
            for (int index = 0; index < keys[which].length; index++) {
                keys[which][index] = key(itsKeys.charAt(index) - '0');
            }
        }

        void register(int which) throws Exception {
            List<String> its = Arrays.asList(keys[which]);
            String id = hooks[which].id;
            long c = recorder.call("try_complete_else_watch", id, its, Long.valueOf(hooks[which].delayNs()));
            Throwable error = null;
            Long out = null;
            try {
                out = Long.valueOf(purgatory.tryCompleteElseWatch(operations[which], its) ? 1 : 0);
            } catch (Throwable problem) {
                error = problem;
                throw problem;
            } finally {
                recorder.ret("try_complete_else_watch", c, id, out, error, null);
            }
        }

        void check(String key) throws Exception {
            long c = recorder.call("check_and_complete", null, Collections.singletonList(key), null);
            Throwable error = null;
            Long out = null;
            try {
                out = Long.valueOf(purgatory.checkAndComplete(key));
            } catch (Throwable problem) {
                error = problem;
                throw problem;
            } finally {
                recorder.ret("check_and_complete", c, null, out, error, null);
            }
        }

        /** A callback that checks a key. */
        Runnable checking(final String key) {
            final Crew crew = this;
            return new Runnable() {
                public void run() {
                    try {
                        crew.check(key);
                    } catch (Throwable problem) {
                        tell(problem, crew.scenario);
                    }
                }
            };
        }

        void ready(int which) {
            Long sinceT = Long.valueOf(recorder.now());
            hooks[which].becomeReady();
            recorder.at("ready", hooks[which].id, null, sinceT);
        }

        void cancelKey(String key) throws Exception {
            List<String> its = Collections.singletonList(key);
            long c = recorder.call("cancel_for_key", null, its, null);
            List<Object> back = purgatory.cancelForKey(key);
            for (int index = 0; index < back.size(); index++) {
                for (int which = 0; which < 2; which++) {
                    if (back.get(index) == operations[which]) {
                        recorder.at("cancelled", hooks[which].id, its, null);
                    }
                }
            }
            recorder.ret("cancel_for_key", c, null, Long.valueOf(back.size()), null, null);
        }

        /** The one before is closed when all its tasks have fired; one that has lost some stays, to the end. */
        void takeNewTimer() throws Exception {
            long untilT = System.nanoTime() + 200 * MS;
            while (newTimer != null && waiting.get() > 0 && System.nanoTime() < untilT) {
                LockSupport.parkNanos(MS);
            }
            if (newTimer != null && waiting.get() == 0) {
                newTimers.remove(newTimer);
                newTimer.close();
            }
            waiting = new AtomicInteger();
            newTimer = (TimerUnderTest<Object>) factory.timer(false, 0);
            newTimers.add(newTimer);
        }

        void near(long t) {
            long untilT = t + random(400000) - 200000;
            while (System.nanoTime() < untilT) {
                LockSupport.parkNanos(Math.max(1000, (untilT - System.nanoTime()) / 2));
            }
        }

        int random(int below) {
            return ((Random) dice.get()).nextInt(below);
        }

        /** Add a task to the timer. Returns its handle, or null if it was refused. */
        Object add(TimerUnderTest<Object> timer, int which, long delayNs) throws Exception {
            String id = "t-" + number + "-" + round + "-" + which;
            Task task = new Task(id, waiting);
            pending.incrementAndGet();
            waiting.incrementAndGet();
            Long delay = Long.valueOf(delayNs);
            long c = recorder.call("timer_add", id, null, delay);
            long calledT = recorder.calledT();
            try {
                Object handle = timer.add(task, delayNs);
                recorder.ret("timer_add", c, id, null, null, Long.valueOf(OperationHooks.deadline(calledT, delayNs)));
                return new Object[] {task, handle};
            } catch (RuntimeException refused) {
                recorder.ret("timer_add", c, id, null, refused, null);
                task.settle();
                return null;
            }
        }

        void cancel(Object added) throws Exception {
            if (added == null) {
                return;
            }
            Task task = (Task) ((Object[]) added)[0];
            long c = recorder.call("timer_cancel", task.id, null, null);
            Boolean won = timer.cancel(((Object[]) added)[1]);
            Long out = won == null ? null : Long.valueOf(won.booleanValue() ? 1 : 0);
            recorder.ret("timer_cancel", c, task.id, out, null, null);
            if (won == null || won.booleanValue()) {
                task.settle();
            }
        }

        private final Object[] added = new Object[4];
        private volatile TimerUnderTest<Object> newTimer;
        private volatile AtomicInteger waiting = new AtomicInteger();
    }

    private final class Member implements Runnable {
        private final Crew crew;
        private final int who;
        private final int stretch;

        Member(Crew crew, int who, int stretch) {
            this.crew = crew;
            this.who = who;
            this.stretch = stretch;
        }

        public void run() {
            try {
                crew.member(who, stretch);
            } catch (Throwable problem) {
                tell(problem, crew.scenario);
                // Its crew waits for it for ever, which is seen.
            }
        }
    }

    private final class Task implements Runnable {
        private final String id;
        private final AtomicInteger settled = new AtomicInteger();
        private final AtomicInteger waiting;

        Task(String id, AtomicInteger waiting) {
            this.id = id;
            this.waiting = waiting;
        }

        public void run() {
            recorder.ret("timer_fire", recorder.call("timer_fire", id, null, null), id, null, null, null);
            settle();
        }

        void settle() {
            if (settled.compareAndSet(0, 1)) {
                pending.decrementAndGet();
                waiting.decrementAndGet();
            }
        }
    }
}
