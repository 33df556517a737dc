"""The registry of clauses, with their public ids.

`CLAUSES` are judged from a trace. Each is declared next to the functions that judge it. `CODE_CLAUSES` cannot be judged
from a trace: the explorer and the models judge them. The clauses of the broker (ids such as B101) are in
`purgatorio_broker/clauses.txt`.
"""

from typing import Final

from purgatorio_spec.clause.answer import O7
from purgatorio_spec.clause.completion import O1, O2, O3, O6
from purgatorio_spec.clause.declaration import SAID, Clause, Wording, as_promise
from purgatorio_spec.clause.gauge import P1, P2, P4, T5
from purgatorio_spec.clause.lost import O4, O5
from purgatorio_spec.clause.periodic import T8, T9, T10
from purgatorio_spec.clause.progress import T12
from purgatorio_spec.clause.reset import T11
from purgatorio_spec.clause.timer import T1, T2, T3, T4

CLAUSES: Final[dict[str, Clause]] = {
    clause.id: clause
    for clause in (O1, O2, O3, O4, O5, O6, O7, P1, P2, P4, T1, T2, T3, T4, T5, T8, T9, T10, T11, T12)
}
"""The clauses of traces by id, in display order."""


CODE_CLAUSES: Final = {
    name: Wording(title, as_promise(rules)) for name, (title, *rules) in SAID["code"].items()
}
"""The clauses that the explorer, the models, and the tests of the structures judge."""


WORDINGS_BY_PROFILE: Final[dict[str, dict[str, Wording]]] = {}
"""The clauses of other trace formats: profile, then id. A package that judges such a format adds its
clauses when it is imported (`purgatorio_wire.clause.registry`), because the spec imports no other package of ours."""
