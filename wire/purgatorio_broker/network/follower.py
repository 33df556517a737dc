"""A second broker that replicates the partitions of a leader.

The follower sends its address to the leader by BrokerRegistration (there is no controller), reads the topics by
Metadata, and replicates by Fetch with its own id. Such a Fetch waits at the leader in a `DelayedFetch`, and moves the
high watermark. The follower never leads a partition: a client that requests data gets NOT_LEADER_OR_FOLLOWER.

If the follower is stopped (SIGSTOP) or ends, requests with acks=-1 wait for the follower, at most for the
leader's `replica_lag_ms`. Then the follower leaves the in-sync replicas.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast
from uuid import UUID, uuid4

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import RequestPayload

from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.cluster import Cluster, EndPoint, Topic
from purgatorio_broker.network.fields import Fields, grouped
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.record_batch import batches_of, new_records
from purgatorio_wire.client.frame import Frames, framed
from purgatorio_wire.client.message import entity_of, read_answer, request_payload

_log = logging.getLogger("purgatorio.broker")

_FETCH: Final = (1, 11)
_METADATA: Final = (3, 12)
_REGISTRATION: Final = (62, 0)
_TURN_S: Final = 0.05
_FETCH_WAIT_MS: Final = 100
"""Shorter than Kafka's 500 ms, because a new topic waits at most this time for its first replication."""
_ANSWER_S: Final = 30.0
_PIECE_BYTES: Final = 1 << 16
_FETCH_BYTES: Final = 8 << 20


class Leader:
    """A connection to the leader, for one thread. Raises OSError if it breaks."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = Frames()
        self._asked = 0

    def ask(self, api: tuple[int, int], values: Mapping[str, object]) -> Fields:
        self._asked += 1
        request = cast(RequestPayload, entity_of(*api, EntityType.request, values))
        payload = request_payload(request, self._asked, "follower")
        self._socket.sendall(framed(payload))
        while piece := self._socket.recv(_PIECE_BYTES):
            for frame in self._frames.feed(piece):
                return Fields(read_answer(*api, frame).body)
        raise ConnectionResetError("the leader has closed the connection")

    def close(self) -> None:
        """Close it; a call that waits ends with OSError."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def registered(leader: Leader, broker: EndPoint) -> None:
    """Sends the follower's address to the leader. Raises ConnectionRefusedError if the leader refuses it."""
    answer = leader.ask(
        _REGISTRATION,
        {
            "broker_id": broker.node_id,
            "cluster_id": "",
            "incarnation_id": uuid4(),
            "listeners": [{"name": "PLAINTEXT", "host": broker.host, "port": broker.port}],
        },
    )
    code = answer.number("error_code")
    if code:
        raise ConnectionRefusedError(f"the leader refuses broker {broker.node_id}: {ErrorCode(code).name}")


