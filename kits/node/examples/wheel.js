// A toy timing wheel that does not await its tasks, and its adapter: purgatorio verify --command 'node wheel.js'; with the
// bug: 'node wheel.js --bug'.
"use strict";

const { run } = require("..");

const TICK_NS = 1_000_000;
const BUCKETS = 16;
const BUG = process.argv.includes("--bug");

class Wheel {
  constructor(nowNs) {
    this.nowNs = nowNs;
    this.buckets = Array.from({ length: BUCKETS }, () => new Map());
    this.places = new Map(); // task to bucket, so that a cancel looks into one
  }

  add(task, delayNs) {
    const dueTick = Math.ceil((this.nowNs + delayNs) / TICK_NS); // rounded up: never early
    if (dueTick <= Math.floor(this.nowNs / TICK_NS)) {
      task();
    } else {
      const bucket = this.buckets[dueTick % BUCKETS];
      bucket.set(task, dueTick);
      this.places.set(task, bucket);
    }
    return task;
  }

  cancel(task) {
    const bucket = this.places.get(task);
    this.places.delete(task);
    return bucket === undefined ? false : bucket.delete(task);
  }

  advanceTo(nowNs) {
    const last = Math.floor(this.nowNs / TICK_NS);
    const now = Math.floor(nowNs / TICK_NS);
    this.nowNs = nowNs;
    for (let tick = Math.max(last + 1, now - BUCKETS + 1); tick <= now; tick++) {
      for (const [task, dueTick] of [...this.buckets[tick % BUCKETS]]) {
        const due = BUG ? dueTick >= now : dueTick <= now; // the bug: one character
        // Another task of the bucket may have cancelled it.
        if (due && this.cancel(task)) task();
      }
    }
  }

  size() {
    return this.places.size;
  }
}

class Adapter extends Wheel {
  add(task, delayNs) {
    return super.add(task.now, delayNs);
  }
}

run(
  {
    name: "toy-wheel-node", version: "1", profile: "timer-cancel-barrier",
    tickNs: TICK_NS, wheelSize: BUCKETS, earlyNs: 0, lateNs: TICK_NS,
    can: ["timer", "virtual-time", "cancel", "gauge"],
  },
  { timer: (virtual, nowNs) => new Adapter(nowNs) },
);
