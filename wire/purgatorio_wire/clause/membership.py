"""The clauses G0, G3, G7 to G10, G12: the members of a group, and the error code of each response to a client, by its
standing in the group.

    the client                        | heartbeat    | sync | commit     | join | leave
    is unknown, or has only an id     | 25           | 25   | 25 (or 22) | -    | 0 (an id), 25
    has left, or was removed          | 25           | 25   | 25 (or 22) | 25   | 25
    is a member in a rebalance        | 27           | 27   | 0          |      | 0
    is a member with an assignment    | 0 (or 27)    | G5   | 0          |      | 0
    names another protocol            |              | 23   |            | 23   |

The numbers are Kafka's error codes: 22 ILLEGAL_GENERATION, 23 INCONSISTENT_GROUP_PROTOCOL, 25 UNKNOWN_MEMBER_ID, 27
REBALANCE_IN_PROGRESS. The clause R7 judges a commit with a transaction (KIP-447). A client is judged only if its state
is certain from before its request until the response. The heartbeats of the others show when a member was removed.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, MS, Bounds
from purgatorio_wire.history.finding import (
    Row,
    Rows,
    after,
    answered_with,
    broken,
    checked,
    error_is,
    in_time,
    kept,
    late_row,
    named,
    now_and_then,
    timed,
)
from purgatorio_wire.history.group import (
    FENCED,
    ILLEGAL_GENERATION,
    JOIN_GAP_NS,
    MEMBER_ID_REQUIRED,
    NO_SUCH_GROUP,
    OTHER_PROTOCOL,
    REBALANCING,
    UNKNOWN_MEMBER,
    Generation,
    Group,
)
from purgatorio_wire.history.history import (
    COMMITS,
    END_OF_TIME,
    LOADING,
    OF_2_0,
    Exchange,
    Scene,
    integer,
    items,
)

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


def memberships(group: Group) -> Rows:
    """All rows of the members of a group. If a member is static, only those that leave, are silent, or have left."""
    yield from _leaving(group)
    yield from _sessions(group)
    yield from _still_there(group)
    gone = dict(_gone(group))
    yield from _without_standing(group, gone)
    for one in group.leaves:
        yield from _left_with(group, one, gone)
    yield from _of_nobody(group)
    if not group.static:
        yield from _member_ids(group)
        yield from _of_members(group, gone)


def _without_standing(group: Group, gone: dict[str, int]) -> Rows:
    """G9: a client is refused that certainly is no member: the group does not exist yet (a commit without a generation
    creates it), the client has left or was removed, it has only an id, or an id that the broker did not issue. A commit
    without a member id is refused if the group has members, and a JoinGroup without a protocol, or a protocol type.
    Kafka accepts any heartbeat while a group is loading, so the group must have been seen loaded."""
    loaded_t = min((join.ended_t for join in group.joins), default=END_OF_TIME)
    first_t = min((x.t for x in (*group.joins, *group.nobodys)), default=END_OF_TIME)
    for one in (*group.heartbeats, *group.syncs, *group.commits, *group.held, *group.leaves):
        stranger = not group.static and not group.issued.keys() & {*(one.leavers or [one.member])}
        early = one.answer_t is not None and one.answer_t < first_t and one.error != _LOADING.get(one.api)
        if early or (stranger and one.t >= loaded_t) or (one.answer_t and _is_out(group, one, gone)):
            yield no_member(group, one)
    for one in group.joins:
        if one.answer_t is not None and one.member and one.t >= gone.get(one.member, END_OF_TIME):
            yield no_member(group, one)
        if not one.member and one.names_no_protocol:
            yield refused(group.bounds, one, OTHER_PROTOCOL)
    for one in group.nobodys:
        current = group.current(one)
        if not group.static and current is not None and group.staying(current, one.until_t):
            yield refused(group.bounds, one, UNKNOWN_MEMBER)


def _is_out(group: Group, one: Exchange, gone: dict[str, int]) -> bool:
    """Whether the client of a Heartbeat, SyncGroup or OffsetCommit has left, was removed, or has only an id."""
    first = group.issued.get(one.member)
    if one.leavers or one.t >= gone.get(one.member, END_OF_TIME):
        return not one.leavers
    if group.static or first is None or first.error != MEMBER_ID_REQUIRED or first.ended_t > one.t:
        return False
    return not any(x.member == one.member and x.t <= one.until_t for x in group.joins)


def _of_members(group: Group, gone: dict[str, int]) -> Rows:
    """The requests of members of the current generation that certainly are in the group."""
    for one in (
        *group.heartbeats, *group.syncs, *group.commits, *group.unnumbered, *group.held, *group.joins,
    ):  # fmt: skip
        current, member = group.current(one), one.member
        if one.answer is None or current is None or member not in current.members:
            continue
        its_own = one.number == current.number
        if its_own and not group.disturbed(current, one.until_t):
            yield from _undisturbed(group, current, one)
        if not group.steady(member, current, one):
            continue
        if one.api != "join_group" and not its_own:
            # Kafka answers so to syncs while a group is loading.
            if one.api != "sync_group" or one.error != REBALANCING:
                yield refused(group.bounds, one, ILLEGAL_GENERATION)
            continue
        if one.error == UNKNOWN_MEMBER:
            why = "although the member sent a request in time"
            yield broken(
                "G10", "removed-too-early", one, "the client stays a member", f"{named(UNKNOWN_MEMBER)}, {why}",
            )  # fmt: skip
            continue
        if one.api == "heartbeat":
            yield from _beat(group, current, member, one)
        asked = [x for x in group.joins if x.member == member and x.t <= one.until_t]
        rejoins = asked and asked[-1] is not current.members[member]
        if its_own and not rejoins and one.t < gone.get(member, END_OF_TIME):
            yield from _in_its_generation(group, current, one)


def _in_its_generation(group: Group, current: Generation, one: Exchange) -> Rows:
    """A Heartbeat, SyncGroup or OffsetCommit of a member, which names its generation."""
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
        yield error_is("G10", "refused", one, one.error, (0, REBALANCING), ": the client is a member")
    elif one.api == "offset_commit" and any(
        sync.member == current.leader and sync.answered and (sync.answer_t or 0) <= one.t
        for sync in current.syncs
    ):
        yield answered_with("G12", "refused", one, one.error, 0, ": a member that has its assignment commits")


def _undisturbed(group: Group, current: Generation, one: Exchange) -> Rows:
    """Requests while no rebalance can have begun. Before the leader's SyncGroup, an OffsetCommit is refused."""
    if one.api == "heartbeat":
        yield error_is("G3", "rebalance-without-cause", one, one.error, 0, ": no rebalance has begun")
    until = one.until_t
    if one.api == "offset_commit" and all(x.member != current.leader or x.t > until for x in current.syncs):
        yield refused(group.bounds, one, REBALANCING)


