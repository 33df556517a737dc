"""The check on Spark: screen, then explain.

1. ingest: files to typed events of numbered runs, broken lines to quarantine;
2. screen: one row an operation by plain SQL, with a mark on each that might break a clause;
3. explain: the clauses themselves over the marked operations and a sample of the others, and over whole threads where
   calls nest;
4. conclude: the sums of both, the gauges, and one verdict a run.

The screen never gives a verdict: it only saves the clauses from looking at what cannot be broken. If a sampled
operation that it did not mark is broken all the same, the check says so. `full` leaves the screen out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.explain import (
    FOUND_SCHEMA,
    THREAD_COLUMNS,
    THREAD_SCHEMA,
    Found,
    explain,
    follow_threads,
    violation_row,
)
from purgatorio_pipeline.hadoop import Place
from purgatorio_pipeline.ingest import Ingested, ingest
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.readings import (
    Blocks,
    RunReadings,
    count_beyond,
    count_bounds,
    find_readings,
    judge_readings,
    leave_beyond,
    read_blocks,
)
from purgatorio_pipeline.run_row import RUN_COLUMNS, run_row
from purgatorio_pipeline.screen import (
    CLAUSES_OF_OPERATIONS,
    SPARK,
    marks_sql,
    operations_sql,
)
from purgatorio_pipeline.sources import sources
from purgatorio_pipeline.stretches import (
    check_counts_sql,
    first_checks_sql,
    first_return_sql,
    key_events_sql,
    ready_sql,
)
from purgatorio_spec.history.operation import CONTEXT
from purgatorio_spec.history.run import Run, RunFacts, run_of
from purgatorio_spec.history.stream import ROW_FIELDS
from purgatorio_spec.history.summary import Summary
from purgatorio_spec.judge.context import unsettled_cancels
from purgatorio_spec.judge.result import CheckResult, RunResult, conclude
from purgatorio_spec.judge.tally import EXAMPLES, Cause, RunTally, Tally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.verdict import Violation

SAMPLE_ONE_IN: Final = 1000
"""Unmarked operations that the clauses judge all the same, to keep an eye on the screen."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A check's verdicts, and where its events are for whoever wants to show an example."""

    result: CheckResult
    events: DataFrame
    lake: Lake


def check_traces(
    spark: SparkSession, paths: Sequence[Place], out: Place, *, full: bool = False, keep_lines: bool = True
) -> Checked:
    """Judge trace files on Spark and leave the tables under `out`. `keep_lines`: with the raw lines among them."""
    lake = Lake(out)
    lake.sweep()
    return judge_ingested(spark, lake, ingest(spark, lake, sources(paths), keep_lines=keep_lines), full=full)


def judge_ingested(spark: SparkSession, lake: Lake, ingested: Ingested, *, full: bool = False) -> Checked:
    """Judge runs whose events and facts are there already."""
    ingested.events.createOrReplaceTempView("events")
    blocks = read_blocks(spark)
    runs = _runs(ingested, blocks)
    _show_runs(spark, runs)
    tallies: dict[int, RunTally] = defaultdict(RunTally)
    beyond = count_beyond(runs, blocks)
    readings = find_readings(spark, runs, blocks, beyond) if runs else {}
    if runs:
        stage = _Full(spark, lake, runs) if full else _Screened(spark, lake, runs)
        found = stage.judge(frozenset(readings))
        stage.add_sums(tallies)
        _add_found(found, tallies)
        if readings:
            totals = count_bounds(stage.summaries(found, readings), readings, runs)
            broken = [violation_row(*one) for one in judge_readings(tallies, readings, totals, runs)]
            _show_too(spark, broken)
        leave_beyond(tallies, beyond, runs)
    results = [_conclude(ingested, key, runs, tallies) for key in sorted(ingested.facts)]
    result = CheckResult(tuple(results), sum(run.quarantined for run in results), ingested.broken)
    return Checked(result, ingested.events, lake)


def find_in_part(
    spark: SparkSession, lake: Lake, events: DataFrame, runs: dict[int, Run], most: int
) -> list[tuple[int, Violation]]:
    """What the clauses of operations find in a part of the events of runs that still go on: run key and violation, at
    most `most` of them. The part must hold all events of each of its operations up to now.

    Not judged: the counts of checks and the readings of gauges, which need all operations of a run.
    """
    events.createOrReplaceTempView("events")
    _show_runs(spark, runs)
    found = _Full(spark, lake, runs).judge(frozenset())
    rows = found.where("kind = 'violation' AND cause <> 'check-miscounted'").limit(most).collect()
    return [
        (row["run_key"], _violation(row))
        for row in sorted(rows, key=lambda row: (row["run_key"], row["events"][-1], row["clause"]))
    ]


