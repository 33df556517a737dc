"""`Selection`: a filter that selects the events that show a violation:

    (id in subjects and i <= last_i)  or  i in events  or  (c in events and i <= last_i)
    or, for a check with a wrong count,  i between events[0] and last_i  (later reduced to the thread of the check)

If a size or a gauge is wrong (clauses T5, P1, P2), `subjects` are the tasks or operations that `Tasks` finds. Of tasks,
only the timer events are selected. An engine such as Spark runs this filter on its own tables, and passes the rows to
`counterexample`.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.clause.declaration import Wording
from purgatorio_spec.clause.registry import CLAUSES, WORDINGS_BY_PROFILE
from purgatorio_spec.history.part import Reading
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.show.visible import counted
from purgatorio_spec.trace.coded import among, values
from purgatorio_spec.trace.log import LOG_CLAUSES
from purgatorio_spec.trace.log import PROFILE as LOG_PROFILE
from purgatorio_spec.verdict import Violation

Kind = Literal["operation", "check", "reading"]


class CauseKey(NamedTuple):
    file: str
    run: str
    clause: str
    cause: str


TIMER: Final = ("timer_add", "timer_cancel", "timer_fire")
"""The functions of a timer on a task."""

_REGISTERS: Final = "try_complete_else_watch"
_ADDS: Final = ("timer_add", _REGISTERS)
_ENDS: Final = ("timer_fire", "on_complete", "cancelled")
_OF_OPERATIONS: Final = (_REGISTERS, "try_complete", *_ENDS[1:])
_OF_READING: Final[Mapping[str, tuple[str, ...]]] = {"T5": TIMER, "P1": _OF_OPERATIONS, "P2": _OF_OPERATIONS}
"""The functions that change what a reading counts, by the clause of the reading."""

TASKS_NAMED: Final = 8
_OUT_SHOWN: Final = 3
_ADDS_ENTRIES: Final = 2
"""The first `try_complete` of a registration has begun and ended, and the second has not begun. An operation that
another thread completes then is the likeliest to keep an entry."""


@dataclass(slots=True)
class Tasks:
    """The tasks to show for a wrong size (T5), or the operations for wrong gauges (P1, P2), from the events up to
    `last_i`. `functions`: the functions that add and remove them. `pending`: those that wait, in the order of their
    adds, each with the number of its adds without a fire. `out`: the last removed ones, in the order of removal.
    `raced`: the last operations that another thread completed during their registration, each with this thread. Only
    those at the place of the registration that is the likeliest to keep an entry."""

    last_i: int
    functions: tuple[str, ...] = TIMER
    pending: dict[str, int] = field(default_factory=dict)
    out: list[str] = field(default_factory=list)
    raced: dict[str, str] = field(default_factory=dict)
    _rank: tuple[bool, int] = (True, sys.maxsize)
    """The place of `raced`: the least is the likeliest."""
    _registering: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each open registration: its thread, and how many times a `try_complete` has begun or ended in it."""

    @classmethod
    def counted_by(cls, violation: Violation) -> Self | None:
        """New `Tasks` without events, for a violation about a wrong size or gauge. None for other violations."""
        functions = _OF_READING.get(violation.clause)
        return None if functions is None else cls(max(violation.events), functions)

    def feed(self, events: pa.Table) -> None:
        """Add events in order, in the form of `select`."""
        before = events.column("i").to_numpy() <= self.last_i
        table = events.filter(pa.array(among(events, "f", *self.functions) & before))
        for f, ph, task, out, err, th in values(table, "f", "ph", "id", "out", "err", "th"):
            if f == _REGISTERS and ph == "ret":
                self._registering.pop(task, None)
            elif f == _REGISTERS:
                self._registering[task] = th, 0
            if f in _ADDS and ph != "ret":
                self.pending[task] = self.pending.pop(task, 0) + 1
            elif (f in _ENDS and ph != "ret") or (f == "timer_add" and err is not None):
                self._take(task, 1)
                self._completed(task, th)
            elif f == "try_complete" and self._registering.get(task, ("",))[0] == th:
                self._registering[task] = th, self._registering[task][1] + 1
            elif f == "timer_cancel" and ph != "call" and out != 0 and err is None:
                self._take(task, self.pending.get(task, 0))

    def _take(self, task: str, times: int) -> None:
        left = self.pending.get(task, times) - times
        if left:
            self.pending[task] = left
            return
        self.pending.pop(task, None)
        if times:
            self.out = [*(one for one in self.out if one != task), task][-_OUT_SHOWN:]

    def _completed(self, task: str, by: str) -> None:
        th, tries = self._registering.get(task, (by, 0))
        rank = tries != _ADDS_ENTRIES, tries
        if th != by and rank <= self._rank:
            before = self.raced.items() if rank == self._rank else ()
            self.raced = dict([*before, (task, by)][-_OUT_SHOWN:])
            self._rank = rank

    @property
    def shown(self) -> tuple[str, ...]:
        """The tasks to show: pending ones (one more than are named, to show that there are more), and removed ones. Of
        operations, which have more events, only a few."""
        count = TASKS_NAMED + 1 if self.functions is TIMER else _OUT_SHOWN
        return (*list(self.pending)[-count:], *(self.raced or self.out))

    def __str__(self) -> str:
        named = list(self.pending)[-TASKS_NAMED:]
        waiting = f"{'..., ' * (len(self.pending) > TASKS_NAMED)}{', '.join(named) or 'none'}"
        if self.functions is TIMER:
            return waiting
        if self.raced:
            ended = ", ".join(f"{one} (by {th})" for one, th in self.raced.items())
            return f"{waiting}; perhaps still counted, because completed during the registration: {ended}"
        return f"{waiting}; ended last: {', '.join(self.out) or 'none'}"


