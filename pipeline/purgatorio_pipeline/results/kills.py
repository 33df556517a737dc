"""The kill matrix as `purgatorio mutants --json` prints it and `--kept` keeps it: known bugs by layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.kill_matrix.kill import Kill

LAYERS_KEPT: Final = 24


@dataclass(frozen=True, slots=True)
class KillRow:
    """A bug, and what each layer said that was asked."""

    number: int
    name: str
    source: str
    scenario: str
    layers: Mapping[str, Kill]

    @property
    def killed(self) -> bool:
        """Whether any layer found it."""
        return any(kill.killed for kill in self.layers.values())


@dataclass(frozen=True, slots=True)
class KillMatrix:
    """Bugs by number. `not_applicable`: number, name and reason of bugs that cannot be put into this code."""

    rows: tuple[KillRow, ...]
    not_applicable: tuple[tuple[int, str, str], ...] = ()
    equivalent: tuple[str, ...] = ()

    @property
    def layers(self) -> list[str]:
        """The layers that were asked about any bug, as they were."""
        return list(dict.fromkeys(layer for row in self.rows for layer in row.layers))[:LAYERS_KEPT]

    @property
    def survivors(self) -> list[KillRow]:
        """Those that no layer found."""
        return [row for row in self.rows if not row.killed]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED where a bug survives, as the status of `purgatorio mutants` says it."""
        return Verdict.VIOLATED if self.survivors else Verdict.PASS


LAYER_HEAD: Final = ("layer", "found", "of those asked", "seconds")


def layer_rows(matrix: KillMatrix) -> list[tuple[str, str, str, str]]:
    """What each layer found of the bugs that it was asked about and that are of its kind, and the time that it took."""
    rows = []
    for layer in matrix.layers:
        kills = [row.layers[layer] for row in matrix.rows if layer in row.layers]
        asked = [kill for kill in kills if not kill.reason]
        found, seconds = sum(kill.killed for kill in asked), sum(kill.seconds for kill in kills)
        rows.append((layer, f"{found:,}", f"{len(asked):,}", f"{seconds:,.1f}"))
    return rows


def joined(matrices: Iterable[KillMatrix]) -> KillMatrix | None:
    """One matrix of several: bugs and layers together; where two say something of one, the later does. None of none."""
    rows: dict[int, KillRow] = {}
    missing: dict[int, tuple[int, str, str]] = {}
    equivalent: dict[str, None] = {}
    for matrix in matrices:
        for row in matrix.rows:
            held = rows.get(row.number)
            layers = {**(held.layers if held is not None else {}), **row.layers}
            rows[row.number] = KillRow(row.number, row.name, row.source, row.scenario, layers)
        missing |= {one[0]: one for one in matrix.not_applicable}
        equivalent |= dict.fromkeys(matrix.equivalent)
    if not rows and not missing:
        return None
    in_order = (rows[number] for number in sorted(rows))
    return KillMatrix(tuple(in_order), tuple(missing[one] for one in sorted(missing)), tuple(equivalent))


def in_words(matrix: KillMatrix) -> str:
    """How many are found, and how many survive."""
    killed = len(matrix.rows) - len(matrix.survivors)
    said = f"Each bug was put into the reference: {killed:,} of {len(matrix.rows):,} were found by a layer"
    return f"{said}; {len(matrix.survivors):,} survive." if matrix.survivors else f"{said}."
