"""The whole of `python -m benchmarks purgatory`: P1-P6 at one scale."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

from benchmarks.figures import Figure, figures
from benchmarks.purgatory_kafka import RATES, Achieved, measure_rates
from benchmarks.purgatory_request import (
    PURGATORY_IDS,
    PurgatoryWorkload,
    purgatory_entries,
    purgatory_subjects,
)
from benchmarks.purgatory_threads import THREADS, Threaded, measure_threads
from benchmarks.rounds import measure

PurgatoryScale = Literal["quick", "standard"]


@dataclass(frozen=True, slots=True)
class _Size:
    steps: int
    rounds: int
    threaded: int
    threaded_rounds: int
    threads: tuple[int, ...]
    seconds: float
    rates: tuple[int, ...]


_SIZES: Final[dict[PurgatoryScale, _Size]] = {
    "quick": _Size(300, 2, 300, 1, (1, 2), 0.1, (500,)),
    "standard": _Size(6_000, 4, 8_000, 3, THREADS, 1.0, RATES),
}

Tell = Callable[[float, str], None]
"""Hears how many workloads are done, and which is next."""


@dataclass(slots=True)
class PurgatoryFigures:
    """The results of a run. P5 by (subject, threads): the median round by CPU time. P6: one point each."""

    scale: PurgatoryScale
    figures: list[Figure] = field(default_factory=list)
    threaded: list[Threaded] = field(default_factory=list)
    achieved: list[Achieved] = field(default_factory=list)


def run_purgatory_bench(scale: PurgatoryScale, ids: Collection[str], tell: Tell) -> PurgatoryFigures:
    """Play P1-P6, those that are in `ids`. `Disagreement` where an operation is not completed."""
    size, result = _SIZES[scale], PurgatoryFigures(scale)
    single = [name for name in ("P1", "P2", "P3", "P4") if name in ids]
    for done, name in enumerate(single):
        tell(done, f"{name}: {PURGATORY_IDS[name]}")
        played = measure(PurgatoryWorkload(name, size.steps), purgatory_entries(), size.rounds)
        result.figures += figures(played, "purgatory")
    if "P5" in ids:
        tell(len(single), f"P5: {PURGATORY_IDS['P5']}")
        plays = measure_threads(purgatory_subjects(), size.threaded, size.threaded_rounds, size.threads)
        result.threaded = _middle(plays)
    if "P6" in ids:
        for point in measure_rates(purgatory_subjects(), size.seconds, size.rates):
            tell(len(single) + ("P5" in ids), f"P6: {point.subject} asked {point.asked_per_s:,}/s")
            result.achieved.append(point)
    return result


def _middle(plays: list[Threaded]) -> list[Threaded]:
    found: list[Threaded] = []
    for subject, threads in dict.fromkeys((play.subject, play.threads) for play in plays):
        mine = [play for play in plays if (play.subject, play.threads) == (subject, threads)]
        ns, rate = median(play.ns for play in mine), median(play.wall_ops_per_s for play in mine)
        found.append(Threaded(subject, threads, ns, rate))
    return sorted(
        found, key=lambda play: [subject.name for subject in purgatory_subjects()].index(play.subject)
    )
