// A toy purgatory and its adapter: purgatorio verify --command 'node purgatory.js', and with the bug: '... --bug'.
// Callbacks are async: between two lines with `await` another call may come, as a thread elsewhere.
"use strict";

const { run } = require("..");

const BUG = process.argv.includes("--bug");

class Purgatory {
  constructor(nowNs) {
    this.nowNs = nowNs;
    this.lists = new Map(); // key to operations
    this.timeOuts = new Map(); // operation to its deadline
  }

  operation(hooks) {
    return { hooks, completed: false, busy: false, again: false };
  }

  // Evaluates it, or makes the evaluating call repeat. Returns whether this call completed it.
  async evaluate(operation) {
    if (operation.completed) return false;
    if (operation.busy) {
      operation.again = !BUG; // the bug: it sets no flag, and leaves
      return false;
    }
    let done = false;
    operation.busy = true;
    do {
      operation.again = false;
      try {
        done = await operation.hooks.tryComplete(() => this.forceComplete(operation));
      } catch (problem) {
        operation.busy = false;
        throw problem;
      }
    } while (operation.again && !operation.completed);
    operation.busy = false;
    return done;
  }

  async tryCompleteElseWatch(operation, keys) {
    if (await this.evaluate(operation)) return true;
    for (const key of keys) {
      if (!this.lists.has(key)) this.lists.set(key, new Set());
      this.lists.get(key).add(operation);
    }
    if (await this.evaluate(operation)) return true;
    if (!operation.completed) {
      await operation.hooks.timerAdd(() => this.timeOuts.set(operation, this.nowNs + operation.hooks.delayNs));
      if (operation.completed) await this.disarm(operation);
      else await this.advanceTo(this.nowNs);
    }
    return false;
  }

  async checkAndComplete(key) {
    let count = 0;
    for (const operation of [...(this.lists.get(key) ?? [])]) {
      if (await this.evaluate(operation)) count++;
    }
    return count;
  }

  forceComplete(operation) {
    return operation.hooks.forceComplete(async () => {
      if (operation.completed) return false;
      operation.completed = true;
      await this.disarm(operation);
      await operation.hooks.onComplete();
      return true;
    });
  }

  disarm(operation) {
    return operation.hooks.timerCancel(() => this.timeOuts.delete(operation));
  }

  async cancelForKey(key) {
    const back = [...(this.lists.get(key) ?? [])];
    this.lists.delete(key);
    for (const operation of back) await this.disarm(operation);
    return back;
  }

  async advanceTo(nowNs) {
    this.nowNs = Math.max(nowNs, this.nowNs);
    for (const [operation, deadlineNs] of [...this.timeOuts]) {
      if (deadlineNs <= this.nowNs && this.timeOuts.delete(operation)) {
        const expire = async () => {
          if (await this.forceComplete(operation)) await operation.hooks.onExpiration();
        };
        // The error of a callback is not an error of the call that moves the time.
        await operation.hooks.timerFire(expire).catch((problem) => console.error(problem.message));
      }
    }
  }

  // Entries of completed operations are removed when the size is read.
  watched() {
    let entries = 0;
    for (const [key, list] of this.lists) {
      for (const operation of list) if (operation.completed) list.delete(operation);
      if (list.size === 0) this.lists.delete(key);
      entries += list.size;
    }
    return entries;
  }

  keys() {
    return this.lists.size;
  }

  delayed() {
    return this.timeOuts.size;
  }
}

run(
  {
    name: "toy-purgatory-node", version: "1", profile: "pending-flag", lanes: 8,
    tickNs: 1, earlyNs: 0, lateNs: 0, purgeInterval: 0,
    can: ["purgatory", "virtual-time", "cancel-key", "force", "gauge", "failing"],
  },
  { purgatory: (virtual, nowNs) => new Purgatory(nowNs) },
);