def _beat(group: Group, current: Generation, member: str, beat: Exchange) -> Rows:
    assert beat.answer_t is not None
    bounds = group.bounds
    allowed_ns = bounds.allowed_ns(beat.t - bounds.declared.late_ms * MS, beat.answer_t)
    began = current.members[member].answer_t or beat.t
    outlived = beat.t > began + group.session_ms(member) * MS
    waiting = [
        join for join in group.joins
        if join.member and join.member != member and join not in current.joins and join.t > current.first_t
        and join.t + allowed_ns <= beat.t and join.ended_t > beat.answer_t
        and join.watched_t > beat.answer_t
    ]  # fmt: skip
    right = not waiting or beat.error == REBALANCING
    for first in waiting[:1]:
        allowed, seen = (
            f"{named(REBALANCING)}: a JoinGroup has waited for {after(beat.t, first.t)}",
            named(beat.error),
        )
        late = (first.t, beat.answer_t)
        yield checked("G3", "rebalance-not-reported", beat, right, allowed, seen, *first.events, late=late)
    if right and outlived and (waiting or not group.triggers(current, beat.answer_t)):
        yield kept("G10", "removed-too-early")


def _member_ids(group: Group) -> Rows:
    """G0, and G9 for JoinGroup: a client without an id gets one at once. An id that the broker did not issue is
    refused, and so is a client that supports no protocol of the members."""
    issued = group.issued
    for one in group.joins:
        member = one.member
        until = one.until_t
        earlier = _others(group, one, until)
        if one.names_no_protocol:
            continue
        if other := [x for x in earlier if x.apart(one)]:
            current = group.current(one)
            if current and any(current.members[x] in other for x in group.staying(current, until)):
                yield refused(group.bounds, one, OTHER_PROTOCOL)
        elif not {*one.protocols}.intersection(*(x.protocols for x in earlier)):
            continue  # a common protocol of all members is needed, and not all of these joins need be members
        elif not member and one.version >= 4:
            promise = f"{named(MEMBER_ID_REQUIRED)} at once:"
            row = in_time(group.bounds, "G0", "id-required-late", one, one.t, JOIN_GAP_NS, promise)
            right, seen = one.error == MEMBER_ID_REQUIRED and one.given, f"member id {one.given!r}"
            allowed = f"{named(MEMBER_ID_REQUIRED)} and a member id"
            yield row.but(right, "no-member-id", one, allowed, f"{named(one.error)}, {seen}")
        elif member and member not in issued:
            yield refused(group.bounds, one, UNKNOWN_MEMBER)
        elif member and one is group.contacts(member)[0] and one.answer_t is not None:
            # A new client that waits in its JoinGroup is a member, even beyond its session timeout.
            taken_t = min(one.answer_t, one.t + group.bounds.allowed_ns(one.t, one.answer_t))
            lives = taken_t < issued[member].id_over_t() - EARLY_NS
            allowed = "the member id that the client got is known"
            if lives and group.left(member, one.answer_t) is None:
                known = kept("G0", "new-id-unknown")
                yield known if one.error != UNKNOWN_MEMBER else _forgotten(group, one, allowed)
            # Its session may end late, as a broker has pauses of its own.
            late_ns = group.session_ms(member) * MS // 4 + group.bounds.allowed_ns(one.t, one.answer_t)
            if issued[member].error and one.t >= issued[member].id_over_t(latest=True) + late_ns:
                yield refused(group.bounds, one, UNKNOWN_MEMBER)


