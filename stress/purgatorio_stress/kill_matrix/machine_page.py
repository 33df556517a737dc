"""What became of a sample of the changes that a program makes, as a page and as JSON; and of who lived, why.

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

from purgatorio_stress.kill_matrix.by_machine import HOT, LAYERS, Fate, changes

EQUIVALENT: Final = "equivalent"
_NOT_JUDGED: Final = "not judged"
_KINDS: Final = (EQUIVALENT, "missing", _NOT_JUDGED)


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


def _counts(fates: Sequence[Fate]) -> Counter[str]:
    alive = survivors_of(fates)
    return Counter(fate.layer or alive[fate.name].kind for fate in fates)


def _rate(counts: Counter[str]) -> tuple[int, int]:
    """Killed, of those that are not equivalent."""
    of = counts.total() - counts[EQUIVALENT]
    return of - sum(counts[kind] for kind in _KINDS[1:]), of


def summary(fates: Sequence[Fate]) -> list[str]:
    """The figures in two lines."""
    counts = _counts(fates)
    killed, of = _rate(counts)
    cpu_seconds = sum(fate.cpu_seconds for fate in fates)
    return [
        f"{len(fates)} changes: {', '.join(f'{layer} {counts[layer]}' for layer in (*LAYERS, 'process'))}; alive: "
        + ", ".join(f"{kind} {counts[kind]}" for kind in _KINDS),
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


def machine_page(fates: Sequence[Fate], seed: int, seconds: float) -> str:
    """The whole page, `docs/machine-mutants.md`."""
    alive = survivors_of(fates)
    every = {module: len(changes(module)) for module in HOT}
    layers = (*LAYERS, "process", *_KINDS)
    lines = [
        "# Mutants made by a program",
        "",
        f"Written by `purgatorio mutants --machine {len(fates)} --seed {seed} --seconds {seconds:g} --write "
        "docs/machine-mutants.md`.",
        "",
        *_LEGEND,
        "",
        *(f"* {line}" for line in summary(fates)),
        "",
        f"There are {sum(every.values()):,} changes in all; the sample has one of each module, then in proportion.",
        "",
        "| module | changes | sample | " + " | ".join(layers) + " |",
        "|---" * (3 + len(layers)) + "|",
    ]
    for module in HOT:
        of = [fate for fate in fates if fate.module == module]
        counts = _counts(of)
        cells = (
            module.removeprefix("purgatorio."),
            str(every[module]),
            str(len(of)),
            *(str(counts[layer]) for layer in layers),
        )
        lines.append("| " + " | ".join(cells) + " |")
    for kind, title in zip(_KINDS, _TITLES, strict=True):
        by_why: dict[str, list[str]] = {}
        for one in alive.values():
            if one.kind == kind:
                by_why.setdefault(" ".join(one.why.split()), []).append(one.name)
        if by_why:
            lines += ["", f"## {title}"]
        for why, names in by_why.items():
            lines += [
                "",
                *([why, ""] if why else []),
                *(f"* `{name.removeprefix('purgatorio.')}`" for name in names),
            ]
    return "\n".join([*lines, ""])


_TITLES: Final = ("Alive and equivalent", "Alive, and what is missing", "Alive and not judged")
_LEGEND: Final = (
    "A program changes the reference's timers and purgatory in one place: a statement left out, two exchanged,",
    "a condition turned round, `<` for `<=`, a lock not taken, a number one higher, an early return. Each change is",
    "hunted in a process of its own by all written scenarios of the explorer (300 schedules each at most), by drawn",
    "programs, and by the stateful machines, until one of them kills it. Unit tests are not asked. *process*: the",
    "process died of it. Who lives is either *equivalent* (no promise can tell it from the reference; the reason is",
    "given), or shows what is *missing*.",
)
