"""The clause G11: static members (KIP-345). A static member keeps its place in a stable group when it returns.

A static member is judged when it joins again without a member id, if every other member has synced, sends heartbeats in
time, and makes no other request. Then only the return of the member can have changed the group.
"""

from itertools import pairwise

from purgatorio_wire.history.bound import EARLY_NS, MS, RowStatus
from purgatorio_wire.history.finding import (
    Row,
    Rows,
    after,
    answered_with,
    checked,
    error_is,
    in_time,
    named,
)
from purgatorio_wire.history.group import (
    FENCED,
    ILLEGAL_GENERATION,
    JOIN_GAP_NS,
    REBALANCING,
    UNKNOWN_MEMBER,
    Generation,
    Group,
)
from purgatorio_wire.history.history import END_OF_TIME, Exchange, integer, items, text


def static_members(group: Group) -> Rows:
    """The occasions are the returns of static members, and the rebalances that static members do not rejoin."""
    if not group.static:
        return
    yield from _awaited(group)
    for one in group.heard:
        yield from _fenced(group, one)
        if one.api == "leave_group":
            yield from _by_name(group, one)
        elif one.api == "join_group" and one.instance and not one.member:
            yield from _let_in(group, one)
            yield from _replaced(group, one)
            yield from _return(group, one)
        elif one.api in ("heartbeat", "sync_group") and one.instance and one.answer_t is not None:
            yield from _absent(group, one) if one.api == "heartbeat" else ()
            yield from _newest(group, one)


def _let_in(group: Group, one: Exchange) -> Rows:
    """A member with only an instance id is not unknown, even if no member has that instance id, or it was removed,
    or has left."""
    until = one.ended_t
    left = any(x.t <= until and (x.answer_t or until) >= one.t for x in group.leaves)
    if one.error in (0, UNKNOWN_MEMBER) and until - one.t < one.session_ms * MS and not (one.error and left):
        about = ": the group has a member with this instance id"
        yield error_is("G11", "instance-id-refused", one, one.error, 0, about)


def _awaited(group: Group) -> Rows:
    """G4: a rebalance waits for a static member with heartbeats in time that has not rejoined, until the rebalance
    time-out. All JoinGroup requests are answered when the last member has rejoined or left."""
    for before, one in pairwise(group.generations):
        held, until = group.held_by(before), one.first_t
        beats = group.beats(before, held, before.from_t)
        # A heartbeat without an error shows that no rebalance had begun.
        calm_t = max((x.t for x in beats if x.answered and x.t < until), default=before.from_t)
        asked = {x.instance for x in group.joins if before.first_t < x.t <= until and x not in before.again}
        asked |= {x.instance for x in one.joins}
        if group.out_unsynced(before, until):
            continue
        yield from _all_there(group, before, one)
        for member, join in held.items():
            if not join.instance or join.instance in asked or not group.alive_at(member, until):
                continue
            waits_ms = group.asks_ms(member)
            allowed = f"not before the rebalance timeout, {waits_ms} ms, because {member} has not rejoined"
            # A JoinGroup that waits shows a rebalance too. G3 judges a heartbeat that contradicts it.
            begun_t = min(calm_t, one.asked_t)
            seen = (
                f"a generation without this member, at most {after(until, begun_t)} after the rebalance began"
            )
            right = until >= begun_t + waits_ms * MS - EARLY_NS
            yield checked("G4", "static-member-not-awaited", one.joins[0], right, allowed, seen)


def _all_there(group: Group, before: Generation, one: Generation) -> Rows:
    joined = {join.instance or join.given for join in one.joins}
    others = [
        x for x in (*group.joins, *group.leaves)
        if before.first_t < x.t <= one.first_t and x not in (*one.joins, *before.again)
    ]  # fmt: skip
    left = {m for x in others if x.answer_t is not None for m, error in x.left_with.items() if not error}
    held = {member: join for member, join in group.held_by(before).items() if member not in left}
    asked = {join.instance or member for member, join in held.items()}
    if not asked <= joined or group.pending(one, one.first_t) or any(x.answer_t is None for x in others):
        return
    last_t = max([x.t for x in one.joins] + [x.answer_t or x.t for x in others])
    longest_ms = max(join.rebalance_ms for join in (*before.joins, *one.joins))
    gap = one.asked_t + longest_ms * MS - last_t
    promise = "an answer when the last member has rejoined or left,"
    for join in one.joins if gap > 0 else ():
        yield in_time(group.bounds, "G4", "waits-though-complete", join, last_t, gap, promise)


