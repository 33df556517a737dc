package purgatorio.kit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What an implementation is and promises: the description of the protocol and the header of a trace in one. A constant
 * that is not set is not judged by. Setters answer this object.
 */
@SuppressWarnings("cast") // janino does not infer them
public final class Promises {
    private static final List<String> FUNCTIONS_SINCE_2 = Collections.unmodifiableList(
            Arrays.asList(new String[] {"timer_fixed_rate", "timer_fixed_delay", "timer_reset", "halted"}));
    private static final String EARLY_REAL = "early_real_ns";
    private static final String LATE_REAL = "late_real_ns";

    private final String name;
    private final String profile;
    private String version = "";
    private final Map<String, Long> constants = new LinkedHashMap<String, Long>();
    private final Map<String, Long> limits = new LinkedHashMap<String, Long>();
    private final Map<String, String> words = new LinkedHashMap<String, String>();
    private final Set<String> capabilities = new LinkedHashSet<String>(Collections.singleton("failing"));
    private final Set<String> lacks = new LinkedHashSet<String>();
    private int lanes = 1;

    /**
     * @param name of the implementation, as its makers call it
     * @param profile the promises that it is held to: {@code locked}, {@code pending-flag}, {@code timer} or another of
     *     docs/clauses.md
     */
    public Promises(String name, String profile) {
        this.name = name;
        this.profile = profile;
    }

    /** Of the implementation. */
    public Promises version(String value) {
        version = value;
        return this;
    }

    /** Granularity. */
    public Promises tickNs(long value) {
        return constant("tick_ns", value);
    }

    /** Buckets of one level. */
    public Promises wheelSize(long value) {
        return constant("wheel_size", value);
    }

    /** How much before its deadline a task may fire. */
    public Promises earlyNs(long value) {
        return constant("early_ns", value);
    }

    /** The same in real time, if it is another there. */
    public Promises earlyRealNs(long value) {
        return constant(EARLY_REAL, value);
    }

    /** How much after its deadline, if the clock were advanced at every tick. */
    public Promises lateNs(long value) {
        return constant("late_ns", value);
    }

    /** How much after its deadline in real time, if no other program takes the processor. */
    public Promises lateRealNs(long value) {
        return constant(LATE_REAL, value);
    }

    /** Completed operations that may stay watched. */
    public Promises purgeInterval(long value) {
        return constant("purge_interval", value);
    }

    /** Times and delays are multiples of this; a millisecond for most timers of the JVM. */
    public Promises unitNs(long value) {
        limits.put("unit_ns", Long.valueOf(value));
        return this;
    }

    /** The smallest delay that it takes, below zero if a deadline may have passed, and the largest. */
    public Promises delaysNs(long least, long most) {
        limits.put("least_delay_ns", Long.valueOf(least));
        limits.put("most_delay_ns", Long.valueOf(most));
        return this;
    }

    /**
     * What a fixed rate does about runs that it missed: {@code burst} all of them, {@code once} one for all, {@code skip}
     * none, {@code restart} one, from which the periods count.
     */
    public Promises catchUp(String rule) {
        words.put("catch_up", rule);
        return this;
    }

    /** A task that a task adds without a delay runs in the {@code same} advance, or not before the {@code next}. */
    public Promises turn(String rule) {
        words.put("turn", rule);
        return this;
    }

    /** Calls that may be under way at once, in real time and at gates: 1 to 16. */
    public Promises lanes(int value) {
        lanes = value;
        return this;
    }

    /**
     * What it can do: {@code timer}, {@code purgatory} or both; {@code virtual-time}, {@code real-time} or both; and of
     * {@code cancel}, {@code cancel-key} (with {@code cancel-key-all} where what a key
     * gives back waits under its other keys no more), {@code force}, {@code gauge}, and {@code add-again} or, for tasks
     * that keep their first delay, {@code add-same}; {@code fixed-rate}, {@code fixed-delay} and {@code reset} (see
     * {@link TimerUnderTest}). {@code failing} (callbacks can end with an error) need not be said;
     * see {@link #lacks}.
     */
    public Promises can(String... names) {
        for (int index = 0; index < names.length; index++) {
            capabilities.add(names[index]);
        }
        return this;
    }

