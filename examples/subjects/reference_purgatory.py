"""The reference purgatory of this project behind purgatorio-subject/1: real and virtual time, four callers, gates.

    purgatorio verify --engine process --command 'python examples/subjects/reference_purgatory.py'

It shows how to wrap an implementation with threads: a worker for each lane; every event names the call it was made
from (`during`) or else its thread (`th`); one lock, so that lines are whole and in the order in which things happened;
gates, at which a thread waits for the word to go on, while the reader reads on; steps, which in Python are lines.
With the argument `pending-flag` it is of that dialect, else of `locked`.
"""

import collections
import itertools
import json
import os
import queue
import random
import sys
import threading
import time

import purgatorio
from purgatorio import (
    LOCKED,
    PENDING_FLAG,
    DelayedOperation,
    ManualClock,
    Purgatory,
    QueuedExecutor,
    SystemTimer,
)

PROFILE = "pending-flag" if "pending-flag" in sys.argv else "locked"
DIALECT = {"locked": LOCKED, "pending-flag": PENDING_FLAG}[PROFILE]
LANES, PURGE_INTERVAL = 4, 100
MS = 1_000_000
output = threading.Lock()
here = threading.local()


def say(**message):
    with output:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def event(m, **fields):
    """An event, with where it was made."""
    call = getattr(here, "call", None)
    place = {"th": threading.current_thread().name} if call is None else {"during": call}
    say(m=m, **{**place, **fields})


class Gates:
    """The places where the threads of this run stop, and the queues of those that stand there."""

    def __init__(self):
        self.places, self.numbers, self.held, self.dwells = (), itertools.count(), {}, False

    def stop(self, f, op, **place):
        """Called at the place `f`: the thread makes the requested calls until it is resumed."""
        if f not in self.places:
            if not self.places and self.dwells and random.random() < 1 / 8:
                time.sleep(random.uniform(0, 0.001))  # so that threads meet in here
            return
        hold, calls, outer = next(self.numbers), queue.SimpleQueue(), getattr(here, "call", None)
        self.held[hold] = calls
        event("held", hold=hold, f=f, id=op, **place)
        while (call := calls.get())["m"] != "go":
            answer(call)
        here.call = outer
        if call.get("fail"):
            raise RuntimeError("as the driver wants it")

    def go(self, call):
        """Called by the reader."""
        for hold in call["holds"]:
            self.held.pop(hold).put(call)


gates = Gates()


class Steps:
    """Counts the lines of the purgatory's code that a thread comes to, each at most three times in a call (a loop has
    as many as its objects), and stops it at those that were asked for."""

    CODE, TIMES = os.path.dirname(purgatorio.__file__), 3

    def __init__(self, call):
        self.call, self.left = call["n"], [call[stop] for stop in ("step", "again") if stop in call]
        self.seen, self.times = 0, collections.Counter()

    def __enter__(self):
        if self.left:
            sys.settrace(self.function)

    def __exit__(self, *_):
        sys.settrace(None)

    def function(self, frame, event, arg):
        return self.line if self.left and frame.f_code.co_filename.startswith(self.CODE) else None

    def line(self, frame, event, arg):
        if event == "line" and self.left:
            line = frame.f_code, frame.f_lineno
            self.times[line] += 1
            self.seen += self.times[line] <= self.TIMES
            if self.seen > self.left[0]:
                del self.left[0]
                gates.stop("step", None, during=self.call, th=None)
        return self.line


class Within:
    """A function of an operation: `enter`, then its work, then `leave` with its answer."""

    def __init__(self, f, op):
        self.f, self.op, self.result = f, op, {}

    def __enter__(self):
        event("enter", f=self.f, id=self.op)
        return self

    def __exit__(self, kind, error, trace):
        event("leave", f=self.f, id=self.op, **({"err": kind.__name__} if kind else self.result))

    def out(self, value):
        self.result = {"out": int(value)}
        return value


