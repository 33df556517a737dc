"""Mutants of membership: sessions, heartbeats, leaves and former generations (G7 to G10)."""

from typing import Final

from mutants.broker.client_visible_mutant import felt, known, nothing, told
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_stress.mutant.patch import Patch, edited


def _out_unseen(where: str) -> Patch:
    """If the condition `where` holds, a session timeout removes the member, but starts no rebalance."""
    return edited(
        GroupCoordinator,
        "_session_expired",
        "self._drop(group, member_id)",
        f"self._remove(group, member) if {where} else self._drop(group, member_id)",
    )


def _unheard(asked: str, state: str) -> Patch:
    """In this state of the group, the request `asked` does not extend the session."""
    return edited(
        GroupCoordinator, asked, "self._heard_of(", f"group.state() is GroupState.{state} or self._heard_of("
    )


MUTANTS: Final = (
    *told("group_members"),
    felt("session-not-evicted", "a silent member stays in the group", "G7",
         Patch(GroupCoordinator, "_session_expired", nothing)),
    known(28, "G7"),
    felt("session-unseen-in-rebalance", "a rebalance continues to wait for a member whose session timed out", "G7",
         _out_unseen("group.state() is GroupState.PREPARING")),
    felt("vain-in-rebalance", "a heartbeat during a rebalance does not extend the session", "G10 G4",
         _unheard("heartbeat", "PREPARING")),
    felt("silent-leader-awaited", "a session timeout before the leader's SyncGroup starts no rebalance", "G7",
         _out_unseen("group.state() is GroupState.COMPLETING")),
    felt("put-out-not-empty",
         "a group whose only member was removed does not count as empty: no initial delay follows", "G1 G7",
         _out_unseen("len(group.members()) == 1")),
    felt("commit-unheard-in-rebalance", "an OffsetCommit during a rebalance does not extend the session", "G10",
         _unheard("commit", "PREPARING")),
    felt("beat-unheard-before-the-sync", "a heartbeat before the leader's SyncGroup does not extend the session",
         "G5 G10",
         _unheard("heartbeat", "COMPLETING")),
)  # fmt: skip
