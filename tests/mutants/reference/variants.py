"""Known bugs in places that the catalogue of mutants leaves out: the other timers, the other dialect, the user's part.

The numbers are those of the list of bugs; each shows without a second thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mutants.reference import MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio import DelayedOperation, TimerTask
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.watchers import Watchers
from purgatorio.timer import hashed_wheel, heap_timer
from purgatorio_stress.mutant.patch import Patch, edited


def _true_without_completing(self: object, operation: DelayedOperation) -> bool:
    """#27: an event's try says True and completes nothing, where something is raised."""
    try:
        return operation.try_complete() or operation.try_complete_pending.get()
    except Exception:
        return True


def _variant(number: int, name: str, scenario: str, clauses: str, *patches: Patch) -> Mutant:
    scenario, _, dialect = scenario.partition("/")
    return Mutant(
        number, name, "variant", "", scenario, tuple(clauses.split()), patches, dialect or "pending-flag"
    )


def _also_in(dialect: str, *numbers: int) -> Iterator[Mutant]:
    """What both dialects share, in the other one."""
    for number in numbers:
        yield replace(MUTANTS[number], dialect=dialect, source="variant")


def _in(dialect: type[Locked | PendingFlag], number: int) -> Mutant:
    """The catalogue's patch of a dialect's function, in this dialect."""
    mutant = MUTANTS[number]
    (patch,) = mutant.patches
    moved = Patch(dialect, patch.attribute, patch.replacement)
    return replace(mutant, dialect=dialect.name, patches=(moved,), source="variant")


_FORCED_TWICE: Final = edited(PendingFlag, "force_complete", "return False", "return True")
"""#19, where one thread shows it: answers True again."""

_PURGATORY: Final = "drawn:purgatory:0.1000.1.0:-1.0.0:register.0:"

VARIANTS: Final = (
    # Where one thread shows #52: the old entry stays linked when a task is added again.
    _variant(52, "no-move", "drawn:system:1.2.0.0:2::add.0,add.0:", "T5 T3",
             edited(TimerTask, "set_entry", "before.remove()", "pass")),
    _variant(72, "rounds-off-by-one", "drawn:hashed:1.2.0.0:3::add.0:", "T2 T3",
             edited(hashed_wheel, "rounds_left", "cursor_tick - 1) //", "cursor_tick) //")),
    _variant(76, "clamped-late", "drawn:hashed:1.2.0.0:26::add.0:", "T1",
             edited(hashed_wheel, "rounds_left", "(deadline_tick - cursor_tick - 1) // size",
                    "min((deadline_tick - cursor_tick - 1) // size, 3)")),
    _variant(79, "ticks-for-ms", "drawn:hashed:3.2.0.0:5::add.0:", "T3",
             edited(hashed_wheel, "virtual_id", "deadline // tick", "deadline")),
    _variant(79, "ms-for-ticks", "drawn:heap:2.2.0.0:3::add.0:", "T1 T2",
             edited(heap_timer, "bucket_expiration", ", tick) * tick", ", tick)")),
    *_also_in("locked", 22, 33, 45, 46, 92),
    *(_in(dialect, number) for dialect in (Locked, PendingFlag) for number in (1, 2)),
    *(_in(Locked, number) for number in (21, 39)),
    *(
        _variant(19, "force-complete-true-twice", f"{_PURGATORY}force.0,force.0:/{dialect.name}", "O1",
                 Patch(dialect, "force_complete", _FORCED_TWICE.replacement))
        for dialect in (Locked, PendingFlag)
    ),
    *(
        _variant(27, "true-without-complete", f"{_PURGATORY}event.0:try.0=raise/{dialect.name}", "O7",
                 Patch(dialect, "safe_try_complete", _true_without_completing))
        for dialect in (Locked, PendingFlag)
    ),
    *(
        _variant(30, "leave-armed-on-cancel",
                 f"drawn:purgatory:1.1000.1.0:3.0.0:register.0:give_back.0:/{dialect}", "T4 O3 O5 P2",
                 edited(Watchers, "cancel", "node.item.cancel()", "pass"))
        for dialect in ("locked", "pending-flag")
    ),
)  # fmt: skip
"""Each with the dialect in which it is looked for."""
