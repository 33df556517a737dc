"""Chooses the engine of a check (`process` or `spark`). `Judged`: what both engines give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from purgatorio_pipeline.pictures import GaugeSeries
from purgatorio_spec.failure import Failure
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.verdict import Verdict, worst

QUICK_BYTES = 256 << 20
"""For smaller inputs, the JVM is tuned for a fast start, not for top speed."""


LARGE_BYTES: Final = 1 << 30
"""Inputs of this size or more are checked on Spark, if installed. For smaller inputs, its start costs too much."""


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
