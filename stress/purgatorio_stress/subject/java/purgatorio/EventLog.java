package purgatorio;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The recorder in the JVM: one ticket counter, one buffer for each thread, times by System.nanoTime().
 *
 * A call takes its time first and its ticket last, a return its ticket first and its time last: the tickets enclose
 * the call as closely as they can, and a deadline counted from a call's time is the earliest that can be meant.
 * No thread waits for another: a buffer has one writer, which publishes by a volatile count, and one reader.
 */
final class EventLog {
    static final int CALL = 0;
    static final int RET = 1;
    static final int AT = 2;
    private static final String[] PHASES = {"call", "ret", "at"};

    /** Functions, by the index that Buffer.add takes. */
    static final int ADD = 0;
    static final int CANCEL = 1;
    static final int FIRE = 2;
    static final int GAUGE = 3;
    static final int QUIESCE = 4;
    private static final String[] FUNCTIONS = {"timer_add", "timer_cancel", "timer_fire", "gauge", "quiesce"};

    /** A field that is not there. No clock reading and no count of ours has this value. */
    static final long NONE = Long.MIN_VALUE + 12345;

    private static final int WIDTH = 8;

    private final AtomicLong ticket = new AtomicLong();

    /** The buffer of one thread, of a fixed size: what does not fit is counted, not waited for. */
    final class Buffer {
        private final String thread;
        private final int capacity;
        private final long[] numbers;
        private final String[] ids;
        private final String[] errors;
        private volatile int written;
        private volatile int dropped;
        private int printed;

        Buffer(String thread, int capacity) {
            this.thread = thread;
            this.capacity = capacity;
            this.numbers = new long[capacity * WIDTH];
            this.ids = new String[capacity];
            this.errors = new String[capacity];
        }

        /** Record that a call is about to start; returns its ticket, or -1 when it was dropped. */
        long call(int function, String id, long delayNs) {
            if (written >= capacity) {
                dropped = dropped + 1;
                return -1;
            }
            long t = System.nanoTime();
            long i = ticket.getAndIncrement();
            put(i, t, CALL, function, id, NONE, delayNs, NONE, NONE, null);
            return i;
        }

        /** Record that the call with ticket c has ended. For GAUGE out is the reading. */
        void ret(int function, String id, long c, long deadlineT, long out, String error) {
            if (c < 0 || written >= capacity) {
                dropped = dropped + 1;
                return;
            }
            long i = ticket.getAndIncrement();
            put(i, System.nanoTime(), RET, function, id, c, NONE, deadlineT, out, error);
        }

        /** Record a point. For QUIESCE out is the reading. */
        void at(int function, long out) {
            if (written >= capacity) {
                dropped = dropped + 1;
                return;
            }
            long t = System.nanoTime();
            put(ticket.getAndIncrement(), t, AT, function, null, NONE, NONE, NONE, out, null);
        }

        /** The time of the call with this ticket, which this thread recorded last. */
        long lastTime() {
            return numbers[(written - 1) * WIDTH + 1];
        }

        private void put(long i, long t, int phase, int function, String id, long c, long delayNs, long deadlineT,
                long out, String error) {
            int row = written;
            int at = row * WIDTH;
            numbers[at] = i;
            numbers[at + 1] = t;
            numbers[at + 2] = phase;
            numbers[at + 3] = function;
            numbers[at + 4] = c;
            numbers[at + 5] = delayNs;
            numbers[at + 6] = deadlineT;
            numbers[at + 7] = out;
            ids[row] = id;
            errors[row] = error;
            written = row + 1;
        }

        String thread() {
            return thread;
        }

        int dropped() {
            return dropped;
        }

        /** Append the lines of the events since the last print; only the printing thread calls this. */
        int print(StringBuilder lines) {
            int end = written;
            int count = end - printed;
            for (int row = printed; row < end; row++) {
                line(lines, row);
            }
            printed = end;
            return count;
        }

        private void line(StringBuilder lines, int row) {
            int at = row * WIDTH;
            int function = (int) numbers[at + 3];
            boolean reading = function == GAUGE || function == QUIESCE;
            lines.append("{\"kind\":\"event\",\"i\":").append(numbers[at]);
            lines.append(",\"th\":\"").append(thread).append("\",\"t\":").append(numbers[at + 1]);
            lines.append(",\"ph\":\"").append(PHASES[(int) numbers[at + 2]]);
            lines.append("\",\"f\":\"").append(FUNCTIONS[function]).append('"');
            text(lines, "id", ids[row]);
            number(lines, "c", numbers[at + 4]);
            number(lines, "delay_ns", numbers[at + 5]);
            number(lines, "deadline_t", numbers[at + 6]);
            if (function == QUIESCE && numbers[at + 7] == NONE) {
                lines.append(",\"state\":{}");
            } else if (reading && numbers[at + 7] != NONE) {
                lines.append(",\"state\":{\"delayed\":").append(numbers[at + 7]).append('}');
            } else {
                number(lines, "out", numbers[at + 7]);
            }
            text(lines, "err", errors[row]);
            lines.append("}\n");
        }
    }

    private static void number(StringBuilder lines, String name, long value) {
        if (value != NONE) {
            lines.append(",\"").append(name).append("\":").append(value);
        }
    }

    /** Our ids and class names need no escapes. */
    private static void text(StringBuilder lines, String name, String value) {
        if (value != null) {
            lines.append(",\"").append(name).append("\":\"").append(value).append('"');
        }
    }
}
