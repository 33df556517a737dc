"""`LogMapping`: the meaning of the columns of a user's log, for `purgatorio convert --from-log`.

A mapping comes from a TOML file, from `--map NAME=VALUE` on the command line, or from both. It is checked when it is
read. docs/from-a-log.md has examples.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from purgatorio_spec.trace.convert import CannotConvert
from purgatorio_spec.trace.log import NEEDED_ENTRIES

UNIT_NS: Final[Mapping[str, int]] = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

What = Literal["enqueued", "completed", "timed_out", "event", "gone", "ignored"]
WHATS: Final[tuple[What, ...]] = ("enqueued", "completed", "timed_out", "event", "gone", "ignored")
"""The meanings of a log's rows: a request was enqueued, was completed by an event, timed out; an event of a key; a
client gave its request up; a row that ends no request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMapping:
    """The names of columns, and the promises of the log's owner.

    `id`: the columns that together identify a request. `key`: for each key of a request, the columns that form this
    key; in rows of events, `event_key`, if it is set. `enqueued`, `completed`, `timed_out` and `event` name columns
    with times. `time` and `what` name a column with times and the columns that explain them: `words` gives the meaning
    of each text in `what`. `duration`: a column from which, with the time of a request's end, the other time follows:
    `time` for `enqueued`, or `enqueued` for the ends. `timeout`: a column, or one number for all requests. `unit`: the
    unit of times that are numbers. `timeout_unit`, `duration_unit`: the units of time-outs and durations. `decimal`:
    the decimal sign of numbers. `time_format`: the form of other times, for `strptime`. `time_zone`: the zone of times
    without a zone. `duplicates`: whether equal rows are refused, dropped or kept.

    Promises, in nanoseconds: a request times out at most `early_ns` before and at most `late_ns` after its time-out. A
    request is answered at most `answer_ns` after an event of its key, and at most `answer_early_ns` before the event.
    Two times that differ by at most `skew_ns` have no order. The four bounds include `skew_ns`.
    """

    id: tuple[str, ...]
    key: tuple[tuple[str, ...], ...] = ()
    event_key: tuple[tuple[str, ...], ...] = ()
    enqueued: str | None = None
    completed: str | None = None
    timed_out: str | None = None
    event: str | None = None
    time: str | None = None
    duration: str | None = None
    what: tuple[str, ...] = ()
    words: Mapping[str, What]
    timeout: str | float | None = None
    unit: str | None = None
    timeout_unit: str | None = None
    duration_unit: str | None = None
    decimal: str = "."
    time_format: str | None = None
    time_zone: ZoneInfo | None = None
    duplicates: str = "refuse"
    early_ns: int | None = None
    late_ns: int | None = None
    answer_ns: int | None = None
    answer_early_ns: int | None = None
    skew_ns: int = 0

    @property
    def counts_back(self) -> bool:
        """Whether a request was enqueued a duration before its end."""
        return self.duration is not None and self.enqueued is None

    @property
    def ended(self) -> str | None:
        """The column of times for the words in `what`. With a duration, the time of the end is this much later."""
        return self.enqueued if self.time is None and self.duration is not None else self.time

    @property
    def columns(self) -> tuple[str, ...]:
        timeout = self.timeout if isinstance(self.timeout, str) else None
        single = (
            self.enqueued,
            self.completed,
            self.timed_out,
            self.event,
            self.time,
            self.duration,
            timeout,
        )
        return tuple(
            dict.fromkeys(
                (
                    *self.id,
                    *chain(*self.key, *self.event_key),
                    *self.what,
                    *(name for name in single if name is not None),
                )
            )
        )

    def names(self, entry: str) -> bool:
        """Whether the mapping has this entry. A row at the end of a request does not show that it was enqueued if it
        never ends."""
        if entry == "enqueued" and self.counts_back:
            return False
        if entry.startswith("promises."):
            entry = entry[len("promises.") : -len("ms")] + "ns"
        return self.shows(entry) if entry in WHATS else getattr(self, entry) is not None

    def lacking(self) -> dict[str, list[str]]:
        """For each clause, the entries that the clause needs and this mapping does not name."""
        found = {
            clause: [one for one in needed if not self.names(one)]
            for clause, needed in NEEDED_ENTRIES.items()
        }
        return {clause: lack for clause, lack in found.items() if lack}

    def shows(self, what: What) -> bool:
        if what == "enqueued" and self.counts_back:
            return True
        return what in self.words.values() or getattr(self, what, None) is not None


