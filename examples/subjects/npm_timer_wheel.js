// The npm package `timer-wheel` as a subject of purgatorio-subject/1.
//
//     npm install timer-wheel    (in any folder; NODE_PATH says where)
//     NODE_PATH=node_modules purgatorio verify --engine process --command 'node examples/subjects/npm_timer_wheel.js'
//
// The wheel reads `Date.now()` and nothing else, so a `Date.now` that the driver moves gives it virtual time; with
// --real it is advanced every 5 ms by the clock of the machine. It counts in milliseconds, delays are 1000 ms or more,
// and `remove()` does not say whether the item was still there.
"use strict";

const path = require("node:path");
const readline = require("node:readline");
const { TimerWheel } = require("timer-wheel");

const MS = 1_000_000;
const REAL = process.argv.includes("--real");
const { version } = require(path.join(require.resolve("timer-wheel"), "../../../package.json"));

const DESCRIPTION = {
  protocol: "purgatorio-subject/1",
  name: "npm timer-wheel",
  version,
  language: "JavaScript",
  profile: "npm-timer-wheel",
  capabilities: ["timer", REAL ? "real-time" : "virtual-time", "cancel", "cancel-barrier"],
  reports: ["timer_fire"],
  tick_ns: 1024 * MS,
  wheel_size: 64,
  early_ns: REAL ? MS : 0, // a delay is added to a clock that has dropped the fraction of the millisecond
  unit_ns: MS,
  least_delay_ns: 1000 * MS,
  most_delay_ns: 100 * 86_400_000 * MS,
};

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

let nowMs = 0;
let wheel = null;
const handles = new Map();

const advance = () => {
  for (const task of wheel.advance()) {
    say({ m: "fired", id: task });
  }
};

const calls = {
  start: (call) => {
    if (!REAL) {
      nowMs = call.now_ns / MS;
      Date.now = () => nowMs;
    }
    wheel = new TimerWheel();
    handles.clear();
    if (REAL) {
      setInterval(advance, 5).unref();
    }
  },
  add: (call) => void handles.set(call.id, wheel.schedule(call.id, call.delay_ns / MS)),
  cancel: (call) => handles.get(call.id).remove(),
  advance: (call) => {
    nowMs = call.now_ns / MS;
    advance();
  },
  quiesce: () => {},
  stop: () => {},
};

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const call = JSON.parse(line);
  if (call.m === "describe") {
    say({ m: "description", n: call.n, ...DESCRIPTION });
    return;
  }
  try {
    calls[call.m](call);
    say({ m: "answer", n: call.n });
  } catch (error) {
    say({ m: "answer", n: call.n, err: error.name });
  }
});
