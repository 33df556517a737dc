"""G0 to G10: joins, syncs and heartbeats of a consumer group of the classic protocol.

The coordinator is known by its answers alone. A generation is the joins that were answered with it; who belonged to the
one before and is not among them had left, was late, or was not heard of. A clause speaks only where the exchanges leave
no other reading: coordinator errors, other protocols and connections that were cut give no occasion.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from purgatorio_spec.table.group import JOIN, Join, Joining
from purgatorio_spec.wire.bound import EARLY_NS, MS, Bounds, Held
from purgatorio_spec.wire.history import END_OF_TIME, EXCUSED, LOADING, Exchange, Scene, integer, items, text
from purgatorio_spec.wire.row import Row, Rows, after, broken, in_time, kept, named, timed

ILLEGAL_GENERATION, OTHER_PROTOCOL, UNKNOWN_MEMBER, REBALANCING, MEMBER_ID_REQUIRED = 22, 23, 25, 27, 79
JOIN_GAP_NS: Final = 3000 * MS
"""By how much a join that should be answered at once would be late where it waited: the usual initial delay."""


@dataclass(slots=True)
class _Generation:
    """The joins that were answered with one generation, and the syncs sent in it."""

    number: int
    joins: list[Exchange] = field(default_factory=list)
    again: list[Exchange] = field(default_factory=list)
    """Joins that were asked after its beginning: who is in it and asks again is told the same once more."""
    syncs: list[Exchange] = field(default_factory=list)
    from_t: int = 0
    """It had not begun: its own time-outs may run from here on, however late its answers were read."""

    @property
    def members(self) -> dict[str, Exchange]:
        return {_given(one): one for one in self.joins}

    def synced(self, t: int = END_OF_TIME) -> set[str]:
        """Whose syncs were answered well by `t`."""
        return {_member(sync) for sync in self.syncs if _answered(sync) and (sync.answer_t or 0) <= t}

    @property
    def asked_t(self) -> int:
        """When the first of them was sent."""
        return min(one.t for one in self.joins)

    @property
    def first_t(self) -> int:
        """When the first of them was answered: the generation had begun."""
        return min(one.answer_t or END_OF_TIME for one in self.joins)

    @property
    def last_t(self) -> int:
        return max(one.answer_t or 0 for one in self.joins)

    @property
    def leader(self) -> str:
        return text(self.joins[0].got, "leader")

    @property
    def rebalance_ms(self) -> tuple[int, int]:
        """The shortest and the longest rebalance time-out of its members."""
        times = [_rebalance_ms(one) for one in self.joins]
        return min(times), max(times)


@dataclass(slots=True)
class _Group:
    """All exchanges of one group in a scene, by kind, in order of sending."""

    bounds: Bounds
    joins: list[Exchange]
    syncs: list[Exchange]
    heartbeats: list[Exchange]
    commits: list[Exchange]
    leaves: list[Exchange]

    def generations(self) -> list[_Generation]:
        found: dict[int, _Generation] = {}
        for one in self.joins:
            if _answered(one):
                number = integer(one.got, "generation_id", -1)
                found.setdefault(number, _Generation(number)).joins.append(one)
        for made in found.values():
            first_t = made.first_t
            made.again = [one for one in made.joins if one.t > first_t]
            made.joins = [one for one in made.joins if one.t <= first_t]
            sent_t = max(one.t for one in made.joins)
            made.from_t = max(sent_t, first_t - self.bounds.allowed_ns(sent_t, first_t))
        for one in self.syncs:
            if _number(one) in found:
                found[_number(one)].syncs.append(one)
        return [found[number] for number in sorted(found)]

    def contacts(self, member: str) -> list[Exchange]:
        """What the coordinator heard of a member, in order of sending."""
        heard = [*self.joins, *self.syncs, *self.heartbeats, *self.commits]
        mine = (one for one in heard if _member(one) == member or (_answered(one) and _given(one) == member))
        return sorted(mine, key=lambda one: one.t)

    def issued(self) -> dict[str, Exchange]:
        """The member ids that were given out, each with the first join that was answered with it."""
        given: dict[str, Exchange] = {}
        for one in self.joins:
            if one.answer is not None and one.error in (0, MEMBER_ID_REQUIRED):
                given.setdefault(_given(one), one)
        return given

    def _unused(self, t: int) -> Iterator[tuple[str, Exchange]]:
        """The ids that were given out without a generation and that nobody had joined with by `t`, nor left; each with
        the join that was answered with it."""
        moved = {name for x in (*self.joins, *self.leaves) if x.t <= t for name in (_member(x), *_leavers(x))}
        return (
            (member, join)
            for member, join in self.issued().items()
            if join.error == MEMBER_ID_REQUIRED and member not in moved
        )

    def pending(self, one: _Generation, t: int) -> bool:
        """Whether somebody who is not in this generation had been given an id by `t` and had not joined with it."""
        return any(join.t <= t and member not in one.members for member, join in self._unused(t))

    def expected(self, one: _Generation, t: int) -> bool:
        """Whether somebody had surely been given an id by `t`, and had neither joined with it nor left, nor was its
        session over when this generation had begun."""
        return any(
            (join.answer_t or END_OF_TIME) <= t and one.first_t < _id_over(join) - EARLY_NS
            for _, join in self._unused(one.first_t)
        )

    def unheard(self, one: _Generation) -> set[str]:
        """Who had asked to join when this generation had begun, and was not watched to the answer."""
        return {_member(x) for x in self.joins if x.answer is None and x.t <= one.first_t} - {""}

    def beats(self, one: _Generation, members: Iterable[str], t: int) -> list[Exchange]:
        """The answered heartbeats of these members in this generation, from `t` on."""
        return [
            x for x in self.heartbeats
            if _member(x) in members and x.t >= t and x.answer is not None and _number(x) == one.number
        ]  # fmt: skip

    def asks_ms(self, member: str) -> int:
        """The rebalance time-out that the member asks for, the shortest where it changed its mind."""
        return min(
            _rebalance_ms(one)
            for one in self.joins
            if one.error == 0 and member in (_member(one), _given(one))
        )

    def session_over(self, member: str, t: int) -> int:
        """When its session is over, at the latest, if nothing is heard of it but what was sent by `t`."""
        heard_t = max(one.answer_t or END_OF_TIME for one in self.contacts(member) if one.t <= t)
        return heard_t + _session_ms(self, member) * MS

    def left(self, member: str, t: int) -> int | None:
        """When the member's leaving was asked for, if it was by `t`."""
        return min((one.t for one in self.leaves if one.t <= t and member in _leavers(one)), default=None)