def _show_runs(spark: SparkSession, runs: dict[int, Run]) -> None:
    spark.createDataFrame(
        [run_row(key, run) for key, run in runs.items()],
        ", ".join(f"{name} {kind}" for name, kind in RUN_COLUMNS.items()),
    ).createOrReplaceTempView("runs")


def _runs(ingested: Ingested, blocks: Blocks) -> dict[int, Run]:
    runs: dict[int, Run] = {}
    threads, cancels = _threads_and_cancels(ingested.events)
    for key, facts in ingested.facts.items():
        if facts.header is None or facts.header.profile not in PROFILES:
            continue
        some = blocks.get(key, [])
        dropped = facts.dropped > 0 or facts.broken > 0
        found = RunFacts(
            start_t=min((block.start_t for block in some), default=0),
            end_t=max((block.end_t for block in some), default=0),
            rest_t=max((block.rest_t for block in some if block.rest_t is not None), default=None),
            threads=threads.get(key, 1),
            unsettled=unsettled_cancels(cancels[key], "cancelled" in facts.header.recorded),
        )
        whole = facts.has_end and not dropped and facts.cut is None
        runs[key] = run_of(facts.header, found, whole=whole, dropped=dropped)
    return runs


def _threads_and_cancels(events: DataFrame) -> tuple[dict[int, int], dict[int, list[dict[str, Any]]]]:
    """By run key the number of threads, and the `cancel_for_key` events in order."""
    counted = events.groupBy("run_key").agg(fn.count_distinct("th").alias("threads")).collect()
    cancels: dict[int, list[dict[str, Any]]] = defaultdict(list)
    chosen = events.where("f = 'cancel_for_key'").select("run_key", "i", "ph", "c", "keys", "err")
    for row in chosen.orderBy("run_key", "i").collect():
        cancels[row["run_key"]].append(row.asDict())
    return {row["run_key"]: row["threads"] for row in counted}, cancels


@dataclass(slots=True)
class _Full:
    """Every operation by the clauses, every thread followed."""

    spark: SparkSession
    lake: Lake
    runs: dict[int, Run]

    def judge(self, summarised: frozenset[int]) -> DataFrame:
        """All that the clauses found."""
        # Nothing here reads it: lateness is measured from it, in a check without the screen as well.
        self.spark.sql(operations_sql(SPARK)).createOrReplaceTempView("operations")
        _join_by_key(self.spark, self.lake)
        self.spark.table("readies").createOrReplaceTempView("selected")
        chosen = (
            self.spark.table("events")
            .where("id IS NOT NULL")
            .join(_known(self.spark), "run_key", "left_semi")
        )
        threads = _follow(self.spark, self.lake, self.runs, frozenset(self.runs))
        return _explain(self.spark, self.lake, self.runs, chosen, threads, summarised)

    def add_sums(self, tallies: dict[int, RunTally]) -> None:
        """Nothing to add: the clauses saw everything."""

    def summaries(self, found: DataFrame, readings: dict[int, RunReadings]) -> DataFrame:
        """The summaries that the clauses' side made."""
        return _found_summaries(found)


