// A toy timer with periodic tasks and resets, and its adapter: purgatorio verify --command 'node periodic.js'. With the
// bug: 'node periodic.js --bug'.
"use strict";

const { run } = require("..");

const BUG = process.argv.includes("--bug");

class Timer {
  constructor(nowNs) {
    this.nowNs = nowNs;
    this.watched = new Set();
  }

  enter(task, delayNs, more) {
    const one = { task, dueNs: this.nowNs + delayNs, ...more };
    this.watched.add(one);
    return one;
  }

  add(task, delayNs) {
    return this.enter(task, delayNs);
  }

  fixedRate(task, firstNs, periodNs) {
    return this.enter(task, firstNs, { periodNs, atRate: true });
  }

  fixedDelay(task, firstNs, periodNs) {
    return this.enter(task, firstNs, { periodNs });
  }

  reset(one, delayNs) {
    if (!this.watched.has(one)) return false;
    one.dueNs = this.nowNs + delayNs;
    return true;
  }

  cancel(one) {
    return this.watched.delete(one);
  }

  moveTo(nowNs) {
    this.nowNs = nowNs;
  }

  async advanceTo(nowNs) {
    this.nowNs = nowNs;
    for (;;) {
      const [first] = [...this.watched].sort((a, b) => a.dueNs - b.dueNs);
      if (first === undefined || first.dueNs > nowNs) return;
      // The bug: a late run moves all later ones.
      if (first.atRate) first.dueNs = (BUG ? nowNs : first.dueNs) + first.periodNs;
      else if (first.periodNs) first.dueNs = Infinity;
      else this.watched.delete(first);
      await first.task();
      if (first.dueNs === Infinity) first.dueNs = this.nowNs + first.periodNs;
    }
  }
}

run(
  {
    name: "toy-periodic-node", version: "1", profile: "timer-cancel-barrier", earlyNs: 0, lateNs: 0, catchUp: "burst",
    can: ["timer", "virtual-time", "cancel", "fixed-rate", "fixed-delay", "reset", "lasting"],
  },
  { timer: (virtual, nowNs) => new Timer(nowNs) },
);
