"""A bug of the broker behind the socket that a client can feel.

Each stands in a text file, see `mutants.diffs`: below its name the clauses of the wire, one of which must be the one to
convict it, and how many brokers it takes (`R4, 2 brokers`). Its places are `[handle ]MODULE:[CLASS.]FUNCTION`. What a
bug must remember it keeps on the object that it is in. `known 97` is the known bug of that number.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from mutants.diffs import Change, diffs
from mutants.reference.broker_operations import BROKER_MUTANTS
from purgatorio_broker.network import server
from purgatorio_broker.network.api import APIS
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.reply import Request
from purgatorio_stress.mutant.patch import Patch, edited

Handle = Callable[[Node, Request], None]


@dataclass(frozen=True, slots=True)
class FeltMutant:
    """A bug. `clauses`: of the wire; one of them must convict it. `brokers`: how many it takes to feel it."""

    name: str
    what: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    brokers: int = 1


def told(subject: str) -> list[FeltMutant]:
    """Those of the file of this name."""
    found: list[FeltMutant] = []
    for diff in diffs(Path(__file__).parent / f"{subject}.txt"):
        clauses, _, many = diff.says.partition(", ")
        name, what, patches = diff.name, diff.what, tuple(map(_patch, diff.changes))
        if name.startswith("known "):
            bug = BROKER_MUTANTS[int(name.removeprefix("known "))]
            name, what, patches = bug.name, bug.what, bug.patches
        brokers = int(many.split()[0]) if many else 1
        found.append(FeltMutant(name, what, (*clauses.split(),), patches, brokers))
    return found


def _patch(change: Change) -> Patch:
    """A request that is handled otherwise is also to be found so by its API."""
    if not change.place.startswith("handle "):
        return change.patch("purgatorio_broker")
    owner, function = replace(change, place=change.place.removeprefix("handle ")).named("purgatorio_broker")
    handle: Handle = getattr(owner, function)
    made = cast(Handle, edited(sys.modules[handle.__module__], function, *change.flat()).replacement)
    changed = {key: replace(one, handle=made) if one.handle is handle else one for key, one in APIS.items()}
    return Patch(server, "APIS", changed)


def later(delay_s: float, call: Callable[[], object]) -> None:
    """Call it then; for diffs."""
    timer = threading.Timer(delay_s, call)
    timer.daemon = True
    timer.start()