def _others(group: Group, one: Exchange, until: int) -> list[Exchange]:
    """The other joins with which this join can be compared. A client that was refused for its protocols is no member. A
    client that has left is no member if other members certainly remain, or if no members remain after a generation."""
    earlier = [x for x in group.joins if x is not one and x.t <= until and x.error != OTHER_PROTOCOL]
    there = [x for x in earlier if not group.gone_by(x.given or x.member, one.t)]
    current = group.current(one)
    if not there and all(x.answered for x in earlier if x.member):
        return there
    return there if current is not None and group.staying(current, until) else earlier


def _forgotten(group: Group, one: Exchange, allowed: str) -> Row:
    """A member id that the broker has issued and that is unknown now. Kafka up to 3.9 forgets groups without members
    and offsets whenever a topic is deleted, later versions every ten minutes, and a client with only an id is no
    member. So an occasional case is no proof, however often topics are deleted."""
    current = group.current(one)
    row = broken("G0", "new-id-unknown", one, allowed, named(one.error))
    there = current is not None and group.staying(current, one.until_t)
    return row if there else now_and_then(row, one)


def _sessions(group: Group) -> Rows:
    """G7: a member stops sending in a generation that is otherwise undisturbed; the other members' heartbeats show
    its removal."""
    for one in group.generations:
        members = group.held_by(one)
        moves = (x.t for x in group.triggers(one) if x not in members.values())
        joined_t = min(moves, default=END_OF_TIME)
        for member in members:
            session_ms = group.session_ms(member)
            others = group.beats(one, {*members} - {member}, one.last_t)
            others = [x for x in others if (x.answer_t or 0) < joined_t]
            told_t = min((x.t for x in others if x.error == REBALANCING), default=END_OF_TIME)
            # A refused request does not renew the session.
            heard = [
                x for x in group.contacts(member)
                if members[member].t <= x.t < told_t and x.error != ILLEGAL_GENERATION
            ]  # fmt: skip
            if not heard:
                continue
            behind = [x.t for x in heard[1:]] + [END_OF_TIME]
            # A client that waits in its JoinGroup stays a member, for any duration of the join.
            last = next(
                x
                for x, t in zip(heard, behind, strict=True)
                if t - max(x.t, one.last_t) >= session_ms * MS - EARLY_NS
            )
            if (
                last.answer_t is None
                or last.error
                or (last.api == "join_group" and last is not members[member])
                or integer(last.body, "generation_id", one.number) != one.number
                or group.left(member, last.t + 2 * session_ms * MS) is not None
            ):
                continue
            others = [x for x in others if x.t > last.t]
            over = others and others[-1].t >= last.t + session_ms * MS - EARLY_NS
            if not others or not (over or told_t < END_OF_TIME) or _silent(group, one, member, others):
                continue
            earliest = max(last.t if group.renews(last) else 0, one.from_t) + session_ms * MS
            yield from _silence(group, last, earliest, others, session_ms)


