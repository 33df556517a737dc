"""Formats durations and times, given in nanoseconds, as text."""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_NS_PER_MS: Final = 1_000_000
_UNITS: Final = (("s", 1_000_000_000, 9), ("ms", _NS_PER_MS, 6), ("us", 1_000, 3))
"""Name, length in ns, and how many decimals say a nanosecond."""
_DAY: Final = ("d", 86_400_000_000_000, 0)


def milliseconds(duration_ns: int) -> str:
    """Nanoseconds as milliseconds with three decimals, exactly rounded down: `-0.001`, `8027.735`. Below a millisecond
    with six decimals, if they say more: `0.000060`, `0.004105`."""
    sign, size = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    if size < _NS_PER_MS and size % 1_000:
        return f"{sign}0.{size:06}"
    return f"{sign}{size // _NS_PER_MS}.{size % _NS_PER_MS // 1000:03}"


def duration(duration_ns: int) -> str:
    """A duration, rounded to four digits, in the largest unit that is not longer: `250 ns`, `7.5 us`, `399 ms`, `2.5
    s`, `3 d`."""
    sign, size = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    for unit, length_ns, _ in (_DAY, *_UNITS):
        if size >= length_ns:
            said = f"{size / length_ns:.4g}" if size < 9_999 * length_ns else f"{size // length_ns}"
            return f"{sign}{said} {unit}"
    return f"{sign}{size} ns"


def exact(duration_ns: int) -> str:
    """A duration, not rounded, in the largest unit up to seconds, or in whole days: `7.999999 ms`, `90 s`, `3 d`."""
    size = abs(duration_ns)
    whole_days = size and size % _DAY[1] == 0
    units = [_DAY] if whole_days else _UNITS
    return _in_unit(duration_ns, *next((one for one in units if size >= one[1]), ("ns", 1, 0)))


def _in_unit(duration_ns: int, unit: str, length_ns: int, digits: int) -> str:
    size = abs(duration_ns)
    decimals = f".{size % length_ns:0{digits}}".rstrip("0").rstrip(".") if digits else ""
    return f"{'-' if duration_ns < 0 else ''}{size // length_ns}{decimals} {unit}"


def clock_time(t_ns: int, zone: str | None) -> str:
    """A time of a trace: in ms, not rounded (`14.011 ms`). For a trace from a log, as a date in this time zone."""
    return _in_unit(t_ns, *_UNITS[1]) if zone is None else local_time(t_ns, zone)


def local_time(t_ns: int, zone: str) -> str:
    """A time in nanoseconds since 1970, as a date in that zone: `2026-10-20 09:15:01.000+02:00`. UTC if the zone is
    unknown."""
    try:
        there = datetime.strptime(zone, "%z").tzinfo if zone[:1] in ("+", "-") else ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        there = UTC
    seconds, beside_ns = divmod(t_ns, 1_000_000_000)
    digits = f"{beside_ns:09}"
    kept = max(3, len(digits.rstrip("0")))
    moment = datetime.fromtimestamp(seconds, there).isoformat(" ")
    return f"{moment[:19]}.{digits[:kept]}{moment[19:]}"
