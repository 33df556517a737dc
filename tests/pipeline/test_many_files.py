"""Two thousand tiny traces in one check: no task and no scan for each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from purgatorio_pipeline.incremental.spark_fold import TASKS_A_SLOT, judge_files
from purgatorio_pipeline.incremental.spark_fold import check_files as check_on_spark
from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import Trace

pytestmark = pytest.mark.xdist_group("spark")
FILES = 2_000


def traces(folder: Path, count: int) -> None:
    """Every tenth one breaks O4: it was checked after it was ready, and not completed."""
    folder.mkdir()
    texts = []
    for broken in (False, True):
        made = Trace()
        made.register("a")
        made.ready("a", th="w", back_ns=0)
        made.check("k", *([] if broken else ["a"]))
        made.gauge(int(broken), int(broken))
        texts.append(made.write(folder / "made.jsonl").read_bytes())
    (folder / "made.jsonl").unlink()
    for at in range(count):
        (folder / f"run-{at:05d}.jsonl").write_bytes(texts[at % 10 == 9])


def test_many_files_are_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """However many there are; a few files have a task each."""
    traces(tmp_path / "traces", 100)
    found = find_traces([str(tmp_path / "traces")])
    slots = spark.sparkContext.defaultParallelism
    for some, tasks in ((found, TASKS_A_SLOT * slots), (found[:5], 5)):
        assert judge_files(spark.sparkContext, some, full=False, every=False).getNumPartitions() == tasks


@pytest.mark.slow
def test_two_thousand_tiny_traces(spark: SparkSession, tmp_path: Path) -> None:
    """The verdicts that the process engine gives for the two kinds of them, each as often as it is there."""
    traces(tmp_path / "traces", FILES)
    paths = find_traces([str(tmp_path / "traces")])
    assert len(paths) == FILES
    good, bad = (run.clauses for run in check_files([paths[0], paths[9]]).runs)
    result = check_on_spark(spark.sparkContext, paths)
    assert Counter(run.verdict for run in result.runs) == {
        Verdict.PASS: FILES * 9 // 10,
        Verdict.VIOLATED: FILES // 10,
    }
    for at, run in enumerate(result.runs):
        assert run.clauses == (bad if at % 10 == 9 else good)
