"""The clauses G11, G13, G14, G15: groups to which the broker assigns the partitions. These are the consumer groups of
KIP-848, the share groups (KIP-932), and the streams groups (KIP-1071).

A member sends its epoch in each heartbeat. The member owns the partitions of its last assignment. It also owns the
partitions of former assignments, until one of its heartbeats reports their revocation. If a static member leaves
temporarily, the next client with its instance id gets its place. The members of a share group have the same partitions,
and revoke none. In a streams group, the partitions are active tasks, of subtopologies with the id of their topic. In a
scene, the requests that change a group follow one another, so the state of the group at each request is known.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, dropwhile, pairwise
from typing import Final

from purgatorio_wire.clause.group_description import (
    CONSUMER,
    DEAD,
    DELETE,
    EMPTY,
    NON_EMPTY,
    STABLE,
    SUBSCRIBED,
)
from purgatorio_wire.history.bound import EARLY_NS, MS, PATIENCE_TIMES, Bounds, Timed
from purgatorio_wire.history.finding import Rows, answered_with, broken, checked, error_is, kept, named, timed
from purgatorio_wire.history.group import ILLEGAL_GENERATION, REBALANCING
from purgatorio_wire.history.history import (
    ALTERS,
    BUSY,
    DELETE_OFFSETS,
    END_OF_TIME,
    EXCUSED,
    FORGETS,
    LIST,
    LOADING,
    NAMED,
    OF_LAG,
    Exchange,
    Part,
    Scene,
    integer,
    integers,
    items,
    parts,
    text,
    texts,
)
from purgatorio_wire.history.log import Topic, Topics, asked_and_told
from purgatorio_wire.trace.record import Body

BEAT: Final = "consumer_group_heartbeat"
SHARE_BEAT: Final = "share_group_heartbeat"
STREAMS_BEAT: Final = "streams_group_heartbeat"
COMMIT, LOOK = "offset_commit", "offset_fetch"
DESCRIBES: Final = {
    BEAT: "consumer_group_describe",
    SHARE_BEAT: "share_group_describe",
    STREAMS_BEAT: "streams_group_describe",
    "": "describe_groups",
}
"""The requests that describe groups, by the heartbeats of their members."""
KINDS: Final = {BEAT: CONSUMER, SHARE_BEAT: "share", STREAMS_BEAT: "streams"}
BEATS: Final = tuple(KINDS)
STARTS: Final = (ALTERS, FORGETS, OF_LAG)
"""The requests about the start offsets of a share group."""
READS: Final = (LIST, OF_LAG, *DESCRIBES.values())
"""The requests that change nothing, so that several may be under way at a time."""
ASSIGNING, RECONCILING = "Assigning", "Reconciling"
"""The states of a group of KIP-848 with members that is not stable."""
JOIN, SYNC, CLASSIC_BEAT, LEAVE = "join_group", "sync_group", "heartbeat", "leave_group"
CLASSIC: Final = (JOIN, SYNC, CLASSIC_BEAT, LEAVE)
"""The requests of classic members, which a group of KIP-848 may have too while it migrates."""
TOPICS: Final = ("create_topics", "create_partitions", "delete_topics")
MORE: Final = "-more"
OR_MORE: Final = f"({MORE})?"
"""The end of the scene's regular expression, after the name of a topic."""
JOINS, LEAVES, AWAY = 0, -1, -2
"""The epochs for a join, a leave, and for a static member that leaves for a while."""
_SUBSCRIPTIONS: Final = ("subscribed_topic_names", "subscribed_topic_regex")
_NEEDED: Final = {BEAT: _SUBSCRIPTIONS, SHARE_BEAT: _SUBSCRIPTIONS[:1], STREAMS_BEAT: ("topology",)}
"""The fields of which a first heartbeat needs one."""
_KEPT: Final = (*_SUBSCRIPTIONS, "instance_id", "rack_id", "server_assignor", "process_id")
"""The fields of a heartbeat whose last value holds until the member sends another one."""
INVALID: Final = 42
"""INVALID_REQUEST, which also some brokers answer whose share groups are disabled."""
UNKNOWN_MEMBER, NO_GROUP, FENCED_ID, FENCED_EPOCH, IN_USE, STALE, OFF = 25, 69, 82, 110, 111, 113, 35
RANGE, UNIFORM = "range", "uniform"
NO_ASSIGNOR, UNSUPPORTED = "purgatorio-nobody", 112
"""The name of an assignor that no broker has, and its error, UNSUPPORTED_ASSIGNOR."""
NO_PATTERN, INVALID_PATTERN = "(", 128
"""What is no regular expression, and its error, INVALID_REGULAR_EXPRESSION."""
ENDS, ENDED = "shutdown_application", 4
"""The field by which a streams member requests that all members end, and the status that tells them."""
OWN_BEAT_MS, OWN_SESSION_MS = 6100, 48_000
OWN_SETTINGS: Final = {
    api: [(f"{kind}.heartbeat.interval.ms", f"{OWN_BEAT_MS}"), (f"{kind}.session.timeout.ms", f"{OWN_SESSION_MS}")]
    for api, kind in KINDS.items()
}  # fmt: skip
"""Settings that a scene gives a group. The interval, in each response, shows that both are in effect."""
GAP_NS: Final = 20_000 * MS
"""The gap of an assignment or removal that never comes: a scene waits for this time."""
REFRESHED_NS: Final = 10_000 * MS
"""Kafka matches new topics with regular expressions at most once in this time."""
IDLE_NS: Final = 1000 * MS
"""The clause does not wait for a member without a heartbeat for this time."""

