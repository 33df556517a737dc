"""The method: all candidates in one process, interleaved, in rounds whose order rotates and reverses.

What is timed is the CPU time of the process. Inputs are made before and frozen out of the collector's sight. A
candidate is compared with another within the same round only: the ratio is the median of those, with the least and
the greatest. The machine's mood is in the figures of a round, and much less in their quotient.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from benchmarks.candidate import Entry
from benchmarks.witness import agree, comparable
from benchmarks.workload import Disagreement, Stopwatch, Workload

T = TypeVar("T")

SLOW_ROUNDS = 2
"""Of a candidate that is marked slow, for workloads that take long."""

SLOW_LARGEST = 750_000
"""The largest workload that it takes part in."""

Samples = dict[str, list[float | None]]
"""Nanoseconds by operation and round; None where it took no part."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Peer / subject: above 1 the subject is faster. Median, least and greatest of the rounds that both played."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(slots=True)
class Measured:
    """The results of a workload: samples by candidate, missing candidates with reasons, compared firings."""

    workload: Workload
    entries: list[Entry]
    samples: dict[str, Samples] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    shortest_batch_ns: int = 0

    def taken(self, name: str, operation: str) -> list[float]:
        """A candidate's nanoseconds an operation, by round; empty where it took no part."""
        return [ns for ns in self.samples.get(name, {}).get(operation, []) if ns is not None]

    def ratio(self, subject: str, peer: str, operation: str) -> Ratio | None:
        """None where there is no round that both played."""
        of_subject = self.samples.get(subject, {}).get(operation, [])
        of_peer = self.samples.get(peer, {}).get(operation, [])
        pairs = [p / s for s, p in zip(of_subject, of_peer, strict=False) if s is not None and p is not None]
        return Ratio(median(pairs), min(pairs), max(pairs), len(pairs)) if pairs else None


def eligible(workload: Workload, entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """The candidates that take part in this workload, and the reasons for the others."""
    chosen: list[Entry] = []
    skipped: dict[str, str] = {}
    for entry in entries:
        reason = entry.missing()
        if reason is None and entry.outside is not None and not workload.outside:
            reason = "outside of this process: U1, U2 and U4 only"
        if reason is None and workload.moves_time and not entry.virtual:
            reason = "its time cannot be injected, so it can only add and cancel"
        if reason is None and entry.largest is not None and workload.size > entry.largest:
            reason = f"its cancel searches all that is pending; at most {entry.largest:,} here"
        if reason is None and entry.slow and workload.size > SLOW_LARGEST:
            reason = f"takes too long beyond {SLOW_LARGEST:,}"
        if reason is None:
            chosen.append(entry)
        else:
            skipped[entry.name] = reason
    return chosen, skipped


def rotated(entries: Sequence[T], rounds: int) -> list[list[T]]:
    """The order of each round: rotated by one from round to round, every other one reversed."""
    made: list[list[T]] = []
    for turn in range(rounds):
        at = turn % len(entries) if entries else 0
        order = [*entries[at:], *entries[:at]]
        made.append(order[::-1] if turn % 2 else order)
    return made


def measure(
    workload: Workload,
    entries: Sequence[Entry],
    rounds: int,
    *,
    long: bool = False,
    tell: Callable[[int, int], None] | None = None,
) -> Measured:
    """Play `workload` in rounds. Raises `Disagreement` where candidates do not fire the same timers.

    `long`: those marked slow take part in the first two rounds only.
    """
    chosen, skipped = eligible(workload, entries)
    result = Measured(workload, chosen, skipped=skipped)
    result.compared = agree(workload.small(), comparable(chosen))
    plan = rotated(chosen, rounds)
    gc.collect()
    gc.freeze()
    try:
        for turn, order in enumerate(plan):
            _play_round(result, order, turn, rounds, long)
            if tell is not None:
                tell(turn + 1, rounds)
    finally:
        gc.unfreeze()
    return result


def _play_round(result: Measured, order: list[Entry], turn: int, rounds: int, long: bool) -> None:
    fired: dict[str, int] = {}
    for entry in order:
        if long and entry.slow and turn >= SLOW_ROUNDS:
            continue
        gc.collect()
        if entry.outside is not None:
            found = entry.outside(result.workload)
        else:
            watch = Stopwatch()
            result.workload.play(entry.make, watch)
            if entry.fires:
                fired[entry.name] = watch.fired
            shortest = min(watch.spent_ns().values())
            result.shortest_batch_ns = min(result.shortest_batch_ns or shortest, shortest)
            found = watch.ns()
        mine = result.samples.setdefault(entry.name, {})
        for operation, ns in found.items():
            mine.setdefault(operation, [None] * rounds)[turn] = ns
    if len(set(fired.values())) > 1:
        raise Disagreement(f"{result.workload.id} {result.workload.name}: not as many fired: {fired}")