_BOUNDS: Final = ("early", "late", "answer", "answer_early")
_ENTRIES: Final = (
    *(field.name for field in fields(LogMapping) if not field.name.endswith(("_ns", "words"))),
    *(f"promises.{name}_ms" for name in (*_BOUNDS, "skew")),
    *(f"words.{what}" for what in WHATS),
)


def read_mapping(path: Path | None, assigned: Sequence[str]) -> LogMapping:
    """The mapping of a TOML file. Assignments NAME=VALUE replace its entries. Raises `CannotConvert` with a message."""
    values: dict[str, object] = {}
    if path is not None:
        try:
            made = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as bad:  # also for a number of 5,000 digits
            raise CannotConvert(f"{path} is not valid TOML: {bad}") from None
        for name, value in made.items():
            inner = value if name in ("promises", "words") and isinstance(value, dict) else {"": value}
            values.update({f"{name}.{key}" if key else name: each for key, each in inner.items()})
    for text in assigned:
        name, equal, value = text.partition("=")
        if not equal:
            raise CannotConvert(f"--map {text}: write --map NAME=VALUE, such as --map id=request_id")
        name, value = name.strip(), value.strip()
        # Only these may be several; a `time_format` may have a comma of its own.
        several = name in ("id", "key", "event_key", "what") or name.startswith("words.")
        values[name] = [part.strip() for part in value.split(",")] if several and "," in value else value
        if name in ("key", "event_key") and ";" in value:
            values[name] = [[part.strip() for part in key.split(",")] for key in value.split(";")]
    return _mapping(values)


def _mapping(values: dict[str, object]) -> LogMapping:
    for name in values:
        if name not in _ENTRIES:
            near = get_close_matches(name, _ENTRIES, 1)
            said = f"did you mean {near[0]}?" if near else f"known are {', '.join(_ENTRIES)}"
            raise CannotConvert(f"the mapping has no {name!r}: {said}")
    words: dict[str, What] = {}
    for what in WHATS:
        for word in _names(values, f"words.{what}"):
            if word in words:
                raise CannotConvert(
                    f"words: {word!r} means both {words[word]} and {what}; give it to one of them"
                )
            words[word] = what
    timeout = values.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, str | int | float)):
        raise CannotConvert(f"timeout = {timeout!r}: a column, or one number for all requests")
    number = _number(timeout) if isinstance(timeout, str) else timeout
    unit = _choice(values, "unit", tuple(UNIT_NS))
    skew_ns = _promise(values, "skew_ms", 0) or 0
    columns = ("enqueued", "completed", "timed_out", "event", "time", "duration", "time_format")
    given: dict[str, Any] = {name: _name(values, name) for name in columns}
    given |= {f"{name}_ns": _promise(values, f"{name}_ms", skew_ns) for name in _BOUNDS}
    made = LogMapping(
        id=_names(values, "id"),
        key=_keys(values, "key"),
        event_key=_keys(values, "event_key") if "event_key" in values else (),
        what=_names(values, "what"),
        words=words,
        timeout=timeout if number is None else number,
        unit=unit,
        timeout_unit=_choice(values, "timeout_unit", tuple(UNIT_NS)) or unit,
        duration_unit=_choice(values, "duration_unit", tuple(UNIT_NS)),
        decimal=_choice(values, "decimal", (".", ",")) or ".",
        time_zone=_zone(values),
        duplicates=_choice(values, "duplicates", ("refuse", "drop", "keep")) or "refuse",
        skew_ns=skew_ns,
        **given,
    )
    _require_sound(made)
    return made


