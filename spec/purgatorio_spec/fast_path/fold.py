"""`Fold`: the fast path of one run. `feed` takes the events of one batch, and `conclude` gives the verdicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

import numpy as np
import pyarrow as pa

from purgatorio_spec.fast_path.calls import LastTimes, OpenCalls
from purgatorio_spec.fast_path.columns import Stretches
from purgatorio_spec.fast_path.names import Names
from purgatorio_spec.fast_path.operations import Operations
from purgatorio_spec.fast_path.readings import READING_RULES, ReadingsSoFar, Truths, judge_every
from purgatorio_spec.fast_path.recheck import FirstChecks, Recheck, Wanted
from purgatorio_spec.fast_path.rules import blocks, candidates, lacks_a_rule, summaries
from purgatorio_spec.fast_path.thread_checks import ThreadChecks
from purgatorio_spec.history.block import LIMIT
from purgatorio_spec.history.part import CheckCall, Reading
from purgatorio_spec.history.run import (
    BACKWARDS,
    CROSSED,
    TIMES,
    UNCALLED,
    Run,
    RunFacts,
    asks_for_advances,
    counts_registering,
    run_of,
)
from purgatorio_spec.judge.context import ADVANCE_FIELDS, AdvanceRow, advances, key_cancels, most_registering
from purgatorio_spec.judge.result import RunTally, Tally, judged_clauses
from purgatorio_spec.show.related_calls import RelatedCalls
from purgatorio_spec.show.selection import Selection, Tasks, select, selection
from purgatorio_spec.trace.coded import (
    AT,
    CALL,
    IS_CALL,
    RET,
    Coded,
    Codes,
    Flags,
    Ints,
    Numbered,
    code_of,
    plain,
)
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.record import FUNCTIONS, MAX_INT, Header
from purgatorio_spec.verdict import Violation

SAMPLE_ONE_IN: Final = 1000
"""Of the operations that are no candidates, one in this number is judged by the clauses too, as a test of the rules."""
BLOCK: Final = 1 << 17
"""The number of operations that are compared with the readings at once."""
HELD_BYTES: Final = 512 << 20
"""The maximum size of batches that are stored for the recheck. A larger run is read again."""

_CANCELS: Final = pa.schema([EVENT_SCHEMA.field(name) for name in ("i", "t", "ph", "c", "keys", "err")])

_ADVANCES: Final = pa.schema([EVENT_SCHEMA.field(name) for name in ADVANCE_FIELDS])

Again = Callable[[], Iterable[Coded]]
"""Returns the batches of a run again, equal to those that were fed."""
AgainFrom = Callable[[int], Iterable[tuple[int, Coded]]]
"""As `Again`, from the batch with the first event of an operation (by number) on, each with its first row."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The facts that the end of the file shows: whether the run is complete, and whether records are missing."""

    whole: bool
    dropped: bool = False


