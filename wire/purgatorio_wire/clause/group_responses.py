"""The clauses G3, G8 to G10, G12: the error code of each group response, by the state of the member and of the group.

    the client                        | heartbeat    | sync | commit     | join | leave
    is unknown, or has only an id     | 25           | 25   | 25 (or 22) | -    | 0 (an id), 25
    has left, or was removed          | 25           | 25   | 25 (or 22) | 25   | 25
    is a member in a rebalance        | 27           | 27   | 0          |      | 0
    is a member with an assignment    | 0 (or 27)    | G5   | 0          |      | 0
    names another protocol            |              | 23   |            | 23   |

The numbers are Kafka's error codes: 22 ILLEGAL_GENERATION, 23 INCONSISTENT_GROUP_PROTOCOL, 25 UNKNOWN_MEMBER_ID, 27
REBALANCE_IN_PROGRESS. The clause R7 judges a commit with a transaction (KIP-447). A client is judged only if its state
is certain from before its request until the response.
"""

from collections.abc import Iterator
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, Bounds
from purgatorio_wire.history.finding import Rows, answered_with, broken, checked, late_row, named
from purgatorio_wire.history.group import (
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    OTHER_PROTOCOL,
    REBALANCING,
    UNKNOWN_MEMBER,
    Group,
    no_member,
    refused,
)
from purgatorio_wire.history.history import END_OF_TIME, LOADING, OF_2_0, Exchange, Scene

INVALID_GROUP, INVALID_SESSION = 24, 26

FAILED: Final = -1
"""UNKNOWN_SERVER_ERROR: an error that the broker did not expect."""
_PROMISED: Final = {
    "join_group": "G4", "sync_group": "G5", "heartbeat": "G10", "leave_group": "G8", "offset_commit": "G12",
    "txn_offset_commit": "R7",
}  # fmt: skip
"""The clause of each request."""
_LOADING: Final = {"heartbeat": 0, "sync_group": REBALANCING}
"""Answers of Kafka while a group is loading, other than the error COORDINATOR_LOAD_IN_PROGRESS."""
_THERE: Final = frozenset({0, REBALANCING, MEMBER_ID_REQUIRED})
"""Other answers of a coordinator that has the group."""
_OF_A_MEMBER: Final = {"heartbeat": "G10", "leave_group": "G8"}
"""Requests that write nothing, so an unavailable log of the coordinator is no reason to refuse them."""


def refused_at_sight(bounds: Bounds, scene: Scene) -> Rows:
    """G9: a group without a name, and a session timeout outside the broker's bounds, are refused. G0: a session timeout
    inside the bounds is not refused."""
    least, most = bounds.declared.session_least_ms, bounds.declared.session_most_ms
    for one in scene.of("join_group", "sync_group", "heartbeat", "leave_group"):
        if one.unread or one.throttled_ms or one.error in LOADING or one.error in {29, 30, 31}:
            continue
        if one.body.get("group_id") == "" and one.version < OF_2_0[one.api]:
            continue  # Kafka before 2.0 accepts an empty group id
        if one.body.get("group_id") == "":
            yield refused(bounds, one, INVALID_GROUP)
        elif bounds.declared.refuses_session(one.session_asked_ms):
            yield refused(bounds, one, INVALID_SESSION)
        elif one.error == INVALID_SESSION and None not in (least, most):
            seen = f"{named(INVALID_SESSION)} for {one.session_asked_ms} ms"
            yield broken("G0", "session-refused", one, f"a session of {least} to {most} ms", seen)


def coordinator_away(scene: Scene) -> Rows:
    """G8 and G10: no client gets an error such as COORDINATOR_NOT_AVAILABLE while the coordinator answers other
    requests of the group. The coordinator may have moved for a while. So a series of these errors, without another
    response in between, counts as one late row."""
    for held in scene.by_group().values():
        there = [x for x in held if x.error in _THERE and x.error != _LOADING.get(x.api)]
        for one in held:
            if one.error not in LOADING or one.api not in _OF_A_MEMBER:
                continue
            since = max((x.answer_t for x in there if x.answer_t and x.answer_t <= one.t), default=None)
            until = min(
                (x.answer_t for x in there if x.answer_t and x.t >= (one.answer_t or 0)), default=None
            )
            if since is not None and until is not None:
                allowed = "an answer: the coordinator answered other requests of the group before and after"
                clause, late = _OF_A_MEMBER[one.api], (since, until)
                yield late_row(clause, "coordinator-unavailable", one, allowed, named(one.error), late)


def failed(scene: Scene) -> Rows:
    """No request about a group gets UNKNOWN_SERVER_ERROR, because this error does not say whether the request was
    carried out. One error is only a late row."""
    for held in scene.by_group().values() if scene.name else ():
        for one in held:
            if one.error == FAILED and one.answer_t is not None:
                clause, late = _PROMISED.get(one.api, "G13"), (one.t, one.answer_t)
                allowed = "an answer, or an error that names the cause"
                yield late_row(clause, "unknown-server-error", one, allowed, named(FAILED), late)


def standings(group: Group) -> Rows:
    gone = dict(_gone(group))
    for one in (*group.heartbeats, *group.syncs, *group.commits, *group.held, *group.joins):
        if one.answer_t is None or not one.member:
            continue
        if one.t >= gone.get(one.member, END_OF_TIME):
            yield no_member(group, one)
        elif one.api != "join_group" and not group.static:
            yield from _of_who_is_there(group, one)
    for one in group.leaves:
        yield from _leaving(group, one, gone)
    yield from _protocols(group)
    yield from _before_anybody(group)
    yield from _of_nobody(group)


