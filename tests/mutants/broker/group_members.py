"""Bugs of who is a member: sessions and heartbeats, leaving, and generations that are over (G7 to G10)."""

from typing import Final

from mutants.broker.client_visible_mutant import felt, known, nothing, told
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_stress.mutant.patch import Patch, edited


def _out_unseen(where: str) -> Patch:
    """Where that is so, who is put out is out without a word to the others."""
    return edited(
        GroupCoordinator,
        "_session_expired",
        "self._drop(group, member_id)",
        f"self._remove(group, member) if {where} else self._drop(group, member_id)",
    )


def _unheard(asked: str, state: str) -> Patch:
    """What a member asks in this state does not keep it."""
    return edited(
        GroupCoordinator, asked, "self._heard_of(", f"group.state() is GroupState.{state} or self._heard_of("
    )


MUTANTS: Final = (
    *told("group_members"),
    felt("session-not-evicted", "a member that is silent stays", "G7",
         Patch(GroupCoordinator, "_session_expired", nothing)),
    known(28, "G7"),
    felt("session-unseen-in-rebalance", "a rebalance goes on waiting for a member whose session is over", "G7",
         _out_unseen("group.state() is GroupState.PREPARING")),
    felt("vain-in-rebalance", "a heartbeat in a rebalance does not keep a member", "G10 G4",
         _unheard("heartbeat", "PREPARING")),
    felt("silent-leader-awaited", "the end of a session begins no rebalance before the leader has synced", "G7",
         _out_unseen("group.state() is GroupState.COMPLETING")),
    felt("put-out-not-empty",
         "a group whose only member was put out is not empty: the next one has no initial delay", "G1 G7",
         _out_unseen("len(group.members()) == 1")),
    felt("commit-unheard-in-rebalance", "a commit in a rebalance does not keep a member", "G10",
         _unheard("commit", "PREPARING")),
    felt("beat-unheard-before-the-sync", "a heartbeat before the leader has synced does not keep a member",
         "G5 G10",
         _unheard("heartbeat", "COMPLETING")),
)  # fmt: skip