NO_MEMBER: Final = ": the client is no member"

Owned = frozenset[tuple[str, int]]
"""Partitions by topic id and number."""
OWNED: Final = {"topic_partitions": "topic_id", "active_tasks": "subtopology_id"}
"""The lists of partitions in a heartbeat or an assignment, each with the field of the topic."""


def owned(body: Body | None) -> Owned | None:
    """The partitions that a heartbeat or an assignment names; None if it has no list of them."""
    for name, topic_id in OWNED.items():
        if body is not None and isinstance(body.get(name), list):
            return frozenset(
                (text(topic, topic_id), number)
                for topic in items(body, name)
                for number in integers(topic, "partitions")
            )
    return None


def assignment(body: Body | None) -> Owned | None:
    """The partitions that a response assigns; None if the response has no new assignment."""
    found = None if body is None else body.get("assignment", body)
    return owned(found) if isinstance(found, dict) else None


def embedded(data: str, *, numbered: bool) -> dict[str, tuple[int, ...]]:
    """The topics of a subscription of the classic protocol, or (`numbered`) the partitions of an assignment, in hex.
    Empty if it cannot be read."""
    found, at = dict[str, tuple[int, ...]](), 6
    try:
        raw = bytes.fromhex(data)
        for _ in range(*struct.unpack_from(">i", raw, 2)):
            size = struct.unpack_from(">H", raw, at)[0]
            name, at = raw[at + 2 : at + 2 + size].decode(), at + 2 + size
            count = struct.unpack_from(">I", raw, at)[0] if numbered else 0
            found[name] = struct.unpack_from(f">{count}i", raw, at + 4) if numbered else ()
            at += 4 * (count + numbered)
    except (ValueError, struct.error):
        return {}
    return found


def subscription(body: Body, topics: Topics) -> tuple[str, ...]:
    """The topics that a heartbeat subscribes to, by name or by the scene's regular expression. Others are not read: a
    trace is untrusted, and an expression may take exponential time."""
    pattern = text(body, "subscribed_topic_regex")
    matched = [name for name in topics.topics if pattern == name.removesuffix(MORE) + OR_MORE]
    topology = body.get("topology")
    subtopologies = items(topology, "subtopologies") if isinstance(topology, dict) else ()
    sources = chain(*(texts(x, "source_topics") for x in subtopologies))
    return tuple(sorted({*texts(body, "subscribed_topic_names"), *matched, *sources}))


