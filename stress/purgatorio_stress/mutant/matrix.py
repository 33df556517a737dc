"""The kill matrix: every known bug against every layer, as a page and as JSON."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from purgatorio_stress.mutant.catalogue import EQUIVALENT, MUTANTS, NOT_APPLICABLE
from purgatorio_stress.mutant.hunt import HUNT
from purgatorio_stress.mutant.layers import LAYERS, Kill, kills_of
from purgatorio_stress.mutant.patch import Mutant

__all__ = ["MatrixRow", "as_json", "matrix", "page", "page_row", "survivors"]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One bug and what each layer said."""

    mutant: Mutant
    layers: dict[str, Kill]


def matrix(numbers: Iterable[int], tell: Callable[[MatrixRow], None] | None = None) -> list[MatrixRow]:
    """Run these mutants (KeyError for an unknown number) against every layer."""
    rows: list[MatrixRow] = []
    for number in numbers:
        row = MatrixRow(MUTANTS[number], kills_of(MUTANTS[number]))
        rows.append(row)
        if tell is not None:
            tell(row)
    return rows


def survivors(rows: Iterable[MatrixRow]) -> list[Mutant]:
    """Those that no layer killed."""
    return [row.mutant for row in rows if not any(kill.killed for kill in row.layers.values())]


def page_row(row: MatrixRow) -> str:
    """A line of the page. Without seconds, so that the page can be compared."""
    explorer, sample = row.layers["explorer"], row.layers["random"]
    cells = [
        str(row.mutant.number),
        row.mutant.name,
        row.mutant.source,
        f"{row.mutant.scenario} ({row.mutant.dialect})",
        f"**{explorer.by}** in {explorer.schedules}, {explorer.preemptions} preemptions"
        if explorer.killed
        else "survives",
        row.layers["one-run"].by if row.layers["one-run"].killed else "-",
        f"{sample.by} in {sample.schedules}" if sample.killed else f"- ({sample.schedules})",
        *(row.layers[layer].by or "-" for layer in ("trace", "model", "proof")),
    ]
    return "| " + " | ".join(cells) + " |"


def page(rows: list[MatrixRow]) -> str:
    """The whole page, `docs/kill-matrix.md`."""
    count = {layer: sum(row.layers[layer].killed for row in rows) for layer in LAYERS}
    lines = [
        "# Kill matrix",
        "",
        "Written by `purgatorio mutants --write docs/kill-matrix.md`; a test compares a part of it with a fresh run in",
        "every run of the suite, and all of it on demand. Each row is a bug that was really made in a system of this",
        "kind, brought back into the reference by a patch of one function or class in memory.",
        "",
        "* **explorer**: the clause reported by the search of the scenario, the number of schedules it took (at most",
        f"  {HUNT.schedules:,}), and the preemptions of what it found. `CHECK` is a structure's own invariant.",
        "* **one run**: the same scenario with each thread run to its end, once.",
        "* **random**: uniformly random schedules, at most 500, with a fixed seed.",
        "* **trace**: the clauses that the engine for traces finds in the recorded history of the counterexample.",
        "* **model**, **proof**: the claims whose twin is this bug (`purgatorio model`, `purgatorio prove`).",
        "",
        f"Of {len(rows)} mutants the explorer kills {count['explorer']}, one run {count['one-run']}, "
        f"random schedules {count['random']},",
        f"the trace check {count['trace']}, the models {count['model']}, the proofs {count['proof']}.",
        "",
        "| # | bug | source | scenario | explorer | one run | random | trace | model | proof |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(page_row(row) for row in rows),
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


def as_json(rows: list[MatrixRow]) -> dict[str, object]:
    """The shape of `purgatorio mutants --json`."""
    return {
        "mutants": [
            {
                "number": row.mutant.number,
                "name": row.mutant.name,
                "interleaving": row.mutant.interleaving,
                "scenario": f"{row.mutant.scenario}/{row.mutant.dialect}",
                "layers": {layer: row.layers[layer].as_json() for layer in LAYERS},
            }
            for row in rows
        ],
        "equivalent": list(EQUIVALENT),
        "not_applicable": [{"number": number, "reason": why} for number, (_, why) in NOT_APPLICABLE.items()],
    }
