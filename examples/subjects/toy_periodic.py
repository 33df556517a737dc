"""A toy timer with periodic tasks and resets behind purgatorio-subject/1.2, standard library only.

    purgatorio verify --engine process --command 'python examples/subjects/toy_periodic.py'

It is a heap. `--catch-up burst|once|skip|restart` says what a fixed rate does about runs that it missed. `--bug NAME`
puts one of the bugs of `BUGS` in, and `verify` says what that breaks.
"""

import heapq
import json
import sys

BUGS = {
    "rearmed-in-the-past": "what was missed is run at once, whatever was declared",
    "rearmed-from-now": "a fixed rate counts from when the task ran: it drifts",
    "rearmed-from-the-end": "a fixed rate counts from the end of the run: it drifts by the length of its runs",
    "delay-from-the-deadline": "a fixed delay counts from the deadline, not from the run",
    "cancelled-inside-and-rearmed": "a task that cancels itself is put back behind its run",
    "cancel-inside-finds-nothing": "a cancel inside the run finds no entry, answers 0, and the task is put back",
    "armed-twice": "the task is armed before its run and after it",
    "lost-when-late": "a run that was missed is the last one",
    "former-deadline": "a reset leaves the entry of the former deadline",
    "earlier-unnoticed": "a reset to an earlier deadline leaves the task where it was",
    "due-now-unnoticed": "a reset to the present time leaves the task where it was",
    "unknown-again": "a reset arms a task that runs where no cancel finds it",
    "begins-beside-the-former": "a task that was cancelled and is reset also runs at its former deadlines",
    "begun-inside-and-rearmed": "a task that is reset inside its run is put back behind its run",
    "endless-turn": "a task that is added without a delay runs in the same turn",
}


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


CATCH_UP = option("--catch-up", "once")
BUG = option("--bug", "")
MS = 1_000_000


class Task:
    def __init__(self, name, kind=None, period_ns=0):
        self.name, self.kind, self.period_ns = name, kind, period_ns
        self.due_ns = None  # while it waits
        self.former_ns = None  # when it was cancelled while it waited
        self.is_cancelled = False


