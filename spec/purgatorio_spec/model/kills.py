"""Which known bugs the models and the proofs kill: read by the kill matrix.

Derived from the tables of claims, so a twin that is dropped or renamed cannot stay listed here. A row says which
layer (`model` or `proof`) kills which bug, and by which claim; running that claim shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from purgatorio_spec.known_bugs import bug_number
from purgatorio_spec.model.claims import all_claims
from purgatorio_spec.proof.contracts import CONTRACTS
from purgatorio_spec.proof.lemmas import LEMMAS


@dataclass(frozen=True, slots=True, order=True)
class Kill:
    """A known bug by its number, the layer and the claim that kills it."""

    number: int
    layer: str
    claim: str


def kills() -> tuple[Kill, ...]:
    """Every kill, by number; a bug may be killed by several claims."""
    found = [
        (twin.number, "model", claim.id) for claim in all_claims() for twin in claim.twins if not claim.deep
    ]
    found += [(bug_number(lemma.twin), "proof", lemma.id) for lemma in LEMMAS]
    found += [(bug_number(contract.twin), "proof", f"X-{contract.function}") for contract in CONTRACTS]
    return tuple(sorted({Kill(number, *rest) for number, *rest in found if number is not None}))
