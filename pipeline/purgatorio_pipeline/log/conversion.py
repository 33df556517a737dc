"""Converts a log into a trace."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import chain, islice
from pathlib import Path

from purgatorio_pipeline.log.events import EventMaker
from purgatorio_pipeline.log.mapping import LogMapping
from purgatorio_pipeline.log.points import points_of
from purgatorio_pipeline.log.reading import Reading
from purgatorio_pipeline.log.repair import ends, repair
from purgatorio_pipeline.log.rows import BreaksOff, rows_with
from purgatorio_pipeline.log.table import BATCH_ROWS, Point, PointTable, point_table
from purgatorio_spec.trace.convert import CannotConvert, partial_of
from purgatorio_spec.trace.log import PROFILE, LogFacts
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_spec.trace.writer import TraceWriter


@dataclass(frozen=True, slots=True)
class LogConversion:
    """The result of a conversion. `ends`: the number of requests by their end, and of requests without a time-out.
    `lacking` and `beyond_events`: as in `LogFacts`. `notes`: rows that were left out or sorted, in words. `left_out`:
    the numbers of bad rows (with `keep_going`), and of requests without a known end."""

    run: str
    rows: int
    events: int
    requests: int
    ends: Mapping[str, int]
    lacking: Mapping[str, list[str]]
    notes: tuple[str, ...]
    left_out: int = 0
    beyond_events: int = 0


def convert_log(
    sources: Sequence[Path],
    target: Path,
    mapping: LogMapping,
    *,
    force: bool = False,
    keep_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LogConversion:
    """Write the trace of a log, which may be several files, to `target`, in the form that its suffix names. Raises
    `CannotConvert` with the row, the error and the remedy; then nothing was written. With `keep_going`, a bad row is
    left out with all rows of its request. The end record counts it as dropped: a clause that such a row may excuse or
    break is UNKNOWN. `progress` gets the number of rows read so far."""
    partial = partial_of(target, force=force)
    read = Reading(keep_going, len(sources))
    with point_table() as table:
        for source in sources:
            read.files.append((read.rows, source.name))
            _load(table, source, mapping, read, progress)
        _require_filled(mapping, read)
        notes = repair(table, mapping, read)
        ended = ends(table, mapping)
        header = _header(sources[0], mapping, read)
        left_out = read.left_out + sum(read.unknown_ends.values())
        try:
            made = _write(table, TraceWriter(partial, header), mapping, left_out)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    if made.unordered and mapping.answer_ns is not None:
        cure = "set a smaller promises.skew_ms" if mapping.skew_ns else "log finer times"
        notes.append(
            f"{made.unordered:,} requests (first: {made.first_unordered}) came at the same time as an event of their "
            f"key, and were not answered in time. Which came first is unknown, so O4 does not judge them: {cure}"
        )
    return LogConversion(
        header.run,
        read.rows,
        made.i,
        made.requests,
        ended,
        mapping.lacking(),
        tuple(notes),
        left_out,
        read.beyond_events,
    )


def _load(
    table: PointTable,
    source: Path,
    mapping: LogMapping,
    read: Reading,
    progress: Callable[[int], None] | None,
) -> None:
    latest_t: int | None = None
    rows = rows_with(mapping.columns, source, table.cursor(), read)
    while some := list(islice(rows, BATCH_ROWS)):
        points: list[Point] = []
        for row in some:
            read.rows += not isinstance(row, BreaksOff)
            if isinstance(row, str):
                read.leave_out(
                    f"the file breaks off after {read.row()} ({row})" if isinstance(row, BreaksOff) else row
                )
                continue
            for name, value in row.items():
                read.given[name] = read.given.get(name, 0) + (value not in (None, ""))
            made = points_of(row, mapping, read)
            if mapping.enqueued is None and not mapping.counts_back and made and made[0].t:
                if latest_t is not None and made[0].t < latest_t:
                    read.backwards += 1
                    read.backwards_row = read.backwards_row or read.rows
                latest_t = max(latest_t or made[0].t, made[0].t)
            points += made
        table.add(points)
        if progress is not None:
            progress(read.rows)
    if read.rows == read.files[-1][0]:
        raise CannotConvert(f"{source} has no rows")


def _require_filled(mapping: LogMapping, read: Reading) -> None:
    ends = {mapping.completed: "was completed", mapping.timed_out: "timed out"}
    for name in mapping.columns:
        if read.given.get(name):
            continue
        if name in ends:
            # A log of an hour without problems may have no time-outs.
            read.absent.append((name, ends[name]))
        else:
            raise CannotConvert(
                f"the column {name!r} is empty in all {read.rows:,} rows: name another column"
            )


def _header(source: Path, mapping: LogMapping, read: Reading) -> Header:
    missing = mapping.lacking()
    recorded: list[str] = ["force_complete", "on_complete", "try_complete_else_watch"]
    if "O4" in missing and "O5" in missing:
        recorded.remove("try_complete_else_watch")
    if {"O2", "O4"} - {*missing}:
        # A log has no evaluations: `answer_ms` replaces the evaluation that an event causes.
        recorded += ["check_and_complete", "ready", "try_complete"]
    recorded += ["cancelled"] if mapping.shows("gone") else []
    if mapping.shows("timed_out"):
        recorded += ["timer_fire"]
        recorded += ["timer_add"] if mapping.timeout is not None else []
    return Header(
        run=source.name,
        implementation=Implementation("log", "", "unknown"),
        profile=PROFILE,
        timer=TimerConstants(early_ns=mapping.early_ns, late_ns=mapping.late_ns),
        clock=TraceClock("log", "ns"),
        recorded=tuple(sorted(recorded)),
        params=LogFacts(
            lacking=missing,
            time_zone=mapping.time_zone.key if mapping.time_zone else _zone(read.offsets),
            answer_ns=mapping.answer_ns or 0,
            unknown_ends=read.unknown_ends,
            beyond_events=read.beyond_events,
            files=read.several,
        ).params(),
    )


def _zone(offsets: set[timedelta | None]) -> str:
    """The offset from UTC, if all times of the log have the same one. Otherwise UTC."""
    offset = next(iter(offsets)) if len(offsets) == 1 else None
    return f"{datetime.now(timezone(offset)):%z}" if offset else "UTC"


def _write(table: PointTable, writer: TraceWriter, mapping: LogMapping, left_out: int) -> EventMaker:
    """Write the points as events, in the order of time."""
    made = EventMaker(bool({"O2", "O4"} - {*mapping.lacking()}), mapping)
    with writer:
        for event in chain.from_iterable(map(made.events, table.in_order())):
            writer.write(event)
        writer.dropped = left_out
    return made
