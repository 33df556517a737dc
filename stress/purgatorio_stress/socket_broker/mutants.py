"""Bugs that a client can feel, to be put into the broker behind the socket: what `purgatorio wire` must convict.

Each names the clause (or one of the clauses) of the wire that must be the one to convict it. A bug is a patch of one
function of the reference, or of the front; where the kill matrix has the bug already, its patch is taken from there.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from select import select
from socket import MSG_PEEK, socket
from typing import Final, cast

from kio.schema.errors import ErrorCode

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.delayed.watchers import Watchers
from purgatorio_broker import delayed_delete_records, delayed_produce, group_coordinator
from purgatorio_broker.delayed_fetch import DelayedFetch
from purgatorio_broker.delayed_group import DelayedJoin, DelayedSync, InitialDelayedJoin
from purgatorio_broker.delayed_produce import DelayedProduce, ProduceResult
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.group import Group, GroupState, JoinCallback, JoinResult, Member
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Log
from purgatorio_broker.partition import NOTHING_READ, Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.request import Gatekeeper, RequestLayer
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.share_fetches import ShareFetches
from purgatorio_broker.share_partition import SharePartition
from purgatorio_broker.topics import DelayedTopics, Metadata, Topics
from purgatorio_stress.mutant.catalogue import MUTANTS as KILL_MATRIX
from purgatorio_stress.mutant.patch import Patch, edited
from purgatorio_stress.socket_broker import (
    api,
    data_requests,
    group_requests,
    record_batch,
    sequences,
    server,
    share_requests,
    topic_requests,
    transaction_requests,
)
from purgatorio_stress.socket_broker.cluster import Cluster
from purgatorio_stress.socket_broker.data_requests import _Fetched, _Produced
from purgatorio_stress.socket_broker.fetch_sessions import FetchSession, FetchSessions, Place
from purgatorio_stress.socket_broker.fields import Fields
from purgatorio_stress.socket_broker.follower import Follower
from purgatorio_stress.socket_broker.node import Node, Note
from purgatorio_stress.socket_broker.reply import Make, Reply, Request
from purgatorio_stress.socket_broker.sequences import Sequences
from purgatorio_stress.socket_broker.server import Server
from purgatorio_stress.socket_broker.shares import Shares
from purgatorio_stress.socket_broker.transactions import Ending, Transactions
from purgatorio_stress.wire.frame import Frames
from purgatorio_stress.wire.message import read_request, read_request_head

_FETCH, _OFFSET_FETCH, _COORDINATOR, _JOIN, _HEARTBEAT, _LEAVING, _DESCRIBE, _GROW, _ELECT, _SHARE_FETCH = (
    1,
    9,
    10,
    11,
    12,
    13,
    15,
    37,
    43,
    78,
)
_EMPTY: Final = 'self._reply.send(lambda: {"responses": []})'


@dataclass(frozen=True, slots=True)
class FeltMutant:
    """A bug. `clauses`: of the wire; one of them must convict it. `brokers`: how many it takes to feel it."""

    name: str
    what: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    brokers: int = 1


def _nothing(*given: object) -> None:
    """Nothing is done."""


def _never(*given: object) -> bool:
    return False


_ANSWER_FETCH: Final = ReplicaManager._answer_fetch
_TRY_FETCH: Final = DelayedFetch.try_complete

Partitions = Mapping[TopicPartition, FetchPartition]


def _answered_with_old_mark(
    self: ReplicaManager, params: FetchParams, partitions: Partitions, callback: FetchCallback
) -> None:
    def marked(result: FetchResult) -> FetchResult:
        ends, start = result.data.ends, result.data.start
        if ends is None or start is None:
            return result
        return replace(result, data=replace(result.data, ends=replace(ends, high_watermark=start)))

    _ANSWER_FETCH(
        self, params, partitions, lambda found: callback({p: marked(result) for p, result in found.items()})
    )


def _answered_without_error(
    self: ReplicaManager, params: FetchParams, partitions: Partitions, callback: FetchCallback
) -> None:
    def nothing(result: FetchResult) -> FetchResult:
        out = result.error is Error.OFFSET_OUT_OF_RANGE
        return FetchResult(Error.NONE, NOTHING_READ) if out else result

    _ANSWER_FETCH(
        self, params, partitions, lambda found: callback({p: nothing(result) for p, result in found.items()})
    )


_TRIES: Final[dict[int, int]] = {}


def _tried_once(self: DelayedFetch) -> bool:
    """Twice at its registration, once at an event, and no more."""
    tries = _TRIES[id(self)] = _TRIES.get(id(self), 0) + 1
    if self.is_completed() or tries > 3:
        _TRIES.pop(id(self), None) if self.is_completed() else None
        return False
    return _TRY_FETCH(self)


# Bugs of one case among many: one append in fifty, one of several waiters, one state of a group.

_REPLICA_APPEND: Final = ReplicaManager._append
_APPENDS: Final = itertools.count(1)
_LOST_OF: Final = 50


_WAKES_NOBODY: Final = edited(
    ReplicaManager, "_append", "self._check_later(partition)", "pass",
    "self.actions.add(partial(self._fetch.check_and_complete, partition))", "pass",
)  # fmt: skip


def _one_in_fifty_wakes_nobody(*given: object) -> object:
    append = _REPLICA_APPEND if next(_APPENDS) % _LOST_OF else _WAKES_NOBODY.replacement
    return cast("Callable[..., object]", append)(*given)


_STOP: Final = ReplicaManager.stop_replica
_GONE: Final[set[str]] = set()


def _stopped_for_good(self: ReplicaManager, partition: TopicPartition, *, deleted: bool = False) -> None:
    _GONE.add(partition.topic)
    _STOP(self, partition, deleted=deleted)


_GROW_TOPICS: Final = Node._grow
_GROWN: Final[set[TopicPartition]] = set()


def _grown_noted(self: Node, totals: Mapping[str, int]) -> None:
    for name, total in totals.items():
        topic = self.cluster.topic(name)
        had = 0 if topic is None else topic.partitions
        _GROWN.update(TopicPartition(name, number) for number in range(had, total))
    _GROW_TOPICS(self, totals)


def _wakes_nobody_again(self: ReplicaManager, partition: TopicPartition, *given: object) -> object:
    silent = partition.topic in _GONE or partition in _GROWN
    append = _WAKES_NOBODY.replacement if silent else _REPLICA_APPEND
    return cast("Callable[..., object]", append)(self, partition, *given)


# What waits for several things, and connections that come and go.

_SEND: Final = Reply.send
_TRY_WATCHED: Final = Watchers._try
_SPOILT: Final = threading.local()


def _gone(connection: socket) -> bool:
    """Whether its peer has closed it."""
    try:
        return bool(select([connection], [], [], 0)[0]) and not connection.recv(1, MSG_PEEK)
    except OSError:
        return True


def _send_noted(self: Reply, make: Make) -> bool:
    connection = getattr(self, "connection", None)
    _SPOILT.now = connection is not None and _gone(connection)
    return _SEND(self, make)


def _tried_unless_cut(self: Watchers, operation: DelayedOperation) -> bool:
    done = _TRY_WATCHED(self, operation)
    if done and getattr(_SPOILT, "now", False):
        raise ConnectionError("nobody is there any more")
    return done


_PUT: Final = Group.put
_FENCED: Final = group_coordinator._fenced
_ANSWER: Final = Server._answer
_ENDED_CONNECTION: Final = Server._end
_LEFT: Final[list[bytes]] = []
_NEWEST: Final[dict[str, str]] = {}
_BEATEN: Final[dict[socket, tuple[str, str]]] = {}


def _all_time_out(self: DelayedProduce) -> None:
    results = self.results()
    if self.undecided():
        results = {p: replace(r, error=Error.REQUEST_TIMED_OUT) for p, r in results.items()}
    self._callback(results)


class _Pooled(Frames):
    """Begins with what the last one that ended has left."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self._held += _LEFT.pop() if _LEFT else b""

    def __del__(self) -> None:
        _LEFT.append(bytes(self._held))


def _answer_noted(self: Server, connection: socket, frame: bytes) -> bool:
    if int.from_bytes(frame[:2]) == _HEARTBEAT:
        body = Fields(read_request(frame).body)
        _BEATEN[connection] = (body.text("group_id"), body.text("member_id"))
    return _ANSWER(self, connection, frame)


def _end_leaves(self: Server, connection: socket) -> None:
    _ENDED_CONNECTION(self, connection)
    if connection in _BEATEN:
        self._node.groups.leave(*_BEATEN.pop(connection))


def _put_newest(self: Group, member: Member) -> None:
    _NEWEST[member.instance] = member.id
    _PUT(self, member)


def _fenced_by_any_group(group: Group, instance: str, member_id: str) -> bool:
    static = group.instance(instance)
    return _FENCED(group, instance, member_id) or (static is not None and _NEWEST[instance] != static.id)


_MADE_REPLICA: Final = ReplicaManager._replica
_REPLICAS_LEFT: Final[dict[TopicPartition, Partition]] = {}


def _stopped_and_kept(self: ReplicaManager, partition: TopicPartition, *, deleted: bool = False) -> None:
    replica = self.replicas.get(partition)
    if replica is not None:
        _REPLICAS_LEFT[partition] = replica
    _STOP(self, partition, deleted=deleted)


def _made_of_what_was_kept(
    self: ReplicaManager, partition: TopicPartition, segment_bytes: int | None = None
) -> Partition:
    if partition in _REPLICAS_LEFT:
        self.replicas.put(partition, _REPLICAS_LEFT.pop(partition))
    return _MADE_REPLICA(self, partition, segment_bytes)


_DELETED_GROUP: Final = GroupCoordinator.delete
_MADE_GROUP: Final = GroupCoordinator.group
_OFFSETS_LEFT: Final[dict[str, dict[TopicPartition, int]]] = {}


def _deleted_but_for_its_offsets(self: GroupCoordinator, group_id: str) -> Error:
    group = self.known(group_id)
    error = _DELETED_GROUP(self, group_id)
    if group is not None and error is Error.NONE:
        _OFFSETS_LEFT[group_id] = dict(group._offsets.get())
    return error


def _made_with_the_offsets_left(self: GroupCoordinator, group_id: str) -> Group:
    group = _MADE_GROUP(self, group_id)
    group.commit(_OFFSETS_LEFT.pop(group_id, {}))
    return group


_EXPIRED: Final = GroupCoordinator._session_expired
_LEAVE: Final = GroupCoordinator.leave
_NAMES_OUT: Final[set[tuple[str, str]]] = set()


def _expired_but_for_its_name(self: GroupCoordinator, group: Group, member_id: str, pending: bool) -> None:
    with group.lock:
        member = group.get(member_id)
    _EXPIRED(self, group, member_id, pending)
    if member is not None and member.instance and group.instance(member.instance) is None:
        _NAMES_OUT.add((group.id, member.instance))


def _left_but_for_its_name(self: GroupCoordinator, group_id: str, member_id: str) -> Error:
    group = self.known(group_id)
    member = None
    if group is not None:
        with group.lock:
            member = group.get(member_id)
    if member is not None and member.instance:
        _NAMES_OUT.add((group_id, member.instance))
    return _LEAVE(self, group_id, member_id)


def _joined_unless_out(
    self: GroupCoordinator, group_id: str, member_id: str, protocols: tuple[str, ...], callback: JoinCallback,
    **more: object,
) -> None:  # fmt: skip
    if (group_id, more["instance"]) in _NAMES_OUT:
        callback(JoinResult(Error.UNKNOWN_MEMBER_ID, member_id))
        return
    cast("Callable[..., None]", _JOIN_GROUP)(self, group_id, member_id, protocols, callback, **more)


_NEXT_GENERATION: Final = Group.next_generation
_SHARES: Final = Group.shares_a_protocol
_CANDIDATES: Final[dict[str, set[str]]] = {}


def _next_with_candidates(self: Group) -> None:
    _NEXT_GENERATION(self)
    held = [set(one.protocols) for one in self.members()]
    _CANDIDATES[self.id] = set.intersection(*held) if held else set()