def _gone(group: Group) -> Iterator[tuple[str, int]]:
    """The members that have certainly left, or received UNKNOWN_MEMBER_ID, and since when. A static one may have
    returned."""
    for one in sorted(group.leaves, key=lambda one: -(one.answer_t or 0)):
        if one.answer_t is not None:
            yield from (
                (member, one.answer_t) for member, error in one.left_with.items() if not error and member
            )
    if group.static:
        return
    members = {x.given: x.ended_t for x in group.joins if x.answered}
    told = [x for x in (*group.heartbeats, *group.syncs, *group.commits) if x.error == UNKNOWN_MEMBER]
    for one in sorted(told, key=lambda one: -(one.answer_t or 0)):
        if one.t > members.get(one.member, END_OF_TIME) and not any(
            one.member in leave.left_with for leave in group.leaves
        ):
            yield one.member, one.ended_t


def _of_who_is_there(group: Group, one: Exchange) -> Rows:
    """A Heartbeat, SyncGroup or OffsetCommit of a member, or of a client that got a member id."""
    member, until = one.member, one.until_t
    issued = group.issued.get(member)
    asked = [x for x in group.joins if x.member == member and x.t <= until]
    if issued is not None and issued.error == MEMBER_ID_REQUIRED and not asked:
        if issued.ended_t <= one.t:
            yield no_member(group, one)
        return
    current = group.current(one)
    if current is None or member not in current.members or one.number != current.number:
        return
    if asked and asked[-1] is not current.members[member]:
        return  # the member rejoins, or has rejoined
    if not group.steady(member, current, one) or one.error == UNKNOWN_MEMBER:
        return  # the latter is G10's
    if one.api == "txn_offset_commit":
        yield answered_with(
            "R7", "refused", one, one.error, 0, ": a member commits in the current generation"
        )
    elif current.other_protocol(one.body):
        yield refused(group.bounds, one, OTHER_PROTOCOL)
    elif group.rebalances(current, one):
        about = ": a rebalance waits for this member"
        if one.api == "offset_commit":
            yield answered_with("G12", "refused", one, one.error, 0, about)
        else:
            yield answered_with("G3", "other-answer", one, one.error, REBALANCING, about)
    elif one.api == "heartbeat":
        right = one.error in (0, REBALANCING)
        yield checked("G10", "refused", one, right, "no error: the client is a member", named(one.error))
    elif one.api == "offset_commit" and any(
        sync.member == current.leader and sync.answered and (sync.answer_t or 0) <= one.t
        for sync in current.syncs
    ):
        yield answered_with("G12", "refused", one, one.error, 0, ": a member that has its assignment commits")


def _leaving(group: Group, one: Exchange, gone: dict[str, int]) -> Rows:
    """Each member that a LeaveGroup names gets its own result."""
    if one.answer_t is None or (one.error and one.version >= 3 and not one.left_with):
        return
    current = group.current(one)
    for member, error in one.left_with.items():
        issued = group.issued.get(member)
        if one.t >= gone.get(member, END_OF_TIME):
            yield answered_with(
                "G9", "second-leave-accepted", one, error, UNKNOWN_MEMBER, f" for {member}, a member that has left",
            )  # fmt: skip
        elif issued is None and member and not group.static:
            yield answered_with("G9", "leave-of-unknown-member", one, error, UNKNOWN_MEMBER, f" for {member}")
        elif issued is None or group.static or _other_leave(group, one, member):
            continue
        elif any(x.member == member and x.t <= one.answer_t for x in group.joins) or not issued.error:
            if current is not None and member in current.members and group.steady(member, current, one):
                yield answered_with("G8", "leave-refused", one, error, 0, f" for {member}, a member")
        elif issued.ended_t <= one.t and one.answer_t < issued.id_over_t() - EARLY_NS:
            yield answered_with(
                "G8", "leave-refused", one, error, 0, f" for {member}, a client that got a member id"
            )


def _other_leave(group: Group, one: Exchange, member: str) -> bool:
    """Whether another LeaveGroup named this member before the response."""
    return any(x is not one and x.t <= (one.answer_t or 0) and member in x.left_with for x in group.leaves)


def _protocols(group: Group) -> Rows:
    """G9: a JoinGroup without a protocol, or without a protocol type, is refused."""
    for one in group.joins:
        if not one.member and one.names_no_protocol:
            yield refused(group.bounds, one, OTHER_PROTOCOL)


def _before_anybody(group: Group) -> Rows:
    """G9, for a group that does not exist yet (a commit without a generation creates it). A group that is loading
    gives another error."""
    first_t = min((x.t for x in (*group.joins, *group.nobodys)), default=END_OF_TIME)
    for one in (*group.commits, *group.held, *group.heartbeats, *group.syncs, *group.leaves):
        if one.answer_t is not None and one.answer_t < first_t and one.error != _LOADING.get(one.api):
            yield no_member(group, one)


def _of_nobody(group: Group) -> Rows:
    """G12: a group without members accepts a commit without a generation, so that tools can reset offsets. All clients
    that got a member id must have left. Otherwise such a client may be a member, or a rebalance may wait for it."""
    for one in group.nobodys:
        until = one.ended_t
        asked = [x for x in group.joins if x.t <= until and x.error in (0, MEMBER_ID_REQUIRED)]
        if group.static or one.error not in (0, UNKNOWN_MEMBER, ILLEGAL_GENERATION):
            continue
        if all(x.answer is not None and group.gone_by(x.given, one.t) for x in asked):
            yield answered_with(
                "G12", "empty-group-refused", one, one.error, 0,
                ": the group has no members, so any client can commit",
            )  # fmt: skip