def groups(bounds: Bounds, scene: Scene) -> Rows:
    """All rows of the groups of a scene."""
    for exchanges in scene.by_group().values():
        # What was asked before the coordinator was there had no effect.
        loading = [one.i for one in exchanges if one.error in LOADING]
        heard = [one for one in exchanges if one.error not in LOADING]
        if any(one.unread or one.throttled_ms for one in heard):
            continue
        if any(one.error in EXCUSED for one in heard) or (loading and heard and max(loading) > heard[0].i):
            continue

        by_api: dict[str, list[Exchange]] = defaultdict(list)
        for one in heard:
            by_api[one.api].append(one)
        # Without a generation a commit is of nobody in particular: good where there are no members.
        commits = [one for one in by_api["offset_commit"] if _number(one) >= 0]
        group = _Group(
            bounds, by_api["join_group"], by_api["sync_group"], by_api["heartbeat"], commits, by_api["leave_group"]
        )  # fmt: skip
        if any(text(one.body, "group_instance_id") for one in heard):
            for generation in group.generations():
                yield from _one_leader(group, generation)
        else:
            yield from _of_group(group)


def _of_group(group: _Group) -> Rows:
    generations = group.generations()
    yield from _member_ids(group, generations)
    for before, one in zip([None, *generations], generations, strict=False):
        yield from _one_leader(group, one)
        for join in one.again:
            if _given(join) not in {*one.members, *group.unheard(one)}:
                seen = f"generation {one.number}, which had begun before it was asked"
                yield broken("G3", "generation-stays", join, "a generation above", seen, *_numbers(one.joins))
        yield from _syncs(group, one)
        yield from _joins_again(group, one)
        if before is not None:
            yield from _numbered(group, before, one)
        if before is not None and any(_alive_at(group, member, one.asked_t) for member in before.members):
            yield from _rebalance(group, before, one)
        elif before is None or _surely_empty(group, before, one):
            yield from _initial_delay(group, one)
    yield from _strangers(group)
    yield from _heartbeats(group, generations)
    yield from _sessions(group, generations)
    yield from _leaving(group, generations)


def _member_ids(group: _Group, generations: list[_Generation]) -> Rows:
    """G0, and G9 of joins: an id is given out at once, and one that was not given out is refused, as is who has no
    protocol that the members have."""
    issued = group.issued()
    for one in group.joins:
        member = _member(one)
        until = one.answer_t or one.watched_t
        earlier = [x for x in group.joins if x is not one and x.t <= until]
        other = [x for x in earlier if not {*_protocols(x)} & {*_protocols(one)}]
        if other:
            current = _current(generations, one)
            members = {} if current is None else current.members
            if any(x in other and _alive_at(group, name, until) for name, x in members.items()):
                yield _refused(group, one, OTHER_PROTOCOL)
        elif not member and one.version >= 4:
            promise = f"{named(MEMBER_ID_REQUIRED)} at once:"
            row = in_time(group.bounds, "G0", "waits", one, one.t, JOIN_GAP_NS, promise)
            if row.held is Held.KEPT and (one.error != MEMBER_ID_REQUIRED or not _given(one)):
                seen = f"{named(one.error)}, member id {_given(one)!r}"
                row = broken("G0", "no-member-id", one, f"{named(MEMBER_ID_REQUIRED)} and an id", seen)
            yield row
        elif member and member not in issued:
            yield _refused(group, one, UNKNOWN_MEMBER)
        elif member and one is group.contacts(member)[0] and one.answer_t is not None:
            lives = one.answer_t < _id_over(issued[member]) - EARLY_NS
            allowed = "the id that it was given is known"
            if lives and group.left(member, one.answer_t) is None:
                known = one.error != UNKNOWN_MEMBER
                yield kept("G0") if known else broken("G0", "id-not-known", one, allowed, named(one.error))


