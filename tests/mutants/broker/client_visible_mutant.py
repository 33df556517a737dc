"""Mutants of the broker that clients can see.

The mutants are in text files, see `mutants.diffs`. The line below a name has the clauses, one of which must find the
mutant, and the number of brokers that it needs (`R4, 2 brokers`). Its places are `[handle ]MODULE:[CLASS.]FUNCTION`. A
mutant keeps its state in the object that it changes. `known 97` is the known bug with this number.
"""

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
from purgatorio_stress.mutant.patch import Patch

Handle = Callable[[Node, Request], None]


@dataclass(frozen=True, slots=True)
class VisibleMutant:
    """A mutant. One of the `clauses` must find it. `brokers`: the number of brokers that it needs."""

    name: str
    what: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    brokers: int = 1


def mutants_of(subject: str) -> list[VisibleMutant]:
    found: list[VisibleMutant] = []
    for diff in diffs(Path(__file__).parent / f"{subject}.txt"):
        clauses, _, many = diff.says.partition(", ")
        name, what, patches = diff.name, diff.what, tuple(map(_patch, diff.changes))
        if name.startswith("known "):
            bug = BROKER_MUTANTS[int(name.removeprefix("known "))]
            name, what, patches = bug.name, bug.what, bug.patches
        brokers = int(many.split()[0]) if many else 1
        found.append(VisibleMutant(name, what, (*clauses.split(),), patches, brokers))
    return found


def _patch(change: Change) -> Patch:
    """The patch of a change. A changed handler is also entered into the table of APIs."""
    place = change.place.removeprefix("handle ")
    made = replace(change, place=place).patch("purgatorio_broker")
    if place == change.place:
        return made
    handle, new = getattr(made.owner, made.attribute), cast(Handle, made.replacement)
    changed = {key: replace(one, handle=new) if one.handle is handle else one for key, one in APIS.items()}
    return Patch(server, "APIS", changed)


def later(delay_s: float, call: Callable[[], object]) -> None:
    """Calls the function after a delay, for diffs."""
    timer = threading.Timer(delay_s, call)
    timer.daemon = True
    timer.start()
