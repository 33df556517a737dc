"""Bugs of syncs: who waits for the leader, who is waited for, and what each is assigned (G5)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing
from purgatorio_broker.group import Group, GroupState, Member
from purgatorio_broker.group_coordinator import DelayedSync, GroupCoordinator
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
    felt("sync-not-waiting", "a sync is answered before the leader's", "G5",
         edited(GroupCoordinator, "sync", "if group.state() is GroupState.STABLE:",
                "if group.state() is GroupState.STABLE or member_id != group.leader():")),
    felt("sync-not-woken", "the leader's sync answers nobody else's", "G5",
         edited(GroupCoordinator, "_assign", "assigned.awaiting_sync is not None",
                "assigned.id == group.leader()")),
    felt("same-assignment", "everybody gets the leader's assignment", "G5",
         edited(GroupCoordinator, "_assign", "assignments.get(member.id", "assignments.get(group.leader()")),
    felt("left-out-unanswered", "a sync that waits is not answered where the leader gives it nothing", "G5",
         edited(GroupCoordinator, "_assign", "assigned.awaiting_sync is not None",
                "assigned.awaiting_sync is not None and member.id in assignments")),
    felt("late-sync-empty", "who syncs after the leader gets no assignment", "G5",
         edited(GroupCoordinator, "_assign", "in group.members()",
                "in [one for one in group.members() if one.awaiting_sync is not None]")),
    felt("leader-never-out", "a leader that does not sync is waited for, for ever", "G5",
         edited(GroupCoordinator, "_syncs_expired", "group.pending_sync() if",
                "group.pending_sync() - {group.leader()} if")),
    felt("sync-left-in-rebalance", "a sync that waits when a rebalance begins is not answered", "G5",
         Patch(GroupCoordinator, "_answer_sync_with", nothing)),
    felt("sync-refused", "syncs are told of a rebalance where none is", "G5",
         edited(GroupCoordinator, "sync", "group.state() is GroupState.PREPARING",
                "group.state() is GroupState.COMPLETING")),
    felt("unsynced-left-alone", "who leaves before all have synced starts no rebalance", "G5",
         edited(GroupCoordinator, "_maybe_rebalance", "GroupState.COMPLETING, ", "")),
    felt("unsynced-stays", "who has not synced by the rebalance time-out stays a member", "G5",
         edited(GroupCoordinator, "_syncs_expired", "self._remove(group, member)", "pass")),
    felt("followers-sync-unawaited", "a stable group has no time-out for syncs", "G5",
         edited(GroupCoordinator, "_syncs_expired", "in (GroupState.COMPLETING, GroupState.STABLE)",
                "is GroupState.COMPLETING")),
    felt("waiting-sync-unheard", "who waits in its sync is out when its session is over", "G5",
         edited(Member, "has_satisfied_heartbeat", " or self.awaiting_sync is not None", "")),
    felt("former-syncs-awaited",
         "the time-out for the syncs of a generation puts out who has not synced in the next", "G3 G5",
         edited(DelayedSync, "try_complete", "self._generation != self._group.generation()", "False",
                "self._group.state() in (GroupState.COMPLETING, GroupState.STABLE)", "True"),
         edited(GroupCoordinator, "_syncs_expired", "settled and generation == group.generation()", "settled"),
         edited(GroupCoordinator, "_prepare_rebalance",
                "self._rebalances.check_and_complete(GroupSyncKey(group.id))", "pass",
                "group.forget_pending_sync()", "pass")),
    felt("first-rebalance-kept",
         "a member that joins again with another rebalance time-out keeps the one that it had", "G5",
         edited(GroupCoordinator, "_rejoin", "rebalance_timeout_ms=asked.rebalance_timeout_ms",
                "rebalance_timeout_ms=member.rebalance_timeout_ms")),
    felt("no-session-before-the-sync", "the session of a new member begins with its sync", "G5 G7",
         edited(GroupCoordinator, "_end_rebalance", "self._heard_of(group, settled, settled.session_timeout_ms)",
                "pass")),
    felt("synced-behind-out", "who syncs in a stable group is out, as if it had never synced", "G10",
         edited(GroupCoordinator, "sync", "group.has_synced(member_id)",
                "_ = group.state() is GroupState.STABLE or group.has_synced(member_id)")),
    felt("other-protocol-synced", "a sync by another protocol than the group's is taken", "G9",
         edited(GroupCoordinator, "sync", "refusal = Error.INCONSISTENT_GROUP_PROTOCOL", "pass")),
    felt("leader-leaves-quietly", "a leader that leaves before it has synced begins no rebalance", "G5",
         wrapped(GroupCoordinator, "_drop", _dropped_unless_it_is_to_sync)),
)  # fmt: skip
