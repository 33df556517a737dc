"""Small programs for a timer with threads of its own, in every order of the threads: `pytest`. See docs/explorer.md.

A program makes the calls `before`. Then two threads make the calls `first` and `second`. A third thread stops the timer
when all deadlines are over. Copy this file and `test_races.py` next to your adapter.
"""

import time

from test_own_clock import Adapter

MS = 1_000_000
LATE_S = 1.0  # no thread holds up another for so long: a task that is later was forgotten


class Program:
    before = first = second = ()

    def __init__(self):
        self.timer = Adapter()
        self.handles, self.calls, self.starts = {}, [], []
        self.began_s = time.monotonic()

    def threads(self):
        self.make(self.before)
        return [lambda: self.make(self.first), lambda: self.make(self.second), self.stop]

    def make(self, calls):
        for call, task, delay_ms in calls:
            begun_s = time.monotonic() - self.began_s
            if call == "add":
                out = self.handles[task] = self.timer.add(delay_ms * MS, lambda task=task: self.start(task))
            elif call == "reset":
                out = self.timer.reset(self.handles[task], delay_ms * MS)
            else:
                out = self.timer.cancel(self.handles[task])
            self.calls.append((call, task, begun_s + delay_ms / 1000, out))

    def start(self, task):
        self.starts.append((task, time.monotonic() - self.began_s))

    def stop(self):
        time.sleep(60)
        self.timer.stop()

    def check(self):
        for task in self.handles:
            starts = [at_s for name, at_s in self.starts if name == task]
            calls = [(call, due_s, out) for call, name, due_s, out in self.calls if name == task]
            dues = [due_s for call, due_s, out in calls if call != "cancel" and out is not False]
            cancels = [out for call, _, out in calls if call == "cancel"]
            resets = len(dues) - 1
            assert len(starts) <= 1 + resets, f"{task} ran {len(starts)} times: {calls}, {starts}"
            if True in cancels and not resets:
                assert not starts, f"{task} was cancelled, and ran: {calls}, {starts}"
            if not cancels:
                assert starts, f"{task} never ran: {calls}"
                assert -0.001 <= starts[-1] - dues[-1] < LATE_S, (
                    f"{task} ran at a wrong time: {calls}, {starts}"
                )


class CancelBesideRun(Program):
    before, first = (("add", "a", 0),), (("cancel", "a", 0),)


class CancelTwice(Program):
    before, first, second = (
        (("add", "a", 1000),),
        (("cancel", "a", 0),),
        (("cancel", "a", 0), ("add", "b", 5)),
    )


class EarlierTask(Program):
    before, first, second = (("add", "a", 5000),), (("add", "b", 1000),), (("add", "c", 3000),)


class ResetBesideCancel(Program):
    before, first, second = (("add", "a", 1000),), (("reset", "a", 3000),), (("cancel", "a", 0),)


class ResetLater(Program):
    before, first, second = (("add", "a", 1000),), (("reset", "a", 3000),), (("add", "b", 2000),)
