"""The kill matrix: every known bug against every layer, as rows and as JSON."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from purgatorio_stress.kill_matrix.apart import keep, kept_lines
from purgatorio_stress.kill_matrix.kill import Kill
from purgatorio_stress.kill_matrix.layers import LAYERS, Drawing, kills_of_all
from purgatorio_stress.mutant.catalogue import EQUIVALENT, MUTANTS, NOT_APPLICABLE
from purgatorio_stress.mutant.patch import Mutant


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One bug and what each layer said that was asked."""

    mutant: Mutant
    layers: Mapping[str, Kill]

    def as_json(self) -> dict[str, object]:
        """One of the objects in `mutants`, and a line of a file of kept rows."""
        return {
            "kind": "mutant",
            "number": self.mutant.number,
            "name": self.mutant.name,
            "source": self.mutant.source,
            "interleaving": self.mutant.interleaving,
            "scenario": f"{self.mutant.scenario}/{self.mutant.dialect}",
            "layers": {layer: asdict(kill) for layer, kill in self.layers.items()},
        }


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is read of a row."""

    number: int
    layers: dict[str, Kill]


def matrix(
    numbers: Iterable[int],
    layers: Collection[str] = LAYERS,
    tell: Callable[[MatrixRow], None] | None = None,
    kept: Path | None = None,
    drawing: Drawing | None = None,
) -> list[MatrixRow]:
    """Run these mutants (KeyError for an unknown number) against these layers.

    `kept`: rows go there as they are done, a line each, and those that are there already are not run again.
    """
    done = {} if kept is None else kept_rows(kept)
    asked = [MUTANTS[number] for number in dict.fromkeys(numbers)]

    def one_more(mutant: Mutant, by: Mapping[str, Kill]) -> None:
        row = done[mutant.number] = MatrixRow(mutant, by)
        if kept is not None:
            keep(kept, json.dumps(row.as_json()))
        if tell is not None:
            tell(row)

    kills_of_all([mutant for mutant in asked if mutant.number not in done], layers, one_more, drawing)
    return [done[mutant.number] for mutant in asked]


def kept_rows(path: Path) -> dict[int, MatrixRow]:
    """The rows in a file that `matrix` keeps, by number; those of mutants that are no more are left out."""
    rows: dict[int, MatrixRow] = {}
    for line in kept_lines(path):
        row = msgspec.json.decode(line, type=_Kept)
        mutant = MUTANTS.get(row.number)
        if mutant is not None:
            rows[mutant.number] = MatrixRow(mutant, row.layers)
    return rows


def survivors(rows: Iterable[MatrixRow]) -> list[Mutant]:
    """Those that no layer killed."""
    return [row.mutant for row in rows if not any(kill.killed for kill in row.layers.values())]


def as_json(rows: list[MatrixRow]) -> dict[str, object]:
    """The shape of `purgatorio mutants --json`."""
    return {
        "kind": "mutants",
        "mutants": [row.as_json() for row in rows],
        "equivalent": list(EQUIVALENT),
        "not_applicable": [
            {"number": number, "name": name, "reason": why} for number, (name, why) in NOT_APPLICABLE.items()
        ],
    }
