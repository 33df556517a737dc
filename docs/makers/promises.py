"""What the makers of each foreign timer promise, in their own words, and what follows for its profile.

The texts stand in `promises.toml`. A bound is declared in a header only where a sentence there carries it. Where nobody
promises that a timer is punctual, there is no late bound and T2 is SKIPPED; the page shows its lateness all the same.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Promise:
    """The promises of one profile, as prose for the page.

    `clock`, `unit` and `tick`: what time it counts in. `early`, `late`, `cancel`: what it is held to. `said`: (the
    sentence, where it stands), which carry the rest. `examined`: what was looked at by hand before a figure was called
    a bug, or was not: paragraphs, of which those indented by four spaces are code; may be empty.
    """

    clock: str
    unit: str
    tick: str
    early: str
    late: str
    cancel: str
    examined: str
    said: tuple[tuple[str, str], ...]


def promise_of(profile: str) -> Promise:
    """The promises of this profile. Raises KeyError for one that no foreign subject has."""
    return _promises()[profile]


@cache
def _promises() -> dict[str, Promise]:
    text = Path(__file__).with_name("promises.toml").read_text(encoding="utf-8")
    return {name: _promise(table) for name, table in tomllib.loads(text).items()}


def _promise(table: dict[str, object]) -> Promise:
    said = table["said"]
    assert isinstance(said, list)
    prose = {
        name: _line(table[name]) for name in Promise.__dataclass_fields__ if name not in ("said", "examined")
    }
    examined = str(table["examined"]).strip()
    return Promise(
        **prose, examined=examined, said=tuple((_line(one["sentence"]), _line(one["where"])) for one in said)
    )


def _line(text: object) -> str:
    """A text on one line, however it is broken in the file."""
    return " ".join(str(text).split())
