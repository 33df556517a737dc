"""The kinds of violations of each clause. Each occasion (a case that can break a clause) can show one kind. A scene (a
sequence of requests) declares the kinds that it tests.

The kinds are public: a result names them as causes, and a trace names the kinds that its scenes test. A kind that is
not in the clause's list is refused.
"""

from collections.abc import Mapping, Set
from typing import Final, TypeAlias

from purgatorio_wire.sentence import sentences

Way: TypeAlias = str
"""A kind of violation. The code that makes its rows explains the kind. In a scene, "" stands for all kinds of a clause.
In a row, "" means that the clause does not distinguish kinds."""
WAYS: Final[Mapping[str, Set[Way]]] = {
    cells[0]: {"", *cells[3].split(", ")} for cells in sentences("purgatorio_wire.clause")
}
"""By clause."""
