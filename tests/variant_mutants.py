"""Known bugs in places that the catalogue of mutants leaves out: the other timers, the other dialect, the user's part.

The numbers are those of the list of bugs; each shows without a second thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from purgatorio import DelayedOperation, TimerTask
from purgatorio.delayed.dialect import Count, Op
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import Watchers
from purgatorio.sync import AtomicRef
from purgatorio.timer import hashed_wheel, heap_timer
from purgatorio.timer.bucket import TimerTaskEntry
from purgatorio_stress.mutant.catalogue import MUTANTS
from purgatorio_stress.mutant.patch import Mutant, Patch

__all__ = ["VARIANTS"]


def _cancel_flag_only(self: TimerTask) -> None:
    """#83: does not unlink."""
    pointer: AtomicRef[object] = self._entry  # type: ignore[assignment] # the mutant clears whatever is there
    pointer.set(None)


def _no_move(self: TimerTask, entry: TimerTaskEntry) -> None:
    """#52, where one thread shows it: the old entry stays linked when a task is added again."""
    self._entry.set(entry)


def _rounds_off_by_one(deadline_tick: int, cursor_tick: int, size: int) -> int:
    """#72, the other way."""
    return (deadline_tick - cursor_tick) // size


def _clamped_rounds(deadline_tick: int, cursor_tick: int, size: int) -> int:
    """#76, beyond 4 revolutions only."""
    return min((deadline_tick - cursor_tick - 1) // size, 3)


def _ticks_for_ms(time_ms: int, tick_ms: int) -> int:
    """#79: takes milliseconds for ticks."""
    return time_ms


def _ms_for_ticks(time_ms: int, tick_ms: int) -> int:
    """#79: takes ticks for milliseconds."""
    return time_ms // tick_ms


def _no_recheck(
    self: object, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
) -> bool:
    """#1: no second try after watching (before KAFKA-1952)."""
    if operation.try_complete():
        return True
    for key in keys:
        watch(key, operation)
    count()
    return False


def _check_then_watch(
    self: object, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
) -> bool:
    """#2: a try before each watch, none after the last."""
    for key in keys:
        if operation.try_complete():
            return True
        watch(key, operation)
    count()
    return False


def _flag_after_callback(self: object, operation: DelayedOperation) -> bool:
    """#21: completed only once the callback has returned."""
    if operation.completed.get():
        return False
    operation.cancel()
    operation.call_on_complete()
    operation.completed.set(True)
    return True


def _no_cancel(self: object, operation: DelayedOperation) -> bool:
    """#39: the timer's task of what is completed stays."""
    if operation.completed.get_and_set(True):
        return False
    operation.call_on_complete()
    return True


def _forced_twice(self: object, operation: DelayedOperation) -> bool:
    """#19, where one thread shows it: answers True again."""
    if operation.completed.get_and_set(True):
        return True
    operation.cancel()
    operation.call_on_complete()
    return True


def _true_without_completing(self: object, operation: DelayedOperation) -> bool:
    """#27: an event's try says True and completes nothing, where something is raised."""
    try:
        return operation.try_complete() or operation.try_complete_pending.get()
    except ValueError:
        return True


def _cancel_leaves_timers(self: Watchers) -> list[DelayedOperation]:
    """#30: what is taken off its key stays armed, and expires without cause."""
    nodes = [node for node in self._operations.nodes() if self._operations.remove(node)]
    return [node.item for node in nodes]


def _variant(number: int, name: str, dialect: str, *patches: Patch) -> Mutant:
    return Mutant(number, name, "variant", "", "", (), patches, dialect)


def _in_locked(number: int) -> Mutant:
    """A mutant of what both dialects share, in the other one."""
    mutant = MUTANTS[number]
    return _variant(number, mutant.name, "locked", *mutant.patches)


VARIANTS: Final = (
    _variant(52, "no-move", "pending-flag", Patch(TimerTask, "set_entry", _no_move)),
    _variant(72, "rounds-off-by-one", "pending-flag", Patch(hashed_wheel, "rounds_left", _rounds_off_by_one)),
    _variant(76, "clamped-late", "pending-flag", Patch(hashed_wheel, "rounds_left", _clamped_rounds)),
    _variant(79, "ticks-for-ms", "pending-flag", Patch(hashed_wheel, "virtual_id", _ticks_for_ms)),
    _variant(79, "ms-for-ticks", "pending-flag", Patch(heap_timer, "bucket_expiration", _ms_for_ticks)),
    _in_locked(22),
    _in_locked(33),
    _in_locked(45),
    _in_locked(46),
    _in_locked(92),
    *(
        _variant(number, name, dialect.name, Patch(dialect, attribute, wrong))
        for dialect in (Locked, PendingFlag)
        for number, name, attribute, wrong in (
            (1, "no-recheck-after-watch", "register", _no_recheck),
            (2, "check-per-key-then-watch", "register", _check_then_watch),
            (19, "force-complete-true-twice", "force_complete", _forced_twice),
            (21, "complete-flag-after-callback", "force_complete", _flag_after_callback),
            (27, "true-without-complete", "safe_try_complete", _true_without_completing),
            (39, "no-cancel-in-force-complete", "force_complete", _no_cancel),
        )
    ),
    *(
        _variant(30, "leave-armed-on-cancel", dialect, Patch(Watchers, "cancel", _cancel_leaves_timers))
        for dialect in ("locked", "pending-flag")
    ),
)
"""Each with the dialect in which it is looked for."""

CANCEL_FLAG_ONLY: Final = Patch(TimerTask, "cancel", _cancel_flag_only)
"""#83, which is a bug of every timer."""
