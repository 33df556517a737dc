"""What became of a sample of the changes that a program makes, in figures and as JSON; and of who lived, why.

`machine_survivors.toml` says of a change by its name either that no promise can tell it from the reference, and why, or
what is missing. Nothing is left out of the figures: who lives and stands in neither list is *not judged*.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from purgatorio_stress.kill_matrix.by_machine import LAYERS, Fate

EQUIVALENT: Final = "equivalent"
_NOT_JUDGED: Final = "not judged"
KINDS: Final = (EQUIVALENT, "missing", _NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class Survivor:
    """Why a change lives. `kind`: `equivalent`, `missing` or `not judged`."""

    name: str
    kind: str
    why: str


@cache
def survivors() -> Mapping[str, Survivor]:
    """What the file says, by the name of the change."""
    text = resources.files(__package__).joinpath("machine_survivors.toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)["group"]
    found = [Survivor(name, group["kind"], group["why"]) for group in groups for name in group["names"]]
    assert len({one.name for one in found}) == len(found), "a change has one reason"
    return {one.name: one for one in found}


def survivors_of(fates: Sequence[Fate]) -> dict[str, Survivor]:
    """Those of a sample that live, by name."""
    return {
        fate.name: survivors().get(fate.name, Survivor(fate.name, _NOT_JUDGED, ""))
        for fate in fates
        if not fate.layer
    }


def counts_of(fates: Sequence[Fate]) -> Counter[str]:
    """How many each layer killed, and of those that live how many are of each kind."""
    alive = survivors_of(fates)
    return Counter(fate.layer or alive[fate.name].kind for fate in fates)


def _rate(counts: Counter[str]) -> tuple[int, int]:
    """Killed, of those that are not equivalent."""
    of = counts.total() - counts[EQUIVALENT]
    return of - sum(counts[kind] for kind in KINDS[1:]), of


def summary(fates: Sequence[Fate]) -> list[str]:
    """The figures in two lines."""
    counts = counts_of(fates)
    killed, of = _rate(counts)
    cpu_seconds = sum(fate.cpu_seconds for fate in fates)
    return [
        f"{len(fates)} changes: {', '.join(f'{layer} {counts[layer]}' for layer in (*LAYERS, 'process'))}; alive: "
        + ", ".join(f"{kind} {counts[kind]}" for kind in KINDS),
        f"killed: {killed} of {of} that are not equivalent ({killed / max(of, 1):.1%}), {cpu_seconds:,.0f} CPU seconds",
    ]


def machine_json(fates: Sequence[Fate], seed: int) -> dict[str, object]:
    """The shape of `purgatorio mutants --machine --json`."""
    alive = survivors_of(fates)
    return {
        "kind": "mutants-machine",
        "seed": seed,
        "changes": len(fates),
        "alive": len(alive),
        "of": [
            fate.as_json()
            | (
                {}
                if fate.layer
                else {"survivor": alive[fate.name].kind, "why": " ".join(alive[fate.name].why.split())}
            )
            for fate in fates
        ],
    }
