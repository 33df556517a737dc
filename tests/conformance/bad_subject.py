"""A subject that misbehaves in the one way that its argument names; run by the tests of the protocol's driver.

Without an argument it is a correct timer of virtual time: the twin of all the others.
"""

import json
import os
import sys
import time
from typing import Any

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
DESCRIPTION = {
    "protocol": "purgatorio-subject/2" if HOW == "wrong-version" else "purgatorio-subject/1",
    "name": "bad",
    "capabilities": ["timer", "virtual-time", "cancel", "cancel-barrier"],
    "reports": ["timer_fire"],
    "early_ns": 0,
    "late_ns": 0,
}
if HOW.startswith("real"):
    DESCRIPTION["capabilities"] = ["timer", "real-time", "cancel", "cancel-barrier"]
if "purgatory" in HOW:
    DESCRIPTION |= {"capabilities": ["purgatory", "real-time"], "profile": "locked"}
    DESCRIPTION["reports"] = ["on_complete", "force_complete"]
if HOW.startswith("gate"):
    DESCRIPTION |= {"protocol": "purgatorio-subject/1.1", "gates": ["timer_fire"]}
FAR_AWAY_S = 600
BURST_S, REST_S = 0.01, 0.05
BURSTS = [None] * 60
"""Once it works in these, with rests in which nothing runs: for 3 s and more."""


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")


def misbehave(how: str, n: int, first: str) -> None:
    """What it does instead of answering, or before it answers, an `advance`; `first` is its first task."""
    if how == "hang":
        time.sleep(FAR_AWAY_S)
    elif how in ("spin", "refuse-all-spin", "refuse-some-spin"):
        while True:
            pass
    elif how == "work-slowly":
        for _ in BURSTS:
            until_s = time.process_time() + BURST_S
            while time.process_time() < until_s:
                pass
            time.sleep(REST_S)
        BURSTS.clear()
    elif how == "die":
        sys.stderr.write("\x1b[31mout of cheese\n")
        sys.exit(7)
    elif how == "fire-early-and-die":
        say(m="fired", id=first)
        sys.exit(7)
    elif how == "die-quietly":
        sys.exit(0)
    elif how == "be-killed":
        os.kill(os.getpid(), 9)
    elif how == "rubbish":
        sys.stdout.write("Listening on port 8080...\n")
    elif how == "binary":
        sys.stdout.buffer.write(b"\xff\x00\xfe\n")
    elif how == "unknown-field":
        say(m="answer", n=n, result=1)
    elif how == "endless-line":
        while True:
            sys.stdout.write("x" * 65536)
    elif how == "endless-events":
        while True:
            say(m="fired", id=first)
    elif how == "answer-twice":
        say(m="answer", n=n)
    elif how == "answer-another":
        say(m="answer", n=n + 1000)
    elif how == "unknown-task":
        say(m="fired", id="nobody")
    elif how == "undeclared":
        say(m="expired", id=first)
    elif how == "close-output":
        sys.stdout.flush()
        os.close(1)
        time.sleep(FAR_AWAY_S)
    elif how == "close-input":
        os.close(0)
        time.sleep(FAR_AWAY_S)
    elif how == "detach":
        leave_one_behind()
        sys.exit(0)
    elif how == "noise":
        sys.stderr.write("warning: \x1b[31mnoise\n" * 20_000)


def leave_one_behind() -> None:
    """A process in a session of its own that keeps all the pipes."""
    sys.stdout.flush()
    if os.fork() == 0:
        os.setsid()
        time.sleep(FAR_AWAY_S)
        os._exit(0)


