// Adapters of timers that others wrote: purgatorio verify --command 'node index.js NAME', after `npm install` here.
"use strict";

const { run } = require("..");

const MS = 1_000_000;
const name = process.argv[2];

const plain = (set, clear) => () => ({
  add: (task, delayNs) => set(task, delayNs / MS),
  cancel: (handle) => void clear(handle),
});

const timers = {
  // "Node.js makes no guarantees about the exact timing of when callbacks will fire": no bound. "When delay is larger than
  // 2147483647 [...], the delay will be set to 1."
  "set-timeout": {
    promises: { version: process.versions.node, mostDelayNs: 2_147_483_647 * MS },
    timer: () => plain(setTimeout, clearTimeout)(),
  },
  // "have a timeout or interval that is longer than 24.8 days"
  "long-timeout": {
    promises: { version: "0.1.1" },
    timer: () => {
      const { setTimeout: set, clearTimeout: clear } = require("long-timeout");
      return plain(set, clear)();
    },
  },
};

if (timers[name] === undefined) {
  console.error(`usage: node index.js ${Object.keys(timers).join("|")}`);
  process.exit(2);
}
const { promises, timer } = timers[name];
run({ name, profile: "timer", lanes: 4, unitNs: MS, can: ["timer", "real-time", "cancel"], ...promises }, { timer });