class Operation(DelayedOperation):
    """One whose condition is a flag, and which tells what happens to it."""

    def __init__(self, name, ready, delay_ns):
        super().__init__(delay_ns // MS, dialect=DIALECT)
        self.name, self.ready = name, ready

    def try_complete(self):
        with Within("try_complete", self.name) as function:
            ready = self.ready.is_set()
            gates.stop("try_complete", self.name)
            return function.out(ready and self.force_complete())

    def force_complete(self):
        with Within("force_complete", self.name) as function:
            gates.stop("force_complete", self.name)
            return function.out(super().force_complete())

    def on_complete(self):
        with Within("on_complete", self.name):
            gates.stop("on_complete", self.name)

    def on_expiration(self):
        with Within("on_expiration", self.name):
            gates.stop("on_expiration", self.name)

    def cancel(self):
        with Within("timer_cancel", self.name):
            gates.stop("timer_cancel", self.name)
            super().cancel()

    def run(self):
        with Within("timer_fire", self.name):
            gates.stop("timer_fire", self.name)
            super().run()


class TellingTimer:
    """The timer of the purgatory, which reports each operation that is added."""

    def __init__(self, timer):
        self.timer = timer

    def add(self, task):
        if not isinstance(task, Operation):  # the purgatory's own
            self.timer.add(task)
            return
        with Within("timer_add", task.name):
            gates.stop("timer_add", task.name)
            self.timer.add(task)

    def __getattr__(self, name):
        return getattr(self.timer, name)


class Subject:
    """One run: by the machine's clock with threads of its own, or by a clock that only `advance` moves, with none."""

    def __init__(self, start):
        self.clock = ManualClock(start["now_ns"] // MS) if start["time"] == "virtual" else None
        self.executor = QueuedExecutor() if self.clock else None
        timer = SystemTimer("subject", tick_ms=1, wheel_size=20, clock=self.clock, executor=self.executor)
        self.purgatory = Purgatory(
            "subject",
            TellingTimer(timer),
            purge_interval=PURGE_INTERVAL,
            reaper=self.clock is None,
            complete_at_shutdown=False,
        )
        self.ready, self.operations, self.lock = {}, {}, threading.Lock()

    def flag(self, name):
        with self.lock:
            return self.ready.setdefault(name, threading.Event())

    def sizes(self):
        now = self.purgatory.gauges()
        return {"watched": now.purgatory_size, "delayed": now.num_delayed_operations}

    def answer(self, call):
        result = self.made(call)
        self.run_due()
        return result

    def run_due(self):
        """In virtual time what a call caused happens before its answer, but not from within it."""
        if self.executor:
            here.call = None
            self.executor.run_all()

    def made(self, call):
        name = call["m"]
        if name == "register":
            operation = Operation(call["id"], self.flag(call["id"]), call["delay_ns"])
            self.operations[call["id"]] = operation
            return {"out": int(self.purgatory.try_complete_else_watch(operation, call["keys"]))}
        if name == "ready":
            self.flag(call["id"]).set()
        elif name == "check":
            return {"out": self.purgatory.check_and_complete(call["key"])}
        elif name == "cancel_key":
            return {"ids": [operation.name for operation in self.purgatory.cancel_for_key(call["key"])]}
        elif name == "force":
            return {"out": int(self.operations[call["id"]].force_complete())}
        elif name == "advance":
            self.clock.advance_to(call["now_ns"] // MS)
            while self.purgatory.pass_time():
                self.run_due()
            self.purgatory.purge_if_needed()
        elif name == "gauge":
            return self.sizes()
        elif name == "quiesce":
            if not self.clock:
                time.sleep(0.5)  # two turns of the reaper: it purges
            return self.sizes()
        elif name == "stop":
            self.purgatory.close()
        return {}


DESCRIPTION = {
    "protocol": "purgatorio-subject/1.1",
    "name": "reference-purgatory",
    "language": "Python",
    "profile": PROFILE,
    "capabilities": ["purgatory", "virtual-time", "real-time", "cancel-key", "force", "gauge", "failing"],
    "reports": [
        "try_complete",
        "force_complete",
        "on_complete",
        "on_expiration",
        "timer_add",
        "timer_cancel",
        "timer_fire",
    ],
    "tick_ns": MS,
    "wheel_size": 20,
    "early_ns": 0,
    "early_real_ns": MS - 1,  # its clock counts whole milliseconds
    "late_real_ns": MS,
    "late_ns": 0,
    "unit_ns": MS,
    "purge_interval": PURGE_INTERVAL,
    "lanes": LANES,
    "gates": [
        "try_complete",
        "force_complete",
        "on_complete",
        "on_expiration",
        "timer_add",
        "timer_cancel",
        "timer_fire",
        "step",
    ],
}
runs = []


def answer(call):
    """Make the call on this thread, and answer it."""
    here.call = call["n"]
    try:
        with Steps(call):
            result = runs[-1].answer(call)
    except Exception as error:
        result = {"err": type(error).__name__}
    say(m="answer", n=call["n"], **result)


def work(calls):
    """The worker of one lane."""
    while (call := calls.get()) is not None:
        answer(call)


def main():
    lanes = [queue.Queue() for _ in range(LANES)]
    workers = [threading.Thread(target=work, args=(calls,)) for calls in lanes]
    for worker in workers:
        worker.start()
    for line in sys.stdin:
        call = json.loads(line)
        if call["m"] == "describe":
            say(m="description", n=call["n"], **DESCRIPTION)
        elif call["m"] == "start":
            if runs:
                runs[-1].purgatory.close()
            gates.places, gates.dwells = call.get("gates", ()), call["time"] == "real"
            runs[:] = [Subject(call)]
            say(m="answer", n=call["n"])
        elif call["m"] == "go":
            gates.go(call)
            say(m="answer", n=call["n"])
        elif "hold" in call:
            gates.held[call["hold"]].put(call)
        else:
            lanes[call.get("lane", 0)].put(call)
    for calls in lanes:
        calls.put(None)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
