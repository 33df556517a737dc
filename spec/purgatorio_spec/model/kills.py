"""Which known bugs the models and the proofs kill: read by the kill matrix.

Derived from the tables of claims, so a twin that is dropped or renamed cannot stay listed here. A row says which
layer (`model` or `proof`) kills which bug, and by which claim; running that claim shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from purgatorio_spec.model.claims import all_claims
from purgatorio_spec.proof.campaign import TWIN_NUMBERS
from purgatorio_spec.proof.contracts import CONTRACTS
from purgatorio_spec.proof.lemmas import LEMMAS


@dataclass(frozen=True, slots=True, order=True)
class Kill:
    """A known bug by its number, the name of the twin that has it, the layer and the claim that kills it."""

    number: int
    name: str
    layer: str
    claim: str
    clause: str


def kills() -> tuple[Kill, ...]:
    """Every kill, by number; a bug may be killed by several claims."""
    found = {
        Kill(twin.number, twin.name, "model", claim.id, twin.property.split()[0])
        for claim in all_claims()
        for twin in claim.twins
        if twin.number is not None and not claim.deep
    }
    found |= {
        Kill(TWIN_NUMBERS[lemma.twin], lemma.twin, "proof", lemma.id, lemma.id)
        for lemma in LEMMAS
        if lemma.twin in TWIN_NUMBERS
    }
    found |= {
        Kill(TWIN_NUMBERS[contract.twin], contract.twin, "proof", f"X-{contract.function}", contract.function)
        for contract in CONTRACTS
        if contract.twin in TWIN_NUMBERS
    }
    return tuple(sorted(found))