def _require_sound(made: LogMapping) -> None:
    if not made.id:
        raise CannotConvert(
            'the mapping has no id: name the column that identifies the request, such as id = "request_id"'
        )
    if made.completed is not None and made.completed == made.timed_out:
        raise CannotConvert(
            f"completed and timed_out name the same column, {made.completed!r}, so every request "
            "would end twice: name two columns, or remove one of the entries. If another column tells an answer from a "
            f"time-out, write time = {made.completed!r}, name that column in what, and its words in [words]"
        )
    _require_sound_duration(made)
    if not (made.ended is None) == (not made.what) == (not made.words):
        raise CannotConvert(
            "a log with one row for each event needs the entries time, what and [words]: the column "
            "of times, the column of event names, and the names that mean enqueued, completed, "
            "timed_out or event"
        )
    for what in made.words.values():
        if getattr(made, what, None) is not None:
            raise CannotConvert(f"{what} is a column and words.{what} a word: remove one of the entries")
    if not made.shows("enqueued"):
        raise CannotConvert(
            "the mapping has no enqueued: name the column or word for the time at which a request "
            "was enqueued"
        )
    if not (made.shows("completed") or made.shows("timed_out")):
        raise CannotConvert(
            "the mapping has neither completed nor timed_out: name the column or word of one, or of both"
        )
    if (form := made.time_format) is not None:
        try:
            datetime.strptime(datetime(2001, 1, 1, tzinfo=UTC).strftime(form), form)
        except (ValueError, re.error) as bad:
            raise CannotConvert(
                f'time_format = {form!r}: {bad}; write a form of Python\'s strptime, such as "%d.%m.%Y %H:%M:%S.%f"'
            ) from None
    if made.timeout is not None and made.timeout_unit is None:
        raise CannotConvert('timeout has no unit: add timeout_unit = "ms" (s, ms, us or ns)')
    if made.shows("event") and not made.key:
        raise CannotConvert("event needs key: name the column with the key of an event")


def _require_sound_duration(made: LogMapping) -> None:
    if made.duration is None:
        return
    if made.duration_unit is None:
        raise CannotConvert('duration has no unit: add duration_unit = "ms" (s, ms, us or ns)')
    ends = [one for one in (made.time, made.completed, made.timed_out) if one is not None]
    if bool(ends) == (made.enqueued is not None) or "enqueued" in made.words.values():
        raise CannotConvert(
            "duration takes the place of one time: leave out enqueued, if a row has the time of the end, or time, "
            "completed and timed_out, if a row has the time at which the request was enqueued"
        )


def _names(values: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = values.get(name, [])
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise CannotConvert(f"{name} = {value!r}: a name in quotes, or a list of such names")
    return tuple(found)


def _keys(values: Mapping[str, object], name: str) -> tuple[tuple[str, ...], ...]:
    """A list of lists has several keys; anything else has the columns of one key."""
    value = values.get(name, [])
    if isinstance(value, list) and all(isinstance(each, list) and each for each in value):
        return tuple(_names({name: key}, name) for key in value)
    return (_names(values, name),)


def _name(values: Mapping[str, object], name: str) -> str | None:
    found = _names(values, name)
    if len(found) > 1:
        raise CannotConvert(f"{name} = {list(found)!r}: one name, so join the columns in the log first")
    return found[0] if found else None


def _choice(values: Mapping[str, object], name: str, allowed: tuple[str, ...]) -> str | None:
    value = values.get(name)
    if value is not None and value not in allowed:
        raise CannotConvert(f"{name} = {value!r}: one of {', '.join(allowed)}")
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]  # other values raise
    except (TypeError, ValueError):
        return None


def _promise(values: Mapping[str, object], name: str, skew_ns: int) -> int | None:
    value = values.get(f"promises.{name}")
    if value is None:
        return None
    number = None if isinstance(value, bool) else _number(value)
    if number is None or not 0 <= number < 1e12:
        raise CannotConvert(f"promises.{name} = {value!r}: milliseconds, from 0 on")
    return round(number * UNIT_NS["ms"]) + skew_ns


def _zone(values: Mapping[str, object]) -> ZoneInfo | None:
    name = _name(values, "time_zone")
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CannotConvert(
            f"time_zone = {name!r} is unknown: use a name of the zone database, such as Europe/Berlin "
            "or UTC (if the system has no zone database: pip install tzdata)"
        ) from None
