"""The Spark engine on what is known: the recorded Kafka runs, and every way to break a trace.

Few tests and many traces each: what a Spark job costs is mostly the job.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from purgatorio_pipeline.incremental.batch import judge_batch
from purgatorio_pipeline.incremental.spark_fold import check_files
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.check import check_files as check_here
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict
from spec.broken_cases import CASES, good
from spec.figures import EVENTS, FIGURES, files, run_of

pytestmark = pytest.mark.xdist_group("spark")


def same(one: CheckResult, other: CheckResult) -> None:
    """Run by run, so that a difference can be read."""
    assert [run.file for run in one.runs] == [run.file for run in other.runs]
    for mine, theirs in zip(one.runs, other.runs, strict=True):
        assert mine == theirs
    assert one == other


def test_the_recorded_runs_of_kafka(spark: SparkSession, tmp_path: Path) -> None:
    """Exactly the known figures in both forms, and as many rows in the tables."""
    paths = files()
    kept = judge_batch(spark, paths, Lake(tmp_path), full=False)
    for path, one in zip(paths, kept, strict=True):
        found = {name: clause.violations for name, clause in one.run.clauses.items() if clause.violations}
        assert found == FIGURES[run_of(path)], path.name
        assert one.run.events == EVENTS[run_of(path)]
    violations = pq.read_table(tmp_path / "violations")
    assert violations.num_rows == sum(sum(FIGURES[run_of(path)].values()) for path in paths)
    assert [place.name for place in tmp_path.iterdir()] == ["violations"]


@pytest.mark.slow
def test_the_clauses_alone_say_the_same(spark: SparkSession) -> None:
    """Every operation of the smaller recorded runs by the clauses, without the rules: as in this process."""
    small = [path for path in files() if EVENTS[run_of(path)] < 100_000]
    same(check_files(spark.sparkContext, small, full=True), check_here(small))


def test_every_way_to_break_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    """Each gets the verdict and the words that it gets in this process, and the valid runs beside them pass."""
    paths = []
    for name, (file, _, write) in CASES.items():
        folder = tmp_path / "traces" / name.replace(" ", "-")
        folder.mkdir(parents=True)
        write(folder / file)
        paths.append(folder / file)
    beside = [good().write(tmp_path / "traces" / name) for name in ("good.jsonl", "good.parquet")]
    paths = [*paths, *beside]
    checked = check_files(spark.sparkContext, paths)
    for (name, case), run in zip(CASES.items(), checked.runs, strict=False):
        assert run.verdict == case[1], name
    assert [run.verdict for run in checked.runs[-2:]] == [Verdict.PASS, Verdict.PASS]
    same(checked, check_here(paths))
