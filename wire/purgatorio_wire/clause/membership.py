"""The clauses G0, G3 and G7 to G10: the membership of a group (member ids, heartbeats, sessions, LeaveGroup)."""

from itertools import pairwise

from purgatorio_wire.history.bound import EARLY_NS, MS
from purgatorio_wire.history.finding import (
    Row,
    Rows,
    after,
    broken,
    checked,
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
    OTHER_PROTOCOL,
    REBALANCING,
    UNKNOWN_MEMBER,
    Generation,
    Group,
    no_member,
    refused,
)
from purgatorio_wire.history.history import END_OF_TIME, Exchange, integer, items
from purgatorio_wire.history.violation_kind import Way


def memberships(group: Group) -> Rows:
    """All rows of the members of a group. If a member is static, only leaving members and silent members are judged."""
    yield from _leaving(group)
    yield from _sessions(group)
    yield from _still_there(group)
    if group.static:
        return
    yield from _member_ids(group)
    yield from _strangers(group)
    yield from _heartbeats(group)


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


def _strangers(group: Group) -> Rows:
    """G9: a client without an id is refused; so is a commit without a member id if the group has members. Kafka
    accepts any heartbeat while a group is loading, so the group must have been seen loaded."""
    issued = group.issued
    loaded_t = min((join.ended_t for join in group.joins), default=END_OF_TIME)
    for one in (*group.heartbeats, *group.syncs, *group.commits, *group.held, *group.leaves):
        if one.t >= loaded_t and not issued.keys() & {*(one.leavers or [one.member])}:
            yield no_member(group, one)
    for one in group.nobodys:
        current, until = group.current(one), one.until_t
        if current is not None and group.staying(current, until):
            yield refused(group.bounds, one, UNKNOWN_MEMBER)


def _heartbeats(group: Group) -> Rows:
    """G3 (REBALANCE_IN_PROGRESS), G9 (wrong generations) and G10 (a member with heartbeats in time stays)."""
    for beat in (
        *group.heartbeats, *group.syncs, *group.commits, *group.unnumbered, *group.held, *group.joins,
    ):  # fmt: skip
        member, number = beat.member, beat.number
        current = group.current(beat)
        if beat.answer is None or current is None or member not in current.members:
            continue
        if number == current.number and not group.disturbed(current, beat.until_t):
            yield from _undisturbed(group, current, beat)
        if not group.steady(member, current, beat):
            continue
        if beat.api != "join_group" and number != current.number:
            # Kafka answers so to syncs while a group is loading.
            if beat.api != "sync_group" or beat.error != REBALANCING:
                yield refused(group.bounds, beat, ILLEGAL_GENERATION)
        elif beat.error == UNKNOWN_MEMBER:
            why = "although the member sent a request in time"
            yield broken(
                "G10", "removed-too-early", beat, "the client stays a member", f"{named(UNKNOWN_MEMBER)}, {why}",
            )  # fmt: skip
        elif beat.api == "heartbeat":
            yield from _beat(group, current, member, beat)


def _undisturbed(group: Group, current: Generation, one: Exchange) -> Rows:
    """Requests while no rebalance can have begun. Before the leader's SyncGroup, an OffsetCommit is refused."""
    if one.api == "heartbeat":
        told = one.error != 0
        yield checked("G3", "rebalance-without-cause", one, not told, "no rebalance", named(one.error))
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
    if waiting and beat.error != REBALANCING:
        allowed = f"{named(REBALANCING)}: a JoinGroup has waited for {after(beat.t, waiting[0].t)}"
        late = (waiting[0].t, beat.answer_t)
        seen = named(beat.error)
        yield late_row("G3", "rebalance-not-reported", beat, allowed, seen, late, *waiting[0].events)
        return
    if waiting:
        yield kept("G3", "rebalance-not-reported")
    if outlived and (waiting or not group.triggers(current, beat.answer_t)):
        yield kept("G10", "removed-too-early")


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
            row = late_row("G7", "silent-member-kept", beat, allowed, seen, late)
            # Another client may have its instance id now.
            right = beat.error == UNKNOWN_MEMBER or (name and beat.error == FENCED)
            yield kept("G7", "silent-member-kept") if right else row


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
    group: Group, clause: str, cause: Way, since: Exchange, begins_t: int, beats: list[Exchange],
    session_ms: int, promise: str,
) -> Row:  # fmt: skip
    """Whether the next of these heartbeats reports a rebalance that began by `begins_t`."""
    first = next((x for x in beats if x.error == REBALANCING), None)
    poll = max((b.t - a.t for a, b in pairwise(beats)), default=0)
    due = begins_t + min(poll, session_ms * MS)
    answered_t = None if first is None else first.answer_t
    by = group.bounds.by(since.t, due, answered_t, gap_ns=session_ms * MS, watched_t=beats[-1].t)
    return timed(clause, cause, first or beats[-1], by, promise, since.t, *since.events)


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
