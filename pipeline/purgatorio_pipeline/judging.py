"""Judges trace files for `purgatorio check`. The module chooses the engine (`process` or `spark`), and implements
`process`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Final

from purgatorio_pipeline.pictures import GaugeSeries, pictures
from purgatorio_spec.check import Folded, fold_reader
from purgatorio_spec.failure import Failure, surviving
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.trace.lines import is_parquet, may_name
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict, worst
from purgatorio_wire.trace.file import WireTrace, is_wire_trace, read_trace

QUICK_BYTES = 256 << 20
"""For smaller inputs, the JVM is tuned for a fast start, not for top speed."""


LARGE_BYTES: Final = 1 << 30
"""Inputs of this size or more are checked on Spark, if installed. For smaller inputs, its start costs too much."""


STDERR_READ_BYTES: Final = 1 << 16
MAX_NAME_BYTES: Final = 255
"""The maximum length of a file name on the usual file systems."""
STDERR_LINES: Final = 4
"""The number of lines of a program's standard error in a counterexample."""
_FRAME: Final = re.compile(r"\s+(at |\.\.\. |File ).*")
"""A line of a stack trace of the JVM or of Python."""


class Engine(StrEnum):
    """The engine of a check. Both engines give the same results."""

    SPARK = "spark"
    PROCESS = "process"


