"""The spec's clauses over the history of an explored run, without the detour over a trace file.

The same clauses, fed with the same context (which check follows a `ready`, what completed inside which call) as by the
engines that judge traces; a test compares the two on every history of an exploration. Many runs have the same history:
each is judged once and remembered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.clause.registry import Clause
from purgatorio_spec.history.check import CheckCall
from purgatorio_spec.history.operation import CONTEXT, NEVER, Row, operation_history
from purgatorio_spec.history.reading import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Bounds, Moments, bounds, summary_of
from purgatorio_spec.judge.context import RawReading
from purgatorio_spec.judge.rowwise import reading
from purgatorio_spec.judge.tally import judged_clauses
from purgatorio_spec.verdict import Judgement
from purgatorio_stress.explorer.history_log import LogRow
from purgatorio_stress.explorer.program import Broken

__all__ = ["HistoryJudge"]

_REMEMBERED = 200_000


@dataclass(slots=True)
class _Frame:
    f: str
    call_i: int
    key: str
    completed: list[str] = field(default_factory=list)
    had_check: bool = False


class HistoryJudge:
    """Judges histories of runs with the same constants. `occasions` counts, by clause, over different histories."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.occasions: dict[str, int] = {}
        self.distinct = 0
        self._clauses = judged_clauses(run)
        self._of_operation = [
            (clause, clause.of_operation) for clause in self._clauses if clause.of_operation is not None
        ]
        self._known: dict[tuple[LogRow, ...], tuple[Broken, ...]] = {}

    def judge(self, rows: Sequence[LogRow]) -> tuple[Broken, ...]:
        """What the history broke."""
        key = tuple(rows)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._judge(key)
            self.distinct += 1
        return known

    def _judge(self, rows: tuple[LogRow, ...]) -> tuple[Broken, ...]:
        broken: list[Broken] = []
        parts, checks = _parts(rows)
        histories = [operation_history(operation, part) for operation, part in parts.items()]
        for history in histories:
            for clause, judge in self._of_operation:
                self._count(clause, judge(self.run, history), broken)
        for check in checks:
            for clause in self._clauses:
                if clause.of_check is not None:
                    self._count(clause, clause.of_check(self.run, check), broken)
        raw = _readings(rows)
        if raw:
            moments = Moments.of(*(np.array(column, np.int64) for column in _moments(raw)))
            held = np.array([summary_of(history) for history in histories], np.int64)
            totals = bounds(moments, held, self.run.tick_ns or 0) if histories else Bounds.zero(len(raw))
            for at, one in enumerate(raw):
                self._count_reading(reading(one, totals, at), broken)
        return tuple(broken)

    def _count_reading(self, one: Reading, broken: list[Broken]) -> None:
        for clause in self._clauses:
            if clause.of_reading is not None:
                self._count(clause, clause.of_reading(self.run, one), broken)

    def _count(self, clause: Clause, judgement: Judgement, broken: list[Broken]) -> None:
        self.occasions[clause.id] = self.occasions.get(clause.id, 0) + judgement.occasions
        violation = judgement.violation
        if violation is not None:
            broken.append(Broken(violation.clause, violation.subject, f"{violation.cause}: {violation.seen}"))


def _parts(rows: tuple[LogRow, ...]) -> tuple[dict[str, list[Row]], list[CheckCall]]:
    """The rows of each operation with their context rows behind, and the checks."""
    parts: dict[str, list[Row]] = {}
    context: list[tuple[str, Row]] = []
    stacks: dict[str, list[_Frame]] = {}
    last_of_thread: dict[str, Callable[[int], None]] = {}
    last_i: dict[str, int] = {}
    checks: list[CheckCall] = []
    ready: dict[str, int] = {}
    registered: dict[str, tuple[str, ...]] = {}
    for i, (th, t, ph, f, operation, c, keys, delay, deadline, t_call, out, err, _) in enumerate(rows):
        tell = last_of_thread.pop(th, None)
        if tell is not None:
            tell(i)
        before, last_i[th] = last_i.get(th, -1), i
        if operation is not None:
            parts.setdefault(operation, []).append(
                (i, th, t, ph, f, c, keys, delay, deadline, t_call, out, err)
            )
            if f == "ready":
                ready.setdefault(operation, i)
        if f not in ("check_and_complete", "try_complete_else_watch", "try_complete"):
            continue
        stack = stacks.setdefault(th, [])
        if ph == "call":
            if f == "try_complete_else_watch" and operation is not None:
                registered.setdefault(operation, keys or ())
            if f == "check_and_complete":
                for frame in stack:
                    frame.had_check = True
            nested = any(frame.f == "try_complete_else_watch" and frame.had_check for frame in stack)
            if f == "try_complete" and nested and operation is not None:
                context.append((operation, _context(i, "nested", None, None)))
            if f == "try_complete" and operation is not None:
                context.append((operation, _context(i, "previous", before, None)))
            stack.append(_Frame(f, i, keys[0] if keys else ""))
            continue
        while stack and stack[-1].call_i > (-1 if c is None else c):
            stack.pop()
        if not stack or stack[-1].call_i != c:
            continue
        frame = stack.pop()
        if f == "try_complete" and operation is not None:
            last_of_thread[th] = _teller(context, operation, i)
            if out == 1 and stack:
                stack[-1].completed.append(operation)
        elif f == "check_and_complete" and out is not None:
            checks.append(CheckCall(frame.key, th, frame.call_i, i, out, tuple(frame.completed)))
    for tell in last_of_thread.values():
        tell(NEVER)
    for operation, keys_of in registered.items():
        for key in dict.fromkeys(keys_of):
            after = [
                check for check in checks if check.key == key and check.call_i > ready.get(operation, NEVER)
            ]
            if after:
                first = min(after, key=lambda check: check.ret_i)
                context.append((operation, _context(first.call_i, "check", first.ret_i, (key,))))
    for operation, row in context:
        parts[operation].append(row)
    return parts, checks


def _teller(context: list[tuple[str, Row]], operation: str, i: int) -> Callable[[int], None]:
    def tell(following: int) -> None:
        context.append((operation, _context(i, "next", following, None)))

    return tell


def _context(i: int, f: str, c: int | None, keys: tuple[str, ...] | None) -> Row:
    return (i, "", 0, CONTEXT, f, c, keys, None, None, None, None, None)


def _readings(rows: tuple[LogRow, ...]) -> list[RawReading]:
    """Readings at the end of a run: all recorded as points, when nothing happens any more."""
    return [
        RawReading(i, i, row[1], state.watched, state.delayed, quiesce=True, bounded=False, at_rest=True)
        for i, row in enumerate(rows)
        if row[3] == "quiesce" and (state := row[12]) is not None
    ]


def _moments(raw: list[RawReading]) -> tuple[list[int], list[int], list[int]]:
    return [one.call_i for one in raw], [one.ret_i for one in raw], [one.t for one in raw]
