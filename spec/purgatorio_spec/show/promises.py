"""The sentences of the clauses by the kind of run: those of a purgatory's traces, or those of the wire."""

from __future__ import annotations

from collections.abc import Iterable

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.wire.record import PROFILE
from purgatorio_spec.wire.registry import WIRE_CLAUSES

__all__ = ["promise_of", "promises"]


def promises(profiles: Iterable[str]) -> dict[str, str]:
    """Every clause that runs of these profiles can be judged by, with its sentence; of an id that both kinds have, and
    both are there, both sentences."""
    named = set(profiles)
    found = {} if named == {PROFILE} else {name: clause.promise for name, clause in CLAUSES.items()}
    if PROFILE in named:
        for name, clause in WIRE_CLAUSES.items():
            found[name] = f"{found[name]}; on the wire: {clause.promise}" if name in found else clause.promise
    return found


def promise_of(clause: str, profile: str) -> str:
    """The sentence of a clause in a run of this profile."""
    return promises([profile])[clause]
