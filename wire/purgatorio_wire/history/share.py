"""The sessions of a share group, and the acquired records, computed from the requests and responses of a scene
(KIP-932).

session      begins with a ShareFetch of epoch 0, and has all partitions that its fetches named. It ends with the
             epoch -1, or with the connection that began it
acquisition  begins between the send of a ShareFetch and its response. It ends when the acquisition lock times out,
             or between the send and the response of a request that acknowledges the record or ends the session
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, MS
from purgatorio_wire.history.history import (
    END_OF_TIME,
    FORGOTTEN,
    Exchange,
    Part,
    Scene,
    integer,
    integers,
    items,
    parts,
    text,
)
from purgatorio_wire.history.log import Append, Topics

FETCH, ACKNOWLEDGE = "share_fetch", "share_acknowledge"
GONE, NOT_THE_NEXT, NOT_HELD, INVALID = 122, 123, 121, 42
OPENS, CLOSES = 0, -1
RELEASE, RENEW = 2, 4
ISOLATION: Final = ("share.isolation.level", "read_committed")
"""The setting of a group that hides the records of open and aborted transactions."""
EARLIEST: Final = ("share.auto.offset.reset", "earliest")
"""The setting of a group that begins with the first record of each partition."""
LOCKS: Final = ("share.record.lock.duration.ms", "15000")
"""The setting of a group that gives it Kafka's shortest acquisition locks."""
DONE: Final = frozenset({0, 1, 3})
"""The acknowledgement types gap, accept, reject: the record is not delivered again."""
ENDED_NS: Final = 100 * MS
"""A session may exist for this long after the response to its last request."""
CUT_NS: Final = 5000 * MS
"""A broker may see the end of a connection later, by this time."""
RELEASED, SESSION, CUT, LOCK = "released", "session", "cut", "lock"
"""The ways in which an acquisition ends and the record becomes available."""


@dataclass(frozen=True, slots=True)
class AcquisitionEnd:
    """An event that may have ended an acquisition from `t` on, and has certainly ended it by `sure_t`. `frees`: how the
    event frees the record; "" if the record is finished, or if this is unknown."""

    t: int
    sure_t: int
    frees: str
    by: Exchange | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class Acquired:
    """Records from `first` to `last` of a partition that a member acquired. `count`: their delivery count;
    `lock_ns`: the duration of the acquisition lock, by the response."""

    by: Exchange
    asked: ShareRequest
    part: Part
    first: int
    last: int
    count: int
    lock_ns: int

    @property
    def offsets(self) -> range:
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True)
class AcknowledgedPart:
    """An acknowledgement for a partition: the types by offset, and the error in the response."""

    by: ShareRequest
    part: Part
    types: dict[int, int]
    error: int | None
    """None without a response."""
    valid: bool = True
    """Whether each batch of offsets is behind the batch before it, with known types for all or for each."""


@dataclass(slots=True)
class ShareRequest:
    """A request of a member. `wanted`: the expected error, or None if unknown. `parts`: the partitions of its session.
    `on`: the connection of its session."""

    one: Exchange
    member: str
    epoch: int
    wanted: int | None
    parts: frozenset[Part] = frozenset()
    on: str = ""

    @property
    def error(self) -> int:
        return integer(self.one.got, "error_code")

    @property
    def fetches(self) -> bool:
        return self.one.api == FETCH and self.epoch != CLOSES

    def overlaps(self, start_t: int, end_t: int) -> bool:
        """Whether it was open at some time between `start_t` and `end_t`."""
        return self.one.t <= end_t and self.one.ended_t >= start_t


