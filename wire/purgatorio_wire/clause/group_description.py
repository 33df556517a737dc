"""The clause G13: DescribeGroups and ListGroups return the group as its members see it. FindCoordinator names its
broker.

A response is judged only if the members' requests determine the state of the group: stable, in a rebalance that waits
for a member, or empty. Three cases are not judged: a static member has returned; a static member keeps its place, but
is not in the generation; the group is new.
"""

from typing import Final

from purgatorio_wire.history.finding import Rows, answered_with, broken, checked, kept
from purgatorio_wire.history.group import NO_SUCH_GROUP, Generation, Group
from purgatorio_wire.history.history import (
    ABOUT_GROUPS,
    DELETE_OFFSETS,
    LIST,
    Exchange,
    Scene,
    integer,
    items,
    text,
    texts,
)
from purgatorio_wire.trace.record import Body

DELETE: Final = "delete_groups"
NON_EMPTY, SUBSCRIBED = 68, 86
UNTOLD: Final = -1
"""The error of a response without an error code."""
CLASSIC: Final = "classic"
"""The type of a group whose members send JoinGroup."""
CONSUMER: Final = "consumer"
"""The protocol type of a group whose members subscribe to topics."""
DEAD: Final = "Dead"
PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
EMPTY: Final = "Empty"
STATES: Final = (PREPARING, COMPLETING, STABLE, EMPTY)


def described(group: Group) -> Rows:
    """The occasions are DescribeGroups, ListGroups, DeleteGroups and OffsetDelete."""
    for one in group.heard:
        if one.api not in (*ABOUT_GROUPS, DELETE_OFFSETS) or one.answer_t is None:
            continue
        state = _state(group, one, one.answer_t)
        if state is None:
            continue
        name, least, most = state
        said = next(items(one.got, ABOUT_GROUPS.get(one.api, "")), {})
        if name == EMPTY and (one.error == NO_SUCH_GROUP or text(said, "group_state") == DEAD):
            continue  # a group without members and offsets may be removed at any time
        if one.api == DELETE_OFFSETS:
            yield from _offsets_deleted(group, one)
            continue
        if one.api == DELETE:
            cause = "deleted-with-members" if name != EMPTY else "empty-not-deleted"
            wanted = NON_EMPTY if name != EMPTY else 0
            yield answered_with("G13", cause, one, one.error, wanted, f" for {len(least)} members at least")
            continue
        if one.api == LIST:
            kinds = {text(join.body, "protocol_type") for join in group.joins}
            yield from _listed(one, name, said, kinds)
            continue
        told = {text(member, "member_id") for member in items(said, "members")}
        if text(said, "group_state") == name and least <= told <= most:
            current = group.current(one)
            other = _said_otherwise(current, said) if name == STABLE and current is not None else ""
            row = broken(
                "G13", "other-answer", one, "the metadata and assignments that the members sent", other
            )
            yield row if other else kept("G13", name)
        else:
            allowed = f"{name}, with {', '.join(sorted(least)) or 'no member'}"
            seen = f"{text(said, 'group_state')}, with {', '.join(sorted(told)) or 'no member'}"
            yield broken("G13", name, one, allowed, seen)


def _offsets_deleted(group: Group, one: Exchange) -> Rows:
    """No offset of a topic to which a member of the current generation subscribes is deleted (KIP-496)."""
    current = group.current(one)
    joins = current.members.values() if current is not None and group.staying(current, one.until_t) else ()
    held = [join.protocols.get(join.protocol, "") for join in joins]
    if any(text(join.body, "protocol_type") != CONSUMER for join in joins):
        return
    for part, code in one.codes.items():
        subscribed = any(f"{len(part.topic):04x}{part.topic.encode().hex()}" in data for data in held)
        wanted, error = SUBSCRIBED if subscribed else 0, one.error or code
        yield answered_with("G13", "deleted-while-subscribed", one, error, wanted, f" for {part}")


def coordinators(scene: Scene) -> Rows:
    """The coordinator of a group or of a transactional id is a broker at an address that Metadata lists."""
    there = {_place(x) for one in scene.of("metadata") for x in items(one.got, "brokers")}
    for one in scene.of("find_coordinator") if there else ():
        for said in [*items(one.got, "coordinators")] or [one.got or {}]:
            if not integer(said, "error_code", UNTOLD):
                allowed, seen = f"one of the brokers {', '.join(sorted(there))}", _place(said)
                yield checked("G13", "other-coordinator", one, seen in there, allowed, f"broker {seen}")


