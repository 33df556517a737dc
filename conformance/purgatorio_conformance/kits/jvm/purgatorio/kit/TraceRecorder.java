package purgatorio.kit;

import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.GZIPOutputStream;

/**
 * Records a run as a trace of purgatorio-trace/1, from any number of threads, without holding any of them up.
 *
 * <pre>
 * try (TraceRecorder recorder = TraceRecorder.toFile(Path.of("run.jsonl.gz"), promises, "my-run", List.of("timer_fire"))) {
 *     long c = recorder.call("timer_fire", "t-1", null, null);
 *     task.run();
 *     recorder.ret("timer_fire", c, "t-1", null, null, null);
 * }
 * </pre>
 *
 * <p>One ticket from one atomic counter orders all threads. A call takes its time first and its ticket last, a return
 * its ticket first and its time last: so the tickets enclose the call as closely as they can, and a deadline counted
 * from a call's time is the earliest that can be meant. Each thread appends to a queue of its own; one more thread
 * writes. Tickets are dense: what lies behind one that was taken and is not yet written waits for it.
 *
 * <p>Nothing recorded is lost. {@link #close} writes all there is and the end record, which counts the events and what
 * was dropped: a thread whose queue is full ({@code capacity} events that are not yet written) drops and counts. Where
 * a program exits without {@code close}, a shutdown hook writes all there is, without an end record: the trace can be
 * read, and no clause that needs the whole run passes on it. After a kill the file has what was written until then.
 *
 * <p>Not promised: that recording is free (some hundred nanoseconds an event), or that times grow with tickets from one
 * thread to another. What cannot be written (a full disk) is told by {@code close} and {@link #problem}, and counts as
 * dropped.
 */
@SuppressWarnings({"cast", "rawtypes", "unchecked"}) // as in Subject
public final class TraceRecorder implements Recording, Closeable {
    /** Events that one thread can have recorded and not yet written, unless said otherwise. */
    public static final int CAPACITY = 1000000;

    private static final long WRITE_EVERY_MS = 20;

    /** The clock of the times, and its name in the header. */
    public interface Clock {
        /** Nanoseconds. */
        long now();
    }

    private static final class RealClock implements Clock {
        public long now() {
            return System.nanoTime();
        }
    }

    private static final class Event implements Comparable {
        long i;
        String thread;
        long t;
        String ph;
        String f;
        String id;
        List<String> keys;
        Long c;
        Long delayNs;
        Long deadlineT;
        Long sinceT;
        Long out;
        String err;
        boolean reading;
        Long watched;
        Long delayed;

        public int compareTo(Object other) {
            return Long.compare(i, ((Event) other).i);
        }
    }

    /** The queue of one thread: one writes, one reads. */
    private static final class Lane {
        final String name;
        final ConcurrentLinkedQueue<Event> events = new ConcurrentLinkedQueue<Event>();
        long written;
        long calledT;
        volatile long taken;
        volatile long dropped;

        Lane(String name) {
            this.name = name;
        }
    }

    private final Clock clock;
    private final int capacity;
    private final AtomicLong ticket = new AtomicLong();
    private final ThreadLocal<Lane> own = new ThreadLocal<Lane>();
    private final List<Lane> lanes = new ArrayList<Lane>();
    private final Map<String, Integer> names = new HashMap<String, Integer>();
    private final Object writing = new Object();
    private final PriorityQueue<Event> waiting = new PriorityQueue<Event>();
    private final boolean whole;
    private final OutputStream out;
    private final Thread writer;
    private final Thread hook;
    private long next;
    private long count;
    private IOException problem;
    private volatile boolean closed;

    /**
     * Record into a stream, which is closed by {@link #close}.
     *
     * @param header the first line, as {@link Promises#header} makes it; null for a parent process that writes header
     *     and end itself: then only events are written
     * @param clock {@code null} for {@code System.nanoTime()}
     * @param capacity events that one thread can have recorded and not yet written
     */
    public TraceRecorder(OutputStream out, String header, Clock clock, int capacity) throws IOException {
        if (capacity < 2) {
            throw new IllegalArgumentException("capacity is " + capacity + "; a call and its return are two events");
        }
        this.out = out;
        this.clock = clock == null ? new RealClock() : clock;
        this.capacity = capacity;
        this.whole = header != null;
        if (whole) {
            out.write((header + "\n").getBytes(StandardCharsets.UTF_8));
        }
        writer = new Thread(new Writer(), "trace-writer");
        writer.setDaemon(true);
        hook = new Thread(new AtExit(), "trace-at-exit");
        Runtime.getRuntime().addShutdownHook(hook);
        writer.start();
    }

