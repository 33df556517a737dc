"""The events behind each cause's first example, fetched from the lake with one filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.selection import CauseKey, Selection, causes, select, selection
from purgatorio_spec.trace.columns import EVENT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_CAUSES: Final = 50
"""Causes whose example is fetched; beyond, a cause is reported by its words alone."""
MAX_ROWS: Final = 20_000


def fetch_examples(events: DataFrame, result: CheckResult) -> dict[CauseKey, pa.Table]:
    """For each cause of a check the events that its first violation needs."""
    keys = {run.file: key for key, run in enumerate(result.runs)}
    wanted = [(cause, keys[run.file], selection(violation)) for cause, run, _, violation in causes(result)]
    wanted = wanted[:MAX_CAUSES]
    if not wanted:
        return {}
    rows = events.where(" OR ".join(_condition(key, one) for _, key, one in wanted)).limit(MAX_ROWS)
    table = rows.orderBy("run_key", "i").toArrow()
    found: dict[CauseKey, pa.Table] = {}
    for cause, key, one in wanted:
        of_run = table.filter(pc.equal(table.column("run_key"), pa.scalar(key, pa.int32())))
        found[cause] = select(of_run.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA), one)
    return found


def _condition(run_key: int, one: Selection) -> str:
    """The filter of one selection as SQL. Ids are data of strangers: they are compared as hex, never spliced in."""
    listed = ", ".join(str(i) for i in one.events)
    parts = [f"i IN ({listed})", f"(c IN ({listed}) AND i <= {one.last_i})"]
    if one.subject is not None:
        parts.append(f"(id = CAST(unhex('{one.subject.encode().hex()}') AS STRING) AND i <= {one.last_i})")
    if one.between:
        parts.append(f"(i BETWEEN {one.events[0]} AND {one.last_i})")
    return f"(run_key = {run_key} AND ({' OR '.join(parts)}))"
