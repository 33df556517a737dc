"""Bugs of the completion protocol and of the watch lists."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from purgatorio import ActionQueue, DelayedOperation, Purgatory
from purgatorio.delayed.dialect import Completable, Count, Op, try_again
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import WatcherList, Watchers
from purgatorio.faults import PROPAGATE
from purgatorio.sync import Lock
from purgatorio_stress.mutant.patch import Mutant, Patch, known

Keys = Sequence[Hashable]


def _register_without_second_try(
    self: PendingFlag, operation: Op, keys: Keys, watch: Callable[[Hashable, Op], None], count: Count
) -> bool:
    if operation.try_complete():
        return True
    for key in keys:
        if operation.is_completed():
            return False
        watch(key, operation)
    count()
    return False


def _register_trying_before_each_watch(
    self: PendingFlag, operation: Op, keys: Keys, watch: Callable[[Hashable, Op], None], count: Count
) -> bool:
    for key in keys:
        if self.safe_try_complete(operation):
            return True
        watch(key, operation)
    count()
    return False


def _register_watching_all(
    self: PendingFlag, operation: Op, keys: Keys, watch: Callable[[Hashable, Op], None], count: Count
) -> bool:
    if operation.try_complete():
        return True
    for key in keys:
        watch(key, operation)
    count()
    return try_again(operation, self.safe_try_complete)


def _give_up(self: PendingFlag, operation: Completable) -> bool:
    if not operation.lock.acquire(blocking=False):
        return False
    try:
        return operation.try_complete()
    finally:
        operation.lock.release()


def _retry_once(self: PendingFlag, operation: Completable) -> bool:
    for _ in range(2):
        again = True
        if operation.lock.acquire(blocking=False):
            try:
                operation.try_complete_pending.set(False)
                if operation.try_complete():
                    return True
            finally:
                operation.lock.release()
            again = operation.try_complete_pending.get()
        else:
            again = not operation.try_complete_pending.get_and_set(True)
        if not again:
            return False
    return False


def _pending_not_reset(self: PendingFlag, operation: Completable) -> bool:
    while True:
        operation.sync.loop_head(operation)
        done = False
        if operation.lock.acquire(blocking=False):
            try:
                done = operation.try_complete()
            finally:
                operation.lock.release()
            again = operation.try_complete_pending.get()
        else:
            again = not operation.try_complete_pending.get_and_set(True)
        if not again or operation.is_completed():
            return done


def _force_without_compare_and_set(self: PendingFlag, operation: Completable) -> bool:
    if operation.completed.get():
        return False
    operation.completed.set(True)
    operation.cancel()
    operation.call_on_complete()
    return True


def _flag_after_callback(self: PendingFlag, operation: Completable) -> bool:
    if operation.completed.get():
        return False
    operation.cancel()
    operation.call_on_complete()
    return operation.completed.compare_and_set(False, True)


def _force_outside_the_lock(self: Locked, operation: Completable) -> bool:
    if not operation.completed.compare_and_set(False, True):
        return False
    operation.cancel()
    operation.call_on_complete()
    return True


def _expire_whoever_won(self: DelayedOperation) -> None:
    self.force_complete()
    self.on_expiration()


def _force_without_cancel(self: PendingFlag, operation: Completable) -> bool:
    if not operation.completed.compare_and_set(False, True):
        return False
    operation.call_on_complete()
    return True


def _watch_outside_the_lock(self: WatcherList, key: Hashable, operation: DelayedOperation) -> None:
    with self._lock:
        watchers = self._lists.get().get(key)
        if watchers is None:
            watchers = Watchers(key, self.remove_key_if_empty, self._faults, self._sync)
            self._lists.mutate()[key] = watchers
    watchers.watch(operation)


def _remove_without_looking(self: WatcherList, watchers: Watchers) -> None:
    with self._lock:
        if self._lists.get().get(watchers.key) is watchers:
            del self._lists.mutate()[watchers.key]


_LIST_LOCKS: Final[dict[int, Lock]] = {}
"""A list lock, as the old Watchers had; by list, for one run."""


def _watchers_with_lock(
    self: Watchers, key: Hashable, on_empty: Callable[[Watchers], None], faults: Any, sync: Any
) -> None:
    _WATCHERS_INIT(self, key, on_empty, faults, sync)
    _LIST_LOCKS[id(self)] = sync.lock("watchers")


_WATCHERS_INIT: Final[Callable[..., None]] = Watchers.__init__
_WATCH: Final = Watchers.watch
_TRY_WATCHED: Final = Watchers.try_complete_watched
_DROP_IF_EMPTY: Final = Watchers._drop_if_empty


def _watch_under_list_lock(self: Watchers, operation: DelayedOperation) -> None:
    with _LIST_LOCKS[id(self)]:
        _WATCH(self, operation)


def _drop_under_list_lock(self: Watchers) -> None:
    with _LIST_LOCKS[id(self)]:
        _DROP_IF_EMPTY(self)


def _try_under_list_lock(self: Watchers) -> int:
    with _LIST_LOCKS[id(self)]:
        return _TRY_WATCHED(self)


def _run_at_once(self: ActionQueue, action: Callable[[], object]) -> None:
    action()


def _drain_until_exception(self: ActionQueue) -> int:
    ran = 0
    while (action := self._actions.poll()) is not None:
        ran += 1
        try:
            action()
        except Exception as error:
            self._faults.caught(error, "action", action)
            break
    return ran


def _try_without_guard(self: Watchers, operation: DelayedOperation) -> bool:
    return operation.safe_try_complete()


def _try_watched_aborting(self: Watchers) -> int:
    try:
        return _TRY_WATCHED(self)
    except Exception as error:
        self._faults.caught(error, "try_complete", self)
        return 0


def _purge_never_resets(self: Purgatory[DelayedOperation]) -> int:
    if self._estimated_operations.get() - self.num_delayed() <= self._purge_interval:
        return 0
    return sum(watchers.purge_completed() for watchers in self._all_watchers())


def _purge_reversed(self: Purgatory[DelayedOperation]) -> int:
    delayed = self.num_delayed()
    if delayed - self._estimated_operations.get() <= self._purge_interval:
        return 0
    self._estimated_operations.set(delayed)
    return sum(watchers.purge_completed() for watchers in self._all_watchers())


def _arm_without_second_look(self: Purgatory[DelayedOperation], operation: DelayedOperation) -> None:
    if not operation.is_completed() and self._timer_enabled:
        self._timer.add(operation)


def _complete_nobody(self: Purgatory[DelayedOperation]) -> int:
    return 0


def _propagate(self: object, error: Exception, where: str, subject: object) -> None:
    PROPAGATE.caught(error, where, subject)


def _two(
    number: int, scenario: str, *patches: Patch, dialect: str = "pending-flag", interleaving: bool = True
) -> Mutant:
    return known(
        number, scenario, *patches, dialect=dialect, interleaving=interleaving, memory=(_LIST_LOCKS,)
    )


COMPLETION_MUTANTS: Final = (
    _two(1, "registration-against-event", Patch(PendingFlag, "register", _register_without_second_try)),
    _two(2, "registration-against-event", Patch(PendingFlag, "register", _register_trying_before_each_watch)),
    _two(3, "emptying-key", Patch(WatcherList, "watch", _watch_outside_the_lock), dialect="locked"),
    _two(4, "emptying-key", Patch(WatcherList, "remove_key_if_empty", _remove_without_looking),
         dialect="locked"),
    _two(6, "emptying-key", Patch(Watchers, "__init__", _watchers_with_lock),
         Patch(Watchers, "watch", _watch_under_list_lock),
         Patch(Watchers, "_drop_if_empty", _drop_under_list_lock), dialect="locked"),
    _two(7, "registration-under-group", Patch(Watchers, "__init__", _watchers_with_lock),
         Patch(Watchers, "watch", _watch_under_list_lock),
         Patch(Watchers, "try_complete_watched", _try_under_list_lock)),
    _two(9, "two-groups", Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(10, "callback-needs-group", Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(11, "two-events", Patch(PendingFlag, "safe_try_complete", _give_up)),
    _two(12, "three-events", Patch(PendingFlag, "safe_try_complete", _retry_once)),
    _two(13, "not-completable", Patch(PendingFlag, "safe_try_complete", _pending_not_reset)),
    _two(14, "foreign-lock-holder", Patch(Locked, "safe_try_complete", PendingFlag.safe_try_complete),
         dialect="locked"),
    _two(17, "try-needs-group", Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(18, "reader-writer-chain", Patch(ActionQueue, "add", _run_at_once)),
    _two(19, "force-against-force", Patch(PendingFlag, "force_complete", _force_without_compare_and_set)),
    _two(21, "once-more", Patch(PendingFlag, "force_complete", _flag_after_callback), interleaving=False),
    _two(22, "event-against-expiry", Patch(DelayedOperation, "run", _expire_whoever_won), interleaving=False),
    _two(24, "event-against-expiry", Patch(Locked, "force_complete", _force_outside_the_lock),
         dialect="locked"),
    _two(33, "failing-first", Patch(Watchers, "_try", _try_without_guard),
         Patch(Watchers, "try_complete_watched", _try_watched_aborting), interleaving=False),
    # Where its RecursionError strikes depends on the depth of the caller: in a callback, or with a lock in hand.
    _two(36, "long-chain", Patch(ActionQueue, "add", _run_at_once), interleaving=False),
    _two(37, "exceptions", Patch(ActionQueue, "run_all", _drain_until_exception), interleaving=False),
    _two(39, "bookkeeping", Patch(PendingFlag, "force_complete", _force_without_cancel), interleaving=False),
    _two(40, "completed-before-timer", Patch(Purgatory, "_arm", _arm_without_second_look)),
    _two(41, "completed-while-watching", Patch(PendingFlag, "register", _register_watching_all)),
    _two(45, "bookkeeping", Patch(Purgatory, "purge_if_needed", _purge_never_resets), interleaving=False),
    _two(46, "bookkeeping", Patch(Purgatory, "purge_if_needed", _purge_reversed), interleaving=False),
    _two(92, "shut-down", Patch(Purgatory, "_complete_waiting", _complete_nobody), interleaving=False),
)  # fmt: skip
"""By number."""
