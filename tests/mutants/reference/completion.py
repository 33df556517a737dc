"""Bugs of the completion protocol and of the watch lists."""

from collections.abc import Callable, Hashable
from typing import Any, Final

from mutants.reference.mutant import Mutant, known
from purgatorio import ActionQueue, DelayedOperation, Purgatory
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import WatcherList, Watchers
from purgatorio.sync import Lock
from purgatorio_stress.mutant.patch import Patch, edited, wrapped

_LIST_LOCKS: Final[dict[int, Lock]] = {}
"""A list lock, as the old Watchers had; by list, for one run."""


def _with_list_lock(
    begin: Callable[..., None],
    self: Watchers,
    key: Hashable,
    on_empty: Callable[[Watchers], None],
    faults: Any,
    sync: Any,
) -> None:
    begin(self, key, on_empty, faults, sync)
    _LIST_LOCKS[id(self)] = sync.lock("watchers")


def _under_list_lock(call: Callable[..., object], self: Watchers, *given: object) -> object:
    with _LIST_LOCKS[id(self)]:
        return call(self, *given)


def _aborting(try_watched: Callable[..., int], self: Watchers) -> int:
    try:
        return try_watched(self)
    except Exception as error:
        self._faults.caught(error, "try_complete", self)
        return 0


def _two(
    number: int, scenario: str, *patches: Patch, dialect: str = "pending-flag", interleaving: bool = True
) -> Mutant:
    return known(
        number, scenario, *patches, dialect=dialect, interleaving=interleaving, memory=(_LIST_LOCKS,)
    )


_TRY: Final = "safe_try_complete"
_SPOIL: Final = "drawn:purgatory:1.1000.0.0:-1.2.0::spoil:"
"""An action that raises is put off, and one behind it."""
_ACTION_AT_ONCE: Final = edited(ActionQueue, "add", "self._actions.append(action)", "action()")

COMPLETION_MUTANTS: Final = (
    _two(1, "registration-against-event",
         edited(PendingFlag, "register", "try_again(operation, self.safe_try_complete)", "False")),
    _two(2, "registration-against-event",
         edited(PendingFlag, "register", "operation.call_try_complete():", "False:", "return False", "return True",
                "operation.is_completed():", "self.safe_try_complete(operation):",
                "try_again(operation, self.safe_try_complete)", "False")),
    _two(3, "emptying-key", edited(
         WatcherList, "watch", "        watchers.watch(operation)", "    watchers.watch(operation)"),
         dialect="locked"),
    _two(4, "emptying-key",
         edited(WatcherList, "remove_key_if_empty", " and watchers.is_empty()", ""), dialect="locked"),
    _two(6, "emptying-key", wrapped(Watchers, "__init__", _with_list_lock),
         wrapped(Watchers, "watch", _under_list_lock),
         wrapped(Watchers, "_drop_if_empty", _under_list_lock), dialect="locked"),
    _two(7, "registration-under-group", wrapped(Watchers, "__init__", _with_list_lock),
         wrapped(Watchers, "watch", _under_list_lock),
         wrapped(Watchers, "try_complete_watched", _under_list_lock)),
    _two(9, "two-groups", _ACTION_AT_ONCE, dialect="locked"),
    _two(10, "callback-needs-group", _ACTION_AT_ONCE, dialect="locked"),
    _two(11, "two-events",
         edited(PendingFlag, _TRY, "not operation.try_complete_pending.get_and_set(True)", "False")),
    _two(12, "three-events", edited(
         PendingFlag, _TRY, "while True:", "for _ in range(2):", "return done", "return done\n    return False")),
    _two(13, "not-completable",
         edited(PendingFlag, _TRY, "operation.try_complete_pending.set(False)", "pass")),
    _two(14, "foreign-lock-holder", Patch(Locked, _TRY, PendingFlag.safe_try_complete), dialect="locked"),
    _two(17, "try-needs-group", _ACTION_AT_ONCE, dialect="locked"),
    _two(18, "reader-writer-chain", _ACTION_AT_ONCE),
    _two(19, "force-against-force", edited(
         PendingFlag, "force_complete", "not operation.completed.compare_and_set(False, True)",
         "operation.completed.get()", "operation.cancel()", "operation.completed.set(True)\n    operation.cancel()")),
    _two(21, "force-against-force", edited(
         PendingFlag, "force_complete", "not operation.completed.compare_and_set(False, True)",
         "operation.completed.get()", "return True", "return operation.completed.compare_and_set(False, True)"),
         interleaving=False),
    _two(22, "event-against-expiry",
         edited(DelayedOperation, "run", "self.force_complete()", "self.force_complete() or True"),
         interleaving=False),
    _two(24, "event-against-expiry", Patch(Locked, "force_complete", PendingFlag.force_complete),
         dialect="locked"),
    _two(33, "drawn:purgatory:0.1000.1.0:-1.0.0,-1.0.0:register.0,register.1:event.1:try.0=raise",
         edited(Watchers, "_try", 'self._faults.caught(error, "try_complete", operation)', "raise"),
         wrapped(Watchers, "try_complete_watched", _aborting), interleaving=False),
    # Where its RecursionError strikes depends on the depth of the caller: in a callback, or with a lock in hand.
    _two(36, _SPOIL, _ACTION_AT_ONCE, interleaving=False),
    _two(37, _SPOIL, edited(ActionQueue, "run_all", '"action", action)', '"action", action); break'),
         interleaving=False),
    _two(39, "drawn:purgatory:1.1000.1.0:-1.0.0:register.0:force.0:",
         edited(PendingFlag, "force_complete", "operation.cancel()", "pass"),
         interleaving=False),
    _two(40, "completed-before-timer", edited(Purgatory, "_arm", "operation.cancel()", "pass")),
    _two(41, "completed-while-watching", edited(PendingFlag, "register", "operation.is_completed()", "False")),
    _two(45, "drawn:purgatory:0.0.1.0:-1.2.0:register.0:retry.0:",
         edited(Purgatory, "purge_if_needed", "self._estimated_operations.set(delayed)", "pass"),
         interleaving=False),
    _two(46, "drawn:purgatory:1.1.1.0:-1.2.0::churn.3,churn.3,churn.3:",
         edited(Purgatory, "purge_if_needed", "self._estimated_operations.get() - delayed",
                "delayed - self._estimated_operations.get()"), interleaving=False),
    _two(92, "drawn:purgatory:0.0.1.0:-1.0.0::register.0,shutdown:",
         Patch(Purgatory, "_complete_waiting", lambda self: 0), interleaving=False),
)  # fmt: skip
"""By number."""
