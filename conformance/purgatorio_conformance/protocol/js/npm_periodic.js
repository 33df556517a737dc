// Periodic timers of npm behind purgatorio-subject/1.2, in real time: the argument names the package, `toad-scheduler` or
// `set-interval-async`, or `interval` for Node's own setInterval.
//
// A package is looked for in the current folder's node_modules, then by NODE_PATH. With --version its version is printed;
// status 4: it is not installed.
"use strict";

const readline = require("node:readline");

const MS_NS = 1_000_000;
const [, , NAME] = process.argv;

function found(name) {
  try {
    return require(require.resolve(name, { paths: [process.cwd()] }));
  } catch (missing) {
    process.stderr.write(`the package ${name} is not installed`);
    process.exit(4);
  }
}

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const run = (id) => () => say({ m: "fired", id, th: "loop" });

// For each: what it has, how a periodic task is begun, and how it is ended.
const TIMERS = {
  interval: () => ({
    capabilities: ["fixed-rate"],
    begin: (id, ms) => setInterval(run(id), ms),
    end: (_, handle) => clearInterval(handle),
  }),
  "toad-scheduler": () => {
    const { SimpleIntervalJob, Task, ToadScheduler } = found("toad-scheduler");
    const scheduler = new ToadScheduler();
    return {
      capabilities: ["fixed-rate"],
      begin: (id, milliseconds) =>
        scheduler.addSimpleIntervalJob(new SimpleIntervalJob({ milliseconds }, new Task(id, run(id)), { id })),
      end: (id) => scheduler.removeById(id),
    };
  },
  "set-interval-async": () => {
    const { setIntervalAsync, clearIntervalAsync } = found("set-interval-async/fixed");
    return {
      capabilities: ["fixed-delay"],
      begin: (id, ms) => setIntervalAsync(async () => run(id)(), ms),
      end: (_, handle) => void clearIntervalAsync(handle),
    };
  },
};

const timer = TIMERS[NAME]();
const version = () => {
  if (NAME === "interval") {
    return process.versions.node;
  }
  // Some packages do not export their package.json.
  const folder = require.resolve(NAME, { paths: [process.cwd()] }).split(`/${NAME}/`)[0];
  return JSON.parse(require("node:fs").readFileSync(`${folder}/${NAME}/package.json`, "utf8")).version;
};
if (process.argv.includes("--version")) {
  process.stdout.write(`${version()}\n`);
  process.exit(0);
}

const DESCRIPTION = {
  protocol: "purgatorio-subject/1.2",
  name: NAME,
  version: version(),
  language: "JavaScript",
  capabilities: ["timer", "real-time", "cancel", "period-first", ...timer.capabilities],
  reports: ["timer_fire"],
  profile: "timer",
  unit_ns: MS_NS,
  tick_ns: MS_NS,
  least_delay_ns: MS_NS,
  // Node's clock of timers is read once a turn, and rounded to whole milliseconds.
  early_ns: 2 * MS_NS,
  late_ns: 0,
  // Each run arms the next one, from when it began.
  ...(timer.capabilities.includes("fixed-rate") ? { catch_up: "restart" } : {}),
};

const handles = new Map();
const calls = {
  start: () => {},
  add: (call) => handles.set(call.id, setTimeout(run(call.id), call.delay_ns / MS_NS)),
  repeat: (call) => handles.set(call.id, timer.begin(call.id, call.period_ns / MS_NS)),
  cancel: (call) => {
    if (call.id.startsWith("t-")) {
      clearTimeout(handles.get(call.id));
    } else {
      timer.end(call.id, handles.get(call.id));
    }
    return { out: 1 };
  },
  quiesce: () => {},
  stop: () => process.stdin.unref?.(),
};

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const call = JSON.parse(line);
  if (call.m === "describe") {
    say({ m: "description", n: call.n, ...DESCRIPTION });
    return;
  }
  const made = calls[call.m];
  const result = made === undefined ? { err: "UnknownCall" } : made(call);
  say({ m: "answer", n: call.n, ...(result?.out === undefined && result?.err === undefined ? {} : result) });
}).on("close", () => process.exit(0));