    /**
     * Record into a file, compressed if its name ends with {@code .gz}, in real time.
     *
     * @param run the name of the run
     * @param recorded the functions that are always recorded: a clause that needs another is SKIPPED
     */
    public static TraceRecorder toFile(Path file, Promises promises, String run, List<String> recorded)
            throws IOException {
        OutputStream raw = new FileOutputStream(file.toFile());
        if (file.toString().endsWith(".gz")) {
            raw = new GZIPOutputStream(raw, 1 << 16, true);
        }
        OutputStream buffered = new BufferedOutputStream(raw, 1 << 16);
        return new TraceRecorder(buffered, promises.header(run, "monotonic", recorded), null, CAPACITY);
    }

    public long now() {
        return clock.now();
    }

    public long calledT() {
        return lane().calledT;
    }

    public long call(String f, String id, List<String> keys, Long delayNs) {
        Lane lane = lane();
        long t = clock.now();
        lane.calledT = t;
        if (full(lane)) {
            return DROPPED;
        }
        Event event = new Event();
        event.t = t;
        event.i = ticket.getAndIncrement();
        event.keys = keys;
        event.delayNs = delayNs;
        put(lane, event, "call", f, id);
        return event.i;
    }

    public void ret(String f, long c, String id, Long result, Throwable error, Long deadlineT) {
        Lane lane = lane();
        Event event = ending(lane, c);
        if (event != null) {
            event.deadlineT = deadlineT;
            event.out = result;
            event.err = error == null ? null : error.getClass().getSimpleName();
            put(lane, event, "ret", f, id);
        }
    }

    public void at(String f, String id, List<String> keys, Long sinceT) {
        Lane lane = lane();
        if (full(lane)) {
            return;
        }
        Event event = new Event();
        event.t = clock.now();
        event.i = ticket.getAndIncrement();
        event.keys = keys;
        event.sinceT = sinceT;
        put(lane, event, "at", f, id);
    }

    /**
     * The end of a {@code gauge} that was recorded as a call: a reading taken somewhere within.
     *
     * @param watched entries in the watch lists, or null
     * @param delayed tasks in the timer, or null
     */
    public void retGauge(long c, Long watched, Long delayed) {
        Lane lane = lane();
        Event event = ending(lane, c);
        if (event != null) {
            reading(lane, event, "ret", "gauge", watched, delayed);
        }
    }

    /** The end of this call; null if the call or its end is dropped. */
    private Event ending(Lane lane, long c) {
        if (c == DROPPED) {
            lane.dropped++;
            return null;
        }
        if (full(lane)) {
            return null;
        }
        Event event = new Event();
        event.i = ticket.getAndIncrement();
        event.t = clock.now();
        event.c = Long.valueOf(c);
        return event;
    }

    /** Nothing is under way any more, and the purge has had its turn; with the sizes that were read, or nulls. */
    public void quiesce(Long watched, Long delayed) {
        Lane lane = lane();
        if (full(lane)) {
            return;
        }
        Event event = new Event();
        event.t = clock.now();
        event.i = ticket.getAndIncrement();
        reading(lane, event, "at", "quiesce", watched, delayed);
    }

    private void reading(Lane lane, Event event, String ph, String f, Long watched, Long delayed) {
        event.reading = true;
        event.watched = watched;
        event.delayed = delayed;
        put(lane, event, ph, f, null);
    }

    private void put(Lane lane, Event event, String ph, String f, String id) {
        event.thread = lane.name;
        event.ph = ph;
        event.f = f;
        event.id = id;
        lane.written++;
        lane.events.add(event);
    }

    private boolean full(Lane lane) {
        if (lane.written - lane.taken < capacity) {
            return false;
        }
        lane.dropped++;
        return true;
    }

    private Lane lane() {
        Lane lane = (Lane) own.get();
        if (lane == null) {
            lane = newLane(Thread.currentThread().getName());
            own.set(lane);
        }
        return lane;
    }

    /** Two threads of one name would share a lane, and their calls would seem to overlap on one thread. */
    private Lane newLane(String name) {
        synchronized (lanes) {
            Integer before = (Integer) names.get(name);
            int number = before == null ? 1 : before.intValue() + 1;
            names.put(name, Integer.valueOf(number));
            Lane lane = new Lane(number == 1 ? name : name + "#" + number);
            lanes.add(lane);
            return lane;
        }
    }

    /** Events that found their thread's queue full, or could not be written, so far. */
    public long dropped() {
        long dropped = 0;
        synchronized (lanes) {
            for (int index = 0; index < lanes.size(); index++) {
                dropped += ((Lane) lanes.get(index)).dropped;
            }
        }
        synchronized (writing) {
            return dropped + unwritten;
        }
    }

    private long unwritten;

    /** Events written so far. */
    public long events() {
        synchronized (writing) {
            return count;
        }
    }

    /** What went wrong in writing, or null. */
    public IOException problem() {
        synchronized (writing) {
            return problem;
        }
    }

