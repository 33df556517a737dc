"""The state of a classic consumer group, computed from the requests and responses of a scene.

A *generation* is the set of joins whose responses have the same generation id. If a member of the previous generation
is not in this set, it has left, was late, or sent no heartbeats. This module computes which requests may have changed
the group, and which members must still be in the group. The clauses are in `clause.rebalance` and `clause.membership`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, MS, Bounds
from purgatorio_wire.history.history import (
    END_OF_TIME,
    EXCUSED,
    LOADING,
    Exchange,
    Scene,
    items,
    text,
)
from purgatorio_wire.trace.record import Body

ILLEGAL_GENERATION, OTHER_PROTOCOL, UNKNOWN_MEMBER, REBALANCING, MEMBER_ID_REQUIRED = 22, 23, 25, 27, 79
FENCED: Final = 82
OF_THE_GROUP: Final = frozenset({ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING, FENCED})
"""The errors of a commit with a transaction that are about its sender; other errors are about the transaction."""
NO_SUCH_GROUP: Final = 69
JOIN_GAP_NS: Final = 3000 * MS
"""The gap of a join that should be answered at once: if it waits, it waits for the usual initial delay."""


@dataclass(slots=True)
class Generation:
    """The joins whose responses have one generation id, and the syncs sent with this id."""

    number: int
    joins: list[Exchange] = field(default_factory=list)
    again: list[Exchange] = field(default_factory=list)
    """Joins after its start. A member that joins again gets the same generation."""
    syncs: list[Exchange] = field(default_factory=list)
    from_t: int = 0
    """The earliest time of its start. Its time-outs may run from here on, even if the responses were read later."""

    @property
    def members(self) -> dict[str, Exchange]:
        return {one.given: one for one in self.joins}

    def synced(self, t: int = END_OF_TIME) -> set[str]:
        """The members whose syncs were answered without an error by `t`."""
        return {sync.member for sync in self.syncs if sync.answered and (sync.answer_t or 0) <= t}

    def other_protocol(self, body: Body | None) -> bool:
        """Whether a sync, or a response to a sync or a join, has another protocol name or type than the chosen one
        (KIP-559)."""
        chosen, kind = self.joins[0].protocol, text(self.joins[0].body, "protocol_type")
        asked = text(body, "protocol_name"), text(body, "protocol_type")
        return any(one and one != right for one, right in zip(asked, (chosen, kind), strict=True))

    @property
    def asked_t(self) -> int:
        """The time of the send of the first join."""
        return min(one.t for one in self.joins)

    @property
    def first_t(self) -> int:
        """The time of the first response to a join: the generation has started."""
        return min(one.ended_t for one in self.joins)

    @property
    def last_t(self) -> int:
        return max(one.answer_t or 0 for one in self.joins)

    @property
    def leader(self) -> str:
        return self.joins[0].leader

    @property
    def rebalance_ms(self) -> tuple[int, int]:
        """The shortest and the longest rebalance time-out of its members."""
        times = [one.rebalance_ms for one in self.joins]
        return min(times), max(times)


@dataclass
class Group:
    """All exchanges of one group in a scene, by kind, in order of sending."""

    bounds: Bounds
    heard: list[Exchange]
    joins: list[Exchange]
    syncs: list[Exchange]
    heartbeats: list[Exchange]
    commits: list[Exchange]
    nobodys: list[Exchange]
    """Commits without a generation and without a member id. They are allowed while the group has no members."""
    unnumbered: list[Exchange]
    """Commits without a generation, but with a member id."""
    held: list[Exchange]
    """Commits with a transaction and a generation. They do not renew the session of the member."""
    leaves: list[Exchange]
    static: bool
    """Whether some request has an instance id."""
    generations: list[Generation] = field(default_factory=list)
    _told: dict[int, tuple[int, list[int]]] = field(default_factory=dict)

    @cached_property
    def _contacts(self) -> dict[str, list[Exchange]]:
        found = defaultdict[str, list[Exchange]](list)
        heard = [*self.joins, *self.syncs, *self.heartbeats, *self.commits]
        for one in sorted(heard, key=lambda one: one.t):
            for member in {one.member, one.given if one.answered else one.member}:
                found[member].append(one)
        return found

    @cached_property
    def _renewals(self) -> dict[str, list[Exchange]]:
        return {member: [x for x in mine if self.renews(x)] for member, mine in self._contacts.items()}

    def contacts(self, member: str) -> list[Exchange]:
        return self._contacts.get(member, [])

    def renewals(self, member: str) -> list[Exchange]:
        """The contacts of a member that certainly renew its session."""
        return self._renewals.get(member, [])

    @cached_property
    def issued(self) -> dict[str, Exchange]:
        """The member ids that the coordinator assigned, each with the first join whose response has it."""
        found: dict[str, Exchange] = {}
        for one in self.joins:
            if one.answer is not None and one.error in (0, MEMBER_ID_REQUIRED):
                found.setdefault(one.given, one)
        return found

    def _unused(self, t: int) -> Iterator[tuple[str, Exchange]]:
        """The member ids from MEMBER_ID_REQUIRED responses that no join or leave used by `t`, each with the join of
        this response."""
        moved = {name for x in (*self.joins, *self.leaves) if x.t <= t for name in (x.member, *x.leavers)}
        return (
            (member, join)
            for member, join in self.issued.items()
            if join.error == MEMBER_ID_REQUIRED and member not in moved
        )

    def pending(self, one: Generation, t: int) -> list[Exchange]:
        """The joins before `t` that got an id by MEMBER_ID_REQUIRED, if no join used this id by `t` and it is not in
        this generation."""
        return [join for member, join in self._unused(t) if join.t <= t and member not in one.members]

    def expected(self, one: Generation, t: int) -> bool:
        """Whether a member id exists that was certainly assigned by `t`, that no join or leave used, and whose session
        had not expired at the start of this generation."""
        return any(
            join.ended_t <= t and one.first_t < join.id_over_t() - EARLY_NS
            for _, join in self._unused(one.first_t)
        )

    def unheard(self, one: Generation) -> set[str]:
        """The member ids of joins before the start of this generation whose responses were not recorded."""
        return {x.member for x in self.unanswered(one.first_t)}

    def unanswered(self, t: int) -> list[Exchange]:
        """The joins up to `t` whose responses were not recorded. They may have made their senders members."""
        return [x for x in self.joins if x.answer is None and x.t <= t and x.of_a_member]

    def beats(self, one: Generation, members: Iterable[str], t: int) -> list[Exchange]:
        """The answered heartbeats of these members in this generation, from `t` on."""
        return [x for x in self._beats[one.number] if x.t >= t and x.member in members]

    @cached_property
    def _beats(self) -> dict[int, list[Exchange]]:
        found = defaultdict[int, list[Exchange]](list)
        for one in self.heartbeats:
            if one.answer is not None:
                found[one.number].append(one)
        return found

    def asks_ms(self, member: str) -> int:
        """The shortest rebalance time-out of the member's joins."""
        return min(
            one.rebalance_ms for one in self.joins if one.error == 0 and member in (one.member, one.given)
        )

    def session_over(self, member: str, t: int) -> int:
        """The latest time at which the member's session expires, if the member sends nothing after `t`."""
        heard_t = max(one.ended_t for one in self.contacts(member) if one.t <= t)
        return heard_t + self.session_ms(member) * MS

    def left(self, member: str, t: int) -> int | None:
        """The time of the first LeaveGroup for the member up to `t`. None if there is none."""
        return min((one.t for one in self.leaves if one.t <= t and member in one.leavers), default=None)

    def gone_by(self, member: str, t: int) -> bool:
        """Whether the member had certainly left by `t`."""
        return any(
            one.answer_t is not None and one.answer_t <= t and one.left_with.get(member) == 0
            for one in self.leaves
        )

    def held_by(self, one: Generation) -> dict[str, Exchange]:
        """The members of a generation. A static member has the id of its last rejoin in this generation."""
        held = one.members
        for join in one.again:
            if join.instance:
                held = {id_: x for id_, x in held.items() if x.instance != join.instance}
                held[join.given] = join
        return held

    def alive_at(self, member: str, t: int) -> bool:
        """Whether the coordinator must still count this member at `t`: it sent heartbeats in time, never got
        UNKNOWN_MEMBER_ID, and is not leaving. The time at which a coordinator handles a request is unknown, so it
        has a margin of a quarter of the session."""
        if self.left(member, t) is not None:
            return False
        if any(x.ended_t <= t and x.error == UNKNOWN_MEMBER for x in self.contacts(member)):
            return False
        heard = [one for one in self.renewals(member) if one.t <= t]
        if not heard:
            return False
        # A member that waits in a join stays a member, and the response renews its session. The response may have been
        # sent earlier than it was read, but not before the join.
        lives = [
            max(one.t, self._sent_t(min(one.ended_t, t))) if one.api == "join_group" else one.t
            for one in heard
        ]
        nexts = [*(one.t for one in heard[1:]), t]
        session_ns = self.session_ms(member) * MS * 3 // 4
        return all(then - life < session_ns for life, then in zip(lives, nexts, strict=True))

    def renews(self, one: Exchange) -> bool:
        """Whether the request certainly renews the session. A refused request renews nothing. In Kafka 4, neither a
        sync in a stable group renews it, nor a join of a member of the current generation."""
        if one.api == "join_group" and one.member:
            return one.error == 0 and not any(one is x for each in self.generations for x in each.again)
        return one.api != "sync_group" and (
            one.error == 0 or (one.api == "heartbeat" and one.error == REBALANCING)
        )

    def _sent_t(self, answer_t: int) -> int:
        """The earliest time at which a response that was read at `answer_t` may have been sent."""
        return answer_t - self.bounds.added_ns(answer_t - self.bounds.declared.late_ms * MS, answer_t)

    def session_ms(self, member: str) -> int:
        return self._session_ms.get(member, 0)

    @cached_property
    def _session_ms(self) -> dict[str, int]:
        return {member: one.session_ms for one in self.joins for member in (one.given, one.member)}

    def triggers(self, current: Generation, until: int = END_OF_TIME) -> list[Exchange]:
        """The requests up to `until` that may have started a rebalance since the start of the generation. The leave of
        a member that is not in this generation starts no rebalance."""
        out = {join.given for join in self.joins if join.answered} - {*current.members}
        out -= {join.member for join in self.joins if join.answer is None}
        return [
            x for x in (*self.joins, *self.leaves)
            if x not in current.joins and x.of_a_member and x.ended_t >= current.first_t
            and x.t <= until and not (x.t <= current.first_t and x.leavers and out >= {*x.leavers})
        ]  # fmt: skip

    def steady(self, member: str, current: Generation, one: Exchange) -> bool:
        """Whether the member is certainly in the group when this request is handled: it sent heartbeats in time, and
        does not leave."""
        until = one.until_t
        if any(x is not one and x.t <= until and member in x.leavers for x in self.leaves):
            return False
        session_ns, joined_t = self.session_ms(member) * MS, current.members[member].t
        heard = [x for x in self.renewals(member) if x is not one and joined_t <= x.t <= one.t]
        # A coordinator may handle a request at its arrival, and the next request only when it answers that.
        for a, b in pairwise([*heard, one]):
            joins = b.api == "join_group"  # a join waits after the coordinator has received it
            taken_t = b.t + self.bounds.allowed_ns(b.t, until) if joins else b.answer_t or until
            if taken_t - max(a.t, current.from_t) >= session_ns - EARLY_NS:
                return False
        # A member that syncs too late is removed too. So is a member that does not rejoin in time, also in a rebalance
        # that the removal of another member started.
        synced = any(x.member == member and x.answered and x.t <= one.t for x in current.syncs)
        return synced and not self.disturbed(current, until - current.rebalance_ms[0] * MS + EARLY_NS)

    def out_unsynced(self, one: Generation, t: int) -> set[str]:
        """The members that may be removed by `t`, because they did not sync within the longest rebalance time-out."""
        over = t >= one.from_t + one.rebalance_ms[1] * MS - EARLY_NS
        return {*one.members} - one.synced(t) if over else set()

    def staying(self, one: Generation, t: int) -> list[str]:
        """The members of this generation that are certainly in the group at `t`."""
        out = self.out_unsynced(one, t)
        return [member for member in one.members if member not in out and self.alive_at(member, t)]

    def rebalances(self, current: Generation, one: Exchange) -> bool:
        """Whether a rebalance certainly continues when this request is sent: a heartbeat was answered by
        REBALANCE_IN_PROGRESS, and the rebalance waits for a member that has not rejoined."""
        if id(current) not in self._told:  # cached, because every request of a member needs it
            beats = self.beats(current, current.members, current.from_t)
            told = min((x.ended_t for x in beats if x.error == REBALANCING), default=END_OF_TIME)
            self._told[id(current)] = told, [x.t for x in beats if x.answered]
        told_t, good = self._told[id(current)]
        if told_t > one.t:
            return False
        began_t = max((t for t in good if t < told_t), default=current.from_t)
        until = one.until_t
        return until - began_t < current.rebalance_ms[0] * MS - EARLY_NS

    def disturbed(self, one: Generation, until: int) -> bool:
        """Whether a rebalance may have started by `until`. A rebalance may answer a waiting sync, or delay the response
        to a sync."""
        if self.triggers(one, until):
            return True
        shortest = min((self.session_ms(member) for member in one.members), default=0)
        since_ns = until - one.from_t
        if since_ns <= min(shortest, one.rebalance_ms[0]) * MS - EARLY_NS:
            return False
        if self.out_unsynced(one, until):
            return True
        return not all(self.alive_at(x, until) or self._waits(x, one, until) for x in one.members)

    def _waits(self, member: str, one: Generation, until: int) -> bool:
        """Whether the member is in the group because its sync waits, or was answered at most half a session before."""
        lately_ns = self.session_ms(member) * MS // 2
        return any(
            sync.member == member and sync.t <= until and self.alive_at(member, sync.t)
            and (END_OF_TIME if sync.answer_t is None else self._sent_t(sync.answer_t)) + lately_ns > until
            for sync in one.syncs
        )  # fmt: skip

    def current(self, one: Exchange) -> Generation | None:
        """The generation that was current at the send and at the response of this request. None if it changed."""
        until = one.until_t
        begun = [generation for generation in self.generations if generation.first_t <= until]
        if not begun or begun[-1].last_t > one.t:
            return None
        return begun[-1]


