package purgatorio.kit;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;

/** The main method of an adapter: one class that implements {@link Factory} gives every path. */
@SuppressWarnings("cast") // janino does not infer them
public final class Kit {
    private static final String USAGE = "no argument: a subject of purgatorio-subject/1.2 on standard input and output\n"
            + "races FOLDER [--rounds N] [--seed N] [--scenario NAME]: race its threads, and record into FOLDER what came\n"
            + "scenarios: list the races";

    private Kit() {
    }

    /**
     * Do what the arguments say, and end the process: 0 done, 2 wrong arguments, 1 a race that got stuck (then the
     * stacks of all threads are on standard error), or in which a call ended with an exception.
     */
    public static void run(Promises promises, Factory factory, String[] arguments) throws Exception {
        int status = 2;
        try {
            status = started(promises, factory, arguments);
        } catch (IllegalArgumentException wrong) {
            System.err.println(wrong.getMessage() + "\n" + USAGE);
        }
        System.out.flush();
        // Threads of the subject may not end by themselves.
        System.exit(status);
    }

    private static int started(Promises promises, Factory factory, String[] arguments) throws Exception {
        if (arguments.length == 0) {
            FileOutputStream out = new FileOutputStream(FileDescriptor.out);
            // Whatever else is printed in this process must not come between the lines of the protocol.
            System.setOut(System.err);
            Subject.serve(promises, factory, System.in, new BufferedOutputStream(out, 1 << 16));
            return 0;
        }
        if (arguments[0].equals("scenarios")) {
            System.out.print(Races.listed(promises));
            return 0;
        }
        if (!arguments[0].equals("races") || arguments.length < 2) {
            throw new IllegalArgumentException("unknown: " + String.join(" ", arguments));
        }
        long rounds = 5000;
        long seed = 1;
        String scenario = null;
        for (int index = 2; index < arguments.length; index += 2) {
            if (index + 1 == arguments.length) {
                throw new IllegalArgumentException(arguments[index] + " wants a value");
            }
            String value = arguments[index + 1];
            if (arguments[index].equals("--rounds")) {
                rounds = Long.parseLong(value);
            } else if (arguments[index].equals("--seed")) {
                seed = Long.parseLong(value);
            } else if (arguments[index].equals("--scenario")) {
                scenario = value;
            } else {
                throw new IllegalArgumentException("unknown option " + arguments[index]);
            }
        }
        return raced(promises, factory, Paths.get(arguments[1]), rounds, seed, scenario) ? 0 : 1;
    }

    private static boolean raced(Promises promises, Factory factory, Path folder, long rounds, long seed,
            String scenario) throws Exception {
        if (!promises.knows("real-time")) {
            throw new IllegalArgumentException("races need real time, which " + promises.name() + " does not declare");
        }
        folder.toFile().mkdirs();
        boolean whole = true;
        List<String> parts = Races.parts(promises, scenario);
        for (int index = 0; index < parts.size(); index++) {
            String part = (String) parts.get(index);
            Path file = folder.resolve(promises.name() + "-" + part + "-races-seed" + seed + ".jsonl.gz");
            Races races = new Races(promises, factory, part, scenario, seed);
            whole &= races.run(file, rounds);
        }
        System.out.println("races meet a window of a few lines by chance only: `purgatorio verify` pauses threads in it");
        return whole;
    }
}