@dataclass(frozen=True, slots=True)
class Selection:
    """The filter as values. `subjects`: the operations or tasks. `of_timer`: only their timer events."""

    subjects: tuple[str, ...]
    events: tuple[int, ...]
    last_i: int
    between: bool = False
    of_timer: bool = False
    exact: bool = False
    """Whether only `events` are selected."""


def kind_of(violation: Violation) -> Kind:
    """Whether an operation (or task), a `check_and_complete` or a reading of the gauges broke the clause."""
    clause = CLAUSES.get(violation.clause)
    if clause is not None and Reading in clause.judges:
        return "reading"
    return "check" if violation.cause == "check-miscounted" else "operation"


def noun(clause: str, cause: str, count: int, profile: str = "") -> str:
    """The number of violations of a cause in words: `1 task`, `1,278 operations`, on the wire `2 requests`."""
    of_wire = profile in WORDINGS_BY_PROFILE
    of_reading = not of_wire and Reading in CLAUSES[clause].judges
    one = (
        "request" if of_wire or profile == LOG_PROFILE else
        "reading" if of_reading else "check" if cause == "check-miscounted"
        else "task" if clause.startswith("T") else "operation"
    )  # fmt: skip
    return counted(count, one)


def selection(violation: Violation, tasks: Tasks | None = None) -> Selection:
    """The filter for the events that show a violation. `tasks`: the tasks for a wrong size."""
    kind = kind_of(violation)
    subjects = () if tasks is None else tasks.shown
    return Selection(
        subjects=(violation.subject,) if kind == "operation" else subjects,
        events=violation.events,
        last_i=max(violation.events),
        between=kind == "check",
        of_timer=tasks is not None and tasks.functions is TIMER,
    )


def tasks_of(table: pa.Table, violation: Violation) -> Tasks | None:
    """The tasks or operations of a wrong size or gauge, from events (`EVENT_SCHEMA`). None for other violations."""
    tasks = Tasks.counted_by(violation)
    if tasks is not None:
        tasks.feed(table)
    return tasks


def select(table: pa.Table, wanted: Selection) -> pa.Table:
    """The rows of an event table that the filter selects, in order. The table is a run or a part of a run, with
    `EVENT_SCHEMA`; its texts may be dictionaries."""
    i = table.column("i").to_numpy()
    before = i <= wanted.last_i
    keep = np.isin(i, wanted.events)
    if wanted.exact:
        return table.filter(pa.array(keep))
    keep |= np.asarray(pc.is_in(table.column("c"), value_set=pa.array(wanted.events, pa.int64()))) & before
    if wanted.subjects:
        mine = among(table, "id", *wanted.subjects) & before
        keep |= mine & among(table, "f", *TIMER) if wanted.of_timer else mine
    if wanted.between:
        keep |= (i >= wanted.events[0]) & before
    return table.filter(pa.array(keep))


def causes(result: CheckResult) -> Iterator[tuple[CauseKey, RunResult, int, Violation]]:
    """Every cause of a check: its key, its run, its number of violations, and the earliest violation."""
    for run in result.runs:
        for clause in run.clauses.values():
            for name, cause in clause.causes.items():
                if cause.examples:
                    yield (
                        CauseKey(run.file, run.run, clause.clause, name),
                        run,
                        cause.count,
                        cause.examples[0],
                    )


def wordings(profiles: Iterable[str]) -> dict[str, Wording]:
    """Every clause for runs of these profiles, with its title and its sentences."""
    named = set(profiles)
    others = named & WORDINGS_BY_PROFILE.keys()
    found = {} if named and named == others else {name: clause.wording for name, clause in CLAUSES.items()}
    for profile in sorted(others):
        found |= WORDINGS_BY_PROFILE[profile]
    return found


def wording_of(clause: str, profile: str, cause: str = "") -> Wording:
    """The title and the sentences of a clause for a run of the profile. For a log, in the words of its requests. With
    a cause, the sentences that a violation with this cause breaks."""
    if profile in WORDINGS_BY_PROFILE:
        return WORDINGS_BY_PROFILE[profile][clause]
    if profile == LOG_PROFILE and clause in LOG_CLAUSES:
        return Wording(CLAUSES[clause].title, f"Each request is {LOG_CLAUSES[clause]}.")
    return CLAUSES[clause].wording_in(profile, cause)
