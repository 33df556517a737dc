// The npm package `timer-wheel` behind purgatorio-subject/1, in virtual time: it has no clock of its own but Date.now(),
// which is the driver's here, so that what it does is exact and the same in every run.
//
// The package is looked for in the current folder's node_modules, then by NODE_PATH. With --version its version is
// printed; status 4: it is not installed.
"use strict";

const readline = require("node:readline");

const MS_NS = 1_000_000;

function found(name) {
  try {
    return require(require.resolve(name, { paths: [process.cwd()] }));
  } catch (missing) {
    process.stderr.write(`the package ${name} is not installed`);
    process.exit(4);
  }
}

const VERSION = found("timer-wheel/package.json").version;
if (process.argv.includes("--version")) {
  process.stdout.write(`${VERSION}\n`);
  process.exit(0);
}
const { TimerWheel } = found("timer-wheel");

const DESCRIPTION = {
  protocol: "purgatorio-subject/1",
  name: "timer-wheel",
  version: VERSION,
  language: "JavaScript",
  capabilities: ["timer", "virtual-time", "cancel"],
  reports: ["timer_fire"],
  profile: "npm-timer-wheel",
  unit_ns: MS_NS,
  least_delay_ns: 1_000 * MS_NS, // "has a minimum delay of 1000 ms"
  tick_ns: 1_024 * MS_NS,
  wheel_size: 64,
  early_ns: 0, // virtual time stands at whole milliseconds, so nothing is truncated
};

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

let nowMs = 0;
let wheel = null;
let handles = null;
Date.now = () => nowMs;

const calls = {
  start: (call) => {
    nowMs = call.now_ns / MS_NS;
    wheel = new TimerWheel();
    handles = new Map();
  },
  add: (call) => {
    handles.set(call.id, wheel.schedule(call.id, call.delay_ns / MS_NS));
  },
  // `remove` says nothing, so there is no `out`.
  cancel: (call) => handles.get(call.id).remove(),
  advance: (call) => {
    nowMs = call.now_ns / MS_NS;
    for (const id of wheel.advance()) {
      say({ m: "fired", id });
    }
  },
  quiesce: () => ({}),
  stop: () => ({}),
};

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const call = JSON.parse(line);
  if (call.m === "describe") {
    say({ m: "description", n: call.n, ...DESCRIPTION });
  } else if (calls[call.m] === undefined) {
    say({ m: "answer", n: call.n, err: "UnknownCall" });
  } else {
    say({ m: "answer", n: call.n, ...calls[call.m](call) });
  }
});
