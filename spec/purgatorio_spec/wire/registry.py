"""The clauses of the wire under their ids: sentence, and on what ground it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["WIRE_CLAUSES", "WireClause", "page"]

DOCUMENTED, AS_KAFKA = "documented", "as Kafka"


@dataclass(frozen=True, slots=True)
class WireClause:
    """A promise. `basis`: the protocol guide or a KIP says so (`documented`, `KIP-...`), or real Kafka does it and
    clients rely on it (`as Kafka`). What real Kafka does not keep is no clause."""

    id: str
    promise: str
    basis: str


WIRE_CLAUSES: Final[dict[str, WireClause]] = {
    one.id: one
    for one in (
        WireClause(
            "X1", "exactly one answer a request, and none that was not asked for (acks 0: none)", DOCUMENTED
        ),
        WireClause("X2", "the answers of a connection come in the order of its requests", DOCUMENTED),
        WireClause(
            "X3",
            "every answer decodes in the version that was asked, and every version that ApiVersions offers is answered",
            DOCUMENTED,
        ),
        WireClause(
            "F1",
            "a fetch without enough data is not answered before max_wait, nor before the append that makes it ready",
            DOCUMENTED,
        ),
        WireClause("F2", "a fetch is answered by max_wait", DOCUMENTED),
        WireClause(
            "F3",
            "an append that makes a waiting fetch ready answers it by its acknowledgement, with the record in it",
            AS_KAFKA,
        ),
        WireClause(
            "F4", "with enough data, or min_bytes 0, or max_wait 0, a fetch is answered at once", DOCUMENTED
        ),
        WireClause("F5", "at max_wait a fetch is answered with what is there", DOCUMENTED),
        WireClause(
            "F6",
            "an offset out of range, an unknown leader epoch, an unknown topic alone: at once, with that error",
            AS_KAFKA,
        ),
        WireClause("F7", "min_bytes counts over all partitions of the request", DOCUMENTED),
        WireClause("F8", "a deleted topic answers the fetches that wait for it, with an error", AS_KAFKA),
        WireClause("F9", "a consumer's fetch waits for the high watermark", DOCUMENTED),
        WireClause(
            "P1",
            "acks 1 and -1 are answered, offsets grow, and what is acknowledged can be fetched at once",
            DOCUMENTED,
        ),
        WireClause("P2", "acks 0 is answered by nothing, and the connection goes on", DOCUMENTED),
        WireClause("P3", "acks other than -1, 0, 1 are refused: INVALID_REQUIRED_ACKS (21)", DOCUMENTED),
        WireClause("P4", "acks -1 below min.insync.replicas is refused at once, acks 1 is not", DOCUMENTED),
        WireClause(
            "P5",
            "with a replica stopped, acks -1 is answered REQUEST_TIMED_OUT (7) at its time-out, not before",
            DOCUMENTED,
        ),
        WireClause("P6", "acks -1 is answered promptly after the replica goes on", AS_KAFKA),
        WireClause("A1", "a created topic is there, and a second creation says so (36)", DOCUMENTED),
        WireClause("A2", "a deleted topic is gone", DOCUMENTED),
        WireClause(
            "A3",
            "a topic grows to as many partitions as are asked for, and to no fewer than it has (37)",
            DOCUMENTED,
        ),
        WireClause(
            "D1",
            "DeleteRecords says the low watermark; OFFSET_OUT_OF_RANGE (1) below it, and for an offset beyond the end",
            DOCUMENTED,
        ),
        WireClause(
            "L1",
            "ListOffsets says where a partition begins, and that it ends behind what is acknowledged",
            DOCUMENTED,
        ),
        WireClause(
            "E1", "an election that is not needed says so (84), one of an unknown topic too (3)", "KIP-460"
        ),
        WireClause("G0", "a join without a member id is sent one at once (79)", "KIP-394"),
        WireClause(
            "G1", "the first generation of an empty group waits for the declared initial delay", DOCUMENTED
        ),
        WireClause("G2", "one generation, one leader, who alone is told all members", DOCUMENTED),
        WireClause("G3", "a rebalance raises the generation by one, and heartbeats say so (27)", DOCUMENTED),
        WireClause(
            "G4",
            "a join waits for the members that have not rejoined, and all are answered when the last has",
            DOCUMENTED,
        ),
        WireClause(
            "G5", "a sync waits for the leader's, and is answered by it with its assignment", DOCUMENTED
        ),
        WireClause(
            "G6",
            "who has not rejoined by the rebalance time-out is out (25); the others are answered then, not before",
            DOCUMENTED,
        ),
        WireClause("G7", "who is not heard of for its session time-out is out then, not before", DOCUMENTED),
        WireClause("G8", "a member that leaves starts a rebalance at once", AS_KAFKA),
        WireClause("G9", "a wrong generation (22) or an unknown member (25) is refused at once", DOCUMENTED),
        WireClause("G10", "a member that is heard of stays", DOCUMENTED),
        WireClause(
            "G11",
            "a static member that comes back keeps its place, in the same generation, and its former id is fenced (82)",
            "KIP-345",
        ),
        WireClause(
            "C1",
            "connections cut with requests waiting are let go by their max_wait, and the broker goes on",
            AS_KAFKA,
        ),
        *(
            WireClause(clause, f"of requests that wait, {sentence}", "as in a purgatory")
            for clause, sentence in {
                "O1": "each is answered once",
                "O4": "none that an append made ready is left to its max_wait",
                "O5": "none stays in limbo",
                "T1": "none expires before its max_wait or time-out",
                "T2": "each expires by then",
            }.items()
        ),
    )
}
"""Every clause that is judged from a wire trace, by id."""


def page() -> str:
    """The clauses as a table in Markdown."""
    rows = "\n".join(f"| {one.id} | {one.promise} | {one.basis} |" for one in WIRE_CLAUSES.values())
    return f"| clause | promise | basis |\n| --- | --- | --- |\n{rows}\n"
