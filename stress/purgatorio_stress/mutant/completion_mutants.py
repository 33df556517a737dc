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
from purgatorio_stress.mutant.patch import Mutant, Patch

__all__ = ["COMPLETION_MUTANTS"]

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
    number: int,
    name: str,
    source: str,
    what: str,
    scenario: str,
    clauses: tuple[str, ...],
    *patches: Patch,
    dialect: str = "pending-flag",
    interleaving: bool = True,
) -> Mutant:
    return Mutant(
        number, name, source, what, scenario, clauses, patches, dialect, interleaving, (_LIST_LOCKS,)
    )


COMPLETION_MUTANTS: Final = (
    _two(1, "no-recheck-after-watch", "KAFKA-1952", "no second try after watching",
         "registration-against-event", ("O4",), Patch(PendingFlag, "register", _register_without_second_try)),
    _two(2, "check-per-key-then-watch", "KAFKA-1952", "a try before each watch, none after",
         "registration-against-event", ("O4",),
         Patch(PendingFlag, "register", _register_trying_before_each_watch)),
    _two(3, "orphan-watcher-list", "KAFKA-2160", "the list is looked up under the lock, appended to after it",
         "emptying-key", ("O4", "CHECK"), Patch(WatcherList, "watch", _watch_outside_the_lock), dialect="locked"),
    _two(4, "remove-key-no-emptiness-recheck", "KAFKA-2253", "a key's list is dropped though it has refilled",
         "emptying-key", ("O4", "CHECK"), Patch(WatcherList, "remove_key_if_empty", _remove_without_looking),
         dialect="locked"),
    _two(6, "list-lock-over-removal", "KAFKA-2253", "a list's lock is held while the watcher list's is taken",
         "emptying-key", ("P3",), Patch(Watchers, "__init__", _watchers_with_lock),
         Patch(Watchers, "watch", _watch_under_list_lock),
         Patch(Watchers, "_drop_if_empty", _drop_under_list_lock), dialect="locked"),
    _two(7, "list-lock-over-try-complete", "KAFKA-3994", "a list's lock is held while operations are tried",
         "registration-under-group", ("P3",), Patch(Watchers, "__init__", _watchers_with_lock),
         Patch(Watchers, "watch", _watch_under_list_lock),
         Patch(Watchers, "try_complete_watched", _try_under_list_lock)),
    _two(9, "blocking-foreign-operation-lock", "KAFKA-5970", "a key is checked under another group's lock",
         "two-groups", ("P3",), Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(10, "callback-lock-is-not-operation-lock", "KAFKA-6042", "on_complete takes a lock the caller holds",
         "callback-needs-group", ("P3",), Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(11, "trylock-give-up", "KAFKA-6653", "who does not get the lock gives up",
         "two-events", ("O4",), Patch(PendingFlag, "safe_try_complete", _give_up)),
    _two(12, "trylock-retry-once", "KAFKA-6653", "one more try instead of a loop",
         "three-events", ("O4",), Patch(PendingFlag, "safe_try_complete", _retry_once)),
    _two(13, "pending-not-reset", "KAFKA-6653", "the flag is never cleared",
         "not-completable", ("P3",), Patch(PendingFlag, "safe_try_complete", _pending_not_reset)),
    _two(14, "trylock-foreign-holder", "KAFKA-8334", "try_lock though others hold the operation's lock",
         "foreign-lock-holder", ("O4",), Patch(Locked, "safe_try_complete", PendingFlag.safe_try_complete),
         dialect="locked"),
    _two(17, "check-under-exclusive-lock", "KAFKA-8334", "a key is checked under a lock that try_complete needs",
         "try-needs-group", ("P3",), Patch(ActionQueue, "add", _run_at_once), dialect="locked"),
    _two(18, "reader-writer-chain", "KAFKA-7697", "an operation is completed under a read lock",
         "reader-writer-chain", ("P3",), Patch(ActionQueue, "add", _run_at_once)),
    _two(19, "force-complete-without-cas", "KAFKA-19325", "look at the flag, then set it",
         "force-against-force", ("O1",), Patch(PendingFlag, "force_complete", _force_without_compare_and_set)),
    _two(21, "complete-flag-after-callback", "KAFKA-10080", "the flag is set after on_complete",
         "once-more", ("O1",), Patch(PendingFlag, "force_complete", _flag_after_callback), interleaving=False),
    _two(22, "on-expiration-unconditional", "KAFKA-1989", "on_expiration though the time-out did not win",
         "event-against-expiry", ("O3",), Patch(DelayedOperation, "run", _expire_whoever_won),
         interleaving=False),
    _two(24, "try-complete-beside-on-complete", "KAFKA-19312", "expiry completes without the operation's lock",
         "event-against-expiry", ("O6",), Patch(Locked, "force_complete", _force_outside_the_lock),
         dialect="locked"),
    _two(33, "exception-aborts-pass", "KAFKA-17240", "one operation's exception ends the pass over the list",
         "failing-first", ("O8", "O4"), Patch(Watchers, "_try", _try_without_guard),
         Patch(Watchers, "try_complete_watched", _try_watched_aborting), interleaving=False),
    # Where its RecursionError strikes depends on the depth of the caller: in a callback, or with a lock in hand.
    _two(36, "direct-recheck-in-on-complete", "KAFKA-17509", "the next check is made, not queued",
         "long-chain", ("O8", "P3"), Patch(ActionQueue, "add", _run_at_once), interleaving=False),
    _two(37, "action-queue-exception", "KAFKA-8334", "an action's exception ends the drain",
         "exceptions", ("O8",), Patch(ActionQueue, "run_all", _drain_until_exception), interleaving=False),
    _two(39, "no-cancel-in-force-complete", "KAFKA-16663", "a completed operation stays in the timer",
         "bookkeeping", ("T5", "P2"), Patch(PendingFlag, "force_complete", _force_without_cancel),
         interleaving=False),
    _two(40, "no-cancel-after-late-add", "KAFKA-2226", "no second look after the timer's add",
         "completed-before-timer", ("T5", "P2"), Patch(Purgatory, "_arm", _arm_without_second_look)),
    _two(41, "watch-rest-after-complete", "KAFKA-18027", "no look at the flag between keys",
         "completed-while-watching", ("P1",), Patch(PendingFlag, "register", _register_watching_all)),
    _two(45, "estimate-not-reset", "latent in Kafka", "the purge does not reset the estimate",
         "bookkeeping", ("P2",), Patch(Purgatory, "purge_if_needed", _purge_never_resets), interleaving=False),
    _two(46, "purge-compare-reversed", "KAFKA-664", "the difference is taken the wrong way round",
         "bookkeeping", ("P1",), Patch(Purgatory, "purge_if_needed", _purge_reversed), interleaving=False),
    _two(92, "stop-does-not-complete", "KAFKA-17483", "shutdown leaves operations pending",
         "shut-down", ("O5",), Patch(Purgatory, "_complete_waiting", _complete_nobody), interleaving=False),
)  # fmt: skip
"""By number."""