def _newest(group: Group, one: Exchange) -> Rows:
    """The newest member id of an instance is not fenced, even if a client has this instance id in another group."""
    joins = [x for x in group.joins if x.instance == one.instance and x.t <= one.until_t]
    if not joins or any(x.ended_t > one.t or x.error for x in joins):
        return
    if joins[-1].given == one.member:
        allowed, right = "no error: this is the newest id of the static member", one.error != FENCED
        yield checked("G11", "newest-id-fenced", one, right, allowed, named(FENCED))


def _return(group: Group, one: Exchange) -> Rows:
    joins = [x for x in group.joins if x.ended_t <= one.t and x.error == 0]
    number = max((x.generation for x in joins), default=-1)
    members = {x.given: x for x in joins if x.generation == number}
    mine = [m for m, x in members.items() if x.instance == one.instance]
    if len(mine) != 1:
        return
    before = mine[0]
    yield from _unsynced(group, one, number, members)
    yield from _own_protocol(one, number, members[before])
    # If the member no longer supports the protocol of the generation, a rebalance chooses another.
    if members[before].protocol not in one.protocols or not _quiet(group, members, one, number):
        return
    # A return that begins a rebalance waits for the other members, which do not learn of it in time.
    gap = max(JOIN_GAP_NS, one.rebalance_ms * MS)
    row = in_time(
        group.bounds,
        "G11",
        "return-waits",
        one,
        one.t,
        gap,
        f"generation {number} at once, without a rebalance,",
    )
    right, seen = (
        not one.error and one.generation == number,
        f"{named(one.error)}, generation {one.generation}",
    )
    row = row.but(right, "rebalances", one, f"generation {number}", seen)
    row = row.but(one.given != before, "member-id-reused", one, "a new member id", "the former member id")
    yield row
    if row.status is RowStatus.KEPT and one.answer_t is not None:
        yield _leads_on(one, members, before)
        yield from _afterwards(group, members, number, before, one)
        yield from _assigned(group, number, before, one.given)


def _own_protocol(one: Exchange, number: int, before: Exchange) -> Rows:
    """A member that returns with other protocols gets one of them; in the current generation, the chosen one."""
    if one.answered:
        chosen, stays, had = one.protocol, one.generation == number, before.protocol
        right = chosen in one.protocols and (not stays or chosen == had)
        allowed = f"a protocol that the member supports; if it is not {had!r}, a generation above {number}"
        yield checked("G11", "other-protocol", one, right, allowed, f"protocol {chosen!r}")


def _leads_on(one: Exchange, members: dict[str, Exchange], before: str) -> Row:
    """A leader that returns gets the members, and skip_assignment is true (KIP-814). JoinGroup before version 9 has no
    such field, so the leader returns as a follower."""
    leads = one.version >= 9 and before == members[before].leader
    told = {text(member, "member_id") for member in items(one.got, "members")}
    instances = {x.instance or member for member, x in members.items()}
    skips = (one.got or {}).get("skip_assignment", False)
    wanted = len(instances) if leads else 0
    right = {one.given in told, bool(told), skips, one.leader == one.given} == {leads}
    right = right and len(told - {before}) >= wanted
    allowed = f"{wanted} members, and {'skip_assignment' if leads else 'another leader'}"
    skipped = "skip_assignment" if skips else "no skip_assignment"
    seen = f"{len(told)} members, leader {one.leader}, {skipped}"
    return checked("G11", "leader-returns", one, right, allowed, seen)


def _assigned(group: Group, number: int, before: str, given: str) -> Rows:
    """The new member id gets the assignment of the former member id."""
    syncs = [x for x in group.syncs if x.number == number and not x.error]
    shares = [share for x in syncs for share in items(x.body, "assignments")]
    wanted = [text(share, "assignment") for share in shares if text(share, "member_id") == before]
    for sync in syncs if wanted else ():
        if sync.member == given and sync.answer is not None:
            right, allowed = (
                text(sync.got, "assignment") == wanted[0],
                "the assignment of the former member id",
            )
            yield checked("G11", "other-assignment", sync, right, allowed, "another assignment")


