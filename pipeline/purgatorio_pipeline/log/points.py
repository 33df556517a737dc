"""The points of a row: what happened to a request or a key, and when."""

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from purgatorio_pipeline.log.mapping import WHATS, LogMapping, What
from purgatorio_pipeline.log.moment import BadValue, length_ns, time_ns
from purgatorio_pipeline.log.reading import Reading
from purgatorio_pipeline.log.rows import Row
from purgatorio_pipeline.log.table import LEFT_OUT, UNKNOWN, Point
from purgatorio_spec.trace.convert import CannotConvert

_RANK: Final[Mapping[str, int]] = {"event": 0, "enqueued": 1, "completed": 2, "timed_out": 3, "gone": 4}
"""The order of rows with equal times: an event does not count for requests that are enqueued at the same time."""


_ENDS: Final = frozenset({"completed", "timed_out", "gone"})


def points_of(fields: Row, mapping: LogMapping, read: Reading) -> list[Point]:
    """The points of a row. If a point is left out, all points of its request are left out."""
    try:
        if read.keep_going and not any(fields.values()):
            raise CannotConvert(f"{read.row()} is empty")
        return list(_points(fields, mapping, read))
    except CannotConvert as bad:
        read.leave_out(str(bad))
        request = _id(fields, mapping.id)
        return [] if request is None else [Point(0, 0, read.rows, LEFT_OUT, request)]


def _points(fields: Row, mapping: LogMapping, read: Reading) -> Iterator[Point]:
    request = _id(fields, mapping.id)
    columns = [(what, getattr(mapping, what, None)) for what in WHATS]
    moments: list[tuple[What, str]] = [(what, name) for what, name in columns if name is not None]
    of_word = mapping.ended
    if not any(fields[column] for _, column in moments) and not (of_word and fields[of_word]):
        if moments and request is None:
            read.other_rows += 1
            return
    elif mapping.enqueued is not None and not fields[mapping.enqueued]:
        # An event of a key, or the end of a request that was enqueued before the log began.
        moments = [one for one in moments if one[0] != "enqueued"]
    said = "/".join(text for name in mapping.what if (text := fields[name]))
    if mapping.what and of_word and (not moments or said or fields[of_word]):
        word = said or "(empty)"
        if (meaning := mapping.words.get(word)) is not None:
            read.known.add(word)
            moments.append((meaning, of_word))
        else:
            read.count_unknown(word)
            if request is not None:
                yield Point(0, 0, read.rows, f"{UNKNOWN}{word}", request)
    keys = _keys(fields, mapping.key) if mapping.key else None
    if mapping.counts_back and (ends := [one for one in moments if one[0] in _ENDS and fields[one[1]]]):
        moments.insert(0, ("enqueued", ends[0][1]))
    for what, column in moments:
        text = fields[column]
        if what == "ignored":
            continue
        if text is None or not text.strip():
            if what == "enqueued" or column == mapping.time:
                raise CannotConvert(
                    f"{read.row()}: {column!r} is empty: each request needs the time at which it was enqueued, "
                    "and each word its time. If this is a row of an event of a key, name the column of its time in "
                    "event"
                )
            continue
        try:
            t = time_ns(text, mapping, read.offsets)
        except BadValue as bad:
            raise CannotConvert(f"{read.row()}, {column!r}: {bad}") from None
        if mapping.duration is not None and (what in _ENDS) != mapping.counts_back and what != "event":
            took_ns = _length(fields, mapping.duration, mapping.duration_unit, mapping, read)
            if took_ns is None:
                raise CannotConvert(
                    f"{read.row()}: {mapping.duration!r} is empty: each end of a request needs it"
                )
            t += -took_ns if mapping.counts_back else took_ns
        if what == "event":
            columns_of_key = mapping.event_key or mapping.key
            of_event = _keys(fields, columns_of_key)
            if of_event is None:
                raise CannotConvert(
                    f"{read.row()}: an event without its key, {columns_of_key[0][0]!r}; if it is in another column "
                    "there, name this column in event_key"
                )
            yield Point(t, _RANK[what], read.rows, what, keys=of_event)
            continue
        if request is None:
            raise CannotConvert(f"{read.row()}: {mapping.id[0]!r} is empty: it identifies the request")
        enqueued = what == "enqueued"
        delay_ns = _length(fields, mapping.timeout, mapping.timeout_unit, mapping, read) if enqueued else None
        yield Point(t, _RANK.get(what, 0), read.rows, what, request, keys if enqueued else None, delay_ns)


def _id(fields: Row, names: tuple[str, ...]) -> str | None:
    """The texts of these columns as one id. None if one is empty. Different lists of texts give different ids."""
    if len(names) == 1:
        return fields[names[0]] or None
    texts = [fields[name] or "" for name in names]
    return "/".join(text.replace("%", "%25").replace("/", "%2F") for text in texts) if all(texts) else None


def _keys(fields: Row, keys: tuple[tuple[str, ...], ...]) -> str | None:
    """The keys as a JSON list; None if a column is empty."""
    texts = [_id(fields, names) for names in keys]
    return orjson.dumps(texts).decode() if all(texts) else None


def _length(
    fields: Row, column: str | float | None, unit: str | None, mapping: LogMapping, read: Reading
) -> int | None:
    """The time-out or duration of a row, in ns. None if it has none."""
    text = fields[column] if isinstance(column, str) else "" if column is None else str(column)
    if text is None or not text.strip():
        return None
    try:
        return length_ns(text, unit, mapping.decimal if isinstance(column, str) else ".")
    except BadValue as bad:
        named = repr(column) if isinstance(column, str) else "timeout"
        raise CannotConvert(f"{read.row()}, {named}: {bad}") from None
