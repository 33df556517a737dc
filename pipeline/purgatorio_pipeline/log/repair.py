"""Refuses or corrects what is wrong with the points of a log."""

from typing import Final

from purgatorio_pipeline.log.mapping import LogMapping
from purgatorio_pipeline.log.reading import Reading
from purgatorio_pipeline.log.table import UNKNOWN, PointTable
from purgatorio_spec.trace.convert import CannotConvert
from purgatorio_spec.trace.log import unknown_end

_WORDS_SHOWN: Final = 5


def repair(table: PointTable, mapping: LogMapping, read: Reading) -> list[str]:
    """Refuse a log of which no trace can be made. Correct what can be corrected, and add a note about it."""
    notes = [*read.notes(mapping)]
    table.leave_out(())
    notes += _with_known_ends(table, mapping, read)
    _leave_out_reused(table, mapping, read)
    table.rows(
        "DELETE FROM points USING (SELECT id AS same, min(row) AS first FROM points WHERE what = 'enqueued'"
        " GROUP BY id) WHERE what = 'enqueued' AND id = same AND row > first"
    )
    notes += _without_doubles(table, mapping, read)
    notes += _ended_first(table, mapping, read)
    return [*notes, *read.left_out_notes(), *_without_strays(table), *_beyond_events(table, mapping, read)]


def _with_known_ends(table: PointTable, mapping: LogMapping, read: Reading) -> list[str]:
    """Leaves out the requests that only an unknown word may have ended. If a client gave a request up before it ended,
    the log says nothing about later: such an end is left out."""
    notes: list[str] = []
    ((again,),) = table.rows(
        "SELECT count(DISTINCT p.id) FROM points p JOIN points g ON g.id = p.id AND g.what = 'gone'"
        f" AND p.t > g.t + {mapping.skew_ns} AND p.what IN ('completed', 'timed_out')"
    )
    if again:
        notes.append(
            f"requests that ended again after their clients had given them up: {again:,}. This is not judged. If the "
            "word of gone is a reply of your server, write it for completed"
        )
    table.rows(
        "DELETE FROM points USING (SELECT id AS same, min(row) FILTER (what = 'gone') AS first,"
        " coalesce(min(t) FILTER (what IN ('completed', 'timed_out'))"
        f" <= min(t) FILTER (what = 'gone') + {mapping.skew_ns}, false) AS ended"
        " FROM points GROUP BY id HAVING first IS NOT NULL) WHERE id = same AND what NOT IN ('enqueued', 'event')"
        " AND CASE WHEN what = 'gone' THEN ended OR row > first ELSE NOT ended END"
    )
    accused = mapping.shows("timed_out") and {"O4", "O5"} - {*mapping.lacking()}
    ended = "SELECT id FROM points WHERE what IN ('completed', 'timed_out', 'gone')"
    known = "SELECT id FROM points WHERE what = 'enqueued'"
    unknown = (
        f"{bool(accused)} AND starts_with(what, '{UNKNOWN}') AND id IN ({known}) AND id NOT IN ({ended})"
    )
    last = f"SELECT id, arg_max(what, row) AS what FROM points WHERE {unknown} GROUP BY id"
    most = table.rows(
        f"SELECT what, count(*) FROM ({last}) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_WORDS_SHOWN}"
    )
    read.unknown_ends = {word.removeprefix(UNKNOWN): times for word, times in most}
    notes += map(unknown_end, read.unknown_ends.items())
    table.rows(f"DELETE FROM points WHERE id IN (SELECT id FROM points WHERE {unknown})")
    table.rows(f"DELETE FROM points WHERE starts_with(what, '{UNKNOWN}')")
    return notes


def _leave_out_reused(table: PointTable, mapping: LogMapping, read: Reading) -> None:
    rounded_ns = mapping.counts_back * (mapping.early_ns or 0)
    reused = table.rows(
        "SELECT id, min(row), max(row) FROM points WHERE what = 'enqueued' GROUP BY id HAVING max(t) - min(t) >"
        f" {max(mapping.skew_ns, rounded_ns)} ORDER BY 2"
    )
    for request, first, second in reused:
        columns = ", ".join(f'"{name}"' for name in mapping.id)
        read.leave_out(
            f"the id {request!r} is enqueued in {read.row(first)} and again, at another time, in "
            f"{read.row(second)}: an id must identify one request; add a column that makes the id unique, "
            f'such as id = [{columns}, "host"]'
        )
    table.leave_out([request for request, *_ in reused])