def groups(scene: Scene, bounds: Bounds) -> Iterator[Group]:
    """Yield the groups of a scene whose responses are all readable, not throttled, and without unrelated errors."""
    others = {text(one.body, "group_id") for one in scene.of("consumer_group_heartbeat")}
    # Requests outside of the scenes are about the groups of all scenes, so they are left out.
    for name, exchanges in scene.by_group().items() if scene.name else ():
        if name in others:
            continue
        # Requests before the coordinator was available had no effect.
        loading = [one.i for one in exchanges if one.error in LOADING]
        heard = [
            one for one in exchanges
            if one.error not in LOADING and not bounds.declared.refuses_session(one.session_asked_ms)
        ]  # fmt: skip
        heard = _by_member(heard)
        if any(one.unread or one.throttled_ms for one in heard):
            continue
        if any(one.error in EXCUSED for one in heard) or (loading and heard and max(loading) > heard[0].i):
            continue

        by_api: dict[str, list[Exchange]] = defaultdict(list)
        for one in heard:
            by_api[one.api].append(one)
        commits = by_api["offset_commit"]
        group = Group(
            bounds, heard, by_api["join_group"], by_api["sync_group"], by_api["heartbeat"],
            [one for one in commits if one.number >= 0],
            [one for one in commits if one.number < 0 and not one.member],
            [one for one in commits if one.number < 0 and one.member],
            [x for x in by_api["txn_offset_commit"] if x.number >= 0 and x.error in {0, *OF_THE_GROUP}],
            by_api["leave_group"],
            static=any(one.instance for one in heard),
        )  # fmt: skip
        group.generations = _generations(group)
        yield group


