"""The recheck: the clauses judge the candidates (operations that may break a clause) by their events.

The batches are read a second time. From each batch, the recheck takes the rows of the candidates and of a sample of the
other operations, and the calls of threads whose `check_and_complete` results may be wrong. It judges an operation after
the last event that the operation needs. So the memory is proportional to the number of open operations.

The clause O4 (a ready operation does not wait) is about checks of the operation's keys that start after the operation
is ready. Of these checks, `FirstChecks` finds the one that returns first. A check that ended with an exception does not
count. Between batches, it keeps the open checks, and the ready operations for which no check has returned yet.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.fast_path.columns import Columns, Stretches
from purgatorio_spec.fast_path.operations import Operations
from purgatorio_spec.fast_path.readings import Truths
from purgatorio_spec.history.operation import NEVER, ROW_FIELDS, ContextRow, histories
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary, summary_of
from purgatorio_spec.judge.context import FOLLOWED, ThreadCalls, thread_rows
from purgatorio_spec.judge.result import RunTally
from purgatorio_spec.trace.coded import AT, CALL, RET, Flags, Ints, Numbered, is_given, plain, where
from purgatorio_spec.trace.columns import EVENT_SCHEMA


@dataclass(slots=True)
class Checks(Columns):
    """Checks by key: call and return, as rows of the run and as positions."""

    key: Ints
    call: Ints
    call_i: Ints
    ret: Ints
    ret_i: Ints


@dataclass(slots=True)
class SettlingChecks:
    """Operations that need not wait any more, each with the first returned check of one of its keys."""

    operation: Ints
    key: Ints
    check: Checks


@dataclass(slots=True)
class Waiting(Columns):
    """The operations that wait for a check: number, key, and the row at which the operation was ready."""

    operation: Ints
    key: Ints
    ready: Ints


@dataclass(slots=True)
class FirstChecks:
    """The open checks, and the operations that wait for a check, with one row for each key."""

    open: Checks = field(default_factory=Checks.none)
    waiting: Waiting = field(default_factory=Waiting.none)

    def wait(self, operations: Ints, keys: Ints, ready: Ints) -> None:
        """Add operations that wait from the row at which they were ready, with one entry for each key."""
        self.waiting = Waiting.joined((self.waiting, Waiting(operations, keys, ready)))

    def feed(self, some: Numbered, keys: Ints) -> SettlingChecks:
        """Add a batch (`keys`: the run's numbers of its keys). Return the operations that need not wait any more."""
        batch = some.batch
        calls, returns = some.rows.of("check_and_complete", CALL), some.rows.of("check_and_complete", RET)
        place, at = some.keys(calls)
        not_yet = np.full(len(place), -1)
        new = Checks(keys[at], some.first + calls[place], batch.i[calls][place], not_yet, not_yet)
        self.open = Checks.joined((self.open, new))
        closed = self._close(batch.c[returns], some.first + returns, batch.i[returns])
        if len(closed.key):
            closed = closed.of(~is_given(batch.rows.column("err"))[closed.ret - some.first])
        if not len(closed.key) or not len(self.waiting.key):
            none = Checks.none()
            return SettlingChecks(none.key, none.key, none)
        return self._settle(closed)

    def _close(self, c: Ints, rows: Ints, i: Ints) -> Checks:
        """Remove the returned checks from the open ones. If a check has two returns, the first counts."""
        if not len(c) or not len(self.open.key):
            return Checks.none()
        ordered = np.argsort(c, kind="stable")
        at = np.minimum(np.searchsorted(c[ordered], self.open.call_i), len(c) - 1)
        found = ordered[at]
        here = c[found] == self.open.call_i
        closed = self.open.of(here)
        closed.ret, closed.ret_i = rows[found[here]], i[found[here]]
        self.open = self.open.of(~here)
        return closed

    def _settle(self, closed: Checks) -> SettlingChecks:
        of = self.waiting
        checked = np.zeros(int(max(closed.key.max(), of.key.max())) + 1, bool)
        checked[closed.key] = True
        asked = np.flatnonzero(checked[of.key])
        # Sorted by key, then call; from each on, the first to return: keys are the higher part of the numbers.
        span = int(max(closed.ret.max(), of.ready.max())) + 1
        order = np.lexsort((closed.call, closed.key))
        key, call = closed.key[order], closed.call[order]
        ends = key * span + closed.ret[order]
        starts = key * span + call
        first = _first_from(ends)
        at = np.searchsorted(starts, of.key[asked] * span + of.ready[asked], side="right")
        inside = np.minimum(at, len(key) - 1)
        settled = (at < len(key)) & (key[inside] == of.key[asked])
        done = asked[settled]
        check = closed.of(order[first[inside[settled]]])
        waits = np.ones(len(of.key), bool)
        waits[done] = False
        self.waiting = of.of(waits)
        return SettlingChecks(of.operation[done], of.key[done], check)


def _first_from(ends: Ints) -> Ints:
    """For each place, the place of the smallest value at or after it."""
    least = np.minimum.accumulate(ends[::-1])[::-1]
    # Where a value is its own least, it is the place; the others take the next such place.
    own = np.where(ends == least, np.arange(len(ends)), len(ends))
    places: Ints = np.minimum.accumulate(own[::-1])[::-1]
    return places


FLUSH_ROWS: Final = 200_000
"""The number of stored rows at which the ended operations are judged."""

_THREAD_EVENTS: Final = where(lambda f, ph: f in FOLLOWED and (ph != "at" or f == "cancelled"))
_ROWS: Final = pa.schema([EVENT_SCHEMA.field(name) for name in ROW_FIELDS])


@dataclass(slots=True)
class Wanted:
    """The parts to judge. `chosen`: for each operation number, whether to judge the operation. `retried`: whether the
    neighboring events of its threads matter too. `doubtful` is by position, `inside` by row. `everything`: all checks
    are judged. `follows`: all threads are followed, because `cancel_for_key` returned an operation, or a clause has no
    rule."""

    chosen: Flags
    retried: Flags
    doubtful: Stretches
    inside: Stretches
    everything: bool = False
    follows: bool = False


@dataclass(slots=True)
class Recheck:
    """One pass over the batches of a run: feed all of them, then finish."""

    run: Run
    clauses: list[Clause]
    tally: RunTally
    operations: Operations
    joins_keys: bool
    key_names: list[str]
    threads: int
    wanted: Wanted
    truths: Truths | None
    _follower: ThreadCalls = field(default_factory=ThreadCalls)
    _first_checks: FirstChecks = field(default_factory=FirstChecks)
    _context: dict[int, list[ContextRow]] = field(default_factory=lambda: defaultdict(list))
    _held: list[tuple[pa.RecordBatch, Ints, Ints]] = field(default_factory=list)
    _held_rows: int = 0
    _last_i: Ints = field(init=False)
    """By thread, the `i` of its last event."""
    _pending: list[tuple[int, int, int]] = field(default_factory=list)
    """Thread, operation and `i` of returns without a later event of their thread."""
    _doubtful_ret_i: frozenset[int] = field(init=False)
    _numbers: dict[str, int] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._doubtful_ret_i = frozenset(self.wanted.doubtful.last.tolist())
        self._last_i = np.full(self.threads, -1, np.int64)

    def feed(self, some: Numbered, keys: Ints) -> None:
        places = np.flatnonzero(self.wanted.chosen[some.operation])
        if len(places):
            rows = some.batch.rows.select(_ROWS.names).take(places)
            self._held.append(
                (plain(rows, _ROWS), some.operation[places].astype(np.int64), some.first + places)
            )
            self._held_rows += len(places)
            numbers, first = np.unique(some.operation[places], return_index=True)
            texts = some.batch.id_texts
            ids = [str(texts[code]) for code in some.batch.id[places[first]].tolist()]
            self._names |= zip(numbers.tolist(), ids, strict=True)
            self._numbers |= zip(ids, numbers.tolist(), strict=True)
        self._follow(some)
        self._find_checks(some, keys)
        if self.wanted.retried.any():
            self._find_neighbours(some)
        if self._held_rows >= FLUSH_ROWS:
            self._judge(some.first + len(some))

    def finish(self) -> None:
        self._judge(None)
        for check in self._follower.checks:
            if self.wanted.everything or check.ret_i in self._doubtful_ret_i:
                self.tally.add(self.run, check, self.clauses)

    def _follow(self, some: Numbered) -> None:
        rows = np.flatnonzero(_THREAD_EVENTS[some.batch.code])
        if not (self.wanted.everything or self.wanted.follows):
            thread = some.thread[rows].astype(np.int64)
            inside = self.wanted.doubtful.rows(thread, some.batch.i[rows])
            inside |= self.wanted.inside.rows(thread, some.first + rows)
            rows = rows[inside]
        if not len(rows):
            return
        self._follower.follow(thread_rows(pa.Table.from_batches([some.batch.rows]).take(rows)))
        for row in self._follower.rows:
            number = self._numbers.get(row[0], 0)
            if self.wanted.chosen[number]:
                self._context[number].append(row)
        self._follower.rows.clear()

    def _find_checks(self, some: Numbered, keys: Ints) -> None:
        if not self.joins_keys:
            return
        ready, tries = some.rows.of("ready", AT), some.rows.of("try_complete", RET, AT)
        raised = tries[is_given(some.batch.rows.column("err"))[tries]]
        since = np.sort(np.concatenate((ready, raised))) if len(raised) else ready
        since = since[self.wanted.chosen[some.operation[since]]]
        if len(since):
            slots = self.operations.slots(some.operation[since])
            first = self.operations.column("ready")[slots]
            # From the operation's `ready` on, and again from each later evaluation that raised.
            again = (first >= 0) & (first < some.first + since) & ~np.isin(since, ready)
            waits = again | (first == some.first + since)
            place, key = self.operations.lists(slots[waits])
            of = some.operation[since[waits]].astype(np.int64)
            self._first_checks.wait(of[place], key, some.first + since[waits][place])
        found = self._first_checks.feed(some, keys)
        columns = (found.operation, found.key, found.check.call_i, found.check.ret_i)
        for number, key, call_i, ret_i in zip(*(column.tolist() for column in columns), strict=True):
            row = (self._names[number], call_i, "check", ret_i, (self.key_names[key - 1],))
            self._context[number].append(row)

    def _find_neighbours(self, some: Numbered) -> None:
        batch = some.batch
        order = np.argsort(some.thread, kind="stable")
        thread, i = some.thread[order].astype(np.int64), batch.i[order]
        same = thread[1:] == thread[:-1]
        starts = np.flatnonzero(np.concatenate(([True], ~same)))
        first_i = dict(zip(thread[starts].tolist(), i[starts].tolist(), strict=True))
        waiting = []
        for of, number, ret_i in self._pending:
            if of in first_i:
                self._context[number].append((self._names[number], ret_i, "next", first_i[of], None))
            else:
                waiting.append((of, number, ret_i))
        self._pending = waiting
        before, after = self._last_i[thread], np.full(len(i), NEVER, np.int64)
        before[1:][same], after[:-1][same] = i[:-1][same], i[1:][same]
        place = np.empty(len(i), np.int64)
        place[order] = np.arange(len(i))
        for phase, f, column in ((CALL, "previous", before), (RET, "next", after)):
            rows = some.rows.of("try_complete", phase)
            rows = rows[self.wanted.retried[some.operation[rows]]]
            for row, other in zip(rows.tolist(), column[place[rows]].tolist(), strict=True):
                number = int(some.operation[row])
                if f == "next" and other == NEVER:
                    self._pending.append((int(some.thread[row]), number, int(batch.i[row])))
                else:
                    self._context[number].append((self._names[number], int(batch.i[row]), f, other, None))
        ends = np.flatnonzero(np.concatenate((~same, [True])))
        self._last_i[thread[ends]] = i[ends]

    def _judge(self, before: int | None) -> None:
        """Judge the stored operations whose last row is before this row (None: all)."""
        held, self._held, self._held_rows = self._held, [], 0
        if not held:
            return
        table = pa.Table.from_batches([batch for batch, _, _ in held])
        of = np.concatenate([numbers for _, numbers, _ in held])
        rows = np.concatenate([some for _, _, some in held])
        if before is None:
            for _, number, ret_i in self._pending:
                self._context[number].append((self._names[number], ret_i, "next", NEVER, None))
        else:
            table, of, rows = self._set_aside(table, of, rows, before)
        if not table.num_rows:
            return
        context = [row for number in np.unique(of).tolist() for row in self._context.pop(number, ())]
        matrix: list[Summary] = []
        for history in histories(table, context):
            self.tally.add(self.run, history, self.clauses)
            self._names.pop(self._numbers.pop(history.id, 0), None)
            if self.truths is not None:
                matrix.append(summary_of(self.run, history))
        if self.truths is not None and matrix:
            self.truths.add(_in_rows(np.array(matrix, np.int64), table.column("i").to_numpy(), rows))

    def _set_aside(self, table: pa.Table, of: Ints, rows: Ints, before: int) -> tuple[pa.Table, Ints, Ints]:
        """Store the events of operations that have not ended, or that wait for a check or an event of a thread."""
        waits = np.zeros(self.operations.count, bool)
        waits[self._first_checks.waiting.operation] = True
        waits[[number for _, number, _ in self._pending]] = True
        later = waits[of] | (self.operations.column("last")[self.operations.slots(of)] >= before)
        if later.any():
            kept = table.filter(pa.array(later)).combine_chunks().to_batches()
            places = np.flatnonzero(later)
            start = 0
            for batch in kept:
                part = places[start : start + batch.num_rows]
                self._held.append((batch, of[part], rows[part]))
                start += batch.num_rows
            # Waiting rows do not count, so that they are not examined again with every batch.
            self._held_rows = 0
        return table.filter(pa.array(~later)), of[~later], rows[~later]


def _in_rows(summaries: Ints, i: Ints, rows: Ints) -> Ints:
    """Summaries with rows of the run instead of positions. Each position is of one of the given events."""
    order = np.argsort(i)
    i, rows = i[order], rows[order]
    for at, name in enumerate(Summary._fields):
        if name.endswith("_i"):
            column = summaries[:, at]
            found = np.minimum(np.searchsorted(i, column), len(i) - 1)
            summaries[:, at] = np.where(column == NEVER, NEVER, rows[found])
    return summaries