def _refused(group: _Group, one: Exchange, error: int) -> Row:
    """G9: at once, with that error."""
    row = in_time(group.bounds, "G9", "refusal-waits", one, one.t, JOIN_GAP_NS, f"{named(error)} at once:")
    if row.held is Held.KEPT and one.error != error:
        row = broken("G9", "not-refused", one, named(error), named(one.error))
    return row


def _one_leader(group: _Group, one: _Generation) -> Rows:
    """G2."""
    members = one.members
    if any(join.answer is None and _member(join) == one.leader for join in group.joins):
        return  # the leader's own answer was not waited for
    leaders = {text(join.got, "leader") for join in one.joins}
    if len(leaders) != 1 or not leaders <= set(members):
        allowed = "one leader, a member of it"
        seen = f"leaders {', '.join(sorted(leaders))} of {len(members)} members"
        if len(leaders) > 1 or all(_member(sync) != one.leader for sync in one.syncs):
            yield broken("G2", "leaders", one.joins[0], allowed, seen, *_numbers(one.joins))
        return
    common = sorted(set.intersection(*(set(_protocols(join)) for join in one.joins)))
    for join in one.joins:
        told = {text(member, "member_id"): text(member, "metadata") for member in items(join.got, "members")}
        me, chosen = _given(join), text(join.got, "protocol_name")
        other = [x for x in told if x in members and told[x] != _protocols(members[x]).get(chosen)]
        if me == one.leader and not set(members) <= set(told):
            seen = f"{len(told)} of at least {len(members)}"
            yield broken("G2", "leader-not-told", join, "the leader is told all members", seen)
        elif me != one.leader and told:
            yield broken("G2", "follower-told", join, "the leader alone is told", f"{len(told)} members")
        elif chosen not in common:
            allowed = f"one of {', '.join(common)}, which all members have"
            yield broken("G2", "protocol", join, allowed, f"protocol {chosen!r}")
        elif other:
            allowed = "the subscription of each member, as it joined"
            yield broken("G2", "other-subscription", join, allowed, f"another of {', '.join(other)}")
        else:
            yield kept("G2")


def _protocols(join: Exchange) -> dict[str, str]:
    """The protocols that a member has, and its subscription by each."""
    return {text(one, "name"): text(one, "metadata") for one in items(join.body, "protocols")}


def _numbered(group: _Group, before: _Generation, one: _Generation) -> Rows:
    """G3: somebody was a member all the time, so each rebalance between is one of these."""
    stayed = [m for m in one.members if m in before.members and _joins_answered(group, m, before, one)]
    if not stayed:
        return
    if one.number == before.number + 1:
        yield kept("G3")
    else:
        join = one.members[stayed[0]]
        seen = f"generation {one.number} after {before.number}"
        yield broken("G3", "generation-jumps", join, f"generation {before.number + 1}", seen)


def _joins_answered(group: _Group, member: str, before: _Generation, one: _Generation) -> bool:
    """Whether every join of the member between two generations was answered with one of them."""
    first, last = before.members[member].t, one.members[member].t
    return all(_answered(join) for join in group.joins if _member(join) == member and first <= join.t <= last)


def _gone_by(group: _Group, member: str, t: int) -> bool:
    """Whether a member had surely left by `t`."""
    return any(
        member in _leavers(one) and one.answer_t is not None and one.answer_t <= t and one.error == 0
        for one in group.leaves
    )


def _surely_empty(group: _Group, before: _Generation, one: _Generation) -> bool:
    """Whether the group was empty when the first join of this generation was sent, and nobody had an id by then and was
    waited for: with one the rebalance that the last leaving began goes on."""
    left_t = max(
        (leave.answer_t or END_OF_TIME for leave in group.leaves if leave.t <= one.asked_t), default=0
    )
    if any(join.t <= left_t for member, join in group.issued().items() if member not in before.members):
        return False
    return all(_gone_by(group, member, one.asked_t) for member in before.members)


def _alive_at(group: _Group, member: str, t: int) -> bool:
    """Whether the coordinator must still count this member at `t`: heard of often enough, never told that it is out,
    and not leaving. When a coordinator took a request up is not known, so a quarter of the session is left to it."""
    heard = [one for one in group.contacts(member) if one.t <= t]
    if not heard or group.left(member, t) is not None:
        return False
    if any(one.error == UNKNOWN_MEMBER and (one.answer_t or END_OF_TIME) <= t for one in heard):
        return False
    heard = [one for one in heard if _renews(one)]
    # Who waits in a join is a member all the time, and the session begins anew with the answer, which may have been
    # sent before we read it, but not before the join.
    lives = [
        max(one.t, _sent_t(group, min(one.answer_t or END_OF_TIME, t)))
        if one.api == "join_group" and _member(one)
        else one.t
        for one in heard
    ]
    nexts = [*(one.t for one in heard[1:]), t]
    session_ns = _session_ms(group, member) * MS * 3 // 4
    return all(then - life < session_ns for life, then in zip(lives, nexts, strict=True))


