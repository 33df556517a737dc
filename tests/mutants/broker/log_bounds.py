"""Mutants of the bounds of a log: DeleteRecords and ListOffsets (D1, L1)."""

from dataclasses import replace
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.delayed_produce import DelayedDeleteRecords
from purgatorio_broker.error import Error
from purgatorio_broker.log import Log
from purgatorio_stress.mutant.patch import Patch


def _one_is_all(self: DelayedDeleteRecords) -> bool:
    return DelayedParts.decide(self) or len(self.undecided()) < len(self.results())


def _all_time_out(self: DelayedDeleteRecords) -> None:
    results = self.results()
    if self.undecided():
        results = {p: replace(r, error=Error.REQUEST_TIMED_OUT) for p, r in results.items()}
    self._callback(results)


MUTANTS: Final = (
    *told("log_bounds"),
    felt("records-stay", "deleted records can be read", "D1", Patch(Log, "raise_start", nothing)),
    felt("one-deletion-is-all", "a DeleteRecords of several partitions is answered when one partition is done", "D1",
         Patch(DelayedDeleteRecords, "decide", _one_is_all), brokers=2),
    felt("deleted-parts-time-out-together",
         "if a DeleteRecords times out, the finished partitions get REQUEST_TIMED_OUT too", "D1",
         Patch(DelayedDeleteRecords, "on_complete", _all_time_out), brokers=2),
)  # fmt: skip
