"""The clauses T8 to T10: a periodic task does not run before its deadline, runs at most late_ns after the deadline, and
does not run after a cancel. `clauses.toml` has the rules and their formulas. Further rules of T9 and T10:

- In virtual time, a task runs only in an `advance_clock`. So a run that is due at t may wait for the end of the first
  `advance_clock` that began after the add and returned at t or later.
- The record of a run may be late by `late_ns`, but the timer counts from the true start of the run. So in real time,
  the next period may look shorter by `late_ns`. Without `late_ns`, the record counts as exact.
- With `skip`, a slot may stay without a fire if the previous fire was still running, or if the virtual clock never
  stopped within the bounds of the slot.
- A cancel that returned 0 reports that the task has ended. If it began before the return of the add, it does not count.

The timer may compute the first deadline at any time between the add's call and its return. T9 counts from the latest of
these times. A run that raises an exception may end the task, as in Java's ScheduledExecutorService. Then T9 requires no
further run, and T5 no longer counts the task. If the task runs again, T8 to T10 judge this run as before. A task that
was added more than once is not judged.

Each reset that returned 1 divides the task into two parts. Each part is judged like a separate task, whose first
deadline is the deadline of the reset.
"""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.durations import exact
from purgatorio_spec.history.operation import NEVER, Call, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, WANT_OF_RECORDS

_UNKNOWN: Final = "unknown"
"""The rule of a fixed rate without `catch_up`. T8 judges the task like `burst`, whose runs may come earliest."""


class _Due(NamedTuple):
    """The due times of the next run. It must not start before `earliest_t`. It must start by the first chance to run at
    (`latest_t` + late bound) or later."""

    earliest_t: int
    latest_t: int


