"""The clauses G1 to G6: rebalances of a group. A JoinGroup waits for other JoinGroups, and a SyncGroup for the leader's
SyncGroup.

A clause judges a rebalance only if the requests and responses allow exactly one explanation. A rebalance with a
coordinator error, an unknown protocol or a closed connection is not judged.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, MS, RowStatus
from purgatorio_wire.history.finding import (
    Rows,
    after,
    broken,
    checked,
    error_is,
    in_time,
    kept,
    named,
    now_and_then,
    timed,
)
from purgatorio_wire.history.group import JOIN_GAP_NS, REBALANCING, UNKNOWN_MEMBER, Generation, Group
from purgatorio_wire.history.history import Exchange, integer, items, text

_OF_ALL: Final[tuple[str, str]] = "G4", "waits-though-complete"
_OF_THE_SILENT: Final[tuple[str, str]] = "G7", "waits-for-silent-member"


def rebalances(group: Group) -> Rows:
    """All rows of the generations of a group. If a member is static, only the leader, leaving members and repeated
    joins are judged."""
    yield from _leaves_waiting(group)
    for before, one in zip([None, *group.generations], group.generations, strict=False):
        yield from _one_leader(group, before, one)
        if _by_their_ids(group, one):
            yield from _joins_again(group, one)
        if group.static:
            continue
        yield from _stays(group, one)
        yield from _syncs(group, one)
        yield from _never_synced(group, one)
        yield from _nobody_rejoined(group, one)
        if before is not None:
            yield from _numbered(group, before, one)
        # Otherwise a generation without members may have come between, with an initial delay after it.
        next_to = before is not None and (
            one.number == before.number + 1 or bool({*one.members} & {*before.members})
        )
        if before is not None and next_to and any(group.alive_at(x, one.asked_t) for x in before.members):
            yield from _rebalance(group, before, one)
        elif before is None or _surely_empty(group, before, one):
            yield from _initial_delay(group, before, one)


def _one_leader(group: Group, before: Generation | None, one: Generation) -> Rows:
    members = one.members
    lost = [join.member for join in group.unanswered(one.first_t)]
    if one.leader in lost or ("" in lost and one.leader not in members):
        return  # the leader's own response, which may have its new id, was not recorded
    leaders = {join.leader for join in one.joins}
    if len(leaders) != 1 or not leaders <= set(members):
        allowed = "one leader, which is a member of the generation"
        seen = f"leaders {', '.join(sorted(leaders))}, of {len(members)} members"
        if len(leaders) > 1 or all(sync.member != one.leader for sync in one.syncs):
            cause = "several-leaders" if len(leaders) > 1 else "leader-not-a-member"
            yield broken("G2", cause, one.joins[0], allowed, seen, *_numbers(one.joins))
        return
    common = sorted(set.intersection(*(set(join.protocols) for join in one.joins)))
    for join in one.joins:
        told = {text(member, "member_id"): text(member, "metadata") for member in items(join.got, "members")}
        me, chosen = join.given, join.protocol
        other = [x for x in told if x in members and told[x] != members[x].protocols.get(chosen)]
        instances = {text(x, "member_id"): text(x, "group_instance_id") for x in items(join.got, "members")}
        renamed = [x for x in instances if x in members and instances[x] != members[x].instance]
        renamed = renamed if join.version >= 5 else []
        row, leads = kept("G2"), me == one.leader
        seen = f"{len(told)} members, of at least {len(members)}"
        missing, allowed = leads and not set(members) <= set(told), "all members, because the client leads"
        row = row.but(not missing, "members-missing", join, allowed, seen)
        allowed = "no members: only the leader receives the members"
        row = row.but(leads or not told, "members-to-a-follower", join, allowed, seen)
        allowed = f"one of {', '.join(common)}, which all members support"
        row = row.but(chosen in common, "unsupported-protocol", join, allowed, f"protocol {chosen!r}")
        allowed, seen = "the group's protocol type", f"{text(join.got, 'protocol_type')} {chosen}"
        row = row.but(not one.other_protocol(join.got), "other-protocol", join, allowed, seen)
        allowed, seen = "the subscriptions of the members", f"another subscription of {', '.join(other)}"
        row = row.but(not other, "other-subscription", join, allowed, seen)
        seen = f"another instance id of {', '.join(renamed)}"
        yield row.but(not renamed, "other-instance", join, "the instance ids of the members", seen)
    if group.static or group.unheard(one):
        return
    if before is not None and before.leader in members and before.number + 1 == one.number:
        stays = one.leader == before.leader
        allowed = f"{before.leader}, the previous leader, which has rejoined"
        yield checked("G2", "leader-changes", one.joins[0], stays, allowed, one.leader)
    voted = [next((x for x in join.protocols if x in common), "") for join in one.joins]
    votes = Counter(voted).most_common()
    chosen = one.joins[0].protocol
    if common and (len(votes) == 1 or votes[0][1] > votes[1][1]):
        right, allowed = chosen == votes[0][0], f"{votes[0][0]}, which most members prefer"
        yield checked("G2", "other-than-preferred", one.joins[0], right, allowed, chosen)


def _numbered(group: Group, before: Generation, one: Generation) -> Rows:
    """G3: one member stayed during both generations, so no generation came between them."""
    stayed = [m for m in one.members if m in before.members and _joins_answered(group, m, before, one)]
    if not stayed:
        return
    right, seen = one.number == before.number + 1, f"generation {one.number} after {before.number}"
    join, allowed = one.members[stayed[0]], f"generation {before.number + 1}"
    yield checked("G3", "generation-jumps", join, right, allowed, seen)


def _stays(group: Group, one: Generation) -> Rows:
    """G3: a new member is not in a generation that began before its join. A group without members may be forgotten,
    and then begins again; so an occasional case is no proof."""
    if not one.again and one.number > 1:
        yield kept("G3", "generation-stays")
    for join in one.again:
        if join.given in {*one.members, *group.unheard(one)}:
            continue
        # If the members have sent nothing for a long time, their sessions may have expired too.
        empty = not any(group.alive_at(member, join.t) for member in one.members)
        seen = f"generation {one.number}, which had begun before the JoinGroup"
        row = broken("G3", "generation-stays", join, "a greater generation", seen, *_numbers(one.joins))
        yield now_and_then(row, join) if empty else row


def _joins_answered(group: Group, member: str, before: Generation, one: Generation) -> bool:
    """Whether every join of the member between two generations was answered with one of them."""
    first, last = before.members[member].t, one.members[member].t
    return all(join.answered for join in group.joins if join.member == member and first <= join.t <= last)


def _initial_delay(group: Group, before: Generation | None, one: Generation) -> Rows:
    """G1. The initial delay begins again when it ends and a member has joined during it, up to the rebalance
    time-out (KIP-134). A member that has joined and left again counts too."""
    delay_ms = group.bounds.declared.initial_delay_ms
    if delay_ms is None:
        return
    first = min(one.joins, key=lambda join: join.t)
    last = max(one.joins, key=lambda join: join.t)
    begins_t = min((j.t for j in group.joins if j.of_a_member), default=first.t)
    slack = group.bounds.allowed_ns(begins_t, last.t)
    soon = sum(join.t + slack <= begins_t + delay_ms * MS for join in one.joins)
    delays = 2 if soon > 1 and one.number == 1 and begins_t == first.t else 1
    earliest = first.t + min(delays * delay_ms, one.rebalance_ms[0]) * MS
    since_t = 0 if before is None else before.first_t
    came = (x for x in group.joins if since_t < x.t <= one.first_t and x.error == UNKNOWN_MEMBER)
    gone = [x for x in came if group.left(x.member, one.first_t) is not None]
    # A member whose response was not recorded may have begun the delay, and bounds it by its rebalance time-out.
    lost = [x for x in group.unanswered(one.first_t) if since_t < x.t]
    earliest = min([earliest, *(x.t + x.rebalance_ms * MS for x in gone)])
    earliest = min([earliest, *(x.t + min(delay_ms, x.rebalance_ms) * MS for x in lost)])
    if one.first_t < earliest - EARLY_NS:
        if group.pending(one, one.first_t):
            return  # Kafka 4 ends the delay when the session of a client expires that got an id and never joined
        seen = f"answered after {after(one.first_t, first.t)}"
        twice = ", which restarts when a member joins during the delay" if delays > 1 else ""
        yield broken("G1", "early", first, f"not before the initial delay of {delay_ms} ms{twice}", seen)
        return
    if group.unheard(one):
        return
    due = last.t + (delay_ms if len(one.joins) + len(gone) == 1 else 2 * delay_ms) * MS
    cap_ms = max(delay_ms, one.rebalance_ms[1], *(x.rebalance_ms for x in gone))
    capped_t = first.t + cap_ms * MS
    cause = "late"
    if capped_t < due:
        due = capped_t
        cause = "delayed-again" if cap_ms > 2 * delay_ms else "beyond-the-time-out"
    gap = max(one.rebalance_ms[1], delay_ms) * MS
    for join in one.joins:
        promise = f"an answer after the initial delay of {delay_ms} ms,"
        yield in_time(group.bounds, "G1", cause, join, due, gap, promise, since_t=first.t, through=True)


def _leaves_waiting(group: Group) -> Rows:
    """G8: the waiting JoinGroup of a member that leaves gets UNKNOWN_MEMBER_ID (25), and does not wait for the
    others."""
    for leave in group.leaves:
        if leave.answer_t is None:
            continue
        for join in group.joins:
            # The join is answered as the member is removed, which may be before the leaving is answered.
            waited = join.t < leave.t < join.ended_t
            if not waited or leave.left_with.get(join.member) != 0 or join.answered:
                continue
            gap, promise = join.rebalance_ms * MS, f"{named(UNKNOWN_MEMBER)} when the member leaves,"
            row = in_time(
                group.bounds, "G8", "waits-though-left", join, leave.answer_t, gap, promise, *leave.events
            )
            right = join.error == UNKNOWN_MEMBER
            yield row.but(right, "leaves-with-other-error", join, named(UNKNOWN_MEMBER), named(join.error))


def _surely_empty(group: Group, before: Generation, one: Generation) -> bool:
    """Whether the group was empty when the first join of this generation was sent, and no member id was waited for.
    Otherwise the rebalance continues that began when the last member left, or was removed."""
    told = [x for x in group.beats(before, before.members, before.last_t) if x.error == UNKNOWN_MEMBER]
    told = [x for x in told if x.ended_t <= one.asked_t]
    leaves = (x for x in group.leaves if x.t <= one.asked_t)
    left_t = max((x.ended_t for x in (*leaves, *told)), default=0)
    if any(join.t <= left_t for member, join in group.issued.items() if member not in before.members):
        return False
    out = {x.member for x in told}
    return all(member in out or group.gone_by(member, one.asked_t) for member in before.members)


def _rebalance(group: Group, before: Generation, one: Generation) -> Rows:
    """G4 and G6: the previous members are waited for, until the rebalance time-out and no longer."""
    told = [
        x.answer_t for x in (*before.syncs, *group.beats(before, before.members, before.first_t))
        if x.error == REBALANCING and x.answer_t is not None
    ]  # fmt: skip
    if group.out_unsynced(before, min([*told, one.first_t])):
        return  # a member without a SyncGroup is removed too, which begins a rebalance
    start = min((x.t for x in group.triggers(before, one.first_t)), default=before.last_t)
    longest = max(join.rebalance_ms for join in (*before.joins, *one.joins))
    missing = [
        member
        for member in before.members
        if member not in one.members and group.alive_at(member, one.first_t)
    ]
    if group.unheard(one) & {*missing}:
        return  # the response to its join was not recorded, and it may be in this generation
    silent = set(before.members) - set(one.members) - set(missing)
    if missing and any(group.left(member, one.first_t) is None for member in silent):
        return  # the end of a session begins a rebalance too, and no client is notified when
    if missing:
        # The group waits for the longest rebalance timeout that a member requested (KIP-62). These were certainly
        # members.
        asked_ms = [group.asks_ms(member) for member in before.members if member not in silent]
        waits_ms = max([*asked_ms, *_of_the_newcomer(group, before, one)])
        yield from _without(group, before, one, missing, start + waits_ms * MS, longest)
        return
    yield from _all_there(group, before, one, longest)
    shortest = min(join.rebalance_ms for join in (*before.joins, *one.joins))
    last_t = max(join.t for join in one.joins)
    if not silent and group.expected(one, last_t):
        allowed = "no answer before the clients with new ids have joined or left, or the rebalance timeout has passed"
        seen = f"{after(one.first_t, start)} after the rebalance began"
        awaited = one.first_t >= start + shortest * MS - EARLY_NS
        yield checked("G4", "new-id-not-awaited", one.joins[0], awaited, allowed, seen)


def _of_the_newcomer(group: Group, before: Generation, one: Generation) -> Iterator[int]:
    """The rebalance time-out of the newcomer whose join surely was what began the rebalance: it was a member then."""
    asked = sorted(group.triggers(before, one.first_t), key=lambda x: x.t)
    for first in asked[:1]:
        comes = first.api == "join_group" and first.answered and first.given not in before.members
        if comes and all(x.t > first.t + group.bounds.allowed_ns(first.t, x.t) for x in asked[1:]):
            yield first.rebalance_ms


def _without(
    group: Group, before: Generation, one: Generation, missing: list[str], earliest: int, longest_ms: int
) -> Rows:
    """A generation without a member that was there: only the rebalance time-out makes it so."""
    join = min(one.joins, key=lambda join: join.ended_t)
    late_joins = [x for x in group.joins if x.member in missing and x.t > before.members[x.member].t]
    clause = "G4" if late_joins else "G6"
    cause = "late-join-not-awaited" if late_joins else "before-the-time-out"
    seen = f"answered after {after(one.first_t, join.t)} without {len(missing)} members that had not rejoined"
    allowed = "no answer before all members have rejoined, or the rebalance timeout has passed"
    right = one.first_t >= earliest - EARLY_NS
    yield checked(clause, cause, join, right, allowed, seen, *_numbers(late_joins))
    if late_joins or not right:
        return
    promise = f"an answer at the rebalance timeout, {longest_ms} ms,"
    for x in one.joins:
        due = one.asked_t + longest_ms * MS
        yield in_time(group.bounds, "G6", "late", x, due, longest_ms * MS, promise, since_t=one.asked_t)
    for member in missing:
        yield from _is_out(group, member, one)


def _is_out(group: Group, member: str, one: Generation) -> Rows:
    """The member that did not rejoin gets UNKNOWN_MEMBER_ID (25)."""
    told = [
        x for x in group.heartbeats
        if x.member == member and x.t > one.last_t + group.bounds.declared.late_ms * MS and x.answer is not None
    ]  # fmt: skip
    for x in told[:1]:
        about = f", {after(x.t, one.last_t)} after the others' JoinGroup responses: it did not rejoin in time"
        yield error_is("G6", "missed-rebalance-kept", x, x.error, UNKNOWN_MEMBER, about)


def _nobody_rejoined(group: Group, one: Generation) -> Rows:
    """G6: a rebalance was reported, no remaining member has joined, and one and a half times its time-out have
    passed: all are removed."""
    beats = group.beats(one, one.members, one.last_t)
    told = next((x for x in beats if x.error == REBALANCING), None)
    if told is None or told.answer_t is None:
        return
    joins = [x for x in group.joins if x not in one.joins and x.of_a_member and x.t >= one.first_t]
    longest_ns = max(join.rebalance_ms for join in (*one.joins, *joins)) * MS
    over_t = told.answer_t + longest_ns + max(longest_ns // 2, group.bounds.declared.late_ms * MS)
    for member in one.members:
        x = next((x for x in beats if x.member == member and x.t >= over_t), None)
        if x is None or x.answer_t is None or group.left(member, x.answer_t) is not None:
            continue
        # The JoinGroup of a new member that has left keeps no rebalance open.
        if any(join.t <= x.answer_t and not group.gone_by(join.member, told.answer_t + longest_ns // 4)
               for join in joins):  # fmt: skip
            continue
        if group.bounds.allowed_ns(told.t, x.answer_t) > longest_ns // 2:
            continue
        allowed = f"{named(UNKNOWN_MEMBER)}: no member has rejoined in time"
        right, seen, late = (
            x.error == UNKNOWN_MEMBER,
            named(x.error),
            (told.answer_t + longest_ns, x.answer_t),
        )
        yield checked("G6", "no-member-rejoined", x, right, allowed, seen, *told.events, late=late)


def _all_there(group: Group, before: Generation, one: Generation, longest_ms: int) -> Rows:
    """G4: all are answered when the last has rejoined, or has left; G7: or its session has expired."""
    waited = {*before.members, *group.issued}
    leaves = [
        leave for leave in group.leaves
        if before.first_t < leave.t <= one.first_t
        and any(m in waited and m not in one.members for m in leave.leavers)
    ]  # fmt: skip
    last_t = max([join.t for join in one.joins] + [leave.t for leave in leaves])
    expired = [m for m in before.members if m not in one.members and group.left(m, one.last_t) is None]
    if group.unheard(one):
        return
    over = [group.session_over(member, one.first_t) for member in expired]
    if group.pending(one, last_t):
        # A member that has its id and has not joined is waited for, until its session has expired.
        over += [join.id_over_t(latest=True) for join in group.pending(one, one.first_t)]
    last_t = max([last_t, *over])
    gap = one.asked_t + longest_ms * MS - last_t
    if len(one.members) < len(one.joins) or (over and gap <= 0):
        return  # a member joined twice and got the same generation again; or the rebalance timeout comes first
    for join in one.joins:
        if len(one.joins) > 1 or leaves:
            clause, cause = _OF_THE_SILENT if over else _OF_ALL
            what = "session has expired" if over else "member has rejoined or left"
            promise = f"an answer when the last {what}, {after(last_t, join.t)} after the request,"
            yield in_time(group.bounds, clause, cause, join, last_t, gap, promise, *_numbers(leaves))
    if not over and any(join.t < last_t for join in one.joins):
        yield kept("G4")


def _syncs(group: Group, one: Generation) -> Rows:
    leads = [sync for sync in one.syncs if sync.member == one.leader]
    lead = leads[0] if leads else None
    given = {
        text(share, "member_id"): text(share, "assignment")
        for share in items(None if lead is None else lead.body, "assignments")
    }
    longest = one.rebalance_ms[1]
    for sync in one.syncs:
        if sync.member not in one.members:
            continue
        if sync.answer is not None and sync.error == 0 and (lead is None or (sync.answer_t or 0) < lead.t):
            seen = "answered, although the leader has sent no SyncGroup" if lead is None else (
                f"answered {after(lead.t, sync.answer_t or 0)} before the leader's SyncGroup"
            )  # fmt: skip
            yield broken("G5", "before-the-leader", sync, "not before the leader's SyncGroup", seen)
            continue
        if lead is None or (lead.answer is not None and lead.error):
            if sync is lead:
                promise = "an answer at once, of any kind,"
                yield in_time(group.bounds, "G5", "leader-waits", sync, sync.t, longest * MS, promise)
            if sync.answer_t is not None and sync.error and not group.disturbed(one, sync.answer_t):
                allowed = "no error, because no rebalance has begun"
                yield broken("G5", "refused", sync, allowed, named(sync.error))
            elif lead is None or lead.t > sync.ended_t:
                yield from _without_leader(group, one, sync)
            continue
        due = max(sync.t, lead.t)
        gap = sync.t + longest * MS - due
        by = group.bounds.by(sync.t, due, sync.answer_t, gap_ns=gap, watched_t=sync.watched_t)
        until = min(sync.watched_t if sync.answer_t is None else sync.answer_t, by.limit_t)
        if (sync.answer is None or sync.error) and group.disturbed(one, until):
            continue
        promise = f"an answer when the leader sends its SyncGroup, {after(due, sync.t)} after the request,"
        cause = "leader-waits" if sync is lead else "waits-though-synced"
        row = timed("G5", cause, sync, by, promise, sync.t, *lead.events)
        row = row.but(not sync.error, "refused", sync, "the assignment of the member", named(sync.error))
        right = text(sync.got, "assignment") == given.get(sync.member, "")
        row = row.but(
            right, "other-assignment", sync, "the assignment that the leader sent", "another assignment"
        )
        seen = f"{text(sync.got, 'protocol_type')} {text(sync.got, 'protocol_name')}"
        right = not one.other_protocol(sync.got)
        yield row.but(right, "other-protocol", sync, "the protocol that the JoinGroup response named", seen)


def _without_leader(group: Group, one: Generation, sync: Exchange) -> Rows:
    """G5 if the leader does not sync: a rebalance ends the wait. It begins with a new member, with a member that
    leaves, or when a member that has not synced by the rebalance time-out is removed."""
    asked = group.triggers(one, sync.until_t)
    newcomers = {*group.issued} - {*one.members}
    joins = [x.t for x in asked if x.api == "join_group" and not x.error and x.member in newcomers]
    others = {*one.members} - {sync.member}
    joins += [x.t for x in asked if x.answer is not None and not x.error and others & {*x.leavers}]
    begins = min(joins, default=None)
    begun_before = bool(asked) if begins is None else begins < sync.t
    if begun_before or sync.t - one.first_t >= one.rebalance_ms[0] * MS // 2:
        return
    slack = group.bounds.allowed_ns(sync.t, sync.until_t)
    out_ms = min(group.session_ms(sync.member), one.rebalance_ms[0])
    if sync.error == UNKNOWN_MEMBER and sync.t + slack - one.from_t >= out_ms * MS:
        return  # its session, or the time to sync, may have been over when it came
    longest = one.rebalance_ms[1] * MS
    due = one.last_t + longest if begins is None else begins
    why = "the rebalance timeout" if begins is None else "the JoinGroup of a new member, or a LeaveGroup"
    clause = "G5"
    cause = "waits-for-no-leader" if begins is None else "waits-in-rebalance"
    gap = longest
    over = group.session_over(one.leader, sync.until_t)
    soon = sync.t < over < one.first_t + longest // 2
    if begins is None and soon and sync.error in (0, REBALANCING):
        due, gap, why = over, due - over, "the end of the leader's session"
        clause, cause = _OF_THE_SILENT
    promise = f"{named(REBALANCING)} by {why}, {after(due, sync.t)} after the request,"
    row = in_time(group.bounds, clause, cause, sync, due, gap, promise)
    right, allowed = sync.error == REBALANCING, f"{named(REBALANCING)}: {why}"
    row = row.but(right, "other-error", sync, allowed, named(sync.error))
    yield row
    if begins is None and row.status is RowStatus.KEPT and sync.answer_t is not None:
        yield from _out_unsynced(group, one, sync.answer_t)


def _out_unsynced(group: Group, one: Generation, told_t: int) -> Rows:
    """A member with heartbeats in time that has not synced by the rebalance time-out is removed when the others are
    notified."""
    asked = {sync.member for sync in one.syncs}
    for member in {*one.members} - asked:
        beats = [
            x for x in group.beats(one, [member], told_t) if x.t < one.first_t + 2 * one.rebalance_ms[1] * MS
        ]
        if not beats or not all(group.alive_at(x, told_t) for x in one.members):
            continue
        about = ": the member has sent no SyncGroup by the rebalance timeout"
        yield error_is("G5", "unsynced-member-kept", beats[0], beats[0].error, UNKNOWN_MEMBER, about)


def _never_synced(group: Group, one: Generation) -> Rows:
    """G5 where the leader has synced and another never does: a rebalance begins at the rebalance time-out."""
    asked = {sync.member for sync in one.syncs}
    absent, longest = {*one.members} - asked, one.rebalance_ms[1] * MS
    beats = group.beats(one, one.synced(), one.last_t)
    if not absent or not beats:
        return
    told = next((x for x in beats if x.error == REBALANCING), None)
    until = beats[-1].t if told is None else told.answer_t or told.t
    if group.triggers(one, until):
        return
    if not all(group.alive_at(member, until) for member in one.members):
        return
    if told is None and until < one.last_t + longest + one.rebalance_ms[1] * MS // 2:
        return
    promise = "a rebalance, because a member has sent no SyncGroup by the rebalance timeout,"
    poll = max((b.t - a.t for a, b in pairwise(beats)), default=0)
    yield in_time(
        group.bounds, "G5", "waits-for-missing-sync", told or beats[-1], one.last_t + longest + poll, longest, promise,
        since_t=one.last_t,
    )  # fmt: skip
    if told is not None and told.answer_t is not None:
        yield from _out_unsynced(group, one, told.answer_t)


def _by_their_ids(group: Group, one: Generation) -> bool:
    """Whether its static members, if any, join again as others do: by their own ids, and none that was there before is
    absent, as it stays a member and its sync is awaited."""
    before = {x.instance for each in group.generations if each.number < one.number for x in each.joins}
    returns = any(x.instance and not x.member for x in one.again)
    return not returns and before - {""} <= {x.instance for x in one.joins}


def _joins_again(group: Group, one: Generation) -> Rows:
    """G3: a member joins again without a change, and the group is stable, or its leader has sent no SyncGroup. Then the
    member gets the same generation at once. The leader of a stable group, or a member with another subscription, begins
    a rebalance instead."""
    for join in group.joins:
        if join.member not in one.members or join.t < one.last_t:
            continue
        by = group.bounds.by(join.t, join.t, join.answer_t, gap_ns=JOIN_GAP_NS, watched_t=join.watched_t)
        until = min(join.until_t, by.limit_t)
        unsynced = all(sync.member != one.leader or sync.t > until for sync in one.syncs)
        if not unsynced and set(one.members) - one.synced(join.t):
            continue
        # Another member that got the same generation again has begun no rebalance.
        others = [x for x in group.triggers(one, until) if x is not join and x not in one.again]
        if others or not all(group.alive_at(x, join.t) for x in one.members):
            continue
        if group.out_unsynced(one, min(until, join.t + group.bounds.allowed_ns(join.t, until))):
            continue
        leads = join.member == one.leader and not unsynced
        mine = one.members[join.member].protocols
        changed = join.protocols != mine
        if not changed and [*join.protocols] != [*mine]:
            continue  # Kafka treats another order of the protocols as a change, which no document promises
        if leads or changed:
            if join.answered:
                allowed, seen = f"generation {one.number + 1}", f"generation {one.number} again"
                unheard = "leader-rejoin-ignored" if leads else "change-ignored"
                heard = integer(join.got, "generation_id") != one.number
                yield checked("G3", unheard, join, heard, allowed, seen)
            continue
        cause = "unsynced-rejoin-waits" if unsynced else "rejoin-waits"
        row = timed("G3", cause, join, by, f"generation {one.number} at once, without a rebalance,", join.t)
        number = join.generation
        allowed, seen = f"generation {one.number}", f"{named(join.error)}, {number}"
        row = row.but(number == one.number, "rebalances", join, allowed, seen)
        yield row
        if row.status is RowStatus.KEPT and join.answer is not None:
            told = {text(x, "member_id") for x in items(join.got, "members")}
            right = {*one.members} <= told if join.member == one.leader else not told
            allowed = "all members for the leader, and no members for the others"
            yield checked("G2", "members-after-rejoin", join, right, allowed, f"{len(told)} members")


def _numbers(exchanges: list[Exchange]) -> Iterator[int]:
    for one in exchanges:
        yield from one.events