def _sent_t(group: _Group, answer_t: int) -> int:
    """The moment from which on an answer may have been sent that was read at `answer_t`."""
    return answer_t - group.bounds.added_ns(answer_t - group.bounds.declared.late_ms * MS, answer_t)


def _initial_delay(group: _Group, one: _Generation) -> Rows:
    """G1. It begins anew when it is over and somebody has joined in it, up to the rebalance time-out (KIP-134)."""
    delay_ms = group.bounds.declared.initial_delay_ms
    if delay_ms is None:
        return
    first = min(one.joins, key=lambda join: join.t)
    last = max(one.joins, key=lambda join: join.t)
    begins_t = min((j.t for j in group.joins if _member_of_any(j)), default=first.t)
    slack = group.bounds.allowed_ns(begins_t, last.t)
    soon = sum(join.t + slack <= begins_t + delay_ms * MS for join in one.joins)
    delays = 2 if soon > 1 and one.number == 1 and begins_t == first.t else 1
    earliest = first.t + min(delays * delay_ms, one.rebalance_ms[0]) * MS
    if one.first_t < earliest - EARLY_NS:
        if group.pending(one, one.first_t):
            return  # Kafka 4 ends the delay when the session of somebody ends who never joined
        seen = f"answered after {after(one.first_t, first.t)}"
        twice = ", which begins anew when somebody has joined in it" if delays > 1 else ""
        yield broken("G1", "early", first, f"not before the initial delay of {delay_ms} ms{twice}", seen)
        return
    if group.unheard(one):
        return
    due = last.t + (delay_ms if len(one.joins) == 1 else 2 * delay_ms) * MS
    due = min(due, first.t + max(delay_ms, one.rebalance_ms[1]) * MS)
    gap = max(one.rebalance_ms[1], delay_ms) * MS
    for join in one.joins:
        promise = f"an answer after the initial delay of {delay_ms} ms,"
        yield in_time(group.bounds, "G1", "late", join, due, gap, promise)


def _rebalance(group: _Group, before: _Generation, one: _Generation) -> Rows:
    """G4 and G6: who was there is waited for, until the rebalance time-out and no longer."""
    if (
        set(before.members) - before.synced()
        and one.first_t >= before.from_t + before.rebalance_ms[0] * MS - EARLY_NS
    ):
        return  # who does not sync in time is out too, and begins a rebalance by it
    start = min((x.t for x in _triggers(group, before, one.first_t)), default=before.last_t)
    longest = max(_rebalance_ms(join) for join in (*before.joins, *one.joins))
    missing = [
        member
        for member in before.members
        if member not in one.members and _alive_at(group, member, one.first_t)
    ]
    silent = set(before.members) - set(one.members) - set(missing)
    if missing and any(group.left(member, one.first_t) is None for member in silent):
        return  # the end of a session begins a rebalance too, and nobody is told when
    if missing:
        # The group waits for the longest that a member asked for (KIP-62), and these were surely members.
        waits_ms = max(group.asks_ms(member) for member in before.members if member not in silent)
        yield from _without(group, before, one, missing, start + waits_ms * MS, longest)
        return
    yield from _all_there(group, before, one, longest)
    shortest = min(_rebalance_ms(join) for join in (*before.joins, *one.joins))
    last_t = max(join.t for join in one.joins)
    if not silent and group.expected(one, last_t):
        allowed = "not before who has been given an id has joined or left, or the rebalance time-out"
        seen = f"{after(one.first_t, start)} after the rebalance began"
        awaited = one.first_t >= start + shortest * MS - EARLY_NS
        yield kept("G4") if awaited else broken("G4", "expected-not-awaited", one.joins[0], allowed, seen)


def _without(
    group: _Group, before: _Generation, one: _Generation, missing: list[str], earliest: int, longest_ms: int
) -> Rows:
    """A generation without a member that was there: only the rebalance time-out makes it so."""
    join = min(one.joins, key=lambda join: join.answer_t or END_OF_TIME)
    late_joins = [x for x in group.joins if _member(x) in missing and x.t > before.members[_member(x)].t]
    clause = "G4" if late_joins else "G6"
    if one.first_t < earliest - EARLY_NS:
        seen = f"answered after {after(one.first_t, join.t)} without {len(missing)} member(s) that had not rejoined"
        allowed = "not before all have rejoined, or the rebalance time-out"
        cause = "did-not-wait" if late_joins else "before-the-time-out"
        yield broken(clause, cause, join, allowed, seen, *_numbers(late_joins))
        return
    yield kept(clause)
    if late_joins:
        return
    promise = f"an answer at the rebalance time-out, {longest_ms} ms,"
    for x in one.joins:
        yield in_time(group.bounds, "G6", "late", x, one.asked_t + longest_ms * MS, longest_ms * MS, promise)
    for member in missing:
        yield from _is_out(group, member, one)


