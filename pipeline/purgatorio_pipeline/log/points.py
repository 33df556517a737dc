"""The points of a row: what happened to a request or a key, and when."""

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from purgatorio_pipeline.log.mapping import WHATS, LogMapping, What
from purgatorio_pipeline.log.moment import BadValue, time_ns, timeout_ns
from purgatorio_pipeline.log.reading import Reading
from purgatorio_pipeline.log.rows import Row
from purgatorio_pipeline.log.table import LEFT_OUT, UNKNOWN, Point
from purgatorio_spec.trace.convert import CannotConvert

_RANK: Final[Mapping[str, int]] = {"event": 0, "enqueued": 1, "completed": 2, "timed_out": 3, "gone": 4}
"""The order of rows with equal times: an event does not count for requests that are enqueued at the same time."""


def points_of(fields: Row, mapping: LogMapping, read: Reading) -> list[Point]:
    """The points of a row. If a point is left out, all points of its request are left out."""
    try:
        if read.keep_going and not any(fields.values()):
            raise CannotConvert(f"row {read.rows:,} is empty")
        return list(_points(fields, mapping, read))
    except CannotConvert as bad:
        read.leave_out(str(bad))
        request = _id(fields, mapping.id)
        return [] if request is None else [Point(0, 0, read.rows, LEFT_OUT, request)]


def _points(fields: Row, mapping: LogMapping, read: Reading) -> Iterator[Point]:
    request = _id(fields, mapping.id)
    columns = [(what, getattr(mapping, what, None)) for what in WHATS]
    moments: list[tuple[What, str]] = [(what, name) for what, name in columns if name is not None]
    if not any(fields[column] for _, column in moments) and not (mapping.time and fields[mapping.time]):
        if moments and request is None:
            read.other_rows += 1
            return
    elif mapping.enqueued is not None and not fields[mapping.enqueued]:
        # An event of a key, or the end of a request that was enqueued before the log began.
        moments = [one for one in moments if one[0] != "enqueued"]
    said = "/".join(text for name in mapping.what if (text := fields[name]))
    if mapping.what and (not moments or said or fields[mapping.time or ""]):
        word = said or "(empty)"
        if (meaning := mapping.words.get(word)) is not None:
            read.known.add(word)
            moments.append((meaning, mapping.time or ""))
        else:
            read.count_unknown(word)
            if request is not None:
                yield Point(0, 0, read.rows, f"{UNKNOWN}{word}", request)
    keys = _keys(fields, mapping.key) if mapping.key else None
    for what, column in moments:
        text = fields[column]
        if what == "ignored":
            continue
        if text is None or not text.strip():
            if what == "enqueued" or column == mapping.time:
                raise CannotConvert(
                    f"row {read.rows:,}: {column!r} is empty: each request needs the time at which it was enqueued, "
                    "and each word its time. If this is a row of an event of a key, name the column of its time in "
                    "event"
                )
            continue
        try:
            t = time_ns(text, mapping, read.offsets)
        except BadValue as bad:
            raise CannotConvert(f"row {read.rows:,}, {column!r}: {bad}") from None
        if what == "event":
            if keys is None:
                raise CannotConvert(f"row {read.rows:,}: an event without its key, {mapping.key[0][0]!r}")
            yield Point(t, _RANK[what], read.rows, what, keys=keys)
            continue
        if request is None:
            raise CannotConvert(f"row {read.rows:,}: {mapping.id[0]!r} is empty: it identifies the request")
        delay_ns = _delay(fields, mapping, read.rows) if what == "enqueued" else None
        yield Point(
            t, _RANK.get(what, 0), read.rows, what, request, keys if what == "enqueued" else None, delay_ns
        )


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


def _delay(fields: Row, mapping: LogMapping, row: int) -> int | None:
    if mapping.timeout is None:
        return None
    text = fields[mapping.timeout] if isinstance(mapping.timeout, str) else str(mapping.timeout)
    if text is None or not text.strip():
        return None
    try:
        return timeout_ns(text, mapping)
    except BadValue as bad:
        column = repr(mapping.timeout) if isinstance(mapping.timeout, str) else "timeout"
        raise CannotConvert(f"row {row:,}, {column}: {bad}") from None
