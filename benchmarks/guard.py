"""The guard for CI: our wheels stay ahead of what they were ahead of. It judges quotients, never times.

A guard plays a short workload in many rounds, the two candidates one after the other in each, and takes the median of
the rounds' quotients (peer / subject) with an interval by the bootstrap. PASS: the interval lies above the floor.
VIOLATED: it lies below. Neither: more rounds are played, and in the end it is UNKNOWN. The floors are well below what
docs/measured/performance.md shows, so that only a change of kind falls through, and no busy machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final

from benchmarks.candidate import Entry
from benchmarks.edges import HerdWorkload
from benchmarks.grid import GridWorkload
from benchmarks.request import RequestRate, RequestWorkload
from benchmarks.rounds import measure
from benchmarks.workload import Workload
from purgatorio_spec.verdict import Verdict

ROUNDS: Final = 15
_TRIES: Final = 3
_RESAMPLES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Guard:
    """`subject` is to be at least `floor` times as fast as `peer` in `operation` of the workload."""

    subject: str
    peer: str
    operation: str
    floor: float
    workload: Callable[[], Workload]


@dataclass(frozen=True, slots=True)
class Guarded:
    """The result of a guard. `low` and `high` are the bounds of the median with 95 % confidence."""

    guard: Guard
    verdict: Verdict
    median: float
    low: float
    high: float
    rounds: int


def _requests() -> Workload:
    # As K2, a second of it: some thousand pending, nearly all cancelled.
    return RequestWorkload("K2", RequestRate(20_000, 200, 500, 0.5))


def _churn() -> Workload:
    return GridWorkload("uniform", 5_000, 5_000, least_ops=5_000)


GUARDS: Final = (
    Guard("interpreted", "faithful", "request", 3.0, _requests),
    Guard("interpreted", "asyncio", "request", 1.1, _requests),
    Guard("interpreted", "heapq", "expire", 1.1, lambda: HerdWorkload(5_000)),
    Guard("compiled", "interpreted", "request", 1.5, _requests),
    Guard("compiled", "heapq", "request", 1.2, _requests),
    Guard("compiled", "heapq", "churn", 1.5, _churn),
)
"""Those whose candidates are not here (the compiled build) are SKIPPED."""


def check_guard(guard: Guard, entries: Sequence[Entry], rounds: int = ROUNDS) -> Guarded:
    """Measure until the interval is on one side of the floor, at most three times as long each time twice the rounds.

    SKIPPED where a candidate is not among `entries` or cannot run here. Raises `Disagreement`.
    """
    pair = [entry for entry in entries if entry.name in (guard.subject, guard.peer) and not entry.missing()]
    if len(pair) != 2:
        return Guarded(guard, Verdict.SKIPPED, 0, 0, 0, 0)
    workload = guard.workload()
    quotients: list[float] = []
    low = high = 0.0
    verdict = Verdict.UNKNOWN
    for turn in range(_TRIES):
        found = measure(workload, pair, rounds << turn)
        of_peer, of_subject = (found.taken(name, guard.operation) for name in (guard.peer, guard.subject))
        quotients += [peer / subject for peer, subject in zip(of_peer, of_subject, strict=True)]
        low, high = bootstrap(quotients)
        if low >= guard.floor or high < guard.floor:
            verdict = Verdict.PASS if low >= guard.floor else Verdict.VIOLATED
            break
    return Guarded(guard, verdict, median(quotients), low, high, len(quotients))


def bootstrap(samples: Sequence[float]) -> tuple[float, float]:
    """The interval that holds the median with 95 %, by drawing the samples again; the same for the same samples."""
    random = Random(0)
    medians = sorted(median(random.choices(samples, k=len(samples))) for _ in range(_RESAMPLES))
    return medians[_RESAMPLES * 25 // 1000], medians[_RESAMPLES * 975 // 1000 - 1]
