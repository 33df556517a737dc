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
X1 | the broker sends exactly one response for each request, and no response without a request; a Produce request \
with acks=0 gets no response
X2 | the broker handles the requests of a connection one at a time and sends the responses in request order
X3 | each response can be decoded in the version of its request; the broker answers every version that ApiVersions \
lists
X4 | a response contains each topic and partition of the request once; an unknown topic or partition gets \
UNKNOWN_TOPIC_OR_PARTITION (3)
F1 | while fewer than min_bytes are available, a Fetch is not answered before max_wait_ms has passed
F2 | a Fetch is answered within max_wait_ms
F3 | if an append satisfies a waiting Fetch, the broker answers the Fetch no later than it acknowledges the append; \
the Fetch response contains the appended record | as Kafka
F4 | a Fetch is answered at once if min_bytes are available, if min_bytes=0, or if max_wait_ms=0
F5 | a Fetch that reaches max_wait_ms returns the data that is available
F6 | a Fetch gets its error at once in four cases: fetch offset out of range, unknown leader epoch, unknown topic id, \
unknown fetch session; if the fetch offset is after the end offset of last_fetched_epoch, the Fetch response comes at \
once and contains this end offset | as Kafka
F7 | min_bytes and max_bytes apply to the sum over all partitions; the response takes records from the partitions in \
request order; in a fetch session, a partition whose records did not fit into one response comes in a later response
F8 | when a topic is deleted, the broker answers the Fetch and Produce requests that wait on this topic, with an \
error | as Kafka
F9 | a consumer's Fetch waits for the high watermark and returns only records below the high watermark
M1 | a Produce with acks=1 or acks=-1 is answered; base offsets increase; an acknowledged record can be fetched at \
once; a corrupt batch gets CORRUPT_MESSAGE (2)
M2 | the records of a Produce with acks=0 are appended, and the Produce gets no response; if the append is refused, \
the broker closes the connection, otherwise the connection stays open
M3 | a Produce with acks other than -1, 0 or 1 gets INVALID_REQUIRED_ACKS (21)
M4 | while fewer replicas than min.insync.replicas are in sync, a Produce with acks=-1 is refused at once, and a \
Produce with acks=1 is accepted; a replica that has caught up is in sync again
M5 | while a stopped replica is in the in-sync set, a Produce with acks=-1 gets REQUEST_TIMED_OUT (7) at timeout_ms, \
not before
M6 | a Produce with acks=-1 that waits for a stopped replica is answered soon after the replica resumes; if the \
in-sync set shrinks and the other replicas suffice, the Produce is answered soon after that | as Kafka
M7 | if an idempotent producer sends a batch again, the broker acknowledges the batch again, but stores it only \
once; a batch out of sequence gets OUT_OF_ORDER_SEQUENCE_NUMBER (45) | KIP-98
R1 | a read_committed Fetch returns no records of an open transaction; records of an open transaction do not \
complete a waiting read_committed Fetch | KIP-98
R2 | a transaction ends soon after EndTxn or after its transaction timeout; when the transaction ends, the broker \
answers the requests that wait for this end | as Kafka
R3 | a read_committed Fetch returns all records below the last stable offset and lists the aborted transactions \
among these records | KIP-98
R4 | the last stable offset is the first offset of the earliest open transaction; if no transaction is open, the \
last stable offset equals the high watermark | KIP-98
R5 | InitProducerId for a transactional id in use returns a greater epoch, fences the former producer and aborts the \
open transaction of this producer | KIP-98
R6 | a transaction ends once; EndTxn without a transaction gets INVALID_TXN_STATE (48); a request for another \
producer's transaction gets INVALID_PRODUCER_ID_MAPPING (49) | KIP-98
R7 | offsets sent with a transaction become visible when the transaction commits, unless a later OffsetCommit has \
replaced these offsets; with require_stable, OffsetFetch gets UNSTABLE_OFFSET_COMMIT (88) until the transaction ends \
| KIP-447
A1 | a created topic exists, has an id, and its partitions have leaders; creating an existing topic, or using wrong \
arguments, gets an error; no CreateTopics request waits until its timeout
A2 | a deleted topic is not found by name or by id; no DeleteTopics request waits until its timeout
A3 | CreatePartitions increases the number of partitions to the requested count; a count that is not larger gets \
INVALID_PARTITIONS (37)
D1 | DeleteRecords returns the low watermark, or REQUEST_TIMED_OUT (7) at its timeout; a Fetch below the low \
watermark gets OFFSET_OUT_OF_RANGE (1); a deletion beyond the end of the log gets OFFSET_OUT_OF_RANGE (1)
L1 | ListOffsets returns the earliest offset, the offset for a timestamp, and an end offset above every acknowledged \
record; an unknown leader epoch gets an error
E1 | ElectLeaders is answered when the preferred replica is the leader; if the preferred replica was the leader \
before the request, the response is ELECTION_NOT_NEEDED (84); if the partition does not exist, the response is \
UNKNOWN_TOPIC_OR_PARTITION (3) | KIP-460
G0 | a JoinGroup without a member id gets MEMBER_ID_REQUIRED (79) and a new member id at once; with this id the \
member can join | KIP-394
G1 | the first rebalance of an empty group lasts the declared initial delay; if members keep joining, the rebalance \
lasts longer
G2 | a generation has one leader and one protocol; every member supports this protocol; only the leader receives the \
members and their metadata
G3 | a rebalance increases the generation by one; heartbeats during a rebalance get REBALANCE_IN_PROGRESS (27); a \
leader that joins again starts a rebalance
G4 | a JoinGroup waits until all members have rejoined, and all clients that got a new member id have joined; then all \
JoinGroup requests are answered
G5 | a SyncGroup waits for the leader's SyncGroup, and then returns the member's assignment; if another rebalance \
starts first, the SyncGroup returns REBALANCE_IN_PROGRESS (27)
G6 | a member that has not rejoined by the rebalance timeout is removed, and gets UNKNOWN_MEMBER_ID (25); the other \
JoinGroup requests are answered at the rebalance timeout, not before
G7 | a member that sends nothing for its session timeout is removed when the session timeout ends, not before; \
rebalances no longer wait for this member
G8 | a LeaveGroup starts a rebalance at once | as Kafka
G9 | a request with a wrong generation (22 ILLEGAL_GENERATION), a wrong member id (25 UNKNOWN_MEMBER_ID) or a wrong \
protocol (23 INCONSISTENT_GROUP_PROTOCOL) is refused at once; an OffsetCommit before the SyncGroup is refused at \
once with 27 REBALANCE_IN_PROGRESS
G10 | a member whose heartbeats arrive in time stays in the group
G11 | a static member that returns keeps its place and its assignment, and its former member id gets \
FENCED_INSTANCE_ID (82); a static member that only closes its connection keeps its place until its session timeout | \
KIP-345
G12 | an OffsetCommit is accepted from a member; if the group has no members, an OffsetCommit is accepted from any \
client; OffsetFetch returns every committed offset until the offset is replaced or deleted
G13 | DescribeGroups returns the state of the group, the members and their metadata; deleting a group with members \
gets NON_EMPTY_GROUP (68)
S1 | a ShareFetch that finds no record to acquire gets an empty response at max_wait_ms, not before | KIP-932
S2 | a ShareFetch that finds records to acquire, or has max_wait_ms=0, is answered at once; when records are \
appended, the broker answers a waiting ShareFetch with these records | as Kafka
S3 | acquired records are delivered to one member only; the delivery count of a record is 1 at first, and grows by 1 \
with each delivery, up to the broker's limit | KIP-932
S4 | a record that was accepted or rejected is not delivered again | KIP-932
S5 | a released record can be acquired again, even if the rest of its batch cannot be acquired; a new ShareFetch \
gets the released record at once; a waiting ShareFetch gets the released record no later than its max_wait_ms | \
KIP-932
S6 | a member can acknowledge only the records that this member has acquired; other records get INVALID_RECORD_STATE \
(121) | KIP-932
S7 | an acquisition lock ends at the time that the response declares, not before; when an acquisition lock ends, a \
waiting ShareFetch is answered | KIP-932
S8 | when a share session ends or its connection closes, the acquired records can be acquired again; a waiting \
ShareFetch gets these records no later than its max_wait_ms | as Kafka
S9 | an unknown share session gets SHARE_SESSION_NOT_FOUND (122) at once; a session epoch that is not the next epoch \
gets INVALID_SHARE_SESSION_EPOCH (123) at once | KIP-932
C1 | if a connection closes while its requests wait, the broker releases the resources of these requests no later \
than their max_wait_ms; meanwhile the broker serves other connections; a client that does not read its responses \
does not delay other clients | as Kafka
Q1 | a client above its quota gets a throttle time; the next request of its connection is answered after the \
throttle time, not before | KIP-219
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