def _place(broker: Body) -> str:
    return f"{integer(broker, 'node_id')} at {text(broker, 'host')}:{integer(broker, 'port')}"


def _listed(one: Exchange, state: str, said: Body, protocol_types: set[str]) -> Rows:
    """A list of all groups, or of those of some states or types, by their present state. (From version 5 on, there are
    types.)"""
    states, types = ({x.lower() for x in texts(one.body, f"{what}_filter")} for what in ("states", "types"))
    if integer(one.got, "error_code") or (state == EMPTY and not said):
        return
    right = (not states or state.lower() in states) and (not types or CLASSIC in types)
    allowed = f"listed as {state}" if right else f"not listed: it is {state}"
    seen = f"listed as {text(said, 'group_state')}" if said else "not listed"
    yield checked("G13", "listed", one, seen == allowed or (not right and not said), allowed, seen)
    if "protocol_type" in said and state == STABLE:
        kind, protocol_type = text(said, "group_type").lower() or CLASSIC, text(said, "protocol_type")
        allowed = f"a {CLASSIC} group of {' or '.join(sorted(protocol_types))}"
        right = kind == CLASSIC and protocol_type in protocol_types
        yield checked("G13", "listed", one, right, allowed, f"a {kind} group of {protocol_type}")


def _state(group: Group, one: Exchange, until: int) -> tuple[str, set[str], set[str]] | None:
    """The state that the group certainly has during the request, the members that it certainly has, and the members
    that it may have."""
    issued = {*group.issued}
    shared = any(sync.answered and (sync.answer_t or until) < one.t for sync in group.syncs)
    if not shared or any(join.answer is None and not join.member for join in group.joins):
        return None
    if any(x.api == "delete_groups" and x is not one and x.t <= until and not x.error for x in group.heard):
        return None
    left = {
        member for leave in group.leaves if (leave.answer_t or until) < one.t
        for member, error in leave.left_with.items() if not error
    }  # fmt: skip
    if issued <= left and all((join.answer_t or until) < one.t for join in group.joins):
        return EMPTY, set(), set()
    current = group.current(one)
    if current is None:
        return None
    members = {*current.members}
    known = {member for member, join in group.issued.items() if (join.answer_t or until) < until}
    if group.static and not known - left <= members:
        return None
    if not group.disturbed(current, until):
        leads = [sync for sync in current.syncs if sync.member == current.leader]
        if all(sync.t > until for sync in leads):
            return COMPLETING, members, members
        synced = any(sync.answered and (sync.answer_t or until) < one.t for sync in leads)
        return (STABLE, members, members) if synced else None
    there = {*group.staying(current, until)}
    if group.rebalances(current, one) and any(not _rejoins(group, current, x, until) for x in there):
        return PREPARING, there, issued
    return None


def _said_otherwise(current: Generation, said: Body) -> str:
    """A difference from what the members of a stable group have sent: the protocol, a subscription or name, or an
    assignment, which is known if the leader has synced once."""
    chosen = {"protocol_name": text(said, "protocol_data"), "protocol_type": text(said, "protocol_type")}
    if current.other_protocol(chosen):
        return f"{chosen['protocol_type']} {chosen['protocol_name']}"
    leads = [sync for sync in current.syncs if sync.member == current.leader]
    shares = {text(x, "member_id"): text(x, "assignment") for x in items(leads[0].body, "assignments")}
    for told in items(said, "members"):
        member = text(told, "member_id")
        join = current.members[member]
        given = {"member_metadata": join.protocols.get(join.protocol, ""), "group_instance_id": join.instance}
        if len(leads) == 1:
            given["member_assignment"] = shares.get(member, "")
        for what, right in given.items():
            if what in told and text(told, what) != right:
                return f"another {what} of {member}"
    return ""


def _rejoins(group: Group, current: Generation, member: str, until: int) -> bool:
    """Whether a member has sent another JoinGroup."""
    return any(
        join.member == member and join not in current.joins and current.first_t < join.t <= until
        for join in group.joins
    )  # fmt: skip
