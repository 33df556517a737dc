"""Bugs of the completion protocol and of the watch lists."""

from collections.abc import Callable, Hashable
from typing import Any, Final

from mutants.reference.mutant import known, told
from purgatorio.delayed.watchers import Watchers
from purgatorio.sync import Lock
from purgatorio_stress.mutant.patch import wrapped

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


_LOCKED: Final = (
    wrapped(Watchers, "__init__", _with_list_lock),
    wrapped(Watchers, "watch", _under_list_lock),
)
_DROP: Final = wrapped(Watchers, "_drop_if_empty", _under_list_lock)
_TRY: Final = wrapped(Watchers, "try_complete_watched", _under_list_lock)

COMPLETION_MUTANTS: Final = (
    *told("completion"),
    known(6, "emptying-key", *_LOCKED, _DROP, dialect="locked", interleaving=True, memory=(_LIST_LOCKS,)),
    known(7, "registration-under-group", *_LOCKED, _TRY, interleaving=True, memory=(_LIST_LOCKS,)),
)
"""By number."""