class Timer:
    """Tasks by their deadlines, and the gate at which they stop; see `misbehave` for what is wrong."""

    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self.now_ns = self.holds = self.adds = 0
        self.refused = False
        self.gates: list[str] = []

    def fire(self, task: str) -> None:
        say(m="enter", f="timer_fire", id=task)
        if self.gates or HOW == "gate-unasked":
            self.holds += 1
            say(m="held", hold=self.holds, f="timer_fire", id=task)
            if HOW == "gate-dies":
                sys.stdout.flush()
                sys.exit(7)
            if HOW != "gate-goes-on":
                self.stand()
        say(m="leave", f="timer_fire", id=task)

    def stand(self) -> None:
        sys.stdout.flush()
        while line := sys.stdin.readline():
            call = json.loads(line)
            if call["m"] == "go":
                say(m="answer", n=call["n"])
                if HOW == "gate-stuck":
                    sys.stdout.flush()
                    time.sleep(FAR_AWAY_S)
                return
            self.answer(call)
            sys.stdout.flush()

    def answer(self, call: dict[str, Any]) -> None:
        name, n = call["m"], call["n"]
        out: dict[str, object] = {}
        if name == "start":
            self.gates = call.get("gates", [])
        if name in ("start", "advance"):
            self.now_ns = call.get("now_ns", 0)
        some = HOW.startswith("refuse-some") and self.pending
        if name == "add" and (some or HOW.startswith("refuse-all")):
            out["err"] = "IndexError"
            self.refused = True
        elif name == "add":
            self.adds += 1
            if HOW == "gate-hang-later" and self.adds == 40:
                time.sleep(FAR_AWAY_S)
            self.pending[call["id"]] = self.now_ns + call["delay_ns"]
        elif name == "register":
            self.pending[call["id"]], out["out"] = 1 << 62, 0
        elif name == "check":
            out["out"] = 0
        elif name == "cancel" and call["id"] not in self.pending and HOW.startswith("refuse-over"):
            # Its twin does so only in a crowd.
            out |= {"err": "KeyError"} if HOW == "refuse-over" or len(self.pending) > 1 else {"out": 0}
        elif name == "cancel":
            out["out"] = int(self.pending.pop(call["id"], None) is not None)
        crowd = HOW.startswith("refuse-crowd") and len(self.pending) > 1
        if name == "advance" and (crowd or (HOW == "refuse" and self.pending)):
            # Its twin waits until a time limit of its own ends, as on a busy machine.
            time.sleep(3.0 if HOW == "refuse-crowd-late" else 0.0)
            out["err"] = "OutOfMemory"
        due = [task for task, due_ns in self.pending.items() if due_ns <= self.now_ns]
        if HOW == "answer-early" and due:
            say(m="answer", n=n, **out)
            for task in due:
                del self.pending[task]
                say(m="fired", id=task, th="executor")
            return
        for task in due:
            if self.pending.pop(task, None) is not None:
                self.fire(task)
        say(m="answer", n=n, **out)
        if name == "stop" and HOW == "answer-stop-twice":
            say(m="answer", n=n)


def main() -> None:
    if HOW == "silent-start":
        time.sleep(FAR_AWAY_S)
    timer, first, added = Timer(), "", 0
    # Not by iteration, which reads ahead of whoever stands at a gate.
    while line := sys.stdin.readline():
        call = json.loads(line)
        if first and call["m"] == "advance" and (timer.refused or not HOW.startswith("refuse")):
            # Its twins do so only in a crowd, or behind many tasks.
            crowd = (HOW == "spin-crowd" and len(timer.pending) > 1) or (HOW == "spin-many" and added > 15)
            misbehave("spin" if crowd else HOW, call["n"], first)
        last = HOW.startswith("real-") and len(timer.pending) == (0 if HOW.endswith("at-once") else 5)
        if last and call["m"] in ("add", "register"):
            time.sleep(FAR_AWAY_S)
        if call["m"] == "describe":
            say(m="description", n=call["n"], **DESCRIPTION)
        elif HOW == "mute":
            sys.stdout.flush()
            time.sleep(FAR_AWAY_S)
        else:
            known = "" if call["m"] == "start" else first
            first = known or (call["id"] if call["m"] == "add" else "")
            added = 0 if call["m"] == "start" else added + (call["m"] == "add")
            timer.answer(call)
        sys.stdout.flush()
    if HOW == "detach-after-stop":
        leave_one_behind()
    if HOW == "live-on":
        time.sleep(FAR_AWAY_S)
    if HOW == "bad-end":
        sys.exit(3)


main()
