"""The page `docs/measured/machine-mutants.md`: what became of a sample of the changes that a program makes.

python -m docs.makers.machine_mutants rows.jsonl 100 1 10 2 tokens

hunts 100 changes of seed 1, two at once, each by random programs for 10 CPU seconds among others; `tokens`: changes of
one token only. Rows are kept in the file, so it can be ended and called again; 0 for the 2 only writes the page.

`machine_survivors.toml` says of a change that lives, by its name, either why no promise can tell it from the
reference, or what is missing. Nothing is left out of the figures: who lives and is not named there is *not judged*.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from docs.makers.machine_changes import HOT, LAYERS, Fate, changes, fates_of, kept_fates, sampled

PAGE: Final = Path(__file__).parents[1] / "measured" / "machine-mutants.md"
SURVIVORS: Final = Path(__file__).with_name("machine_survivors.toml")
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
    """The survivors in the file, by the name of the change."""
    text = SURVIVORS.read_text(encoding="utf-8")
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
    """The figures, a line each."""
    counts = counts_of(fates)
    killed, of = _rate(counts)
    cpu_seconds = sum(fate.cpu_seconds for fate in fates)
    refused = sum(len(fate.refused) for fate in fates)
    return [
        f"{len(fates)} changes: {', '.join(f'{layer} {counts[layer]}' for layer in (*LAYERS, 'process'))}; alive: "
        + ", ".join(f"{kind} {counts[kind]}" for kind in KINDS),
        f"killed: {killed} of {of} that are not equivalent ({killed / max(of, 1):.1%}), {cpu_seconds:,.0f} CPU seconds",
        f"hunts that found the same in the unchanged code, and are no kills: {refused}",
    ]


def machine_page(fates: Sequence[Fate], seed: int, seconds: float, *, tokens: bool = False) -> str:
    """The whole page, `docs/measured/machine-mutants.md`."""
    alive = survivors_of(fates)
    every = {module: len(changes(module, tokens=tokens)) for module in HOT}
    layers = (*LAYERS, "process", *KINDS)
    arguments = f"rows.jsonl {len(fates)} {seed} {seconds:g} 2{' tokens' * tokens}"
    which = "changes of one token" if tokens else "changes"
    lines = [
        "# Mutants made by a program",
        "",
        f"Written by `python -m docs.makers.machine_mutants {arguments}`.",
        "",
        *_LEGEND,
        "",
        *(f"* {line}" for line in summary(fates)),
        "",
        f"There are {sum(every.values()):,} {which} in all; the sample has one of each module, then in proportion.",
        "",
        "| module | changes | sample | " + " | ".join(layers) + " |",
        "|---" * (3 + len(layers)) + "|",
    ]
    for module in HOT:
        of = [fate for fate in fates if fate.module == module]
        counts = counts_of(of)
        cells = (
            module.removeprefix("purgatorio."),
            str(every[module]),
            str(len(of)),
            *(str(counts[layer]) for layer in layers),
        )
        lines.append("| " + " | ".join(cells) + " |")
    for kind, title in zip(KINDS, _TITLES, strict=True):
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
    "hunted in a process of its own by all written scenarios of the explorer (300 schedules each at most), by random",
    "programs, and by the stateful machines, until one of them kills it; the same hunt must find nothing in the",
    "unchanged code. Unit tests are not asked. *process*: the process died of it. Who lives is either *equivalent* (no",
    "promise can tell it from the reference; the reason is given), or shows what is *missing*.",
)


def main(rows: Path, count: int, seed: int, seconds: float, jobs: int, *, tokens: bool = False) -> None:
    """Hunt the changes that are not stored, and write the page. Raises KeyError for a change of this sample that was
    not hunted."""
    sample = sampled(count, seed, tokens=tokens)
    if jobs:
        fates_of(
            sample,
            seconds,
            seed,
            jobs=jobs,
            kept=rows,
            tell=lambda fate: print(f"{fate.clause or 'alive':6} {fate.layer:10} {fate.name}"),
        )
    kept = kept_fates(rows)
    fates = [kept[change.name] for change in sample]
    PAGE.write_text(machine_page(fates, seed, seconds, tokens=tokens), encoding="utf-8")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        float(sys.argv[4]),
        int(sys.argv[5]),
        tokens="tokens" in sys.argv[6:],
    )
