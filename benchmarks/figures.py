"""Computes figures from measurements: one for each workload, candidate and operation, as in `--json`."""

from dataclasses import dataclass, fields
from statistics import median
from typing import Final

from benchmarks.observe import Observation
from benchmarks.rounds import Measured, Ratio

_GRID_IDS: Final = {"add": "U1", "churn": "U2", "cancel": "U4"}


@dataclass(frozen=True, slots=True)
class Figure:
    """CPU nanoseconds an operation: median of the rounds, least and greatest. `ratios` (peer / subject) are there for
    subjects of our own; `title` says which distribution or rate."""

    bench: str
    id: str
    title: str
    size: int
    subject: str
    build: str
    ours: bool
    locked: bool
    operation: str
    ns: float
    ns_low: float
    ns_high: float
    rounds: int
    ratios: dict[str, Ratio]

    def row(self) -> dict[str, object]:
        """For the field `results`; `workload` is the distribution in the U family, else the id."""
        row: dict[str, object] = {
            field.name: round(value, 1) if isinstance(value := getattr(self, field.name), float) else value
            for field in fields(self)
            if field.name not in ("ours", "ratios")
        }
        row["workload"] = self.title if self.id.startswith("U") else self.id
        for name, which in (("ratio", "median"), ("ratio_low", "low"), ("ratio_high", "high")):
            row[name] = {peer: round(getattr(ratio, which), 2) for peer, ratio in self.ratios.items()}
        return row


def figures(measured: Measured, bench: str = "timer") -> list[Figure]:
    """Every operation of the workload, by candidate."""
    workload = measured.workload
    made: list[Figure] = []
    for operation in workload.operations:
        for entry in measured.entries:
            taken = measured.taken(entry.name, operation)
            if not taken:
                continue
            made.append(
                Figure(
                    bench=bench,
                    id=_GRID_IDS[operation] if workload.id.startswith("U1") else workload.id,
                    title=workload.name,
                    size=workload.size,
                    subject=entry.name,
                    build=entry.build,
                    ours=entry.ours,
                    locked=entry.locked,
                    operation=operation,
                    ns=median(taken),
                    ns_low=min(taken),
                    ns_high=max(taken),
                    rounds=len(taken),
                    ratios=_ratios(measured, entry.name, operation) if entry.ours else {},
                )
            )
    return made


def _ratios(measured: Measured, subject: str, operation: str) -> dict[str, Ratio]:
    found: dict[str, Ratio] = {}
    for entry in measured.entries:
        ratio = measured.ratio(subject, entry.name, operation)
        if entry.name != subject and ratio is not None:
            found[entry.name] = ratio
    return found


def observation_row(seen: Observation) -> dict[str, object]:
    """One row of the field `observed`."""
    values = {name: round(value, 3) for name, value in seen.values.items()}
    return {"bench": "timer", "workload": seen.workload, "size": seen.size, "subject": seen.subject, **values}
