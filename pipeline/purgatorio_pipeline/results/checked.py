"""Verdicts that a check left behind: its JSON, or the gold tables of its lake. The events are not among them, so a
cause is told in words and not drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from purgatorio_pipeline.results.shape import BadResults, Shape, shape_of, shapes, text, texts, verdict, whole
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.judge.tally import EXAMPLES, Cause
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.verdict import Violation
from purgatorio_spec.wire.registry import WIRE_CLAUSES

_VIOLATIONS: Final = ("run_key", "clause", "cause", "subject", "events", "allowed", "seen")


def of_check(found: object) -> CheckResult:
    """What `purgatorio check --json` or `verify --json` printed. Raises `BadResults`."""
    shape = shape_of(found, "the result of a check")
    broken = (
        BrokenLine(
            text(one, "file"), whole(one, "line"), text(one, "field"), text(one, "why"), text(one, "hint"), ""
        )
        for one in shapes(shape, "broken")
    )
    return CheckResult(
        tuple(_run(one) for one in shapes(shape, "runs")), whole(shape, "quarantined", 0), tuple(broken)
    )


def _run(shape: Shape) -> RunResult:
    clauses = shape_of(shape.get("clauses"), "'clauses' of a run")
    return RunResult(
        text(shape, "run"), text(shape, "file", ""), text(shape, "subject", ""), text(shape, "profile", ""),
        verdict(shape), whole(shape, "events", 0),
        _in_order(_clause(name, shape_of(one, "a clause")) for name, one in clauses.items()),
        tuple(texts(shape, "problems")), text(shape, "failure", ""),
    )  # fmt: skip


def _clause(name: str, shape: Shape) -> ClauseResult:
    causes = {
        text(one, "cause"): Cause(
            whole(one, "count"), [_violation(name, one, each) for each in shapes(one, "examples")]
        )
        for one in shapes(shape, "causes")
    }
    return ClauseResult(
        _known(name), verdict(shape), whole(shape, "occasions", 0), causes, text(shape, "reason", "")
    )


def _violation(clause: str, cause: Shape, shape: Shape) -> Violation:
    events = shape.get("events", [])
    if not isinstance(events, list):
        raise BadResults("field 'events' is no list")
    return Violation(
        clause, text(shape, "subject"), text(cause, "cause"), tuple(whole({"events": i}, "events") for i in events),
        text(shape, "allowed"), text(shape, "seen"),
    )  # fmt: skip


def of_lake(root: Path) -> tuple[CheckResult, list[Lateness]]:
    """The gold tables of `purgatorio check --out`, and its broken lines. Raises `BadResults`, OSError."""
    try:
        tables = {
            name: _table(root / "gold" / name) for name in ("runs", "verdicts", "violations", "lateness")
        }
        causes = _causes(tables["violations"])
        clauses: dict[int, list[ClauseResult]] = {}
        for row in tables["verdicts"].to_pylist():
            name = _known(text(row, "clause"))
            one = ClauseResult(
                name,
                verdict(row),
                whole(row, "occasions"),
                causes.get((row["run_key"], name), {}),
                text(row, "reason"),
            )
            clauses.setdefault(row["run_key"], []).append(one)
        runs = [
            RunResult(
                text(row, "run"), text(row, "file"), text(row, "subject"), text(row, "profile"), verdict(row),
                whole(row, "events"), _in_order(clauses.get(row["run_key"], ())), tuple(texts(row, "problems")),
                quarantined=whole(row, "quarantined", 0),
            )
            for row in tables["runs"].to_pylist()
        ]  # fmt: skip
        broken = tuple(BrokenLine(**row) for row in _table(root / "bronze" / "quarantine").to_pylist())
        lines = sum(run.quarantined for run in runs)
        return CheckResult(tuple(runs), lines, broken), _lateness(tables["lateness"].to_pylist())
    except (pa.ArrowException, KeyError, TypeError) as wrong:
        raise BadResults(f"the tables in {root} are not those of a check: {wrong}") from wrong


def _table(folder: Path) -> pa.Table:
    """A table of the lake; an empty one where there is none."""
    # What Spark writes has files of sums and marks beside the parts, and they begin with a dot or a line.
    parts = sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")
    return pa.concat_tables([pq.read_table(path) for path in parts]) if parts else pa.table({})


def _causes(violations: pa.Table) -> dict[tuple[int, str], dict[str, Cause]]:
    """Causes by run and clause: how many violations of each, and the earliest few."""
    found: dict[tuple[int, str], dict[str, Cause]] = {}
    if not violations.num_rows:
        return found
    keys = list(_VIOLATIONS[:3])
    lists = violations.column("events").combine_chunks()
    last = pc.list_flatten(lists).take(pc.subtract(pc.cumulative_sum(pc.list_value_length(lists)), 1))
    rows = violations.select(list(_VIOLATIONS)).append_column("last", last)
    rows = rows.take(
        pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in (*keys, "last", "subject")])
    )
    for group in rows.group_by(keys, use_threads=False).aggregate([("last", "count")]).to_pylist():
        place = found.setdefault((group["run_key"], group["clause"]), {})
        place[group["cause"]] = Cause(group["last_count"])
    at = 0
    for causes in found.values():
        for name, cause in causes.items():
            first = rows.slice(at, min(EXAMPLES, cause.count)).to_pylist()
            cause.examples = [
                Violation(
                    _known(row["clause"]),
                    row["subject"],
                    name,
                    tuple(row["events"]),
                    row["allowed"],
                    row["seen"],
                )
                for row in first
            ]
            at += cause.count
    return found


def _lateness(rows: Sequence[Mapping[str, object]]) -> list[Lateness]:
    """A row is a bin; the rows of a run follow one another, and two runs of one name begin anew."""

    def sums(row: Shape) -> tuple[object, ...]:
        return tuple(row[name] for name in ("run", "p50_ns", "p90_ns", "p99_ns", "max_ns", "early"))

    found: list[Lateness] = []
    for _, some in groupby(rows, key=sums):
        bins = list(some)
        first = {name: value for name, value in bins[0].items() if isinstance(value, int)}
        edges = tuple((_signed(row, "low_ns"), _signed(row, "high_ns"), whole(row, "tasks")) for row in bins)
        found.append(
            Lateness(
                text(bins[0], "run"), edges, first["p50_ns"], first["p90_ns"], first["p99_ns"], first["max_ns"],
                first["early"],
            )
        )  # fmt: skip
    return found


def _signed(row: Shape, name: str) -> int:
    value = row[name]
    if not isinstance(value, int):
        raise BadResults(f"field {name!r} is no whole number")
    return value


def _known(clause: str) -> str:
    if clause not in CLAUSES and clause not in WIRE_CLAUSES:
        raise BadResults(
            f"{visible(clause)!r} is no clause: another version wrote this; see `purgatorio check --clauses`"
        )
    return clause


def _in_order(clauses: Iterable[ClauseResult]) -> dict[str, ClauseResult]:
    """By name, in the order of the registry."""
    by_name = {one.clause: one for one in clauses}
    return {name: by_name[name] for name in dict.fromkeys((*CLAUSES, *WIRE_CLAUSES)) if name in by_name}