def _absent(group: Group, beat: Exchange) -> Rows:
    """A member with heartbeats in time that has not rejoined, while no generation has begun without it or just
    after."""
    member, number, until = beat.member, beat.number, beat.answer_t or 0
    joins = [x for x in group.joins if x.t <= beat.t and x.error == 0 and x.answer_t is not None]
    mine = [x for x in joins if x.instance == beat.instance]
    above = [x for x in joins if x.generation > number and x.ended_t <= beat.t]
    if not mine or mine[-1].given != member or mine[-1] in above:
        return
    # A member without a SyncGroup in time is removed, static or not.
    waiting = (x.t for x in group.joins if x.t <= until < x.ended_t)
    begun_t = min((*(x.ended_t for x in above), *waiting), default=END_OF_TIME)
    heard = [x for x in group.heard if x.t <= beat.t and x.member == member and x.api != "join_group"]
    synced = any(x.api == "sync_group" and x.error == 0 and x.number == number for x in heard)
    soon = until < begun_t + mine[-1].rebalance_ms * MS // 2
    times = [mine[-1].ended_t, *(x.t for x in heard)]
    quick = all(b - a < min(x.session_ms for x in mine) * MS // 2 for a, b in pairwise(times))
    if synced and soon and quick and group.left(member, until) is None:
        allowed = f"{named(ILLEGAL_GENERATION)}: the client stays a member"
        right = beat.error != UNKNOWN_MEMBER
        yield checked("G11", "removed-too-early", beat, right, allowed, named(UNKNOWN_MEMBER))


def _quiet(group: Group, members: dict[str, Exchange], one: Exchange, number: int) -> bool:
    """Whether all members have synced, have sent recent heartbeats, and no other request changes the group."""
    first_t = min(x.ended_t for x in members.values())
    moves = [
        x for x in (*group.joins, *group.leaves)
        if x is not one and x.t <= one.until_t and x.ended_t > first_t and x not in members.values()
    ]  # fmt: skip
    # Only requests of this generation count, not those of a former generation.
    synced = {x.member for x in group.syncs if x.number == number and x.error == 0 and x.ended_t <= one.t}
    # A member was already removed, because its session had expired: then there is a rebalance.
    told = any(
        x.error in (UNKNOWN_MEMBER, REBALANCING)
        and x.member in members
        and x.number == number
        and x.t <= one.t
        for x in group.heartbeats
    )
    return not moves and not told and set(members) <= synced and _heard(group, members, one.t)


def _heard(group: Group, members: dict[str, Exchange], t: int) -> bool:
    """Whether no session can have expired at `t`. A client that got UNKNOWN_MEMBER_ID before counts as removed, even
    if it continues with its id."""
    for member, join in members.items():
        mine = [x for x in group.heard if x is join or (x.t < t and x.member == member)]
        late = t - max(x.t for x in mine) >= join.session_ms * MS // 2
        if late or any(x.error == UNKNOWN_MEMBER for x in mine):
            return False
    return True


def _afterwards(group: Group, members: dict[str, Exchange], number: int, before: str, back: Exchange) -> Rows:
    """The other members see no rebalance, while it sends heartbeats too."""
    moves = (
        x.t
        for x in (*group.joins, *group.leaves)
        if x.t >= back.ended_t and before not in (x.member, *x.leavers)
    )
    until = min(moves, default=END_OF_TIME)
    others = {member: join for member, join in members.items() if member != before}
    for one in (*group.heartbeats, *group.syncs):
        its = one.t >= back.ended_t and one.ended_t < until and one.number == number and one.member in others
        if its and _heard(group, {**others, back.given: back}, one.t):
            yield error_is("G11", "disturbs-the-others", one, one.error, 0, ": no rebalance has begun")


def _fenced(group: Group, one: Exchange) -> Rows:
    """A former id of an instance is fenced in every request, while its newest id is a member."""
    for asked in (one.body, *items(one.body, "members")):
        instance, member = text(asked, "group_instance_id"), text(asked, "member_id")
        joins = [x for x in group.joins if x.instance == instance and x.answered and x.ended_t <= one.t]
        ids = [x.given for x in joins if instance]
        if one.answer_t is None or not ids or member == ids[-1] or member not in ids:
            continue
        if _lives(group, joins[-1], one.answer_t):
            error = one.left_with.get(member, one.error)
            yield error_is("G11", "not-fenced", one, error, FENCED, " for the former member id")


def _by_name(group: Group, one: Exchange) -> Rows:
    """G8: a member can leave by its instance id alone; an instance id that never joined is unknown."""
    said = [integer(x, "error_code") for x in items(one.got, "members")]
    asked = list(items(one.body, "members"))
    instance = text(asked[0], "group_instance_id") if len(asked) == len(said) == 1 else ""
    joins = [x for x in group.joins if x.instance == instance]
    if one.answer_t is None or not instance:
        return
    if not joins:
        yield answered_with("G8", "leave-by-instance-id", one, said[0], UNKNOWN_MEMBER, f" for {instance}")
        return
    joins = [x for x in joins if x.answer is None or not x.error]
    newest = joins[-1].given if joins else ""
    if not newest or joins[-1].ended_t > one.t or one.leavers != [newest]:
        return
    if _lives(group, joins[-1], one.answer_t, one):
        yield answered_with("G8", "leave-by-instance-id", one, said[0], 0, f" for {instance}, a member")


def _lives(group: Group, join: Exchange, t: int, but: Exchange | None = None) -> bool:
    """Whether the member with the id of this join sent a request recently, never got UNKNOWN_MEMBER_ID, and no
    LeaveGroup (but this one) names it."""
    its = (x for x in group.heard if join.given in (x.member, x.given, *x.leavers) and x.t <= t)
    heard = [x for x in its if x is not but]
    lately = t - max(x.t for x in heard) < min(join.session_ms, join.rebalance_ms) * MS // 2
    return lately and all(x.api != "leave_group" and x.error != UNKNOWN_MEMBER for x in heard)


def _replaced(group: Group, one: Exchange) -> Rows:
    """A member returns while its former id waits in a JoinGroup or SyncGroup: the former request is fenced at once, and
    does not wait."""
    mine = [x for x in group.heard if x is not one and x.instance == one.instance and x.t < one.t]
    ids = {x.given for x in mine if x.api == "join_group" and not x.error}
    for x in mine:
        waits = x.api == "join_group" or (x.api == "sync_group" and x.member in ids)
        if not waits or x.ended_t < one.t or x.unread or one.answer_t is None or one.error:
            continue
        synced = any(y.number == x.generation and y.t <= one.answer_t for y in group.syncs)
        if x.answered and (synced or x.generation != one.generation):
            continue  # it was answered before
        gap = max(JOIN_GAP_NS, one.rebalance_ms * MS)
        promise = f"{named(FENCED)} when the static member returns,"
        row = in_time(group.bounds, "G11", "waits-though-replaced", x, one.t, gap, promise, *one.events)
        allowed = f"{named(FENCED)}: the static member has returned with a new member id"
        yield row.but(x.error == FENCED, "not-fenced", x, allowed, named(x.error), *one.events)


def _unsynced(group: Group, one: Exchange, number: int, members: dict[str, Exchange]) -> Rows:
    """A member that returns before the leader has synced starts a rebalance, because the leader assigns to its
    former id."""
    answers, leader = [x.ended_t for x in members.values()], next(iter(members.values())).leader
    synced = any(x.member == leader and x.number == number for x in group.syncs)
    moves = any(
        x is not one and x not in members.values() and x.t < one.t and x.ended_t > min(answers)
        for x in (*group.joins, *group.leaves)
    )
    if one.answer_t is None or one.error or max(answers) > one.t or synced or moves:
        return
    allowed = f"a generation above {number}, because the leader of {number} has sent no SyncGroup"
    right, seen = one.generation > number, f"generation {number} again"
    yield checked("G11", "returns-unsynced", one, right, allowed, seen)
