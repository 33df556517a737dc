"""Bugs of static members: the names that they keep, lose and come back by (G11)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt
from purgatorio_broker import group_coordinator
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group, JoinCallback, JoinResult, Member
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.network import group_requests
from purgatorio_stress.mutant.patch import edited, wrapped

_NEWEST: Final[dict[str, str]] = {}


def _put_noted(put: Callable[..., None], self: Group, member: Member) -> None:
    _NEWEST[member.instance] = member.id
    put(self, member)


def _fenced_by_any_group(fenced: Callable[..., bool], group: Group, instance: str, member_id: str) -> bool:
    static = group.instance(instance)
    return fenced(group, instance, member_id) or (static is not None and _NEWEST[instance] != static.id)


_FORMER: Final[set[tuple[str, str]]] = set()
"""Groups, and names that they had members of."""


def _expired_but_for_its_name(
    expire: Callable[..., None], self: GroupCoordinator, group: Group, member_id: str, pending: bool
) -> None:
    with group.lock:
        member = group.get(member_id)
    expire(self, group, member_id, pending)
    if member is not None and member.instance and group.instance(member.instance) is None:
        _FORMER.add((group.id, member.instance))


def _left_but_for_its_name(
    leave: Callable[..., Error], self: GroupCoordinator, group_id: str, member_id: str
) -> Error:
    group = self.known(group_id)
    if group is not None:
        with group.lock:
            member = group.get(member_id)
        if member is not None and member.instance:
            _FORMER.add((group_id, member.instance))
    return leave(self, group_id, member_id)


def _joined_unless_former(
    join: Callable[..., None], self: GroupCoordinator, group_id: str, member_id: str,
    protocols: tuple[str, ...], callback: JoinCallback, **more: object,
) -> None:  # fmt: skip
    if (group_id, more["instance"]) in _FORMER:
        callback(JoinResult(Error.UNKNOWN_MEMBER_ID, member_id))
    else:
        join(self, group_id, member_id, protocols, callback, **more)


def _removed_but_for_its_name(
    remove: Callable[..., Member | None], self: Group, member_id: str
) -> Member | None:
    gone = remove(self, member_id)
    if gone is not None and gone.instance:
        _FORMER.add((self.id, gone.instance))
    return gone


def _fails_for_a_former_name(
    refuses: Callable[..., Error], self: GroupCoordinator, group: Group, member_id: str,
    protocols: tuple[str, ...], session_timeout_ms: int, instance: str, protocol_type: str,
) -> Error:  # fmt: skip
    if not member_id and group.instance(instance) is None and (group.id, instance) in _FORMER:
        return Error.UNKNOWN_SERVER_ERROR
    return refuses(self, group, member_id, protocols, session_timeout_ms, instance, protocol_type)


MUTANTS: Final = (
    felt("static-return-rebalances", "a static member that comes back starts a rebalance", "G11",
         edited(GroupCoordinator, "_replace", "group.protocol() == before", "False")),
    felt("absent-static-out", "a static member that does not rejoin is out at the rebalance time-out", "G11",
         edited(GroupCoordinator, "_end_rebalance", " and not member.instance", "")),
    felt("static-return-unassigned", "a static member that comes back has no assignment", "G11",
         edited(Group, "swap", "[new if", '[replace(new, assignment=b"") if')),
    felt("names-of-all-groups", "static members of two groups with one name fence each other", "G11",
         wrapped(Group, "put", _put_noted),
         wrapped(group_coordinator, "_fenced", _fenced_by_any_group)),
    felt("static-leaves-quietly", "a static member that leaves starts no rebalance", "G8 G11",
         edited(GroupCoordinator, "_drop", "else:", "elif member is None or not member.instance:")),
    felt("replaced-waits", "what waits of a static member's former id is not answered as it comes back", "G11 X1",
         edited(GroupCoordinator, "_replace", "self._answer_waiting(group, old, Error.FENCED_INSTANCE_ID)",
                "pass")),
    felt("replaced-unsynced", "a static member that comes back before the leader has synced begins no rebalance",
         "G11",
         edited(GroupCoordinator, "_replace", "is GroupState.STABLE and", "is not GroupState.PREPARING and")),
    felt("fenced-commit-unknown", "a commit by the former id of a static member is that of an unknown one", "G11",
         edited(GroupCoordinator, "commit", "generation, instance, member_id)", 'generation, "", member_id)')),
    felt("leave-by-name-unknown", "a static member cannot leave by its instance id alone", "G8",
         edited(group_requests, "_leave", "static.id if static is not None else member", "member")),
    felt("lost-protocol-kept",
         "a static member that comes back without the group's protocol is told it all the same", "G11",
         edited(GroupCoordinator, "_replace", "group.protocol() == before", "True")),
    felt("static-rejoin-in-vain",
         "a rebalance that no static member has joined by its time-out lasts until the next, whoever joins", "G4",
         edited(GroupCoordinator, "_end_rebalance", "self._wait_for_joins(group, group.rebalance_timeout_ms())",
                "self._wait_initially(group, group.rebalance_timeout_ms(), 0)")),
    felt("static-out-with-the-others", "static members are out as well where nobody has rejoined in time", "G11",
         edited(GroupCoordinator, "_end_rebalance",
                "for member in group.members():\n        if member.awaiting_join is None and not member.instance",
                "nobody = all(one.awaiting_join is None for one in group.members())\n"
                "    for member in group.members():\n"
                "        if member.awaiting_join is None and (nobody or not member.instance)")),
    felt("static-session-kept",
         "a static member that comes back with another session time-out keeps the one that it had", "G7",
         edited(GroupCoordinator, "join", "id=self._new_id(), session_timeout_ms=session_timeout_ms,",
                "id=self._new_id(),")),
    felt("static-return-unseen", "a rebalance goes on waiting where a static member that is back was the last",
         "G4",
         edited(GroupCoordinator, "join", "if group.state() is GroupState.PREPARING:",
                "if group.state() is GroupState.PREPARING and (static is None or member_id):")),
    felt("static-leader-unheard", "a static leader that joins again by its id is told the same generation", "G3",
         edited(GroupCoordinator, "_rejoin", "member.id != group.leader()",
                "(member.id != group.leader() or member.instance)")),
    felt("static-rejoin-rebalances",
         "a static follower that joins a stable group again by its id starts a rebalance", "G3",
         edited(GroupCoordinator, "_rejoin", "group.state() is GroupState.STABLE and",
                "group.state() is GroupState.STABLE and not member.instance and")),
    felt("static-leave-unseen", "a rebalance goes on waiting for a static member that has left", "G4",
         edited(GroupCoordinator, "_drop", "if group.state() is GroupState.PREPARING:",
                "if group.state() is GroupState.PREPARING and member is not None and member.instance:\n"
                "        return\n"
                "    if group.state() is GroupState.PREPARING:")),
    felt("name-outlives-the-leaving", "a static member that has left is unknown by its name for ever", "G11",
         wrapped(GroupCoordinator, "leave", _left_but_for_its_name),
         wrapped(GroupCoordinator, "join", _joined_unless_former)),
    felt("static-never-back", "a static member whose session was over is unknown by its name for ever", "G11",
         wrapped(GroupCoordinator, "_session_expired", _expired_but_for_its_name),
         wrapped(GroupCoordinator, "join", _joined_unless_former)),
    felt("former-name-kept",
         "a static member is out, its name is kept, and the coordinator fails when it comes back", "G4 G11",
         wrapped(Group, "remove", _removed_but_for_its_name),
         wrapped(GroupCoordinator, "_refuses_join", _fails_for_a_former_name)),
)  # fmt: skip