class Fold:
    """One run. Feed its batches in order, then call `conclude` once.

    Memory: about 40 to 60 bytes for each operation, the open calls, and the pages of `fast_path.paged`. `held_bytes`:
    the limit of the stored batches. 0 stores none. None stores all, for a file that cannot be read again.
    """

    def __init__(self, header: Header, held_bytes: int | None = HELD_BYTES) -> None:
        self._header = header
        self._may_hold = held_bytes
        run = run_of(header, RunFacts(), whole=False)
        names = {clause.id for clause in judged_clauses(run)}
        self.events = 0
        self.last_i = -1
        self.names, self.threads, self.key_names = Names(), Names(), Names()
        self.open_calls = OpenCalls.none()
        self.operations = Operations()
        self._joins_keys = "O4" in names or lacks_a_rule(run)
        self._keeps_keys = self._joins_keys or ("O2" in names and "cancelled" in header.recorded)
        self.first_checks = FirstChecks()
        self.thread_checks = ThreadChecks()
        self._counts_checks = "O7" in names
        self.cancels: list[dict[str, Any]] = []
        self.advances: list[AdvanceRow] = []
        self._keeps_advances = asks_for_advances(header)
        self._keeps_registering = counts_registering(header)
        self.registering: list[Ints] = [np.zeros((3, 0), np.int64)]
        """The arguments of `most_registering`, by batch."""
        self.readings = ReadingsSoFar()
        self.clocks = LastTimes()
        self.broken: dict[str, list[int]] = {}
        """As `RunFacts.broken`."""
        self.called = np.zeros(256, bool)
        """By code, whether the run has such an event."""
        self._held: list[tuple[Numbered, Ints]] | None = None if held_bytes == 0 else []
        self._operations_of: list[Codes] | None = None if held_bytes == 0 else []
        """By batch, the numbers of its operations, so that a second read needs no search for names."""
        self._held_bytes = 0
        self.follows = lacks_a_rule(run)
        """Whether all threads are followed: a clause has no rule, or `cancel_for_key` returned an operation."""
        self.times, self.stride = np.zeros(0, np.int64), 1
        """As `RunFacts.times`, and the distance in events between two of them."""
        self.start_t: int | None = None
        self.end_t: int | None = None
        self.rest_t: int | None = None
        self.halted_i: int | None = None
        self.halted_t = MAX_INT

    def feed(self, batch: Coded) -> None:
        """Add the next batch. `i` must grow over all batches, and every row must obey the rules of the format."""
        if not len(batch):
            return
        operations = self.names.numbers(batch.id_texts)
        if self._operations_of is not None:
            self._operations_of.append(operations)
        some, keys = self._number(batch, self.events, operations)
        self.events += len(batch)
        self.last_i = int(batch.i[-1])
        self.operations.make_room(len(self.names))
        call_row, uncalled, crossed = self.open_calls.pair(some)
        self._note_broken(UNCALLED, batch.i[uncalled])
        self._note_broken(CROSSED, batch.i[crossed])
        of = self.operations.slots(some.operation, change=True)
        self.operations.add(some, of, call_row)
        self._flag("unpaired", some.operation[uncalled])
        if self._keeps_keys:
            self._add_keys(some, of, keys)
        if self._joins_keys:
            self._find_checks(some, of, keys)
        if self._counts_checks:
            self.thread_checks.feed(some, len(self.threads))
        self.readings.feed(some)
        self._note_broken(BACKWARDS, self.clocks.feed(some, len(self.threads)))
        self.called[batch.code] = True
        self._add_times(some)
        self._add_cancels(some)
        if self._keeps_advances:
            self._add_advances(some)
        if self._keeps_registering:
            self._add_registering(some)
        self.follows |= len(some.rows.of("cancelled", AT)) > 0
        self._hold(some, keys)
        self._close_pages()

    def _close_pages(self) -> None:
        self.operations.close()
        self.names.close(self.operations.is_open)

    def _note_broken(self, kind: str, i: Ints) -> None:
        if len(i):
            self.broken.setdefault(kind, [0, int(i[0])])[0] += len(i)

    def _flag(self, name: str, operations: Codes) -> None:
        self.operations.set_flag(name, self.operations.slots(operations, change=True))

    def _number(self, batch: Coded, first: int, operations: Codes | None = None) -> tuple[Numbered, Ints]:
        """The batch with numbers instead of texts. `operations`: the numbers of its ids, if known."""
        operations = self.names.numbers(batch.id_texts) if operations is None else operations
        threads = self.threads.numbers(batch.th_texts)
        keys = self.key_names.numbers(batch.key_texts)[batch.key].astype(np.int64)
        return Numbered.of(batch, first, operations, threads), keys

    def _add_times(self, some: Numbered) -> None:
        t = some.batch.t
        self.times = np.concatenate((self.times, t[-some.first % self.stride :: self.stride]))
        while len(self.times) > TIMES:
            self.times, self.stride = self.times[::2], 2 * self.stride
        first, last = int(t.min()), int(t.max())
        self.start_t = first if self.start_t is None else min(self.start_t, first)
        self.end_t = last if self.end_t is None else max(self.end_t, last)
        rest = t[some.rows.of("quiesce", AT)]
        if len(rest):
            self.rest_t = int(rest.max()) if self.rest_t is None else max(self.rest_t, int(rest.max()))
        halts = some.rows.of("halted", AT)
        if len(halts) and self.halted_i is None:
            self.halted_i, self.halted_t = int(some.batch.i[halts[0]]), int(t[halts[0]])

    def _add_cancels(self, some: Numbered) -> None:
        rows = some.rows.of("cancel_for_key", CALL, RET)
        if len(rows):
            told = plain(some.batch.rows.select(_CANCELS.names).take(rows), _CANCELS).to_pylist()
            self.cancels += [
                one | {"row": some.first + row} for one, row in zip(told, rows.tolist(), strict=True)
            ]

    def _add_advances(self, some: Numbered) -> None:
        rows = some.rows.of("advance_clock", CALL, RET, AT)
        if len(rows):
            told = plain(some.batch.rows.select(_ADVANCES.names).take(rows), _ADVANCES).to_pylist()
            self.advances += [tuple(one.values()) for one in told]

    def _add_registering(self, some: Numbered) -> None:
        advances = some.rows.of("advance_clock", CALL, RET)
        rows = np.sort(np.concatenate((advances, some.rows.of("try_complete_else_watch", CALL, RET))))
        code = some.batch.code[rows]
        change = np.where(IS_CALL[code], 1, -1)
        self.registering.append(np.stack([some.thread[rows], change, np.isin(rows, advances)]))

    def _add_keys(self, some: Numbered, of: Ints, keys: Ints) -> None:
        ops = self.operations
        calls = some.rows.of("try_complete_else_watch", CALL)
        calls = calls[ops.column("reg_call")[of[calls]] == some.first + calls]
        counts = np.diff(some.batch.key_from)[calls]
        _, at = some.keys(calls)
        ops.put_lists(of[calls], counts.astype(np.int64), keys[at])

    def _find_checks(self, some: Numbered, of: Ints, keys: Ints) -> None:
        """For O4, record operations that are ready and wait for a check of one of their keys."""
        ops = self.operations
        ready = some.rows.of("ready", AT)
        ready = ready[ops.column("ready")[of[ready]] == some.first + ready]
        ready = ready[ops.column("reg_call")[of[ready]] >= 0]
        place, key = ops.lists(of[ready])
        operations = some.operation[ready].astype(np.int64)
        self.first_checks.wait(operations[place], key, some.first + ready[place])
        found = self.first_checks.feed(some, keys)
        self._settle(found.operation, found.check.ret)

    def _settle(self, operations: Ints, returns: Ints) -> None:
        """Store for each operation the check that returns first, over all its keys."""
        of = self.operations.slots(operations, change=True)
        order = np.argsort(-returns, kind="stable")  # descending: numpy keeps the last value
        held = self.operations.column("check_ret")[of]
        better = (held < 0) | (held > returns)
        order = order[better[order]]
        self.operations.last("check_ret", of[order], returns[order])

    def _hold(self, some: Numbered, keys: Ints) -> None:
        if self._held is None:
            return
        self._held.append((some, keys))
        self._held_bytes += some.batch.rows.nbytes + 64 * len(some) + keys.nbytes
        if self._may_hold is not None and self._held_bytes > self._may_hold:
            self._held = None

    def run(self, outer: Outer) -> Run:
        """The facts about the whole run for the clauses, after its last batch."""
        unsettled, settled = key_cancels(self.cancels, "cancelled" in self._header.recorded)
        under_way = self.first_checks.open
        names = self.key_names.names() if len(under_way.key) else []
        calls = zip(under_way.key.tolist(), under_way.call_i.tolist(), strict=True)
        unreturned = {
            names[key - 1]: call_i for key, call_i in reversed([*calls])
        }  # If there are several, the first.
        facts = RunFacts(
            start_t=self.start_t or 0,
            end_t=min(self.end_t or 0, self.halted_t),
            halted_i=self.halted_i,
            rest_t=self.rest_t,
            threads=max(len(self.threads) - 1, 1),
            unsettled=unsettled,
            settled=settled,
            unreturned=unreturned,
            broken={kind: (count, first_i) for kind, (count, first_i) in self.broken.items()},
            times=tuple(self.times.tolist()),
            called=frozenset(f for f in FUNCTIONS if self.called[[code_of(f, CALL), code_of(f, AT)]].any()),
            advances=advances(self.advances),
            registering=self._most_registering() if self._keeps_registering else None,
        )
        return run_of(self._header, facts, whole=outer.whole, dropped=outer.dropped)

    def _most_registering(self) -> int:
        thread, change, advances = np.concatenate(self.registering, axis=1)
        return most_registering(thread, change, advances == 1)

    def conclude(self, outer: Outer, again: Again, tally: RunTally | None = None) -> RunTally:
        """The results of all clauses. Batches that are not stored are taken from `again`."""
        run = self.run(outer)
        tally = RunTally() if tally is None else tally
        clauses = judged_clauses(run)
        self._flag("unpaired", self.open_calls.operation)
        rules = [clause for clause in clauses if Reading in clause.judges]
        readings = self.readings.ordered() if rules else None
        truths = Truths(run, readings) if readings is not None and len(readings) else None
        wanted = self._choose(run, tally, truths)
        if wanted.chosen.any() or len(wanted.doubtful.thread) or wanted.everything:
            self._recheck(run, tally, wanted, truths, self._batches(again))
        if self._counts_checks and not wanted.everything:
            _count(tally, "O7", self.thread_checks.sure)
        if truths is not None:
            self._judge_readings(run, tally, truths)
        return tally

    def _recheck(
        self,
        run: Run,
        tally: RunTally,
        wanted: Wanted,
        truths: Truths | None,
        batches: Iterable[tuple[Numbered, Ints]],
    ) -> None:
        recheck = Recheck(
            run, judged_clauses(run), tally, self.operations, self._joins_keys, self.key_names.names(),
            len(self.threads), wanted, truths,
        )  # fmt: skip
        for some, keys in batches:
            recheck.feed(some, keys)
            self._close_pages()
        recheck.finish()

    def judge_early(self, since: int, again_from: AgainFrom, tally: RunTally) -> None:
        """The judgements so far of the operations with events from row `since` on; more batches may follow.

        Only candidates without an open call are judged. No operation counts as overdue yet, because more events may
        come.
        """
        run = self.run(Outer(whole=False))
        begun = replace(run, whole=True, facts=replace(run.facts, end_t=-LIMIT))
        chosen, retried = (np.zeros(self.operations.count, bool) for _ in range(2))
        inside = []
        block = blocks(begun, self.operations)
        for number, slots in self.operations.pages(used=True):
            of = slots.start + np.flatnonzero(self.operations.column("last")[slots] >= since)
            numbers = of - slots.start + number
            of = of[~np.isin(numbers, np.append(self.open_calls.operation, 0))]
            found = candidates(block(of))
            numbers = of - slots.start + number
            chosen[numbers], retried[numbers] = found.chosen, found.chosen & found.retried
            inside.append(self._inside(of[found.chosen & found.inside]))
        if not chosen.any():
            return
        wanted = Wanted(chosen, retried, Stretches.none(), Stretches.joined(inside), follows=self.follows)
        batches = (self._number(batch, first) for first, batch in again_from(int(np.argmax(chosen))))
        self._recheck(run, tally, wanted, None, batches)

    def _batches(self, again: Again) -> Iterable[tuple[Numbered, Ints]]:
        if self._held is not None:
            yield from self._held
            return
        first = 0
        known = iter(self._operations_of or ())
        for batch in again():
            if len(batch):
                yield self._number(batch, first, next(known, None))
                first += len(batch)

    def rows(self, again: Again, violations: Sequence[Violation]) -> list[pa.Table]:
        """For each violation, the events that its counterexample shows."""
        last_i = max((max(one.events) for one in violations), default=-1)

        def batches() -> Iterable[Coded]:
            every = (some.batch for some, _ in self._held) if self._held is not None else again()
            return takewhile(lambda batch: not len(batch) or batch.i[0] <= last_i, every)

        counted = [Tasks.counted_by(one) for one in violations]
        for batch in batches() if any(counted) else ():
            for tasks in filter(None, counted):
                tasks.feed(pa.Table.from_batches([batch.rows]))
        wanted = [selection(one, tasks) for one, tasks in zip(violations, counted, strict=True)]
        own = [pa.Table.from_batches(some, EVENT_SCHEMA) for some in self._selected(batches(), wanted)]
        related = [RelatedCalls.of(table, one) for table, one in zip(own, violations, strict=True)]
        if not any(related):
            return own
        for batch in batches():
            for calls in filter(None, related):
                calls.feed(pa.Table.from_batches([batch.rows]))
        beside = [
            () if one is None else tuple(one.positions() - set(table.column("i").to_pylist()))
            for one, table in zip(related, own, strict=True)
        ]
        wanted = [
            Selection((), some, one.last_i, exact=True) for some, one in zip(beside, wanted, strict=True)
        ]
        others = (pa.Table.from_batches(some, EVENT_SCHEMA) for some in self._selected(batches(), wanted))
        return [
            pa.concat_tables([mine, more]).sort_by("i") if more.num_rows else mine
            for mine, more in zip(own, others, strict=True)
        ]

    def _selected(
        self, batches: Iterable[Coded], wanted: Sequence[Selection]
    ) -> Sequence[Sequence[pa.RecordBatch]]:
        parts: list[list[pa.RecordBatch]] = [[] for _ in wanted]
        for batch in batches:
            table = pa.Table.from_batches([batch.rows])
            for part, one in zip(parts, wanted, strict=True):
                if len(batch) and batch.i[0] <= one.last_i and (one.events or not one.exact):
                    part += (plain(rows, EVENT_SCHEMA) for rows in select(table, one).to_batches())
        return parts

    def number(self, operation: str) -> int:
        return self.names.get(operation)

    def _choose(self, run: Run, tally: RunTally, truths: Truths | None) -> Wanted:
        """Apply the rules to all operations. Choose those that the clauses judge: the candidates, and a sample. Count
        the occasions and the summaries of the others."""
        count = self.operations.count
        chosen, retried = (np.zeros(count, bool) for _ in range(2))
        inside, summed = [], []
        cancels, block_of = self.key_cancels(), blocks(run, self.operations)
        for number, of in self.operations.pages():
            block = block_of(of)
            found = candidates(block, missed=self.missed(np.arange(of.start, of.stop), cancels))
            judged = found.chosen.copy()
            judged[::SAMPLE_ONE_IN] = True
            passed = ~judged
            if not number:
                passed[0] = judged[0] = False  # number 0 is no operation
            to = slice(number, number + block.size)
            chosen[to], retried[to] = judged, judged & found.chosen & found.retried
            inside.append(self._inside(of.start + np.flatnonzero(judged & found.chosen & found.inside)))
            for name, occasions in found.occasions.items():
                _count(tally, name, int((occasions & passed).sum()))
            if truths is not None:
                summed.append(summaries(block)[passed])
                if sum(map(len, summed)) >= BLOCK:
                    truths.add(np.concatenate(summed))
                    summed.clear()
        if truths is not None and summed:
            truths.add(np.concatenate(summed))
        doubtful = Stretches.joined(self.thread_checks.doubtful)
        # For O7, the number of checks may be enough. If another clause judges checks, all checks are judged.
        checks = any(CheckCall in one.judges and one.id != "O7" for one in judged_clauses(run))
        return Wanted(
            chosen, retried, doubtful, Stretches.joined(inside),
            everything=run.dropped or checks, follows=self.follows,
        )  # fmt: skip

    def key_cancels(self) -> Ints:
        """The calls of `cancel_for_key`, each as one integer. The integers sort the calls by key, and then by row."""
        calls = [
            (key, one["row"]) for one in self.cancels if one["ph"] == "call" for key in one["keys"] or ()
        ]
        numbers = self.key_names.numbers(pa.array([key for key, _ in calls], pa.string()))[:-1].astype(
            np.int64
        )
        return np.sort(numbers * self.events + np.array([row for _, row in calls], np.int64))

    def missed(self, of: Ints, cancels: Ints) -> Flags:
        """For O2, the operations with a key that was cancelled after the registration and before the completion."""
        found = np.zeros(len(of), bool)
        if not len(cancels):
            return found
        ops = self.operations
        place, key = ops.lists(of)
        registered, claimed = (
            ops.column(name)[of].astype(np.int64)[place] for name in ("reg_ret", "win_call")
        )
        at = np.searchsorted(cancels, key * self.events + registered, side="right")
        row = cancels[np.minimum(at, len(cancels) - 1)] - key * self.events
        waited = (at < len(cancels)) & (row < np.where(claimed < 0, self.events, claimed)) & (registered >= 0)
        found[place[waited]] = True
        return found

    def _inside(self, of: Ints) -> Stretches:
        """The positions at which a check may have been made inside a registration: its call, or the whole life of its
        operation."""
        ops = self.operations
        once = ops.column("reg_n")[of] == 1
        ret = ops.column("reg_ret")[of].astype(np.int64)
        last = ops.column("last")[of].astype(np.int64)
        call = ops.column("reg_call")[of].astype(np.int64)
        thread = ops.column("reg_th")[of].astype(np.int64)
        end = np.where(ret >= 0, ret, last)
        often = np.repeat(np.flatnonzero(~once), len(self.threads))
        every = np.tile(np.arange(len(self.threads)), int((~once).sum()))
        return Stretches(
            np.concatenate((thread[once], every)),
            np.concatenate((call[once], call[often])),
            np.concatenate((end[once], last[often])),
        )

    def _judge_readings(self, run: Run, tally: RunTally, truths: Truths) -> None:
        judged = {clause.id: clause for clause in judged_clauses(run)}
        for name, clause in judged.items():
            if Reading not in clause.judges:
                continue
            occasion, suspicious = READING_RULES.get(name, judge_every)(truths)
            _count(tally, name, int((occasion & ~suspicious).sum()))
            for at in np.flatnonzero(suspicious).tolist():
                tally.add(run, truths.reading(at), [clause])


def _count(tally: RunTally, name: str, occasions: int) -> None:
    tally.clauses.setdefault(name, Tally()).occasions += occasions
