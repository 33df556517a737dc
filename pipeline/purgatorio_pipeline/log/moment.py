"""Reads the times and time-outs of a log as nanoseconds. A time may be ISO 8601 with or without a zone, a number with a
unit, or a text in the `time_format` of the user's mapping."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from purgatorio_pipeline.log.mapping import UNIT_NS, LogMapping
from purgatorio_spec.trace.record import MAX_INT

_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?",
    re.IGNORECASE,
)
_SECOND_NS: Final = UNIT_NS["s"]


_DECIMAL_HINT: Final = '; if the comma is its decimal sign, set decimal = ","'
_FORMAT_HINT: Final = '; for another form set time_format, such as "%d.%m.%Y %H:%M:%S.%f"'


class BadValue(ValueError):
    pass


def time_ns(text: str, mapping: LogMapping, offsets: set[timedelta | None] | None = None) -> int:
    """The time in ns since 1970. Adds the text's offset from UTC to `offsets` (None for a number). Raises
    `BadValue`."""
    moment, rest_ns = _moment(text, mapping)
    if offsets is not None:
        offsets.add(None if moment is None else moment.utcoffset())
    t = rest_ns if moment is None else _seconds(moment) + rest_ns
    if abs(t) > MAX_INT // 2:
        raise BadValue(f"{text!r} is not between the years 1824 and 2116")
    return t


def _moment(text: str, mapping: LogMapping) -> tuple[datetime | None, int]:
    """A time in whole seconds, and the remaining nanoseconds. For a number, only nanoseconds."""
    if mapping.time_format is not None:
        return _formatted(text, mapping.time_format, mapping)
    found = _ISO.fullmatch(text.strip())
    if found is None:
        wanted = 'a time by ISO 8601, or a number with unit = "ms" (s, ms, us, ns)'
        return None, _scaled(text, mapping.unit, wanted + _FORMAT_HINT, mapping.decimal)
    day, clock, fraction, offset = found.groups()
    zone = "+00:00" if (offset or "").upper() in ("Z", "UTC") else offset or ""
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone}{':00' if len(zone) == 3 else ''}")
    except ValueError as bad:
        raise BadValue(f"{text!r} is not a time: {bad}") from None
    nanoseconds = int((fraction or "0").ljust(9, "0"))
    return _in_zone(moment, text, mapping) if moment.tzinfo is None else moment, nanoseconds


def length_ns(text: str, unit: str | None, decimal: str) -> int:
    """A time-out or a duration in ns. Raises `BadValue`, also for a negative one."""
    found = _scaled(text, unit, "a number", decimal)
    if found < 0:
        raise BadValue(f"{text} is below 0: it counts from the time at which the request is enqueued")
    return found


def _scaled(text: str, unit: str | None, wanted: str, decimal: str) -> int:
    try:
        number = Decimal(text.strip().replace(decimal, "."))
    except InvalidOperation:
        comma = _DECIMAL_HINT if re.fullmatch(r"\s*-?\d+,\d+\s*", text) else ""
        raise BadValue(f"{text!r} is not {wanted}{comma}") from None
    if not number.is_finite():
        raise BadValue(f"{text} is not a number: leave the field empty if there is no number")
    if unit is None:
        raise BadValue(
            f'{text} is a number without a unit: if it counts from 1970, add unit = "{_likely(text)}" (s, ms, us, ns); '
            "if it is a length of time, name its column in duration"
        )
    if number.copy_abs() > MAX_INT // 2 // UNIT_NS[unit]:  # the product may be beyond the limits of Decimal
        raise BadValue(f"{text} {unit} are more than 146 years: the unit is probably wrong")
    return int(number * UNIT_NS[unit])


def _likely(text: str) -> str:
    """The unit in which the number counts from 1970 to a time of our century."""
    digits = len(text.strip().partition(".")[0])
    return "s" if digits < 12 else "ms" if digits < 15 else "us" if digits < 18 else "ns"


def _formatted(text: str, form: str, mapping: LogMapping) -> tuple[datetime, int]:
    try:
        moment = datetime.strptime(text.strip(), form)
    except ValueError:
        raise BadValue(f"{text!r} does not match time_format = {form!r}") from None
    nanoseconds = moment.microsecond * UNIT_NS["us"]
    moment = moment.replace(microsecond=0)
    return _in_zone(moment, text, mapping) if moment.tzinfo is None else moment, nanoseconds


def _in_zone(local: datetime, text: str, mapping: LogMapping) -> datetime:
    zone = mapping.time_zone
    if zone is None:
        raise BadValue(f'{text!r} has no zone: add time_zone, such as "UTC" or "Europe/Berlin"')
    first, second = local.replace(tzinfo=zone), local.replace(tzinfo=zone, fold=1)
    if first.utcoffset() != second.utcoffset():
        back = datetime.fromtimestamp(first.timestamp(), zone).replace(tzinfo=None)
        there = "comes twice" if back == local else "does not exist"
        raise BadValue(
            f"{text!r} {there} in {zone.key}, where the clocks change: log times in UTC, or with their offset"
        )
    return first


def _seconds(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * _SECOND_NS
