"""Mutants of the broker that clients can see, and the functions that define a mutant.

Each mutant names clauses, and one of these clauses must find it. A mutant patches functions of the reference or of the
broker's network layer. The patch of a known bug comes from the list of known bugs. A mutant that only replaces text is
in a text file, see `mutants.diffs`. The line below its name has its clauses, and the number of brokers that it needs
(`R4, 2 brokers`). Its places are `[handle ]MODULE:[CLASS.]FUNCTION`.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from mutants.diffs import Change, diffs
from mutants.reference.broker_operations import BROKER_MUTANTS
from purgatorio.delayed.purgatory import Purgatory
from purgatorio_broker.network import server
from purgatorio_broker.network.api import APIS
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.reply import Request
from purgatorio_stress.mutant.patch import Patch, edited

Handle = Callable[[Node, Request], None]


@dataclass(frozen=True, slots=True)
class FeltMutant:
    """A mutant. One of the `clauses` must find it. `brokers`: the number of brokers that it needs."""

    name: str
    what: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    brokers: int = 1


def felt(name: str, what: str, clauses: str, *patches: Patch, brokers: int = 1) -> FeltMutant:
    """One of this package."""
    return FeltMutant(name, what, tuple(clauses.split()), patches, brokers)


def told(subject: str) -> list[FeltMutant]:
    """Those of the file of this name."""
    found: list[FeltMutant] = []
    for diff in diffs(Path(__file__).parent / f"{subject}.txt"):
        clauses, _, many = diff.says.partition(", ")
        brokers = int(many.split()[0]) if many else 1
        found.append(felt(diff.name, diff.what, clauses, *map(_patch, diff.changes), brokers=brokers))
    return found


def _patch(change: Change) -> Patch:
    if not change.place.startswith("handle "):
        return change.patch("purgatorio_broker")
    owner, function = replace(change, place=change.place.removeprefix("handle ")).named("purgatorio_broker")
    return handled(getattr(owner, function), *change.flat())


def known(number: int, clauses: str, *, brokers: int = 1) -> FeltMutant:
    """One of the known bugs of concrete operations."""
    mutant = BROKER_MUTANTS[number]
    return FeltMutant(mutant.name, mutant.what, tuple(clauses.split()), mutant.patches, brokers)


def handled(handle: Handle, *words: str) -> Patch:
    """A request that is handled otherwise: words as of `edited`."""
    made = cast(Handle, edited(sys.modules[handle.__module__], handle.__name__, *words).replacement)
    changed = {key: replace(one, handle=made) if one.handle is handle else one for key, one in APIS.items()}
    return Patch(server, "APIS", changed)


def under_first_key(kind: str) -> Patch:
    """Operations of this class are watched under their first key alone."""
    keys = f"keys[:1] if type(operation).__name__ == {kind!r} else keys"
    return edited(
        Purgatory, "try_complete_else_watch", "register(operation, keys,", f"register(operation, {keys},"
    )


def nothing(*given: object) -> None:
    """Nothing is done."""


def never(*given: object) -> bool:
    """It is not so."""
    return False


def later(delay_s: float, call: Callable[[], object]) -> None:
    """Call it then."""
    timer = threading.Timer(delay_s, call)
    timer.daemon = True
    timer.start()