def consumer_groups(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    found: dict[str, list[Exchange]] = defaultdict(list)
    for one in scene.of(*BEATS, *CLASSIC, COMMIT, LOOK, DELETE_OFFSETS, DELETE, *DESCRIBES.values(), *STARTS):
        names = {text(body, "group_id") for body, _ in asked_and_told(one)}
        for name in names.union(*(texts(one.body, x) for x in ("group_ids", "groups_names", "groups"))):
            found[name].append(one)
    for name, some in found.items():
        first = [*dropwhile(lambda one: one.api not in (*BEATS, JOIN), some)]
        begins = any(one.api in BEATS for one in first) and integer(first[0].body, "member_epoch") == JOINS
        subscribed = {topic for one in first for topic in subscription(one.body, topics)}
        changes = [
            one for one in scene.of(*TOPICS if begins else ())
            if one.t > first[0].t and any(part.topic in subscribed for part, _ in one.requested)
        ]  # fmt: skip
        writes = sorted((x for x in (*first, *changes) if x.api not in READS), key=lambda one: one.t)
        reads = (
            one
            for one in (*first, *scene.of(LIST if begins else ""))
            if one.api in READS and not any(x.t < one.ended_t and one.t < x.ended_t for x in writes)
        )
        if begins and all(first.ended_t <= then.t for first, then in pairwise(writes)):
            asked = sorted((*writes, *reads), key=lambda one: one.t)
            api = next(one.api for one in asked if one.api in BEATS)
            set_t = scene.set_t(name, OWN_SETTINGS[api][0])
            yield from _Group(bounds, topics, name, api, set_t).judged(asked)


@dataclass(slots=True)
class _Member:
    """`told`: the last assignment of the member; `held`: the partitions that it may own; `revokes`: the heartbeat since
    which it must revoke some of them, or (a classic member) join again."""

    heard: Exchange
    rebalance_ns: int
    epoch: int = 0
    former: int = 0
    told: Owned = frozenset()
    held: Owned = frozenset()
    revokes: Exchange | None = None
    instance: str = ""
    topics: tuple[str, ...] = ()
    classic: bool = False
    away: bool = False
    said: dict[str, object] = field(default_factory=dict)
    """The last value of each field of `_KEPT` that it has sent."""
    retold: bool = False
    """Whether its assignment has changed in its epoch: Kafka takes no former epoch then."""
    overdue: bool = False
    """Whether it was found to be a member for too long."""


@dataclass(slots=True)
class _Group:
    bounds: Bounds
    topics: Topics
    name: str
    api: str
    """That of the heartbeats."""
    set_t: int
    """The time at which the broker accepted the settings of the group."""
    members: dict[str, _Member] = field(default_factory=dict)
    change: Exchange | None = None
    """The last request by which a member joined, left or changed its subscription, or a topic was created, grew or was
    deleted, until all members have their new assignments."""
    since_t: int = 0
    """The time since which only the broker delays the new assignments."""
    least_epoch: int = 0
    """The highest one before."""
    beat_ms: int = 0
    ends: bool = False
    """Whether a streams member has requested that all members end."""
    matches: bool = False
    """Whether its members subscribe by a regular expression."""
    settled: bool = False
    """Whether all partitions were assigned once. A broker first prepares the partitions of a share group."""
    starts: dict[Part, Body] = field(default_factory=dict)
    """The start offsets that a request has changed, if no member has joined since."""
    before: dict[str, Owned] = field(default_factory=dict)
    """The assignments when all partitions were assigned the last time."""
    changes: int = 0
    """The changes since then."""

    @property
    def shares(self) -> bool:
        return self.api == SHARE_BEAT

    @property
    def subscribed(self) -> set[tuple[str, ...]]:
        """The subscriptions of its members, without empty ones: such a member gets no partition."""
        return {member.topics for member in self.members.values() if member.topics}

    def session_ms(self, heard: Exchange) -> int | None:
        """The session time-out from this heartbeat on."""
        declared = self.bounds.declared
        if self.set_t < END_OF_TIME and integer(heard.got, "heartbeat_interval_ms") == OWN_BEAT_MS:
            return OWN_SESSION_MS
        return {BEAT: declared.consumer_session_ms, SHARE_BEAT: declared.share_session_ms}.get(self.api)

    def judged(self, asked: Iterable[Exchange]) -> Rows:
        until_t = 0
        for one in asked:
            if one.api in BEATS and one.api != self.api:
                yield from self._foreign(one)
                continue
            if one.got is None or one.error in (*LOADING, OFF) or one.error in EXCUSED:
                break  # its effect is unknown
            if self.shares and not self.members and one.error == INVALID:
                break
            yield from self._overdue(one.t)
            if one.api == self.api:
                yield from self._told(one)
            elif one.api in CLASSIC:
                yield from self._classic(one)
            elif one.api == COMMIT:
                yield from self._committed(one)
            elif one.api == DELETE_OFFSETS:
                yield from self._offsets_deleted(one)
            elif one.api in DESCRIBES.values():
                yield from self._described(one)
            elif one.api == DELETE:
                yield from self._deleted(one)
            elif one.api in STARTS:
                yield from self._started(one)
            elif one.api == LIST:
                yield from self._listed(one)
            elif one.api in TOPICS:
                if any(one.answer_t in x.changed_t for x in self._named()):
                    yield from self._changes(one)
            else:
                yield from self._looked(one)
            until_t = one.ended_t
        yield from self._overdue(until_t)
        yield from self._given(None, until_t)

    def _foreign(self, one: Exchange) -> Rows:
        """G15, for a member of another kind of group, which may be switched off."""
        if self.members and one.got is not None:
            about, excused = ": the group has other members", {*BUSY, *LOADING, OFF, INVALID}
            yield answered_with("G15", "wrong-argument-accepted", one, one.error, NO_GROUP, about, excused)

    def _told(self, one: Exchange) -> Rows:
        beat_ms = integer(one.got, "heartbeat_interval_ms")
        if beat_ms and one.t > self.set_t + PATIENCE_TIMES * self.bounds.declared.late_topics_ms * MS:
            allowed = f"a heartbeat interval of {OWN_BEAT_MS} ms, as set"
            yield checked("G15", "other-setting", one, beat_ms == OWN_BEAT_MS, allowed, f"{beat_ms} ms")
        self.beat_ms = beat_ms or self.beat_ms
        name, epoch, error = text(one.body, "member_id"), integer(one.body, "member_epoch"), one.error
        wrong = {
            INVALID: self._invalid(one.body, epoch),
            UNSUPPORTED: text(one.body, "server_assignor") == NO_ASSIGNOR,
            INVALID_PATTERN: text(one.body, "subscribed_topic_regex") == NO_PATTERN,
        }
        for wanted in (x for x in wrong if wrong[x]):
            yield answered_with("G15", "wrong-argument-accepted", one, error, wanted)
            return
        member, holder = self.members.get(name), self._holder(name, text(one.body, "instance_id"))
        if holder is not None:
            yield from self._of_another(one, epoch, *holder)
            return
        if member is not None and text(one.body, "instance_id") not in ("", member.instance):
            return  # the member joined without this instance id, and Kafka does not know it by it
        waits = member is not None and (member.retold or self.change is not None)
        if member is not None and 0 < epoch < member.epoch and waits and error == FENCED_EPOCH:
            return  # its assignment has changed, or it waits for partitions: Kafka takes no former epoch
        if member is not None and member.instance and epoch == JOINS and error == IN_USE:
            return  # its own instance id, which it has not released
        if member is not None and member.away and epoch > 0 and error == FENCED_EPOCH:
            return  # a member that is away has no epoch
        if error == NO_GROUP and any(one.classic for one in self.members.values()):
            return  # a broker may be set up not to migrate the group
        if member is None and epoch != JOINS:
            yield error_is("G15", "unknown-member", one, error, self._for_strangers(NO_GROUP), NO_MEMBER)
        elif member is not None and error == UNKNOWN_MEMBER and one.ended_t >= self._outs(member)[0]:
            yield kept("G15", "not-removed")
            yield from self._gone(name, one)
        elif member is not None and epoch > 0 and not self._names_epoch(member, one):
            about = f": the epoch of the member is {member.epoch}"
            yield error_is("G15", "wrong-argument-accepted", one, error, FENCED_EPOCH, about)
        elif error:
            why = "the member joins" if member is None else f"heard in time, in epoch {member.epoch}"
            yield broken("G15", "removed-too-early", one, f"no error: {why}", named(error))
        else:
            again = member is not None and 0 < epoch < member.epoch
            yield kept("G15", "repeated-heartbeat" if again else "removed-too-early")
            yield from self._taken(name, epoch, one)

    def _classic(self, one: Exchange) -> Rows:
        """A request of a classic member. It revokes its partitions when it joins again, and its sync returns new ones
        in any group (the client that leads a classic group assigns them)."""
        name, error = one.given if one.api == JOIN else one.member, one.error
        member = self.members.get(name)
        if one.api == LEAVE:
            for name in self.members.keys() & {*one.leavers} if not error else ():
                yield from self._gone(name, one)
        elif one.api == JOIN and not error:
            topics = tuple(sorted(embedded(next(iter(one.protocols.values()), ""), numbered=False)))
            if member is None:
                yield from self._changes(one)
                member = self.members[name] = _Member(one, one.rebalance_ms * MS, topics=topics, classic=True)
            allowed, now = f"an epoch of at least {member.epoch}", one.generation
            yield checked("G14", "epoch-goes-back", one, now >= member.epoch, allowed, f"epoch {now}")
            member.heard, member.epoch, member.told, member.held = one, now, frozenset(), frozenset()
            member.revokes = None
        elif member is not None and one.number != member.epoch:
            yield answered_with("G15", "wrong-argument-accepted", one, error, ILLEGAL_GENERATION)
        elif member is not None and error in (0, REBALANCING):
            yield kept("G15", "removed-too-early")
            member.heard, member.revokes = one, member.revokes or (one if error else None)
            if one.api == SYNC and not error:
                yield from self._assigned(member, one)
                yield from self._given(one, one.ended_t)
        elif member is not None and one.ended_t < self._outs(member)[0]:
            allowed = "no error: the member is in the group"
            yield broken("G15", "removed-too-early", one, allowed, named(error))
        elif member is not None and error == UNKNOWN_MEMBER:
            yield kept("G15", "not-removed")
            yield from self._gone(name, one)

    def _invalid(self, body: Body, epoch: int) -> bool:
        """Whether a field has a value that no heartbeat may have, or lacks a value that a first heartbeat needs."""
        lacks, static = all(body.get(name) is None for name in _NEEDED[self.api]), text(body, "instance_id")
        if not self.shares:
            lacks |= integer(body, "rebalance_timeout_ms") < 0 or owned(body) != frozenset()
        empty = any(body.get(name) == "" for name in ("member_id", "instance_id", "rack_id"))
        return empty or (lacks and epoch == JOINS) or epoch < (AWAY if static else LEAVES)

    def _holder(self, name: str, instance: str) -> tuple[str, _Member] | None:
        held = (x for x in self.members.items() if instance and x[1].instance == instance and x[0] != name)
        return next(held, None)

    def _of_another(self, one: Exchange, epoch: int, name: str, holder: _Member) -> Rows:
        """G11, for a client with the instance id of another member: it takes the place of this member only if
        the member has left for a while."""
        if one.ended_t >= self._outs(holder)[0]:
            if not one.error:  # the other was removed
                yield from self._gone(name, one)
                yield from self._taken(text(one.body, "member_id"), epoch, one)
        elif epoch != JOINS:
            yield answered_with("G11", "not-fenced", one, one.error, FENCED_ID)
        else:
            cause, wanted = ("instance-id-refused", 0) if holder.away else ("not-refused", IN_USE)
            about = f": {name} {'is away' if holder.away else 'has the instance id'}"
            yield answered_with("G11", cause, one, one.error, wanted, about)
            if one.error:
                return
            settled = holder.away and self.change is None and holder.held == holder.told
            del self.members[name]
            yield from self._taken(text(one.body, "member_id"), epoch, one, holder)
            told, now = assignment(one.got), integer(one.got, "member_epoch")
            if settled:
                right = told == holder.told and now == holder.epoch
                allowed = f"the {len(holder.told)} partitions of {name}, and epoch {holder.epoch}"
                seen = f"{len(told or ())} partitions, epoch {now}"
                yield checked("G11", "other-assignment", one, right, allowed, seen)

    def _for_strangers(self, *removed: int) -> set[int]:
        """The errors for a client that is no member. A broker may remove a group without members: then the errors
        `removed` are right too."""
        return {UNKNOWN_MEMBER, *(() if self.members else removed)}

    def _committed(self, one: Exchange) -> Rows:
        """G15, for an OffsetCommit. From 4.3 on, an earlier epoch may commit the partitions that the member has owned
        since (KIP-1251)."""
        member, epoch, error = self.members.get(one.member), one.number, one.error
        if member is None:
            wanted = self._for_strangers(ILLEGAL_GENERATION, NO_GROUP)
            yield answered_with("G15", "unknown-member", one, error, wanted, NO_MEMBER)
        elif epoch < 0 or member.away or one.ended_t >= self._outs(member)[0]:
            return
        elif epoch == member.epoch:
            yield answered_with("G15", "refused", one, error, 0, ": this is the epoch of the member")
        else:
            known = self.topics.topics
            asked = {(known[x.topic].id, x.number) for x, _ in one.requested if x.topic in known}
            if epoch > member.epoch or not asked & member.held:
                about = f": the epoch of the member is {member.epoch}"
                yield answered_with("G15", "wrong-argument-accepted", one, error, STALE, about)

    def _offsets_deleted(self, one: Exchange) -> Rows:
        """G13: no offset of a topic of the subscription is deleted."""
        if self.members and all(one.ended_t < self._outs(member)[0] for member in self.members.values()):
            for part, code in one.codes.items():
                wanted = SUBSCRIBED if any(part.topic in topics for topics in self.subscribed) else 0
                error = one.error or code
                yield answered_with("G13", "deleted-while-subscribed", one, error, wanted, f" for {part}")

    def _deleted(self, one: Exchange) -> Rows:
        """G13: a group with members is not deleted."""
        said = (x for x in items(one.got, "results") if text(x, "group_id") == self.name)
        if any(one.ended_t < self._outs(member)[0] for member in self.members.values()):
            error = integer(next(said, None), "error_code")
            about = f" for {len(self.members)} members"
            yield answered_with("G13", "deleted-with-members", one, error, NON_EMPTY, about)

    def _started(self, one: Exchange) -> Rows:
        """G13: the start offsets of a share group change only without members, and are described so."""
        if self.members and all(one.ended_t >= self._outs(x)[0] for x in self.members.values()):
            return
        if one.api != OF_LAG:
            wanted, about = NON_EMPTY if self.members else 0, f" for {len(self.members)} members"
            error = one.error or max(one.codes.values(), default=0)
            yield answered_with("G13", "deleted-with-members", one, error, wanted, about, BUSY)
            self.starts = {} if error else dict(one.requested)
            return
        for part, said in (x for _, told in asked_and_told(one) for x in parts(told, NAMED[OF_LAG][1])):
            if part in self.starts:
                start, seen = (integer(x, "start_offset", -1) for x in (self.starts[part], said))
                allowed = f"start offset {start} of {part}"
                yield checked("G13", "other-answer", one, seen == start, allowed, f"{seen}")

    def _listed(self, one: Exchange) -> Rows:
        """G13: ListGroups lists the group by its type, and by its state, of which one of several may be the present."""
        doubtful = any(x.away or x.classic or one.ended_t >= self._outs(x)[0] for x in self.members.values())
        if not self.members or doubtful or integer(one.got, "error_code"):
            return
        said = next((x for x in items(one.got, "groups") if text(x, "group_id") == self.name), {})
        states, types = (
            {x.lower() for x in texts(one.body, f"{what}_filter")} for what in ("states", "types")
        )
        kind, may = KINDS[self.api], {STABLE} if self.shares else {STABLE, RECONCILING, ASSIGNING}
        may = {x for x in may if not states or x.lower() in states} if not types or kind in types else set()
        right = text(said, "group_state") in may and all(
            text(said, x).lower() == kind for x in ("group_type", "protocol_type") if x in said
        )
        right = right if said else not may or bool(states)
        allowed = f"a {kind} group, {' or '.join(sorted(may)) or 'not listed'}"
        yield checked("G13", "listed", one, right, allowed, f"{said}")

    def _described(self, one: Exchange) -> Rows:
        """G13: the members, each with the epoch and the partitions of the response to its last heartbeat. The broker
        may still compute another assignment, so a group with members need not be stable."""
        said = next((x for x in items(one.got, "groups") if text(x, "group_id") == self.name), {})
        error, state = integer(said, "error_code"), text(said, "group_state")
        if self.members and all(x.classic for x in self.members.values()):
            return
        if one.api != DESCRIBES[self.api]:
            if error == OFF:
                return  # groups of the other kind are switched off
            right = (error, state) in ((0, DEAD), (NO_GROUP, DEAD), (NO_GROUP, "")) or not self.members
            yield checked("G13", "other-answer", one, right, f"{named(NO_GROUP)}", f"{named(error)}, {state}")
            return
        if any(x.away or one.ended_t >= self._outs(x)[0] for x in self.members.values()):
            return
        if error == NO_GROUP and not self.members:
            return
        told = {text(x, "member_id"): x for x in items(said, "members")}
        wanted = {name: (x.epoch, x.told) for name, x in self.members.items()}
        seen = {name: (integer(x, "member_epoch"), assignment(x) or frozenset()) for name, x in told.items()}
        known = self.topics.topics.values()
        there = {x.id for x in known if x.delete_t is None or x.delete_t > one.ended_t}
        right = not error and told.keys() == wanted.keys() and (state in (EMPTY, DEAD)) is not bool(wanted)
        # Some brokers list what a member must still revoke, too. Kafka leaves out the partitions of deleted topics.
        right = right and all(
            epoch == member.epoch
            and {x for x in member.told if x[0] in there} <= its <= member.told | member.held
            for name, (epoch, its) in seen.items()
            for member in [self.members[name]]
        )
        allowed, shown = (
            ", ".join(f"{name} in epoch {epoch} with {len(its)} partitions" for name, (epoch, its) in sorted(x.items()))
            for x in (wanted, seen)
        )  # fmt: skip
        if right and told:
            right = not (other := ", ".join((*self._other_state(said), *self._other_members(told))))
            shown += f"; {other}"
        shown = f"{named(error)}, {state}, {shown}"
        yield checked("G13", "other-answer", one, right, allowed or f"{EMPTY}, no member", shown)

    def _other_state(self, said: Body) -> Iterator[str]:
        """What a description of a group with members says otherwise: no epoch is above that of the group, and the state
        follows from the epochs and the assignments."""
        epoch, target, state = (said.get(x) for x in ("group_epoch", "assignment_epoch", "group_state"))
        epochs = {x.epoch for x in self.members.values()}
        its = [
            [
                owned(next(items({"held": [x.get(y)]}, "held"), {})) or ()
                for y in ("assignment", "target_assignment")
            ]
            for x in items(said, "members")
        ]
        allowed = {STABLE, RECONCILING} if epochs == {target} else {RECONCILING}
        allowed = {STABLE} if self.shares else allowed if epoch == target else {ASSIGNING}
        if not max(epochs) <= integer(said, "assignment_epoch") <= integer(said, "group_epoch"):
            yield f"group epoch {epoch}, assignment epoch {target}"
        if state not in allowed or (state == STABLE and not self.shares and any(x != y for x, y in its)):
            yield f"state {state}, {len(its)} members with assignment and target {its}"
        if self._votes and self._votes[text(said, "assignor_name")] < max(self._votes.values()):
            yield f"assignor {said.get('assignor_name')}, requested: {dict(self._votes)}"

    def _other_members(self, told: Mapping[str, Body]) -> Iterator[str]:
        """The fields of described members that are not those of their heartbeats."""
        for name, x in told.items():
            member = self.members[name]
            names = ("instance_id", "rack_id", "process_id", _SUBSCRIPTIONS[1])
            fields = {y: member.said.get(y) or "" for y in names}
            fields |= {"member_type": int(not member.classic), "instance_id": member.instance}
            if not member.classic:
                fields[_SUBSCRIPTIONS[0]] = sorted({*texts(member.said, _SUBSCRIPTIONS[0])})
            for field_name, right in fields.items():
                seen = x.get(field_name) or type(right)()
                if field_name in x and (sorted(seen) if isinstance(seen, list) else seen) != right:
                    yield f"{field_name} {seen} of {name}"

    def _looked(self, one: Exchange) -> Rows:
        """G15, for an OffsetFetch that names a member and its epoch. Others may look without."""
        for asked, answer in asked_and_told(one):
            name, epoch = text(asked, "member_id"), integer(asked, "member_epoch", -1)
            if text(asked, "group_id") != self.name or not name:
                continue
            member, error = self.members.get(name), integer(answer, "error_code")
            if member is None:
                may = self._for_strangers(0, NO_GROUP)
                yield error_is("G15", "unknown-member", one, error, may, NO_MEMBER)
            elif not member.away and one.ended_t < self._outs(member)[0]:
                wanted = 0 if epoch == member.epoch else STALE
                cause = "wrong-argument-accepted" if wanted else "refused"
                yield error_is("G15", cause, one, error, wanted, f": the epoch is {member.epoch}")

    def _taken(self, name: str, epoch: int, one: Exchange, returns: _Member | None = None) -> Rows:
        self.ends |= one.body.get(ENDS) is True
        if self.ends and epoch >= JOINS:
            told = {integer(x, "status_code", -1) for x in items(one.got, "status")}
            allowed = f"the status {ENDED}: a member has requested a shutdown"
            yield checked("G14", "not-told", one, ENDED in told, allowed, f"{sorted(told)}")
        if epoch == AWAY and (goes := self.members[name]).instance:
            goes.away, goes.held, goes.revokes = True, goes.told, None
            return
        if epoch < 0:
            yield from self._gone(name, one)
            return
        topics, pattern = subscription(one.body, self.topics), text(one.body, "subscribed_topic_regex")
        self.matches |= bool(pattern)
        if epoch == JOINS:
            self.starts = {}
            if name not in self.members and returns is None:
                yield from self._changes(one, topics)
            rebalance_ns = integer(one.body, "rebalance_timeout_ms") * MS
            former = returns or self.members.get(name)
            self.members[name] = _Member(
                one, rebalance_ns, instance=text(one.body, "instance_id"), topics=topics,
                said={} if former is None else former.said,
            )  # fmt: skip
        elif any(one.body.get(x) is not None for x in _SUBSCRIPTIONS):
            former = self.members[name]
            # An expression that matches the topics that were named before is a change, too.
            if topics != former.topics or (pattern and pattern != former.said.get("subscribed_topic_regex")):
                yield from self._changes(one, topics)
            former.topics = topics
        member, now = self.members[name], integer(one.got, "member_epoch")
        member.heard = one
        member.said = member.said | {x: one.body[x] for x in _KEPT if one.body.get(x) is not None}
        if (said := owned(one.body)) is not None:
            member.held = member.told | (member.held & said)
        before = member.told
        yield from self._assigned(member, one)
        yield checked(
            "G14", "epoch-goes-back", one, now >= member.epoch, f"an epoch of at least {member.epoch}",
            f"epoch {now}",
        )  # fmt: skip
        member.retold = now == member.epoch and (member.retold or member.told != before)
        if now != member.epoch:
            member.former, member.epoch = member.epoch, now
        yield from self._given(one, one.ended_t)

    def _assigned(self, member: _Member, one: Exchange) -> Rows:
        told = assignment(one.got)
        if one.api == SYNC:
            given = embedded(text(one.got, "assignment"), numbered=True)
            known = self.topics.topics
            told = frozenset((known[x].id, at) for x in given if x in known for at in given[x])
        if integer(one.body, "member_epoch") > 0 and isinstance(one.body.get("subscribed_topic_names"), list):
            allowed = "the assignment: the heartbeat has all fields"
            yield checked("G14", "not-told", one, told is not None, allowed, "no assignment")
        if told is not None:
            new: Owned = frozenset() if self.shares else told - member.held
            for name, other in [*self.members.items()]:
                common = new & other.held if other is not member else ()
                if common and one.ended_t < self._outs(other)[0]:
                    allowed = "only partitions that no other member owns"
                    seen = f"{len(common)} partitions that another member owns and has not revoked"
                    yield broken("G14", "two-owners", one, allowed, seen, *other.heard.events)
                elif common:
                    yield from self._put_out(other, self._out_by(other, one.answer_t, one.ended_t))
                    yield from self._gone(name, one)
                elif new and other is not member:
                    yield kept("G14", "two-owners")
            # It gives up what it was told and does not own.
            if (said := owned(one.body)) is not None:
                member.held &= said
            member.told, member.held = told, told if self.shares else member.held | told
        member.revokes = None if member.held == member.told else member.revokes or one

    def _outs(self, member: _Member) -> tuple[int, int]:
        """The time from which on a member may be removed, and the time by which it must be."""
        heard, since, session_ms = member.heard, member.revokes, self.session_ms(member.heard)
        may_t = heard.t + (session_ms or self.beat_ms) * MS
        due_t = END_OF_TIME if session_ms is None else heard.ended_t + session_ms * MS
        if since is not None:
            may_t = min(may_t, since.t + member.rebalance_ns)
            due_t = min(due_t, since.ended_t + member.rebalance_ns)
        return may_t - EARLY_NS, due_t

    def _out_by(self, member: _Member, came_t: int | None, watched_t: int) -> Timed:
        since = member.revokes or member.heard
        return self._by(since.t, self._outs(member)[1], came_t, watched_t)

    def _by(self, start_t: int, due_t: int, came_t: int | None, watched_t: int) -> Timed:
        late_ms = self.bounds.declared.late_topics_ms
        return self.bounds.by(start_t, due_t, came_t, gap_ns=GAP_NS, watched_t=watched_t, late_ms=late_ms)

    def _put_out(self, member: _Member, by: Timed) -> Rows:
        since = member.revokes or member.heard
        promise = "the member is removed at its session or rebalance timeout,"
        yield timed("G15", "not-removed", since, by, promise, since.t, what="removed")

    def _overdue(self, t: int) -> Rows:
        """Report each member that the broker has kept beyond its session or rebalance timeout, once."""
        for member in self.members.values():
            by = self._out_by(member, None, t)
            if t > by.limit_t and not member.overdue:
                member.overdue = True
                yield from self._put_out(member, by)

    def _gone(self, name: str, one: Exchange) -> Rows:
        del self.members[name]
        self.ends &= bool(self.members)
        yield from self._changes(one)

    def _changes(self, one: Exchange, topics: tuple[str, ...] = ()) -> Rows:
        """`topics`: those of the new subscription."""
        yield from self._given(None, one.t)
        known, seen_t = self.topics.topics, one.t - self.bounds.declared.late_topics_ms * MS
        named = {*topics, *chain(*self.subscribed)} & known.keys()
        # The coordinator may not have seen a topic yet that was created just before the expression was matched.
        new = one.api in TOPICS or any((known[x].made_t or END_OF_TIME) > seen_t for x in named)
        self.changes += 1
        self.change, self.since_t = one, one.ended_t + REFRESHED_NS * (self.matches and new)
        self.least_epoch = max((member.epoch for member in self.members.values()), default=0)

    def _given(self, one: Exchange | None, t: int) -> Rows:
        """Whether all members have their partitions after the last change. `one`: the heartbeat that was answered
        last."""
        topics = self._named()
        size = sum(x.partitions_at(self.since_t) or 0 for x in topics if x.there_at(self.since_t))
        if self.change is None or not self.members or not topics:
            return
        members = self.members.values()
        if one is not None:
            waits = any(items(one.got, "status"))  # the first assignment of a streams group is delayed
            if waits or any(x.revokes or x.heard.t < one.t - IDLE_NS for x in members):
                self.since_t = max(self.since_t, one.ended_t)
            told, epochs = [x.told for x in members], {x.epoch for x in members}
            all_given = size == len(frozenset().union(*told)) and (self.shares or size == sum(map(len, told)))
            ids = {x.name: x.id for x in topics}
            all_given &= all(
                {topic for topic, _ in x.told} <= {ids.get(y) for y in x.topics} for x in members
            )
            if not all_given or len(epochs) > 1 or min(epochs) <= self.least_epoch:
                return
            yield from self._balanced(one)
            yield from self._sticky(one, self.change)
        by = self._by(self.since_t, self.since_t, None if one is None else t, t)
        if one is not None or t > by.limit_t:
            change, self.change = self.change, None
            if self.shares and not self.settled:
                self.settled = one is not None
                return
            promise = "every partition is assigned, and each member has a new epoch,"
            yield timed("G14", "not-assigned-in-time", change, by, promise, self.since_t, what="assigned")

    @property
    def _votes(self) -> Counter[object]:
        """The assignors that the members requested, each with the number of members."""
        return Counter(x for member in self.members.values() if (x := member.said.get("server_assignor")))

    def _balanced(self, one: Exchange) -> Rows:
        """Whether members with one subscription share the partitions of each topic (range), or all partitions
        (uniform), equally. Each member votes for an assignor when it joins."""
        votes = self._votes.most_common()
        tie = len(votes) > 1 and votes[0][1] == votes[1][1]
        if self.shares or not votes or tie or len(self.subscribed) > 1:
            return
        of = {x.id if votes[0][0] == RANGE else "" for x in self._named()}
        sizes = [[sum(not x or x == topic for topic, _ in y.told) for y in self.members.values()] for x in of]
        right = all(max(x) - min(x) <= 1 for x in sizes) or votes[0][0] not in (RANGE, UNIFORM)
        allowed, seen = f"equal shares: the assignor is {votes[0][0]}", f"{sizes} partitions"
        yield checked("G14", "unbalanced", one, right, allowed, seen)

    def _sticky(self, one: Exchange, change: Exchange) -> Rows:
        """Whether each member keeps as many of its partitions as it can, after one change by a member."""
        before, self.before = self.before, {name: x.told for name, x in self.members.items()}
        alone, self.changes = self.changes == 1 and change.api in BEATS, 0
        if alone and {*self._votes} == {UNIFORM} and len(self.subscribed) == 1:
            there, lost = {x.id for x in self._named()}, list[str]()
            for name, x in self.members.items():
                old = {part for part in before.get(name, ()) if part[0] in there}
                if len(old & x.told) < min(len(old), len(x.told)):
                    lost.append(f"{name} keeps {len(old & x.told)} of {len(old)}, and has {len(x.told)}")
            allowed = "each member keeps as many of its partitions as it can: the assignor is uniform"
            yield checked("G14", "not-sticky", one, not lost, allowed, ", ".join(lost))

    def _named(self) -> list[Topic]:
        """The topics of the subscriptions whose number of partitions is known."""
        known = self.topics.topics
        return [known[x] for x in {*chain(*self.subscribed)} if x in known and known[x].partitions]

    def _names_epoch(self, member: _Member, one: Exchange) -> bool:
        """Whether the heartbeat names the epoch of the member. The former epoch is accepted too, if the heartbeat names
        only partitions of the member, or the group is a share group: the response with the new epoch may have been
        lost."""
        epoch, said = integer(one.body, "member_epoch"), owned(one.body)
        only = self.shares or (said is not None and said <= member.told)
        return epoch == member.epoch or (epoch == member.former and only)