def _without_doubles(table: PointTable, mapping: LogMapping, read: Reading) -> list[str]:
    twice = table.rows(
        "SELECT what, id, min(row), max(row) FROM points WHERE id IS NOT NULL GROUP BY what, id, t"
        " HAVING count(*) > 1 ORDER BY 3 LIMIT 1"
    )
    for what, request, first, second in twice if mapping.duplicates == "refuse" else ():
        raise CannotConvert(
            f"{read.row(first)} and {read.row(second)} are equal: {request!r} {what} at one time; set duplicates "
            f'= "drop" if the log repeats lines, or "keep" if the request {what} twice at that '
            "time"
        )
    if not twice or mapping.duplicates == "keep":
        return []
    ((dropped,),) = table.rows(
        "DELETE FROM points USING (SELECT what AS w, id AS same, t AS moment, min(row) AS first FROM points"
        " WHERE id IS NOT NULL GROUP BY 1, 2, 3) WHERE what = w AND id = same AND t = moment AND row > first"
    )
    return [f"{dropped:,} rows that repeat another row were dropped"]


def _ended_first(table: PointTable, mapping: LogMapping, read: Reading) -> list[str]:
    """Leaves out requests that end before they are enqueued. Within `skew_ns`, the two times have no order, and the
    request ended at the time at which it was enqueued."""
    early = table.rows(
        "SELECT p.id, p.what, p.row, e.row, (e.t - p.t) / 1e6 FROM points p JOIN points e ON e.id = p.id"
        f" AND e.what = 'enqueued' WHERE p.t < e.t - {mapping.skew_ns}"
        " QUALIFY row_number() OVER (PARTITION BY p.id ORDER BY p.row) = 1 ORDER BY p.row"
    )
    for request, what, row, other, early_ms in early:
        read.leave_out(
            f"{request!r} is {what} in {read.row(row)}, {early_ms:g} ms before it is enqueued in {read.row(other)}: "
            "the times are of two clocks, or the unit or a column is wrong; take all times of a request from one "
            "machine. If the log is written some milliseconds late, set promises.skew_ms"
        )
    table.leave_out([request for request, *_ in early])
    ((moved,),) = table.rows(
        "UPDATE points SET t = e.t FROM (SELECT id, t FROM points WHERE what = 'enqueued') e"
        " WHERE points.id = e.id AND points.t < e.t"
    )
    return [f"{moved:,} ends up to skew_ms before their request: the request ended at once"] if moved else []


def _without_strays(table: PointTable) -> list[str]:
    condition = "id IS NOT NULL AND id NOT IN (SELECT id FROM points WHERE what = 'enqueued')"
    ((count, one),) = table.rows(f"SELECT count(DISTINCT id), min(id) FROM points WHERE {condition}")
    if not count:
        return []
    table.rows(f"DELETE FROM points WHERE {condition}")
    return [f"{count:,} requests end in this log, but are not enqueued in it (such as {one!r}): left out"]


def _beyond_events(table: PointTable, mapping: LogMapping, read: Reading) -> list[str]:
    """Counts the requests far outside the time of the events, by more than the length of this time and than a request
    waits. Probably no file has the events of that time. One event shows no length of time."""
    if "O4" in mapping.lacking():
        return []
    ((read.beyond_events, first, last),) = table.rows(
        "WITH seen AS (SELECT min(t) AS first_t, max(t) AS last_t, arg_min(row, t) AS first, arg_max(row, t) AS last,"
        f" greatest(max(t) - min(t), {mapping.answer_ns}, (SELECT max(delay_ns) FROM points)) AS far_ns FROM points"
        " WHERE what = 'event' HAVING max(t) > min(t))"
        " SELECT count(*), any_value(first), any_value(last) FROM points, seen"
        " WHERE what = 'enqueued' AND (t < first_t - far_ns OR t > last_t + far_ns)"
    )
    if not read.beyond_events:
        return []
    return [
        f"{read.beyond_events:,} requests came long before the first event of a key ({read.row(first)}), or long after "
        f"the last one ({read.row(last)}): O4 cannot pass. Give all files with events of this time"
    ]


_ENDS: Final = """
WITH requests AS (
  SELECT id, bool_or(what = 'completed') AS answered, bool_or(what = 'timed_out') AS expired,
         bool_or(what = 'gone') AS gone, count(*) FILTER (what <> 'enqueued') AS ends, max(delay_ns) AS delay_ns,
         min(t) + max(delay_ns) AS due_t
  FROM points WHERE id IS NOT NULL GROUP BY id
)
SELECT count(*) FILTER (answered), count(*) FILTER (expired), count(*) FILTER (gone), count(*) FILTER (ends > 1),
       count(*) FILTER (NOT (answered OR expired OR gone)),
       count(*) FILTER (NOT (answered OR expired OR gone) AND due_t > (SELECT max(t) FROM points)),
       count(*) FILTER (delay_ns IS NULL)
FROM requests
"""


def ends(table: PointTable, mapping: LogMapping) -> dict[str, int]:
    """The number of requests for each kind of end, also the number of requests without an end that may still end."""
    ((answered, expired, gone, several, endless, waiting, without),) = table.rows(_ENDS)
    counts = {
        "answered": answered,
        "timed out": expired,
        "given up by their clients": gone,
        "of these with several ends": several,
        "without an end": endless,
        "of these still within the time-out at the end of the log": waiting,
        "without a time-out": without if mapping.timeout is not None else 0,
    }
    return {words: count for words, count in counts.items() if count or words in ("answered", "timed out")}