@dataclass(slots=True)
class _Screened(_Full):
    """The screen first. `followed`: the runs whose threads were."""

    followed: frozenset[int] = frozenset()

    def judge(self, summarised: frozenset[int]) -> DataFrame:
        """What the clauses found among the marked, the sample, and the threads that need following."""
        spark, lake = self.spark, self.lake
        spark.sql(operations_sql(SPARK)).createOrReplaceTempView("operations")
        _join_by_key(spark, lake)
        spark.sql(first_return_sql()).createOrReplaceTempView("first_returns")
        lake.write("silver/operations", spark.sql(marks_sql()))
        for view in ("operations", "marks"):
            lake.read(spark, "silver/operations").createOrReplaceTempView(view)
        spark.sql(
            f"SELECT run_key, id, marked, ready_i FROM marks m WHERE marked OR {_SAMPLED}"
        ).createOrReplaceTempView("selected")
        lake.write("silver/checks", spark.sql(check_counts_sql(SPARK)))
        chosen = spark.table("events").join(
            spark.table("selected").select("run_key", "id"), ["run_key", "id"]
        )
        self.followed = self._followed()
        threads = _follow(spark, lake, self.runs, self.followed)
        return _explain(spark, lake, self.runs, chosen, threads, summarised)

    def _followed(self) -> frozenset[int]:
        """Runs whose threads must be followed: a count that may be wrong or that nobody can know, or a marked operation
        whose judgement may turn on what its threads did around it."""
        followed = {key for key, run in self.runs.items() if run.dropped}
        rows = self.spark.sql(
            "SELECT run_key, count_if(retried) AS retried, count_if(inside) AS inside FROM marks WHERE marked "
            "GROUP BY run_key"
        ).collect()
        followed |= {row["run_key"] for row in rows if row["retried"] or row["inside"] > _MAX_INSIDE}
        doubtful = (
            self.lake.read(self.spark, "silver/checks").where("doubtful > 0").select("run_key").collect()
        )
        followed |= {row["run_key"] for row in doubtful}
        unclear = [row["run_key"] for row in rows if row["inside"] and row["run_key"] not in followed]
        if unclear:
            chosen = self.spark.table("events").where(fn.col("run_key").isin(unclear))
            chosen.createOrReplaceTempView("unclear")
            followed |= {row["run_key"] for row in self.spark.sql(_CHECKED_INSIDE).collect()}
        return frozenset(followed)

    def add_sums(self, tallies: dict[int, RunTally]) -> None:
        """The occasions of the operations that were left to the screen, and of the checks that it could count."""
        sums = ", ".join(f"sum(occ_{name}) AS {name}" for name in CLAUSES_OF_OPERATIONS)
        kept = self.spark.sql(
            f"SELECT run_key, {sums} FROM marks m WHERE NOT (m.marked OR {_SAMPLED}) GROUP BY run_key"
        )
        for row in kept.collect():
            for name in CLAUSES_OF_OPERATIONS:
                _tally(tallies[row["run_key"]], name).occasions += row[name] or 0
        for row in self.lake.read(self.spark, "silver/checks").collect():
            run = self.runs.get(row["run_key"])
            if run is not None and row["run_key"] not in self.followed and _judges(run, "O7"):
                _tally(tallies[row["run_key"]], "O7").occasions += row["checks"]

    def summaries(self, found: DataFrame, readings: dict[int, RunReadings]) -> DataFrame:
        """Those of the plain operations by the screen, those of the others by the clauses' side."""
        names = ", ".join(f"s_{name} AS {name}" for name in Summary._fields)
        plain = self.spark.sql(f"SELECT run_key, {names} FROM marks m WHERE NOT (m.marked OR {_SAMPLED})")
        return plain.unionByName(_found_summaries(found))


_SAMPLED: Final = f"pmod(xxhash64(m.id), {SAMPLE_ONE_IN}) = 0"
_MAX_INSIDE: Final = 1000
"""Registrations of a run that are looked into for a check one by one; with more, following its threads is cheaper."""
_CHECKED_INSIDE: Final = """
SELECT DISTINCT e.run_key FROM unclear e JOIN marks m ON e.run_key = m.run_key AND m.marked AND m.inside
  AND e.i > m.inside_from AND e.i < m.inside_to AND (m.inside_th IS NULL OR m.inside_th = xxhash64(e.th))
WHERE e.f = 'check_and_complete' AND e.ph = 'call'"""


def _join_by_key(spark: SparkSession, lake: Lake) -> None:
    """O4's join by key, and the narrow events that it is made from, as tables: both are read twice."""
    lake.write("silver/key_events", spark.sql(key_events_sql()))
    lake.read(spark, "silver/key_events").createOrReplaceTempView("key_events")
    spark.sql(ready_sql()).createOrReplaceTempView("readies")
    lake.write("silver/first_checks", spark.sql(first_checks_sql(SPARK)))
    lake.read(spark, "silver/first_checks").createOrReplaceTempView("first_checks")


def _judges(run: Run, name: str) -> bool:
    from purgatorio_spec.clause.registry import CLAUSES

    return CLAUSES[name].skipped(run) is None


def _known(spark: SparkSession) -> DataFrame:
    """The run keys that have a usable header."""
    return spark.table("runs").select("run_key")


def _follow(
    spark: SparkSession, lake: Lake, runs: dict[int, Run], followed: frozenset[int]
) -> DataFrame | None:
    if not followed:
        return None
    rows = spark.table("events").where(fn.col("run_key").isin(list(followed))).select(*THREAD_COLUMNS)
    ordered = rows.repartition("run_key", "th").sortWithinPartitions("run_key", "th", "i")
    lake.write("silver/threads", ordered.mapInArrow(follow_threads(runs), from_arrow_schema(THREAD_SCHEMA)))
    return lake.read(spark, "silver/threads")