def _is_out(group: _Group, member: str, one: _Generation) -> Rows:
    """The member that did not rejoin is told so: 25."""
    told = [
        x for x in group.heartbeats
        if _member(x) == member and x.t > one.last_t + group.bounds.declared.late_ms * MS and x.answer is not None
    ]  # fmt: skip
    for x in told[:1]:
        if x.error == UNKNOWN_MEMBER:
            yield kept("G6")
        else:
            seen = f"{named(x.error)} {after(x.t, one.last_t)} after the others were answered"
            yield broken("G6", "not-out", x, f"{named(UNKNOWN_MEMBER)}: it did not rejoin in time", seen)


def _all_there(group: _Group, before: _Generation, one: _Generation, longest_ms: int) -> Rows:
    """G4: all are answered when the last has rejoined, or has left; G7: or its session is over."""
    waited = {*before.members, *group.issued()}
    leaves = [
        leave for leave in group.leaves
        if before.first_t < leave.t <= one.first_t
        and any(m in waited and m not in one.members for m in _leavers(leave))
    ]  # fmt: skip
    last_t = max([join.t for join in one.joins] + [leave.t for leave in leaves])
    expired = [m for m in before.members if m not in one.members and group.left(m, one.last_t) is None]
    there = tuple(Join.JOINED for _ in one.members)
    if group.unheard(one) or not JOIN.decide(Joining(there, group.pending(one, last_t), dead=False)).answer:
        return  # a member that has its id and has not joined is waited for
    last_t = max([last_t, *(group.session_over(member, one.first_t) for member in expired)])
    if len(one.members) < len(one.joins):
        return  # somebody asked twice and was told the same generation again
    gap = one.asked_t + longest_ms * MS - last_t
    for join in one.joins:
        if len(one.joins) > 1 or leaves:
            clause, cause = ("G7", "waits-for-the-silent") if expired else ("G4", "waits-though-complete")
            over = "session is over" if expired else "member has rejoined or left"
            promise = f"an answer when the last {over}, {after(last_t, join.t)} after,"
            yield in_time(group.bounds, clause, cause, join, last_t, gap, promise, *_numbers(leaves))
    if not expired and any(join.t < last_t for join in one.joins):
        yield kept("G4")


def _syncs(group: _Group, one: _Generation) -> Rows:
    """G5."""
    leads = [sync for sync in one.syncs if _member(sync) == one.leader]
    lead = leads[0] if leads else None
    given = {
        text(share, "member_id"): text(share, "assignment")
        for share in items(None if lead is None else lead.body, "assignments")
    }
    longest = one.rebalance_ms[1]
    for sync in one.syncs:
        if _member(sync) not in one.members:
            continue
        if sync.answer is not None and sync.error == 0 and (lead is None or (sync.answer_t or 0) < lead.t):
            seen = "answered though the leader has not synced" if lead is None else (
                f"answered {after(lead.t, sync.answer_t or 0)} before the leader's sync"
            )  # fmt: skip
            yield broken("G5", "before-the-leader", sync, "not before the leader's sync", seen)
            continue
        if lead is None or (lead.answer is not None and lead.error):
            if sync.answer_t is not None and sync.error and not _disturbed(group, one, sync.answer_t):
                allowed = "no refusal, as no rebalance has begun"
                yield broken("G5", "refused", sync, allowed, named(sync.error))
            elif lead is None or lead.t > (sync.answer_t or END_OF_TIME):
                yield from _without_leader(group, one, sync)
            continue
        due = max(sync.t, lead.t)
        gap = sync.t + longest * MS - due
        by = group.bounds.by(sync.t, due, sync.answer_t, gap_ns=gap, watched_t=sync.watched_t)
        until = min(sync.watched_t if sync.answer_t is None else sync.answer_t, by.limit_t)
        if (sync.answer is None or sync.error) and _disturbed(group, one, until):
            continue
        promise = f"an answer with the leader's sync, {after(due, sync.t)} after,"
        cause = "leader-waits" if sync is lead else "waits-though-synced"
        row = timed("G5", cause, sync, by, promise, sync.t, *lead.events)
        if row.held is Held.KEPT and sync.error:
            row = broken("G5", "refused", sync, "its assignment", named(sync.error))
        elif row.held is Held.KEPT and text(sync.got, "assignment") != given.get(_member(sync), ""):
            row = broken("G5", "other-assignment", sync, "the assignment that the leader gave", "another")
        yield row


def _joins_again(group: _Group, one: _Generation) -> Rows:
    """G3: who joins a stable group again, as it was, is told the same generation at once, but for the leader."""
    for join in group.joins:
        if _member(join) not in one.members or join.t < one.last_t:
            continue
        if set(one.members) - one.synced(join.t) or not all(_alive_at(group, x, join.t) for x in one.members):
            continue
        by = group.bounds.by(join.t, join.t, join.answer_t, gap_ns=JOIN_GAP_NS, watched_t=join.watched_t)
        until = min(join.answer_t or join.watched_t, by.limit_t)
        if _triggers(group, one, until) != [join]:
            continue
        if _member(join) == one.leader:
            if _answered(join) and integer(join.got, "generation_id") == one.number:
                allowed, seen = f"generation {one.number + 1}", f"{one.number} again"
                yield broken("G3", "leader-unheard", join, allowed, seen)
            continue
        row = timed("G3", "joins-again", join, by, f"generation {one.number} at once, as it was,", join.t)
        number = integer(join.got, "generation_id", -1)
        if row.held is Held.KEPT and number != one.number:
            seen = f"{named(join.error)}, {number}"
            row = broken("G3", "rebalances", join, f"generation {one.number}", seen)
        yield row


