"""Makes counterexamples: the events of a run that show a violation, up to the event that breaks the promise.

A counterexample has earlier events of the operation (or of the judged call), and calls of other operations that may
have caused the violation (`related_calls`). It leaves out a `try_complete` that returned false and ended too early to
matter. The number of left-out events is shown.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.clause.declaration import Wording
from purgatorio_spec.durations import exact, local_time
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.show.related_calls import related_calls
from purgatorio_spec.show.selection import kind_of, select, selection, tasks_of, wording_of
from purgatorio_spec.show.visible import shell_word
from purgatorio_spec.trace.coded import among, values
from purgatorio_spec.trace.log import log_facts
from purgatorio_spec.trace.rows import own_fields
from purgatorio_spec.verdict import Violation

SHOWN_ROWS: Final = 60
"""The maximum number of events in a counterexample."""

REPEATED_ROWS: Final = 5
"""Of more witnesses that repeat the same call, the first two and the last are shown."""

HEAD_ROWS: Final = 10
TAIL_ROWS: Final = 2_000
"""Of a longer history, only this number of first and of last rows, and the witnesses, are used."""

MISSING: Final = {
    "never-completed": "completion", "never-fired": "run", "never-fired-after-reset": "run", "stopped-running": "run",
}  # fmt: skip
"""What the end of the run shows to be missing, by cause. No event shows it."""
_ABSENT: Final = ("never-claimed", *MISSING)

_OF_NOBODY: Final = ("gauge", "quiesce", "advance_clock")


Pauses = Mapping[int, Mapping[tuple[str, str], None]]
"""What the driver did with threads, by the event before: the name of the thread, and the text."""


_NEAR_NS: Final = 10_000_000_000


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One row of a counterexample: the event's fields, and its part in it.

    `witness`: named by the violation. `depth`: calls of its thread that are open around it. `gap`: rows left out just
    before it. `end_row`: for a call, the number of the shown row with its return; None if it is open at the end.
    """

    i: int
    line: int
    th: str
    t: int
    ph: str
    f: str
    id: str | None
    c: int | None
    keys: tuple[str, ...]
    delay_ns: int | None
    deadline_t: int | None
    t_call: int | None
    out: int | None
    err: str | None
    watched: int | None = None
    delayed: int | None = None
    listed_keys: int | None = None
    witness: bool = False
    depth: int = 0
    gap: int = 0
    end_row: int | None = None
    said: str | None = None
    """The text instead of function and fields, for a request or a response of the wire."""
    log_row: int | None = None
    """For a trace from a log, the row of the log whose first event this is."""
    latest_t: int | None = None
    """For the return of an add inside an `advance`: the deadline, if the timer's clock already shows the new time."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The counterexample of one cause. `count`: the violations of this cause in the run. The earliest is shown."""

    file: str
    run: str
    violation: Violation
    count: int
    rows: tuple[ShownEvent, ...]
    left_out: int = 0
    profile: str = ""
    again: tuple[str, ...] = ()
    """The command that shows it again, if it is not a check of the file."""
    pending: str = ""
    """For a wrong size or gauge, the tasks or operations that wait; of operations, those that ended last too."""
    stderr: tuple[str, ...] = ()
    """The last lines of the driven program's standard error in this run."""
    zone: str = "UTC"
    """For a trace from a log, the time zone of the log."""

    def of_run(self, result: RunResult) -> "Counterexample":
        """The counterexample with the profile and the time zone of its run, and the files of its log."""
        facts = log_facts(result.header)
        rows = tuple(
            replace(row, said=f"{facts.row(row.log_row)}: {row.said.partition(': ')[2]}")
            if facts.files and row.said and row.log_row
            else row
            for row in self.rows
        )
        return replace(self, profile=result.profile, zone=facts.time_zone, rows=rows)

    @property
    def wording(self) -> Wording:
        return wording_of(self.violation.clause, self.profile, self.violation.cause)

    @property
    def start_t(self) -> int:
        """The zero of the shown times, in ns: the `t` of its first row. Near the start of the clock it is 0, so that
        the shown times are those of the text."""
        first_t = self.rows[0].t if self.rows else 0
        return 0 if 0 <= first_t < _NEAR_NS else first_t

    @property
    def start(self) -> str:
        """`start_t` in ms; for a trace from a log as a date, and for a clock with another zero as a line."""
        if self.rows and self.rows[0].log_row is not None:
            return local_time(self.start_t, self.zone)
        return f"line {self.rows[0].line}" if self.start_t else "t = 0 ms"

    @property
    def breaks_at(self) -> int:
        return max(self.violation.events)

    @property
    def illegal_row(self) -> int | None:
        """The number of the row at which the promise is broken; None if that row was not found."""
        return next((at for at, row in enumerate(self.rows) if row.i == self.breaks_at), None)

    @property
    def replay(self) -> tuple[str, ...]:
        """The command that shows the counterexample again. Its parts: the program with its first argument, then each
        option with its value."""
        if self.again:
            return self.again
        words = [
            f"purgatorio check {shell_word(self.file)}",
            f"--run {shell_word(self.run)}",
            f"--clause {self.violation.clause}",
        ]
        if kind_of(self.violation) == "operation":
            words.append(f"--operation {shell_word(self.violation.subject)}")
        return tuple(words)


