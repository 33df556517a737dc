"""`Decided`: the partitions of one request, each undecided until it has an answer, and decided once.

What `DelayedProduce` and `DelayedDeleteRecords` share. Every partition has a result from the start: the error of an
append that failed, or, while it is undecided, that of a time-out; so what the time-out finds undecided needs no further
thought. A decided partition is never asked again, whatever happens to it afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from purgatorio.sync import AtomicRef, Sync
from purgatorio_broker.key import TopicPartition

__all__ = ["Decided"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Status(Generic[R]):
    result: R
    undecided: bool


class Decided(Generic[R]):
    """`at_time_out`: what an undecided partition is answered if nothing is decided before; None: its result stands."""

    __slots__ = ("_statuses",)

    def __init__(
        self,
        partitions: Mapping[TopicPartition, R],
        at_time_out: Callable[[R], R | None],
        sync: Sync,
    ) -> None:
        self._statuses: tuple[tuple[TopicPartition, AtomicRef[_Status[R]]], ...] = tuple(
            (partition, sync.atomic_ref(_status(result, at_time_out(result)), f"status.{partition}"))
            for partition, result in partitions.items()
        )

    def decide(self, decide: Callable[[TopicPartition, R], R | None]) -> bool:
        """Ask about each that is undecided (None: not yet); whether none is left."""
        left = False
        for partition, cell in self._statuses:
            status = cell.get()
            if not status.undecided:
                continue
            result = decide(partition, status.result)
            if result is None:
                left = True
            else:
                cell.set(_Status(result, undecided=False))
        return not left

    def results(self) -> dict[TopicPartition, R]:
        """The results as they stand."""
        return {partition: cell.get().result for partition, cell in self._statuses}

    def undecided(self) -> list[TopicPartition]:
        """Those that are left."""
        return [partition for partition, cell in self._statuses if cell.get().undecided]


def _status(result: R, at_time_out: R | None) -> _Status[R]:
    if at_time_out is None:
        return _Status(result, undecided=False)
    return _Status(at_time_out, undecided=True)
