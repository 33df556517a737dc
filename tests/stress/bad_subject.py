"""A subject that misbehaves in the one way that its argument names; run by the tests of the protocol's driver.

Without an argument it is a correct timer of virtual time: the twin of all the others.
"""

import json
import os
import sys
import time

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
DESCRIPTION = {
    "protocol": "purgatorio-subject/2" if HOW == "wrong-version" else "purgatorio-subject/1",
    "name": "bad",
    "capabilities": ["timer", "virtual-time", "cancel", "cancel-barrier"],
    "reports": ["timer_fire"],
    "early_ns": 0,
    "late_ns": 0,
}
FAR_AWAY_S = 600


def say(**message: object) -> None:
    """One line to the driver."""
    sys.stdout.write(json.dumps(message) + "\n")


def misbehave(how: str, n: int, first: str) -> None:
    """What it does instead of answering, or before it answers, an `advance`; `first` is its first task."""
    if how == "hang":
        time.sleep(FAR_AWAY_S)
    elif how == "die":
        sys.stderr.write("\x1b[31mout of cheese\n")
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
    elif how == "refuse":
        say(m="answer", n=n, err="OutOfMemory")
    elif how == "close-output":
        sys.stdout.flush()
        os.close(1)
        time.sleep(FAR_AWAY_S)
    elif how == "close-input":
        os.close(0)
        time.sleep(FAR_AWAY_S)
    elif how == "noise":
        sys.stderr.write("warning: \x1b[31mnoise\n" * 20_000)


def main() -> None:
    """Read calls until the input ends."""
    if HOW == "silent-start":
        time.sleep(FAR_AWAY_S)
    pending: dict[str, int] = {}
    now_ns, first = 0, ""
    for line in sys.stdin:
        call = json.loads(line)
        name, n = call["m"], call["n"]
        if first and name == "advance":
            misbehave(HOW, n, first)
        if name == "describe":
            say(m="description", n=n, **DESCRIPTION)
            sys.stdout.flush()
            continue
        out: dict[str, object] = {}
        if name in ("start", "advance"):
            now_ns = call["now_ns"]
        if name == "add":
            first = first or call["id"]
            pending[call["id"]] = now_ns + call["delay_ns"]
        elif name == "cancel":
            out["out"] = int(pending.pop(call["id"], None) is not None)
        for task in [task for task, due_ns in pending.items() if due_ns <= now_ns]:
            del pending[task]
            say(m="fired", id=task)
        say(m="answer", n=n, **out)
        if name == "stop" and HOW == "answer-stop-twice":
            say(m="answer", n=n)
        sys.stdout.flush()
    if HOW == "live-on":
        time.sleep(FAR_AWAY_S)
    if HOW == "bad-end":
        sys.exit(3)


main()
