"""More readings of the gauges than one check takes: what was not looked at is UNKNOWN, never PASS."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.trace_set import header_of
from purgatorio_pipeline import engine
from purgatorio_pipeline.readings import Block, count_beyond
from purgatorio_spec.clause.declaration import READING
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.run import RunFacts, run_of
from purgatorio_spec.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "traces" / "kafka-clean-1k.parquet"
OF_READINGS = {name for name, clause in CLAUSES.items() if READING in clause.judges}


def beyond(counts: list[int], most: int) -> dict[int, int]:
    """Of runs with so many readings each."""
    run = run_of(header_of("run"), RunFacts(end_t=1), whole=True)
    blocks = {key: [Block(0, 0, None, 0, 1, None, count)] for key, count in enumerate(counts)}
    return count_beyond(dict.fromkeys(blocks, run), blocks, most)


def test_runs_with_few_keep_all_of_theirs() -> None:
    """What they do not need goes to the others."""
    assert beyond([3, 4], 7) == {}
    assert beyond([100, 2, 50], 42) == {0: 80, 2: 30}
    assert beyond([5, 5, 5], 0) == {0: 5, 1: 5, 2: 5}
    assert beyond([0, 0], 0) == {}


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 120))
def test_no_more_are_looked_at_than_allowed_and_no_fewer_than_need_be(counts: list[int], most: int) -> None:
    """But for less than one a run, which is not dealt out."""
    looked_at = sum(counts) - sum(beyond(counts, most).values())
    assert min(sum(counts), most) - len(counts) < looked_at <= most or looked_at == sum(counts) <= most


def test_what_was_not_looked_at_is_unknown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clauses of readings, and no others; without the bound (the twin) they pass."""
    (whole,) = engine.check_traces(spark, [EXAMPLE], tmp_path / "whole").result.runs
    monkeypatch.setattr(engine, "count_beyond", partial(count_beyond, most=1))
    (cut,) = engine.check_traces(spark, [EXAMPLE], tmp_path / "cut").result.runs
    asked = {
        name for name, clause in whole.clauses.items() if clause.verdict is not Verdict.SKIPPED
    } & OF_READINGS
    assert asked
    for name, clause in cut.clauses.items():
        if name in asked:
            assert whole.clauses[name].verdict is Verdict.PASS
            assert clause.verdict is Verdict.UNKNOWN
            assert "were not looked at" in clause.reason
        else:
            assert clause == whole.clauses[name]
    assert cut.verdict is Verdict.UNKNOWN
