"""What is kept of a file that was judged: all that any report shows of it, so that nobody needs to read it again.

A whole check is put together from these, whether its files were read now or long ago; so the two cannot differ. Limits
that hold for a check as a whole (examples, gauges) are applied here, in the order of its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.pictures import GaugePoint, GaugeSeries, gauges, lateness
from purgatorio_spec.check import Folded
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.judge.tally import Cause
from purgatorio_spec.show.counterexample import HEAD_ROWS, TAIL_ROWS, counterexample
from purgatorio_spec.show.selection import causes, kind_of
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.trace.columns import EVENT_SCHEMA, fields_of
from purgatorio_spec.trace.parse import parse_fields
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Verdict, Violation

MAX_CAUSES: Final = 50
"""Causes of a check whose example is shown; beyond, a cause is reported by its words alone."""
RUNS_MEASURED: Final = 100
"""Runs whose gauges are drawn."""


class Example(NamedTuple):
    """The events that show a violation, in order; of a long history only the rows that `counterexample` looks at, and
    how many were left in the trace."""

    events: pa.Table
    unfetched: int = 0


class Unreadable(Exception):
    """Something that was kept cannot be read any more: its files must be read again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One file. `examples`: by clause and cause the events that show the first violation."""

    run: RunResult
    broken: tuple[BrokenLine, ...] = ()
    late: Lateness | None = None
    gauges: GaugeSeries | None = None
    examples: Mapping[tuple[str, str], Example] = field(default_factory=dict)


def kept_of(folded: Folded, broken: Sequence[BrokenLine]) -> Kept:
    """What is kept of a file that was read and judged."""
    examples = {
        (key.clause, key.cause): example_of(events, violation)
        for key, _, violation, events in folded.examples()[:MAX_CAUSES]
    }
    return Kept(folded.result, tuple(broken), lateness(folded), gauges(folded), examples)


def example_of(events: pa.Table, violation: Violation) -> Example:
    """Of all that went on beside a check its own thread; of that the first and last rows and the witnesses."""
    i = events.column("i").to_numpy()
    witness = np.isin(i, violation.events)
    if kind_of(violation) == "check":
        thread = events.filter(pa.array(i == violation.events[0])).column("th")
        if len(thread):
            mine = pc.equal(events.column("th"), thread[0])
            events = events.filter(mine)
            witness = witness[np.asarray(mine)]
    count = events.num_rows
    place = np.arange(count)
    shown = witness | (place < HEAD_ROWS) | (place >= count - TAIL_ROWS)
    return Example(events.filter(pa.array(shown)), int(count - shown.sum()))


def result_of(kept: Sequence[Kept]) -> CheckResult:
    """The verdicts of a check of these files, in this order."""
    broken = tuple(line for one in kept for line in one.broken)
    return CheckResult(tuple(one.run for one in kept), sum(one.run.quarantined for one in kept), broken)


def assemble(kept: Sequence[Kept]) -> Judged:
    """The check of these files, in this order, with all that is needed to show it."""
    result = result_of(kept)
    by_file = {one.run.file: one for one in kept}
    examples = {
        key: counterexample(key.file, key.run, violation, example.events, count, example.unfetched)
        for key, _, count, violation in islice(causes(result), MAX_CAUSES)
        if (example := by_file[key.file].examples.get((key.clause, key.cause))) is not None
    }
    measured = [one.gauges for one in kept if one.run.clauses][:RUNS_MEASURED]
    return Judged(
        result,
        examples,
        [one.late for one in kept if one.late is not None],
        [one for one in measured if one is not None],
    )


def dump(kept: Sequence[Kept]) -> str:
    """As a text that `load` reads."""
    files = [
        {
            "run": replace(one.run, header=None),
            "header": None if one.run.header is None else fields_of(one.run.header),
            "broken": one.broken,
            "late": one.late,
            "gauges": one.gauges,
            "examples": [
                [*key, example.unfetched, example.events.to_pylist()] for key, example in one.examples.items()
            ],
        }
        for one in kept
    ]
    return orjson.dumps(files).decode()


def load(text: bytes) -> list[Kept]:
    """What `dump` wrote down. Raises `Unreadable`."""
    try:
        return [_kept(one) for one in orjson.loads(text)]
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as bad:
        raise Unreadable(str(bad)) from bad


def _kept(one: dict[str, Any]) -> Kept:
    late, gauges = one["late"], one["gauges"]
    return Kept(
        run=_run(one["run"], one["header"]),
        broken=tuple(BrokenLine(**line) for line in one["broken"]),
        late=None if late is None else Lateness(**{**late, "bins": tuple(map(tuple, late["bins"]))}),
        gauges=None
        if gauges is None
        else GaugeSeries(**{**gauges, "points": tuple(GaugePoint(**point) for point in gauges["points"])}),
        examples={
            (clause, cause): Example(pa.Table.from_pylist(rows, schema=EVENT_SCHEMA), unfetched)
            for clause, cause, unfetched, rows in one["examples"]
        },
    )


def _run(fields: dict[str, Any], header: dict[str, Any] | None) -> RunResult:
    record = None if header is None else parse_fields(header)
    return RunResult(
        **{
            **fields,
            "verdict": Verdict(fields["verdict"]),
            "clauses": {name: _clause(clause) for name, clause in fields["clauses"].items()},
            "problems": tuple(fields["problems"]),
            "header": record if isinstance(record, Header) else None,
        }
    )


def _clause(fields: dict[str, Any]) -> ClauseResult:
    found = {
        name: Cause(
            cause["count"], [Violation(**{**v, "events": tuple(v["events"])}) for v in cause["examples"]]
        )
        for name, cause in fields["causes"].items()
    }
    return ClauseResult(**{**fields, "verdict": Verdict(fields["verdict"]), "causes": found})
