"""The clauses of the wire by id: title, sentences, causes and basis (such as a KIP) of each, from `clauses.txt`."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from purgatorio_spec.clause.declaration import Wording
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES, WORDINGS_BY_PROFILE
from purgatorio_wire.sentence import sentences
from purgatorio_wire.trace.record import PROFILE


@dataclass(frozen=True, slots=True)
class WireClause:
    """A promise of a broker to its clients.

    `causes`: the kinds of violations (`sentence.WAYS`). `basis`: the protocol guide or a KIP states the promise
    (`documented`, `KIP-...`), or Apache Kafka keeps it and clients rely on it (`as Kafka`). A promise that Apache Kafka
    itself breaks is not a clause.
    """

    id: str
    title: str
    promise: str
    causes: str
    basis: str = "documented"


WIRE_CLAUSES: Final = {cells[0]: WireClause(*cells) for cells in sentences("purgatorio_wire.clause")}
"""Every clause that is judged from a wire trace, by id."""

BROKER_CLAUSES: Final = {cells[0]: cells[1] for cells in sentences("purgatorio_broker")}
"""The clauses B... of our own broker's delayed operations, which tests compare with its code, by id."""

WORDINGS_BY_PROFILE[PROFILE] = {one.id: Wording(one.title, one.promise) for one in WIRE_CLAUSES.values()}


@cache
def public_clauses() -> dict[str, Wording]:
    """The clauses of traces, of the code and of the broker, by id. (`WIRE_CLAUSES` has the clauses of the wire.)"""
    traces = {clause.id: clause.wording for clause in CLAUSES.values()}
    broker = {name: Wording("", promise) for name, promise in BROKER_CLAUSES.items()}
    return {**traces, **CODE_CLAUSES, **broker}