@dataclass
class ShareGroup:
    name: str
    scene: Scene
    topics: Topics
    asked: list[ShareRequest]
    said: list[AcknowledgedPart] = field(default_factory=list)
    acquired: dict[Part, list[Acquired]] = field(default_factory=lambda: defaultdict(list))
    closed: dict[str, int] = field(default_factory=dict)
    """The end times of connections with a session."""
    beats: list[Exchange] = field(default_factory=list)
    """The heartbeats by which members leave."""
    _ends: dict[tuple[int, Part, int], tuple[AcquisitionEnd, ...]] = field(default_factory=dict)

    def ends(self, held: Acquired, offset: int) -> tuple[AcquisitionEnd, ...]:
        """The events that may have ended this acquisition of a record."""
        key = (held.by.i, held.part, offset)
        if key not in self._ends:
            self._ends[key] = tuple(self._find_ends(held, offset))
        return self._ends[key]

    def may_end_t(self, held: Acquired, offset: int, but: ShareRequest | None = None) -> int:
        """The earliest possible end of an acquisition. `but`: a request that is ignored."""
        ends = (x.t for x in self.ends(held, offset) if but is None or x.by is not but.one)
        return min(ends, default=END_OF_TIME)

    def holds(
        self, offset: int, part: Part, start_t: int, end_t: int, but: ShareRequest | None = None
    ) -> Acquired | None:
        """The acquisition that certainly holds a record from `start_t` to `end_t`. None if there is none."""
        for held in self.acquired[part]:
            if (
                offset in held.offsets
                and held.by.ended_t <= start_t
                and self.may_end_t(held, offset, but) > end_t
            ):
                return held
        return None

    def done_by(self, offset: int, part: Part) -> int:
        """The time from which no member can acquire a record: a member holds the record until it is finished, or it is
        finished. END_OF_TIME if unknown."""
        of = [(held, self.ends(held, offset)) for held in self.acquired[part] if offset in held.offsets]
        times = (
            held.by.ended_t if all(other.t > x.sure_t for other in ends if other.by is not x.by) else x.sure_t
            for held, ends in of
            for x in ends
            if x.done
        )
        return min(times, default=END_OF_TIME)

    def appends(self, part: Part) -> list[Append]:
        return self.topics.logs[part].appends if part in self.topics.logs else []

    @cached_property
    def committed_t(self) -> int:
        """The time at which the broker accepted read_committed for the group."""
        return self.set_t(ISOLATION)

    def set_t(self, setting: tuple[str, str]) -> int:
        return self.scene.set_t(self.name, setting)

    @cached_property
    def emptied_t(self) -> list[int]:
        """The times at which the end of a connection left no other session in the group."""
        spans = dict[str, tuple[int, int]]()
        for x in self.asked:
            lane = self.scene.lanes.get(x.on)
            if lane is not None:
                over_t = END_OF_TIME if lane.closed is None else lane.closed.t
                first_t, _ = spans.get(x.on, (x.one.t, 0))
                spans[x.on] = first_t, min(over_t, x.one.t if x.epoch == CLOSES else END_OF_TIME)
        closed = {lane.closed.t for on in spans if (lane := self.scene.lanes[on]).closed is not None}
        return [t for t in closed if not any(first_t < t < over_t for first_t, over_t in spans.values())]

    def loaded(self, asked: ShareRequest) -> bool:
        """Whether the group surely has the partitions of a ShareFetch. Kafka drops them when the connection of the last
        session ends, and reads their state again: the first requests after that may take their time."""
        since_t = max((t for t in self.emptied_t if t < asked.one.ended_t), default=-1)
        return since_t < 0 or all(
            any(since_t < held.by.t and held.by.ended_t <= asked.one.t for held in self.acquired[part])
            for part in asked.parts
        )

    @cached_property
    def lost_t(self) -> int:
        """The time of the first fetch whose response may be lost. The owner of its records is unknown."""
        lost = (x.one.t for x in self.asked if x.fetches and (x.one.answer is None or x.one.unread))
        return min(lost, default=END_OF_TIME)

    def settled_t(self, part: Part) -> int:
        """The time of the first acquisition in the partition. No clause requires the delivery of older records. After a
        deletion, the time of a ShareFetch that has told the group of the new start of the log."""
        since_t = min((held.by.ended_t for held in self.acquired[part]), default=END_OF_TIME)
        log = self.topics.logs.get(part)
        if log is None or not log.deletes_t:
            return since_t
        low, told = log.low_at(END_OF_TIME), [END_OF_TIME] * (len(log.deletes_t) - len(log.low))
        told += [t for t, _ in log.low]
        for held in self.acquired[part]:  # a deleted record that is released later tells the group again
            deleted = (offset for offset in held.offsets if offset < low)
            told += [min(over.sure_t for over in self.ends(held, offset)) for offset in deleted]
        fetches = (
            x.one.ended_t for x in self.asked if x.fetches and part in x.parts and x.one.t >= max(told)
        )
        return max(since_t, min(fetches, default=END_OF_TIME))

    def _find_ends(self, held: Acquired, offset: int) -> Iterator[AcquisitionEnd]:
        yield from self._acknowledged(held, offset)
        yield from self._session_ended(held)
        yield self._lock_expired(held, offset)

    def _effective(self, asked: ShareRequest, held: Acquired) -> bool:
        """Whether a request of the member, after the acquisition, belongs to its session."""
        later = asked.member == held.asked.member and asked.one.ended_t > held.by.t
        return later and asked.error not in (GONE, NOT_THE_NEXT)

    def _types(self, held: Acquired, offset: int) -> Iterator[tuple[AcknowledgedPart, bool]]:
        """The acknowledgements of the record that were not refused as a whole, and whether each surely took effect."""
        for said in self.said:
            if said.part == held.part and offset in said.types and self._effective(said.by, held):
                refused = said.error == INVALID or (said.error == NOT_HELD and said.types[offset] != RENEW)
                if not refused:
                    yield said, said.error == 0 and said.by.one.t >= held.by.ended_t

    def _acknowledged(self, held: Acquired, offset: int) -> Iterator[AcquisitionEnd]:
        for said, sure in self._types(held, offset):
            one, kind = said.by.one, said.types[offset]
            if kind != RENEW:
                frees = RELEASED if kind == RELEASE and sure else ""
                sure_t = one.ended_t if sure else END_OF_TIME
                yield AcquisitionEnd(one.t, sure_t, frees, one, done=sure and kind in DONE)

    def _session_ended(self, held: Acquired) -> Iterator[AcquisitionEnd]:
        """The requests, the end of the connection, and the heartbeats that may have ended the member's session."""
        member = held.asked.member
        for asked in self.asked:
            one = asked.one
            if asked.epoch in (OPENS, CLOSES) and one is not held.by and self._effective(asked, held):
                sure = asked.epoch == CLOSES and asked.wanted == 0 and one.got is not None
                sure = sure and not asked.error and one.t >= held.by.ended_t and held.part in asked.parts
                yield AcquisitionEnd(
                    one.t, one.ended_t if sure else END_OF_TIME, SESSION if sure else "", one
                )
        lane = self.scene.lanes.get(held.asked.on)
        if lane is not None and lane.closed is not None and lane.closed.t >= held.by.t:
            idle = lane.closed.by == "us" and all(x.answer is not None for x in lane.requests if x.owed)
            last = [x.parts for x in self.asked if x.member == member and x.on == lane.name][-1:]
            idle &= held.part in {*chain(*last)}  # it may have been taken out of the session
            t = lane.closed.t
            yield AcquisitionEnd(t, t if idle else END_OF_TIME, CUT if idle else "")
        for beat in self.beats:
            if text(beat.body, "member_id") == member and beat.t >= held.by.t:
                yield AcquisitionEnd(beat.t, END_OF_TIME, "", beat)

    def _lock_expired(self, held: Acquired, offset: int) -> AcquisitionEnd:
        """The end by the acquisition lock, which a renewal (KIP-1222) begins anew."""
        begins_t, lasts_t, locks_ns = held.by.t, held.by.ended_t, {held.lock_ns}
        for said, sure in self._types(held, offset):
            one = said.by.one
            if said.types[offset] == RENEW:
                begins_t, lasts_t = one.t if sure else begins_t, max(lasts_t, one.ended_t)
                locks_ns.add(lock_ns(one) or held.lock_ns)  # the setting may have changed
        sure_t = lasts_t + max(locks_ns) if held.lock_ns else END_OF_TIME
        return AcquisitionEnd(
            begins_t + max(min(locks_ns) - EARLY_NS, 0), sure_t, LOCK if held.lock_ns else ""
        )


