// Plugs a timer or a purgatory that is written in JavaScript into the purgatorio oracle. No dependencies.
//
// run(promises, { timer, purgatory }) speaks the subject protocol on standard input and output, which
// `purgatorio verify --command 'node adapter.js'` drives. Nothing is judged here.
"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const fs = require("node:fs");
const { StringDecoder } = require("node:string_decoder");

const HOUR_NS = 3_600_000_000_000;
const OF_OPERATIONS = [
  "try_complete", "force_complete", "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire",
];
const TIMER_METHODS = {
  cancel: "cancel", "add-again": "addAgain", "add-same": "addAgain", "fixed-rate": "fixedRate", "fixed-delay": "fixedDelay",
  reset: "reset", lasting: "moveTo", halts: "close", "virtual-time": "advanceTo",
};
const CONSTANTS = {
  tickNs: "tick_ns", wheelSize: "wheel_size", earlyNs: "early_ns", earlyRealNs: "early_real_ns", lateNs: "late_ns",
  lateRealNs: "late_real_ns", purgeInterval: "purge_interval", unitNs: "unit_ns", leastDelayNs: "least_delay_ns",
  mostDelayNs: "most_delay_ns", catchUp: "catch_up", turn: "turn",
};

/**
 * Drive the subject that the factory creates for each run.
 *
 * promises: { name, version, profile, can: [capabilities], lacks: [hooks that the adapter never calls, such as the three of
 *   a timer that is inside code that it cannot reach], lanes, and of the constants those that are promised: tickNs,
 *   wheelSize, earlyNs, earlyRealNs, lateNs, lateRealNs, purgeInterval, unitNs, leastDelayNs, mostDelayNs, catchUp, turn }
 * factory.timer(virtual, nowNs): { add(task, delayNs) -> handle, addAgain(handle, delayNs),
 *   fixedRate(task, firstNs, periodNs) -> handle, fixedDelay(task, firstNs, periodNs) -> handle,
 *   reset(handle, delayNs) -> true, false if the task has ended, or undefined, cancel(handle) -> true, false or undefined if the timer does not tell, size(), advanceTo(nowNs), moveTo(nowNs), settle(), close() }
 * factory.purgatory(virtual, nowNs): { operation(hooks) -> operation, tryCompleteElseWatch(operation, keys) -> boolean,
 *   checkAndComplete(key) -> count, forceComplete(operation) -> boolean, cancelForKey(key) -> operations, watched(),
 *   keys(), delayed(), advanceTo(nowNs), settle(), close() }, where keys() counts the keys that have a list (P4)
 * All may be async, and methods that are not declared may be left out. A task is async: its caller need not wait for it.
 * Code that does not await its callbacks calls `task.now` and the methods of `hooks.now`, which return when they are done.
 */
