// Plugs a timer or a purgatory that is written in JavaScript into the purgatorio oracle. No dependencies.
//
// run(promises, { timer, purgatory }) speaks the subject protocol on standard input and output, which
// `purgatorio verify --command 'node adapter.js'` drives. Nothing is judged here.
"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const fs = require("node:fs");
const readline = require("node:readline");

const OF_OPERATIONS = [
  "try_complete", "force_complete", "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire",
];
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
 */
function run(promises, factory) {
  const can = promises.can;
  const lacks = promises.lacks ?? [];
  const reports = can.includes("purgatory") ? OF_OPERATIONS.filter((f) => !lacks.includes(f)) : ["timer_fire"];
  // Then O3 asks for one turn of the event loop for a completion and its onExpiration.
  const ownTimer = promises.profile === "hand-over" || lacks.includes("timer_fire");
  // From within which call something happens, { during }; or which turn of the event loop it is, { th }.
  const here = new AsyncLocalStorage();
  const answered = new WeakSet(); // what a call began may end after its answer: outside of any call
  const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
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
      this.under = factory[start.part](this.virtual, start.now_ns ?? 0);
    }

    report(message) {
      if (!this.over) say(message);
    }

    // What no call made runs in a turn of its own: two of them may be under way, and are no nested calls.
    async inTurn(body) {
      let th;
      while ((th = TURNS.find((name) => !this.turns.has(name))) === undefined) {
        await new Promise((freed) => this.waiting.push(freed));
      }
      this.turns.add(th);
      try {
        return await here.run({ th }, body);
      } finally {
        this.turns.delete(th);
        this.waiting.shift()?.();
      }
    }

    async within(f, id, body) {
      if (here.getStore() === undefined || answered.has(here.getStore())) {
        if (f === "on_expiration" && ownTimer) throw new Error("call onExpiration and its forceComplete inside timerFire");
        return this.inTurn(() => this.within(f, id, body));
      }
      if (!reports.includes(f)) return body();
      this.report({ m: "enter", f, id, ...here.getStore() });
      const leave = { m: "leave", f, id };
      try {
        const out = await body();
        if (typeof out === "boolean") leave.out = Number(out);
        return out;
      } catch (problem) {
        leave.err = problem.name;
        throw problem;
      } finally {
        this.report({ ...leave, ...here.getStore() });
      }
    }

    pause(f, id) {
      if (!this.gates.includes(f)) return this.virtual || this.gates.length ? undefined : dwell();
      const hold = ++holds;
      this.report({ m: "held", hold, f, id, ...here.getStore() });
      return new Promise((goOn, fail) => this.held.set(hold, { goOn, fail, f }));
    }

    hooksOf(id, delayNs, units = 1) {
      const tell = (f, own) => this.within(f, id, async () => {
        await this.pause(f, id);
        return own?.();
      });
      return {
        id,
        delayNs,
        units, // with `amounts`: the number of units that it waits for
        tryComplete: (force) => this.within("try_complete", id, async () => {
          const seen = this.ready.has(id);
          await this.pause("try_complete", id);
          return seen && force();
        }),
        forceComplete: (own) => tell("force_complete", own),
        onComplete: () => tell("on_complete"),
        onExpiration: () => tell("on_expiration"),
        timerAdd: (own) => tell("timer_add", own),
        timerCancel: (own) => tell("timer_cancel", own),
        timerFire: (own) => tell("timer_fire", own),
      };
    }

    async answer(call) {
      const { under } = this;
      // A timer may have fields of its own with the names of a purgatory's methods.
      const sizes = async () => this.part === "timer"
        ? { delayed: await under.size?.() }
        : { watched: await under.watched?.(), keys: await under.keys?.(), delayed: await under.delayed?.() };
      switch (call.m) {
        case "add":
        case "repeat": {
          const handle = this.handles.get(call.id);
          if (handle !== undefined) {
            await under.addAgain(handle, call.delay_ns);
          } else {
            const hooks = this.hooksOf(call.id, call.delay_ns);
            // The event loop runs outside of any call, even if the timer keeps the context of the add.
            const task = () => (this.virtual ? hooks.timerFire() : here.exit(() => hooks.timerFire()));
            const method = { "fixed-rate": "fixedRate", "fixed-delay": "fixedDelay" }[call.kind] ?? "add";
            this.handles.set(call.id, await under[method](task, call.delay_ns, call.period_ns));
          }
          return {};
        }
        case "reset":
          return flag(await under.reset(this.handles.get(call.id), call.delay_ns));
        case "cancel":
          // One that comes before its add has returned finds no handle yet.
          return flag(this.handles.has(call.id) && (await under.cancel(this.handles.get(call.id))));
        case "advance":
          // Inside a run, with "lasting", only the clock moves.
          await (call.hold === undefined ? under.advanceTo(call.now_ns) : under.moveTo(call.now_ns));
          return {};
        case "register": {
          const operation = under.operation(this.hooksOf(call.id, call.delay_ns, call.units));
          this.handles.set(call.id, operation);
          this.names.set(operation, call.id);
          return flag(await under.tryCompleteElseWatch(operation, call.keys));
        }
        case "ready":
          this.ready.add(call.id);
          return {};
        case "check":
          return { out: await under.checkAndComplete(call.key) };
        case "force":
          return flag(await under.forceComplete(this.handles.get(call.id)));
        case "cancel_key":
          return { ids: (await under.cancelForKey(call.key)).map((operation) => this.names.get(operation)) };
        case "gauge":
          return sizes();
        case "quiesce":
          await under.settle?.();
          return sizes();
        case "stop":
          this.over = call.drain !== 1;
          await under.close?.();
          return {};
        default:
          throw new Error(`unknown call ${call.m}`);
      }
    }

    async make(call) {
      const answer = { m: "answer", n: call.n };
      try {
        Object.assign(answer, await this.answer(call));
        if (this.virtual && call.m !== "quiesce" && this.held.size === 0) await this.under.settle?.();
      } catch (problem) {
        if (!(problem instanceof ToldToFail)) console.error(problem);
        answer.err = problem.name;
      }
      answered.add(here.getStore());
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

  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const call = JSON.parse(line);
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
      const make = () => here.run({ during: call.n }, () => run.make(call));
      // A lane makes one call after the other. Calls inside a paused call belong to no lane.
      const before = call.hold === undefined ? run.lanes.get(call.lane) : undefined;
      const made = before === undefined ? make() : before.then(make);
      if (call.hold === undefined) run.lanes.set(call.lane, made);
      unanswered.add(made);
      made.finally(() => unanswered.delete(made));
    }
  }).on("close", () => {
    // Calls that were read are answered, except a call that waits for the driver.
    Promise.allSettled(unanswered).then(() => process.exit(0));
    setTimeout(() => process.exit(0), 1000);
  });
}

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
