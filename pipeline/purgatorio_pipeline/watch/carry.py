"""What is carried from batch to batch: every event of the operations that are not settled yet.

An operation is settled when it was completed, fired or cancelled, none of its calls is open, and its deadline lies
`GRACE_NS` behind the run's clock: what comes for it later is strange, and is judged when the run is closed. Beside the
operations the checks from the first of their events on are carried, since O4 and O7 look at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from purgatorio_pipeline.lake import Lake
from purgatorio_spec.trace.columns import EVENT_SCHEMA

GRACE_NS: Final = 2_000_000_000
_NAMES: Final = ", ".join(f"e.{name}" for name in EVENT_SCHEMA.names)

_STANDING: Final = f"""
SELECT e.run_key, e.id, min(e.i) AS first_i,
  coalesce(max(CASE WHEN (f = 'force_complete' AND ph = 'ret' AND out = 1) OR f IN ('timer_fire', 'timer_cancel')
    THEN TRUE END), FALSE)
  AND sum(CASE ph WHEN 'call' THEN 1 WHEN 'ret' THEN -1 ELSE 0 END) = 0
  AND coalesce(max(e.deadline_t) + {GRACE_NS} < any_value(c.last_t), TRUE) AS settled
FROM part e JOIN clocks c ON e.run_key = c.run_key WHERE e.id IS NOT NULL GROUP BY e.run_key, e.id"""

_CARRIED: Final = f"""
SELECT r.run, {_NAMES} FROM part e JOIN runs_of_part r ON e.run_key = r.run_key
  LEFT JOIN standing s ON e.run_key = s.run_key AND e.id = s.id
  LEFT JOIN (SELECT run_key, min(first_i) AS floor_i FROM standing WHERE NOT settled GROUP BY run_key) w
    ON e.run_key = w.run_key
WHERE NOT coalesce(s.settled, TRUE) OR (e.f = 'check_and_complete' AND e.i >= w.floor_i)"""


@dataclass(frozen=True, slots=True)
class Carry:
    """The tables of one watch."""

    spark: SparkSession
    lake: Lake

    def part(self, carried: int, fresh: DataFrame, keys: dict[str, int]) -> DataFrame:
        """The events to be judged now, by run key: the carried ones of these runs, and the fresh ones of operations
        that are not settled. `carried`: the batch that they were carried from, -1: none."""
        if carried < 0:
            return fresh
        held = self._keyed(f"silver/carried-{carried:09d}", keys).select(*fresh.columns)
        settled = self._keyed(f"silver/settled-{carried:09d}", keys).select("run_key", "id")
        return held.unionByName(fresh.join(settled, ["run_key", "id"], "left_anti"))

    def over(
        self,
        batch: int,
        carried: int,
        part: DataFrame,
        keys: dict[str, int],
        clocks: dict[int, int],
        going: list[str],
    ) -> None:
        """Write what batch `batch` leaves: from `part` for the runs of `keys`, and what was carried for the others of
        the runs that are `going` on."""
        spark = self.spark
        part.createOrReplaceTempView("part")
        spark.createDataFrame(list(clocks.items()), "run_key int, last_t long").createOrReplaceTempView(
            "clocks"
        )
        names = spark.createDataFrame(list(keys.items()), "run string, run_key int")
        names.createOrReplaceTempView("runs_of_part")
        self.lake.write(f"silver/standing-{batch:09d}", spark.sql(_STANDING))
        standing = self.lake.read(spark, f"silver/standing-{batch:09d}")
        standing.createOrReplaceTempView("standing")
        left = spark.sql(_CARRIED)
        settled = standing.where("settled").join(names, "run_key").select("run", "id")
        if carried >= 0:
            others = [run for run in going if run not in keys]
            before = self.lake.read(spark, f"silver/carried-{carried:09d}").where(fn.col("run").isin(others))
            left = left.unionByName(before)
            known = self.lake.read(spark, f"silver/settled-{carried:09d}").where(fn.col("run").isin(going))
            settled = settled.unionByName(known)
        self.lake.write(f"silver/carried-{batch:09d}", left)
        self.lake.write(f"silver/settled-{batch:09d}", settled)

    def _keyed(self, table: str, keys: dict[str, int]) -> DataFrame:
        names = self.spark.createDataFrame(list(keys.items()), "run string, run_key int")
        return self.lake.read(self.spark, table).join(fn.broadcast(names), "run")
