"""Mutants of all waiting requests: their time-outs, their keys, and the checks of these keys."""

from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.delayed.watchers import Watchers
from purgatorio_stress.mutant.patch import Patch, edited


def _armed(delay_ms: str) -> Patch:
    return edited(Purgatory, "_arm", "self._timer.add(", f"operation.delay_ms = {delay_ms}; self._timer.add(")


MUTANTS: Final = (
    *told("waiting"),
    felt("late-timer", "every time-out comes a second late", "F2 M5 G1 G6 G7", _armed("operation.delay_ms + 1000")),
    felt("early-timer", "every time-out comes after half its time", "F1 M5 G1 G6 G7",
         _armed("operation.delay_ms // 2")),
    felt("never-armed", "no operation has a time-out", "F2 X1", Patch(Purgatory, "_arm", nothing)),
    felt("time-outs-rounded-up", "a time-out is rounded up to half a second", "F2 G1",
         _armed("-(-operation.delay_ms // 500) * 500")),
    felt("eight-seconds-at-most", "a time-out is at most 8 s", "F1", _armed("min(operation.delay_ms, 8000)")),
    felt("purge-forgets", "the purge of completed operations also removes waiting operations of the key", "F3",
         edited(Watchers, "purge_completed", "node.item.is_completed() and ", "")),
)  # fmt: skip