class Follower:
    """Follows the leader on threads of its own, until `close`. Raises OSError if the leader cannot be reached."""

    def __init__(self, node: Node, own: EndPoint, leader_host: str, leader_port: int) -> None:
        self._node = node
        self._own = own
        self._at = (leader_host, leader_port)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._moved = threading.Event()
        self._leaders: list[Leader] = []
        first = self._connect()
        registered(first, own)
        self._take_over(first)
        self._threads = [
            threading.Thread(target=self._keep, args=(self._follow_metadata,), name="metadata", daemon=True),
            threading.Thread(target=self._keep, args=(self._replicate,), name="fetcher", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._closed.set()
        self._moved.set()
        with self._lock:
            for leader in self._leaders:
                leader.close()
        for thread in self._threads:
            thread.join()

    def _connect(self) -> Leader:
        leader = Leader(*self._at)
        with self._lock:
            self._leaders.append(leader)
            if self._closed.is_set():
                leader.close()
        return leader

    def _keep(self, work: Callable[[Leader], None]) -> None:
        """Runs the work on a connection to the leader, and again on a new connection if it breaks."""
        while not self._closed.is_set():
            leader: Leader | None = None
            try:
                leader = self._connect()
                registered(leader, self._own)
                while not self._closed.is_set():
                    work(leader)
            except OSError as gone:
                if not self._closed.is_set():
                    _log.info("the leader is not there: %s", gone)
            finally:
                if leader is not None:
                    leader.close()
                    with self._lock:
                        self._leaders.remove(leader)
            self._closed.wait(_TURN_S)

    def _follow_metadata(self, leader: Leader) -> None:
        self._take_over(leader)
        self._closed.wait(_TURN_S)

    def _take_over(self, leader: Leader) -> None:
        """Take over exactly the topics and brokers of the leader."""
        answer = leader.ask(_METADATA, {"topics": None})
        cluster = self._node.cluster
        for entry in answer.entries("brokers"):
            cluster.register(EndPoint(entry.number("node_id"), entry.text("host"), entry.number("port")))
        # A topic that was deleted during the request has no id in the answer.
        told = [entry for entry in answer.entries("topics") if entry.uuid("topic_id") is not None]
        there = [_topic(entry) for entry in told]
        known = {topic.topic_id: topic for topic in cluster.topics()}
        for gone in [
            topic for topic in known.values() if topic.topic_id not in {one.topic_id for one in there}
        ]:
            self._drop(cluster, gone)
        for entry, topic in zip(told, there, strict=True):
            before = known.get(topic.topic_id)
            if before is None:
                cluster.add(topic)
            elif before.partitions < topic.partitions:
                cluster.grow(topic.name, topic.partitions)
            self._place(topic, entry.entries("partitions"))

    def _place(self, topic: Topic, partitions: Sequence[Fields]) -> None:
        """Follow the partitions that have a leader now and were not followed before."""
        for entry in partitions:
            partition = TopicPartition(topic.name, entry.number("partition_index"))
            leads = entry.number("leader_id", -1)
            if leads < 0 or self._node.topics.metadata.leader(partition) is not None:
                continue
            if self._own.node_id in topic.replicas:
                self._node.manager.become_follower(partition, max(entry.number("leader_epoch"), 0))
                self._moved.set()
            else:
                self._node.manager.stop_replica(partition)
            self._node.topics.metadata.set_leader(partition, leads)
        self._node.manager.run_actions()

    def _drop(self, cluster: Cluster, topic: Topic) -> None:
        cluster.remove(topic.name)
        for partition in topic.all():
            self._node.manager.stop_replica(partition, deleted=True)
        self._node.topics.metadata.remove(topic.name)
        self._node.manager.run_actions()

    def _replicate(self, leader: Leader) -> None:
        """Sends one fetch for all replicas of this broker, and appends its records."""
        replicas = self._node.manager.replicas.all()
        if not replicas:
            self._moved.wait(_TURN_S)
            self._moved.clear()
            return
        wanted = [
            (
                partition,
                {
                    "fetch_offset": replica.ends(None, leader_only=False).log_end.offset,
                    "partition_max_bytes": _FETCH_BYTES,
                    "log_start_offset": replica.log_start(),
                    "current_leader_epoch": replica.epoch(),
                },
            )
            for partition, replica in replicas.items()
        ]
        answer = leader.ask(
            _FETCH,
            {
                "replica_id": self._own.node_id,
                "max_wait_ms": _FETCH_WAIT_MS,
                "min_bytes": 1,
                "max_bytes": _FETCH_BYTES,
                "topics": grouped(wanted),
            },
        )
        for one in answer.partitions("responses"):
            self._append(one.place, one.fields)
        self._node.manager.run_actions()

    def _append(self, partition: TopicPartition, entry: Fields) -> None:
        replica = self._node.manager.replicas.get(partition)
        if replica is None or entry.number("error_code"):
            return
        high_watermark, start = entry.number("high_watermark"), entry.number("log_start_offset")
        batches = list(batches_of(entry.data("records")))
        for header, batch in batches:
            end = replica.ends(None, leader_only=False).log_end.offset
            if header.base_offset == end:
                replica.replicate(
                    new_records(header, batch),
                    header.epoch,
                    high_watermark,
                    start,
                    header.producer,
                    header.marker,
                )
        if not batches:
            replica.replicate([], replica.epoch(), high_watermark, start)
        replica.place_high_watermark()
        self._node.manager.check_key(partition)


def _topic(entry: Fields) -> Topic:
    partitions = entry.entries("partitions")
    replicas = partitions[0].numbers("replica_nodes") if partitions else []
    return Topic(entry.text("name"), entry.uuid("topic_id") or UUID(int=0), len(partitions), tuple(replicas))
