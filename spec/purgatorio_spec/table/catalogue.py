"""Every decision table, and the clauses that no table has: what a request as a whole, or a future, promises."""

from __future__ import annotations

from typing import Final, Protocol

from purgatorio_spec.table import fetch, produce
from purgatorio_spec.table.delete_records import DELETE_RECORDS
from purgatorio_spec.table.fetch import FETCH
from purgatorio_spec.table.group import HEARTBEAT, JOIN, JOIN_TIMEOUT, SYNC
from purgatorio_spec.table.produce import PRODUCE
from purgatorio_spec.table.remote import REMOTE_ANSWER, REMOTE_FETCH, REMOTE_OFFSETS
from purgatorio_spec.table.share_fetch import OTHER_SHARE_CLAUSES, SHARE_FETCH, SHARE_READ, SHARE_REMOTE
from purgatorio_spec.table.topics import CREATE, DELETE, ELECT

__all__ = ["OTHER_CLAUSES", "TABLES", "page"]


class Table(Protocol):
    """A decision table of any kind."""

    @property
    def operation(self) -> str:
        """Whose table it is."""

    def check(self) -> dict[str, int]:
        """How many situations each case decides."""

    def markdown(self) -> str:
        """The table."""


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
    "B761": "a threshold is reached by every value that is not below it; in order of threshold, then of age",
    "B762": "a threshold that is not reached fails at its time-out and not before",
    "B763": "all thresholds can be completed, or failed, at once",
    "B764": "a future that somebody else decided is not counted any more",
    **OTHER_SHARE_CLAUSES,
    "B215": "what a fetch that waited is answered is what one that did not wait would be: the request's own isolation, "
    "epochs and maxima hold for both",
    "B408": "what the end of a rebalance, or of a session, has queued is run, though no request comes",
    "B801": "a request is answered once, with every partition it named, in its order",
    "B802": "where no partition is left to ask for, at once",
    "B803": "acks=0 is answered by nothing; an error closes the connection",
    "B804": "the throttle time is the larger of the two",
    "B805": "what a request made ready has been completed when its handling returns",
    "B806": "a fetch merges refused partitions as a produce does",
}


def page() -> str:
    """All of it in Markdown, a section a table."""
    sections = [f"### {table.operation}\n\n{table.markdown()}" for table in TABLES]
    rows = [f"| {clause} | {sentence} |" for clause, sentence in sorted(OTHER_CLAUSES.items())]
    other = "\n".join(["| clause | promise |", "| --- | --- |", *rows]) + "\n"
    return "\n".join([*sections, f"### Beyond the tables\n\n{other}"])
