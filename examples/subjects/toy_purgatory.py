"""A toy purgatory that speaks purgatorio-subject/1, of the dialect `locked`: standard library only.

    purgatorio verify --engine process --command 'python examples/subjects/toy_purgatory.py'

An operation waits under its keys until its condition is true and somebody checks one of them, or until its time-out.
With --bug one character of `check` is another, and `verify` says what that breaks. With --no-recheck nobody looks
again after watching (KAFKA-1952), which only a gate shows.
"""

import heapq
import itertools
import json
import sys

BUG = "--bug" in sys.argv
RECHECK = "--no-recheck" not in sys.argv
holds = itertools.count()
gates = ()


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")


def gate(f, op):
    """A gate, where this run may pause: the thread makes the requested calls until it is resumed."""
    if f in gates:
        hold = next(holds)
        say(m="held", hold=hold, f=f, id=op)
        serve(hold)


class Purgatory:
    """Watch lists by key and a heap of time-outs. Completed operations leave the lists at the next `advance`."""

    def __init__(self, now_ns):
        self.now_ns = now_ns
        self.ready, self.completed = set(), set()
        self.watchers, self.timeouts, self.armed = {}, [], set()

    def force_complete(self, op):
        if op in self.completed:
            return False
        self.completed.add(op)
        self.disarm(op)
        say(m="enter", f="on_complete", id=op)
        gate("on_complete", op)
        say(m="leave", f="on_complete", id=op)
        return True

    def disarm(self, op):
        if op in self.armed:
            self.armed.remove(op)
            say(m="disarmed", id=op)

    def try_complete(self, op):
        if op in self.completed:
            return False
        say(m="enter", f="try_complete", id=op)
        ready = op in self.ready
        gate("try_complete", op)
        done = ready and self.force_complete(op)
        say(m="leave", f="try_complete", id=op, out=int(done))
        return done

    def register(self, op, keys, delay_ns):
        if self.try_complete(op):
            return True
        for key in keys:
            self.watchers.setdefault(key, []).append(op)
        if RECHECK and self.try_complete(op):
            return True
        if op in self.completed:  # by somebody else, meanwhile
            return False
        heapq.heappush(self.timeouts, (self.now_ns + delay_ns, op))
        self.armed.add(op)
        say(m="armed", id=op)
        return False

    def check(self, key):
        first = 1 if BUG else 0
        return sum(self.try_complete(op) for op in self.watchers.get(key, [])[first:])

    def cancel_key(self, key):
        given_back = [op for op in self.watchers.pop(key, []) if op not in self.completed]
        for op in given_back:
            self.disarm(op)
        return given_back

    def advance(self, now_ns):
        self.now_ns = now_ns
        while self.timeouts and self.timeouts[0][0] <= now_ns:
            _, op = heapq.heappop(self.timeouts)
            if op in self.armed:
                say(m="enter", f="timer_fire", id=op)
                gate("timer_fire", op)
                if self.force_complete(op):
                    say(m="expired", id=op)
                say(m="leave", f="timer_fire", id=op)
        live = {key: [op for op in ops if op not in self.completed] for key, ops in self.watchers.items()}
        self.watchers = {key: ops for key, ops in live.items() if ops}

    def sizes(self):
        return {"watched": sum(map(len, self.watchers.values())), "delayed": len(self.armed)}


DESCRIPTION = {
    "protocol": "purgatorio-subject/1.1",
    "name": "toy-purgatory",
    "version": "1",
    "language": "Python",
    "profile": "locked",
    "capabilities": ["purgatory", "virtual-time", "cancel-key", "force", "gauge"],
    "reports": [
        "try_complete",
        "force_complete",
        "on_complete",
        "on_expiration",
        "timer_add",
        "timer_cancel",
        "timer_fire",
    ],
    "tick_ns": 1,
    "early_ns": 0,
    "late_ns": 0,
    "purge_interval": 0,
    "gates": ["try_complete", "on_complete", "timer_fire"],
}


def answer(call, purgatory):
    """The fields of the answer to this call, without its number."""
    name = call["m"]
    if name == "register":
        return {"out": int(purgatory.register(call["id"], call["keys"], call["delay_ns"]))}
    if name == "ready":
        purgatory.ready.add(call["id"])
    elif name == "check":
        return {"out": purgatory.check(call["key"])}
    elif name == "cancel_key":
        return {"ids": purgatory.cancel_key(call["key"])}
    elif name == "force":
        return {"out": int(purgatory.force_complete(call["id"]))}
    elif name == "advance":
        purgatory.advance(call["now_ns"])
    elif name in ("gauge", "quiesce"):
        return purgatory.sizes()
    elif name != "stop":
        return {"err": "UnknownCall"}
    return {}


def next_line():
    sys.stdout.flush()
    return sys.stdin.readline()


def serve(hold=None):
    """Read calls and answer them, to the end of the input or until the thread at this gate may go on."""
    global gates, purgatory
    for line in iter(next_line, ""):
        call = json.loads(line)
        if call["m"] == "describe":
            say(m="description", n=call["n"], **DESCRIPTION)
        elif call["m"] == "start":
            purgatory, gates = Purgatory(call["now_ns"]), call.get("gates", ())
            say(m="answer", n=call["n"])
        elif call["m"] != "go":
            say(m="answer", n=call["n"], **answer(call, purgatory))
        else:
            say(m="answer", n=call["n"])
            if hold in call["holds"]:
                return


if __name__ == "__main__":
    purgatory = None
    serve()
