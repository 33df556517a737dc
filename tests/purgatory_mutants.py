"""Known bugs of purgatories, put into the reference in memory: the numbers are those of the project's list of bugs.

Each shows without a second thread, given callbacks that re-enter, raise, or become ready at a bad moment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest.mock import patch

from purgatorio import DelayedOperation, Purgatory
from purgatorio.delayed.dialect import Count, Watch
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import Watchers

__all__ = ["PURGATORY_MUTANTS", "PurgatoryMutant"]


@dataclass(frozen=True)
class PurgatoryMutant:
    """A bug: where to put it, what to put there, and the dialect in which it is looked for."""

    number: int
    name: str
    dialect: str
    target: object
    attribute: str
    wrong: Callable[..., object]

    def planted(self) -> AbstractContextManager[object]:
        """A context in which the reference has the bug."""
        return patch.object(self.target, self.attribute, self.wrong)

    def __str__(self) -> str:
        return f"{self.number}-{self.name}-{self.dialect}"


def _no_recheck(
    self: object, operation: DelayedOperation, keys: Sequence[Hashable], watch: Watch, count: Count
) -> bool:
    """#1: no second try after watching (before KAFKA-1952)."""
    if operation.try_complete():
        return True
    for key in keys:
        watch(key, operation)
    count()
    return False


def _check_then_watch(
    self: object, operation: DelayedOperation, keys: Sequence[Hashable], watch: Watch, count: Count
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


def _expiration_always(self: DelayedOperation) -> None:
    """#22: `on_expiration` without winning."""
    self.force_complete()
    self.on_expiration()


def _aborted_pass(self: Watchers) -> int:
    """#33: the first exception ends the pass."""
    completed = 0
    try:
        for node in self._operations.nodes():
            if node.item.is_completed():
                self._operations.remove(node)
            elif node.item.try_from_event():
                self._operations.remove(node)
                completed += 1
    except ValueError:
        return completed
    self._drop_if_empty()
    return completed


def _estimate_kept(self: Purgatory[DelayedOperation]) -> int:
    """#45: the estimate is not reset, so that every turn purges."""
    if self._estimated_operations.get() - self.num_delayed() <= self._purge_interval:
        return 0
    return sum(watchers.purge_completed() for watchers in self._all_watchers())


def _compared_reversed(self: Purgatory[DelayedOperation]) -> int:
    """#46: never purges."""
    delayed = self.num_delayed()
    if delayed - self._estimated_operations.get() <= self._purge_interval:
        return 0
    self._estimated_operations.set(delayed)
    return sum(watchers.purge_completed() for watchers in self._all_watchers())


def _true_without_completing(self: object, operation: DelayedOperation) -> bool:
    """#27: an event's try says True and completes nothing, where something is raised."""
    try:
        return operation.try_complete() or operation.try_complete_pending.get()
    except ValueError:
        return True


def _shut_without_completing(self: Purgatory[DelayedOperation]) -> int:
    """#92: what waits at shutdown is left."""
    return 0


def _cancel_leaves_timers(self: Watchers) -> list[DelayedOperation]:
    """#30: what is taken off its key stays armed, and expires without cause."""
    nodes = [node for node in self._operations.nodes() if self._operations.remove(node)]
    return [node.item for node in nodes]


PURGATORY_MUTANTS = tuple(
    PurgatoryMutant(number, name, dialect.name, target or dialect, attribute, wrong)
    for dialect in (Locked, PendingFlag)
    for number, name, target, attribute, wrong in (
        (1, "no-recheck-after-watch", None, "register", _no_recheck),
        (2, "check-per-key-then-watch", None, "register", _check_then_watch),
        (19, "force-complete-true-twice", None, "force_complete", _forced_twice),
        (21, "complete-flag-after-callback", None, "force_complete", _flag_after_callback),
        (22, "on-expiration-unconditional", DelayedOperation, "run", _expiration_always),
        (27, "true-without-complete", None, "try_from_event", _true_without_completing),
        (30, "leave-armed-on-cancel", Watchers, "cancel", _cancel_leaves_timers),
        (33, "exception-aborts-pass", Watchers, "try_complete_watched", _aborted_pass),
        (39, "no-cancel-in-force-complete", None, "force_complete", _no_cancel),
        (45, "estimate-not-reset", Purgatory, "purge_if_needed", _estimate_kept),
        (46, "purge-compare-reversed", Purgatory, "purge_if_needed", _compared_reversed),
        (92, "stop-does-not-complete", Purgatory, "_complete_waiting", _shut_without_completing),
    )
)
"""The sequential ones of the list that this code base has a place for, in both dialects."""
