"""Mutants of joins: member ids, the initial delay, the leader and the protocol (G0 to G2)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt, told
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
    *told("group_joins"),
    felt("protocol-of-the-leader", "the first protocol of the leader is chosen, even if other members lack it", "G2",
         edited(Group, "protocol", "if all(name in member.protocols for member in self.members())", "if name",
                "max(common, key=votes.count, default=", "next(iter(common), ")),
    felt("votes-uncounted", "the protocol that the leader prefers is chosen, not the one with most votes", "G2",
         edited(Group, "protocol", "max(common, key=votes.count, default=", "next(iter(common), ")),
    felt("leaving-ends-the-delay", "a member that leaves during the initial delay ends the delay", "G1",
         wrapped(GroupCoordinator, "leave", _leaving_noted),
         Patch(InitialDelayedJoin, "try_complete", _over_if_left)),
    felt("protocols-of-the-generation",
         "a new member must support the protocols of members that have left, too", "G0 G2",
         wrapped(Group, "next_generation", _next_with_candidates),
         wrapped(Group, "shares_a_protocol", _shares_with_the_generation)),
    felt("second-join-unanswered", "a second JoinGroup of a member that waits in its JoinGroup is not answered", "X1",
         edited(GroupCoordinator, "_rejoin", "changed = ",
                "if member.awaiting_join is not None:\n        return\n    changed = ")),
)  # fmt: skip
