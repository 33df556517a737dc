"""The fields of responses that some clause judges: in a recorded run of Kafka, one field of one response is changed,
and its scene is judged again.

`unjudged_fields.txt` lists the other fields, each with the reason. A new field needs a clause, or a line there. The
recording has few scenes of a whole run, with all of its fields. `python -m wire.test_response_fields TRACE`, in the
folder `tests`, makes it.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from purgatorio_wire.history.bound import RowStatus
from purgatorio_wire.history.scenes import scene_of
from purgatorio_wire.judge import Wire, judge_scene
from purgatorio_wire.trace.file import WireTrace, WireWriter, read_trace
from purgatorio_wire.trace.record import WireEvent

RECORDED: Final = Path(__file__).parent / "recorded" / "kafka-all-fields.jsonl.zst"
UNJUDGED: Final = Path(__file__).parent / "unjudged_fields.txt"
TRIES: Final = 60
"""The most places at which a field is changed, until a clause notices."""

Where = tuple[str | int, ...]


class Spot(NamedTuple):
    """A value in a response: its scene, the number of its event in the scene, and its place in the body."""

    scene: str
    number: int
    where: Where


def places(value: Any, where: Where = ()) -> Iterator[Where]:
    """The places of the values and of the lists in a body."""
    if not isinstance(value, dict):
        yield where
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*where, key))


def changed(body: Any, where: Where, value: object) -> Any:
    if not where:
        return value
    copy: Any = {**body} if isinstance(body, dict) else [*body]
    copy[where[0]] = changed(body[where[0]], where[1:], value)
    return copy


def other_values(name: str, value: object) -> list[object]:
    match value:
        case bool():
            return [not value]
        case int():
            others = (0, 3, 42) if "error_code" in name else (value + 1, value - 1, 0, value * 2 + 7)
            return [x for x in others if x != value]
        case float():
            return [value + 1]
        case str():
            return [f"{value}x"]
        case list():
            return [value[1:], [*value, value[0]]] if value else [[0]]
    return ["x", 0, []]


class Survey:
    """`spots`: the places of each field, by the API and the path of the field."""

    def __init__(self, trace: WireTrace) -> None:
        assert trace.header is not None
        self.scenes: Mapping[str, list[WireEvent]] = defaultdict(list)
        self.spots: Mapping[str, list[Spot]] = defaultdict(list)
        for event in trace.events:
            held = self.scenes[event.scene]
            for where in places(event.body or {}) if event.ev == "answer" and event.scene else ():
                path = ".".join("[]" if isinstance(x, int) else x for x in where).replace(".[]", "[]")
                self.spots[f"{event.api} {path}"].append(Spot(event.scene, len(held), where))
            held.append(event)
        self.wire = Wire.of(trace.header, trace.events)
        self.end_t = max(event.t for event in trace.events)
        self.clean = {name: self.broken(name, events) for name, events in self.scenes.items() if name}

    def broken(self, name: str, events: Sequence[WireEvent]) -> Counter[tuple[str, str]]:
        rows = judge_scene(self.wire, scene_of(name, events, self.end_t))
        assert not [row.failure for row in rows if row.status is RowStatus.FAILED]
        return Counter((row.clause, row.cause) for row in rows if row.status is RowStatus.BROKEN)

    def judged(self, field: str) -> str:
        """A scene in which a clause notices another value of the field, or ""."""
        kinds: dict[tuple[str, str], Spot] = {}  # of small scenes, and of different values
        for spot in sorted(self.spots[field], key=lambda spot: len(self.scenes[spot.scene])):
            kinds.setdefault((spot.scene.partition("#")[0], str(self.value(spot))[:12]), spot)
        for spot in [*kinds.values()][:TRIES]:
            events, name = [*self.scenes[spot.scene]], next(x for x in spot.where[::-1] if isinstance(x, str))
            one = events[spot.number]
            for other in other_values(name, self.value(spot)):
                events[spot.number] = replace(one, body=changed(one.body, spot.where, other))
                if self.broken(spot.scene, events) - self.clean[spot.scene]:
                    return spot.scene
        return ""

    def value(self, spot: Spot) -> Any:
        value: Any = self.scenes[spot.scene][spot.number].body
        for key in spot.where:
            value = value[key]
        return value


@cache
def survey() -> Survey:
    return Survey(read_trace(RECORDED))


@cache
def unjudged() -> dict[str, str]:
    """The reasons of unjudged fields, by patterns of the fields."""
    lines = (line.split("  ") for line in UNJUDGED.read_text().splitlines() if line and line[0] != "#")
    return dict(line for line in lines)


def known(field: str) -> list[str]:
    """The patterns of unjudged fields that match."""
    return [pattern for pattern in unjudged() if fnmatch(field.replace("[]", ""), pattern)]


@pytest.mark.slow
def test_every_field_of_a_response_is_judged_or_named_as_unjudged() -> None:
    fields = survey().spots
    assert [field for field in fields if not known(field) and not survey().judged(field)] == []
    assert {*unjudged()} == {pattern for field in fields for pattern in known(field)}


@pytest.mark.slow
def test_a_field_without_a_clause_is_noticed() -> None:
    field = "api_versions finalized_features_epoch"
    assert known(field)
    assert not survey().judged(field)
    assert survey().judged("api_versions api_keys[].min_version")


def pruned(trace: WireTrace) -> set[str]:
    """Few scenes of a trace that have all fields, and those in which fields are judged."""
    whole = Survey(trace)
    fields: dict[str, set[str]] = defaultdict(set)
    for field, spots in whole.spots.items():
        judged = "" if known(field) else whole.judged(field)
        for name in [judged] if judged else {spot.scene for spot in spots}:
            fields[name].add(field)
    chosen, missing = set[str](), set(whole.spots)
    while missing:
        name = max(fields, key=lambda x: len(fields[x] & missing) / (30 + len(whole.scenes[x])))
        chosen.add(name)
        missing -= fields[name]
    return chosen


if __name__ == "__main__":
    recorded = read_trace(Path(sys.argv[1]))
    assert recorded.header is not None
    kept = pruned(recorded)
    writer = WireWriter(RECORDED, recorded.header)
    for event in recorded.events:
        if event.scene in kept:
            writer.write(event)
    writer.close({}, {})