    /**
     * What it cannot do: {@code failing}, if it lets the error of a callback through to its caller. And the hooks that
     * the adapter never calls, by the names of the protocol: {@code timer_add}, {@code timer_cancel} and
     * {@code timer_fire}, if the time-outs are inside code that it cannot reach. Then the clauses of timers are SKIPPED.
     */
    public Promises lacks(String... names) {
        lacks.addAll(Arrays.asList(names));
        capabilities.removeAll(lacks);
        return this;
    }

    /** Of these functions, those that are reported. */
    List<String> reported(List<String> functions) {
        List<String> told = new ArrayList<String>(functions);
        told.removeAll(lacks);
        return told;
    }

    /** The same, with a late bound that leaves the machine some time; where none is promised there is none. */
    Promises lateBy(long slackNs) {
        Promises other = new Promises(name, profile).version(version).lanes(lanes);
        other.constants.putAll(constants);
        other.limits.putAll(limits);
        other.capabilities.clear();
        other.capabilities.addAll(capabilities);
        other.words.putAll(words);
        other.lacks.addAll(lacks);
        Long late = (Long) constants.get("late_ns");
        return late == null ? other : other.lateNs(late.longValue() + slackNs);
    }

    boolean knows(String capability) {
        return capabilities.contains(capability);
    }

    int lanes() {
        return lanes;
    }

    String name() {
        return name;
    }

    private Promises constant(String field, long value) {
        constants.put(field, Long.valueOf(value));
        return this;
    }

    /**
     * The answer to {@code describe}, without the braces.
     *
     * @param places the functions that events tell of; a thread can be stopped in each
     */
    String description(List<String> places) {
        StringBuilder line = new StringBuilder("\"protocol\":\"purgatorio-subject/1.2\"");
        about(line);
        line.append(",\"profile\":");
        Json.text(line, profile);
        line.append(",\"capabilities\":");
        Json.texts(line, new ArrayList<String>(capabilities));
        line.append(",\"reports\":");
        Json.texts(line, places);
        line.append(",\"gates\":");
        Json.texts(line, places);
        numbers(line, constants);
        numbers(line, limits);
        texts(line);
        return line.append(",\"lanes\":").append(lanes).toString();
    }

    /**
     * The first line of a trace.
     *
     * @param run the name of the run
     * @param clock {@code monotonic}, or {@code manual} for virtual time
     * @param recorded the functions that are always recorded
     */
    public String header(String run, String clock, List<String> recorded) {
        boolean periodic = !words.isEmpty() || !Collections.disjoint(recorded, FUNCTIONS_SINCE_2);
        StringBuilder line = new StringBuilder("{\"kind\":\"header\",\"format\":\"purgatorio-trace/" + (periodic ? 2 : 1));
        line.append("\",\"run\":");
        Json.text(line, run);
        StringBuilder implementation = new StringBuilder();
        about(implementation);
        line.append(",\"implementation\":{").append(implementation.substring(1)).append("},\"profile\":");
        Json.text(line, profile);
        Map<String, Long> timer = new LinkedHashMap<String, Long>(constants);
        Object purge = timer.remove("purge_interval");
        timer.remove(LATE_REAL);
        Long early = (Long) timer.remove(EARLY_REAL);
        if (early != null && !"manual".equals(clock)) {
            timer.put("early_ns", early);
        }
        StringBuilder numbers = new StringBuilder();
        numbers(numbers, timer);
        texts(numbers);
        line.append(",\"timer\":{").append(numbers.length() == 0 ? "" : numbers.substring(1)).append('}');
        if (purge != null) {
            line.append(",\"purge_interval\":").append(purge);
        }
        line.append(",\"clock\":{\"id\":");
        Json.text(line, clock);
        line.append(",\"unit\":\"ns\"},\"recorded\":");
        Json.texts(line, recorded);
        return line.append('}').toString();
    }

    private void about(StringBuilder line) {
        line.append(",\"name\":");
        Json.text(line, name);
        line.append(",\"version\":");
        Json.text(line, version);
        line.append(",\"language\":\"Java\"");
    }

    private void texts(StringBuilder line) {
        for (Object name : words.keySet()) {
            line.append(",\"").append((String) name).append("\":");
            Json.text(line, (String) words.get(name));
        }
    }

    private static void numbers(StringBuilder line, Map<String, Long> values) {
        for (Object name : values.keySet()) {
            line.append(",\"").append((String) name).append("\":").append(((Long) values.get(name)).longValue());
        }
    }
}
