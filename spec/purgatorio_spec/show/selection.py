"""Which events of a run are needed to show a violation: small enough to fetch with one filter by any engine.

    (id = subject and i <= last_i)  or  i in events  or  (c in events and i <= last_i)
    or, for a check that miscounted,  i between events[0] and last_i  (of which one thread is kept)

An engine that holds the rows elsewhere (a lake) runs this filter there, and hands the rows to `counterexample`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.clause.declaration import READING
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.trace.coded import Coded, Flags
from purgatorio_spec.verdict import Violation
from purgatorio_spec.wire.record import PROFILE
from purgatorio_spec.wire.registry import WIRE_CLAUSES

Kind = Literal["operation", "check", "reading"]


class CauseKey(NamedTuple):
    """Names one cause in one run of a check."""

    file: str
    run: str
    clause: str
    cause: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The filter of the module's text, as values. `subject` is None where no operation is concerned."""

    subject: str | None
    events: tuple[int, ...]
    last_i: int
    between: bool = False


def kind_of(violation: Violation) -> Kind:
    """Whether an operation (or task), a `check_and_complete` or a reading of the gauges broke the clause."""
    clause = CLAUSES.get(violation.clause)
    if clause is not None and READING in clause.judges:
        return "reading"
    return "check" if violation.cause == "check-miscounted" else "operation"


def noun(clause: str, cause: str, count: int, profile: str = "") -> str:
    """What a violation of this cause counts, in words: `1 task`, `1,278 operations`, on the wire `2 requests`."""
    of_reading = profile != PROFILE and READING in CLAUSES[clause].judges
    one = (
        "request" if profile == PROFILE else
        "reading" if of_reading else "check" if cause == "check-miscounted"
        else "task" if clause.startswith("T") else "operation"
    )  # fmt: skip
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def selection(violation: Violation) -> Selection:
    """The filter for the events that show a violation."""
    kind = kind_of(violation)
    return Selection(
        subject=violation.subject if kind == "operation" else None,
        events=violation.events,
        last_i=max(violation.events),
        between=kind == "check",
    )


def example_events(table: pa.Table, violation: Violation) -> pa.Table:
    """The rows of an event table (`EVENT_SCHEMA`, a run or any part of one) that a violation needs, in their order."""
    return select(table, selection(violation))


def select(table: pa.Table, wanted: Selection) -> pa.Table:
    """The rows of `table` that the filter keeps."""
    i = table.column("i").to_numpy()
    before = i <= wanted.last_i
    keep = np.isin(i, wanted.events)
    keep |= np.asarray(pc.is_in(table.column("c"), value_set=pa.array(wanted.events, pa.int64()))) & before
    if wanted.subject is not None:
        keep |= np.asarray(pc.is_in(table.column("id"), value_set=pa.array([wanted.subject]))) & before
    if wanted.between:
        keep |= (i >= wanted.events[0]) & before
    return table.filter(pa.array(keep))


def selected(batch: Coded, wanted: Selection) -> Flags:
    """The rows of a batch that the filter keeps."""
    if not len(batch) or batch.i[0] > wanted.last_i:
        return np.zeros(len(batch), bool)
    before = batch.i <= wanted.last_i
    witness = np.array(wanted.events, np.int64)
    keep = np.isin(batch.i, witness)
    c, given = batch.numbers("c")
    answers = np.isin(c, witness) & before
    keep |= answers if given is None else answers & given
    if wanted.subject is not None:
        code = pc.index(batch.id_texts, pa.scalar(wanted.subject)).as_py()
        if code >= 0:
            keep |= (batch.id == code) & before
    if wanted.between:
        keep |= (batch.i >= wanted.events[0]) & before
    return keep


def causes(result: CheckResult) -> Iterator[tuple[CauseKey, RunResult, int, Violation]]:
    """Every cause of a check: its key, its run, how often it showed, and its earliest violation."""
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


def promises(profiles: Iterable[str]) -> dict[str, str]:
    """Every clause that runs of these profiles can be judged by, with its sentence; of an id that both kinds have, and
    both are there, both sentences."""
    named = set(profiles)
    found = {} if named == {PROFILE} else {name: clause.promise for name, clause in CLAUSES.items()}
    if PROFILE in named:
        for name, clause in WIRE_CLAUSES.items():
            found[name] = f"{found[name]}; on the wire: {clause.promise}" if name in found else clause.promise
    return found


def promise_of(clause: str, profile: str) -> str:
    """The sentence of a clause in a run of this profile."""
    return promises([profile])[clause]