@dataclass(slots=True)
class _Task:
    """A periodic task: its add, and the slots of its fires so far. `slot`: the first slot without a fire."""

    run: Run
    add: Call
    period_ns: int
    first_t: int
    """Its earliest first deadline."""
    spread_ns: int
    """The timer may have computed the first deadline later by this much."""
    rule: str
    slot: int = 0
    later_slot: int = 0
    """Like `slot`, if each fire answered the last slot that was due: a timer that makes up for several at once may
    count so."""
    before: Call | None = None
    since_t: int = 0
    """The earliest time from which the period of the next run counts. A run may be recorded late, by `late_ns`."""

    @property
    def early_ns(self) -> int:
        return self.run.early_ns or 0

    @property
    def late_ns(self) -> int | None:
        return self.run.late_ns

    @property
    def _free_t(self) -> int:
        """The end of the previous fire. Without a previous fire, the time of the add."""
        return self.add.call_t if self.before is None else _end_t(self.before)

    def _deadline(self, slot: int) -> int:
        return self.first_t + slot * self.period_ns

    def _last_missed(self, t: int) -> int:
        """The last slot whose late bound has passed at `t`. Negative if there is none."""
        if self.late_ns is None:
            return -1
        return -((self.first_t + self.spread_ns + self.late_ns - t) // self.period_ns) - 1

    def due(self, fire_t: int | None) -> _Due:
        """The due times of the next run. `fire_t`: its start (None: it did not run). The start determines the slot of
        the run."""
        first = _Due(self.first_t - self.early_ns, self.first_t + self.spread_ns)
        if self.rule in ("delay", "restart"):
            if self.before is None:
                return first
            short_ns = self.period_ns - (self.late_ns or 0) if self.rule == "restart" else 0
            from_t = self.before.call_t if self._free_t < self.before.call_t + short_ns else self._free_t
            return _Due(self.since_t + self.period_ns - self.early_ns, from_t + self.period_ns)
        slot = self._latest_slot() if self.rule == "skip" else self.later_slot
        latest_t = max(self._deadline(slot) + self.spread_ns, self._free_t)
        answered = self.slot if fire_t is None else self._answered(fire_t)
        return _Due(self._deadline(answered) - self.early_ns, latest_t)

    def _answered(self, fire_t: int) -> int:
        missed = self._last_missed(fire_t)
        if self.rule == "once":
            return max(self.slot, missed)
        return max(self.slot, missed + 1) if self.rule == "skip" else self.slot

    def _latest_slot(self) -> int:
        """The first remaining slot in which the subject had a chance to run the task."""
        free_t, late_ns = self._free_t + self.early_ns, self.late_ns or 0
        slot = self.later_slot
        if self.before is not None:
            slot = max(slot, -((self.first_t - free_t) // self.period_ns))
        if not self.run.virtual:
            return slot
        last_t = self.first_t + self.spread_ns + late_ns
        advances = self.run.facts.advances
        for advance in advances[
            bisect_left(advances, last_t + slot * self.period_ns, key=lambda one: one.ret_t) :
        ]:
            if (advance.ret_t - last_t) % self.period_ns == 0:
                return (advance.ret_t - last_t) // self.period_ns
        return NEVER // max(self.period_ns, 1) // 4

    def answer(self, fire: Call) -> None:
        """Records the start of the next run."""
        self.slot = self._answered(fire.call_t) + 1
        if self.rule in ("once", "skip"):
            due = (fire.call_t + self.early_ns - self.first_t) // self.period_ns
            self.later_slot = max(self.slot, due + 1)
        else:
            self.later_slot = self.slot
        floor_t = self.first_t if self.before is None else self.since_t + self.period_ns
        recorded_t = _end_t(fire) if self.rule == "delay" else fire.call_t
        if self.rule == "restart" and not self.run.virtual and self.late_ns is None:
            # The period counts from the time at which the timer saw that the run was due. This time is unknown.
            recorded_t = floor_t
        self.since_t = max(floor_t, recorded_t - (0 if self.run.virtual else self.late_ns or 0))
        self.before = fire


def _end_t(fire: Call) -> int:
    return NEVER if fire.ret_t is None else fire.ret_t


def _parts(run: Run, history: OperationHistory) -> Iterator[tuple[_Task, OperationHistory, Call | None]]:
    """The parts of the task: from its add, and from each reset, to the next reset. No parts if this is no periodic
    task, or if nothing is promised about it. (A fire that began during a reset, or that could still come after the
    reset, may belong to either part. Then nothing is judged.)"""
    adds = [*history.rates, *history.delays]
    resets = [reset for reset in history.resets if reset.out != 0]
    if len(adds) != 1 or history.adds or (resets and not run.cancel_is_final(1)):
        return
    rule = (run.catch_up or _UNKNOWN) if history.rates else "delay"
    period_ns = adds[0].delay_ns
    if period_ns is None or period_ns < 1:
        return
    for start, end in itertools.zip_longest([*adds, *resets], resets):
        first_t, until_i = start.deadline_t, NEVER if end is None else end.call_i
        own_run = rule == "delay" and history.fire_of(start) is not None
        begun_within = any(
            start.call_i < fire.call_i < start.end_i for fire in history.fires if start in resets
        )
        untold = start in resets and start.out is None
        if (
            first_t is None
            or start.ret_t is None
            or start.err is not None
            or own_run
            or begun_within
            or untold
        ):
            return
        # During an advance, the clock may show any time of this advance.
        last_t = start.ret_t if start in adds else (start.latest_due_t or first_t)
        spread_ns = max(0, last_t - (start.call_t if start in adds else first_t))
        part = replace(
            history,
            fires=[fire for fire in history.fires if start.call_i < fire.call_i < until_i],
            cancels=[cancel for cancel in history.cancels if start.call_i < cancel.call_i < until_i],
        )
        yield _Task(run, start, period_ns, first_t, spread_ns, rule), part, end


def _all_parts(
    judge: Callable[[Run, _Task, OperationHistory, Call | None], Finding],
) -> Callable[[Run, OperationHistory], Finding]:
    """The result for a task: that of the first part that is broken or undecided. Otherwise an occasion if any part had
    one."""

    @functools.wraps(judge)
    def judged(run: Run, history: OperationHistory) -> Finding:
        found = NO_OCCASION
        for part in _parts(run, history):
            finding = judge(run, *part)
            if isinstance(finding, Broken) or finding.undecided:
                return finding
            found = finding if finding.occasions else found
        return found

    return judged


def _played(task: _Task, history: OperationHistory) -> Iterator[tuple[Call, _Due]]:
    """The fires in order, each with its due times."""
    for fire in history.fires:
        yield fire, task.due(fire.call_t)
        task.answer(fire)


T8 = Clause("T8")


@T8.of_operation
@_all_parts
def once_a_period(run: Run, task: _Task, history: OperationHistory, _end: Call | None) -> Finding:
    """Judge whether each run of a periodic task comes early.

    Each fire with a fixed rate belongs to one slot. Without `late_ns`, the clause cannot know which runs were late, so
    `once` and `skip` are judged as `burst`.
    """
    if not history.fires:
        return NO_OCCASION
    before: Call | None = None
    for fire, due in _played(task, history):
        if fire.call_t < due.earliest_t:
            return Broken(
                "ran-before-its-period",
                [task.add.call_i if before is None else before.call_i, fire.call_i],
                f"{_kind(task)}: runs at t >= {run.at(due.earliest_t)}",
                f"ran at t = {run.at(fire.call_t)}, {exact(due.earliest_t - fire.call_t)} early"
                + (
                    "" if before is None else f", {exact(fire.call_t - before.call_t)} after the previous run"
                ),
            )
        before = fire
    return KEPT


def _kind(task: _Task) -> str:
    rule = "fixed delay" if task.rule == "delay" else f"fixed rate, catch_up {task.rule}"
    return f"{rule}, period {exact(task.period_ns)}, first deadline {task.run.at(task.first_t)}"


T9 = Clause("T9")


@T9.of_operation
@_all_parts
def keeps_its_rate(run: Run, task: _Task, history: OperationHistory, end: Call | None) -> Finding:
    """Judge whether each run of a periodic task comes late.

    The duration of the previous run does not count as lateness. So with `restart`, this clause counts from the end of a
    run that lasted for about a period or longer.
    """
    if run.late_ns is None or task.rule == _UNKNOWN or (run.virtual and not run.facts.advances):
        return NO_OCCASION
    stops = [cancel for cancel in (*history.cancels, end) if cancel is not None and cancel.out != 0]
    stop = min(stops, key=lambda cancel: cancel.call_i, default=None)
    stop_i = NEVER if stop is None else stop.call_i
    before = task.add
    for fire, due in _played(task, history):
        if fire.call_i > stop_i:
            break
        last_t = run.chance_t(due.latest_t + run.late_ns, task.add.call_i)
        if fire.call_t > last_t:
            return Broken(
                "drifted",
                [before.call_i, fire.call_i],
                f"{_kind(task)}: runs by t = {run.at(last_t)}",
                f"ran at t = {run.at(fire.call_t)}, {exact(fire.call_t - last_t)} late",
            )
        before = fire
    occasion = KEPT if history.fires else NO_OCCASION
    if before.err is not None or (before is not task.add and before.ret_t is None):
        return occasion
    if any(fire.call_i > before.call_i for fire in history.fires):
        return occasion
    last_t = run.chance_t(task.due(None).latest_t + run.late_ns, task.add.call_i)
    until_t = run.facts.end_t if stop is None else min(stop.call_t, run.facts.end_t)
    if last_t >= until_t:
        return occasion
    if not run.whole:
        return WANT_OF_RECORDS
    refused = ", and each cancel returned 0" * (stop is None and bool(history.cancels))
    return Broken(
        "stopped-running",
        [before.call_i, before.end_i],
        f"{_kind(task)}: runs by t = {run.at(last_t)}, because no call cancels it{refused}",
        f"it did not run again until t = {run.at(until_t)}",
    )


T10 = Clause("T10")


@T10.of_operation
@_all_parts
def cancel_ends_it(run: Run, task: _Task, history: OperationHistory, _end: Call | None) -> Finding:
    """Judge the runs of a periodic task after its first cancel.

    If two runs of the task overlap, a cancel inside a run counts like a cancel of another thread.
    """
    ended = [c for c in history.cancels if c.err is None and c.ret_i is not None]
    cancels = [c for c in ended if c.out != 0 or task.add.end_i < c.call_i]
    if not cancels:
        return NO_OCCASION
    cancel = cancels[0]
    by_itself = history.fire_of(cancel) is not None and not _overlap(history)
    holds = by_itself or (run.cancel_is_final(cancel.out) and cancel.out == 1)
    handed_over = False
    for fire, due in _played(task, history):
        if fire.call_i < cancel.end_i:
            continue
        if not holds and not handed_over and due.earliest_t <= (cancel.ret_t or 0):
            handed_over = True
            continue
        return Broken(
            "ran-after-cancel",
            [cancel.call_i, cancel.end_i, fire.call_i],
            f"timer_cancel {'returned 0' if cancel.out == 0 else 'took effect'} by t = {run.at(cancel.ret_t or 0)}: "
            f"the task {'has ended' if cancel.out == 0 else 'does not run again'}",
            f"it ran at t = {run.at(fire.call_t)}",
        )
    return KEPT


def _overlap(history: OperationHistory) -> bool:
    """Whether two runs overlapped. If so, a run may have been passed to the executor during the cancel inside another
    run."""
    ends = [fire.end_i for fire in history.fires]
    return any(fire.call_i < end for fire, end in zip(history.fires[1:], ends, strict=False))
