"""`DelayedParts`: a waiting request of several parts (such as partitions), each of which is decided once.

Produce, DeleteRecords, elections and remote look-ups use this class. An undecided part stores the result for a time-out
from the start, so a time-out changes no results. A decided part is never evaluated again.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.sync import AtomicRef
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime

P = TypeVar("P", bound=Hashable)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Status(Generic[R]):
    result: R
    undecided: bool


class DelayedParts(DelayedOperation, Generic[P, R]):
    """`results`: the first result of each part. `ask`: the decision about an undecided part, from its current result.
    None: not decided yet. `ask` must not raise or block. `callback` gets the results of all parts, once."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[P, R],
        ask: Callable[[P, R], R | None],
        callback: Callable[[Mapping[P, R]], None],
        runtime: Runtime,
        meter: ExpirationMeter | None = None,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._ask = ask
        self._callback = callback
        self._meter = meter
        self._statuses: tuple[tuple[P, AtomicRef[_Status[R]]], ...] = tuple(
            (part, runtime.sync.atomic_ref(_status(result, self.at_time_out(result)), f"status.{part}"))
            for part, result in results.items()
        )

    @abstractmethod
    def at_time_out(self, result: R) -> R | None:
        """The result of an undecided part at the time-out. None: `result` stays."""

    def decide(self) -> bool:
        """Tries to decide each undecided part. Returns whether all parts are decided."""
        left = False
        for part, cell in self._statuses:
            status = cell.get()
            if not status.undecided:  # [B101] [B109] [B301] [B721] [B911]
                continue
            result = self._ask(part, status.result)
            if result is None:
                left = True
            else:
                cell.set(_Status(result, undecided=False))
        return not left

    def try_complete(self) -> bool:
        """Try to decide each undecided part. Complete the operation if all parts are decided."""
        return self.decide() and self.force_complete()  # [B108] [B307]

    def on_complete(self) -> None:
        self._callback(self.results())

    def on_expiration(self) -> None:
        if self._meter is not None:
            for part in self.undecided():
                self._meter.mark(part)

    def results(self) -> dict[P, R]:
        return {part: cell.get().result for part, cell in self._statuses}

    def undecided(self) -> list[P]:
        return [part for part, cell in self._statuses if cell.get().undecided]


def _status(result: R, at_time_out: R | None) -> _Status[R]:
    if at_time_out is None:
        return _Status(result, undecided=False)
    return _Status(at_time_out, undecided=True)
