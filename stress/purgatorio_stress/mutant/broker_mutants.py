"""Bugs of concrete delayed operations: of the broker's replicas, groups and share fetches."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from purgatorio_broker.delayed_group import DelayedHeartbeat, DelayedJoin
from purgatorio_broker.delayed_produce import DelayedProduce
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.group import Group, Member
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import MemberKey, TopicPartition
from purgatorio_broker.partition import Isolation, LogEnds, Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.share_holding import Held
from purgatorio_stress.mutant.patch import Patch, known

Partitions = Mapping[TopicPartition, FetchPartition]
Results = Mapping[TopicPartition, FetchResult]

_ANSWER_FETCH: Final = ReplicaManager._answer_fetch
_ENDS: Final = Partition.ends
_UNLOCK: Final = DelayedShareFetch._unlock


def _drain_nothing(self: DelayedJoin) -> None:
    return None


def _complete_whoever_wins(self: DelayedShareFetch, held: Held) -> bool:
    self._held.set(held)
    self.force_complete()
    return True


def _decided_is_done(self: DelayedProduce) -> bool:
    return self.decide()


def _heard_of_for_good(self: GroupCoordinator, group: Group, member: Member, timeout_ms: int) -> None:
    key = MemberKey(group.id, member.id)
    group.update(member.id, satisfied=True)
    self._heartbeats.check_and_complete(key)
    session = DelayedHeartbeat(timeout_ms, group, member.id, self._session_expired, self._runtime)
    self._heartbeats.try_complete_else_watch(session, [key])


def _remove_leaving_session(self: GroupCoordinator, group: Group, member: Member) -> None:
    group.remove(member.id)
    self._answer_waiting(group, member, Error.UNKNOWN_MEMBER_ID)


def _note_without_check(
    self: ReplicaManager, params: FetchParams, partitions: Partitions, results: Results
) -> None:
    for partition, request in partitions.items():
        self.partition_or_raise(partition).follower_fetched(params.replica_id, request.offset)


def _check_then_note(
    self: ReplicaManager, params: FetchParams, partitions: Partitions, results: Results
) -> None:
    for partition in partitions:
        self.check_key(partition)
    _note_without_check(self, params, partitions, results)


def _answer_without_isolation(
    self: ReplicaManager, params: FetchParams, partitions: Partitions, callback: FetchCallback
) -> None:
    _ANSWER_FETCH(self, replace(params, isolation=Isolation.HIGH_WATERMARK), partitions, callback)


def _ends_at_log_end(self: Partition, current_epoch: int | None, *, leader_only: bool) -> LogEnds:
    found = _ENDS(self, current_epoch, leader_only=leader_only)
    return replace(found, high_watermark=found.log_end)


def _clear_then_unlock(self: DelayedShareFetch, locked: Iterable[TopicPartition]) -> None:
    partitions = list(locked)
    alias = partitions
    alias.clear()
    _UNLOCK(self, partitions)


BROKER_MUTANTS: Final = (
    known(16, "group-queued-at-expiry", Patch(DelayedJoin, "on_expiration", _drain_nothing)),
    known(25, "share-event-against-force", Patch(DelayedShareFetch, "_complete_from", _complete_whoever_wins),
         interleaving=True),
    known(27, "broker-replication", Patch(DelayedProduce, "try_complete", _decided_is_done)),
    known(28, "group-silent-member", Patch(GroupCoordinator, "_heard_of", _heard_of_for_good)),
    known(30, "group-leaving-member", Patch(GroupCoordinator, "_remove", _remove_leaving_session)),
    known(31, "broker-replication", Patch(ReplicaManager, "_note_follower", _note_without_check)),
    known(32, "broker-replication", Patch(ReplicaManager, "_note_follower", _check_then_note)),
    known(96, "broker-committed-reader", Patch(ReplicaManager, "_answer_fetch", _answer_without_isolation)),
    known(97, "broker-unreplicated", Patch(Partition, "ends", _ends_at_log_end)),
    known(98, "share-read-fails", Patch(DelayedShareFetch, "_unlock", _clear_then_unlock)),
)  # fmt: skip
"""By number."""
