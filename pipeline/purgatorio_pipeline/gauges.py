"""The gauges over time on Spark: the readings come to the driver, what was pending beside them is counted outside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from purgatorio_spec.history.gauge_series import GaugeSeries, Ints, Raw, kept, pending_at, series
from purgatorio_spec.history.operation import NEVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS_MEASURED: Final = 100
"""Runs whose gauges are followed: the page shows fewer."""
READINGS_FETCHED: Final = 5_000
"""Readings of one run that come to the driver, evenly many of all."""

_READINGS: Final = """
SELECT run_key, i, t, watched, delayed, count FROM (
  SELECT run_key, i, t, state.watched, state.delayed, count(*) OVER (PARTITION BY run_key) AS count,
    row_number() OVER (PARTITION BY run_key ORDER BY i) AS number
  FROM events WHERE f IN ('gauge', 'quiesce') AND ph <> 'call' AND run_key IN ({keys}))
WHERE count <= {most} OR number % ceil(count / {most}) = 1"""
_OPERATIONS: Final = """
SELECT run_key, from_i, coalesce(to_i, {never}L) AS to_i, CAST(entries AS BIGINT) AS entries FROM (
  SELECT run_key, id, min(CASE WHEN f = 'try_complete_else_watch' AND ph = 'call' THEN i END) AS from_i,
    min(CASE WHEN f = 'force_complete' AND ph = 'ret' AND out = 1 THEN i END) AS to_i,
    coalesce(max(CASE WHEN f = 'try_complete_else_watch' AND ph = 'call' THEN size(keys) END), 0) AS entries
  FROM events WHERE f IN ('try_complete_else_watch', 'force_complete') AND id IS NOT NULL AND run_key IN ({keys})
  GROUP BY run_key, id) WHERE from_i IS NOT NULL"""
_COUNTS: Final = pa.schema(
    [
        pa.field("run_key", pa.int32()),
        pa.field("pending", pa.list_(pa.int64())),
        pa.field("entries", pa.list_(pa.int64())),
    ]
)


def measured(keys: Iterable[int]) -> list[int]:
    """Of these runs those whose gauges are followed."""
    return sorted(keys)[:RUNS_MEASURED]


def measure_gauges(spark: SparkSession, names: Mapping[int, str]) -> dict[int, GaugeSeries]:
    """By key the gauges of the first runs, as far as they have any, from the view `events`; `names` gives the runs'
    names by key."""
    wanted = ", ".join(map(str, measured(names)))
    if not wanted:
        return {}
    raw: dict[int, list[Raw]] = defaultdict(list)
    counts: dict[int, int] = {}
    for row in spark.sql(_READINGS.format(keys=wanted, most=READINGS_FETCHED)).toLocalIterator():
        counts[row["run_key"]] = row["count"]
        if row["watched"] is not None or row["delayed"] is not None:
            raw[row["run_key"]].append((row["i"], row["t"], row["watched"], row["delayed"]))
    chosen = {key: kept(some) for key, some in raw.items() if len(some) > 1}
    pending = _pending(spark, {key: np.array([one[0] for one in some]) for key, some in chosen.items()})
    found = {
        key: series(names[key], chosen[key], counts[key], *pending.get(key, (None, None)))
        for key in sorted(chosen)
    }
    return {key: one for key, one in found.items() if one is not None}


def _pending(spark: SparkSession, reading_i: Mapping[int, Ints]) -> dict[int, tuple[Ints, Ints]]:
    """Pending operations and their entries at the readings of each run that registers any."""
    if not reading_i:
        return {}
    # Spark is imported only here: whoever only shows gauges must do without it.
    from pyspark.sql.pandas.types import from_arrow_schema

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys, from_i, to_i, entries = (column.to_numpy() for column in batch.columns)
            rows = []
            for key in np.unique(keys):
                mine = keys == key
                pending, held = pending_at(reading_i[int(key)], from_i[mine], to_i[mine], entries[mine])
                rows.append({"run_key": int(key), "pending": pending.tolist(), "entries": held.tolist()})
            yield pa.RecordBatch.from_pylist(rows, schema=_COUNTS)

    text = _OPERATIONS.format(keys=", ".join(map(str, reading_i)), never=NEVER)
    found: dict[int, tuple[Ints, Ints]] = {}
    for row in spark.sql(text).mapInArrow(count, from_arrow_schema(_COUNTS)).collect():
        pending, entries = np.array(row["pending"], np.int64), np.array(row["entries"], np.int64)
        if row["run_key"] in found:
            pending += found[row["run_key"]][0]
            entries += found[row["run_key"]][1]
        found[row["run_key"]] = (pending, entries)
    return found
