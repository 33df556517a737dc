"""The kill matrix: every known bug against every layer, as rows and as JSON."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from purgatorio_stress.kill_matrix.apart import keep, kept_lines
from purgatorio_stress.kill_matrix.layers import LAYERS, Drawing, kills_of_all
from purgatorio_stress.mutant.catalogue import EQUIVALENT, MUTANTS, NOT_APPLICABLE
from purgatorio_stress.mutant.patch import Mutant
from purgatorio_stress.printed import Kill, MatrixRow, Mutants, NotApplicable


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
        row = done[mutant.number] = MatrixRow(
            mutant.number,
            mutant.name,
            dict(by),
            mutant.source,
            mutant.interleaving,
            f"{mutant.scenario}/{mutant.dialect}",
        )
        if kept is not None:
            keep(kept, msgspec.json.encode(row).decode())
        if tell is not None:
            tell(row)

    kills_of_all([mutant for mutant in asked if mutant.number not in done], layers, one_more, drawing)
    return [done[mutant.number] for mutant in asked]


def kept_rows(path: Path) -> dict[int, MatrixRow]:
    """The rows in a file that `matrix` keeps, by number; those of mutants that are no more are left out."""
    rows = [msgspec.json.decode(line, type=MatrixRow) for line in kept_lines(path)]
    return {row.number: row for row in rows if row.number in MUTANTS}


def printed(rows: list[MatrixRow]) -> Mutants:
    """The shape of `purgatorio mutants --json`."""
    others = [NotApplicable(number, name, why) for number, (name, why) in NOT_APPLICABLE.items()]
    return Mutants(rows, list(EQUIVALENT), others)
