"""The whole run of `python -m benchmarks timer`: mean times, then the other measurements."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.candidate import Entry
from benchmarks.edges import SparseWorkload
from benchmarks.figures import Figure, figures
from benchmarks.observe import (
    Observation,
    bytes_per_timer,
    observe_collector,
    observe_ticks,
    observe_wakes,
)
from benchmarks.rounds import Measured, measure
from benchmarks.suite import IDS, Planned, Scale, suite

_TICKED: Final = frozenset({"K1", "K2", "U3"})
_COLLECTED: Final[dict[Scale, int]] = {"quick": 2_000, "standard": 200_000}
_WEIGHED: Final[dict[Scale, int]] = {"quick": 0, "standard": 200_000}

Tell = Callable[[float, str], None]
"""Told the workload, the rounds done, and those planned."""


@dataclass(slots=True)
class TimerBench:
    """The results of a run. `skipped`: by candidate and reason, the workloads that it was left out of. `compared`:
    the firings on which all candidates with a virtual clock agreed."""

    scale: Scale
    figures: list[Figure] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    skipped: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    compared: int = 0
    shortest_batch_ns: int = 0

    def take(self, one: Measured) -> None:
        """Keep the figures of a workload, and let go of its inputs."""
        self.figures += figures(one)
        self.compared += one.compared
        self.shortest_batch_ns = min(self.shortest_batch_ns or one.shortest_batch_ns, one.shortest_batch_ns)
        for name, reason in one.skipped.items():
            where = f"{one.workload.id} {one.workload.size:,}"
            self.skipped.setdefault(name, {}).setdefault(reason, []).append(where)


def run_timer_bench(
    scale: Scale, entries: Sequence[Entry], ids: Collection[str] = (), tell: Tell | None = None
) -> TimerBench:
    """Play the workloads of `ids` (all, if empty). ValueError for an unknown id; `Disagreement` as `measure`."""
    wanted = set(ids) or set(IDS)
    if not wanted <= set(IDS):
        raise ValueError(
            f"no such workload: {', '.join(sorted(wanted - set(IDS)))}; there are {', '.join(IDS)}"
        )
    result = TimerBench(scale)
    asked = [one for one in suite(scale) if not wanted.isdisjoint(one.ids) or _is_ticked(one, wanted)]
    for number, planned in enumerate(asked):
        ticked = _is_ticked(planned, wanted)
        workload = planned.make()
        name = f"{workload.id} {workload.name} {workload.size:,}"
        if not wanted.isdisjoint(planned.ids):
            told = None if tell is None else _teller(tell, name, number, len(asked))
            result.take(measure(workload, entries, planned.rounds, long=planned.long, tell=told))
        if ticked:
            result.observed += observe_ticks(workload, entries)
        if isinstance(workload, SparseWorkload) and "X1" in wanted:
            result.observed += observe_wakes(workload, entries)
    if "X5" in wanted:
        result.observed += observe_collector(_COLLECTED[scale], entries)
    if "U1" in wanted and _WEIGHED[scale]:
        result.observed += bytes_per_timer(_WEIGHED[scale], entries)
    return result


def _is_ticked(planned: Planned, wanted: Collection[str]) -> bool:
    """Whether its worst tick is asked for, which is measured apart."""
    return "X4" in wanted and not _TICKED.isdisjoint(planned.ids)


def _teller(tell: Tell, name: str, number: int, workloads: int) -> Callable[[int, int], None]:
    """Tells the share of all workloads that is done, and the name of this one."""
    return lambda done, rounds: tell((number + done / rounds) / workloads, name)
