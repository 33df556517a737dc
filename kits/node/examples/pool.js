// A pool with time-outs, and its adapter with the profile hand-over: purgatorio verify --command 'node pool.js', and with the
// bug of cds-dbs#1721: '... --bug'. An acquire waits for the resource of a key. A check releases it.
"use strict";

const { run } = require("..");

const BUG = process.argv.includes("--bug"); // the resource of a request that has timed out is lost

class Pool {
  constructor() { this.queue = []; this.free = 0; }

  acquire(timeoutMs, served, expired) {
    const request = { pending: true, served: () => { clearTimeout(timer); request.pending = false; served(); } };
    const timer = setTimeout(() => { request.pending = false; expired(); }, timeoutMs);
    this.queue.push(request);
    this.dispense();
  }

  release() { this.free += 1; this.dispense(); }

  dispense() {
    const { queue } = this;
    if (this.free === 0 || queue.length === 0) return;
    this.free -= 1;
    let request = queue.shift();
    while (!BUG && request && !request.pending) request = queue.shift();
    if (!request) this.free += 1;
    else if (request.pending) request.served();
  }
}

class Pools {
  constructor() { this.pools = new Map(); }

  of(key) { return this.pools.get(key) ?? this.pools.set(key, new Pool()).get(key); }

  operation(hooks) { return { hooks, over: false }; }

  complete(operation) {
    return operation.hooks.forceComplete(async () => {
      if (operation.over) return false;
      operation.over = true;
      await operation.hooks.onComplete();
      return true;
    });
  }

  async tryCompleteElseWatch(operation, [key]) {
    const { hooks } = operation;
    const expire = async () => { if (await this.complete(operation)) await hooks.onExpiration(); };
    // What comes later is in no call. With a time-out of its own, timerFire keeps completion and expiration together.
    const later = (act) => () => setImmediate(act);
    this.of(key).acquire(
      hooks.delayNs / 1e6, later(() => this.complete(operation)), later(() => hooks.timerFire(expire)),
    );
    return false;
  }

  checkAndComplete(key) { this.of(key).release(); return 0; }
}

const promises = {
  name: "toy-pool-js", version: "1", profile: "hand-over", unitNs: 1e6, earlyNs: 0, earlyRealNs: 1e6, lateNs: 0,
  can: ["purgatory", "real-time"], lanes: 2,
};
run(promises, { purgatory: () => new Pools() });
