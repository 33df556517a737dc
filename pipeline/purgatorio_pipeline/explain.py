"""Explain: the clauses themselves over whatever the screen marked, on the executors.

A task gets rows sorted by (run, operation, i) and makes one history after the other; never a Spark group an operation,
which costs thirty times as much. What comes back are rows of `FOUND_SCHEMA`: sums for each clause, every violation, and
summaries of operations where readings are to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_spec.clause.declaration import Clause, Part
from purgatorio_spec.history.operation import CONTEXT
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.stream import ROW_FIELDS, ROW_SCHEMA, histories
from purgatorio_spec.history.summary import summary_of
from purgatorio_spec.judge.context import context_batch, thread_context
from purgatorio_spec.judge.tally import judged_clauses
from purgatorio_spec.trace.columns import Fields
from purgatorio_spec.verdict import Violation

_FOUND: Final[Fields] = [
    pa.field("run_key", pa.int32()),
    pa.field("kind", pa.string()),
    pa.field("clause", pa.string()),
    pa.field("occasions", pa.int64()),
    pa.field("unknown", pa.int64()),
    pa.field("cause", pa.string()),
    pa.field("subject", pa.string()),
    pa.field("events", pa.list_(pa.int64())),
    pa.field("allowed", pa.string()),
    pa.field("seen", pa.string()),
]
FOUND_SCHEMA: Final = pa.schema(_FOUND)
"""`kind`: `sums` (occasions of a clause), `undecided` (unknown: how many, cause: the reason), `violation`, `orphans`
(events: the first ones; occasions: how many), `summary` (events: the fields of `Summary`)."""

_BATCH_ROWS: Final = 5_000
Found = dict[str, object]
Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]


def violation_row(run_key: int, violation: Violation) -> Found:
    """A row of kind `violation`."""
    return {
        "run_key": run_key,
        "kind": "violation",
        "clause": violation.clause,
        "cause": violation.cause,
        "subject": violation.subject,
        "events": list(violation.events),
        "allowed": violation.allowed,
        "seen": violation.seen,
    }


@dataclass(slots=True)
class _Sums:
    """Occasions of each run and clause, what was left undecided by reason, and rows to be sent."""

    counts: dict[tuple[int, str], int] = field(default_factory=dict)
    undecided: dict[tuple[int, str, str], int] = field(default_factory=dict)
    rows: list[Found] = field(default_factory=list)

    def add(self, run_key: int, run: Run, part: Part, clauses: Iterable[Clause]) -> None:
        for clause in clauses:
            judgement = clause.judge(run, part)
            if judgement is None:
                continue
            key = (run_key, clause.id)
            self.counts[key] = self.counts.get(key, 0) + judgement.occasions
            if judgement.undecided:
                open_key = (*key, judgement.undecided)
                self.undecided[open_key] = self.undecided.get(open_key, 0) + 1
            if judgement.violation is not None:
                self.rows.append(violation_row(run_key, judgement.violation))

    def batches(self, last: bool) -> Iterator[pa.RecordBatch]:
        if last:
            self.rows += [
                {"run_key": key, "kind": "sums", "clause": clause, "occasions": count}
                for (key, clause), count in self.counts.items()
            ]
            self.rows += [
                {"run_key": key, "kind": "undecided", "clause": clause, "cause": reason, "unknown": count}
                for (key, clause, reason), count in self.undecided.items()
            ]
        if last or len(self.rows) >= _BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(self.rows, schema=FOUND_SCHEMA)
            self.rows = []


def judge_operations(runs: Mapping[int, Run], summarised: frozenset[int]) -> Task:
    """The task that judges sorted rows; for runs in `summarised` it also sends each operation's summary."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        clauses = {key: judged_clauses(run) for key, run in runs.items()}
        sums = _Sums()
        for run_key, history in histories(batches):
            run = runs[run_key]
            if history.orphans:
                sums.rows.append(
                    {
                        "run_key": run_key,
                        "kind": "orphans",
                        "occasions": len(history.orphans),
                        "events": history.orphans[:1],
                    }
                )
            sums.add(run_key, run, history, clauses[run_key])
            if run_key in summarised:
                sums.rows.append({"run_key": run_key, "kind": "summary", "events": list(summary_of(history))})
            yield from sums.batches(last=False)
        yield from sums.batches(last=True)

    return task


def explain(
    rows: DataFrame, runs: Mapping[int, Run], summarised: frozenset[int], partitions: int
) -> DataFrame:
    """Judge the operations of `rows` (events and context, the columns of `ROW_SCHEMA`)."""
    # Context sorts behind the events of its operation: it is looked at when the history is whole.
    ranked = rows.select(*ROW_FIELDS, fn.expr(f"ph = '{CONTEXT}'").alias("is_context"))
    ordered = ranked.repartition(partitions, "run_key", "id").sortWithinPartitions(
        "run_key", "id", "is_context", "i"
    )
    return ordered.drop("is_context").mapInArrow(
        judge_operations(runs, summarised), from_arrow_schema(FOUND_SCHEMA)
    )


_FOUND_NAMES: Final = tuple(name for name in FOUND_SCHEMA.names if name not in ("run_key", "kind"))
_THREAD_FIELDS: Final[Fields] = [
    *(ROW_SCHEMA.field(name) for name in ROW_SCHEMA.names),
    FOUND_SCHEMA.field("kind"),
    *(FOUND_SCHEMA.field(name) for name in _FOUND_NAMES),
]
THREAD_SCHEMA: Final = pa.schema(_THREAD_FIELDS)
"""Context rows (`kind` is null) and rows of `FOUND_SCHEMA` in one table."""

THREAD_COLUMNS: Final = ("run_key", "th", "i", "ph", "f", "c", "id", "keys", "out")


def follow_threads(runs: Mapping[int, Run]) -> Task:
    """The task that follows each thread's calls: context rows for operations, and judged checks.

    Rows come sorted by (run, thread, i); a thread's rows of one run are held together as columns.
    """

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for run_key, table in _threads(batches):
            run = runs[run_key]
            context = thread_context(table)
            sums = _Sums()
            for check in context.checks:
                sums.add(run_key, run, check, judged_clauses(run))
            for batch in sums.batches(last=True):
                yield _widen(batch)
            yield _widen(context_batch(run_key, context.rows, ROW_SCHEMA))

    return task


def _threads(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """The rows of one run and thread at a time, in the order of `i`."""
    held: list[pa.RecordBatch] = []
    current: tuple[int, str] = (-1, "")
    for batch in batches:
        keys: list[tuple[int, str]] = list(
            zip(batch.column("run_key").to_pylist(), batch.column("th").to_pylist(), strict=True)  # type: ignore[arg-type]  # neither column holds nulls
        )
        start = 0
        for at, key in enumerate(keys):
            if key != current:
                if current[0] >= 0:
                    held.append(batch.slice(start, at - start))
                    yield current[0], pa.Table.from_batches(held)
                held, start, current = [], at, key
        held.append(batch.slice(start))
    if current[0] >= 0:
        yield current[0], pa.Table.from_batches(held)


def _widen(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with all columns of `THREAD_SCHEMA`, nulls where it has none."""
    columns = [
        batch.column(name)
        if name in batch.schema.names
        else pa.nulls(batch.num_rows, THREAD_SCHEMA.field(name).type)
        for name in THREAD_SCHEMA.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=THREAD_SCHEMA)