function run(promises, factory) {
  const can = promises.can;
  const lacks = promises.lacks ?? [];
  const reports = can.includes("purgatory") ? OF_OPERATIONS.filter((f) => !lacks.includes(f)) : ["timer_fire"];
  // Then O3 asks for one turn of the event loop for a completion and its onExpiration.
  const ownTimer = promises.profile === "hand-over" || lacks.includes("timer_fire");
  // From within which call something happens, { during }; or which turn of the event loop it is, { th }.
  const here = new AsyncLocalStorage();
  const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
  const lines = new Lines();
  let holds = 0;
  let current = null;
  const unanswered = new Set();

  const description = (n) => {
    const { name, version, profile, lanes = 1 } = promises;
    const line = { m: "description", n, protocol: "purgatorio-subject/1.2", language: "JavaScript", name, version, profile };
    Object.assign(line, { capabilities: can, reports, gates: reports, lanes });
    for (const [mine, theirs] of Object.entries(CONSTANTS)) line[theirs] = promises[mine];
    return line;
  };

  class Run {
    constructor(start) {
      this.part = start.part;
      this.virtual = start.time === "virtual";
      this.gates = start.gates ?? [];
      this.over = false;
      this.held = new Map(); // by number of a pause, the function that resumes it
      this.handles = new Map();
      this.hooks = new Map();
      this.names = new Map(); // operation to id
      this.ready = new Set();
      this.turns = new Set(); // names of turns of the event loop that are under way
      this.lanes = new Map(); // number of a lane to its last call
      this.waiting = []; // those that come when there is no name left
      this.ends = []; // of answers that wait for the end of a turn
      this.under = factory[start.part](this.virtual, start.now_ns ?? 0);
      // Otherwise each such call would end with an error, as if the timer raised it.
      const lost = can.map((name) => start.part === "timer" && TIMER_METHODS[name]).find((name) => name && !this.under[name]);
      if (lost) throw new TypeError(`the adapter has no method ${lost}, and declares in \`can\` that it has`);
    }

    report(message) {
      if (!this.over) say(message);
    }

    // What no call made, or beside what it makes, runs in a turn of its own: two may be under way, and are no nested calls.
    *inTurn(body, call) {
      let th;
      while ((th = TURNS.find((name) => !this.turns.has(name))) === undefined) {
        yield new Promise((freed) => this.waiting.push(freed));
      }
      this.turns.add(th);
      try {
        return yield here.run({ th, [CALL]: call }, body);
      } finally {
        this.turns.delete(th);
        this.waiting.shift()?.();
        this.ends.splice(0).forEach((end) => end());
      }
    }

    // Whether the answer waits for callbacks that no call made: those without a name yet would seem late.
    busy(call) {
      if (!this.virtual && call.m !== "quiesce") return false;
      return this.waiting.length > 0 || (this.turns.size > 0 && this.held.size === 0);
    }

    *within(f, id, body, walk) {
      const place = here.getStore();
      const inCall = place !== undefined && !place[CALL].answered; // what a call began may end after its answer
      if (!inCall || place[BUSY]) {
        if (f === "on_expiration" && ownTimer) throw new Error("call onExpiration and its forceComplete inside timerFire");
        return yield* this.inTurn(() => walk(this.within(f, id, body, walk)), inCall ? place[CALL] : { open: 0 });
      }
      if (!reports.includes(f)) return yield* body();
      const call = place[CALL];
      this.report({ m: "enter", f, id, ...place });
      const leave = { m: "leave", f, id };
      place[BUSY] = true;
      call.open += 1;
      try {
        const out = yield here.run({ ...place, [BUSY]: false }, () => walk(body()));
        if (typeof out === "boolean") leave.out = Number(out);
        return out;
      } catch (problem) {
        leave.err = problem.name;
        throw problem;
      } finally {
        place[BUSY] = false;
        this.report({ ...leave, ...place });
        call.open -= 1;
        if (call.open === 0) call.ended?.();
      }
    }

    pause(f, id, walk) {
      if (!this.gates.includes(f)) return this.virtual || this.gates.length ? undefined : dwell();
      const hold = ++holds;
      this.report({ m: "held", hold, f, id, ...here.getStore() });
      if (walk === atOnce) return this.serve(hold, f);
      return new Promise((goOn, fail) => this.held.set(hold, { goOn, fail, f }));
    }

    // Make the driver's calls until it resumes this pause. At a new run, leave the code of this one by an exception.
    serve(hold, f) {
      for (;;) {
        const call = lines.next();
        if (call.m === "start" || call.m === "describe") {
          lines.giveBack(call);
          this.abandon();
        }
        if (this.over) throw new ToldToFail(f);
        if (call.m !== "go") {
          here.run(placeOf(call), () => atOnce(this.make(call)));
          continue;
        }
        say({ m: "answer", n: call.n });
        this.resume({ ...call, holds: call.holds.filter((one) => one !== hold) });
        if (call.holds.includes(hold)) {
          if (call.fail === 1) throw new ToldToFail(f);
          return undefined;
        }
      }
    }

    hooksOf(id, delayNs, units = 1, walk = awaiting) {
      const within = (f, body) => walk(this.within(f, id, body.bind(this), walk));
      const tell = (f, own) => within(f, function* () {
        yield this.pause(f, id, walk);
        return yield own?.();
      });
      return {
        id,
        delayNs,
        units, // with `amounts`: the number of units that it waits for
        tryComplete: (force) => within("try_complete", function* () {
          const seen = this.ready.has(id);
          yield this.pause("try_complete", id, walk);
          return seen && (yield force());
        }),
        forceComplete: (own) => tell("force_complete", own),
        onComplete: () => tell("on_complete"),
        onExpiration: () => tell("on_expiration"),
        timerAdd: (own) => tell("timer_add", own),
        timerCancel: (own) => tell("timer_cancel", own),
        timerFire: (own) => tell("timer_fire", own),
        now: walk === awaiting ? this.hooksOf(id, delayNs, units, atOnce) : undefined,
      };
    }

    // A timer that has only periodic tasks: the first run of one cancels it.
    *once(id, task, delayNs) {
      const { under, handles } = this;
      let over = false;
      const last = (run) => () => {
        over = true;
        if (handles.has(id)) under.cancel(handles.get(id));
        handles.delete(id);
        return run();
      };
      const first = Object.assign(last(task), { now: last(task.now) });
      const handle = yield (under.fixedRate ?? under.fixedDelay).call(under, first, delayNs, delayNs || HOUR_NS);
      if (over) under.cancel(handle);
      else handles.set(id, handle);
    }

    *answer(call) {
      const { under } = this;
      // A timer may have fields of its own with the names of a purgatory's methods.
      const sizes = function* (timer) {
        return timer
          ? { delayed: yield under.size?.() }
          : { watched: yield under.watched?.(), keys: yield under.keys?.(), delayed: yield under.delayed?.() };
      };
      switch (call.m) {
        case "add":
        case "repeat": {
          const handle = this.handles.get(call.id);
          if (handle !== undefined) {
            yield under.addAgain(handle, call.delay_ns);
          } else {
            const hooks = this.hooksOf(call.id, call.delay_ns);
            // The event loop runs outside of any call, even if the timer keeps the context of the add.
            const outside = (fire) => () => (this.virtual ? fire() : here.exit(fire));
            const task = outside(hooks.timerFire);
            task.now = outside(hooks.now.timerFire);
            const method = { "fixed-rate": "fixedRate", "fixed-delay": "fixedDelay" }[call.kind] ?? "add";
            if (under[method]) this.handles.set(call.id, yield under[method](task, call.delay_ns, call.period_ns));
            else yield* this.once(call.id, task, call.delay_ns);
          }
          return {};
        }
        case "reset":
          return flag(yield under.reset(this.handles.get(call.id), call.delay_ns));
        case "cancel":
          // One that comes before its add has returned finds no handle yet.
          return flag(this.handles.has(call.id) && (yield under.cancel(this.handles.get(call.id))));
        case "advance":
          // Inside a run, with "lasting", only the clock moves.
          yield (call.hold === undefined ? under.advanceTo(call.now_ns) : under.moveTo(call.now_ns));
          return {};
        case "register": {
          const operation = under.operation(this.hooksOf(call.id, call.delay_ns, call.units));
          this.handles.set(call.id, operation);
          this.names.set(operation, call.id);
          return flag(yield under.tryCompleteElseWatch(operation, call.keys));
        }
        case "ready":
          this.ready.add(call.id);
          return {};
        case "check":
          return { out: yield under.checkAndComplete(call.key) };
        case "force":
          return flag(yield under.forceComplete(this.handles.get(call.id)));
        case "cancel_key":
          return { ids: (yield under.cancelForKey(call.key)).map((operation) => this.names.get(operation)) };
        case "gauge":
          return yield* sizes(this.part === "timer");
        case "quiesce":
          yield under.settle?.();
          return yield* sizes(this.part === "timer");
        case "stop":
          this.over = call.drain !== 1;
          yield under.close?.();
          return {};
        default:
          throw new Error(`unknown call ${call.m}`);
      }
    }

    *make(call) {
      const answer = { m: "answer", n: call.n };
      const made = here.getStore()[CALL];
      try {
        Object.assign(answer, yield* this.answer(call));
        do { // a timer need not wait for its callbacks
          if (made.open) yield new Promise((ended) => Object.assign(made, { ended }));
          if (this.virtual && call.m !== "quiesce" && this.held.size === 0) yield this.under.settle?.();
          while (this.busy(call)) yield new Promise((end) => this.ends.push(end));
        } while (made.open);
      } catch (problem) {
        if (!(problem instanceof ToldToFail)) console.error(problem);
        answer.err = problem.name;
      }
      made.answered = true;
      if (call.m === "stop") say(answer);
      else this.report(answer);
    }

    resume(call) {
      for (const number of call.holds) {
        const { goOn, fail, f } = this.held.get(number);
        this.held.delete(number);
        if (call.fail === 1) fail(new ToldToFail(f));
        else goOn();
      }
    }

    abandon() {
      if (!this.over) Promise.resolve(this.under.close?.()).catch(() => {});
      this.over = true;
    }
  }

  lines.read((call) => {
    if (call.m === "describe") {
      say(description(call.n));
    } else if (call.m === "start") {
      current?.abandon();
      current = new Run(call);
      say({ m: "answer", n: call.n });
    } else if (call.m === "go") {
      say({ m: "answer", n: call.n });
      current.resume(call);
    } else {
      const run = current;
      const make = () => here.run(placeOf(call), () => awaiting(run.make(call)));
      // A lane makes one call after the other. Calls inside a paused call belong to no lane.
      const before = call.hold === undefined ? run.lanes.get(call.lane) : undefined;
      const meets = !run.virtual && run.gates.length === 0 && unanswered.size > 0;
      const begin = meets ? () => afterSome().then(make) : make;
      const made = before === undefined ? begin() : before.then(begin);
      if (call.hold === undefined) run.lanes.set(call.lane, made);
      unanswered.add(made);
      made.finally(() => unanswered.delete(made));
    }
  }, () => {
    // Calls that were read are answered, except a call that waits for the driver.
    Promise.allSettled(unanswered).then(() => process.exit(0));
    setTimeout(() => process.exit(0), 1000);
  });
}

