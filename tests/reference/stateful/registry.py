"""The stateful tests by name, and for a given patch the tests that can detect it."""

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

from purgatorio_stress.mutant.patch import Patch
from reference.stateful.action_queue_machine import ActionQueueMachine
from reference.stateful.purgatory_machine import LockedMachine, PendingFlagMachine
from reference.stateful.reaper_machine import ReaperMachine
from reference.stateful.search import MachineSearch
from reference.stateful.timer_machine import (
    HASHED,
    HEAP,
    INTRUSIVE,
    INTRUSIVE_CALLS,
    WHEEL,
    machine_for,
)


class _PendingFlag(PendingFlagMachine):
    judged = False


class _Locked(LockedMachine):
    judged = False


SEARCHES: Final[Mapping[str, MachineSearch]] = {
    search.name: search
    for search in (
        MachineSearch("system-timer", machine_for(WHEEL, blind=True)),
        MachineSearch("heap-timer", machine_for(HEAP, blind=True)),
        MachineSearch("hashed-wheel", machine_for(HASHED, blind=True)),
        MachineSearch("intrusive-timer", machine_for(INTRUSIVE, blind=True)),
        MachineSearch("intrusive-calls", machine_for(INTRUSIVE_CALLS, blind=True)),
        MachineSearch("reaper", ReaperMachine),
        MachineSearch("action-queue", ActionQueueMachine),
        MachineSearch("purgatory-pending-flag", _PendingFlag),
        MachineSearch("purgatory-locked", _Locked),
    )
}
"""The tests of timers use only the contract, not `check`, because other timers have none. In the tests of purgatories
the clauses judge no traces, because the model finds the same bugs in a tenth of the time."""


def searches_for(patches: Iterable[Patch], dialect: str) -> tuple[MachineSearch, ...]:
    """The searches that run the patched code. The most likely search is the first."""
    names = dict.fromkeys(name for patch in patches for name in names_of(_module_of(patch.owner), dialect))
    return tuple(SEARCHES[name] for name in names)


def _module_of(owner: object) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else str(getattr(owner, "__module__", ""))


BY_MODULE: Final[Mapping[str, tuple[str, ...]]] = {
    "purgatorio.delayed.action_queue": ("action-queue",),
    "purgatorio.reaper": ("reaper",),
    "purgatorio.timer.hashed_wheel": ("hashed-wheel",),
    "purgatorio.timer.heap_timer": ("heap-timer",),
    "purgatorio.timer.intrusive": ("intrusive-timer", "intrusive-calls"),
    "purgatorio.timer": ("system-timer", "reaper"),
}
"""The searches by prefix of the module name, longer prefixes first."""
_OF_ONE_DIALECT: Final = {
    "purgatorio.delayed.locked": "locked",
    "purgatorio.delayed.pending_flag": "pending-flag",
}


def names_of(module: str, dialect: str) -> tuple[str, ...]:
    """The searches that run code of a module of the reference, in one dialect."""
    for start, names in BY_MODULE.items():
        if module.startswith(start):
            return names
    return (f"purgatory-{_OF_ONE_DIALECT.get(module, dialect)}",)
