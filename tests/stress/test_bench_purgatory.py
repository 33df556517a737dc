"""The memory experiment at a size that is quick; `python -m benchmarks purgatory` runs the million."""

import pytest

from benchmarks.purgatory_memory import bench_purgatory
from purgatorio import DelayedOperation
from purgatorio.delayed.pending_flag import PendingFlag


def test_memory_comes_back() -> None:
    """Nothing but the garbage that the purge interval allows is kept, and no timer."""
    result = bench_purgatory(2_500)
    assert result.passed, result.text()
    assert (result.by_event, result.expired) == (2_475, 25)
    assert result.pending.blocks > result.start.blocks + 15 * result.operations


def test_timers_left_behind_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (KAFKA-16663): without the cancel, operations stay in the timer, and so the purge never starts."""

    def without_cancel(self: PendingFlag, operation: DelayedOperation) -> bool:
        if not operation.completed.compare_and_set(False, True):
            return False
        operation.call_on_complete()
        return True

    monkeypatch.setattr(PendingFlag, "force_complete", without_cancel)
    result = bench_purgatory(2_500)
    assert not result.passed
    assert result.most_garbage > result.purge_interval