def _explain(
    spark: SparkSession,
    lake: Lake,
    runs: dict[int, Run],
    chosen: DataFrame,
    threads: DataFrame | None,
    summarised: frozenset[int],
) -> DataFrame:
    parts = [chosen.select(*ROW_FIELDS), _check_context(spark)]
    if threads is not None:
        context = threads.where("kind IS NULL").select(*ROW_FIELDS)
        parts.append(context.join(chosen.select("run_key", "id").distinct(), ["run_key", "id"], "left_semi"))
    rows = reduce(DataFrame.unionByName, parts)
    partitions = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    lake.write("silver/found", explain(rows, runs, summarised, partitions))
    found = lake.read(spark, "silver/found")
    if threads is not None:
        found = found.unionByName(threads.where("kind IS NOT NULL").select(*FOUND_SCHEMA.names))
    return found


def _check_context(spark: SparkSession) -> DataFrame:
    """The checks that O4 looks at, as context rows of the selected operations."""
    return spark.sql(
        f"""SELECT n.run_key, n.id, k.c AS i, '' AS th, 0L AS t, '{CONTEXT}' AS ph, 'check' AS f,
        n.ret_i AS c, array(n.key) AS keys, CAST(NULL AS BIGINT) AS delay_ns, CAST(NULL AS BIGINT) AS deadline_t,
        CAST(NULL AS BIGINT) AS t_call, CAST(NULL AS BIGINT) AS out, CAST(NULL AS STRING) AS err FROM first_checks n
        JOIN selected s ON n.run_key = s.run_key AND n.id = s.id
        JOIN key_events k ON n.run_key = k.run_key AND n.ret_i = k.i"""
    )


def _found_summaries(found: DataFrame) -> DataFrame:
    names = [fn.col("events")[at].alias(name) for at, name in enumerate(Summary._fields)]
    return found.where("kind = 'summary'").select("run_key", *names)


def _tally(tally: RunTally, clause: str) -> Tally:
    return tally.clauses.setdefault(clause, Tally())


def _add_found(found: DataFrame, tallies: dict[int, RunTally]) -> None:
    """Sums, orphans and violations of the clauses' side; of each cause the first few are kept whole."""
    for row in (
        found.where("kind = 'sums'")
        .groupBy("run_key", "clause")
        .agg(fn.sum("occasions").alias("occasions"))
        .collect()
    ):
        _tally(tallies[row["run_key"]], row["clause"]).occasions += row["occasions"]
    undecided = found.where("kind = 'undecided'").groupBy("run_key", "clause", "cause")
    for row in undecided.agg(fn.sum("unknown").alias("count")).collect():
        _tally(tallies[row["run_key"]], row["clause"]).leave_open(row["cause"], row["count"])
    orphans = found.where("kind = 'orphans'").groupBy("run_key")
    for row in orphans.agg(
        fn.sum("occasions").alias("count"), fn.min(fn.col("events")[0]).alias("first")
    ).collect():
        tallies[row["run_key"]].merge(RunTally({}, row["count"], row["first"]))
    for row in _first_of_each_cause(found).collect():
        causes = _tally(tallies[row["run_key"]], row["clause"]).causes
        cause = causes.setdefault(row["cause"], Cause())
        cause.count = row["count"]
        cause.examples.append(_violation(row))


def _violation(row: Row) -> Violation:
    """A row of kind `violation`."""
    return Violation(
        row["clause"], row["subject"], row["cause"], tuple(row["events"]), row["allowed"], row["seen"]
    )


def _show_too(spark: SparkSession, broken: list[Found]) -> None:
    """Put violations of readings, which the driver judges, beside those of the view `violations`."""
    if broken:
        rows = spark.createDataFrame(pa.Table.from_pylist(broken, schema=FOUND_SCHEMA))
        spark.table("violations").unionByName(rows).createOrReplaceTempView("violations")


def _first_of_each_cause(found: DataFrame) -> DataFrame:
    found.where("kind = 'violation'").createOrReplaceTempView("violations")
    return found.sparkSession.sql(
        f"""SELECT * FROM (
          SELECT *, count(*) OVER (PARTITION BY run_key, clause, cause) AS count,
            row_number() OVER (PARTITION BY run_key, clause, cause ORDER BY element_at(events, -1), subject) AS rank
          FROM violations) WHERE rank <= {EXAMPLES} ORDER BY run_key, clause, cause, rank"""
    )


def _conclude(ingested: Ingested, key: int, runs: dict[int, Run], tallies: dict[int, RunTally]) -> RunResult:
    return conclude(ingested.facts[key], runs.get(key), tallies[key])


def unmarked_violations(spark: SparkSession) -> Iterable[str]:
    """Operations that are broken although the screen had not marked them: a defect of the screen, never of the spec."""
    rows = spark.sql(
        "SELECT DISTINCT v.subject FROM violations v JOIN marks m ON v.run_key = m.run_key AND v.subject = m.id "
        "WHERE NOT m.marked"
    )
    return [row["subject"] for row in rows.collect()]
