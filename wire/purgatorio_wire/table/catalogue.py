"""All decision tables, and the sentences of their clauses."""

from collections.abc import Mapping
from typing import Final, Protocol

from purgatorio_wire.sentence import sentences
from purgatorio_wire.table.fetch import FETCH
from purgatorio_wire.table.group import HEARTBEAT, JOIN, JOIN_TIMEOUT, SYNC
from purgatorio_wire.table.produce import DELETE_RECORDS, PRODUCE
from purgatorio_wire.table.remote import REMOTE_ANSWER, REMOTE_FETCH, REMOTE_OFFSETS
from purgatorio_wire.table.share_fetch import SHARE_FETCH, SHARE_READ, SHARE_REMOTE
from purgatorio_wire.table.topics import CREATE, DELETE, ELECT


class Table(Protocol):
    @property
    def operation(self) -> str:
        """The operation of the table."""

    def check(self) -> dict[str, int]:
        """The number of situations that each case decides, by clause."""


TABLES: Final[tuple[Table, ...]] = (
    PRODUCE,
    FETCH,
    DELETE_RECORDS,
    JOIN,
    JOIN_TIMEOUT,
    SYNC,
    HEARTBEAT,
    CREATE,
    DELETE,
    ELECT,
    REMOTE_FETCH,
    REMOTE_ANSWER,
    REMOTE_OFFSETS,
    SHARE_FETCH,
    SHARE_READ,
    SHARE_REMOTE,
)

BROKER_CLAUSES: Final[Mapping[str, str]] = {
    cells[0]: cells[1] for cells in sentences("purgatorio_wire.table")
}
"""The sentences of the clauses B..., in the order of their ids: of the cases of the tables, and of whole requests,
futures and records."""