def _still_there(group: Group) -> Rows:
    """G7: a member that sent nothing for one and a half times its session time-out, and then sends a request, gets
    UNKNOWN_MEMBER_ID."""
    for member, join in group.issued.items():
        contacts, name = group.contacts(member), join.instance
        # A static member that returns with another session timeout may keep the former session timeout.
        asked = (x for x in group.joins if member in (x.member, x.given) or (name and x.instance == name))
        session_ns = max(x.session_asked_ms or 0 for x in asked) * MS
        for at, (last, beat) in enumerate(pairwise(contacts), 1):
            if beat.api != "heartbeat" or beat.answer_t is None or beat.t - last.t < session_ns * 3 // 2:
                continue
            last_t = max(x.ended_t for x in contacts[:at])
            if beat.t - last_t < session_ns * 3 // 2 or group.left(member, beat.answer_t) is not None:
                continue
            if (
                not any(x.joined for x in contacts[:at])
                or group.bounds.allowed_ns(beat.t, beat.answer_t) > session_ns // 2
            ):
                continue
            late = (last_t + session_ns, beat.answer_t)
            seen = f"{named(beat.error)} {after(beat.t, last_t)} after the member's last request"
            allowed = f"{named(UNKNOWN_MEMBER)}, because its session timed out after {session_ns // MS} ms"
            # Another client may have its instance id now.
            right = beat.error == UNKNOWN_MEMBER or (name and beat.error == FENCED)
            yield checked("G7", "silent-member-kept", beat, right, allowed, seen, late=late)


def _silent(group: Group, one: Generation, member: str, beats: list[Exchange]) -> bool:
    """Whether the session of another member than `member` may have expired too, or a member without a SyncGroup was
    removed."""
    if group.out_unsynced(one, beats[-1].t):
        return True
    for other in set(group.held_by(one)) - {member}:
        heard = [x.t for x in group.renewals(other) if x.t >= one.first_t]
        times = [one.first_t, *heard, beats[-1].t]
        if any(b - a >= group.session_ms(other) * MS - EARLY_NS for a, b in pairwise(times)):
            return True
    return False


