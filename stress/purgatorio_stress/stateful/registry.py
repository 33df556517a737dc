"""The stateful tests by name, and which of them can see a given mutant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Final

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.reaper import Reaper
from purgatorio.timer import hashed_wheel, heap_timer
from purgatorio.timer.hashed_wheel import HashedWheel
from purgatorio.timer.heap_timer import HeapTimer
from purgatorio_stress.mutant.patch import Mutant
from purgatorio_stress.stateful.action_queue_machine import ActionQueueMachine
from purgatorio_stress.stateful.purgatory_machine import LockedMachine, PendingFlagMachine
from purgatorio_stress.stateful.reaper_machine import ReaperMachine
from purgatorio_stress.stateful.scheduled import purgatory_programs, run_interleaved, timer_programs
from purgatorio_stress.stateful.search import Search, of_machine, of_programs
from purgatorio_stress.stateful.timer_machine import (
    HASHED,
    HEAP,
    INTRUSIVE,
    INTRUSIVE_CALLS,
    WHEEL,
    machine_for,
)
from purgatorio_stress.stateful.timer_programs import aligned_programs, run_program


class _PendingFlag(PendingFlagMachine):
    judged = False


class _Locked(LockedMachine):
    judged = False


SEARCHES: Final[Mapping[str, Search]] = {
    search.name: search
    for search in (
        of_machine("system-timer", "the hierarchical wheel", machine_for(WHEEL, blind=True)),
        of_programs(
            "aligned-programs",
            "the hierarchical wheel, all on level ends",
            aligned_programs(),
            run_program,
            examples=1_500,
        ),
        of_machine("heap-timer", "the heap", machine_for(HEAP, blind=True)),
        of_machine("hashed-wheel", "the single wheel", machine_for(HASHED, blind=True)),
        of_machine("intrusive-timer", "the wheel for use", machine_for(INTRUSIVE, blind=True)),
        of_machine(
            "intrusive-calls", "functions in the wheel for use", machine_for(INTRUSIVE_CALLS, blind=True)
        ),
        of_machine("reaper", "a timer that drives itself", ReaperMachine),
        of_machine("action-queue", "actions that are put off", ActionQueueMachine),
        of_machine("purgatory-pending-flag", "the purgatory, Kafka 1.1 to 2.6", _PendingFlag),
        of_machine("purgatory-locked", "the purgatory, Kafka 4.1 and later", _Locked),
        of_programs(
            "scheduled-timer",
            "two threads on the wheel, the schedule drawn too",
            timer_programs(),
            partial(run_interleaved, dialect="pending-flag"),
            examples=1_000,
        ),
        *(
            of_programs(
                f"scheduled-{dialect}",
                f"threads on the purgatory ({dialect}), the schedule drawn too",
                purgatory_programs(),
                partial(run_interleaved, dialect=dialect),
                examples=1_000,
            )
            for dialect in ("pending-flag", "locked")
        ),
    )
}
"""In the order in which they are shown. The timers' see the contract only, not the structures' own checks, for another
timer has none. The clauses do not judge the purgatories' traces here: the model finds as much in a tenth of it."""


def searches_for(mutant: Mutant) -> tuple[Search, ...]:
    """The searches that run the patched code, the likeliest first; none for the broker's, which has its own tests."""
    names = dict.fromkeys(name for patch in mutant.patches for name in _names(patch.owner, mutant.dialect))
    if mutant.interleaving and names:
        of_timer = any(name in names for name in ("system-timer", "hashed-wheel", "heap-timer"))
        names = {"scheduled-timer" if of_timer else f"scheduled-{mutant.dialect}": None, **names}
    return tuple(SEARCHES[name] for name in names)


def _names(owner: object, dialect: str) -> tuple[str, ...]:
    if owner is ActionQueue:
        return ("action-queue",)
    if owner is Reaper:
        return ("reaper",)
    if owner in (HashedWheel, hashed_wheel):
        return ("hashed-wheel",)
    if owner in (HeapTimer, heap_timer):
        return ("heap-timer",)
    module = owner.__name__ if isinstance(owner, ModuleType) else getattr(owner, "__module__", "")
    if module.startswith("purgatorio_broker"):
        return ()
    if module.startswith("purgatorio.timer.intrusive"):
        return ("intrusive-timer", "intrusive-calls")
    if module.startswith("purgatorio.timer"):
        return ("system-timer", "aligned-programs", "reaper")
    return (f"purgatory-{dialect}",)