def share_groups(scene: Scene, topics: Topics) -> Iterator[ShareGroup]:
    by_group: dict[str, list[Exchange]] = defaultdict(list)
    for one in scene.of(FETCH, ACKNOWLEDGE):
        by_group[text(one.body, "group_id")].append(one)
    for name, exchanges in by_group.items():
        members: dict[str, list[Exchange]] = defaultdict(list)
        for one in exchanges:
            members[text(one.body, "member_id")].append(one)
        asked = [each for member, some in members.items() for each in _asked_by(scene, member, some)]
        asked.sort(key=lambda each: each.one.i)
        group = ShareGroup(name, scene, topics, asked)
        group.beats = [
            one for one in scene.of("share_group_heartbeat")
            if text(one.body, "group_id") == name and integer(one.body, "member_epoch") < 0
        ]  # fmt: skip
        for each in asked:
            group.said += _said(each)
            for held in _acquired(each):
                group.acquired[held.part].append(held)
        yield group


@dataclass(slots=True)
class _Session:
    next: int
    on: str
    parts: set[Part]


def _asked_by(scene: Scene, member: str, exchanges: Iterable[Exchange]) -> Iterator[ShareRequest]:
    """The requests of one member, each with the state of its session at that time."""
    session: _Session | None = None
    sure, free_t, ended_t, raced = True, -1, -1, False
    for one in exchanges:
        epoch = integer(one.body, "share_session_epoch")
        lane = None if session is None else scene.lanes.get(session.on)
        until_t = one.ended_t
        alone = one.t >= free_t
        if not alone or (lane is not None and lane.closed is not None and lane.closed.t < until_t):
            sure = False
        free_t = max(free_t, until_t)
        opens = epoch == OPENS and one.api == FETCH
        if opens:
            # Kafka may take the new session for the one that ends with the former connection, and end it.
            raced = lane is not None and lane.closed is not None and one.t < lane.closed.t + CUT_NS
            session, sure = _Session(1, one.conn, set()), alone
        if session is not None and one.api == FETCH:
            session.parts |= {part for part, _ in one.requested}
            if not opens:  # in the first request, Kafka does not read what it removes
                session.parts -= {part for part, _ in parts(one.body, FORGOTTEN)}
        wanted = _wanted(session, epoch, opens=opens)
        its, on = (frozenset(), "") if session is None else (frozenset(session.parts), session.on)
        error = integer(one.got, "error_code")
        known = sure and (one.t >= ended_t or opens) and not (raced and error == GONE)
        yield ShareRequest(one, member, epoch, wanted if known else None, its, on)
        if opens:
            sure = alone and one.got is not None and not error and one.t >= ended_t
        elif one.t < ended_t:
            continue
        elif one.got is None or (error and error != wanted) or (wanted and not error):
            sure = False
        elif epoch == CLOSES:
            session, ended_t = None, until_t + ENDED_NS
        elif session is not None and not error:
            session.next += 1