def counterexample(
    file: str,
    run: str,
    violation: Violation,
    events: pa.Table,
    count: int = 1,
    unfetched: int = 0,
    *,
    whole: bool = False,
) -> Counterexample:
    """Make the counterexample of a violation from event rows (`EVENT_SCHEMA`, in the order of `i`).

    `events` is the whole run, or a part with all rows that `selection(violation)` selects. For a check, the first
    `HEAD_ROWS`, the last `TAIL_ROWS` and the witnesses of the judged thread are enough; `unfetched` is the number of
    missing rows. `whole`: show the calls of all other operations or tasks too, up to the event that breaks the promise.
    """
    tasks = tasks_of(events, violation)
    kept = select(events, selection(violation, tasks))
    if whole and kind_of(violation) == "operation":
        last_i = sys.maxsize if violation.cause in _ABSENT else max(violation.events)
        before = events.filter(pc.less_equal(events.column("i"), pa.scalar(last_i)))
        # The length of an advance may explain a late task, but no other violation.
        hidden = _OF_NOBODY[:-1] if violation.clause == "T2" else _OF_NOBODY
        kept = before.filter(pa.array(~among(before, "f", *hidden)))
    elif beside := related_calls(kept, violation, [events]):
        kept = _also(kept, events, beside)
    if pauses := _pauses(kept):
        kept = _also(kept, events, _paused_calls(events, pauses, max(violation.events)))
    if kind_of(violation) == "check":
        kept = _of_judged_thread(kept, violation.events)
    recorded = _shown(_head_and_tail(kept, violation.events), set(violation.events))
    rows = as_logged(recorded, max(violation.events))
    chosen = _choose(rows, violation.clause)
    left_out = unfetched + kept.num_rows - len(chosen) - (len(recorded) - len(rows))
    picked = _with_gaps([rows[at] for at in chosen], chosen)
    shown = tuple(_nested([*_with_pauses(picked, pauses, max(violation.events))]))
    return Counterexample(file, run, violation, count, shown, left_out, pending=str(tasks or ""))


def _also(kept: pa.Table, events: pa.Table, positions: set[int]) -> pa.Table:
    """The kept events, and those at these positions."""
    wanted = positions | set(kept.column("i").to_numpy().tolist())
    return events.filter(pa.array(np.isin(events.column("i").to_numpy(), list(wanted))))


def _pauses(table: pa.Table) -> Pauses:
    """The pauses that the events name in their field `x_pauses`."""
    found: dict[int, dict[tuple[str, str], None]] = {}
    for own in table.column("x").drop_null().to_pylist():
        said = own_fields(own).get("x_pauses")
        for one in said if isinstance(said, list) else ():
            match one:
                case [int(i), str(th), str(text)]:
                    found.setdefault(i, {})[th, text] = None
    return found


