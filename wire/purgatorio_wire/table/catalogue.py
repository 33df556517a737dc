"""Every decision table, and the clauses outside of the tables, about whole requests and futures."""

from functools import cache
from typing import Final, Protocol

from purgatorio_wire.table import fetch, produce
from purgatorio_wire.table.fetch import FETCH
from purgatorio_wire.table.group import HEARTBEAT, JOIN, JOIN_TIMEOUT, SYNC
from purgatorio_wire.table.produce import DELETE_RECORDS, PRODUCE
from purgatorio_wire.table.remote import REMOTE_ANSWER, REMOTE_FETCH, REMOTE_OFFSETS
from purgatorio_wire.table.share_fetch import OTHER_SHARE_CLAUSES, SHARE_FETCH, SHARE_READ, SHARE_REMOTE
from purgatorio_wire.table.topics import CREATE, DELETE, ELECT


class Table(Protocol):
    @property
    def operation(self) -> str:
        """Whose table it is."""

    def check(self) -> dict[str, int]:
        """How many situations each case decides."""

    def sentences(self) -> dict[str, str]:
        """What each case promises, by clause."""


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

OTHER_CLAUSES: Final[dict[str, str]] = {
    **produce.REQUEST_CLAUSES,
    **fetch.REQUEST_CLAUSES,
    "B307": "a DeleteRecords request completes when no partition of it waits",
    "B751": "if all futures are done at the start, the callback runs at once",
    "B752": "when the last future completes, the callback runs on the executor, not on the thread that completed it",
    "B753": "at the timeout a future that is not done fails with a timeout error; one that is done keeps its value",
    **OTHER_SHARE_CLAUSES,
    "B215": "a fetch that waited returns what a new fetch would return, by the isolation level, epochs and maximum "
    "sizes of its request",
    "B409": "an OffsetCommit of a member extends its session; it is refused for another generation, and before the "
    "members of a new generation have synced",
    "B410": "a JoinGroup whose session timeout is out of bounds, or that has no protocol supported by all other "
    "members, is refused and changes nothing",
    "B408": "actions that a finished rebalance or an expired session has queued are run even if no further request "
    "arrives",
    "B801": "a request gets one response, with every partition that it named, in its order",
    "B802": "a request that has no partition left to check is answered at once",
    "B803": "a Produce with acks=0 gets no response; an error closes its connection",
    "B805": "operations that a request makes ready are completed before the request handler returns",
    "B806": "a Fetch response contains the refused partitions too, as a Produce response does",
}


@cache
def broker_clauses() -> dict[str, str]:
    """The clauses B..., in the order of their ids."""
    cases = {clause: sentence for table in TABLES for clause, sentence in table.sentences().items()}
    return dict(sorted({**cases, **OTHER_CLAUSES}.items()))