def _wanted(session: _Session | None, epoch: int, *, opens: bool) -> int:
    if opens:
        return 0
    if epoch == OPENS:
        return NOT_THE_NEXT
    if session is None:
        return GONE
    return 0 if epoch in (CLOSES, session.next) else NOT_THE_NEXT


def _acquired(asked: ShareRequest) -> Iterator[Acquired]:
    one = asked.one
    if one.api == FETCH:
        for part, told in one.results.items():
            for run in items(told, "acquired_records"):
                first, last = integer(run, "first_offset"), integer(run, "last_offset")
                if 0 <= first <= last < first + 100_000:
                    count = integer(run, "delivery_count")
                    yield Acquired(one, asked, part, first, last, count, lock_ns(one))


def lock_ns(one: Exchange) -> int:
    """The duration of acquisition locks, by a response; 0 without one."""
    return max(integer(one.got, "acquisition_lock_timeout_ms"), 0) * MS


def _said(asked: ShareRequest) -> Iterator[AcknowledgedPart]:
    """The acknowledgements of a request. A partition that is not in the response succeeded."""
    one = asked.one
    name = "acknowledge_error_code" if one.api == FETCH else "error_code"
    for part, asks, answer in one.pairs:
        types: dict[int, int] = {}
        valid, twice = True, False
        for batch in items(asks, "acknowledgement_batches"):
            first, last = integer(batch, "first_offset"), integer(batch, "last_offset")
            kinds = [*integers(batch, "acknowledge_types")]
            count = last - first + 1
            twice |= max(types, default=-1) == first
            valid &= max(types, default=-1) <= first <= last
            valid &= len(kinds) in (1, count) and max(kinds, default=0) <= RENEW
            if 0 <= first <= last < first + 100_000 and len(kinds) in (1, count):
                each = kinds * count if len(kinds) == 1 else kinds
                types |= dict(zip(range(first, last + 1), each, strict=True))
        if types or not valid:
            told = None if one.got is None else integer(one.got, "error_code") or integer(answer, name)
            # Kafka may refuse a record that is in two batches: the effect is unknown.
            yield AcknowledgedPart(asked, part, types, None if valid and twice else told, valid)
