"""`Node`: one broker with all its parts: replicas, request layer, topics, groups, and a controller.

The controller accepts or refuses a change at once, and makes the change a moment later on its own thread. Until the
metadata shows the change, the request waits in the purgatory of topics, as in Kafka. This broker leads every partition.
A second broker (`follower`) may replicate the partitions. A node holds no lock of its own while it calls the delayed
operations.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from queue import SimpleQueue
from time import monotonic
from typing import Final
from uuid import uuid4

from purgatorio import LOCKED
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.cluster import Cluster, Topic
from purgatorio_broker.network.consumers import Consumers
from purgatorio_broker.network.fetch_sessions import FetchSessions
from purgatorio_broker.network.quotas import Quotas
from purgatorio_broker.network.record_batch import COMMIT, marker_batch
from purgatorio_broker.network.sequences import Sequences
from purgatorio_broker.network.settings import Settings
from purgatorio_broker.network.shares import Shares
from purgatorio_broker.network.transactions import Ending, Transactions
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.request import Gatekeeper, RequestLayer
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.topics import Topics

_TURN_S: Final = 0.1


class Node:
    """See the module. `leads`: whether this broker has the controller, and leads."""

    def __init__(self, settings: Settings, cluster: Cluster, *, leads: bool = True) -> None:
        self.settings = settings
        self.cluster = cluster
        self.leads = leads
        runtime = Runtime(dialect=LOCKED)
        self.manager = ReplicaManager(runtime, broker_id=settings.node_id, min_isr=settings.min_in_sync)
        self.layer = RequestLayer(self.manager, Gatekeeper(knows=cluster.has))
        self.topics = Topics(runtime)
        self.groups = GroupCoordinator(
            runtime, self.manager.actions, initial_delay_ms=settings.initial_delay_ms,
            session_bounds_ms=settings.session_bounds_ms, new_id=lambda: f"member-{uuid4()}",
        )  # fmt: skip
        self.consumers = Consumers(cluster)
        self.shares = Shares(runtime, self.manager, cluster, settings.share_lock_ms)
        self.sessions = FetchSessions()
        self.sequences = Sequences()
        self.quotas = Quotas()
        self.new_producer: Callable[[], int] = count(1).__next__
        """The id of an idempotent or transactional producer."""
        self.next_commit: Callable[[], int] = count(1).__next__
        """The place of a commit among all."""
        self.transactions = Transactions(self.new_producer, self._write_later)
        self._lock = threading.Lock()
        self._stored_bytes = 0
        self._heard_s: dict[int, float] = {}
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._control, name=f"controller-{settings.node_id}", daemon=True),
            threading.Thread(target=self._watch, name=f"watch-{settings.node_id}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def create(
        self, timeout_ms: int, topics: Sequence[Topic], callback: Callable[[Mapping[str, Error]], None]
    ) -> None:
        """Create topics. Responds when the metadata shows the topics, or at the time-out. TOPIC_ALREADY_EXISTS."""
        accepted = [topic for topic in topics if self.cluster.add(topic)]
        refused = {topic.name: Error.TOPIC_ALREADY_EXISTS for topic in topics if topic not in accepted}
        self.topics.create(
            timeout_ms,
            {topic.name: topic.partitions for topic in accepted},
            lambda results: callback({**refused, **results}),
        )
        self._work.put(lambda: self._lead_all(accepted))

    def grow(
        self, timeout_ms: int, totals: Mapping[str, int], callback: Callable[[Mapping[str, Error]], None]
    ) -> None:
        """Add partitions to topics. Responds as `create` does."""
        self.topics.create_partitions(timeout_ms, totals, callback)
        self._work.put(lambda: self._grow(totals))

    def delete(
        self, timeout_ms: int, names: Sequence[str], callback: Callable[[Mapping[str, Error]], None]
    ) -> None:
        """Delete topics. Responds when the metadata does not show the topics any more, or at the time-out."""
        self.topics.delete(timeout_ms, names, callback)
        self._work.put(lambda: self._delete(names))

    def delete_group(self, group_id: str) -> Error:
        if not self.leads:
            return Error.NOT_COORDINATOR
        if self.consumers.has_members(group_id):
            return Error.NON_EMPTY_GROUP
        shared = self.shares.delete(group_id)
        return self.groups.delete(group_id) if shared is None else shared

    def takes(self, size_bytes: int) -> bool:
        """Whether there is room for these bytes. If so, they count as stored."""
        with self._lock:
            if self._stored_bytes + size_bytes > self.settings.max_stored_bytes:
                return False
            self._stored_bytes += size_bytes
            return True

    def count_stored(self) -> None:
        """Count the stored bytes again, because records were deleted or not stored."""
        stored_bytes = sum(replica.stored_bytes() for replica in self.manager.replicas.all().values())
        with self._lock:
            self._stored_bytes = stored_bytes

    def heard_of(self, follower: int) -> None:
        with self._lock:
            self._heard_s[follower] = monotonic()

    def close(self) -> None:
        self._closed.set()
        self._work.put(None)
        self.manager.shutdown()
        self.topics.shutdown()
        self.groups.shutdown()
        self.shares.shutdown()
        for thread in self._threads:
            thread.join()

    def _control(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            self.manager.run_actions()

    def _lead_all(self, topics: Sequence[Topic]) -> None:
        for topic in topics:
            self._lead(topic, 0)

    def _lead(self, topic: Topic, first: int) -> None:
        """Become the leader of the topic's partitions from number `first` on. Then the metadata shows this leader."""
        for partition in topic.all()[first:]:
            replica = self.manager.become_leader(
                partition, 0, topic.replicas, topic.replicas, segment_bytes=topic.segment_bytes
            )
            replica.min_isr = topic.min_in_sync
            self.topics.metadata.set_leader(partition, self.settings.node_id)

    def _grow(self, totals: Mapping[str, int]) -> None:
        for name, total in totals.items():
            before = self.cluster.topic(name)
            grown = self.cluster.grow(name, total)
            if before is not None and grown is not None:
                self._lead(grown, before.partitions)

    def _delete(self, names: Sequence[str]) -> None:
        for topic in filter(None, map(self.cluster.remove, names)):
            for partition in topic.all():
                self.manager.stop_replica(partition, deleted=True)
            self.groups.forget_topic(topic.name)
            self.sequences.forget(topic.name)
            self.topics.metadata.remove(topic.name)
        self.count_stored()

    def _write_later(self, ending: Ending) -> None:
        self._work.put(lambda: self._write_markers(ending))

    def _write_markers(self, ending: Ending) -> None:
        """Ends a transaction in each of its partitions, with any number of replicas in sync, and commits its
        offsets."""
        self.transactions.await_appends(ending)
        batch = marker_batch(ending.producer_id, ending.producer_epoch, ending.marker)
        for partition in ending.partitions:
            self.sequences.fence(partition, ending.producer_id, ending.producer_epoch)
        if ending.marker == COMMIT:
            for name, offsets in ending.offsets.items():
                group = self.groups.group(name)
                with group.lock:
                    group.commit(offsets)
        self.manager.append_records(
            0, 1, {partition: [batch] for partition in ending.partitions},
            lambda results: self.transactions.ended(ending), str(ending.producer_id), ending.marker,
        )  # fmt: skip

    def _watch(self) -> None:
        """A follower that has not fetched for the lag time leaves the in-sync set (Kafka's replica.lag.time.max.ms).
        A transaction that is open for longer than its time-out is aborted."""
        while self.leads and not self._closed.wait(_TURN_S):
            self.transactions.abort_overdue()
            oldest_s = monotonic() - self.settings.replica_lag_ms / 1000
            with self._lock:
                silent = {node_id for node_id, heard_s in self._heard_s.items() if heard_s < oldest_s}
            if not silent:
                continue
            for partition, replica in self.manager.replicas.all().items():
                isr = replica.isr()
                if isr & silent:
                    self._shrink(partition, sorted(isr - silent))
            self.manager.run_actions()

    def _shrink(self, partition: TopicPartition, to: Sequence[int]) -> None:
        try:
            self.manager.shrink_isr(partition, to)
        except BrokerError:
            return  # The partition was deleted meanwhile.
