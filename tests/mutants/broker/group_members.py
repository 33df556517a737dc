"""Bugs of who is a member: sessions and heartbeats, leaving, and generations that are over (G7 to G10)."""

from typing import Final

from mutants.broker.client_visible_mutant import felt, known, nothing
from purgatorio_broker import group_coordinator
from purgatorio_broker.group import Member
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
    felt("session-not-evicted", "a member that is silent stays", "G7",
         Patch(GroupCoordinator, "_session_expired", nothing)),
    felt("half-a-session", "a session lasts half its time", "G7 G10",
         edited(GroupCoordinator, "_heard_of", "DelayedHeartbeat(timeout_ms,",
                "DelayedHeartbeat(timeout_ms // 2,")),
    known(28, "G7"),
    felt("leave-starts-nothing", "a member that leaves starts no rebalance", "G8",
         edited(GroupCoordinator, "_drop", "self._maybe_rebalance(group)",
                "group.members() or group.enter(GroupState.EMPTY)")),
    felt("any-generation", "a wrong generation is taken", "G9",
         edited(group_coordinator, "_refusal", "generation == group.generation()", "True")),
    felt("stranger-heard", "a heartbeat of an unknown member is taken", "G9 G6 G7",
         edited(GroupCoordinator, "heartbeat", "return refusal",
                "return Error.NONE if member is None else refusal")),
    felt("generation-as-member", "a wrong generation is UNKNOWN_MEMBER_ID", "G9",
         edited(group_coordinator, "_refusal", "else Error.ILLEGAL_GENERATION", "else Error.UNKNOWN_MEMBER_ID")),
    felt("heartbeat-in-vain", "a heartbeat does not keep a member", "G10",
         edited(GroupCoordinator, "heartbeat", "self._heard_of(group, member, member.session_timeout_ms)", "pass")),
    felt("session-unseen-in-rebalance", "a rebalance goes on waiting for a member whose session is over", "G7",
         _out_unseen("group.state() is GroupState.PREPARING")),
    felt("vain-in-rebalance", "a heartbeat in a rebalance does not keep a member", "G10 G4",
         _unheard("heartbeat", "PREPARING")),
    felt("past-generation", "a generation that is over is taken", "G9",
         edited(group_coordinator, "_refusal", "generation == group.generation()",
                "generation <= group.generation()")),
    felt("commit-unheard", "a commit does not keep a member", "G10",
         edited(GroupCoordinator, "commit", "self._heard_of(group, member, member.session_timeout_ms)", "pass")),
    felt("stranger-leaves", "who is no member leaves without an error", "G9",
         edited(GroupCoordinator, "leave", "return Error.UNKNOWN_MEMBER_ID", "pass")),
    felt("expected-for-ever", "who was given an id and does not join is expected until the rebalance time-out",
         "G7",
         edited(GroupCoordinator, "_session_expired", "self._drop_pending(group, member_id)", "return")),
    felt("left-join-waits", "the join of who leaves is never answered", "G8 X1",
         edited(GroupCoordinator, "_remove", "self._answer_waiting(group, member, Error.UNKNOWN_MEMBER_ID)",
                "pass")),
    felt("session-of-another", "a member's session is as long as the longest of its group", "G7",
         edited(GroupCoordinator, "_heard_of", "DelayedHeartbeat(timeout_ms,",
                "DelayedHeartbeat(max(timeout_ms, *(m.session_timeout_ms for m in group.members())),")),
    felt("leaving-told-unknown", "a member that leaves is told that it is none", "G8",
         edited(GroupCoordinator, "leave", "return Error.NONE", "return Error.UNKNOWN_MEMBER_ID")),
    felt("silent-leader-awaited", "the end of a session begins no rebalance before the leader has synced", "G7",
         _out_unseen("group.state() is GroupState.COMPLETING")),
    felt("first-session-kept", "a member that joins again with another session time-out keeps the one that it had",
         "G7",
         edited(GroupCoordinator, "_rejoin", "session_timeout_ms=asked.session_timeout_ms",
                "session_timeout_ms=member.session_timeout_ms")),
    felt("last-one-stays", "the only member of a group stays when its session is over", "G7",
         edited(GroupCoordinator, "_session_expired", "not member.has_satisfied_heartbeat()",
                "not member.has_satisfied_heartbeat() and len(group.members()) > 1")),
    felt("put-out-not-empty",
         "a group whose only member was put out is not empty: the next one has no initial delay", "G1 G7",
         _out_unseen("len(group.members()) == 1")),
    felt("commit-unheard-in-rebalance", "a commit in a rebalance does not keep a member", "G10",
         _unheard("commit", "PREPARING")),
    felt("beat-unheard-before-the-sync", "a heartbeat before the leader has synced does not keep a member",
         "G5 G10",
         _unheard("heartbeat", "COMPLETING")),
    felt("waiting-join-unheard", "who waits in its join is out when its session is over", "G10",
         edited(Member, "has_satisfied_heartbeat", " or self.awaiting_join is not None", "")),
    felt("no-session-after-a-told-sync",
         "the session of who waited in its sync does not begin as it is told of a rebalance", "G7",
         edited(GroupCoordinator, "_answer_sync_with",
                "self._heard_of(group, member, member.session_timeout_ms)", "pass")),
    felt("any-generation-in-a-rebalance", "while a group rebalances a heartbeat of any generation is told so", "G9",
         edited(GroupCoordinator, "heartbeat", "if refusal is not Error.NONE or member is None:",
                "if refusal is Error.ILLEGAL_GENERATION and group.state() is GroupState.PREPARING:\n"
                "            refusal = Error.NONE\n"
                "        if refusal is not Error.NONE or member is None:")),
)  # fmt: skip