def _by_member(heard: list[Exchange]) -> list[Exchange]:
    """Add the member id to a leave that has only an instance id: the last member id of this instance."""
    found: list[Exchange] = []
    for one in heard:
        named = list(items(one.body, "members")) if one.api == "leave_group" else []
        if any(text(member, "group_instance_id") and not text(member, "member_id") for member in named):
            newest = {x.instance: x.given for x in heard if x.t < one.t and x.joined}
            members = [
                {**x, "member_id": text(x, "member_id") or newest.get(text(x, "group_instance_id"), "")}
                for x in named
            ]
            one = replace(one, body={**one.body, "members": members})
        found.append(one)
    return found


def _generations(group: Group) -> list[Generation]:
    found: dict[int, Generation] = {}
    for one in group.joins:
        if one.answered:
            number = one.generation
            found.setdefault(number, Generation(number)).joins.append(one)
    for made in found.values():
        first_t = made.first_t
        made.again = [one for one in made.joins if one.t > first_t]
        made.joins = [one for one in made.joins if one.t <= first_t]
        sent_t = max(one.t for one in made.joins)
        made.from_t = max(sent_t, first_t - group.bounds.allowed_ns(sent_t, first_t))
    for one in group.syncs:
        if one.number in found and not found[one.number].other_protocol(one.body):
            found[one.number].syncs.append(one)
    return [found[number] for number in sorted(found)]