class NoTables(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Choice:
    engine: Engine
    why: str

    def __str__(self) -> str:
        where = {Engine.SPARK: "on Spark", Engine.PROCESS: "in this process"}[self.engine]
        return f"{where} ({self.why})"


def choose_engine(
    asked: str | None, paths: Iterable[Path], *, tables: bool = False, spark: str = ""
) -> Choice:
    """This process if the input is small enough, or Spark is not installed; otherwise Spark.

    `asked`: the engine's name overrides the choice. `tables`: a lake is requested, which only Spark writes. `spark`:
    another reason for Spark (`--master`, `--memory`, a URI). Raises `NoTables`; OSError if a file does not exist.
    """
    if asked is not None:
        if tables and asked == Engine.PROCESS:
            raise NoTables("--out is for Spark's tables: remove --out, or use --engine spark")
        if spark.startswith("--") and asked == Engine.PROCESS:
            raise NoTables(
                f"{spark} is an option for Spark, and this check does not use Spark: remove {spark}"
            )
        return Choice(Engine(asked), "--engine")
    if tables or spark:
        return Choice(Engine.SPARK, spark or "--out")
    size = sum(path.stat().st_size for path in paths)
    if size < LARGE_BYTES:
        return Choice(Engine.PROCESS, f"{_size(size)}; Spark from {LARGE_BYTES / 1e6:,.0f} MB")
    if find_spec("pyspark") is None:
        return Choice(Engine.PROCESS, f"{_size(size)}; purgatorio[spark] is not installed")
    return Choice(Engine.SPARK, _size(size))


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"


@dataclass(frozen=True, slots=True)
class FileCounts:
    """The numbers of files of a check with a lake. `new`, `changed` and `again` were read, `known` were not. `again`:
    known files that were judged again, because the checker has changed, or the report needs more than the stored data.
    `gone`: files that are no longer named, and were removed."""

    new: int = 0
    changed: int = 0
    known: int = 0
    again: int = 0
    gone: int = 0
    other_checker: bool = False

    def __str__(self) -> str:
        why = " (the checker or its options changed)" if self.other_checker else ""
        again = f", {self.again:,} judged again{why}" if self.again else ""
        gone = f", {self.gone:,} gone" if self.gone else ""
        return f"files: {self.new:,} new, {self.changed:,} changed, {self.known:,} known{again}{gone}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A check with everything that a report shows: the events of each cause's first violation, the lateness of runs,
    and their gauges over time. `files`: with a lake, which files were read. `failures`: internal errors outside of the
    runs."""

    result: CheckResult
    examples: Mapping[CauseKey, Counterexample]
    lateness: Sequence[Lateness]
    gauges: Sequence[GaugeSeries] = ()
    files: FileCounts | None = None
    failures: Sequence[Failure] = ()


@dataclass(frozen=True, slots=True)
class Focus:
    """The part that the user wants to check: everything, or one run, clause or operation."""

    run: str | None = None
    clause: str | None = None
    operation: str | None = None

    def of(self, judged: Judged) -> Judged:
        """The runs and clauses in focus, with their verdicts computed again."""
        runs = [self._run(run) for run in judged.result.runs if self.run is None or run.run == self.run]
        names = {run.run for run in runs}
        return replace(
            judged,
            result=replace(judged.result, runs=tuple(runs)),
            lateness=[one for one in judged.lateness if one.run in names],
            gauges=[one for one in judged.gauges if one.run in names],
        )

    def _run(self, run: RunResult) -> RunResult:
        if self.clause is None or not run.clauses:
            return run
        clauses = {name: clause for name, clause in run.clauses.items() if name == self.clause}
        invalid = run.verdict is Verdict.INVALID_TRACE
        verdict = run.verdict if invalid else worst(clause.verdict for clause in clauses.values())
        return replace(run, clauses=clauses, verdict=verdict)


@dataclass(slots=True)
class Tracker:
    """The progress of a check in this process, for a progress display."""

    total_bytes: int = 0
    _before: int = field(default=0, init=False)
    _reader: TraceReader | None = field(default=None, init=False)

    def next(self, reader: TraceReader, before: int) -> TraceReader:
        """Start a file. `before`: the bytes of all earlier files, which may no longer exist."""
        self._before, self._reader = before, reader
        return reader

    def past(self, bytes_read: int) -> None:
        """Record that `bytes_read` bytes are read, and that the last file is being judged."""
        self._before, self._reader = bytes_read, None

    def so_far(self) -> tuple[float, float]:
        return self._before + (0 if self._reader is None else self._reader.read_bytes), self.total_bytes


def together(parts: Sequence[Judged]) -> Judged:
    return Judged(
        CheckResult(
            tuple(run for one in parts for run in one.result.runs),
            sum(one.result.quarantined for one in parts),
            tuple(line for one in parts for line in one.result.broken),
        ),
        {key: example for one in parts for key, example in one.examples.items()},
        [late for one in parts for late in one.lateness],
        [gauges for one in parts for gauges in one.gauges],
        failures=[failure for one in parts for failure in one.failures],
    )


def judge_in_process(
    paths: Sequence[Path], operation: str | None = None, *, full: bool = False, reading: Tracker | None = None
) -> Judged:
    """Judge traces in this process, one after the other. `operation`: judge only this one, in runs that have it."""
    reading = Tracker() if reading is None else reading
    *before, reading.total_bytes = accumulate((path.stat().st_size for path in paths), initial=0)
    parts: list[Judged] = []
    for path, read_bytes in zip(paths, before, strict=True):
        if is_wire_trace(path):
            if operation is None:
                trace = read_trace(path)
                reading.past(read_bytes + path.stat().st_size)
                parts.append(_judged_wire(trace))
            continue
        if operation is not None and not is_parquet(path) and not may_name(path, operation):
            continue
        reader = reading.next(TraceReader(path), read_bytes)
        folded = fold_reader(reader, full=full, only=operation)
        absent = operation is not None and not folded.has(operation)
        if absent and folded.result.verdict is not Verdict.INVALID_TRACE:
            continue
        parts.append(_shown(folded, CheckResult((folded.result,), reader.broken_count, tuple(reader.broken))))
    return together(parts)


def _shown(folded: Folded, result: CheckResult) -> Judged:
    failures: list[Failure] = []
    examples: dict[CauseKey, Counterexample] = {}
    late, read = None, None
    with surviving(f"finding the events of {folded.result.file}", failures):
        for key, count, violation, events in folded.examples():
            with surviving(f"showing {key.clause} of {key.file}", failures):
                example = counterexample(key.file, key.run, violation, events, count)
                stderr = _stderr_of(Path(key.file), key.run)
                examples[key] = replace(example.of_run(folded.result), stderr=stderr)
    with surviving(f"measuring {folded.result.file}", failures):
        late, read = pictures(folded)
    return Judged(
        result,
        examples,
        [] if late is None else [late],
        [] if read is None else [read],
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


def _judged_wire(trace: WireTrace) -> Judged:
    # The clauses of the wire are a third of the imports of `check`, and few traces are of the wire.
    from purgatorio_wire.counterexample import counterexamples
    from purgatorio_wire.judge import judge_trace

    run = judge_trace(trace)
    failures: list[Failure] = []
    examples: dict[CauseKey, Counterexample] = {}
    with surviving(f"showing {trace.name}", failures):
        examples = counterexamples(trace, run)
    result = CheckResult((run,), trace.broken_count, tuple(trace.broken))
    return Judged(result, examples, [], failures=failures)
