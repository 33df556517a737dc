"""Every decision table, and the clauses that no table has: what a request as a whole, or a future, promises."""

from typing import Final, Protocol

from purgatorio_wire.table import fetch, produce
from purgatorio_wire.table.fetch import FETCH
from purgatorio_wire.table.group import HEARTBEAT, JOIN, JOIN_TIMEOUT, SYNC
from purgatorio_wire.table.produce import DELETE_RECORDS, PRODUCE
from purgatorio_wire.table.remote import REMOTE_ANSWER, REMOTE_FETCH, REMOTE_OFFSETS
from purgatorio_wire.table.share_fetch import OTHER_SHARE_CLAUSES, SHARE_FETCH, SHARE_READ, SHARE_REMOTE
from purgatorio_wire.table.topics import CREATE, DELETE, ELECT


class Table(Protocol):
    """A decision table of any kind."""

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
    "B307": "a delete-records request completes when none of its partitions waits",
    "B751": "futures that are all done are not waited for: the caller is called back at once",
    "B752": "the last future's completion calls back on the executor, not on the completing thread",
    "B753": "at the time-out what is not done fails with a time-out, what is done keeps its value",
    **OTHER_SHARE_CLAUSES,
    "B215": "a fetch that waited is answered as if it had not: with the isolation, epochs and maxima of its request",
    "B409": "an offset commit of a member is a sign of life; it is refused for another generation, and while a "
    "generation is beginning",
    "B410": "a join whose session time-out is out of bounds, or none of whose protocols all other members have, is "
    "refused, and changes nothing",
    "B408": "what the end of a rebalance, or of a session, has queued is run, though no request comes",
    "B801": "a request is answered once, with every partition it named, in its order",
    "B802": "where no partition is left to ask for, at once",
    "B803": "acks=0 is answered by nothing; an error closes the connection",
    "B805": "what a request made ready has been completed when its handling returns",
    "B806": "a fetch merges refused partitions as a produce does",
}
