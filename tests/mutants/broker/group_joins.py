"""Bugs of joins: the ids that are given, the initial delay, who leads and by which protocol (G0 to G2)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt
from purgatorio_broker import group_coordinator
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group
from purgatorio_broker.group_coordinator import GroupCoordinator, InitialDelayedJoin
from purgatorio_stress.mutant.patch import Patch, edited, wrapped

_CANDIDATES: Final[dict[str, set[str]]] = {}


def _next_with_candidates(next_generation: Callable[..., None], self: Group) -> None:
    next_generation(self)
    held = [set(one.protocols) for one in self.members()]
    _CANDIDATES[self.id] = set.intersection(*held) if held else set()


def _shares_with_the_generation(
    shares: Callable[..., bool], self: Group, member_id: str, protocols: tuple[str, ...]
) -> bool:
    kept = _CANDIDATES.get(self.id) if self.members() else None
    return not kept.isdisjoint(protocols) if kept else shares(self, member_id, protocols)


_LEFT_GROUPS: Final[set[str]] = set()


def _leaving_noted(
    leave: Callable[..., Error], self: GroupCoordinator, group_id: str, member_id: str
) -> Error:
    _LEFT_GROUPS.add(group_id)
    return leave(self, group_id, member_id)


def _over_if_left(self: InitialDelayedJoin) -> bool:
    return self._group.id in _LEFT_GROUPS and bool(self._group.members()) and self.force_complete()


MUTANTS: Final = (
    felt("no-member-id", "a join without an id is not sent one", "G0",
         edited(GroupCoordinator, "join", "not member_id and id_required and not instance", "False")),
    felt("no-initial-delay", "a new group's first generation begins at once", "G1",
         edited(GroupCoordinator, "_prepare_rebalance", "if first:", "if False:")),
    felt("everybody-leads", "every member is told that it leads, and all members", "G2",
         edited(group_coordinator, "_joined", "member.id == group.leader()", "True",
                "group.leader()", "member.id")),
    felt("id-forgotten", "the id that a join was sent is not known", "G0",
         edited(Group, "is_pending", "member in self._pending.get()", "False")),
    felt("second-join-unheard", "who joins within the initial delay does not put it off", "G1",
         edited(GroupCoordinator, "_add", "group.new_member_added.set(True)", "pass")),
    felt("initial-delay-uncapped", "the initial delay goes beyond the rebalance time-out", "G1",
         edited(InitialDelayedJoin, "on_complete", "min(self._coordinator._initial_delay_ms, self._remaining_ms)",
                "self._coordinator._initial_delay_ms")),
    felt("protocol-of-the-leader", "the first protocol of the leader is chosen, whoever has it", "G2",
         edited(Group, "protocol", "if all(name in member.protocols for member in self.members())", "if name",
                "max(common, key=votes.count, default=", "next(iter(common), ")),
    felt("subscription-of-the-leader", "the leader is told its own subscription for everybody's", "G2",
         edited(group_coordinator, "_joined", "group.metadata(m) for m in told",
                "group.metadata(member) for _ in told")),
    felt("absent-leads", "a static leader that has not rejoined leads on", "G2",
         edited(Group, "elect_joined_leader", "self._leader.get() not in joined and joined", "False")),
    felt("any-protocol", "a member may join with protocols that nobody else has", "G9",
         edited(GroupCoordinator, "_refuses_join", "return Error.INCONSISTENT_GROUP_PROTOCOL", "pass")),
    felt("first-subscription-kept", "what a member says of itself when it joins again is not told to the leader",
         "G2",
         edited(GroupCoordinator, "_rejoin", "protocols=asked.protocols, metadata=asked.metadata,",
                "protocols=asked.protocols,")),
    felt("newcomer-out-by-its-session", "a new member that waits in its join for longer than its session is out",
         "G0",
         edited(GroupCoordinator, "_add", "NEW_MEMBER_TIMEOUT_MS", "member.session_timeout_ms")),
    felt("delay-without-end", "the initial delay goes on for as long as members come", "G1",
         edited(InitialDelayedJoin, "on_complete", "self._remaining_ms - delay_ms",
                "self._remaining_ms + delay_ms")),
    felt("session-unbounded", "a session may be of any length", "G9",
         edited(GroupCoordinator, "_refuses_join", "return Error.INVALID_SESSION_TIMEOUT", "pass")),
    felt("leader-told-nobody-again", "a leader that joins again before it has synced is not told the members", "G2",
         edited(GroupCoordinator, "_rejoin", "callback(_joined(group, member))",
                "callback(replace(_joined(group, member), members=(), metadata=()))")),
    felt("votes-uncounted", "the leader's favourite of the common protocols is chosen", "G2",
         edited(Group, "protocol", "max(common, key=votes.count, default=", "next(iter(common), ")),
    felt("leader-changes", "each rebalance has another leader", "G2",
         edited(Group, "elect_joined_leader", "self._leader.get() not in joined and joined", "joined",
                "joined[0]", "joined[-1]")),
    felt("leaving-ends-the-delay", "a member that leaves in the initial delay ends it", "G1",
         wrapped(GroupCoordinator, "leave", _leaving_noted),
         Patch(InitialDelayedJoin, "try_complete", _over_if_left)),
    felt("given-up-protocol-kept", "who joins again without a protocol has it still", "G2",
         edited(GroupCoordinator, "_rejoin", "protocols=asked.protocols, metadata=asked.metadata,",
                "protocols=tuple(dict.fromkeys((*asked.protocols, *member.protocols))), metadata=asked.metadata,")),
    felt("kind-outlives-the-members", "a group that has become empty takes members of the kind alone that it had",
         "G0",
         edited(GroupCoordinator, "_refuses_join", "bool(group.members()) and protocol_type",
                "bool(group.protocol_type.get()) and protocol_type")),
    felt("longest-session-refused", "a session as long as may be is refused", "G0",
         edited(GroupCoordinator, "_refuses_join", "<= session_timeout_ms <=", "<= session_timeout_ms <")),
    felt("protocols-of-the-generation",
         "who joins is held against the protocols of all of the generation, also of who has left", "G0 G2",
         wrapped(Group, "next_generation", _next_with_candidates),
         wrapped(Group, "shares_a_protocol", _shares_with_the_generation)),
    felt("second-join-unanswered", "a member that joins while its join waits is not answered", "X1",
         edited(GroupCoordinator, "_rejoin", "changed = ",
                "if member.awaiting_join is not None:\n        return\n    changed = ")),
)  # fmt: skip
