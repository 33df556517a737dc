package purgatorio;

import java.util.HashMap;
import java.util.Map;
import purgatorio.kit.Factory;
import purgatorio.kit.Kit;
import purgatorio.kit.Promises;
import purgatorio.kit.TimerUnderTest;

/**
 * The timers that Purgatorio drives by itself, behind the kit: {@code Timers ADAPTER NAME=VALUE...}. The values are the
 * promises of the timer, and the options that its adapter is made with.
 */
public final class Timers {
    private Timers() {
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        Map options = new HashMap();
        for (int index = 1; index < arguments.length; index++) {
            String[] pair = arguments[index].split("=", 2);
            options.put(pair[0], pair[1]);
        }
        Promises promises = new Promises((String) options.get("name"), (String) options.get("profile"));
        promises.version((String) options.get("version")).lanes(4);
        promises.unitNs(number(options, "unit_ns")).delaysNs(number(options, "least_ns"), number(options, "most_ns"));
        promises.can("timer", "real-time", "cancel");
        if (options.containsKey("tick_ns")) {
            promises.tickNs(number(options, "tick_ns"));
        }
        if (options.containsKey("early_ns")) {
            promises.earlyNs(number(options, "early_ns"));
        }
        if (options.containsKey("late_ns")) {
            promises.lateNs(number(options, "late_ns"));
        }
        if (options.containsKey("wheel_size")) {
            promises.wheelSize(number(options, "wheel_size"));
        }
        if (options.containsKey("counts")) {
            promises.can("gauge");
        }
        if (options.containsKey("periodic")) {
            promises.catchUp((String) options.get("catch_up")).can(((String) options.get("periodic")).split(" "));
        }
        Kit.run(promises, new Made("purgatorio." + arguments[0], options), new String[0]);
    }

    static long number(Map options, String name) {
        return Long.parseLong((String) options.get(name));
    }

    private static final class Made extends Factory {
        private final String adapter;
        private final Map options;

        Made(String adapter, Map options) {
            this.adapter = adapter;
            this.options = options;
        }

        public TimerUnderTest timer(boolean virtual, long nowNs) throws Exception {
            Class named = Class.forName(adapter);
            return (TimerUnderTest) named.getDeclaredConstructor(new Class[] {Map.class})
                    .newInstance(new Object[] {options});
        }
    }
}
