"""The page `docs/machine-mutants.md`: what became of a sample of the changes that a program makes.

purgatorio mutants --machine 100 --seed 1 --seconds 10 --kept rows.jsonl
python -m docs.makers.machine_mutants rows.jsonl 100 1 10
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from purgatorio_stress.kill_matrix.by_machine import HOT, LAYERS, Fate, changes, kept_fates, sampled
from purgatorio_stress.kill_matrix.machine_fates import KINDS, counts_of, summary, survivors_of

PAGE: Final = Path(__file__).parents[1] / "machine-mutants.md"


def machine_page(fates: Sequence[Fate], seed: int, seconds: float) -> str:
    """The whole page, `docs/machine-mutants.md`."""
    alive = survivors_of(fates)
    every = {module: len(changes(module)) for module in HOT}
    layers = (*LAYERS, "process", *KINDS)
    lines = [
        "# Mutants made by a program",
        "",
        "Written by `python -m docs.makers.machine_mutants` from the rows of `purgatorio mutants --machine "
        f"{len(fates)} --seed {seed} --seconds {seconds:g} --kept`.",
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
    "hunted in a process of its own by all written scenarios of the explorer (300 schedules each at most), by drawn",
    "programs, and by the stateful machines, until one of them kills it. Unit tests are not asked. *process*: the",
    "process died of it. Who lives is either *equivalent* (no promise can tell it from the reference; the reason is",
    "given), or shows what is *missing*.",
)


def main(rows: Path, count: int, seed: int, seconds: float) -> None:
    """Write the page from kept rows; KeyError for a change of this sample that has none."""
    kept = kept_fates(rows)
    fates = [kept[change.name] for change in sampled(count, seed)]
    PAGE.write_text(machine_page(fates, seed, seconds), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