def _without_leader(group: _Group, one: _Generation, sync: Exchange) -> Rows:
    """G5 where the leader does not sync: a rebalance ends the wait, that of a newcomer or of a member that leaves, or
    that which begins when who has not synced by the rebalance time-out is out."""
    asked = _triggers(group, one, sync.answer_t or sync.watched_t)
    newcomers = {*group.issued()} - {*one.members}
    joins = [x.t for x in asked if x.api == "join_group" and not x.error and _member(x) in newcomers]
    others = {*one.members} - {_member(sync)}
    joins += [x.t for x in asked if x.answer is not None and not x.error and others & {*_leavers(x)}]
    begins = min(joins, default=None)
    begun_before = bool(asked) if begins is None else begins < sync.t
    if begun_before or sync.t - one.first_t >= one.rebalance_ms[0] * MS // 2:
        return
    slack = group.bounds.allowed_ns(sync.t, sync.answer_t or sync.watched_t)
    if sync.error == UNKNOWN_MEMBER and sync.t + slack - one.from_t >= _session_ms(group, _member(sync)) * MS:
        return  # its session may have been over when it came
    longest = one.rebalance_ms[1] * MS
    due = one.last_t + longest if begins is None else begins
    why = "the rebalance time-out" if begins is None else "a newcomer's join, or a leaving"
    cause = "waits-for-no-leader" if begins is None else "waits-in-rebalance"
    promise = f"{named(REBALANCING)} by {why}, {after(due, sync.t)} after,"
    row = in_time(group.bounds, "G5", cause, sync, due, longest, promise)
    if row.held is Held.KEPT and sync.error != REBALANCING:
        row = broken("G5", "other-error", sync, f"{named(REBALANCING)}: {why}", named(sync.error))
    yield row


def _disturbed(group: _Group, one: _Generation, until: int) -> bool:
    """Whether a rebalance may have begun by then, as what answered a sync or kept it from its answer."""
    if _triggers(group, one, until):
        return True
    shortest = min((_session_ms(group, member) for member in one.members), default=0)
    return until - one.from_t > min(shortest, one.rebalance_ms[0]) * MS - EARLY_NS


def _strangers(group: _Group) -> Rows:
    """G9: who was given no id is refused. Kafka answers heartbeats blindly while a group is loading, so it must have
    been seen loaded."""
    issued = group.issued()
    loaded_t = min((join.answer_t or END_OF_TIME for join in group.joins), default=END_OF_TIME)
    for one in (*group.heartbeats, *group.syncs, *group.commits, *group.leaves):
        if one.t >= loaded_t and not issued.keys() & {*(_leavers(one) or [_member(one)])}:
            yield _refused(group, one, UNKNOWN_MEMBER)


def _heartbeats(group: _Group, generations: list[_Generation]) -> Rows:
    """G3 (a rebalance is told), G9 (wrong generations) and G10 (who is heard of stays)."""
    for beat in (*group.heartbeats, *group.syncs, *group.commits, *group.joins):
        member, number = _member(beat), _number(beat)
        current = _current(generations, beat)
        if beat.answer is None or current is None or member not in current.members:
            continue
        if number == current.number and not _disturbed(group, current, beat.answer_t or beat.watched_t):
            yield from _undisturbed(group, current, beat)
        if not _steady(group, member, current, beat):
            continue
        if beat.api != "join_group" and number != current.number:
            if beat.error != REBALANCING:
                yield _refused(group, beat, ILLEGAL_GENERATION)
        elif beat.error == UNKNOWN_MEMBER:
            if _others_hold(group, current, member, beat):
                why = "though it was heard of in time, before the rebalance time-out"
                yield broken("G10", "put-out", beat, "it stays a member", f"{named(UNKNOWN_MEMBER)}, {why}")
        elif beat.api == "heartbeat":
            yield from _beat(group, current, member, beat)


def _undisturbed(group: _Group, current: _Generation, one: Exchange) -> Rows:
    """Of what is asked while no rebalance can have begun. Commits are for when everybody has its share."""
    if one.api == "heartbeat":
        told = one.error == REBALANCING
        yield broken("G3", "told-for-nothing", one, "no rebalance", named(one.error)) if told else kept("G3")
    until = one.answer_t or one.watched_t
    if one.api == "offset_commit" and all(_member(x) != current.leader or x.t > until for x in current.syncs):
        yield _refused(group, one, REBALANCING)


def _others_hold(group: _Group, current: _Generation, member: str, one: Exchange) -> bool:
    """Whether all have synced and nobody else was put out: that would begin a rebalance which nobody is told of."""
    synced = current.synced()
    return all(x in synced and (x == member or _alive_at(group, x, one.t)) for x in current.members)


