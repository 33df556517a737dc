"""One check from files to everything that can be shown of it, by either engine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.history.gauge_series import GaugeSeries, gauge_series
from purgatorio_spec.history.lateness import Lateness, lateness
from purgatorio_spec.judge.process import judge_table
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.show.selection import CauseKey, causes, example_events
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict, worst

QUICK_BYTES = 256 << 20
"""Inputs below this are checked on a JVM that starts fast rather than one that becomes fast."""


class Engine(StrEnum):
    """Where a check runs; both give the same answers."""

    SPARK = "spark"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Judged:
    """A check with what is needed to show it: each cause's first violation event by event, the lateness of runs,
    and what their gauges read over time."""

    result: CheckResult
    examples: Mapping[CauseKey, Counterexample]
    lateness: Sequence[Lateness]
    gauges: Sequence[GaugeSeries] = ()


@dataclass(frozen=True, slots=True)
class Focus:
    """What the user wants to look at: everything, or one run, clause or operation of it."""

    run: str | None = None
    clause: str | None = None
    operation: str | None = None

    def of(self, result: CheckResult) -> CheckResult:
        """The runs and clauses in focus, their verdicts counted anew."""
        runs = [self._run(run) for run in result.runs if self.run is None or run.run == self.run]
        return replace(result, runs=tuple(runs))

    def _run(self, run: RunResult) -> RunResult:
        if self.clause is None or not run.clauses:
            return run
        clauses = {name: clause for name, clause in run.clauses.items() if name == self.clause}
        invalid = run.verdict is Verdict.INVALID_TRACE
        verdict = run.verdict if invalid else worst(clause.verdict for clause in clauses.values())
        return replace(run, clauses=clauses, verdict=verdict)


def judge_in_process(paths: Sequence[Path], operation: str | None = None) -> Judged:
    """Judge in this process, one trace after the other; `operation` judges that one alone, in the runs that have it."""
    runs: list[RunResult] = []
    broken: list[BrokenLine] = []
    quarantined = 0
    examples: dict[CauseKey, Counterexample] = {}
    late: list[Lateness] = []
    gauges: list[GaugeSeries] = []
    for path in paths:
        reader = TraceReader(path)
        table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
        run = judge_table(reader, table, operation)
        absent = operation is not None and pc.index(table["id"], operation).as_py() < 0
        if absent and run.verdict is not Verdict.INVALID_TRACE:
            continue
        runs.append(run)
        broken += reader.broken
        quarantined += reader.broken_count
        for key, _, count, violation in causes(CheckResult((run,))):
            events = example_events(table, violation)
            examples[key] = counterexample(key.file, key.run, violation, events, count)
        measured = lateness(run.run, table)
        late += [] if measured is None else [measured]
        read = gauge_series(run.run, table)
        gauges += [] if read is None else [read]
    return Judged(CheckResult(tuple(runs), quarantined, tuple(broken)), examples, late, gauges)


def judge_on_spark(
    paths: Sequence[Path],
    *,
    uris: Sequence[str] = (),
    out: Path | str | None = None,
    master: str | None = None,
    full: bool = False,
    memory: str | None = None,
) -> Judged:
    """Judge on Spark, leaving the tables under `out` (a scratch folder, removed, if None).

    `uris` are traces on Hadoop's file systems, and `out` may be a URI, too. Raises `NoTraces` and OSError for those.
    """
    # Spark is imported only here: the process engine must do without it.
    from purgatorio_pipeline.engine import check_traces
    from purgatorio_pipeline.examples import fetch_examples
    from purgatorio_pipeline.gauges import measure_gauges
    from purgatorio_pipeline.gold import measure_lateness, write_gold
    from purgatorio_pipeline.hadoop import Place, hadoop_path
    from purgatorio_pipeline.session import start_session
    from purgatorio_pipeline.sources import find_on_hadoop

    quick = not uris and sum(path.stat().st_size for path in paths) < QUICK_BYTES
    spark = start_session(master, quick=quick, memory=memory)
    scratch = None if out is not None else Path(tempfile.mkdtemp(prefix="purgatorio-"))
    try:
        place = hadoop_path(spark, out) if isinstance(out, str) else out or scratch or Path()
        places: list[Place] = [*paths, *find_on_hadoop(spark, uris)]
        checked = check_traces(spark, places, place, full=full, keep_lines=out is not None)
        judged = any(run.clauses for run in checked.result.runs)
        names = {key: run.run for key, run in enumerate(checked.result.runs)}
        late = measure_lateness(spark, names) if judged else []
        gauges = measure_gauges(spark, names) if judged else []
        violations = spark.table("violations") if judged else None
        if out is not None:
            write_gold(checked.lake, checked.result, violations, late)
        events = fetch_examples(checked.events, checked.result)
        examples = {
            key: counterexample(key.file, key.run, violation, events[key], count)
            for key, _, count, violation in causes(checked.result)
            if key in events
        }
        return Judged(checked.result, examples, late, gauges)
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