def _shares_with_the_generation(self: Group, member_id: str, protocols: tuple[str, ...]) -> bool:
    kept = _CANDIDATES.get(self.id) if self.members() else None
    return not kept.isdisjoint(protocols) if kept else _SHARES(self, member_id, protocols)


_SEND_PRODUCED: Final = _Produced.send
_PRODUCED_LATE_S: Final = 10.0
"""The time-out that the wire's appends ask for."""


def _sent_at_the_time_out(self: _Produced, results: Mapping[TopicPartition, ProduceResult]) -> None:
    if self._refused and any(result.error is Error.NONE for result in results.values()):
        threading.Timer(_PRODUCED_LATE_S, _SEND_PRODUCED, (self, results)).start()
    else:
        _SEND_PRODUCED(self, results)


_JOIN_GROUP: Final = GroupCoordinator.join
_END_REBALANCE: Final = GroupCoordinator._end_rebalance
_JOINED_S: Final[dict[str, float]] = {}


def _join_puts_off(self: GroupCoordinator, group_id: str, *given: object, **more: object) -> None:
    _JOINED_S[group_id] = time.monotonic()
    cast("Callable[..., object]", _JOIN_GROUP)(self, group_id, *given, **more)


def _ends_later(self: GroupCoordinator, group: Group) -> None:
    left_ms = round(group.rebalance_timeout_ms() - 1000 * (time.monotonic() - _JOINED_S[group.id]))
    if left_ms > 0 and group.generation() and not group.all_have_joined():
        self._wait_for_joins(group, left_ms)
    else:
        _END_REBALANCE(self, group)


_GO_ON: Final = FetchSessions.go_on


class _Roomed(Fields):
    """What is asked of a partition, with the room of an earlier request."""

    def __init__(self, entity: object, room: int) -> None:
        super().__init__(entity)
        self._room = room

    def number(self, name: str, default: int = 0) -> int:
        return self._room if name == "partition_max_bytes" else super().number(name, default)


def _with_first_rooms(
    self: FetchSessions,
    session_id: int,
    epoch: int,
    wanted: Mapping[Place, Fields],
    forgotten: Iterable[Place],
) -> FetchSession | ErrorCode:
    session = self._sessions.get(session_id)
    had = {} if session is None else session.wanted
    kept = {
        place: _Roomed(asked._entity, had[place].number("partition_max_bytes")) if place in had else asked
        for place, asked in wanted.items()
    }
    return _GO_ON(self, session_id, epoch, kept, forgotten)


_COMMIT: Final = Group.commit
_KEEP_NOTES: Final = Node.keep_notes
_COMMITTED_ANEW: Final[set[TopicPartition]] = set()


def _committed_anew(self: Group, offsets: Mapping[TopicPartition, int]) -> None:
    _COMMITTED_ANEW.clear()
    _COMMITTED_ANEW.update(partition for partition, at in offsets.items() if self.committed(partition) != at)
    _COMMIT(self, offsets)


def _kept_beside_its_offset(self: Node, group_id: str, notes: Mapping[TopicPartition, Note]) -> None:
    _KEEP_NOTES(self, group_id, {one: note for one, note in notes.items() if one in _COMMITTED_ANEW})


_REMOVE: Final = Group.remove
_REFUSES_JOIN: Final = GroupCoordinator._refuses_join
_FORMER_NAMES: Final[set[tuple[str, str]]] = set()


def _removed_but_for_its_name(self: Group, member: str) -> Member | None:
    gone = _REMOVE(self, member)
    if gone is not None and gone.instance:
        _FORMER_NAMES.add((self.id, gone.instance))
    return gone


def _fails_for_a_former_name(
    self: GroupCoordinator, group: Group, member_id: str, protocols: tuple[str, ...], session_timeout_ms: int,
    instance: str, protocol_type: str,
) -> Error:  # fmt: skip
    if not member_id and group.instance(instance) is None and (group.id, instance) in _FORMER_NAMES:
        return Error.UNKNOWN_SERVER_ERROR
    return _REFUSES_JOIN(self, group, member_id, protocols, session_timeout_ms, instance, protocol_type)


_GREW_ONCE: Final[set[str]] = set()


def _grow_once(self: Node, totals: Mapping[str, int]) -> None:
    _GROW_TOPICS(self, {name: total for name, total in totals.items() if name not in _GREW_ONCE})
    _GREW_ONCE.update(
        name for name, total in totals.items() if self.cluster.has(TopicPartition(name, total - 1))
    )


_LEAVE_GROUP: Final = GroupCoordinator.leave
_LEFT_GROUPS: Final[set[str]] = set()


def _left_with_note(self: GroupCoordinator, group_id: str, member_id: str) -> Error:
    _LEFT_GROUPS.add(group_id)
    return _LEAVE_GROUP(self, group_id, member_id)


def _over_if_left(self: InitialDelayedJoin) -> bool:
    return self._group.id in _LEFT_GROUPS and bool(self._group.members()) and self.force_complete()


_WAIT_FOR_JOINS: Final = GroupCoordinator._wait_for_joins


def _waits_once_more(self: GroupCoordinator, group: Group, timeout_ms: int) -> None:
    """What ends it does not end its time-out."""
    _WAIT_FOR_JOINS(self, group, timeout_ms)
    former = group.generation()

    def again() -> None:
        with group.lock:
            if (
                group.state() is GroupState.STABLE
                and group.generation() > former
                and not group.pending_sync()
            ):
                self._prepare_rebalance(group)

    left = threading.Timer(timeout_ms / 1000, again)
    left.daemon = True
    left.start()


_WRITE_MARKERS: Final = Node._write_markers


def _ended_before_its_markers(self: Node, ending: Ending) -> None:
    self.transactions.ended(ending)
    threading.Timer(1.0, _WRITE_MARKERS, (self, ending)).start()


_ASKED_FOR: Final = threading.local()
_FETCH_ASKED: Final = RequestLayer.fetch
_FETCH_UNDER: Final = cast(
    Callable[..., None],
    edited(
        ReplicaManager,
        "fetch_records",
        "callback: FetchCallback,",
        "callback: FetchCallback, keys,",
        "operation, list(partitions)",
        "operation, keys[:len(partitions)]",
    ).replacement,
)


def _fetched_with_note(
    self: RequestLayer,
    params: FetchParams,
    partitions: Mapping[TopicPartition, FetchPartition],
    send: FetchCallback,
) -> None:
    _ASKED_FOR.keys = list(partitions)
    _FETCH_ASKED(self, params, partitions, send)


def _watched_from_the_first_on(
    self: ReplicaManager,
    params: FetchParams,
    partitions: Mapping[TopicPartition, FetchPartition],
    callback: FetchCallback,
) -> None:
    """As many keys as there are partitions, of all that were asked for."""
    _FETCH_UNDER(self, params, partitions, callback, _ASKED_FOR.keys)


_BEFORE_IT: Final[dict[socket, threading.Thread]] = {}


def _handled_ahead(self: Server, connection: socket, frame: bytes) -> bool:
    """Handled as it comes; its answer waits for those before it."""
    head, reply, before = read_request_head(frame), Reply(), _BEFORE_IT.get(connection)
    request = Request(head.version, head.client or "", Fields(read_request(frame).body), reply)
    api.APIS[head.api].handle(self._node, request)

    def answer() -> None:
        outcome = reply.wait()
        if before is not None:
            before.join()
        if outcome.make is not None:
            with contextlib.suppress(OSError):
                connection.sendall(server._encoded(head.api, head.version, head.correlation, outcome.make()))
        if outcome.close:
            server._shut(connection)

    _BEFORE_IT[connection] = threading.Thread(target=answer, daemon=True)
    _BEFORE_IT[connection].start()
    return True


_JOINS: Final[dict[str, DelayedJoin]] = {}
"""By group, the wait for joins that goes on, or was the last."""


def _joins_time_out_anyway(self: GroupCoordinator, group: Group, timeout_ms: int) -> None:
    """What ends it does not end its time-out, which ends whatever waits then."""
    _WAIT_FOR_JOINS(self, group, timeout_ms)
    mine = _JOINS.get(group.id)

    def ends() -> None:
        with group.lock:
            waits = _JOINS.get(group.id)
            if waits is not None and waits is not mine and not waits.is_completed():
                waits.force_complete()
        self.actions.run_all()

    left = threading.Timer(timeout_ms / 1000, ends)
    left.daemon = True
    left.start()


def _join_begun_with_note(
    self: DelayedJoin,
    timeout_ms: int,
    group: Group,
    end: Callable[[Group], None],
    run_actions: Callable[[], object],
    runtime: Runtime,
) -> None:
    _BEGIN_JOIN(self, timeout_ms, group, end, run_actions, runtime)
    if not isinstance(self, InitialDelayedJoin):
        _JOINS[group.id] = self


_BEGIN_JOIN: Final = DelayedJoin.__init__


def _one(name: str, what: str, clauses: str, *patches: Patch, brokers: int = 1) -> FeltMutant:
    return FeltMutant(name, what, tuple(clauses.split()), patches, brokers)


def _known(number: int, clauses: str, *, brokers: int = 1) -> FeltMutant:
    """One of the kill matrix."""
    mutant = KILL_MATRIX[number]
    return FeltMutant(mutant.name, mutant.what, tuple(clauses.split()), mutant.patches, brokers)


def _armed(delay_ms: str) -> Patch:
    return edited(Purgatory, "_arm", "self._timer.add(", f"operation.delay_ms = {delay_ms}; self._timer.add(")


def _under_first_key(kind: str) -> Patch:
    keys = f"keys[:1] if type(operation).__name__ == {kind!r} else keys"
    return edited(
        Purgatory, "try_complete_else_watch", "register(operation, keys,", f"register(operation, {keys},"
    )


def _apis(key: int, **changes: object) -> Patch:
    changed = {**api.APIS, key: replace(api.APIS[key], **changes)}  # type: ignore[arg-type]  # field names
    return Patch(server, "APIS", changed)


_FETCH_UNCAPPED: Final = edited(
    data_requests, "fetch", 'min(fields.number("min_bytes"), max_bytes)', 'fields.number("min_bytes")'
)
_FETCH_UNCOMMITTED: Final = edited(
    data_requests,
    "fetch",
    'fields.number("isolation_level")',
    'fields.number("isolation_level") * (session is None)',
)
_FIRST_OFFSETS: Final = edited(
    group_requests,
    "offset_fetch",
    "_committed(node, entry, stable=stable) for",
    '{**_committed(node, asked[0], stable=stable), "group_id": entry.text("group_id")} for',
)
_FIRST_DESCRIBED: Final = edited(
    group_requests,
    "describe_groups",
    "_described(node, name, request.version) for",
    '{**_described(node, request.fields.texts("groups")[0], request.version), "group_id": name} for',
)
_ONE_ELECTED: Final = edited(topic_requests, "elect_leaders", "in topics\n", "in [*topics][-1:]\n")
_FIRST_COORDINATOR: Final = edited(
    group_requests, "find_coordinator", 'texts("coordinator_keys")', 'texts("coordinator_keys")[:1]'
)
_GROWN_UNASKED: Final = edited(
    topic_requests, "create_partitions", 'request.fields.number("validate_only") or ', ""
)

_SHARE_TWICE: Final = edited(
    share_requests,
    "share_fetch",
    'FetchParams(fields.ms("max_wait")',
    'FetchParams(2 * fields.ms("max_wait")',
)
_SHARE_UNASKED: Final = edited(
    share_requests,
    "share_fetch",
    'FetchParams(fields.ms("max_wait")',
    'FetchParams(fields.ms("max_wait") or 1000',
)
_SHARE_UNSAID: Final = edited(
    share_requests, "share_fetch", "errors = _acknowledge(node, group, member, asked)", "errors = {}"
)