class Timer:
    def __init__(self, now_ns, run):
        self.now_ns, self.run, self.entries, self.number, self.tasks = now_ns, run, [], 0, {}
        self.running = None

    def arm(self, task, due_ns):
        task.due_ns = due_ns
        self.number += 1
        heapq.heappush(self.entries, (due_ns, self.number, task))

    def add(self, task, delay_ns):
        self.tasks[task.name] = task
        self.arm(task, self.now_ns + delay_ns)

    def cancel(self, name):
        task = self.tasks[name]
        if BUG == "cancel-inside-finds-nothing" and self.running == name:
            return False
        done = not task.is_cancelled and (task.period_ns > 0 or task.due_ns is not None)
        if task.due_ns is not None:
            task.former_ns = task.due_ns
        task.is_cancelled, task.due_ns = True, None
        return done

    def reset(self, name, delay_ns):
        task = self.tasks[name]
        due_ns = self.now_ns + delay_ns
        if BUG == "unknown-again" and self.running == name:
            self.arm(Task(name), due_ns)
            return True
        if task.due_ns is None and not task.period_ns:
            return False
        if BUG == "begins-beside-the-former" and task.is_cancelled and task.former_ns is not None:
            self.arm(Task(task.name, task.kind, task.period_ns), task.former_ns)
        task.is_cancelled = False
        if task.due_ns is None:  # a periodic task that was cancelled, or runs
            self.arm(task, due_ns)
            return True
        if BUG == "earlier-unnoticed" and due_ns < task.due_ns:
            return True
        if BUG == "due-now-unnoticed" and due_ns == self.now_ns:
            return True
        if BUG == "former-deadline":
            former = Task(task.name)
            self.arm(former, task.due_ns)
        self.arm(task, due_ns)
        return True

    def advance(self, now_ns):
        self.now_ns = now_ns
        last = self.number  # what is added from here on waits for the next turn
        later = []
        while self.entries and self.entries[0][0] <= now_ns:
            due_ns, number, task = heapq.heappop(self.entries)
            if task.due_ns != due_ns:
                continue  # moved, or cancelled
            if number > last and not task.period_ns and BUG != "endless-turn":
                later.append((due_ns, number, task))
                continue
            self.fire(task, due_ns)
        for entry in later:
            heapq.heappush(self.entries, entry)

    def fire(self, task, due_ns):
        if task.kind == "fixed-rate" and CATCH_UP == "skip" and BUG != "rearmed-in-the-past":
            missed = (self.now_ns - due_ns) // task.period_ns
            if missed and BUG == "lost-when-late":
                return
            if due_ns + missed * task.period_ns < self.now_ns - MS:
                self.arm(task, due_ns + (missed + 1) * task.period_ns)
                return
            due_ns += missed * task.period_ns
        task.due_ns = None
        if BUG == "armed-twice" and task.period_ns:
            self.arm(Task(task.name), self.now_ns)
        self.running, started_ns = task.name, self.now_ns
        self.run(task.name)
        self.running = None
        if BUG == "rearmed-from-the-end":
            started_ns = self.now_ns
        if not task.period_ns or (task.is_cancelled and BUG != "cancelled-inside-and-rearmed"):
            return
        if task.due_ns is not None and BUG != "begun-inside-and-rearmed":
            return
        if BUG == "lost-when-late" and started_ns >= due_ns + task.period_ns:
            return
        self.arm(task, self.following(task, due_ns, started_ns))

    def following(self, task, due_ns, started_ns):
        """The next deadline of a periodic task that has run."""
        if task.kind == "fixed-delay":
            return (due_ns if BUG == "delay-from-the-deadline" else self.now_ns) + task.period_ns
        if BUG == "rearmed-from-now" or CATCH_UP == "restart":
            return started_ns + task.period_ns
        if CATCH_UP == "burst" or BUG == "rearmed-in-the-past":
            return due_ns + task.period_ns
        return due_ns + ((started_ns - due_ns) // task.period_ns + 1) * task.period_ns


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


DESCRIPTION = {
    "protocol": "purgatorio-subject/1.2",
    "name": "toy-periodic",
    "version": "1",
    "language": "Python",
    "capabilities": [
        "timer",
        "virtual-time",
        "cancel",
        "fixed-rate",
        "fixed-delay",
        "reset",
        "reset-periodic",
        "lasting",
    ],
    "profile": "timer-cancel-barrier",
    "reports": ["timer_fire"],
    "tick_ns": MS,
    "early_ns": 0,
    "late_ns": MS,
    "catch_up": CATCH_UP,
    "turn": "next",
    "gates": ["timer_fire"],
}


class Subject:
    def __init__(self):
        self.timer, self.gates, self.holds = None, [], 0

    def run(self, task):
        """A task runs: at the gate it makes the requested calls until it is resumed."""
        say(m="enter", f="timer_fire", id=task)
        if "timer_fire" in self.gates:
            self.holds += 1
            say(m="held", hold=self.holds, f="timer_fire", id=task)
            while (call := json.loads(sys.stdin.readline()))["m"] != "go":
                self.answer(call)
            say(m="answer", n=call["n"])
        say(m="leave", f="timer_fire", id=task)

    def answer(self, call):
        say(m="answer", n=call["n"], **self.result(call))

    def result(self, call):
        name, timer = call["m"], self.timer
        if name == "start":
            self.timer, self.gates = Timer(call["now_ns"], self.run), call.get("gates", [])
        elif name == "add":
            timer.add(Task(call["id"]), call["delay_ns"])
        elif name == "repeat":
            timer.add(Task(call["id"], call["kind"], call["period_ns"]), call["delay_ns"])
        elif name == "reset":
            return {"out": int(timer.reset(call["id"], call["delay_ns"]))}
        elif name == "cancel":
            return {"out": int(timer.cancel(call["id"]))}
        elif name == "advance" and timer.running is not None:  # the run lasts
            timer.now_ns = call["now_ns"]
        elif name == "advance":
            timer.advance(call["now_ns"])
        elif name not in ("quiesce", "stop"):
            return {"err": "UnknownCall"}
        return {}


def main():
    subject = Subject()
    for line in sys.stdin:
        call = json.loads(line)
        if call["m"] == "describe":
            say(m="description", n=call["n"], **DESCRIPTION)
        else:
            subject.answer(call)


if __name__ == "__main__":
    main()