def _silence(group: Group, last: Exchange, earliest: int, others: list[Exchange], session_ms: int) -> Rows:
    assert last.answer_t is not None
    first = next((x for x in others if x.error == REBALANCING), None)
    if first is not None and first.answer_t is not None and first.answer_t < earliest - EARLY_NS:
        seen = f"a rebalance was announced {after(first.answer_t, last.t)} after the member's last request"
        yield broken(
            "G7", "early", first, f"not before its session times out, after {session_ms} ms", seen, *last.events,
        )  # fmt: skip
        return
    promise = f"a rebalance when its session times out, after {session_ms} ms,"
    begins_t = last.answer_t + session_ms * MS
    # Otherwise no heartbeat was sent after the session timeout.
    if first is not None or others[-1].t >= begins_t:
        yield _told(group, "G7", "not-removed", last, begins_t, others, session_ms, promise)


def _told(
    group: Group, clause: str, cause: str, since: Exchange, begins_t: int, beats: list[Exchange],
    session_ms: int, promise: str,
) -> Row:  # fmt: skip
    """Whether the next of these heartbeats reports a rebalance that began by `begins_t`."""
    first = next((x for x in beats if x.error == REBALANCING), None)
    poll = max((b.t - a.t for a, b in pairwise(beats)), default=0)
    due = begins_t + min(poll, session_ms * MS)
    answered_t = None if first is None else first.answer_t
    by = group.bounds.by(since.t, due, answered_t, gap_ns=session_ms * MS, watched_t=beats[-1].t)
    return timed(clause, cause, first or beats[-1], by, promise, since.t, *since.events, what="announced")


def _leaving(group: Group) -> Rows:
    """G8: the heartbeats of the remaining members report the rebalance."""
    for leave in group.leaves:
        refused = any(integer(said, "error_code") for said in items(leave.got, "members"))
        if leave.answer_t is None or leave.error or refused:
            continue
        before = [one for one in group.generations if one.last_t <= leave.t]
        if not before or not any(member in before[-1].members for member in leave.leavers):
            continue
        one = before[-1]
        if set(one.members) - one.synced(leave.t):
            continue
        if any(x is not leave for x in group.triggers(one, leave.answer_t)):
            continue
        stay = set(one.members) - set(leave.leavers)
        joined = min((x.t for x in group.joins if x.t > leave.t and x.member), default=END_OF_TIME)
        beats = [x for x in group.beats(one, stay, leave.answer_t) if x.t < joined]
        if beats and all(group.alive_at(member, leave.t) for member in stay):
            session_ms = min(group.session_ms(member) for member in stay)
            promise = "a rebalance at once,"
            yield _told(
                group, "G8", "leave-without-rebalance", leave, leave.answer_t, beats, session_ms, promise
            )


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


def _left_with(group: Group, one: Exchange, gone: dict[str, int]) -> Rows:
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


def refused(bounds: Bounds, one: Exchange, *errors: int) -> Row:
    """The row of G9: the request is refused at once with one of `errors`. A commit that gets REBALANCE_IN_PROGRESS has
    its own cause."""
    wanted = " or ".join(named(error) for error in errors)
    row = in_time(bounds, "G9", "refused-late", one, one.t, JOIN_GAP_NS, f"{wanted} at once:")
    told = one.error == REBALANCING and one.api in COMMITS
    return row.but(
        one.error in errors,
        "refused-as-rebalancing" if told else "not-refused",
        one,
        wanted,
        named(one.error),
    )


def no_member(group: Group, one: Exchange) -> Row:
    """The row of G9 for a client that is no member. A group without members may be removed (see G0). A commit with its
    generation then gets ILLEGAL_GENERATION, or (Kafka 4, version 9) GROUP_ID_NOT_FOUND. For a commit with a
    transaction, Kafka up to 3.9 creates the group, and then does not find the member."""
    current = group.current(one)
    there = current is not None and group.staying(current, one.until_t)
    if one.api not in COMMITS or there:
        return refused(group.bounds, one, UNKNOWN_MEMBER)
    plain = (NO_SUCH_GROUP,) if one.api == "offset_commit" and one.version >= 9 else ()
    return refused(group.bounds, one, UNKNOWN_MEMBER, ILLEGAL_GENERATION, *plain)


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
