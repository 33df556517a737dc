"""The lateness and the gauges over time that the fold shows are those of the definitions over whole tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from purgatorio_pipeline.pictures import pictures
from purgatorio_spec.check import fold_reader
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from spec import pictures_by_table as plain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traces"


@pytest.mark.parametrize("name", ["clean-1k", "clean-race-4k", "buggy-trylock-give-up"])
def test_what_is_shown_is_what_is_defined(name: str) -> None:
    """Of real runs: with few readings and whole, with more than are kept, and with violations."""
    path = EXAMPLES / f"kafka-{name}.parquet"
    folded = fold_reader(TraceReader(path))
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    late, read = pictures(folded)
    assert late == plain.lateness(folded.result.run, table)
    assert read == plain.gauge_series(folded.result.run, table)
    assert late is not None or read is not None
