"""The registry of clauses, with their public ids.

`CLAUSES` are judged from a trace. Each is declared next to the functions that judge it, in a module of this folder.
`CODE_CLAUSES` cannot be judged from a trace. The explorer and the models judge them. The clauses of the broker (ids
such as B101) are in `purgatorio_broker/clauses.txt`.
"""

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Final

from purgatorio_spec.clause.declaration import DECLARED, Clause, Wording, as_promise
from purgatorio_spec.profile import CLAUSE_ENTRIES

for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _module.name != "registry":
        import_module(f"{__package__}.{_module.name}")

CLAUSES: Final[dict[str, Clause]] = {name: DECLARED[name] for name in CLAUSE_ENTRIES if name != "code"}
"""The clauses of traces by id, in display order."""


CODE_CLAUSES: Final = {
    name: Wording(title, as_promise(rules)) for name, (title, *rules) in CLAUSE_ENTRIES["code"].items()
}
"""The clauses that the explorer, the models, and the tests of the structures judge."""


WORDINGS_BY_PROFILE: Final[dict[str, dict[str, Wording]]] = {}
"""The clauses of other trace formats: profile, then id. A package that judges such a format adds its
clauses when it is imported (`purgatorio_wire.clause.registry`), because the spec imports no other package of ours."""
