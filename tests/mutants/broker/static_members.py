"""Mutants of static members and their instance ids (G11)."""

from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt, told
from purgatorio_broker import group_coordinator
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group, JoinCallback, JoinResult, Member
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_stress.mutant.patch import wrapped

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
    *told("static_members"),
    felt("names-of-all-groups", "static members of two groups with the same instance id fence each other", "G11",
         wrapped(Group, "put", _put_noted),
         wrapped(group_coordinator, "_fenced", _fenced_by_any_group)),
    felt("name-outlives-the-leaving", "the instance id of a static member that has left stays unknown", "G11",
         wrapped(GroupCoordinator, "leave", _left_but_for_its_name),
         wrapped(GroupCoordinator, "join", _joined_unless_former)),
    felt("static-never-back", "the instance id of a static member whose session timed out stays unknown", "G11",
         wrapped(GroupCoordinator, "_session_expired", _expired_but_for_its_name),
         wrapped(GroupCoordinator, "join", _joined_unless_former)),
    felt("former-name-kept",
         "the instance id of a removed static member is kept, and its return fails", "G4 G11",
         wrapped(Group, "remove", _removed_but_for_its_name),
         wrapped(GroupCoordinator, "_refuses_join", _fails_for_a_former_name)),
)  # fmt: skip