def _paused_calls(events: pa.Table, pauses: Pauses, last_i: int) -> set[int]:
    """The positions of the innermost calls in which threads are paused, and of their returns up to `last_i`."""
    open_calls: dict[str, list[int]] = {}
    found: set[int] = set()
    for i, th, ph, c in values(events, "i", "th", "ph", "c"):
        if i > last_i:
            break
        stack = open_calls.setdefault(th, [])
        if ph == "call":
            stack.append(i)
        elif c in stack:
            del stack[stack.index(c) :]
        found |= {i} if c in found else set()
        found |= {open_calls[one][-1] for one, _ in pauses.get(i, ()) if open_calls.get(one)}
    return found


def operation_rows(events: pa.Table, operation: str) -> tuple[ShownEvent, ...]:
    """The first events of one operation or task, at most `SHOWN_ROWS`, to be shown without a violation. `events`
    (`EVENT_SCHEMA`, in the order of `i`) may be the whole run."""
    mine = events.filter(pa.array(among(events, "id", operation)))
    return tuple(_nested(_shown(mine.slice(0, SHOWN_ROWS), set())))


def _of_judged_thread(table: pa.Table, events: Sequence[int]) -> pa.Table:
    """The rows of the thread of the judged check, which is the thread of the first event."""
    threads = table.filter(pc.equal(table.column("i"), pa.scalar(events[0]))).column("th")
    return table.filter(pc.equal(table.column("th"), threads[0])) if len(threads) else table


def _head_and_tail(table: pa.Table, events: Iterable[int]) -> pa.Table:
    if table.num_rows <= TAIL_ROWS:
        return table
    keep = np.isin(table.column("i").to_numpy(), list(events))
    keep[:HEAD_ROWS] = True
    keep[-TAIL_ROWS:] = True
    return table.filter(pa.array(keep))


def _shown(table: pa.Table, witnesses: set[int]) -> list[ShownEvent]:
    names = "i line th t ph f id c keys delay_ns deadline_t t_call out err x".split()
    rows: list[ShownEvent] = []
    asked: dict[int, tuple[int, int | None]] = {}
    for row, state in zip(values(table, *names), table.column("state").to_pylist(), strict=True):
        i, line, th, t, ph, f, operation, c, keys, delay_ns, deadline_t, t_call, out, err, own = row
        reading = state or {}
        asked[i] = t, delay_ns
        # In real time, an add takes some time, and the deadline that it returns is exact.
        added_t, asked_ns = asked.get(c, (None, None))
        latest_t = t + asked_ns if added_t == t and asked_ns is not None else None
        rows.append(
            ShownEvent(
                i, line or 0, th, t, ph, f, operation, c, tuple(keys or ()), delay_ns, deadline_t, t_call, out,
                err, reading.get("watched"), reading.get("delayed"), reading.get("keys"), witness=i in witnesses,
                log_row=_log_row(own),
                latest_t=latest_t if deadline_t is not None and deadline_t < (latest_t or 0) else None,
            )
        )  # fmt: skip
    return rows


_LOGGED: Final = {
    "try_complete_else_watch": "enqueued", "timer_fire": "timed out", "try_complete": "completed",
    "force_complete": "completed", "ready": "an event of its key",
}  # fmt: skip


def _log_row(own: str | None) -> int | None:
    """The row of a log in the producer's own fields. None if there is none."""
    row = own_fields(own).get("x_log_row") if own else None
    return row if isinstance(row, int) else None


def as_logged(rows: Sequence[ShownEvent], breaks_at: int) -> list[ShownEvent]:
    """For a trace from a log, only the events of the log's rows, in the words of the log. The user does not know the
    calls that the trace adds."""
    if all(row.log_row is None for row in rows):
        return list(rows)
    made: list[ShownEvent] = []
    for row in rows:
        if row.log_row is not None and row.f in _LOGGED:
            said = f"row {row.log_row:,}: {_LOGGED[row.f]}"
            said += f", key {', '.join(row.keys)}" if row.keys and row.keys != (f"of {row.id}",) else ""
            said += f", time-out {exact(row.delay_ns)}" if row.delay_ns is not None else ""
            made.append(replace(row, said=said, ph="at", c=None))
        elif made:
            first = made[-1]
            i = row.i if row.i == breaks_at else first.i
            made[-1] = replace(first, i=i, witness=first.witness or row.witness)
    return made


