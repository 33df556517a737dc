"""A correct timer of virtual time, for the driver; `misbehaviours.txt` has what may be wrong with it."""

import json
import os
import sys
import time
from typing import Any, NoReturn

DESCRIPTION: dict[str, Any] = {
    "protocol": "purgatorio-subject/1",
    "name": "bad",
    "capabilities": ["timer", "virtual-time", "cancel", "cancel-barrier"],
    "reports": ["timer_fire"],
    "early_ns": 0,
    "late_ns": 0,
}
FAR_AWAY_S = 600


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")


def spin() -> NoReturn:
    while True:
        pass


def leave_one_behind() -> None:
    """A process in a session of its own that keeps all the pipes."""
    sys.stdout.flush()
    if os.fork() == 0:
        os.setsid()
        time.sleep(FAR_AWAY_S)
        os._exit(0)


class Timer:
    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self.now_ns = self.added = 0
        self.first = ""

    def fire(self, task: str) -> None:
        say(m="enter", f="timer_fire", id=task)
        say(m="leave", f="timer_fire", id=task)

    def answer(self, call: dict[str, Any]) -> None:
        name, n = call["m"], call["n"]
        out: dict[str, object] = {}
        if name == "start":
            self.first, self.added = "", 0
        if name in ("start", "advance"):
            self.now_ns = call.get("now_ns", 0)
        if name == "add":
            self.first, self.added = self.first or call["id"], self.added + 1
            self.pending[call["id"]] = self.now_ns + call["delay_ns"]
        elif name == "cancel":
            out["out"] = int(self.pending.pop(call["id"], None) is not None)
        due = [task for task, due_ns in self.pending.items() if due_ns <= self.now_ns]
        for task in due:
            if self.pending.pop(task, None) is not None:
                self.fire(task)
        say(m="answer", n=n, **out)


timer = Timer()
# Not by iteration, which reads ahead of whoever stands at a gate.
while line := sys.stdin.readline():
    call = json.loads(line)
    if call["m"] == "advance" and timer.first:
        pass  # most of what is wrong stands here
    if call["m"] == "describe":
        say(m="description", n=call["n"], **DESCRIPTION)
    else:
        timer.answer(call)
    sys.stdout.flush()
