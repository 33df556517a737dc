"""Known bugs in places that the catalogue of mutants leaves out: the other timers, the other dialect, the user's part.

The numbers are those of the list of bugs; each shows without a second thread.
"""

from __future__ import annotations

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
    except ValueError:
        return True


def _variant(number: int, name: str, dialect: str, *patches: Patch) -> Mutant:
    return Mutant(number, name, "variant", "", "", (), patches, dialect)


def _in(
    dialect: type[Locked | PendingFlag], number: int, name: str = "", patch: Patch | None = None
) -> Mutant:
    """A patch of a dialect's function, that of the catalogue unless another is given, in this dialect."""
    patch = patch or MUTANTS[number].patches[0]
    name = name or MUTANTS[number].name
    return _variant(number, name, dialect.name, Patch(dialect, patch.attribute, patch.replacement))


_FORCED_TWICE: Final = edited(PendingFlag, "force_complete", "return False", "return True")
"""#19, where one thread shows it: answers True again."""

_TRUE_WITHOUT: Final = Patch(PendingFlag, "safe_try_complete", _true_without_completing)

VARIANTS: Final = (
    # Where one thread shows #52: the old entry stays linked when a task is added again.
    _variant(52, "no-move", "pending-flag", edited(TimerTask, "set_entry", "before.remove()", "pass")),
    _variant(72, "rounds-off-by-one", "pending-flag",
             edited(hashed_wheel, "rounds_left", "cursor_tick - 1) //", "cursor_tick) //")),
    _variant(76, "clamped-late", "pending-flag",
             edited(hashed_wheel, "rounds_left", "(deadline_tick - cursor_tick - 1) // size",
                    "min((deadline_tick - cursor_tick - 1) // size, 3)")),
    _variant(79, "ticks-for-ms", "pending-flag", edited(hashed_wheel, "virtual_id", "deadline // tick", "deadline")),
    _variant(79, "ms-for-ticks", "pending-flag", edited(heap_timer, "bucket_expiration", ", tick) * tick", ", tick)")),
    # What both dialects share, in the other one.
    *(_variant(number, MUTANTS[number].name, "locked", *MUTANTS[number].patches) for number in (22, 33, 45, 46, 92)),
    *(_in(dialect, number) for dialect in (Locked, PendingFlag) for number in (1, 2)),
    *(_in(dialect, 19, "force-complete-true-twice", _FORCED_TWICE) for dialect in (Locked, PendingFlag)),
    *(_in(dialect, 27, "true-without-complete", _TRUE_WITHOUT) for dialect in (Locked, PendingFlag)),
    *(_in(Locked, number) for number in (21, 39)),
    *(
        _variant(30, "leave-armed-on-cancel", dialect, edited(Watchers, "cancel", "node.item.cancel()", "pass"))
        for dialect in ("locked", "pending-flag")
    ),
)  # fmt: skip
"""Each with the dialect in which it is looked for."""
