"""A toy timing wheel that speaks purgatorio-subject/1: a subject in about 100 lines, standard library only.

    purgatorio verify --engine process --command 'python examples/subjects/toy_wheel.py'

With --bug one character of `add` is another, and `verify` says what that breaks.
"""

import json
import sys

TICK_NS = 1_000_000
BUG = "--bug" in sys.argv


class Wheel:
    """Eight buckets of a tick each; a task of a later revolution waits in its bucket until it is due."""

    def __init__(self, now_ns, fire):
        self.tick = now_ns // TICK_NS
        self.now_ns = now_ns
        self.buckets = [{} for _ in range(8)]
        self.fire = fire

    def add(self, task, delay_ns):
        due_tick = -(-(self.now_ns + delay_ns) // TICK_NS)  # rounded up: never early
        already_due = due_tick <= self.tick + 1 if BUG else due_tick < self.tick + 1
        if already_due:
            self.fire(task)
        else:
            self.buckets[due_tick % 8][task] = due_tick

    def cancel(self, task):
        return any(bucket.pop(task, None) is not None for bucket in self.buckets)

    def advance(self, now_ns):
        self.now_ns = now_ns
        last, self.tick = self.tick, now_ns // TICK_NS
        # Over a whole revolution and more every bucket is visited once.
        for tick in range(max(last + 1, self.tick - 7), self.tick + 1):
            bucket = self.buckets[tick % 8]
            for task in [task for task, due_tick in bucket.items() if due_tick <= self.tick]:
                del bucket[task]
                self.fire(task)

    def size(self):
        return sum(len(bucket) for bucket in self.buckets)


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")


DESCRIPTION = {
    "protocol": "purgatorio-subject/1",
    "name": "toy-wheel",
    "version": "1",
    "language": "Python",
    "capabilities": ["timer", "virtual-time", "cancel", "gauge"],
    "profile": "timer-cancel-barrier",
    "reports": ["timer_fire"],
    "tick_ns": TICK_NS,
    "wheel_size": 8,
    "early_ns": 0,
    "late_ns": TICK_NS,
}


def answer(call, wheel):
    """Starts or uses the wheel, and returns the fields of the answer to this call, without its number."""
    name = call["m"]
    if name == "start":
        wheel = Wheel(call["now_ns"], lambda task: say(m="fired", id=task))
    elif name == "add":
        wheel.add(call["id"], call["delay_ns"])
    elif name == "cancel":
        return wheel, {"out": int(wheel.cancel(call["id"]))}
    elif name == "advance":
        wheel.advance(call["now_ns"])
    elif name in ("gauge", "quiesce"):
        return wheel, {"delayed": wheel.size()}
    elif name != "stop":
        return wheel, {"err": "UnknownCall"}
    return wheel, {}


def main():
    wheel = None
    for line in sys.stdin:
        call = json.loads(line)
        if call["m"] == "describe":
            say(m="description", n=call["n"], **DESCRIPTION)
        else:
            wheel, result = answer(call, wheel)
            say(m="answer", n=call["n"], **result)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
