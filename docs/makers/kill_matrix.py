"""The page `docs/measured/kill-matrix.md`: every known bug against every layer.

python -m mutants --all --kept rows.jsonl
python -m docs.makers.kill_matrix rows.jsonl              # writes the page
python -m docs.makers.kill_matrix rows.jsonl --compare    # status 1 where the page says something else

All from a checkout, with `PYTHONPATH=tests`.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mutants.kill_matrix.explored import HUNT
from mutants.kill_matrix.layers import STRESS_ROUNDS
from mutants.kill_matrix.matrix import kept_rows
from mutants.kill_matrix.row import Kill, MatrixRow
from mutants.reference import EQUIVALENT, MUTANTS, NOT_APPLICABLE
from mutants.reference.broker_operations import BROKER_MUTANTS
from purgatorio_spec.show.visible import counted

PAGE: Final = Path(__file__).parents[1] / "measured" / "kill-matrix.md"
_COLUMNS: Final = {
    "contracts": "contracts",
    "proof": "proofs",
    "model": "models",
    "explorer": "explorer",
    "one-run": "one run",
    "random": "random",
    "stateful": "stateful",
    "stress": "stress",
    "trace": "trace",
}
_DRAWN: Final = (_COLUMNS["stress"], _COLUMNS["stateful"])
"""Drawn by threads, and from examples that depend on what else is imported: Hypothesis tries constants that it sees."""
_BY_DEPTH: Final = "| 36 |"
"""A RecursionError strikes where the depth of the caller says: in a callback (O8), or with a lock in hand (P3)."""

_BEFORE: Final = ("#", "bug", "source", "scenario")


def cells(row: MatrixRow) -> dict[str, str]:
    """A line of the page, by column; empty for a layer that was not asked. Without seconds, which no two runs share."""
    mutant = MUTANTS[row.number]
    before = (str(mutant.number), mutant.name, mutant.source, f"{mutant.scenario} ({mutant.dialect})")
    found = dict(zip(_BEFORE, before, strict=True))
    return found | {
        title: _cell(layer, row.layers[layer]) if layer in row.layers else ""
        for layer, title in _COLUMNS.items()
    }


def _cell(layer: str, kill: Kill) -> str:
    if layer == "explorer":
        return (
            f"**{kill.by}** in {kill.effort}, {counted(kill.preemptions or 0, 'preemption')}"
            if kill.killed
            else "survives"
        )
    if layer == "one-run" or not kill.unit:
        return kill.by if kill.killed else "-"
    if not kill.killed:
        return f"- ({kill.effort:,})"
    if kill.hits is not None:
        return f"{kill.by}, {kill.hits:,} of {kill.effort:,}"
    return f"{kill.by} in {kill.effort:,}"


def _line(values: Iterable[str]) -> str:
    return "| " + " | ".join(values) + " |"


def comparable(text: str) -> str:
    """The page without what differs from run to run: what stress and the stateful machines hit, seconds, and how a
    RecursionError shows."""
    lines = []
    drawn: list[int] = []
    for line in text.splitlines():
        if line.startswith(("Seconds: ", "* stress: ", "* stateful: ", _BY_DEPTH)):
            continue
        parts = line.split(" | ")
        if line.startswith("| #"):
            drawn = [at for at, title in enumerate(parts) if title in _DRAWN]
        elif not line.startswith("|"):
            drawn = []
        for at in drawn:
            if at < len(parts):
                parts[at] = ""
        lines.append(" | ".join(parts))
    return "\n".join(lines)


def page(rows: list[MatrixRow]) -> str:
    """The whole page, `docs/measured/kill-matrix.md`; of rows that went through every layer."""
    lines = [
        "# Kill matrix",
        "",
        "Written by `python -m docs.makers.kill_matrix` from the rows of `python -m mutants --all --kept`; a test",
        "compares a part of it with a fresh run in every run of the suite, and all of it on demand. Each row is a bug",
        "that was really made in a system of this kind, brought back into the reference by a patch of a function or",
        "class in memory.",
        "",
        *_legend(),
        "",
        f"So many of the {len(rows)} mutants are killed by each layer:",
        "",
        *(f"* {title}: {_count(rows, layer)}" for layer, title in _COLUMNS.items()),
        "",
        "Seconds: "
        + ", ".join(f"{title} {_seconds(rows, layer):.0f}" for layer, title in _COLUMNS.items())
        + ".",
        "",
        _line((*_BEFORE, *_COLUMNS.values())),
        "|" + "---|" * (len(_BEFORE) + len(_COLUMNS)),
        *(_line(cells(row).values()) for row in rows),
        "",
        "## Bugs of concrete operations",
        "",
        "Known bugs of a broker's requests. A test or a day of `tests/wire` finds each (`test_broker_mutants.py`).",
        "",
        "| # | bug | source | found by |",
        "|---|---|---|---|",
        *(f"| {m.number} | {m.name} | {m.source} | `{m.scenario}` |" for m in BROKER_MUTANTS.values()),
        "",
        "## Not applicable",
        "",
        "Rows of the list of bugs whose mechanism this reference does not have.",
        "",
        "| # | bug | why |",
        "|---|---|---|",
        *(f"| {number} | {name} | {why} |" for number, (name, why) in NOT_APPLICABLE.items()),
        "",
        "## Equivalent",
        "",
        "Changes that no promise can tell from the reference, and that are not counted:",
        "",
        *(f"* {text}" for text in EQUIVALENT),
        "",
    ]
    return "\n".join(lines)


def _legend() -> list[str]:
    return [
        "* **contracts**: the contract of the arithmetic that CrossHair finds broken by what is put in.",
        "* **proofs**, **models**: the claims whose twin is this bug (`purgatorio prove`, `purgatorio model`).",
        "* **explorer**: the clause reported by the search of the scenario, the number of schedules it took (at most",
        f"  {HUNT.schedules:,}), and the preemptions of what it found. `CHECK` is a structure's own invariant.",
        "* **one run**: the same scenario with each thread run to its end, once.",
        "* **random**: uniformly random schedules, at most 500, with a fixed seed.",
        "* **stateful**: the Hypothesis machines that run the patched code, in the profile `ci`; in so many examples.",
        "  Which are drawn depends on the constants of all code that is imported, so these are not compared.",
        f"* **stress**: the scenario on plain threads, at least {STRESS_ROUNDS:,} rounds, where it has several: the",
        "  rounds that reported it. It differs from run to run and is not compared: one or two of 2,048 may be",
        "  none in the next run. Bug 14 was found in 6 of 12 such runs, in 8 of 24,576 rounds.",
        "* **trace**: the clauses that the engine for traces finds in the recorded history of the counterexample.",
        "",
        '"-": nothing was found, or the layer does not look for bugs of this kind. In brackets: the tries.',
        "No type is wrong in any of them: mypy, strict, accepts them all.",
    ]


def _count(rows: Iterable[MatrixRow], layer: str) -> int:
    return sum(row.layers[layer].killed for row in rows if layer in row.layers)


def _seconds(rows: Iterable[MatrixRow], layer: str) -> float:
    return sum(row.layers[layer].seconds for row in rows if layer in row.layers)


def main(rows: Path, *, compare: bool) -> int:
    """Write the page from kept rows, or compare it with them; the exit status."""
    kept = kept_rows(rows)
    missing = [number for number in MUTANTS if number not in kept]
    if missing:
        print(f"{rows} has no row of {missing}: the page has all mutants in every layer", file=sys.stderr)
        return 2
    made = page([kept[number] for number in MUTANTS])
    if not compare:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    differs = comparable(PAGE.read_text(encoding="utf-8")) != comparable(made)
    print(f"{PAGE} {'is not' if differs else 'is'} what these rows say")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), compare="--compare" in sys.argv[2:]))