def _choose(rows: Sequence[ShownEvent], clause: str) -> list[int]:
    """The numbers of the rows to show, in order: the witnesses and their other halves first, then the ones nearest to
    the end, up to the limit."""
    needless = _needless(rows, clause) | _repeated(rows)
    at_of = {row.i: at for at, row in enumerate(rows)}
    witnesses = [at for at, row in enumerate(rows) if row.witness and at not in needless]
    calls = [at_of[c] for at in witnesses if (c := rows[at].c) is not None and c in at_of]
    shown_calls = {rows[at].i for at in (*witnesses, *calls)}
    returns = [at for at, row in enumerate(rows) if row.c in shown_calls]
    start = [at for at in range(min(len(rows), 2)) if at not in needless]
    rest = [at for at in reversed(range(len(rows))) if at not in needless]
    first = [*witnesses[-1:], *witnesses[: SHOWN_ROWS // 2]]
    order = dict.fromkeys([*first, *calls, *returns, *start, *witnesses, *rest])
    return sorted(list(order)[:SHOWN_ROWS])


def _repeated(rows: Sequence[ShownEvent]) -> set[int]:
    """Of many similar witnesses (such as the runs of a task without an end), the calls to leave out: all but the first
    two and the last."""
    alike: dict[tuple[str, str, str | None], list[int]] = {}
    for row in rows:
        if row.witness and row.ph == "call":
            alike.setdefault((row.th, row.f, row.id), []).append(row.i)
    repeated = {i for calls in alike.values() if len(calls) > REPEATED_ROWS for i in calls[2:-1]}
    return {at for at, row in enumerate(rows) if row.i in repeated or row.c in repeated}


def _needless(rows: Sequence[ShownEvent], clause: str) -> set[int]:
    """The rows of calls of `try_complete` that cannot have mattered. Such a call returned false and contains no
    witness. In addition, the clause is about the timer, or the call had ended before the first witness."""
    at_of = {row.i: at for at, row in enumerate(rows)}
    witnesses = [row.i for row in rows if row.witness]
    first_i = min(witnesses, default=0)
    needless: set[int] = set()
    for at, row in enumerate(rows):
        if row.f != "try_complete" or row.ph != "ret" or row.out != 0 or row.c not in at_of:
            continue
        holds = any(row.c <= i <= row.i for i in witnesses)
        if not holds and (clause.startswith("T") or row.i < first_i):
            needless |= {at, at_of[row.c]}
    return needless


def _nested(rows: Sequence[ShownEvent]) -> list[ShownEvent]:
    """The rows with their depth and the row of their return."""
    end_of = {row.c: at for at, row in enumerate(rows) if row.ph == "ret"}
    open_calls: dict[str, list[int]] = {}
    nested: list[ShownEvent] = []
    for row in rows:
        stack = open_calls.setdefault(row.th, [])
        if row.ph == "ret" and row.c in stack:
            del stack[stack.index(row.c) :]
        nested.append(replace(row, depth=len(stack), end_row=end_of.get(row.i) if row.ph == "call" else None))
        if row.ph == "call":
            stack.append(row.i)
    return nested


def _with_gaps(shown: Sequence[ShownEvent], chosen: Sequence[int]) -> Iterable[ShownEvent]:
    before = [-1, *chosen]
    for row, at, last in zip(shown, chosen, before, strict=False):
        yield replace(row, gap=at - last - 1)


def _with_pauses(shown: Iterable[ShownEvent], pauses: Pauses, last_i: int) -> Iterator[ShownEvent]:
    """The rows, and a row for each pause between them. A pause at a left-out event comes after the row before it."""
    rows = [*shown]
    ends = [row.i for row in rows[1:]]
    for row, end in zip(rows, [*ends, last_i], strict=False):
        yield row
        for thread, text in (one for at in sorted(pauses) if row.i <= at < end for one in pauses[at]):
            yield replace(row, i=-1, th=thread, ph="at", f="", c=None, said=text, witness=True, gap=0)
