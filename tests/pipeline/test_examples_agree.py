"""A violation looks the same from the lake and from the file, for histories of any length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from purgatorio_pipeline.incremental.on_spark import judge_on_spark
from purgatorio_pipeline.judging import judge_in_process
from purgatorio_spec.show.counterexample import TAIL_ROWS, counterexample
from spec.shown_trace import fired_early, garbage_kept, miscounted
from spec.trace_builder import MS, Trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """Of operations, checks and readings; short and long."""
    made = [tried_often(), checked_among_others(), fired_early(), miscounted(), garbage_kept()]
    paths = [one.write(tmp_path / f"{one.header.run}.jsonl") for one in made]
    wanted = judge_in_process(paths)
    found = judge_on_spark(paths, out=tmp_path / "lake")
    assert len(wanted.examples) >= len(made)
    assert found.examples == wanted.examples
