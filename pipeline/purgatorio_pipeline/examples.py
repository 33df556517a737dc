"""The events behind each cause's first example, fetched from the lake with one filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.counterexample import HEAD_ROWS, TAIL_ROWS
from purgatorio_spec.show.selection import CauseKey, Selection, causes, select, selection
from purgatorio_spec.trace.columns import EVENT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_CAUSES: Final = 50
"""Causes whose example is fetched; beyond, a cause is reported by its words alone."""


class Example(NamedTuple):
    """The events that show a violation, in order; of a long history only the rows that `counterexample` looks at, and
    how many were left in the lake."""

    events: pa.Table
    unfetched: int = 0


def fetch_examples(events: DataFrame, result: CheckResult) -> dict[CauseKey, Example]:
    """For each cause of a check the events that its first violation needs, a bounded number each."""
    keys = {run.file: key for key, run in enumerate(result.runs)}
    wanted = [(cause, keys[run.file], selection(violation)) for cause, run, _, violation in causes(result)]
    wanted = wanted[:MAX_CAUSES]
    if not wanted:
        return {}
    table = _matched(events, [(key, one) for _, key, one in wanted]).toArrow()
    found: dict[CauseKey, Example] = {}
    for at, (cause, _, one) in enumerate(wanted):
        mine = table.filter(pc.equal(table.column("cause"), pa.scalar(at, pa.int32())))
        total = mine.column("total")[0].as_py() if mine.num_rows else 0
        rows = select(mine.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA), one)
        found[cause] = Example(rows, total - mine.num_rows)
    return found


def _matched(events: DataFrame, wanted: Sequence[tuple[int, Selection]]) -> DataFrame:
    """The rows of each selection, by its number `cause`, and how many there are in the lake (`total`)."""
    conditions = [_condition(key, one) for key, one in wanted]
    numbers = ", ".join(f"CASE WHEN {condition} THEN {at} END" for at, condition in enumerate(conditions))
    named = " OR ".join(
        f"(cause = {at} AND i IN ({', '.join(map(str, one.events))}))" for at, (_, one) in enumerate(wanted)
    )
    first = " ".join(f"WHEN {at} THEN {one.events[0]}" for at, (_, one) in enumerate(wanted))
    checks = ", ".join(str(at) for at, (_, one) in enumerate(wanted) if one.between)
    rows = events.where(" OR ".join(conditions)).selectExpr(
        "*", f"explode(filter(array({numbers}), at -> at IS NOT NULL)) AS cause"
    )
    if checks:
        # Of all that went on beside a check only its own thread is shown, and it is the thread of the first event.
        judged = f"max(CASE WHEN i = CASE cause {first} END THEN th END) OVER (PARTITION BY cause) AS judged"
        rows = rows.selectExpr("*", judged).where(f"cause NOT IN ({checks}) OR th = coalesce(judged, th)")
    return (
        rows.selectExpr(
            "*",
            "row_number() OVER (PARTITION BY cause ORDER BY i) AS place",
            "count(*) OVER (PARTITION BY cause) AS total",
        )
        .where(f"place <= {HEAD_ROWS} OR place > total - {TAIL_ROWS} OR {named}")
        .orderBy("cause", "i")
    )


def _condition(run_key: int, one: Selection) -> str:
    """The filter of one selection as SQL. Ids are data of strangers: they are compared as hex, never spliced in."""
    listed = ", ".join(str(i) for i in one.events)
    parts = [f"i IN ({listed})", f"(c IN ({listed}) AND i <= {one.last_i})"]
    if one.subject is not None:
        parts.append(f"(id = CAST(unhex('{one.subject.encode().hex()}') AS STRING) AND i <= {one.last_i})")
    if one.between:
        parts.append(f"(i BETWEEN {one.events[0]} AND {one.last_i})")
    return f"(run_key = {run_key} AND ({' OR '.join(parts)}))"
