"""Known bugs in places that the catalogue of mutants leaves out: the other timers, the other dialect, the user's part.

The numbers are those of the list of bugs; each variant shows without a second thread.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from mutants.diffs import diffs
from mutants.reference import MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio.delayed.locked import Locked
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio_stress.mutant.patch import Patch

_DIALECTS: Final = ("locked", "pending-flag")


def _told(subject: str) -> Iterator[Mutant]:
    """Those in the file of this name, in each of their dialects."""
    for diff in diffs(Path(__file__).parent / f"{subject}.txt"):
        number, name = diff.name.split()
        clauses = tuple(word for word in diff.says.split() if word not in (*_DIALECTS, "interleaving"))
        patches = tuple(change.patch("purgatorio") for change in diff.changes)
        for dialect in [one for one in _DIALECTS if one in diff.says] or _DIALECTS[1:]:
            races = "interleaving" in diff.says
            yield Mutant(int(number), name, "variant", "", diff.what, clauses, patches, dialect, races)


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


VARIANTS: Final = (
    *_told("variants"),
    *_also_in("locked", 22, 33, 45, 46, 92),
    *(_in(dialect, number) for dialect in (Locked, PendingFlag) for number in (1, 2)),
    *(_in(Locked, number) for number in (21, 39)),
)
"""Each with the dialect in which it is looked for."""

PLANTED: Final = (*_told("planted"),)
"""Bugs of the timers that only their own programs look for."""