    /** Write the existing events in order, up to the first ticket without an event. */
    public void flush() {
        drain(false);
    }

    private void drain(boolean last) {
        synchronized (writing) {
            Object[] all;
            synchronized (lanes) {
                all = lanes.toArray();
            }
            for (int index = 0; index < all.length; index++) {
                Lane lane = (Lane) all[index];
                long taken = 0;
                for (Event event = (Event) lane.events.poll(); event != null; event = (Event) lane.events.poll()) {
                    waiting.add(event);
                    taken++;
                }
                lane.taken += taken;
            }
            StringBuilder lines = new StringBuilder();
            long ready = 0;
            while (!waiting.isEmpty() && (last || ((Event) waiting.peek()).i == next)) {
                Event event = (Event) waiting.poll();
                next = event.i + 1;
                line(lines, event);
                ready++;
                if (lines.length() > 1 << 16) {
                    write(lines, ready);
                    ready = 0;
                }
            }
            write(lines, ready);
            flushStream();
        }
    }

    private void write(StringBuilder lines, long events) {
        if (problem == null) {
            try {
                out.write(lines.toString().getBytes(StandardCharsets.UTF_8));
                count += events;
            } catch (IOException failed) {
                problem = failed;
            }
        }
        if (problem != null) {
            unwritten += events;
        }
        lines.setLength(0);
    }

    private void flushStream() {
        if (problem == null) {
            try {
                out.flush();
            } catch (IOException failed) {
                problem = failed;
            }
        }
    }

    private static void line(StringBuilder line, Event event) {
        line.append("{\"kind\":\"event\",\"i\":").append(event.i).append(",\"th\":");
        Json.text(line, event.thread);
        line.append(",\"t\":").append(event.t).append(",\"ph\":\"").append(event.ph).append("\",\"f\":");
        Json.text(line, event.f);
        if (event.id != null) {
            line.append(",\"id\":");
            Json.text(line, event.id);
        }
        number(line, "c", event.c);
        if (event.keys != null) {
            line.append(",\"keys\":");
            Json.texts(line, event.keys);
        }
        number(line, "delay_ns", event.delayNs);
        number(line, "deadline_t", event.deadlineT);
        number(line, "t_call", event.sinceT);
        number(line, "out", event.out);
        if (event.err != null) {
            line.append(",\"err\":");
            Json.text(line, event.err);
        }
        if (event.reading) {
            line.append(",\"state\":{");
            int start = line.length();
            number(line, "watched", event.watched);
            number(line, "delayed", event.delayed);
            if (line.length() > start) {
                line.deleteCharAt(start);
            }
            line.append('}');
        }
        line.append("}\n");
    }

    private static void number(StringBuilder line, String name, Long value) {
        if (value != null) {
            line.append(",\"").append(name).append("\":").append(value.longValue());
        }
    }

    /**
     * Write all there is and the end record, and close the stream. What threads record afterwards is lost: end them
     * first. Throws what went wrong in writing.
     */
    public void close() throws IOException {
        close(true);
    }

    /**
     * Write all there is, and close the stream without an end record: the run did not come to its end, and no clause that
     * needs it whole may pass.
     */
    public void closeUnfinished() throws IOException {
        close(false);
    }

    private void close(boolean finished) throws IOException {
        if (stop()) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException exiting) {
                // It is running already, and finds that all is written.
            }
            drain(true);
            synchronized (writing) {
                if (finished && whole && problem == null) {
                    StringBuilder end = new StringBuilder("{\"kind\":\"end\",\"events\":");
                    write(end.append(count).append(",\"dropped\":").append(dropped()).append("}\n"), 0);
                }
                try {
                    out.close();
                } catch (IOException failed) {
                    problem = problem == null ? failed : problem;
                }
                if (problem != null) {
                    throw problem;
                }
            }
        }
    }

    /** End the writer; whether this call did. */
    private boolean stop() {
        synchronized (writing) {
            if (closed) {
                return false;
            }
            closed = true;
            writing.notifyAll();
        }
        return true;
    }

    private final class Writer implements Runnable {
        public void run() {
            try {
                while (!closed) {
                    drain(false);
                    synchronized (writing) {
                        if (!closed) {
                            writing.wait(WRITE_EVERY_MS);
                        }
                    }
                }
            } catch (InterruptedException ended) {
                // No other code can interrupt this thread; close() writes the rest.
            }
        }
    }

    /** The program ends without a close: all events go to the file, without an end record. */
    private final class AtExit implements Runnable {
        public void run() {
            if (stop()) {
                drain(true);
                synchronized (writing) {
                    try {
                        out.close();
                    } catch (IOException failed) {
                        System.err.println("the trace could not be written to its end: " + failed);
                    }
                }
            }
        }
    }
}
