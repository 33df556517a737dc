"""The second check over a lake on Spark: the same answers and the same tables as of one check of all files.

Few checks and many files each: what a Spark job costs is mostly the job.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from pipeline.lake_reader import Killed, all_of, gold_of, run, same_as, some_of_all
from purgatorio_pipeline import session
from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.gather import gather
from purgatorio_pipeline.hadoop import Place
from purgatorio_pipeline.incremental import batch, spark_fold
from purgatorio_pipeline.incremental.on_spark import judge_on_spark
from purgatorio_pipeline.judging import FileCounts, Judged
from purgatorio_pipeline.process_engine import judge_in_process
from spec.figures import FIGURES, TRACES

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were judged since the list was cleared; checks use the tests' session."""
    names: list[str] = []

    def judge_files(
        context: SparkContext, places: Sequence[Place], *, full: bool, every: bool
    ) -> RDD[spark_fold.Found]:
        names.extend(place.name for place in places)
        return spark_fold.judge_files(context, places, full=full, every=every)

    monkeypatch.setattr(batch, "judge_files", judge_files)
    monkeypatch.setattr(session, "start_session", lambda *_, **__: spark)
    return names


def same_as_at_once(judged: Judged, lake: Path, paths: Sequence[Path], scratch: Path) -> None:
    shutil.rmtree(scratch / "at-once", ignore_errors=True)
    once = judge_on_spark(paths, out=scratch / "at-once")
    theirs = all_of(once, scratch / "at-once")
    assert "gold/violations" in theirs
    same_as(theirs, judged, lake)


def killed(*_: object) -> None:
    raise Killed


def no_session(*_: object, **__: object) -> SparkSession:
    raise AssertionError("there is nothing to read and nothing to write")


@pytest.mark.slow
def test_new_changed_and_gone(
    spark: SparkSession, read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of Kafka and files that are broken in many ways, in both forms; killed at gold, and then done again."""
    lake = tmp_path / "lake"
    paths = some_of_all(tmp_path / "traces")
    for name in ("kafka-buggy-no-recheck.parquet", "kafka-clean-1k.jsonl"):
        paths.append(Path(shutil.copy2(TRACES / name, tmp_path / "traces")))
    paths.sort()
    late = [path for path in paths if path.name in ("b-broken.jsonl", "c-good.parquet")]
    judge_on_spark([path for path in paths if path not in late], out=lake)
    read.clear()
    judged = judge_on_spark(paths, out=lake)
    assert read == [path.name for path in late]
    assert judged.files == FileCounts(new=2, known=len(paths) - 2)
    same_as_at_once(judged, lake, paths, tmp_path)
    violations = pq.read_table(gold_of(lake) / "violations")
    assert violations.num_rows >= FIGURES["kafka-buggy-no-recheck"]["O4"] + 1
    assert judged.result.quarantined > 10
    assert (len(judged.lateness), len(judged.gauges)) >= (4, 3)

    run(tmp_path / "traces", "a-good.jsonl", broken=True)
    paths = [path for path in paths if path.name != "kafka-clean-1k.jsonl"]
    with monkeypatch.context() as patch:
        patch.setattr(batch, "write_gold", killed)
        with pytest.raises(Killed):
            judge_on_spark(paths, out=lake)
    read.clear()
    judged = judge_on_spark(paths, out=lake)
    assert (read, judged.files) == ([], FileCounts(known=len(paths)))
    same_as_at_once(judged, lake, paths, tmp_path)
    monkeypatch.setattr(session, "start_session", no_session)
    again = judge_on_spark(paths, out=lake)
    assert all_of(again, lake) == all_of(judged, lake)
    with pytest.raises(AssertionError, match="nothing to read"):
        judge_on_spark(paths, out=lake, full=True)


def test_the_command_reports_the_files_that_it_read(
    spark: SparkSession, read: list[str], tmp_path: Path
) -> None:
    """In words and in JSON; with `--run`, the page is about this run only; `report` draws the same."""
    traces = tmp_path / "traces"
    traces.mkdir()
    for name in ("kafka-buggy-no-recheck", "kafka-clean-1k"):
        shutil.copy2(TRACES / f"{name}.parquet", traces)
    check = ["check", str(traces), "--out", str(tmp_path / "lake")]
    done = CliRunner().invoke(purgatorio, check)
    assert done.exit_code == 1
    assert "files: 2 new, 0 changed, 0 known\n" in done.stdout
    read.clear()
    page = tmp_path / "page.html"
    one = ["--run", "kafka-clean-1k", "--report", str(page)]
    done = CliRunner().invoke(purgatorio, [*check, "--json", *one])
    assert (read, done.exit_code) == ([], 0)
    assert json.loads(done.stdout)["files"]["known"] == 2
    assert "kafka-clean-1k" in page.read_text()
    assert "no-recheck" not in page.read_text()
    kept = gather([str(tmp_path / "lake")]).judged
    drawn = judge_in_process(sorted(traces.iterdir()))
    assert kept.result == drawn.result
    assert [one.header for one in kept.result.runs] == [one.header for one in drawn.result.runs]
    assert (kept.examples, list(kept.gauges)) == (drawn.examples, list(drawn.gauges))
    assert kept.examples
    assert kept.gauges
