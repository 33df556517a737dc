// A toy timing wheel that speaks purgatorio-subject/1: a subject in about 100 lines of JavaScript, nothing to install.
//
//     purgatorio verify --engine process --command 'node examples/subjects/toy_wheel.js'
//
// With --bug one character of `advance` is another, and `verify` says what that breaks. Tasks are asynchronous, so that
// one can be held at a gate while other calls are made.
"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const readline = require("node:readline");

const TICK_NS = 1_000_000;
const BUCKETS = 16;
const BUG = process.argv.includes("--bug");

class Wheel {
  constructor(nowNs, fire) {
    this.tick = Math.floor(nowNs / TICK_NS);
    this.nowNs = nowNs;
    this.buckets = Array.from({ length: BUCKETS }, () => new Map());
    this.places = new Map(); // task to bucket, so that a cancel looks into one
    this.fire = fire;
  }

  async add(task, delayNs) {
    const dueTick = Math.ceil((this.nowNs + delayNs) / TICK_NS); // rounded up: never early
    if (dueTick <= this.tick) {
      await this.fire(task);
      return;
    }
    const bucket = this.buckets[dueTick % BUCKETS];
    bucket.set(task, dueTick);
    this.places.set(task, bucket);
  }

  cancel(task) {
    const bucket = this.places.get(task);
    this.places.delete(task);
    return bucket === undefined ? false : bucket.delete(task);
  }

  async advance(nowNs) {
    const last = this.tick;
    this.nowNs = nowNs;
    this.tick = Math.floor(nowNs / TICK_NS);
    // Over a whole revolution and more every bucket is visited once.
    for (let tick = Math.max(last + 1, this.tick - BUCKETS + 1); tick <= this.tick; tick++) {
      for (const [task, dueTick] of [...this.buckets[tick % BUCKETS]]) {
        const due = BUG ? dueTick >= this.tick : dueTick <= this.tick;
        // It may have been cancelled while another task stood at its gate.
        if (due && this.cancel(task)) {
          await this.fire(task);
        }
      }
    }
  }

  size() {
    return this.places.size;
  }
}

const DESCRIPTION = {
  protocol: "purgatorio-subject/1.1",
  name: "toy-wheel-js",
  version: "1",
  language: "JavaScript",
  capabilities: ["timer", "virtual-time", "cancel", "gauge"],
  profile: "timer-cancel-barrier",
  reports: ["timer_fire"],
  tick_ns: TICK_NS,
  wheel_size: BUCKETS,
  early_ns: 0,
  late_ns: TICK_NS,
  lanes: 4,
  gates: ["timer_fire"],
};

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const here = new AsyncLocalStorage(); // the number of the call from within which something happens

let wheel = null;
let gates = [];
let holds = 0;
const held = new Map(); // hold to what lets it go on

const gate = (f, id) => {
  if (!gates.includes(f)) return undefined;
  const hold = ++holds;
  say({ m: "held", hold, f, id, during: here.getStore() });
  return new Promise((goOn) => held.set(hold, goOn));
};

const fire = async (id) => {
  say({ m: "enter", f: "timer_fire", id, during: here.getStore() });
  await gate("timer_fire", id);
  say({ m: "leave", f: "timer_fire", id, during: here.getStore() });
};

const calls = {
  start: (call) => {
    gates = call.gates ?? [];
    wheel = new Wheel(call.now_ns, fire);
  },
  add: (call) => wheel.add(call.id, call.delay_ns),
  cancel: (call) => ({ out: wheel.cancel(call.id) ? 1 : 0 }),
  advance: (call) => wheel.advance(call.now_ns),
  go: (call) => {
    for (const hold of call.holds) {
      held.get(hold)();
      held.delete(hold);
    }
  },
  gauge: () => ({ delayed: wheel.size() }),
  quiesce: () => ({ delayed: wheel.size() }),
  stop: () => ({}),
};

const answer = async (call) => say({ m: "answer", n: call.n, ...(await calls[call.m](call)) });

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const call = JSON.parse(line);
  if (call.m === "describe") {
    say({ m: "description", n: call.n, ...DESCRIPTION });
  } else if (calls[call.m] === undefined) {
    say({ m: "answer", n: call.n, err: "UnknownCall" });
  } else {
    here.run(call.n, () => answer(call));
  }
});