_MUTANTS: Final = (
    _one(
        "answered-twice",
        "a fetch is answered twice",
        "X1",
        edited(server, "_encoded", "correlation))", f"correlation)) * (1 + (api == {_FETCH}))"),
    ),
    _one(
        "heartbeat-unanswered",
        "heartbeats are not answered",
        "X1 X3",
        edited(
            Server, "_answer", "api.handle(", f"reply.nothing() if head.api == {_HEARTBEAT} else api.handle("
        ),
    ),
    _one(
        "last-first",
        "of requests that come together the last is answered first",
        "X2",
        edited(Server, "_talk", "frames.feed(piece)", "frames.feed(piece)[::-1]"),
    ),
    _one(
        "older-version",
        "a fetch of version 12 is answered in version 11",
        "X3",
        edited(
            server,
            "_encoded",
            "(api, version,",
            f"(api, 11 if (api, version) == ({_FETCH}, 12) else version,",
        ),
    ),
    _one(
        "offered-not-answered",
        "JoinGroup 6 to 9 are offered, and close the connection",
        "X3",
        _apis(_JOIN, newest=5),
    ),
    _one(
        "acks-0-answered",
        "acks 0 is answered",
        "P2",
        edited(_Produced, "none", "self._reply.nothing()", _EMPTY),
    ),
    _one(
        "acks-0-closes",
        "acks 0 closes the connection",
        "P2",
        edited(_Produced, "none", "self._closes", "True"),
    ),
    _one(
        "offset-0",
        "every produce is told the offset 0",
        "P1",
        edited(Partition, "append", "Appended(first,", "Appended(0,"),
    ),
    _one(
        "acknowledged-unreadable",
        "what is acknowledged with acks 1 cannot be read yet",
        "P1 F3",
        edited(Partition, "append", "self._raise_high", "acks == -1 and self._raise_high"),
    ),
    _one(
        "any-acks",
        "acks 2 is taken for 1",
        "P3",
        edited(ReplicaManager, "append_records", "acks not in (-1, 0, 1)", "False"),
    ),
    _one(
        "min-in-sync-ignored",
        "acks -1 is appended with fewer in sync than the minimum",
        "P4",
        edited(Partition, "append", "acks == -1 and not self._enough_in_sync()", "False"),
        brokers=2,
    ),
    _one(
        "min-in-sync-for-all",
        "acks 1 is refused with fewer in sync than the minimum",
        "P4",
        edited(Partition, "append", "acks == -1 and not self", "not self"),
        brokers=2,
    ),
    _one(
        "acks-all-as-1",
        "acks -1 is answered as acks 1",
        "P6 P5",
        edited(ReplicaManager, "append_records", "acks != -1 or not appended", "True"),
        brokers=2,
    ),
    _one(
        "time-out-answered-well",
        "a produce that timed out is answered without an error",
        "P5",
        edited(delayed_produce, "_at_time_out", "REQUEST_TIMED_OUT", "NONE"),
        brokers=2,
    ),
    _known(31, "P6", brokers=2),
    _known(32, "P6 D1", brokers=2),
    _one(
        "late-timer",
        "every time-out is a second late",
        "F2 P5 G1 G6 G7",
        _armed("operation.delay_ms + 1000"),
    ),
    _one(
        "early-timer",
        "every time-out comes after half its time",
        "F1 P5 G1 G6 G7",
        _armed("operation.delay_ms // 2"),
    ),
    _one("never-armed", "no operation has a time-out", "F2 X1", Patch(Purgatory, "_arm", _nothing)),
    _one(
        "fetch-never-waits",
        "a fetch is answered at once",
        "F1",
        Patch(ReplicaManager, "_has_to_wait", _never),
    ),
    _one(
        "min-bytes-ignored",
        "a waiting fetch is answered at any byte",
        "F1 F7",
        edited(DelayedFetch, "try_complete", "more_bytes is None", "more_bytes != 0"),
    ),
    _one(
        "min-bytes-by-partition",
        "the bytes of the partitions do not add up",
        "F7",
        edited(
            DelayedFetch,
            "try_complete",
            "available_bytes += more_bytes",
            "available_bytes = max(available_bytes, more_bytes)",
        ),
    ),
    _one("lost-check", "an append wakes no fetch", "F3", _WAKES_NOBODY),
    _one(
        "first-key-only",
        "an operation is watched under its first key only",
        "F3 F7",
        edited(
            Purgatory, "try_complete_else_watch", "register(operation, keys,", "register(operation, keys[:1],"
        ),
    ),
    _one(
        "not-re-armed",
        "a waiting fetch is tried at one event, and at no other",
        "F3 F7",
        Patch(DelayedFetch, "try_complete", _tried_once),
    ),
    _one(
        "min-bytes-0-waits",
        "min_bytes 0 is taken for 1",
        "F4",
        edited(ReplicaManager, "_has_to_wait", "params.min_bytes", "max(params.min_bytes, 1)"),
        edited(DelayedFetch, "try_complete", "self._params.min_bytes", "max(self._params.min_bytes, 1)"),
    ),
    _one(
        "max-wait-0-empty",
        "max_wait 0 brings no data",
        "F4",
        edited(
            ReplicaManager,
            "_read",
            "= params.max_bytes",
            "= params.max_bytes if params.max_wait_ms > 0 else 0",
            "empty = True",
            "empty = params.max_wait_ms > 0",
        ),
    ),
    _one(
        "waited-for-nothing",
        "a fetch that waited is answered without data",
        "F5 F3",
        edited(
            ReplicaManager,
            "_answer_fetch",
            "self._read(params, partitions)",
            "{p: self._read_one(params, p, r, 0, at_least_one=False) for p, r in partitions.items()}",
        ),
    ),
    _one(
        "error-waits",
        "a fetch with an error waits, one without does not",
        "F6",
        edited(
            ReplicaManager, "_has_to_wait", "return False\n    return", "return True\n    return False and"
        ),
    ),
    _one(
        "epoch-unchecked",
        "a leader epoch that nobody knows is served",
        "F6",
        edited(Partition, "_readable", "current_epoch is not None and current_epoch != role.epoch", "False"),
    ),
    _one(
        "wrong-error",
        "an offset out of range is UNKNOWN_SERVER_ERROR",
        "F6 D1",
        edited(
            data_requests,
            "code_of",
            "error.value",
            "(Error.UNKNOWN_SERVER_ERROR if error is Error.OFFSET_OUT_OF_RANGE else error).value",
        ),
    ),
    _one(
        "deleted-topic-silent",
        "a deleted topic wakes no fetch",
        "F8",
        edited(ReplicaManager, "stop_replica", "self._check_later(partition)", "pass"),
    ),
    _one(
        "unreplicated-shown",
        "consumers read to the log's end",
        "F9",
        edited(data_requests, "_isolation", "if replica >= 0", "if True"),
        brokers=2,
    ),
    _known(97, "F9 F1", brokers=2),
    _one(
        "created-not-there",
        "a creation is answered and not made",
        "A1",
        edited(
            Node,
            "create",
            "accepted =",
            "return callback({topic.name: Error.NONE for topic in topics}); accepted =",
        ),
    ),
    _one(
        "created-again",
        "a second creation is answered without an error",
        "A1",
        edited(
            topic_requests,
            "_created",
            "values: dict",
            "code = 0 if code == ErrorCode.topic_already_exists.value else code; values: dict",
        ),
    ),
    _one(
        "deleted-still-there",
        "a deletion is answered and not made",
        "A2",
        edited(
            Node,
            "delete",
            "self.topics.delete(timeout_ms, names, callback)",
            "return callback(dict.fromkeys(names, Error.NONE))",
        ),
    ),
    _one("records-stay", "deleted records can be read", "D1", Patch(Log, "raise_start", _nothing)),
    _one(
        "delete-beyond-end",
        "a deletion beyond the end is taken for one of everything",
        "D1",
        edited(
            Partition,
            "delete_before",
            "if offset == -1 else offset",
            "if offset == -1 else min(offset, high_watermark)",
        ),
    ),
    _one(
        "below-start-served",
        "an offset below the low watermark is served from there",
        "D1",
        edited(
            Log,
            "place",
            "if not",
            "offset = max(offset, min(self.start(), self.end())) if offset >= 0 else offset\n    if not",
        ),
    ),
    _one(
        "no-member-id",
        "a join without an id is not sent one",
        "G0",
        edited(GroupCoordinator, "join", "not member_id and id_required and not instance", "False"),
    ),
    _one(
        "no-initial-delay",
        "a new group's first generation begins at once",
        "G1",
        edited(GroupCoordinator, "_prepare_rebalance", "if first:", "if False:"),
    ),
    _one(
        "everybody-leads",
        "every member is told that it leads, and all members",
        "G2",
        edited(
            group_coordinator, "_joined", "member.id == group.leader()", "True", "group.leader()", "member.id"
        ),
    ),
    _one(
        "same-generation",
        "a rebalance does not raise the generation",
        "G2 G3",
        edited(Group, "next_generation", "self._generation.get() + 1", "max(self._generation.get(), 1)"),
    ),
    _one(
        "generation-jumps",
        "a rebalance raises the generation by two",
        "G3",
        edited(Group, "next_generation", "+ 1", "+ 2"),
    ),
    _one(
        "heartbeat-silent",
        "heartbeats do not tell of a rebalance",
        "G3",
        edited(GroupCoordinator, "heartbeat", "Error.REBALANCE_IN_PROGRESS if", "Error.NONE if"),
    ),
    _one(
        "join-not-waiting",
        "a rebalance ends with the first join",
        "G4",
        edited(Group, "all_have_joined", "not self._pending.get() and all(", "any("),
    ),
    _one(
        "join-waits-on",
        "a rebalance ends at its time-out only",
        "G4",
        Patch(DelayedJoin, "try_complete", _never),
    ),
    _one(
        "sync-not-waiting",
        "a sync is answered before the leader's",
        "G5",
        edited(
            GroupCoordinator,
            "sync",
            "if group.state() is GroupState.STABLE:",
            "if group.state() is GroupState.STABLE or member_id != group.leader():",
        ),
    ),
    _one(
        "sync-not-woken",
        "the leader's sync answers nobody else's",
        "G5",
        edited(
            GroupCoordinator, "_assign", "assigned.awaiting_sync is not None", "assigned.id == group.leader()"
        ),
    ),
    _one(
        "same-assignment",
        "everybody gets the leader's assignment",
        "G5",
        edited(GroupCoordinator, "_assign", "assignments.get(member.id", "assignments.get(group.leader()"),
    ),
    _one(
        "absent-member-stays",
        "who did not rejoin stays a member",
        "G6",
        edited(GroupCoordinator, "_end_rebalance", "self._remove(group, member)", "pass"),
    ),
    _one(
        "rebalance-late",
        "a rebalance waits a second longer than its time-out",
        "G6",
        edited(
            GroupCoordinator,
            "_wait_for_joins",
            "DelayedJoin(timeout_ms,",
            "DelayedJoin(timeout_ms + 1000,",
        ),
    ),
    _one(
        "rebalance-early",
        "a rebalance waits half its time-out",
        "G6",
        edited(
            GroupCoordinator, "_wait_for_joins", "DelayedJoin(timeout_ms,", "DelayedJoin(timeout_ms // 2,"
        ),
    ),
    _one(
        "session-not-evicted",
        "a member that is silent stays",
        "G7",
        Patch(GroupCoordinator, "_session_expired", _nothing),
    ),
    _one(
        "half-a-session",
        "a session lasts half its time",
        "G7 G10",
        edited(
            GroupCoordinator, "_heard_of", "DelayedHeartbeat(timeout_ms,", "DelayedHeartbeat(timeout_ms // 2,"
        ),
    ),
    _known(28, "G7"),
    _one(
        "leave-starts-nothing",
        "a member that leaves starts no rebalance",
        "G8",
        edited(
            GroupCoordinator,
            "_drop",
            "self._maybe_rebalance(group)",
            "group.members() or group.enter(GroupState.EMPTY)",
        ),
    ),
    _one(
        "any-generation",
        "a wrong generation is taken",
        "G9",
        edited(group_coordinator, "_refusal", "generation == group.generation()", "True"),
    ),
    _one(
        "stranger-heard",
        "a heartbeat of an unknown member is taken",
        "G9 G6 G7",
        edited(
            GroupCoordinator,
            "heartbeat",
            "return refusal",
            "return Error.NONE if member is None else refusal",
        ),
    ),
    _one(
        "generation-as-member",
        "a wrong generation is UNKNOWN_MEMBER_ID",
        "G9",
        edited(
            group_coordinator, "_refusal", "else Error.ILLEGAL_GENERATION", "else Error.UNKNOWN_MEMBER_ID"
        ),
    ),
    _one(
        "heartbeat-in-vain",
        "a heartbeat does not keep a member",
        "G10",
        edited(
            GroupCoordinator, "heartbeat", "self._heard_of(group, member, member.session_timeout_ms)", "pass"
        ),
    ),
    _one(
        "one-in-fifty-lost",
        "of fifty appends one wakes no fetch",
        "F3",
        Patch(ReplicaManager, "_append", _one_in_fifty_wakes_nobody),
    ),
    _one(
        "first-waiter-only",
        "an event completes one operation of a key, and leaves the others",
        "F3 F7 F8",
        edited(Watchers, "try_complete_watched", "completed += 1", "completed += 1; break"),
    ),
    _one(
        "time-outs-rounded-up",
        "a time-out comes at the next half second",
        "F2 G1",
        _armed("-(-operation.delay_ms // 500) * 500"),
    ),
    _one(
        "eight-seconds-at-most",
        "no time-out is longer than 8 s",
        "F1",
        _armed("min(operation.delay_ms, 8000)"),
    ),
    _one(
        "more-than-min-bytes",
        "a waiting fetch wants a byte more than min_bytes",
        "F3 F7",
        edited(DelayedFetch, "try_complete", ">= self._params", "> self._params"),
    ),
    _one(
        "deletion-ends-fetches",
        "deleting records answers the fetches that wait for the partition",
        "F1",
        edited(
            ReplicaManager,
            "_delete_before",
            "meant = replica",
            "[one.force_complete() for one in self._fetch.cancel_for_key(partition)]; meant = replica",
        ),
    ),
    _one(
        "end-listed-short",
        "ListOffsets says an end one below the end",
        "L1",
        edited(data_requests, "_look_up", "return -1, end", "return -1, max(end - 1, 0)"),
    ),
    _one(
        "first-partition-answers",
        "every partition of a produce is told the first one's offset",
        "P1",
        edited(
            _Produced,
            "send",
            "self._answer(results)",
            "self._answer(dict.fromkeys(results, next(iter(results.values()), None)))",
        ),
    ),
    _one(
        "leave-unseen-in-rebalance",
        "a member that leaves while a rebalance waits for it is waited for",
        "G4",
        edited(GroupCoordinator, "_drop", "group.state() is GroupState.PREPARING", "False"),
    ),
    _one(
        "late-sync-empty",
        "who syncs after the leader gets no assignment",
        "G5",
        edited(
            GroupCoordinator,
            "_assign",
            "in group.members()",
            "in [one for one in group.members() if one.awaiting_sync is not None]",
        ),
    ),
    _one(
        "static-return-rebalances",
        "a static member that comes back starts a rebalance",
        "G11",
        edited(GroupCoordinator, "_replace", "group.protocol() == before", "False"),
    ),
    _one(
        "session-unseen-in-rebalance",
        "a rebalance goes on waiting for a member whose session is over",
        "G7",
        edited(
            GroupCoordinator,
            "_session_expired",
            "self._drop(group, member_id)",
            "self._remove(group, member) if group.state() is GroupState.PREPARING else self._drop(group, member_id)",
        ),
    ),
    _one(
        "expected-unseen",
        "a rebalance goes on waiting for somebody who was given an id and has left",
        "G4",
        edited(GroupCoordinator, "_drop_pending", "group.state() is GroupState.PREPARING", "False"),
    ),
    _one(
        "vain-in-rebalance",
        "a heartbeat in a rebalance does not keep a member",
        "G10 G4",
        edited(
            GroupCoordinator,
            "heartbeat",
            "self._heard_of(",
            "group.state() is GroupState.PREPARING or self._heard_of(",
        ),
    ),
    _one(
        "shortest-rebalance",
        "a rebalance lasts as long as the shortest of its members' time-outs",
        "G6",
        edited(Group, "rebalance_timeout_ms", "max(", "min("),
    ),
    _one(
        "leader-never-out",
        "a leader that does not sync is waited for, for ever",
        "G5",
        edited(
            GroupCoordinator,
            "_syncs_expired",
            "group.pending_sync() if",
            "group.pending_sync() - {group.leader()} if",
        ),
    ),
    _one(
        "past-generation",
        "a generation that is over is taken",
        "G9",
        edited(
            group_coordinator,
            "_refusal",
            "generation == group.generation()",
            "generation <= group.generation()",
        ),
    ),
    _one(
        "sync-left-in-rebalance",
        "a sync that waits when a rebalance begins is not answered",
        "G5",
        Patch(GroupCoordinator, "_answer_sync_with", _nothing),
    ),
    _one(
        "absent-static-out",
        "a static member that does not rejoin is out at the rebalance time-out",
        "G11",
        edited(GroupCoordinator, "_end_rebalance", " and not member.instance", ""),
    ),
    _one(
        "deletion-left",
        "the deletion of a topic is answered at its time-out",
        "A2",
        edited(Metadata, "remove", "self._changed(TopicKey(topic))", "pass"),
    ),
    _one(
        "deletion-times-out-well",
        "a deletion of records that timed out is answered without an error",
        "D1",
        edited(
            delayed_delete_records,
            "_at_time_out",
            "Error.REQUEST_TIMED_OUT, -1,",
            "Error.NONE, deleted.requested_offset,",
        ),
        brokers=2,
    ),
    _one(
        "first-topic-only",
        "an append with acks -1 waits for the first of its partitions",
        "P6",
        _under_first_key("DelayedProduce"),
        brokers=2,
    ),
    _one(
        "one-check-a-request",
        "an append to two partitions checks one of them",
        "F3 F7",
        edited(ReplicaManager, "_check_later", "self.actions.add", "self.actions.size() or self.actions.add"),
    ),
    _one(
        "replicas-wake-produce",
        "a high watermark that rises by a replica wakes no consumer",
        "F3",
        edited(ReplicaManager, "_note_follower", "self._check_later(", "self._produce.check_and_complete("),
        brokers=2,
    ),
    _one(
        "low-watermark-unseen",
        "a replica that has deleted records wakes no deletion",
        "D1",
        edited(Partition, "follower_fetched", " or self._low_watermark() > low_before", ""),
        brokers=2,
    ),
    _one(
        "append-waits-for-deleted",
        "an append waits on for the replicas of a topic that was deleted",
        "F8",
        edited(ReplicaManager, "_enough_replicas", "refused.error)", "Error.NONE)"),
        brokers=2,
    ),
    _one(
        "parts-time-out-together",
        "at the time-out of an append the partitions that are replicated time out too",
        "P1",
        Patch(DelayedProduce, "on_complete", _all_time_out),
        brokers=2,
    ),
    _one(
        "acks-0-error-told",
        "an acks 0 append that fails is answered",
        "P2",
        edited(_Produced, "close", "self._reply.close()", _EMPTY),
    ),
    _one(
        "partition-room-ignored",
        "a waiting fetch counts more than its partitions have room for",
        "F1",
        edited(DelayedFetch, "_bytes_available", "status.request.max_bytes)", "1 << 30)"),
    ),
    _one(
        "first-topic-answers",
        "a request about two topics is answered when one is done",
        "A1 A2",
        edited(DelayedTopics, "try_complete", "any(", "all("),
    ),
    _one(
        "first-topic-watched",
        "a request about two topics waits for news of the first",
        "A1 A2",
        _under_first_key("DelayedTopics"),
    ),
    _one(
        "static-return-unassigned",
        "a static member that comes back has no assignment",
        "G11",
        edited(Group, "swap", "[new if", '[replace(new, assignment=b"") if'),
    ),
    _one(
        "second-join-unanswered",
        "a member that joins while its join waits is not answered",
        "X1",
        edited(
            GroupCoordinator,
            "_rejoin",
            "changed = ",
            "if member.awaiting_join is not None:\n        return\n    changed = ",
        ),
    ),
    _one(
        "cut-request-left",
        "half a request of a cut connection precedes those of the next",
        "X1 C1",
        Patch(server, "Frames", _Pooled),
    ),
    _one(
        "cut-leaves",
        "a member whose connection is cut has left",
        "G10",
        Patch(Server, "_answer", _answer_noted),
        Patch(Server, "_end", _end_leaves),
    ),
    _one(
        "names-of-all-groups",
        "static members of two groups with one name fence each other",
        "G11",
        Patch(Group, "put", _put_newest),
        Patch(group_coordinator, "_fenced", _fenced_by_any_group),
    ),
    _one(
        "commit-unheard",
        "a commit does not keep a member",
        "G10",
        edited(
            GroupCoordinator, "commit", "self._heard_of(group, member, member.session_timeout_ms)", "pass"
        ),
    ),
    _one(
        "part-left-out",
        "an answer leaves out the last of several partitions",
        "X4",
        edited(data_requests, "grouped", "in entries]", "in entries[: max(len(entries) - 1, 1)]]"),
    ),
    _one(
        "unknown-is-out-of-range",
        "a partition that is not there is told as an offset that is not",
        "X4",
        edited(
            Gatekeeper, "refuses", "else Error.UNKNOWN_TOPIC_OR_PARTITION", "else Error.OFFSET_OUT_OF_RANGE"
        ),
    ),
    _one(
        "creation-refused",
        "no topic can be made",
        "A1",
        edited(topic_requests, "_new_topic", "if not _NAME", "if _NAME"),
    ),
    _one(
        "growth-left",
        "a topic that shall grow does not, and the request is answered at its time-out",
        "A3",
        edited(Cluster, "grow", "topic.partitions >= partitions", "partitions"),
    ),
    _one(
        "corrupt-taken",
        "what came to harm on its way is appended",
        "P1",
        edited(record_batch, "read_header", "if crc32c(", "if False and crc32c("),
    ),
    _one(
        "refused-part-waits",
        "an append of which one partition is refused is answered at its time-out",
        "P1",
        Patch(_Produced, "send", _sent_at_the_time_out),
    ),
    _one(
        "validated-growth",
        "a growth that is only to be validated is done",
        "A3",
        _apis(_GROW, handle=_GROWN_UNASKED.replacement),
    ),
    _one(
        "acks-0-dropped",
        "what comes with acks 0 is not appended",
        "P2",
        edited(
            ReplicaManager,
            "append_records",
            "producer, marker)",
            "producer, marker) if acks else ProduceResult(Error.NONE)",
        ),
    ),
    _one(
        "acks-0-wakes-nobody",
        "what comes with acks 0 leaves who waits for it to the next append",
        "F3",
        edited(
            ReplicaManager, "_append", "self._check_later(partition)", "acks and self._check_later(partition)"
        ),
    ),
    _one(
        "acks-0-checks-left",
        "what comes with acks 0 wakes who waits for it when the next request of anybody has been dealt with",
        "F3",
        edited(
            RequestLayer,
            "_ask",
            "self._manager.run_actions()",
            "manager.args[-1] == 0 or self._manager.run_actions()",
        ),
    ),
    _one(
        "topics-by-id-stay",
        "the id of a topic that was deleted leads to the one that is made by its name",
        "A2",
        edited(Cluster, "remove", "del self._by_id[topic.topic_id]", "pass"),
    ),
    _one(
        "forgotten-partition-fetched",
        "what is taken out of a fetch session is fetched on",
        "F1 X4",
        edited(FetchSessions, "go_on", "session.wanted.pop(place, None)", "pass"),
    ),
    _one(
        "session-stands-still",
        "a fetch session goes on from where each partition was added",
        "P1 F1",
        edited(
            FetchSessions,
            "go_on",
            "session.wanted.update(wanted)",
            "session.wanted = wanted | session.wanted",
        ),
    ),
    _one(
        "session-of-any-epoch",
        "a request of a fetch session that is not its next is taken",
        "F6",
        edited(FetchSessions, "go_on", "epoch != session.epoch", "False"),
    ),
    _one(
        "older-segment-adds-nothing",
        "a fetch that waits at the end of a segment is not woken by what begins the next",
        "F3",
        edited(DelayedFetch, "_bytes_available", "start.is_on_older_segment(end)", "False"),
    ),
    _one(
        "id-forgotten",
        "the id that a join was sent is not known",
        "G0",
        edited(Group, "is_pending", "member in self._pending.get()", "False"),
    ),
    _one(
        "second-join-unheard",
        "who joins within the initial delay does not put it off",
        "G1",
        edited(GroupCoordinator, "_add", "group.new_member_added.set(True)", "pass"),
    ),
    _one(
        "initial-delay-uncapped",
        "the initial delay goes beyond the rebalance time-out",
        "G1",
        edited(
            InitialDelayedJoin,
            "on_complete",
            "min(self._configured_ms, self._remaining_ms)",
            "self._configured_ms",
        ),
    ),
    _one(
        "protocol-of-the-leader",
        "the first protocol of the leader is chosen, whoever has it",
        "G2",
        edited(
            Group,
            "protocol",
            "if all(name in member.protocols for member in self.members())",
            "if name",
            "max(common, key=votes.count, default=",
            "next(iter(common), ",
        ),
    ),
    _one(
        "subscription-of-the-leader",
        "the leader is told its own subscription for everybody's",
        "G2",
        edited(
            group_coordinator,
            "_joined",
            "group.metadata(m) for m in told",
            "group.metadata(member) for _ in told",
        ),
    ),
    _one(
        "absent-leads",
        "a static leader that has not rejoined leads on",
        "G2",
        edited(Group, "elect_joined_leader", "self._leader.get() not in joined and joined", "False"),
    ),
    _one(
        "rejoin-rebalances",
        "a follower that joins a stable group again starts a rebalance",
        "G3",
        edited(GroupCoordinator, "_rejoin", "member.id != group.leader()", "False"),
    ),
    _one(
        "expected-not-awaited",
        "a rebalance does not wait for who was given an id",
        "G4",
        edited(Group, "all_have_joined", "not self._pending.get() and ", ""),
    ),
    _one(
        "sync-refused",
        "syncs are told of a rebalance where none is",
        "G5",
        edited(
            GroupCoordinator,
            "sync",
            "group.state() is GroupState.PREPARING",
            "group.state() is GroupState.COMPLETING",
        ),
    ),
    _one(
        "unsynced-left-alone",
        "who leaves before all have synced starts no rebalance",
        "G5",
        edited(GroupCoordinator, "_maybe_rebalance", "GroupState.COMPLETING, ", ""),
    ),
    _one(
        "commit-unchecked",
        "a commit of any generation is taken",
        "G9",
        edited(GroupCoordinator, "commit", "refusal is not Error.NONE or member is None", "member is None"),
    ),
    _one(
        "stranger-leaves",
        "who is no member leaves without an error",
        "G9",
        edited(GroupCoordinator, "leave", "return Error.UNKNOWN_MEMBER_ID", "pass"),
    ),
    _one(
        "any-protocol",
        "a member may join with protocols that nobody else has",
        "G9",
        edited(GroupCoordinator, "_refuses_join", "return Error.INCONSISTENT_GROUP_PROTOCOL", "pass"),
    ),
    _one(
        "change-unheard",
        "a follower that joins again with another subscription is told the same generation",
        "G3",
        edited(GroupCoordinator, "_rejoin", "if settled and not changed:", "if settled:"),
    ),
    _one(
        "first-subscription-kept",
        "what a member says of itself when it joins again is not told to the leader",
        "G2",
        edited(
            GroupCoordinator,
            "_rejoin",
            "protocols=asked.protocols, metadata=asked.metadata,",
            "protocols=asked.protocols,",
        ),
    ),
    _one(
        "expected-for-ever",
        "who was given an id and does not join is expected until the rebalance time-out",
        "G7",
        edited(GroupCoordinator, "_session_expired", "self._drop_pending(group, member_id)", "return"),
    ),
    _one(
        "newcomer-out-by-its-session",
        "a new member that waits in its join for longer than its session is out",
        "G0",
        edited(GroupCoordinator, "_add", "NEW_MEMBER_TIMEOUT_MS", "member.session_timeout_ms"),
    ),
    _one(
        "no-session-before-the-sync",
        "the session of a new member begins with its sync",
        "G5 G7",
        edited(
            GroupCoordinator,
            "_end_rebalance",
            "self._heard_of(group, settled, settled.session_timeout_ms)",
            "pass",
        ),
    ),
    _one(
        "nobody-commits",
        "a commit without a generation is taken in a group with members",
        "G9",
        edited(
            GroupCoordinator,
            "commit",
            "generation < 0 and group.state() is GroupState.EMPTY",
            "generation < 0",
        ),
    ),
    _one(
        "a-batch-of-each",
        "each partition of a fetch brings a batch, whatever max_bytes says",
        "F7",
        edited(ReplicaManager, "_read", "empty and not result.size_bytes()", "True"),
    ),
    _one(
        "min-bytes-beyond-max-bytes",
        "a fetch waits for more than it has room for",
        "F7",
        _apis(_FETCH, handle=_FETCH_UNCAPPED.replacement),
    ),
    _one(
        "all-in-a-transaction",
        "to who reads what is committed, everything is in a transaction that goes on",
        "F3 F4",
        edited(Log, "append", "if producer:", "if not producer:"),
    ),
    _one(
        "no-leader-named",
        "metadata names no leader of a topic that leads",
        "A1",
        edited(topic_requests, "_partition", "-1 if leader is None else leader", "-1"),
    ),
    _one(
        "delay-without-end",
        "the initial delay goes on for as long as members come",
        "G1",
        edited(
            InitialDelayedJoin,
            "on_complete",
            "self._remaining_ms - delay_ms",
            "self._remaining_ms + delay_ms",
        ),
    ),
    _one(
        "static-leaves-quietly",
        "a static member that leaves starts no rebalance",
        "G8 G11",
        edited(GroupCoordinator, "_drop", "else:", "elif member is None or not member.instance:"),
    ),
    _one(
        "high-watermark-of-before",
        "a fetch that waited is told the high watermark of its beginning",
        "F5",
        Patch(ReplicaManager, "_answer_fetch", _answered_with_old_mark),
    ),
    _one(
        "sync-waits-in-rebalance",
        "a sync waits in a rebalance, and is not told of it",
        "G3 X1",
        edited(GroupCoordinator, "sync", "group.state() is GroupState.PREPARING", "False"),
    ),
    _one(
        "commit-refused-in-rebalance",
        "a member that is told of a rebalance cannot commit what it has read",
        "G12",
        edited(GroupCoordinator, "commit", "is GroupState.COMPLETING", "is not GroupState.STABLE"),
    ),
    _one("commit-dropped", "a commit is answered and not kept", "G12", Patch(Group, "commit", _nothing)),
    _one(
        "offsets-outlive-the-topic",
        "what was committed of a topic that is deleted is told when another is made by its name",
        "G12",
        Patch(GroupCoordinator, "forget_topic", _nothing),
        Patch(Node, "_forget_notes", _nothing),
    ),
    _one(
        "other-protocol-synced",
        "a sync by another protocol than the group's is taken",
        "G9",
        edited(GroupCoordinator, "sync", "refusal = Error.INCONSISTENT_GROUP_PROTOCOL", "pass"),
    ),
    _one(
        "session-unbounded",
        "a session may be of any length",
        "G9",
        edited(GroupCoordinator, "_refuses_join", "return Error.INVALID_SESSION_TIMEOUT", "pass"),
    ),
    _one(
        "leader-told-nobody-again",
        "a leader that joins again before it has synced is not told the members",
        "G2",
        edited(
            GroupCoordinator,
            "_rejoin",
            "callback(_joined(group, member))",
            "callback(replace(_joined(group, member), members=(), metadata=()))",
        ),
    ),
    _one(
        "rejoin-unsynced-rebalances",
        "who joins again before the leader has synced begins a rebalance",
        "G3",
        edited(GroupCoordinator, "_rejoin", "group.state() is GroupState.COMPLETING or (", "False or ("),
    ),
    _one(
        "left-join-waits",
        "the join of who leaves is never answered",
        "G8 X1",
        edited(
            GroupCoordinator,
            "_remove",
            "self._answer_waiting(group, member, Error.UNKNOWN_MEMBER_ID)",
            "pass",
        ),
    ),
    _one(
        "replaced-waits",
        "what waits of a static member's former id is not answered as it comes back",
        "G11 X1",
        edited(
            GroupCoordinator, "_replace", "self._answer_waiting(group, old, Error.FENCED_INSTANCE_ID)", "pass"
        ),
    ),
    _one(
        "replaced-unsynced",
        "a static member that comes back before the leader has synced begins no rebalance",
        "G11",
        edited(GroupCoordinator, "_replace", "is GroupState.STABLE and", "is not GroupState.PREPARING and"),
    ),
    _one(
        "unsynced-stays",
        "who has not synced by the rebalance time-out stays a member",
        "G5",
        edited(GroupCoordinator, "_syncs_expired", "self._remove(group, member)", "pass"),
    ),
    _one(
        "synced-behind-out",
        "who syncs in a stable group is out, as if it had never synced",
        "G10",
        edited(
            GroupCoordinator,
            "sync",
            "group.has_synced(member_id)",
            "_ = group.state() is GroupState.STABLE or group.has_synced(member_id)",
        ),
    ),
    _one(
        "followers-sync-unawaited",
        "a stable group has no time-out for syncs",
        "G5",
        edited(
            GroupCoordinator,
            "_syncs_expired",
            "in (GroupState.COMPLETING, GroupState.STABLE)",
            "is GroupState.COMPLETING",
        ),
    ),
    _one(
        "votes-uncounted",
        "the leader's favourite of the common protocols is chosen",
        "G2",
        edited(Group, "protocol", "max(common, key=votes.count, default=", "next(iter(common), "),
    ),
    _one(
        "leader-changes",
        "each rebalance has another leader",
        "G2",
        edited(
            Group,
            "elect_joined_leader",
            "self._leader.get() not in joined and joined",
            "joined",
            "joined[0]",
            "joined[-1]",
        ),
    ),
    _one(
        "fenced-commit-unknown",
        "a commit by the former id of a static member is that of an unknown one",
        "G11",
        edited(GroupCoordinator, "commit", "generation, instance, member_id)", 'generation, "", member_id)'),
    ),
    _one(
        "leave-by-name-unknown",
        "a static member cannot leave by its instance id alone",
        "G8",
        edited(group_requests, "_leave", "static.id if static is not None else member", "member"),
    ),
    _one(
        "session-of-another",
        "a member's session is as long as the longest of its group",
        "G7",
        edited(
            GroupCoordinator,
            "_heard_of",
            "DelayedHeartbeat(timeout_ms,",
            "DelayedHeartbeat(max(timeout_ms, *(m.session_timeout_ms for m in group.members())),",
        ),
    ),
    _one(
        "leaving-told-unknown",
        "a member that leaves is told that it is none",
        "G8",
        edited(GroupCoordinator, "leave", "return Error.NONE", "return Error.UNKNOWN_MEMBER_ID"),
    ),
    _one(
        "waiting-sync-unheard",
        "who waits in its sync is out when its session is over",
        "G5",
        edited(Member, "has_satisfied_heartbeat", " or self.awaiting_sync is not None", ""),
    ),
    _one(
        "silent-leader-awaited",
        "the end of a session begins no rebalance before the leader has synced",
        "G7",
        edited(
            GroupCoordinator,
            "_session_expired",
            "self._drop(group, member_id)",
            "self._remove(group, member) if group.state() is GroupState.COMPLETING else self._drop(group, member_id)",
        ),
    ),
    _one(
        "leave-together-unseen",
        "a rebalance goes on waiting for members that leave by one request",
        "G4",
        edited(
            group_requests,
            "_leave",
            "    return node.groups.leave(",
            """    if len(fields.entries("members")) > 1 and group.state() is GroupState.PREPARING:
        with group.lock:
            node.groups._remove(group, group.get(member))
        return Error.NONE
    return node.groups.leave(""",
        ),
    ),
    _one(
        "longest-time-out-overflows",
        "a rebalance does not wait where its time-out is the longest that there is",
        "G4 G6",
        edited(
            GroupCoordinator,
            "_wait_for_joins",
            "DelayedJoin(timeout_ms,",
            "DelayedJoin(timeout_ms if timeout_ms + 5000 < 1 << 31 else 0,",
        ),
    ),
    _one(
        "lost-protocol-kept",
        "a static member that comes back without the group's protocol is told it all the same",
        "G11",
        edited(GroupCoordinator, "_replace", "group.protocol() == before", "True"),
    ),
    _one(
        "offsets-of-the-first-group",
        "who asks for the offsets of several groups is told those of the first",
        "G12",
        _apis(_OFFSET_FETCH, handle=_FIRST_OFFSETS.replacement),
    ),
    _one(
        "offsets-of-one-partition",
        "who asks for all offsets of a group is told those of one partition",
        "G12",
        edited(group_requests, "_committed", "for p in offsets]", "for p in offsets][:1]"),
    ),
    _one(
        "offsets-left-out",
        "who asks for the offsets of several partitions by their names is told one of them",
        "X4",
        edited(group_requests, "_committed", "for topic, at in wanted\n", "for topic, at in wanted[:1]\n"),
    ),
    _one(
        "first-group-described",
        "who asks about several groups is told of the first",
        "G13",
        _apis(_DESCRIBE, handle=_FIRST_DESCRIBED.replacement),
    ),
    _one(
        "deleted-as-nothing",
        "a fetch that waited while its records were deleted is told of no error",
        "D1",
        Patch(ReplicaManager, "_answer_fetch", _answered_without_error),
    ),
    _one(
        "start-untold",
        "a fetch session is not told that records were deleted",
        "F5",
        edited(FetchSession, "news", 'said.get("log_start_offset")', "0"),
    ),
    _one(
        "recreated-wakes-nobody",
        "an append to a topic that is made anew wakes no fetch",
        "F3",
        Patch(ReplicaManager, "stop_replica", _stopped_for_good),
        Patch(ReplicaManager, "_append", _wakes_nobody_again),
    ),
    _one(
        "grown-wakes-nobody",
        "an append to a partition that was added to its topic wakes no fetch",
        "F3",
        Patch(Node, "_grow", _grown_noted),
        Patch(ReplicaManager, "_append", _wakes_nobody_again),
    ),
    _one(
        "election-of-nothing-waits",
        "an election of a partition that the topic has not waits for its time-out",
        "E1",
        edited(
            Topics, "elect", "self.metadata.has_partition(partition)", "self.metadata.has(partition.topic)"
        ),
    ),
    _one(
        "cut-ends-the-check",
        "an answer to a connection that was cut keeps the wake-up from who waits behind it",
        "F3",
        edited(Server, "_answer", "Reply()", 'type("Noted", (Reply,), {"connection": connection})()'),
        Patch(Reply, "send", _send_noted),
        Patch(Watchers, "_try", _tried_unless_cut),
    ),
    _one(
        "cut-stays-open",
        "a cut connection is never closed",
        "C1",
        edited(Server, "_end", "self._open.pop(connection, None)", "pass", "connection.close()", "pass"),
    ),
    _one(
        "first-session-kept",
        "a member that joins again with another session time-out keeps the one that it had",
        "G7",
        edited(
            GroupCoordinator,
            "_rejoin",
            "session_timeout_ms=asked.session_timeout_ms",
            "session_timeout_ms=member.session_timeout_ms",
        ),
    ),
    _one(
        "join-puts-off",
        "each join of a rebalance begins its time-out anew",
        "G6",
        Patch(GroupCoordinator, "join", _join_puts_off),
        Patch(GroupCoordinator, "_end_rebalance", _ends_later),
    ),
    _one(
        "nobody-rejoined-goes-on",
        "a rebalance that nobody has joined by its time-out never ends",
        "G6",
        edited(
            GroupCoordinator,
            "_end_rebalance",
            "if group.state() is GroupState.DEAD:",
            "if group.state() is GroupState.DEAD or nobody:",
            "for member in group.members():\n        if member.awaiting_join is None and",
            "members = group.members()\n"
            "    nobody = bool(members) and all(one.awaiting_join is None for one in members)\n"
            "    for member in () if nobody else members:\n        if member.awaiting_join is None and",
        ),
    ),
    _one(
        "session-error-untold",
        "a fetch session is told once what is wrong with a partition, and not again",
        "X4 F6",
        edited(FetchSession, "news", 'or said.get("error_code") ', ""),
    ),
    _one(
        "one-forgotten",
        "of what a fetch session is to forget it forgets the first",
        "F1 F3",
        edited(FetchSessions, "go_on", "for place in forgotten:", "for place in [*forgotten][:1]:"),
    ),
    _one(
        "grows-once",
        "a topic that has grown grows no more",
        "A3",
        Patch(Node, "_grow", _grow_once),
    ),
    _one(
        "expected-left-alone",
        "who was given an id and leaves together with others is expected still",
        "G4 G8",
        _apis(
            _LEAVING,
            handle=edited(
                group_requests,
                "leave_group",
                "_leave(node, fields, member, instance, refused)",
                "_leave(node, fields, member, instance, refused) if len(leaving) == 1 or"
                " not node.groups.group(fields.text('group_id')).is_pending(member) else Error.NONE",
            ).replacement,
        ),
    ),
    _one(
        "session-healed-untold",
        "a fetch session is not told that nothing is wrong with a partition any more",
        "X4",
        edited(
            FetchSession,
            "news",
            "self.told[place] = marks",
            'if not said.get("error_code"):\n        self.told[place] = marks',
        ),
    ),
    _one(
        "closed-session-stays",
        "a fetch session that was closed is there still",
        "F6",
        edited(
            FetchSessions,
            "begin",
            "self._sessions.pop(session_id, None)",
            "self._sessions.pop(0 if epoch == CLOSES else session_id, None)",
        ),
    ),
    _one(
        "former-session-stays",
        "a fetch session in whose place another was begun is there still",
        "F6",
        edited(
            FetchSessions,
            "begin",
            "self._sessions.pop(session_id, None)",
            "self._sessions.pop(session_id if epoch == CLOSES else 0, None)",
        ),
    ),
    _one(
        "refused-counts",
        "a request that is not the next one of its fetch session counts as one",
        "F6",
        edited(
            FetchSessions,
            "go_on",
            "return ErrorCode.invalid_fetch_session_epoch",
            "session.epoch += 1; return ErrorCode.invalid_fetch_session_epoch",
        ),
    ),
    _one(
        "first-partition-first",
        "a fetch session without room for all brings the same partition each time",
        "F7",
        edited(FetchSessions, "go_on", "if place in session.wanted:", "if False:"),
    ),
    _one(
        "deleted-untold-in-a-session",
        "a fetch session is not told that a topic is deleted for which it waits",
        "F8",
        edited(
            FetchSession,
            "news",
            'said.get("error_code") or',
            'said.get("error_code", 0) not in (0, 3, 100) or',
            "moved = self",
            'moved = not said.get("error_code") and self',
        ),
    ),
    _one(
        "first-room-kept",
        "a partition that is named again in a fetch session keeps the room that it had",
        "F7",
        Patch(FetchSessions, "go_on", _with_first_rooms),
    ),
    _one(
        "one-topic-elected",
        "an election about several topics is answered for one of them",
        "X4",
        _apis(_ELECT, handle=_ONE_ELECTED.replacement),
    ),
    _one(
        "first-coordinator-told",
        "who asks for the coordinators of several groups is told of the first",
        "X4",
        _apis(_COORDINATOR, handle=_FIRST_COORDINATOR.replacement),
    ),
    _one(
        "note-kept",
        "a commit of the offset that stands keeps the note that stands beside it",
        "G12",
        Patch(Node, "keep_notes", _kept_beside_its_offset),
        Patch(Group, "commit", _committed_anew),
    ),
    _one(
        "listed-in-any-epoch",
        "who asks for offsets with a leader epoch that nobody knows is told them",
        "L1",
        edited(data_requests, "_look_up", "replica.ends(epoch,", "replica.ends(None,"),
    ),
    _one(
        "later-than-the-time",
        "the first record of a time is looked for behind it",
        "L1",
        edited(data_requests, "_look_up", "found[0] >= wanted_ms", "found[0] > wanted_ms"),
    ),
    _one(
        "election-timed-out-at-once",
        "an election that is not needed is told that it timed out, at once",
        "E1",
        edited(Topics, "elect", "Error.ELECTION_NOT_NEEDED", "Error.REQUEST_TIMED_OUT"),
    ),
    _one(
        "last-one-stays",
        "the only member of a group stays when its session is over",
        "G7",
        edited(
            GroupCoordinator,
            "_session_expired",
            "not member.has_satisfied_heartbeat()",
            "not member.has_satisfied_heartbeat() and len(group.members()) > 1",
        ),
    ),
    _one(
        "put-out-not-empty",
        "a group whose only member was put out is not empty: the next one has no initial delay",
        "G1",
        edited(
            GroupCoordinator,
            "_session_expired",
            "self._drop(group, member_id)",
            "self._drop(group, member_id) if len(group.members()) > 1 else self._remove(group, member)",
        ),
    ),
    _one(
        "static-rejoin-in-vain",
        "a rebalance that no static member has joined by its time-out lasts until the next, whoever joins",
        "G4",
        edited(
            GroupCoordinator,
            "_end_rebalance",
            "self._wait_for_joins(group, group.rebalance_timeout_ms())",
            "self._wait_initially(group, group.rebalance_timeout_ms(), 0)",
        ),
    ),
    _one(
        "static-out-with-the-others",
        "static members are out as well where nobody has rejoined in time",
        "G11",
        edited(
            GroupCoordinator,
            "_end_rebalance",
            "for member in group.members():\n        if member.awaiting_join is None and not member.instance",
            "nobody = all(one.awaiting_join is None for one in group.members())\n"
            "    for member in group.members():\n"
            "        if member.awaiting_join is None and (nobody or not member.instance)",
        ),
    ),
    _one(
        "static-session-kept",
        "a static member that comes back with another session time-out keeps the one that it had",
        "G7",
        edited(
            GroupCoordinator,
            "join",
            "id=self._new_id(), session_timeout_ms=session_timeout_ms,",
            "id=self._new_id(),",
        ),
    ),
    _one(
        "leaving-ends-the-delay",
        "a member that leaves in the initial delay ends it",
        "G1",
        Patch(GroupCoordinator, "leave", _left_with_note),
        Patch(InitialDelayedJoin, "try_complete", _over_if_left),
    ),
    _one(
        "ended-rebalance-again",
        "a rebalance that was over in time begins again at its time-out",
        "G3",
        Patch(GroupCoordinator, "_wait_for_joins", _waits_once_more),
    ),
    _one(
        "former-syncs-awaited",
        "the time-out for the syncs of a generation puts out who has not synced in the next",
        "G3 G5",
        edited(
            DelayedSync,
            "try_complete",
            "self._generation != self._group.generation()",
            "False",
            "self._group.state() in (GroupState.COMPLETING, GroupState.STABLE)",
            "True",
        ),
        edited(GroupCoordinator, "_syncs_expired", "settled and generation == group.generation()", "settled"),
        edited(
            GroupCoordinator,
            "_prepare_rebalance",
            "self._rebalances.check_and_complete(GroupSyncKey(group.id))",
            "pass",
            "group.forget_pending_sync()",
            "pass",
        ),
    ),
    _one(
        "given-up-protocol-kept",
        "who joins again without a protocol has it still",
        "G2",
        edited(
            GroupCoordinator,
            "_rejoin",
            "protocols=asked.protocols, metadata=asked.metadata,",
            "protocols=tuple(dict.fromkeys((*asked.protocols, *member.protocols))), metadata=asked.metadata,",
        ),
    ),
    _one(
        "commit-unheard-in-rebalance",
        "a commit in a rebalance does not keep a member",
        "G10",
        edited(
            GroupCoordinator,
            "commit",
            "self._heard_of(",
            "group.state() is GroupState.PREPARING or self._heard_of(",
        ),
    ),
    _one(
        "beat-unheard-before-the-sync",
        "a heartbeat before the leader has synced does not keep a member",
        "G5 G10",
        edited(
            GroupCoordinator,
            "heartbeat",
            "self._heard_of(",
            "group.state() is GroupState.COMPLETING or self._heard_of(",
        ),
    ),
    _one(
        "waiting-join-unheard",
        "who waits in its join is out when its session is over",
        "G10",
        edited(Member, "has_satisfied_heartbeat", " or self.awaiting_join is not None", ""),
    ),
    _one(
        "static-return-unseen",
        "a rebalance goes on waiting where a static member that is back was the last",
        "G4",
        edited(
            GroupCoordinator,
            "join",
            "if group.state() is GroupState.PREPARING:",
            "if group.state() is GroupState.PREPARING and (static is None or member_id):",
        ),
    ),
    _one(
        "first-rebalance-kept",
        "a member that joins again with another rebalance time-out keeps the one that it had",
        "G5",
        edited(
            GroupCoordinator,
            "_rejoin",
            "rebalance_timeout_ms=asked.rebalance_timeout_ms",
            "rebalance_timeout_ms=member.rebalance_timeout_ms",
        ),
    ),
    _one(
        "static-leader-unheard",
        "a static leader that joins again by its id is told the same generation",
        "G3",
        edited(
            GroupCoordinator,
            "_rejoin",
            "member.id != group.leader()",
            "(member.id != group.leader() or member.instance)",
        ),
    ),
    _one(
        "static-rejoin-rebalances",
        "a static follower that joins a stable group again by its id starts a rebalance",
        "G3",
        edited(
            GroupCoordinator,
            "_rejoin",
            "group.state() is GroupState.STABLE and",
            "group.state() is GroupState.STABLE and not member.instance and",
        ),
    ),
    _one(
        "static-leave-unseen",
        "a rebalance goes on waiting for a static member that has left",
        "G4",
        edited(
            GroupCoordinator,
            "_drop",
            "if group.state() is GroupState.PREPARING:",
            "if group.state() is GroupState.PREPARING and member is not None and member.instance:\n"
            "        return\n"
            "    if group.state() is GroupState.PREPARING:",
        ),
    ),
    _one(
        "smallest-partition-first",
        "what has no room for all is filled in the order of the partitions' numbers",
        "F7",
        edited(
            ReplicaManager,
            "_read",
            "in partitions.items():",
            "in sorted(partitions.items(), key=lambda asked: asked[0].partition):",
        ),
    ),
    _one(
        "earliest-is-0",
        "ListOffsets says that every partition begins at 0, whatever is deleted",
        "L1",
        edited(data_requests, "_look_up", "return -1, replica.log_start()", "return -1, 0"),
    ),
    _one(
        "given-up-acknowledged",
        "an append that waits is acknowledged though too few replicas are in sync by then",
        "P4",
        edited(
            Partition,
            "enough_replicas",
            "Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "Error.NONE",
        ),
        brokers=2,
    ),
    _one(
        "ready-part-unwatched",
        "appends to a partition that had something when a fetch came do not wake it",
        "F3 F7",
        edited(
            ReplicaManager,
            "fetch_records",
            "operation, list(partitions)",
            "operation, [p for p in partitions if not results[p].size_bytes()] or list(partitions)",
        ),
    ),
    _one(
        "forgotten-and-known",
        "what a session asks for again is told when it moves, as if it had not been taken out",
        "X4",
        edited(FetchSessions, "go_on", "session.told.pop(place, None)", "pass"),
    ),
    _one(
        "records-outlive-the-topic",
        "a topic that is made by the name of one that was deleted has its records",
        "P1",
        Patch(ReplicaManager, "stop_replica", _stopped_and_kept),
        Patch(ReplicaManager, "_replica", _made_of_what_was_kept),
    ),
    _one(
        "offsets-outlive-the-group",
        "a group that is made by the name of one that was deleted has its offsets",
        "G12",
        Patch(GroupCoordinator, "delete", _deleted_but_for_its_offsets),
        Patch(GroupCoordinator, "group", _made_with_the_offsets_left),
    ),
    _one(
        "eight-keys-at-most",
        "a fetch is watched under the first eight of its partitions alone",
        "F3",
        edited(
            ReplicaManager,
            "fetch_records",
            "operation, list(partitions)",
            "operation, list(partitions)[:8]",
        ),
    ),
    _one(
        "kind-outlives-the-members",
        "a group that has become empty takes members of the kind alone that it had",
        "G0",
        edited(
            GroupCoordinator,
            "_refuses_join",
            "bool(group.members()) and protocol_type",
            "bool(group.protocol_type.get()) and protocol_type",
        ),
    ),
    _one(
        "name-outlives-the-leaving",
        "a static member that has left is unknown by its name for ever",
        "G11",
        Patch(GroupCoordinator, "leave", _left_but_for_its_name),
        Patch(GroupCoordinator, "join", _joined_unless_out),
    ),
    _one(
        "sent-again-there-again",
        "what an idempotent producer sends again is appended again",
        "P7",
        edited(Sequences, "take", "if written.producer_id < 0:", "if True:"),
    ),
    _one(
        "sequence-gap-taken",
        "an idempotent producer may leave out sequence numbers",
        "P7",
        edited(
            Sequences, "take", "written.base_sequence != known.next", "written.base_sequence < known.next"
        ),
    ),
    _one(
        "last-batch-known",
        "of an idempotent producer the last batch alone is known again",
        "P7",
        edited(Sequences, "take", "> REMEMBERED", "> 1"),
    ),
    _one(
        "duplicate-at-its-end",
        "what is sent again is acknowledged with the offset behind it",
        "P7",
        edited(Sequences, "take", "return base if base >= 0", "return base + count if base >= 0"),
    ),
    _one(
        "sequences-of-any-producer",
        "what an idempotent producer sends is taken for what another sent with the same sequence number",
        "P1 P7",
        edited(Sequences, "take", "key = partition, written.producer_id", "key = partition, 0"),
        edited(Sequences, "appended", "(partition, written.producer_id)", "(partition, 0)"),
    ),
    _one(
        "longest-session-refused",
        "a session as long as may be is refused",
        "G0",
        edited(GroupCoordinator, "_refuses_join", "<= session_timeout_ms <=", "<= session_timeout_ms <"),
    ),
    _one(
        "static-never-back",
        "a static member whose session was over is unknown by its name for ever",
        "G11",
        Patch(GroupCoordinator, "_session_expired", _expired_but_for_its_name),
        Patch(GroupCoordinator, "join", _joined_unless_out),
    ),
    _one(
        "protocols-of-the-generation",
        "who joins is held against the protocols of all of the generation, also of who has left",
        "G0 G2",
        Patch(Group, "next_generation", _next_with_candidates),
        Patch(Group, "shares_a_protocol", _shares_with_the_generation),
    ),
    _one(
        "open-transaction-wakes",
        "a fetch that waits for what is committed is woken by what is not",
        "R1",
        edited(DelayedFetch, "_bytes_available", ".end(self._params.isolation)", ".high_watermark"),
    ),
    _one(
        "open-transaction-read",
        "who reads what is committed is shown what is not",
        "R1 R4",
        edited(
            Partition, "read", "before = ends.end(isolation).offset", "before = ends.high_watermark.offset"
        ),
    ),
    _one(
        "open-transaction-counted",
        "who waits for more of what is committed than there is has what is not committed counted too",
        "R1",
        edited(
            DelayedFetch,
            "_bytes_available",
            "start.bytes_until(end)",
            "start.bytes_until(partition.ends(epoch, leader_only=False).high_watermark)",
        ),
    ),
    _one(
        "open-transaction-read-in-a-session",
        "who reads what is committed in a fetch session is shown what is not",
        "R1",
        _apis(_FETCH, handle=_FETCH_UNCOMMITTED.replacement),
    ),
    _one(
        "end-wakes-nobody",
        "the end of a transaction wakes nobody who waits for it",
        "R2",
        edited(
            ReplicaManager,
            "_append",
            "    if appended.high_watermark_rose:",
            "    if marker:\n        pass\n    elif appended.high_watermark_rose:",
        ),
    ),
    _one(
        "abort-wakes-nobody",
        "the end of a transaction wakes nobody where it is aborted",
        "R2",
        edited(
            ReplicaManager,
            "_append",
            "    if appended.high_watermark_rose:",
            "    if marker == 'abort':\n        pass\n    elif appended.high_watermark_rose:",
        ),
    ),
    _one(
        "aborted-stay-open",
        "what is aborted stays open: the last stable offset moves no further",
        "R2 R3 R4",
        edited(
            Log,
            "first_unstable",
            "if record.marker and record.offset < high_watermark:",
            "if record.marker == 'commit':",
        ),
    ),
    _one(
        "stable-behind-the-newest",
        "the last stable offset is where the newest open transaction begins",
        "R1 R4",
        edited(
            Log,
            "first_unstable",
            "min(undecided.values(), default=None)",
            "max(undecided.values(), default=None)",
        ),
    ),
    _one(
        "stable-when-all-ended",
        "while a transaction is open the last stable offset stays, though the first that was open has ended",
        "R2 R3 R4",
        edited(
            Log,
            "first_unstable",
            "undecided.pop(record.producer, None)",
            "(set(undecided) == {record.producer} and undecided.clear())",
        ),
    ),
    _one(
        "stable-offset-not-listed",
        "the end that is listed for who reads what is committed is the high watermark",
        "R4",
        edited(data_requests, "_look_up", ".end(isolation).offset", ".high_watermark.offset"),
    ),
    _one(
        "aborted-not-told",
        "who reads what is committed is not told what of it was aborted",
        "R3",
        edited(_Fetched, "_entry", "self._aborted(result) if", "[] if"),
    ),
    _one(
        "aborted-told-from-its-begin",
        "of what was aborted that alone is told which begins where the fetch does, or behind",
        "R3",
        edited(Log, "aborted", "record.offset >= offset", "first >= offset"),
    ),
    _one(
        "aborted-once-told",
        "of a producer the first transaction that was aborted is told, and no other",
        "R3",
        edited(
            Log,
            "aborted",
            "return tuple(found)",
            "return tuple({one.producer: one for one in reversed(found)}.values())",
        ),
    ),
    _one(
        "one-marker",
        "a transaction is ended in one of its partitions alone",
        "R2 R3 R4",
        edited(
            Node,
            "_write_markers",
            "for partition in ending.partitions},",
            "for partition in sorted(ending.partitions)[:1]},",
        ),
    ),
    _one(
        "ended-before-its-markers",
        "a transaction is said to have ended a second before its markers are written",
        "R2 R3 R4",
        Patch(Node, "_write_markers", _ended_before_its_markers),
    ),
    _one(
        "never-ended",
        "no transaction comes to its end",
        "R2",
        edited(Transactions, "ended", "self._producers[ending.transactional_id].state = State.ENDED", "pass"),
    ),
    _one(
        "epoch-stays",
        "who takes a transactional id over has the epoch of its former producer",
        "R5",
        edited(Transactions, "init", "producer.epoch += 1", "producer.epoch = 0"),
    ),
    _one(
        "former-ends",
        "a producer whose id another has taken over may end what that has open",
        "R5",
        edited(Transactions, "_current", "producer.epoch == by[1]", "producer.epoch >= by[1]"),
    ),
    _one(
        "former-appends",
        "a producer that was fenced may append",
        "R5",
        edited(
            Transactions,
            "writes",
            "if written.producer_epoch != producer.epoch:",
            "if written.producer_epoch < producer.epoch:\n"
            "            producer.appending += 1\n"
            "            return ErrorCode.none\n"
            "        if written.producer_epoch != producer.epoch:",
        ),
        Patch(Sequences, "fence", _nothing),
    ),
    _one(
        "taken-over-committed",
        "what was open is committed where its id is taken over",
        "R3",
        edited(
            Transactions,
            "init",
            "self._end(transactional_id, producer, ABORT)",
            "self._end(transactional_id, producer, 'commit')",
        ),
    ),
    _one(
        "taken-over-stays-open",
        "what was open where its id is taken over is never ended in its partitions",
        "R2 R3 R4",
        edited(
            Transactions,
            "init",
            "self._end(transactional_id, producer, ABORT)",
            "producer.state = State.EMPTY",
        ),
    ),
    _one(
        "none-ended",
        "an end without a transaction is taken for one",
        "R6",
        edited(Transactions, "end", "return ErrorCode.invalid_txn_state", "return ErrorCode.none"),
    ),
    _one(
        "offsets-of-any-end",
        "the offsets of a transaction are committed though it is aborted",
        "R7",
        edited(Node, "_write_markers", "if ending.marker == COMMIT:", "if ending.marker:"),
    ),
    _one(
        "offsets-of-no-end",
        "the offsets of a transaction are never committed",
        "R7",
        edited(Node, "_write_markers", "if ending.marker == COMMIT:", "if not ending.marker:"),
    ),
    _one(
        "offsets-of-any-generation",
        "a transaction commits offsets of members of any generation",
        "G9",
        edited(
            transaction_requests,
            "refuses_held",
            "if generation == group.generation() else Error.ILLEGAL_GENERATION",
            "",
        ),
    ),
    _one(
        "offsets-of-strangers",
        "a transaction commits offsets of who is no member of the group",
        "G9",
        edited(transaction_requests, "refuses_held", "return Error.UNKNOWN_MEMBER_ID", "return Error.NONE"),
    ),
    _one(
        "no-offsets-in-a-rebalance",
        "while a group rebalances its members commit nothing with a transaction",
        "R7",
        edited(
            transaction_requests,
            "refuses_held",
            "return Error.NONE if",
            "if group.state() is GroupState.PREPARING:\n            return Error.REBALANCE_IN_PROGRESS\n"
            "        return Error.NONE if",
        ),
    ),
    _one(
        "offsets-of-nobody-alone",
        "what a transaction holds is committed for a group without members alone",
        "R7",
        edited(
            Node,
            "_commit_held",
            "for partition, one in held.items()\n",
            "for partition, one in held.items()\n            if not group.members()\n",
        ),
    ),
    _one(
        "last-end-wins",
        "what a transaction holds is committed over what was committed behind it",
        "R7",
        edited(Node, "_commit_held", "one.place > there", "True or one.place > there"),
    ),
    _one(
        "former-name-kept",
        "a static member is out, its name is kept, and the coordinator fails when it comes back",
        "G4 G11",
        Patch(Group, "remove", _removed_but_for_its_name),
        Patch(GroupCoordinator, "_refuses_join", _fails_for_a_former_name),
    ),
    _one(
        "unstable-not-told",
        "who asks for stable offsets is told the old ones while a transaction is open",
        "R7",
        Patch(Transactions, "unstable", lambda self, group: set()),
    ),
    _one(
        "unstable-for-good",
        "offsets are unstable though the transaction has ended",
        "R7",
        edited(Transactions, "unstable", "(State.ONGOING, State.ENDING)", "State"),
    ),
    _one(
        "strangers-taken",
        "a transactional id that nobody has is ended and added to without an error",
        "R6",
        edited(
            Transactions,
            "add",
            "return producer\n        if producer.state is State.ENDING",
            "return ErrorCode.none\n        if producer.state is State.ENDING",
        ),
    ),
    _one(
        "absent-shifts-the-keys",
        "a fetch is watched under what it names first and is not there, instead of what is named last",
        "F3",
        Patch(RequestLayer, "fetch", _fetched_with_note),
        Patch(ReplicaManager, "fetch_records", _watched_from_the_first_on),
    ),
    _one(
        "handled-ahead",
        "requests are handled as they come; the answers alone wait for those before them",
        "X2",
        Patch(Server, "_answer", _handled_ahead),
    ),
    _one(
        "once-with-members",
        "who commits without a generation is refused in an empty group that had members",
        "G12",
        edited(
            GroupCoordinator,
            "commit",
            "generation < 0 and group.state()",
            "generation < 0 and not group.generation() and group.state()",
        ),
    ),
    _one(
        "four-batches-known",
        "of an idempotent producer four batches are known again, not five",
        "P7",
        Patch(sequences, "REMEMBERED", 4),
    ),
    _one(
        "unknown-in-a-transaction",
        "what a transactional producer sends again is not known",
        "P7",
        edited(
            Sequences,
            "take",
            "if count == header.records:",
            "if count == header.records and not header.producer:",
        ),
    ),
    _one(
        "refused-and-known",
        "what was refused of an idempotent producer is taken for known when it is sent rightly",
        "P1 P7",
        edited(
            Sequences,
            "appended",
            "if base < 0:",
            "if base < 0:\n                continue\n            if base < 0:",
        ),
    ),
    _one(
        "given-up-left-waiting",
        "a replica that is taken out of sync checks no key",
        "P6",
        edited(ReplicaManager, "shrink_isr", "self._check_later(partition)", "pass"),
        brokers=2,
    ),
    _one(
        "former-time-out-ends-the-next",
        "the time-out of a rebalance that was over in time ends the next one",
        "G6",
        Patch(DelayedJoin, "__init__", _join_begun_with_note),
        Patch(GroupCoordinator, "_wait_for_joins", _joins_time_out_anyway),
    ),
    _one(
        "follower-wakes-nobody",
        "what is replicated wakes no consumer that waits at the follower",
        "F3",
        edited(Follower, "_append", "self._node.manager.check_key(partition)", "pass"),
        brokers=2,
    ),
    _one(
        "any-generation-in-a-rebalance",
        "while a group rebalances a heartbeat of any generation is told so",
        "G9",
        edited(
            GroupCoordinator,
            "heartbeat",
            "if refusal is not Error.NONE or member is None:",
            "if refusal is Error.ILLEGAL_GENERATION and group.state() is GroupState.PREPARING:\n"
            "            refusal = Error.NONE\n"
            "        if refusal is not Error.NONE or member is None:",
        ),
    ),
    _one(
        "share-append-wakes-nobody",
        "an append checks nobody who waits in a share fetch",
        "S2",
        Patch(Shares, "_moved", lambda self, partition: 0),
    ),
    _one(
        "share-never-waits",
        "a share fetch is answered at once, whatever there is",
        "S1",
        edited(DelayedShareFetch, "_complete_if_enough", ">= self._params.min_bytes", ">= 0"),
    ),
    _one(
        "share-waits-twice",
        "a share fetch waits for twice its max_wait",
        "S1",
        _apis(_SHARE_FETCH, handle=_SHARE_TWICE.replacement),
    ),
    _one(
        "share-waits-unasked",
        "a share fetch with max_wait 0 waits for a second",
        "S2",
        _apis(_SHARE_FETCH, handle=_SHARE_UNASKED.replacement),
    ),
    _one(
        "share-acquired-twice",
        "what a member has acquired is given to others too",
        "S3",
        edited(SharePartition, "acquire", "and not found.done and not found.member", "and not found.done"),
        edited(SharePartition, "_next", "and not records[o].member", ""),
    ),
    _one(
        "share-count-stays",
        "a record that is delivered again has the delivery count of the first time",
        "S3",
        edited(SharePartition, "acquire", "before[offset].deliveries + 1", "before[offset].deliveries"),
    ),
    _one(
        "share-part-without-records",
        "of a batch that is given in parts the records come with the first part alone",
        "S3",
        edited(
            share_requests,
            "_whole",
            "one.offset >= first and first_offset(one) <= last",
            "first_offset(one) >= first",
        ),
    ),
    _one(
        "share-accepted-again",
        "what was accepted is given out again",
        "S4",
        edited(
            SharePartition,
            "acknowledge",
            "how is not Acknowledgement.RELEASE",
            "how is Acknowledgement.REJECT",
        ),
    ),
    _one(
        "share-rejected-again",
        "what was rejected is given out again",
        "S4",
        edited(
            SharePartition,
            "acknowledge",
            "how is not Acknowledgement.RELEASE",
            "how is Acknowledgement.ACCEPT",
        ),
    ),
    _one(
        "share-released-kept",
        "what a member releases is given to nobody again",
        "S5",
        edited(SharePartition, "acknowledge", "done=how is not Acknowledgement.RELEASE", "done=True"),
    ),
    _one(
        "share-first-type-of-all",
        "where an acknowledgement has a type for each record, all have the first one",
        "S5",
        edited(share_requests, "_said", "kinds * count if len(kinds) == 1 else kinds", "kinds[:1] * count"),
    ),
    _one(
        "share-said-with-a-fetch-lost",
        "what is acknowledged with a share fetch is not looked at",
        "S4 S5",
        _apis(_SHARE_FETCH, handle=_SHARE_UNSAID.replacement),
    ),
    _one(
        "share-anybody-acknowledges",
        "a member may acknowledge what another has acquired",
        "S6",
        edited(Shares, "acknowledge", "record.member == member_id", "record.member"),
        edited(SharePartition, "acknowledge", "records[offset].member == member", "records[offset].member"),
    ),
    _one(
        "share-released-acknowledged",
        "a member may acknowledge what it has released",
        "S6",
        edited(
            Shares,
            "acknowledge",
            "return Error.INVALID_RECORD_STATE",
            "free = all(record is not None and not record.member for record in held)\n"
            "        return Error.NONE if free else Error.INVALID_RECORD_STATE",
        ),
    ),
    _one(
        "share-lock-wakes-nobody",
        "the end of an acquisition lock wakes nobody",
        "S7",
        edited(SharePartition, "_expire", "if held and can_acquire:", "if not can_acquire:"),
    ),
    _one(
        "share-lock-never-over",
        "acquisition locks are never over",
        "S7",
        edited(SharePartition, "acquire", "self._timer.add(lock)", "pass"),
    ),
    _one(
        "share-lock-short",
        "acquisition locks are over after half of their time",
        "S7",
        edited(
            SharePartition,
            "acquire",
            "ActionTask(self._limits.lock_ms",
            "ActionTask(self._limits.lock_ms // 2",
        ),
    ),
    _one(
        "share-lock-cancelled-in-part",
        "whoever acknowledges a part of what it has acquired may keep the rest for ever",
        "S7",
        edited(
            SharePartition,
            "_give_back",
            "if lock is not None and all(other.lock is not lock for other in records.values()):",
            "if lock is not None:",
        ),
    ),
    _one(
        "share-former-lock-frees",
        "a lock frees what its member has released and another has acquired since",
        "S7 S3",
        edited(
            SharePartition,
            "_expire",
            "(record.member, record.deliveries) == (member, deliveries)",
            "record.member",
        ),
    ),
    _one(
        "share-end-frees-nothing",
        "what a share session held stays locked when it ends",
        "S8",
        Patch(SharePartition, "release_member", lambda self, member: 0),
    ),
    _one(
        "share-end-frees-one-partition",
        "the end of a share session frees what it held of one partition alone",
        "S8",
        edited(ShareFetches, "close_session", "for share in self._shares", "for share in self._shares[:1]"),
    ),
    _one(
        "share-cut-unseen",
        "a share session does not end with its connection",
        "S8",
        Patch(Shares, "cut", _nothing),
    ),
    _one(
        "share-any-epoch",
        "a share session takes requests in any order",
        "S9",
        edited(Shares, "session", "if epoch != session.next:", "if epoch < 0:"),
    ),
    _one(
        "share-refusal-counts",
        "a request of a share session that is refused counts as one",
        "S9",
        edited(
            Shares,
            "session",
            "return ErrorCode.invalid_share_session_epoch\n        session.next",
            "session.next += 1\n            return ErrorCode.invalid_share_session_epoch\n        session.next",
        ),
    ),
    _one(
        "share-session-made-up",
        "who names a share session that is not there is given one",
        "S9",
        edited(
            Shares,
            "session",
            "return ErrorCode.share_session_not_found",
            "session = group.sessions[member_id] = Session(connection, {}, epoch)",
        ),
    ),
)

FELT: Final[Mapping[str, FeltMutant]] = {mutant.name: mutant for mutant in _MUTANTS}
"""By name."""