def _beat(group: _Group, current: _Generation, member: str, beat: Exchange) -> Rows:
    assert beat.answer_t is not None
    bounds = group.bounds
    allowed_ns = bounds.allowed_ns(beat.t - bounds.declared.late_ms * MS, beat.answer_t)
    began = current.members[member].answer_t or beat.t
    outlived = beat.t > began + _session_ms(group, member) * MS
    waiting = [
        join for join in group.joins
        if _member(join) and _member(join) != member and join not in current.joins and join.t > current.first_t
        and join.t + allowed_ns <= beat.t and (join.answer_t or END_OF_TIME) > beat.answer_t
        and join.watched_t > beat.answer_t
    ]  # fmt: skip
    if waiting and beat.error != REBALANCING:
        allowed = f"{named(REBALANCING)}: a join waits since {after(beat.t, waiting[0].t)}"
        yield broken(
            "G3", "rebalance-not-told", beat, allowed, named(beat.error), *waiting[0].events,
            held=Held.LATE, late=(waiting[0].t, beat.answer_t),
        )  # fmt: skip
        return
    if waiting:
        yield kept("G3")
    if outlived and (waiting or not _triggers(group, current, beat.answer_t)):
        yield kept("G10")


def _triggers(group: _Group, current: _Generation, until: int = END_OF_TIME) -> list[Exchange]:
    """What was asked by then and may have begun a rebalance since the generation began. Who joined one before and is
    not in this one begins none by leaving."""
    out = {_given(join) for join in group.joins if _answered(join)} - {*current.members}
    out -= {_member(join) for join in group.joins if join.answer is None}
    return [
        x for x in (*group.joins, *group.leaves)
        if x not in current.joins and _member_of_any(x) and (x.answer_t or END_OF_TIME) >= current.first_t
        and x.t <= until and not (x.t <= current.first_t and _leavers(x) and out >= {*_leavers(x)})
    ]  # fmt: skip


def _current(generations: list[_Generation], one: Exchange) -> _Generation | None:
    """The generation that was the last when this was sent and is when it was answered; None if another came between."""
    until = one.answer_t or one.watched_t
    begun = [generation for generation in generations if generation.first_t <= until]
    if not begun or begun[-1].last_t > one.t:
        return None
    return begun[-1]


def _steady(group: _Group, member: str, current: _Generation, beat: Exchange) -> bool:
    """Whether the member must be one still: heard of often enough, and not leaving."""
    until = beat.answer_t or beat.watched_t
    if group.left(member, until) is not None:
        return False
    session_ns = _session_ms(group, member) * MS
    heard = [
        one for one in group.contacts(member)
        if current.members[member].t <= one.t <= beat.t and (_renews(one) or one is beat)
    ]  # fmt: skip
    # A coordinator may take one up when it comes and the next not before it answers it.
    for a, b in pairwise(heard):
        joins = b.api == "join_group"  # which waits when it has been taken up
        taken_t = b.t + group.bounds.allowed_ns(b.t, until) if joins else b.answer_t or until
        if taken_t - max(a.t, current.from_t) >= session_ns - EARLY_NS:
            return False
    # Who waits too long with its sync is out as well, and nobody is a member who did not rejoin.
    synced = any(_member(sync) == member and _answered(sync) and sync.t <= beat.t for sync in current.syncs)
    longest_wait = until - min((x.t for x in _triggers(group, current, until)), default=until)
    return synced and longest_wait < current.rebalance_ms[0] * MS - EARLY_NS


def _sessions(group: _Group, generations: list[_Generation]) -> Rows:
    """G7: of a member that falls silent in a generation that nothing else disturbs, told by the others' heartbeats."""
    for one in generations:
        for member in one.members:
            session_ms = _session_ms(group, member)
            others = group.beats(one, {*one.members} - {member}, one.last_t)
            joined_t = min((x.t for x in _triggers(group, one)), default=END_OF_TIME)
            others = [x for x in others if (x.answer_t or 0) < joined_t]
            told_t = min((x.t for x in others if x.error == REBALANCING), default=END_OF_TIME)
            heard = [x for x in group.contacts(member) if one.members[member].t <= x.t < told_t]
            if not heard:
                continue
            behind = [x.t for x in heard[1:]] + [END_OF_TIME]
            # Who waits for the generation is a member all the time, however long its join takes.
            last = next(
                x
                for x, t in zip(heard, behind, strict=True)
                if t - max(x.t, one.last_t) >= session_ms * MS - EARLY_NS
            )
            if (
                last.answer_t is None
                or last.error
                or last.api == "join_group"
                or integer(last.body, "generation_id", one.number) != one.number
                or group.left(member, last.t + 2 * session_ms * MS) is not None
            ):
                continue
            others = [x for x in others if x.t > last.t]
            over = others and others[-1].t >= last.t + session_ms * MS - EARLY_NS
            if not others or not (over or told_t < END_OF_TIME) or _silent(group, one, member, others):
                continue
            earliest = max(last.t if _renews(last) else 0, one.from_t) + session_ms * MS
            yield from _silence(group, last, earliest, others, session_ms)


