"""Small programs that are written by hand, for cases that the enumerated programs of `scope` lack: many operations, a
new start of the subject, or more calls. The file `gate_programs.txt` has the programs, and explains the notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from purgatorio_conformance.protocol.boundary_plan import REAPER_NS
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import CALLS
from purgatorio_conformance.protocol.rule import field_rules
from purgatorio_conformance.protocol.small_program import (
    LOOKS_MORE,
    Barrier,
    Delays,
    Expiry,
    Fault,
    Inside,
    LaneCall,
    SmallProgram,
    Stepped,
    Until,
)

_LEFT: Final = "(register left-# ag; ready left-#; check g)"
_SEPARATOR: Final = re.compile(r"; (?![^(]*\))")
_REPEATED: Final = re.compile(r"(\S+) of \((.*)\)")

_Lines = tuple[tuple[str, str], ...]


@lru_cache(maxsize=4)
def gate_programs(part: Part, delays: Delays) -> tuple[SmallProgram, ...]:
    numbers = _numbers(delays)
    return tuple(
        _program(name, targets, lines, numbers)
        for name, targets, lines in _texts()[part]
        if delays.looks or ("needs", "looks") not in lines
    )


def _numbers(delays: Delays) -> Mapping[str, int]:
    """The delays, moments before a deadline and counts that have names."""
    soon_ns, far_ns, garbage, looks = delays.soon_ns, delays.far_ns, delays.garbage, delays.looks
    # Enough time for one turn of a reaper, in whole units.
    reaped_ns = soon_ns * -(-REAPER_NS // soon_ns)
    named = ("soon", "far", "level", "later", "before", "turn", "purge")
    return {name: getattr(delays, f"{name}_ns") for name in named} | {
        "at-once": delays.least_ns, "two-soon": 2 * soon_ns, "due": 0,
        "over": -delays.before_ns, "moved": delays.level_ns - soon_ns - delays.before_ns,
        "soon-1": soon_ns - delays.before_ns, "soon-2": soon_ns - 2 * delays.before_ns,
        "a-turn": max(0, far_ns - reaped_ns), "two-turns": max(0, far_ns - 2 * reaped_ns),
        "looks": looks, "two-looks": 2 * looks, "two-purges": 2 * garbage + LOOKS_MORE,
        "garbage": garbage, "garbage-1": garbage - 1, "garbage+1": garbage + 1,
    }  # fmt: skip


@cache
def _texts() -> Mapping[str, list[tuple[str, str, _Lines]]]:
    """Return the texts by part: the name, the class of bugs and the lines of each program."""
    found: dict[str, list[tuple[str, str, _Lines]]] = {}
    text = (files(__package__) / "gate_programs.txt").read_text(encoding="utf-8")
    for section in text.split("\n[")[1:]:
        part, _, programs = section.partition("]\n")
        for program in re.split(r"\n(?=\S)", re.sub("^#.*\n", "", programs, flags=re.MULTILINE).strip()):
            head, *lines = program.split("\n")
            name, _, targets = head.partition(": ")
            pairs = (line.strip().partition(" ") for line in lines)
            found.setdefault(part, []).append((name, targets, tuple((key, value) for key, _, value in pairs)))
    return found


def _program(name: str, targets: str, lines: _Lines, numbers: Mapping[str, int]) -> SmallProgram:
    lanes: list[tuple[LaneCall, ...]] = []
    more: dict[str, Any] = {"before": (), "after": ()}
    for key, value in lines:
        if key in ("before", "after", "lane", "lanes"):
            calls = tuple(_calls(value.replace("(left)", _LEFT), numbers))
            if key.startswith("lane"):
                lanes += [calls] if key == "lane" else [(call,) for call in calls]
            else:
                more[key] += calls
        elif key == "pause":
            places = (tuple(place.split()) for place in value.split(", "))
            more["pauses"] = tuple(place if len(place) > 1 else place[0] for place in places)
        elif key == "order":
            times = value.removesuffix(" times")
            stepped = value.startswith("stepped ")
            more["schedule"] = (
                Stepped(value.removeprefix("stepped ")) if stepped else Barrier(_number(times, numbers))
            )
        elif key == "error":
            place, whose, *nth = value.split()
            more["fault"] = Fault(place, whose, *map(int, nth))
        elif key == "fresh":
            more["fresh"] = True
    return SmallProgram(name, targets, tuple(lanes), **more)


def _number(word: str, numbers: Mapping[str, int]) -> int:
    return numbers[word] if word in numbers else int(word)


def _calls(text: str, numbers: Mapping[str, int]) -> Iterator[LaneCall]:
    for part in _SEPARATOR.split(text):
        if repeated := _REPEATED.fullmatch(part):
            count, body = repeated.groups()
            for number in range(_number(count, numbers)):
                yield from _calls(body.replace("##", str(number + 1)).replace("#", str(number)), numbers)
        else:
            yield _call(part, numbers)


def _call(text: str, numbers: Mapping[str, int]) -> LaneCall:
    where, _, inner = text.partition(": ")
    match where.split():
        case ["in", whose, *at]:
            made = _call(inner, numbers)
            assert not isinstance(made, Expiry | Inside | Until), "a thread makes it where it stands"
            return Inside(whose, made, " ".join(at[1:]))
        case ["expire", whose]:
            return Expiry(whose)
        case ["until", moment, whose]:
            return Until(whose, numbers[moment])
        case [name, *words]:
            make: Callable[..., LaneCall] = CALLS[name]
            needed = [rule.name for rule in field_rules(CALLS[name]) if rule.needed]
            values: dict[str, object] = dict(zip(needed, (*words, "far"), strict=False))
            if "keys" in values:
                values["keys"] = (
                    tuple(filter(None, words[1].split(","))) if "," in words[1] else tuple(words[1])
                )
            if "delay_ns" in values:
                values["delay_ns"] = numbers[str(values["delay_ns"])]
            return make(**values)
    raise ValueError(f"no call: {text!r}")