// The calls of the driver. `next` waits for one without the event loop, which other code may hold up.
class Lines {
  constructor() {
    this.decoder = new StringDecoder("utf8");
    this.text = "";
    this.found = []; // those that are read and not taken
  }

  read(take, ended) {
    this.takeAll = () => {
      while (this.found.length) take(this.found.shift());
    };
    process.stdin.on("data", (bytes) => {
      this.hear(bytes);
      this.takeAll();
    }).on("end", ended);
  }

  hear(bytes) {
    const all = (this.text + this.decoder.write(bytes)).split("\n");
    this.text = all.pop();
    this.found.push(...all.map((line) => JSON.parse(line)));
  }

  giveBack(call) {
    this.found.unshift(call);
    setImmediate(this.takeAll);
  }

  next() {
    const some = Buffer.alloc(1 << 16);
    while (this.found.length === 0) {
      try {
        const bytes = fs.readSync(0, some);
        if (bytes === 0) process.exit(0);
        this.hear(some.subarray(0, bytes));
      } catch (problem) {
        if (problem.code !== "EAGAIN") throw problem;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
    if (this.found.length > 1) setImmediate(this.takeAll);
    return this.found.shift();
  }
}

// JSON leaves these out. CALL: of the call, whether it is answered, and the number of its open callbacks.
const CALL = Symbol("call");
const BUSY = Symbol("a callback is open");
const placeOf = (call) => ({ during: call.n, [CALL]: { open: 0, answered: false } });

// Two ways to walk through the steps of a call, which yield what may be a promise.
const awaiting = async (steps) => {
  let step = steps.next();
  while (!step.done) {
    try {
      step = { value: await step.value };
    } catch (problem) {
      step = steps.throw(problem);
      continue;
    }
    step = steps.next(step.value);
  }
  return step.value;
};
const atOnce = (steps) => {
  let step = steps.next();
  while (!step.done) step = steps.next(step.value);
  return step.value;
};

class ToldToFail extends Error {
  constructor(f) {
    super(`${f} fails, as the driver requested`);
    this.name = "ToldToFail";
  }
}

// The protocol takes 64 names.
const TURNS = Array.from({ length: 48 }, (_, number) => `turn-${number}`);

const flag = (value) => (value === undefined ? {} : { out: Number(value) });

// Let callbacks meet: one in eight waits for up to a millisecond.
const dwell = () =>
  Math.random() < 0.125 ? new Promise((over) => setTimeout(over, Math.random())) : undefined;

// Let calls meet: one that comes during another call begins after some of its steps.
const afterSome = async () => {
  for (let left = Math.floor(Math.random() * 8); left > 0; left--) await null;
};

/** Writes the trace format by hand: call, ret, at as in docs/trace-format.md; close writes all of it. */
class Recorder {
  constructor(path, promises, runName, recorded) {
    this.path = path;
    this.lines = [];
    const timer = {};
    for (const mine of ["tickNs", "wheelSize", "earlyNs", "lateNs"]) timer[CONSTANTS[mine]] = promises[mine];
    timer.early_ns = promises.earlyRealNs ?? promises.earlyNs;
    this.header = {
      kind: "header", format: "purgatorio-trace/1", run: runName, profile: promises.profile, timer,
      implementation: { name: promises.name, version: promises.version ?? "", language: "JavaScript" },
      purge_interval: promises.purgeInterval, clock: { id: "monotonic", unit: "ns" }, recorded,
    };
  }

  nowNs() {
    return Number(process.hrtime.bigint());
  }

  /** Fields: id, keys, delay_ns, deadline_t; th for a line of calls of its own. The number of the call. */
  call(f, fields) {
    return this.event("call", f, fields);
  }

  /** Fields: id, out, err, deadline_t, state. */
  ret(f, c, fields) {
    this.event("ret", f, { c, ...fields });
  }

  at(f, fields) {
    this.event("at", f, fields);
  }

  event(ph, f, fields) {
    const i = this.lines.length;
    this.lines.push({ kind: "event", i, th: "loop", t: this.nowNs(), ph, f, ...fields });
    return i;
  }

  close() {
    const all = [this.header, ...this.lines, { kind: "end", events: this.lines.length, dropped: 0 }];
    fs.writeFileSync(this.path, all.map((line) => JSON.stringify(line) + "\n").join(""));
  }
}

module.exports = { run, Recorder };
