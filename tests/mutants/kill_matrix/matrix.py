"""The kill matrix: every known bug against every layer, as rows and as JSON."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec

from mutants.kill_matrix.layers import LAYERS, kills_of
from mutants.kill_matrix.row import MatrixRow, Mutants, NotApplicable
from mutants.reference import EQUIVALENT, MUTANTS, NOT_APPLICABLE


def matrix(
    numbers: Iterable[int],
    layers: Collection[str] = LAYERS,
    tell: Callable[[MatrixRow], None] | None = None,
    kept: Path | None = None,
) -> list[MatrixRow]:
    """Run these mutants (KeyError for an unknown number) against these layers.

    `kept`: rows go there as they are done, a line each, and those that are there already are not run again.
    """
    done = {} if kept is None else kept_rows(kept)
    asked = [MUTANTS[number] for number in dict.fromkeys(numbers)]
    for mutant in asked:
        if mutant.number in done:
            continue
        by = kills_of(mutant, layers)
        row = done[mutant.number] = MatrixRow(
            mutant.number,
            mutant.name,
            {layer: by[layer] for layer in LAYERS if layer in by},
            mutant.source,
            mutant.interleaving,
            f"{mutant.scenario}/{mutant.dialect}",
        )
        if kept is not None:
            keep(kept, msgspec.json.encode(row).decode())
        if tell is not None:
            tell(row)
    return [done[mutant.number] for mutant in asked]


def kept_rows(path: Path) -> dict[int, MatrixRow]:
    """The rows in a file that `matrix` keeps, by number; those of mutants that are no more are left out."""
    rows = [msgspec.json.decode(line, type=MatrixRow) for line in kept_lines(path)]
    return {row.number: row for row in rows if row.number in MUTANTS}


def printed(rows: list[MatrixRow]) -> Mutants:
    """The shape of `python -m mutants --json`."""
    others = [NotApplicable(number, name, why) for number, (name, why) in NOT_APPLICABLE.items()]
    return Mutants(rows, list(EQUIVALENT), others)


def kept_lines(path: Path) -> list[str]:
    """The rows of a file, each a line; a last one that is not whole, since its writer was killed, is cut off."""
    if not path.exists():
        return []
    whole, end, torn = path.read_text(encoding="utf-8").rpartition("\n")
    if torn:
        path.write_text(whole + end, encoding="utf-8")
    return whole.splitlines()


def keep(path: Path, row: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(row + "\n")
