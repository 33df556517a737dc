"""Every clause id with its promise, whoever judges it: the ids that verdicts, scenarios, mutants and pages may name.

Three kinds. Clauses of traces, `CLAUSES`, are declared beside the functions that judge them. Clauses of the code are
judged where it is run or modelled: what they say cannot be seen in a trace. Clauses of the broker, B..., are the cases
of the decision tables and what stands beside them. The ids are public interface.
"""

from typing import Final

from purgatorio_spec.clause.answer import O7
from purgatorio_spec.clause.completion import O1, O2, O3, O6
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.clause.gauge import P1, P2, T5
from purgatorio_spec.clause.lost import O4, O5
from purgatorio_spec.clause.periodic import T8, T9, T10
from purgatorio_spec.clause.progress import T12
from purgatorio_spec.clause.reset import T11
from purgatorio_spec.clause.timer import T1, T2, T3, T4

CLAUSES: Final[dict[str, Clause]] = {
    clause.id: clause
    for clause in (O1, O2, O3, O4, O5, O6, O7, P1, P2, T1, T2, T3, T4, T5, T8, T9, T10, T11, T12)
}
"""In the order in which they are shown."""


CODE_CLAUSES: Final[dict[str, str]] = {
    "O8": "an exception in one operation's callback loses no other operation and stops no thread",
    "P3": "no deadlock, no livelock: every call returns; locks are taken in the order of their ranks; no callback runs "
    "under a lock of the purgatory other than its operation's",
    "T6": "within one drain, floor(deadline / tick) does not decrease; nothing is promised among equals",
    "T7": "add and cancel touch a bounded number of nodes, a task cascades at most once a level, polls per unit of "
    "time are bounded",
}
"""Judged by the explorer, by the models, and by tests of the structures."""


PROMISES_BY_PROFILE: Final[dict[str, dict[str, str]]] = {}
"""The clauses of traces in other formats: profile, then id, then sentence. The package that judges such a format adds
its own when it is imported (`purgatorio_wire.clause.registry`), since the spec imports nothing of ours."""
