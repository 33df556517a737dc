"""The result of a judged file. It has all data that a report shows, so it can be stored, and the file need not be read
again.

Both engines assemble a check from such results, whether they are new or from earlier checks. Two limits hold for a
whole check of the engine `spark`: the number of causes with an example (`most`), and the number of runs whose gauges
are shown. This module applies them in the order of the files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.pictures import GaugeSeries, pictures
from purgatorio_spec.check import Folded
from purgatorio_spec.failure import Failure, surviving
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import HEAD_ROWS, TAIL_ROWS, Counterexample, counterexample
from purgatorio_spec.show.selection import CauseKey, causes, kind_of
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.verdict import Violation
from purgatorio_wire.trace.file import WireTrace

MAX_CAUSES: Final = 50
"""The maximum number of causes with an example. Further causes are reported without events."""
RUNS_MEASURED: Final = 100
"""The maximum number of runs whose gauges are shown."""
STDERR_READ_BYTES: Final = 1 << 16
MAX_NAME_BYTES: Final = 255
"""The maximum length of a file name on the usual file systems."""
STDERR_LINES: Final = 4
"""The number of lines of a program's standard error in a counterexample."""
_FRAME: Final = re.compile(r"\s+(at |\.\.\. |File ).*")
"""A line of a stack trace of the JVM or of Python."""


@dataclass(frozen=True, slots=True)
class Example:
    """The events of the first violation of a cause, in order. For a long history, only the rows that `counterexample`
    needs, and the number of omitted rows."""

    clause: str
    cause: str
    events: pa.Table
    unfetched: int = 0


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The result of one file, and the examples of its causes (`shown`: of a wire trace)."""

    run: RunResult
    broken: tuple[BrokenLine, ...] = ()
    late: Lateness | None = None
    gauges: GaugeSeries | None = None
    examples: tuple[Example, ...] = ()
    shown: tuple[Counterexample, ...] = ()


def cached_wire(trace: WireTrace, run: RunResult, most: int | None = MAX_CAUSES) -> CachedResult:
    # See `judge_in_process`.
    from purgatorio_wire.counterexample import counterexamples

    failures = [*run.failures]
    shown: list[Counterexample] = []
    with surviving(f"showing {run.file}", failures):
        shown += islice(counterexamples(trace, run).values(), most)
    return CachedResult(replace(run, failures=tuple(failures)), tuple(trace.broken), shown=tuple(shown))


def cached_of(folded: Folded, broken: Sequence[BrokenLine], most: int | None = MAX_CAUSES) -> CachedResult:
    failures = [*folded.result.failures]
    examples: list[Example] = []
    late, gauges = None, None
    with surviving(f"finding the events of {folded.result.file}", failures):
        for _, _, violation, events in folded.examples()[:most]:
            examples.append(example_of(events, violation))
    with surviving(f"measuring {folded.result.file}", failures):
        late, gauges = pictures(folded)
    result = replace(folded.result, failures=tuple(failures))
    return CachedResult(result, tuple(broken), late, gauges, tuple(examples))


def example_of(events: pa.Table, violation: Violation) -> Example:
    """The example of a violation. Of the events during a check, it has only events of the check's thread: the first
    rows, the last rows, and the witnesses."""
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
    rows = events.filter(pa.array(shown))
    return Example(violation.clause, violation.cause, rows, int(count - shown.sum()))


def result_of(cached: Sequence[CachedResult]) -> CheckResult:
    broken = tuple(line for one in cached for line in one.broken)
    return CheckResult(tuple(one.run for one in cached), sum(one.run.quarantined for one in cached), broken)


def assemble(cached: Sequence[CachedResult], most: int | None = MAX_CAUSES) -> Judged:
    """Assemble the check of these files, in this order, with all data for the reports."""
    result = result_of(cached)
    held = {
        (one.run.file, example.clause, example.cause): example for one in cached for example in one.examples
    }
    shown_of_wire = {
        (shown.file, shown.violation.clause, shown.violation.cause): shown
        for one in cached for shown in one.shown
    }  # fmt: skip
    runs = {one.run.file: one.run for one in cached}
    failures: list[Failure] = []
    examples: dict[CauseKey, Counterexample] = {}
    for key, _, count, violation in islice(causes(result), most):
        if (key.file, key.clause, key.cause) in shown_of_wire:
            examples[key] = shown_of_wire[key.file, key.clause, key.cause]
        example = held.get((key.file, key.clause, key.cause))
        if example is not None:
            with surviving(f"showing {key.clause} of {key.file}", failures):
                shown = counterexample(key.file, key.run, violation, example.events, count, example.unfetched)
                stderr = _stderr_of(Path(key.file), key.run)
                examples[key] = replace(shown.of_run(runs[key.file]), stderr=stderr)
    measured = [one.gauges for one in cached if one.run.clauses][:RUNS_MEASURED]
    return Judged(
        result,
        examples,
        [one.late for one in cached if one.late is not None],
        [one for one in measured if one is not None],
        failures=failures,
    )


def _stderr_of(trace: Path, run: str) -> tuple[str, ...]:
    """The last lines of a program's standard error, from the file next to its trace. Of a stack trace, the first lines,
    which have the exception."""
    name = f"{run}.stderr"
    # A trace must not select a file in another folder.
    if "/" in name or "\0" in name or len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        return ()
    place = trace.with_name(name)
    if not place.is_file():
        return ()
    with place.open("rb") as file:
        text = file.read(STDERR_READ_BYTES).decode(errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not _FRAME.match(line)]
    return tuple((errors or lines)[-STDERR_LINES:])
