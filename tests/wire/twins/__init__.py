"""Histories of each clause of the wire that keep it, with an occasion, each with a twin that breaks it."""

from collections.abc import Callable

from purgatorio_wire.clause.registry import WIRE_CLAUSES
from wire.story import Story
from wire.twins import fetch, group, log, members, produce, shares, topics, transactions

Twin = Callable[[Story, bool], None]
"""Tells a history; with True, the one that is broken."""

TOLD = {
    name: told
    for module in (fetch, group, log, members, produce, shares, topics, transactions)
    for name, told in vars(module).items()
}
"""All that these modules know, by its name."""

TWINS: dict[str, tuple[Twin, ...]] = {
    clause: tuple(told for name, told in TOLD.items() if name.partition("_")[0] == clause.lower())
    for clause in WIRE_CLAUSES
}
"""By the first word of their names."""
