"""Bugs of the completion protocol and of the watch lists."""

from collections.abc import Callable, Hashable
from typing import Any, Final

from mutants.reference.mutant import Mutant, known, told
from purgatorio import ActionQueue, Purgatory
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import Watchers
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
    *told("completion"),
    _two(6, "emptying-key", wrapped(Watchers, "__init__", _with_list_lock),
         wrapped(Watchers, "watch", _under_list_lock),
         wrapped(Watchers, "_drop_if_empty", _under_list_lock), dialect="locked"),
    _two(7, "registration-under-group", wrapped(Watchers, "__init__", _with_list_lock),
         wrapped(Watchers, "watch", _under_list_lock),
         wrapped(Watchers, "try_complete_watched", _under_list_lock)),
    _two(9, "two-groups", _ACTION_AT_ONCE, dialect="locked"),
    _two(10, "callback-needs-group", _ACTION_AT_ONCE, dialect="locked"),
    _two(14, "foreign-lock-holder", Patch(Locked, _TRY, PendingFlag.safe_try_complete), dialect="locked"),
    _two(17, "try-needs-group", _ACTION_AT_ONCE, dialect="locked"),
    _two(18, "reader-writer-chain", _ACTION_AT_ONCE),
    _two(24, "event-against-expiry", Patch(Locked, "force_complete", PendingFlag.force_complete),
         dialect="locked"),
    _two(33, "drawn:purgatory:0.1000.1.0:-1.0.0,-1.0.0:register.0,register.1:event.1:try.0=raise",
         edited(Watchers, "_try", 'self._faults.caught(error, "try_complete", operation)', "raise"),
         wrapped(Watchers, "try_complete_watched", _aborting), interleaving=False),
    # Where its RecursionError strikes depends on the depth of the caller: in a callback, or with a lock in hand.
    _two(36, _SPOIL, _ACTION_AT_ONCE, interleaving=False),
    _two(92, "drawn:purgatory:0.0.1.0:-1.0.0::register.0,shutdown:",
         Patch(Purgatory, "_complete_waiting", lambda self: 0), interleaving=False),
)  # fmt: skip
"""By number."""
