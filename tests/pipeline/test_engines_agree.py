"""Ways to one answer: the fold in this process, on Spark, and row by row in both; and the same counterexamples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
import pytest

from benchmarks.trace_set import injected, violations_of, write_traces
from pipeline.broken_run import DROPPED, sampled
from purgatorio_pipeline.incremental.batch import judge_batch
from purgatorio_pipeline.incremental.cached import result_of
from purgatorio_pipeline.incremental.on_spark import judge_on_spark
from purgatorio_pipeline.incremental.spark_fold import TASKS_A_SLOT, judge_files
from purgatorio_pipeline.incremental.spark_fold import check_files as check_on_spark
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.check import check_files
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.part import Reading
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.counterexample import TAIL_ROWS, counterexample
from purgatorio_spec.trace.writer import TraceWriter
from purgatorio_spec.verdict import Verdict
from spec.broken_cases import CASES
from spec.drawn_history import Drawn
from spec.figures import FIGURES, files, run_of
from spec.shown_trace import fired_early, garbage_kept, miscounted
from spec.trace_builder import MS, Trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS: Final = range(20, 40)
"""Among them whole runs and runs that lost something, of every verdict."""
KAFKA: Final = ("kafka-clean-1k", "kafka-buggy-no-recheck")


def write(drawn: Drawn, path: Path) -> None:
    writer = TraceWriter(path, drawn.header)
    writer.write_all(drawn.events)
    writer.dropped = drawn.dropped
    writer.close(whole=drawn.whole)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Small runs, spoilt and legal; a typed set; every way to break a trace; two runs of Kafka, one with a bug."""
    folder = tmp_path_factory.mktemp("traces")
    paths = [folder / f"run-{at}.jsonl" for at in SEEDS]
    for at, path in zip(SEEDS, paths, strict=True):
        write(sampled(at, ending=DROPPED if at % 10 == 9 else None), path)
    for name, (file, _, broken) in CASES.items():
        paths.append(folder / name.replace(" ", "-") / file)
        paths[-1].parent.mkdir()
        broken(paths[-1])
    recorded = {run_of(path): path for path in files() if run_of(path) in KAFKA}
    return [*paths, *recorded.values(), *write_traces(folder / "typed", 5_000)]


@pytest.fixture(scope="module")
def by_process(traces: list[Path]) -> CheckResult:
    return check_files(traces)


def assert_same(found: CheckResult, expected: CheckResult) -> None:
    for one, other in zip(found.runs, expected.runs, strict=True):
        assert one == other
    assert found == expected


@pytest.mark.parametrize(
    "full", [pytest.param(False, id="fold"), pytest.param(True, id="full", marks=pytest.mark.slow)]
)
def test_spark_agrees_with_the_process_engine(
    spark: SparkSession, traces: list[Path], by_process: CheckResult, tmp_path: Path, full: bool
) -> None:
    verdicts = {run.verdict for run in by_process.runs}
    assert {Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.PASS} <= verdicts, "the traces must not be all alike"
    kept = judge_batch(spark, traces, Lake(tmp_path), full=full)
    assert_same(result_of(kept), by_process)
    rows = pq.read_table(tmp_path / "violations").select(["run_key", "clause"]).to_pylist()
    told = Counter((row["run_key"], row["clause"]) for row in rows)
    assert told == Counter(
        {
            (key, name): clause.violations
            for key, one in enumerate(kept)
            for name, clause in one.run.clauses.items()
            if clause.violations
        }
    ), "the table of violations has every one that the verdicts count, of readings too"
    assert any(Reading in CLAUSES[name].judges for _, name in told)
    assert [place.name for place in tmp_path.iterdir()] == ["violations"]


@pytest.mark.slow
def test_every_recorded_run_of_kafka_on_spark(spark: SparkSession) -> None:
    paths = files()
    for path, run in zip(paths, check_on_spark(spark.sparkContext, paths).runs, strict=True):
        found = {name: clause.violations for name, clause in run.clauses.items() if clause.violations}
        assert found == FIGURES[run_of(path)], path.name


def test_many_files_are_few_tasks(spark: SparkSession, traces: list[Path]) -> None:
    slots = spark.sparkContext.defaultParallelism
    for some, tasks in ((traces[:1] * 100, TASKS_A_SLOT * slots), (traces[:5], 5)):
        assert judge_files(spark.sparkContext, some, full=False, every=False).getNumPartitions() == tasks


@pytest.mark.xdist_group("spark")  # where the verdicts of this process are known already
def test_row_by_row_is_the_same(traces: list[Path], by_process: CheckResult) -> None:
    """The oracle of the fold shares the clauses and the reader with it, and nothing else."""
    assert_same(check_files(traces, full=True), by_process)


def test_a_generated_set_has_the_injected_violations(tmp_path: Path) -> None:
    """`python -m benchmarks check` and `incremental` stand on that."""
    found: Counter[str] = Counter()
    for run in check_files(write_traces(tmp_path, 20_000)).runs:
        found.update({name: clause.violations for name, clause in run.clauses.items() if clause.violations})
    assert found == violations_of(injected(20_000))


MANY: Final = TAIL_ROWS + 500


def tried_often() -> Trace:
    """An early fire after more checks of the task than a counterexample looks at."""
    made = Trace(run="tried-often")
    made.register("op-13", ["k35"], delay_ns=17 * MS, th="worker-4")
    for _ in range(MANY):
        made.attempt("op-13", 0, th="worker-6")
    made.wait(MS)
    made.expire("op-13")
    return made


def checked_among_others() -> Trace:
    """A miscounted check that others overlap with more events than a counterexample looks at."""
    made = Trace(run="checked-among-others")
    made.register("op-1", ["k1"], delay_ns=50 * MS, th="worker-0")
    made.ready("op-1", th="worker-0")
    with made.call("check_and_complete", keys=["k1"], th="worker-0", out=0):
        with made.call("try_complete", "op-1", th="worker-0", out=1):
            made.complete("op-1", th="worker-0")
        for _ in range(MANY):
            made.both("check_and_complete", out=0, keys=["k2"], th="worker-1")
    return made


def test_a_check_is_shown_by_its_own_thread_whatever_others_did() -> None:
    """Its first rows and all of its own calls, although thousands of others lie between."""
    made = checked_among_others()
    example = made.example("O7")
    assert {row.th for row in example.rows} == {"worker-0"}
    assert "force_complete" in {row.f for row in example.rows}
    assert example.left_out == 0


def test_what_is_left_in_the_lake_is_counted() -> None:
    """A counterexample of the rows that were fetched alone has the same rows, and leaves as many out."""
    made = tried_often()
    whole = made.example("T1")
    table = made.table()
    fewer = table.slice(0, 10).to_batches() + table.slice(110).to_batches()
    part = counterexample(
        whole.file, whole.run, whole.violation, type(table).from_batches(fewer), unfetched=100
    )
    assert part == whole
    assert whole.left_out > MANY


@pytest.mark.slow
def test_spark_shows_the_same_as_the_process_engine(spark: SparkSession, tmp_path: Path) -> None:
    made = [tried_often(), checked_among_others(), fired_early(), miscounted(), garbage_kept()]
    paths = [one.write(tmp_path / f"{one.header.run}.jsonl") for one in made]
    wanted = judge_in_process(paths)
    found = judge_on_spark(paths, out=tmp_path / "lake")
    assert len(wanted.examples) >= len(made)
    assert found.examples == wanted.examples
