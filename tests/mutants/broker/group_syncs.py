"""Mutants of SyncGroup: the wait for the leader, the missing members and the assignments (G5)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio_broker.group import Group, GroupState
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_stress.mutant.patch import Patch, edited, wrapped


def _dropped_unless_it_is_to_sync(
    drop: Callable[..., None], self: GroupCoordinator, group: Group, member_id: str
) -> None:
    leader = group.get(group.leader())
    if leader is not None and leader.id == member_id and group.state() is GroupState.COMPLETING:
        self._remove(group, leader)
    else:
        drop(self, group, member_id)


MUTANTS: Final = (
    *told("group_syncs"),
    felt("sync-left-in-rebalance", "a SyncGroup that waits when a rebalance begins is not answered", "G5",
         Patch(GroupCoordinator, "_answer_sync_with", nothing)),
    felt("unsynced-left-alone", "a member that leaves before all members have sent SyncGroup starts no rebalance", "G5",
         edited(GroupCoordinator, "_maybe_rebalance", "GroupState.COMPLETING, ", "")),
    felt("leader-leaves-quietly", "a leader that leaves before its SyncGroup starts no rebalance", "G5",
         wrapped(GroupCoordinator, "_drop", _dropped_unless_it_is_to_sync)),
)  # fmt: skip
