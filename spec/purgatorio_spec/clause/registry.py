"""The clauses that are judged from a trace, by id. Each is declared beside its functions; the ids are public interface;
`purgatorio_spec.clause.public` has them all, those that no trace can show among them."""

from __future__ import annotations

from typing import Final

from purgatorio_spec.clause.answer import O7
from purgatorio_spec.clause.completion import O1, O2, O3, O6
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.clause.gauge import P1, P2, T5
from purgatorio_spec.clause.limbo import O5
from purgatorio_spec.clause.lost import O4
from purgatorio_spec.clause.timer import T1, T2, T3, T4

CLAUSES: Final[dict[str, Clause]] = {
    clause.id: clause for clause in (O1, O2, O3, O4, O5, O6, O7, P1, P2, T1, T2, T3, T4, T5)
}
"""In the order in which they are shown."""
