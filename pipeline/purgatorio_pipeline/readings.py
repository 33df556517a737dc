"""The gauge clauses on Spark: what was under way at each reading, and the truth beside it.

A reading is judged only at rest or as an interval, and those are few; they come to the driver. What was under way is
added up by blocks of `i`, what the operations give is counted on the executors from one row an operation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.screen import READINGS, SPARK, blocks_sql
from purgatorio_spec.clause.declaration import READING, Clause
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import COUNTED, Bounds, Ints, Moments, Summary, bounds
from purgatorio_spec.judge.context import RawReading, raw_reading
from purgatorio_spec.judge.rowwise import moments_of, reading
from purgatorio_spec.judge.tally import RunTally, Tally, judged_clauses
from purgatorio_spec.profile import REAPER_PERIOD_NS
from purgatorio_spec.verdict import Violation

BLOCK: Final = 4096
MAX_READINGS: Final = 100_000
"""Readings of all runs together that are judged, the first of each run; the clauses of a run with more are UNKNOWN."""

_BOUNDS_SCHEMA: Final = pa.schema(
    [
        pa.field("run_key", pa.int32()),
        pa.field("most_keys", pa.int64()),
        *(pa.field(name, pa.list_(pa.int64())) for name in COUNTED),
    ]
)


@dataclass(frozen=True, slots=True)
class RunReadings:
    """The readings of one run that have an occasion, in order."""

    readings: list[RawReading]

    @property
    def moments(self) -> Moments:
        """As columns."""
        return moments_of(self.readings)


@dataclass(frozen=True, slots=True)
class Block:
    """`BLOCK` positions of a run, from `number * BLOCK` on: calls opened less calls ended and the last `t`, without
    readings (None: there was nothing else); the first and the last `t` of all, and that of a `quiesce`; the number of
    readings."""

    number: int
    opened: int
    last_t: int | None
    start_t: int
    end_t: int
    rest_t: int | None
    readings: int


Blocks = Mapping[int, list[Block]]
"""By run key, in order."""


def read_blocks(spark: SparkSession) -> Blocks:
    """The blocks of all runs, in one pass over the view `events`."""
    found: dict[int, list[Block]] = defaultdict(list)
    for row in spark.sql(blocks_sql(SPARK, BLOCK)).orderBy("run_key", "block").toLocalIterator():
        columns = ("last_t", "start_t", "end_t", "rest_t", "readings")
        found[row["run_key"]].append(
            Block(row["block"], row["opened"] or 0, *(row[name] for name in columns))
        )
    return found


def find_readings(
    spark: SparkSession, runs: Mapping[int, Run], blocks: Blocks, beyond: Mapping[int, int]
) -> dict[int, RunReadings]:
    """The readings that can be judged, by run key, from the view `events`; the last `beyond` of a run are left out."""
    counts = _counts(runs, blocks)
    if not counts:
        return {}
    chosen = (
        spark.table("events")
        .where(READINGS)
        .where(fn.col("run_key").isin(list(counts)))
        .select("run_key", "i", "th", "c", "t", "f", "ph", "state")
    )
    if beyond:
        most = max(counts[key] - left for key, left in beyond.items())
        chosen = chosen.withColumn(
            "at", fn.expr("row_number() OVER (PARTITION BY run_key ORDER BY i)")
        ).where(fn.col("at") <= most)
    rows = chosen.orderBy("run_key", "i").collect()
    if not rows:
        return {}
    under_way, before = _under_way(spark, rows, blocks), _before(spark, chosen)
    found: dict[int, list[RawReading]] = defaultdict(list)
    for row in rows:
        opened, last_t = under_way[row["run_key"], row["i"]]
        silent = last_t is None or row["t"] - last_t >= REAPER_PERIOD_NS
        before_i = before.get((row["run_key"], row["i"]), -1)
        found[row["run_key"]].append(
            raw_reading(row.asDict(recursive=True), before_i=before_i, quiet=opened == 0 and silent)
        )
    return {key: RunReadings(some) for key, some in found.items()}


def _before(spark: SparkSession, chosen: DataFrame) -> dict[tuple[int, int], int]:
    """For each reading recorded as a point the `i` of the event before it of its thread, where there is one."""
    readers = chosen.where("ph = 'at'").select("run_key", "th").distinct()
    lagged = spark.table("events").join(fn.broadcast(readers), ["run_key", "th"]).selectExpr(
        "run_key", "i", "f", "ph", "lag(i) OVER (PARTITION BY run_key, th ORDER BY i) AS before_i"
    )  # fmt: skip
    rows = lagged.where(READINGS).where("before_i IS NOT NULL").select("run_key", "i", "before_i")
    return {(row["run_key"], row["i"]): row["before_i"] for row in rows.collect()}


def count_beyond(runs: Mapping[int, Run], blocks: Blocks, most: int = MAX_READINGS) -> dict[int, int]:
    """How many of a run's readings are left out, so that all that are looked at are `most`; the runs with few keep all
    of theirs."""
    counts = _counts(runs, blocks)
    room, each = most, 0
    for at, count in enumerate(sorted(counts.values())):
        each = room // (len(counts) - at)
        if count > each:
            return {key: had - each for key, had in counts.items() if had > each}
        room -= count
    return {}


def _counts(runs: Mapping[int, Run], blocks: Blocks) -> dict[int, int]:
    """Readings by run, where a clause asks for them."""
    found = {
        key: sum(block.readings for block in blocks.get(key, [])) for key, run in runs.items() if _asked(run)
    }
    return {key: count for key, count in found.items() if count}


def _asked(run: Run) -> list[Clause]:
    return [clause for clause in judged_clauses(run) if READING in clause.judges]


def _under_way(
    spark: SparkSession, rows: list[Row], blocks: Blocks
) -> dict[tuple[int, int], tuple[int, int | None]]:
    """For each reading: the calls open before it, and the latest time of an event that is no reading before it."""
    whole = {key: _running(some) for key, some in blocks.items()}
    places = spark.createDataFrame([(row["run_key"], row["i"]) for row in rows], "run_key int, at long")
    events = spark.table("events").where("f NOT IN ('gauge', 'quiesce', 'advance_clock')")
    near = (
        events.withColumn("block", fn.expr(f"i DIV {BLOCK}"))
        .join(fn.broadcast(places.withColumn("block", fn.expr(f"at DIV {BLOCK}"))), ["run_key", "block"])
        .where("i < at")
        .groupBy("run_key", "at")
        .agg(
            fn.expr("sum(CASE WHEN ph = 'call' THEN 1 WHEN ph = 'ret' THEN -1 ELSE 0 END)").alias("opened"),
            fn.max("t").alias("last_t"),
        )
    )
    close = {(row["run_key"], row["at"]): (row["opened"], row["last_t"]) for row in near.collect()}
    found: dict[tuple[int, int], tuple[int, int | None]] = {}
    for row in rows:
        key, at = row["run_key"], row["i"]
        numbers, sums, latest = whole[key]
        before = bisect_left(numbers, at // BLOCK) - 1
        opened, last_t = close.get((key, at), (0, None))
        if before >= 0:
            opened += sums[before]
            last_t = max((t for t in (last_t, latest[before]) if t is not None), default=None)
        found[key, at] = (opened, last_t)
    return found


def _running(blocks: list[Block]) -> tuple[list[int], list[int], list[int | None]]:
    """Block numbers, and up to and including each: calls still open, and the latest time."""
    latest: list[int | None] = []
    for block in blocks:
        times = [t for t in (block.last_t, latest[-1] if latest else None) if t is not None]
        latest.append(max(times, default=None))
    return [block.number for block in blocks], list(accumulate(block.opened for block in blocks)), latest


def count_bounds(
    summaries: DataFrame, found: Mapping[int, RunReadings], runs: Mapping[int, Run]
) -> dict[int, Bounds]:
    """The bounds for each run's readings from summaries (`run_key` and the fields of `Summary`)."""
    moments = {key: some.moments for key, some in found.items()}
    judged = {key: runs[key] for key in found}

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = batch.column("run_key").to_numpy()
            matrix = np.stack([batch.column(name).to_numpy() for name in Summary._fields], axis=1)
            rows = [
                _bounds_row(int(key), bounds(moments[int(key)], matrix[keys == key], judged[int(key)]))
                for key in np.unique(keys)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=_BOUNDS_SCHEMA)

    chosen = summaries.where(fn.col("run_key").isin(list(found))).select("run_key", *Summary._fields)
    totals = {key: Bounds.zero(len(some.readings)) for key, some in found.items()}
    for row in chosen.mapInArrow(task, from_arrow_schema(_BOUNDS_SCHEMA)).collect():
        columns = {name: _ints(row[name]) for name in COUNTED}
        totals[row["run_key"]].add(Bounds(**columns, most_keys=row["most_keys"]))
    return totals


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


def _bounds_row(run_key: int, part: Bounds) -> dict[str, object]:
    return {
        "run_key": run_key,
        "most_keys": part.most_keys,
        **{name: getattr(part, name).tolist() for name in COUNTED},
    }


def judge_readings(
    tallies: Mapping[int, RunTally],
    found: Mapping[int, RunReadings],
    totals: Mapping[int, Bounds],
    runs: Mapping[int, Run],
) -> Iterator[tuple[int, Violation]]:
    """Add the gauge clauses to the tallies; what was broken, by run key."""
    for key, some in found.items():
        clauses = judged_clauses(runs[key])
        for at, one in enumerate(some.readings):
            for violation in tallies[key].add(runs[key], reading(runs[key], one, totals[key], at), clauses):
                yield key, violation


def leave_beyond(tallies: Mapping[int, RunTally], beyond: Mapping[int, int], runs: Mapping[int, Run]) -> None:
    """Say of each gauge clause how many readings it did not see."""
    for key, left in beyond.items():
        for clause in _asked(runs[key]):
            tallies[key].clauses.setdefault(clause.id, Tally()).beyond += left
