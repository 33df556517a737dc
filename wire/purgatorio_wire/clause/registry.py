"""The clauses of the wire by id: the sentence of each and its basis, such as a KIP."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES, PROMISES_BY_PROFILE
from purgatorio_wire.table.catalogue import broker_clauses
from purgatorio_wire.trace.record import PROFILE


@dataclass(frozen=True, slots=True)
class WireClause:
    """A promise of a broker to its clients.

    `basis`: the protocol guide or a KIP states it (`documented`, `KIP-...`), or Apache Kafka behaves so and clients
    rely on it (`as Kafka`). A promise that Apache Kafka itself breaks is not a clause.
    """

    id: str
    promise: str
    basis: str = "documented"


_TABLE: Final = """\
X1 | the broker sends exactly one response for each request, and none for a request that was not sent; \
a Produce request with acks=0 gets none
X2 | the broker handles the requests of a connection one at a time and sends the responses in request order
X3 | each response decodes in the version of its request; the broker answers every version that ApiVersions lists
X4 | a response contains each topic and partition of its request once; a topic or partition that does not exist gets \
UNKNOWN_TOPIC_OR_PARTITION (3)
F1 | a Fetch without min_bytes available is answered only when max_wait_ms has passed or an append provides them, \
whichever is first
F2 | a Fetch is answered within max_wait_ms
F3 | an append that satisfies a waiting Fetch answers it before or when the append is \
acknowledged; the Fetch response contains the appended record | as Kafka
F4 | a Fetch that has min_bytes available, or min_bytes=0, or max_wait_ms=0, is answered at once
F5 | a Fetch that reaches max_wait_ms returns the data that is available
F6 | a Fetch with an offset out of range, an unknown leader epoch, an unknown topic id or an unknown fetch session \
gets its error at once; a Fetch with an offset after the end of its last_fetched_epoch gets that end at once | as Kafka
F7 | min_bytes and max_bytes count over all partitions; partitions are filled in request order; \
in a fetch session, a partition without room in one response gets its turn later
F8 | deleting a topic answers the Fetch and Produce requests that wait for it, with an error | as Kafka
F9 | a consumer's Fetch waits for the high watermark and returns only records below it
M1 | a Produce with acks=1 or acks=-1 is answered, base offsets increase, and an acknowledged record can be fetched \
at once; a corrupt batch gets CORRUPT_MESSAGE (2)
M2 | a Produce with acks=0 gets no response and its records are appended; the connection stays open, \
or is closed if the append is refused
M3 | a Produce with acks other than -1, 0 or 1 gets INVALID_REQUIRED_ACKS (21)
M4 | with fewer replicas in sync than min.insync.replicas, acks=-1 is refused at once and acks=1 is accepted; \
a replica that catches up is in sync again
M5 | while a replica is stopped, a Produce with acks=-1 gets REQUEST_TIMED_OUT (7) at timeout_ms, not before
M6 | a Produce with acks=-1 that waits for a stopped replica is answered soon after the replica continues, \
or after the in-sync set shrinks and the other replicas suffice | as Kafka
M7 | a batch that an idempotent producer sends again is acknowledged and stored once; a batch out of sequence gets \
OUT_OF_ORDER_SEQUENCE_NUMBER (45) | KIP-98
R1 | a read_committed Fetch returns no records of an open transaction, and such records do not complete a \
waiting Fetch | KIP-98
R2 | a transaction ends soon after EndTxn or its transaction timeout; when it ends, the broker answers the requests \
that wait for its end | as Kafka
R3 | a read_committed Fetch returns all records below the last stable offset and lists the aborted transactions \
among them | KIP-98
R4 | the last stable offset is the first offset of the earliest open transaction; without one it equals the high \
watermark | KIP-98
R5 | InitProducerId for a transactional id in use returns a greater epoch, fences the former producer and aborts \
its open transaction | KIP-98
R6 | a transaction ends once; EndTxn without a transaction gets INVALID_TXN_STATE (48); a request for another \
producer's transaction gets INVALID_PRODUCER_ID_MAPPING (49) | KIP-98
R7 | offsets sent with a transaction become visible when it commits, unless a later OffsetCommit replaced \
them; with require_stable, OffsetFetch gets UNSTABLE_OFFSET_COMMIT (88) until the transaction ends | KIP-447
A1 | a created topic exists, has an id, and its partitions have leaders; creating it again, or with wrong \
arguments, gets an error; no CreateTopics waits for its timeout
A2 | a deleted topic is gone, by name and by id; DeleteTopics does not wait for its timeout
A3 | CreatePartitions increases a topic to the requested count; a count that is not larger gets INVALID_PARTITIONS (37)
D1 | DeleteRecords returns the low watermark, or REQUEST_TIMED_OUT (7) at its timeout; a Fetch below the low \
watermark, and a deletion beyond the end, get OFFSET_OUT_OF_RANGE (1)
L1 | ListOffsets returns the earliest offset, the offset for a timestamp, and an end offset above every acknowledged \
record; an unknown leader epoch gets an error
E1 | ElectLeaders is answered when the preferred replica leads; it gets ELECTION_NOT_NEEDED (84) if that replica leads \
already, and UNKNOWN_TOPIC_OR_PARTITION (3) if the partition does not exist | KIP-460
G0 | a JoinGroup without a member id gets MEMBER_ID_REQUIRED (79) with an id at once; the member can join with that \
id | KIP-394
G1 | the first rebalance of an empty group lasts the declared initial delay, and longer while members keep joining
G2 | a generation has one leader and one protocol, which all members support; only the leader receives the members \
and their metadata
G3 | a rebalance increases the generation by one; heartbeats during it get REBALANCE_IN_PROGRESS (27); \
a leader that joins again starts a rebalance
G4 | a JoinGroup waits for members that have not rejoined, and for new member ids that have not joined yet; \
when the last has joined, all JoinGroup requests are answered
G5 | a SyncGroup waits for the leader's SyncGroup; it then returns the member's assignment, or \
REBALANCE_IN_PROGRESS (27) if another rebalance starts first
G6 | a member that has not rejoined by the rebalance timeout is removed: UNKNOWN_MEMBER_ID (25); the other JoinGroup \
requests are answered at that moment, not before
G7 | a member that sends nothing for its session timeout is removed at that moment, not before; \
rebalances no longer wait for it
G8 | a LeaveGroup starts a rebalance at once | as Kafka
G9 | a wrong generation (22 ILLEGAL_GENERATION), member id (25 UNKNOWN_MEMBER_ID) or protocol (23 \
INCONSISTENT_GROUP_PROTOCOL) is refused at once; so is an OffsetCommit before the sync (27 REBALANCE_IN_PROGRESS)
G10 | a member whose heartbeats arrive in time stays in the group
G11 | a static member that returns keeps its place and its assignment, and its former member id gets \
FENCED_INSTANCE_ID (82); a static member that only closes its connection keeps its place until its \
session timeout | KIP-345
G12 | OffsetCommit of a member, or of any client if the group has no members, is accepted; OffsetFetch returns every \
committed offset until it is committed again or deleted
G13 | DescribeGroups returns the group's state, its members and their metadata; deleting a group with members gets \
NON_EMPTY_GROUP (68)
S1 | a ShareFetch with no record to acquire returns empty at max_wait_ms, not before | KIP-932
S2 | a ShareFetch with records to acquire, or max_wait_ms=0, is answered at once; an append answers a waiting \
ShareFetch with its records | as Kafka
S3 | acquired records are delivered to one member only; their delivery count is 1, and grows by 1 with each \
delivery, up to the broker's limit | KIP-932
S4 | a record that was accepted or rejected is not delivered again | KIP-932
S5 | a released record can be acquired again, even if the rest of its batch cannot: a new ShareFetch gets it at \
once; a waiting ShareFetch gets it no later than its max_wait_ms | KIP-932
S6 | a member can acknowledge only the records that it has acquired; other records get \
INVALID_RECORD_STATE (121) | KIP-932
S7 | an acquisition lock ends at the time that the response declares, not before; the end of the lock answers \
a waiting ShareFetch | KIP-932
S8 | when a share session ends or its connection closes, its acquired records can be acquired again: a waiting \
ShareFetch gets them no later than its max_wait_ms | as Kafka
S9 | an unknown share session gets SHARE_SESSION_NOT_FOUND (122), a session epoch that is not the next gets \
INVALID_SHARE_SESSION_EPOCH (123); both come at once | KIP-932
C1 | if a connection closes while its requests wait, the broker releases their resources no later than their \
max_wait_ms; other connections are served meanwhile; a client that does not read its responses does not delay other \
clients | as Kafka
Q1 | a client above its quota gets a throttle time; the next request of its connection is answered after that time, \
not before | KIP-219
O1 | a waiting request is answered exactly once | as in a purgatory
O4 | a waiting request that an append satisfied does not wait for its max_wait_ms | as in a purgatory
O5 | every waiting request with a timeout has been answered when the run ends | as in a purgatory
T1 | a waiting request does not expire before its max_wait_ms or timeout_ms | as in a purgatory
T2 | a waiting request expires no later than its max_wait_ms or timeout_ms plus the declared lateness \
| as in a purgatory
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
