"""The clauses of the wire under their ids: sentence, and on what ground it is asked."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES, PROMISES_BY_PROFILE
from purgatorio_wire.table.catalogue import broker_clauses
from purgatorio_wire.trace.record import PROFILE


@dataclass(frozen=True, slots=True)
class WireClause:
    """A promise. `basis`: the protocol guide or a KIP says so (`documented`, `KIP-...`), or real Kafka does it and
    clients rely on it (`as Kafka`). What real Kafka does not keep is no clause."""

    id: str
    promise: str
    basis: str = "documented"


_TABLE: Final = """\
X1 | exactly one answer a request, and none that was not asked for (acks 0: none)
X2 | the answers of a connection come in the order of its requests, which are dealt with one at a time
X3 | every answer decodes in the version that was asked, and every version that ApiVersions offers is answered
X4 | an answer speaks of all that its request names, once, and of what is not there by an error (3)
F1 | a fetch without enough data is not answered before max_wait, nor before the append that makes it ready
F2 | a fetch is answered by max_wait
F3 | an append that makes a waiting fetch ready answers it by its acknowledgement, with the record in it | as Kafka
F4 | with enough data, or min_bytes 0, or max_wait 0, a fetch is answered at once
F5 | at max_wait a fetch is answered with what is there
F6 | an offset out of range or beyond its epoch, an unknown epoch, topic or session: at once, and told so | as Kafka
F7 | min_bytes and max_bytes count over all partitions; what has no room comes in order; in a session all have turns
F8 | a deleted topic answers the fetches and appends that wait for it, with an error | as Kafka
F9 | a consumer's fetch waits for the high watermark
M1 | acks 1 and -1 are answered, offsets grow, and what is taken can be fetched at once; a corrupt batch is refused (2)
M2 | acks 0 is answered by nothing and appended, and the connection goes on, or is closed if it is refused
M3 | acks other than -1, 0, 1 are refused: INVALID_REQUIRED_ACKS (21)
M4 | acks -1 below min.insync.replicas is refused at once, acks 1 is not; who is back is in sync again
M5 | with a replica stopped, acks -1 is answered REQUEST_TIMED_OUT (7) at its time-out, not before
M6 | acks -1 is answered promptly after the replica goes on, or is given up where the others are enough | as Kafka
M7 | what an idempotent producer sends again is acknowledged where it is, once; out of order it is refused (45) | KIP-98
R1 | who reads what is committed is not shown an open transaction, nor answered for what comes of one | KIP-98
R2 | a transaction ends soon when it is asked to, or is open for too long, and answers who waits for it | as Kafka
R3 | who reads what is committed is given all that is decided, and told what of it was aborted | KIP-98
R4 | the last stable offset is where the first open transaction begins; without one it is the high watermark | KIP-98
R5 | who takes a transactional id over has a greater epoch; who had it is fenced, what that had open aborted | KIP-98
R6 | a transaction ends once; to end none (48), or to add to or end a stranger's (49), is refused | KIP-98
R7 | a transaction's offsets are told once it commits, unless others came behind; stable ones wait (88) | KIP-447
A1 | a created topic is there, with an id, and leads; a second or wrong creation is told so; none waits for its time-out
A2 | a deleted topic is gone, by its id too, and its deletion not left to its time-out
A3 | a topic grows to as many partitions as are asked for, and to no fewer than it has (37)
D1 | DeleteRecords says the low watermark, or 7 at its time-out; OFFSET_OUT_OF_RANGE (1) below it, and beyond the end
L1 | ListOffsets says where a partition begins, by time too, and ends behind what is acknowledged; in no unknown epoch
E1 | an election that is not needed says so (84), one of an unknown topic or partition too (3) | KIP-460
G0 | a join without a member id is sent one at once (79), and may join with it | KIP-394
G1 | the first generation of an empty group waits for the declared initial delay, and longer where others come
G2 | one generation, one leader, who alone is told all members and what they gave; one protocol that all have
G3 | a rebalance raises the generation by one, and heartbeats then say so (27); a leader that joins again begins one
G4 | a join waits for members that have not rejoined and who was given an id; all are answered when the last has
G5 | a sync waits for the leader's, and is answered by it with its assignment, or by the next rebalance (27)
G6 | who has not rejoined by the rebalance time-out is out (25); the others are answered then, not before
G7 | who is not heard of for its session time-out is out then, not before, and is waited for no longer
G8 | a member that leaves starts a rebalance at once | as Kafka
G9 | a wrong generation (22), an unknown member (25) or protocol (23), and an early commit (27) are refused at once
G10 | a member that is heard of stays
G11 | a static member that is back keeps place and share, its former id is fenced (82); an absent one stays | KIP-345
G12 | what a member commits, or anybody without members, is taken, and told, all of it, until committed anew or deleted
G13 | who asks about a group is told its state, its members and what they gave; with members it is not deleted (68)
S1 | a share fetch with nothing to acquire is answered at max_wait, empty, and not before | KIP-932
S2 | with records to acquire, or max_wait 0, it is answered at once; an append answers who waits, with them | as Kafka
S3 | what a member acquires comes with its records, to nobody else, and is counted: 1, and 1 more each time | KIP-932
S4 | what was accepted or rejected is never given to anybody again | KIP-932
S5 | what a member releases is given again, a part of a batch too: to who asks then, at max_wait to who waits | KIP-932
S6 | what a member has acquired it may acknowledge, and no more: INVALID_RECORD_STATE (121) | KIP-932
S7 | an acquisition lock is over at the time that is told, not before, and that answers who waits | KIP-932
S8 | what a share session held is given again when it ends or its connection is cut: at max_wait to who waits | as Kafka
S9 | an unknown share session (122), and an epoch of it that is not the next (123), are refused at once | KIP-932
C1 | connections cut with requests waiting are let go by max_wait; beside them, or one not read, others go on | as Kafka
O1 | of requests that wait, each is answered once | as in a purgatory
O4 | of requests that wait, none that an append made ready is left to its max_wait | as in a purgatory
O5 | of requests that wait, none stays in limbo | as in a purgatory
T1 | of requests that wait, none expires before its max_wait or time-out | as in a purgatory
T2 | of requests that wait, each expires by then | as in a purgatory
"""
WIRE_CLAUSES: Final = {
    one.id: one
    for one in (WireClause(*(cell.strip() for cell in line.split("|"))) for line in _TABLE.splitlines())
}
"""Every clause that is judged from a wire trace, by id."""

PROMISES_BY_PROFILE[PROFILE] = {one.id: one.promise for one in WIRE_CLAUSES.values()}


@cache
def public_clauses() -> dict[str, str]:
    """The clauses of traces, of the code and of the broker, by id; those of the wire are `WIRE_CLAUSES`."""
    traces = {clause.id: clause.promise for clause in CLAUSES.values()}
    return {**traces, **CODE_CLAUSES, **broker_clauses()}