def _silent(group: _Group, one: _Generation, member: str, beats: list[Exchange]) -> bool:
    """Whether somebody else than `member` may have been out by its session as well, or did not sync."""
    if set(one.members) - one.synced():
        return True
    for other in set(one.members) - {member}:
        heard = [x.t for x in group.contacts(other) if x.t >= one.first_t and _renews(x)]
        times = [one.first_t, *heard, beats[-1].t]
        if any(b - a >= _session_ms(group, other) * MS - EARLY_NS for a, b in pairwise(times)):
            return True
    return False


def _silence(group: _Group, last: Exchange, earliest: int, others: list[Exchange], session_ms: int) -> Rows:
    assert last.answer_t is not None
    first = next((x for x in others if x.error == REBALANCING), None)
    if first is not None and first.answer_t is not None and first.answer_t < earliest - EARLY_NS:
        seen = f"a rebalance was told {after(first.answer_t, last.t)} after it was last heard of"
        yield broken(
            "G7", "early", first, f"not before its session time-out of {session_ms} ms", seen, *last.events
        )
        return
    promise = f"a rebalance at its session time-out, {session_ms} ms,"
    begins_t = last.answer_t + session_ms * MS
    yield _told(group, "G7", "not-put-out", last, begins_t, others, session_ms, promise)


def _told(
    group: _Group, clause: str, cause: str, since: Exchange, begins_t: int, beats: list[Exchange],
    session_ms: int, promise: str,
) -> Row:  # fmt: skip
    """Whether these heartbeats are told of a rebalance that began by `begins_t`: the next one that was sent."""
    first = next((x for x in beats if x.error == REBALANCING), None)
    poll = max((b.t - a.t for a, b in pairwise(beats)), default=0)
    due = begins_t + min(poll, session_ms * MS)
    answered_t = None if first is None else first.answer_t
    by = group.bounds.by(since.t, due, answered_t, gap_ns=session_ms * MS, watched_t=beats[-1].t)
    return timed(clause, cause, first or beats[-1], by, promise, since.t, *since.events)


def _leaving(group: _Group, generations: list[_Generation]) -> Rows:
    """G8: told by the heartbeats of those who stay."""
    for leave in group.leaves:
        refused = any(integer(said, "error_code") for said in items(leave.got, "members"))
        if leave.answer_t is None or leave.error or refused:
            continue
        before = [one for one in generations if one.last_t <= leave.t]
        if not before or not any(member in before[-1].members for member in _leavers(leave)):
            continue
        one = before[-1]
        if set(one.members) - one.synced(leave.t):
            continue
        if any(x is not leave for x in _triggers(group, one, leave.answer_t)):
            continue
        stay = set(one.members) - set(_leavers(leave))
        joined = min((x.t for x in group.joins if x.t > leave.t and _member(x)), default=END_OF_TIME)
        beats = [x for x in group.beats(one, stay, leave.answer_t) if x.t < joined]
        if beats and all(_alive_at(group, member, leave.t) for member in stay):
            session_ms = min(_session_ms(group, member) for member in stay)
            promise = "a rebalance at once,"
            yield _told(group, "G8", "not-told", leave, leave.answer_t, beats, session_ms, promise)


def _answered(one: Exchange) -> bool:
    """Answered without an error."""
    return one.got is not None and one.error == 0


def _renews(one: Exchange) -> bool:
    """Whether a session surely begins anew with it: what is refused has not been heard, and with a sync in a group that
    is stable already nothing begins in Kafka 4."""
    return one.api != "sync_group" and (
        one.error == 0 or (one.api == "heartbeat" and one.error == REBALANCING)
    )


def _member(one: Exchange) -> str:
    return text(one.body, "member_id")


def _number(one: Exchange) -> int:
    """The generation that a sync, a heartbeat or a commit is sent in; -1 of none."""
    return integer(one.body, "generation_id", integer(one.body, "generation_id_or_member_epoch", -1))


def _given(join: Exchange) -> str:
    return text(join.got, "member_id")


def _member_of_any(one: Exchange) -> bool:
    """Whether the request is one of a member: a join without an id begins no rebalance."""
    return bool(_member(one)) or bool(_leavers(one)) or (one.api == "join_group" and one.version < 4)


def _leavers(one: Exchange) -> list[str]:
    if one.api != "leave_group":
        return []
    named = [text(member, "member_id") for member in items(one.body, "members")]
    return named or [text(one.body, "member_id")]


def _rebalance_ms(join: Exchange) -> int:
    given = integer(join.body, "rebalance_timeout_ms", -1)
    return given if given >= 0 else integer(join.body, "session_timeout_ms")


def _id_over(join: Exchange) -> int:
    """When the session of who was given an id by this join is over, unless it is heard of: it runs since then."""
    return join.t + integer(join.body, "session_timeout_ms") * MS


def _session_ms(group: _Group, member: str) -> int:
    """The session time-out of a member's last join."""
    joins = [x for x in group.joins if member in (_given(x), _member(x))]
    return integer(joins[-1].body, "session_timeout_ms") if joins else 0


def _numbers(exchanges: list[Exchange]) -> Iterator[int]:
    for one in exchanges:
        yield from one.events
