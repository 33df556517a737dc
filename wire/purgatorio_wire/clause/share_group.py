"""The clauses S1 to S9: the records that members of a share group acquire, and the start and end of an acquisition.

A ShareFetch waits in a purgatory, and a timing wheel expires the acquisition locks. A response is a violation only if
it is wrong for every possible order of the open requests. The owner of a record is known from the response that
delivered the record. It is known until the first request that may have ended the acquisition. Waiting fetches are
judged together: one of the members must get a record in time. Records that may have been in a lost response are not
judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, FORGOTTEN_NS, MS, NO_WAIT_GAP_NS, PATIENCE_TIMES, Bounds
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
    timed,
    undecided,
)
from purgatorio_wire.history.history import (
    END_OF_TIME,
    EXCUSED,
    LOADING,
    NAMED,
    OF_LAG,
    Exchange,
    Part,
    Scene,
    integer,
    items,
    parts,
    text,
)
from purgatorio_wire.history.log import Append, Topics
from purgatorio_wire.history.share import (
    CUT,
    EARLIEST,
    GONE,
    INVALID,
    LOCK,
    LOCKS,
    NOT_HELD,
    NOT_THE_NEXT,
    OPENS,
    RELEASED,
    SESSION,
    AcknowledgedPart,
    Acquired,
    AcquisitionEnd,
    ShareGroup,
    ShareRequest,
    lock_ns,
    share_groups,
)

MOST_LOOKED_AT: Final = 60
"""The clauses check this number of records of an acquisition, beginning with the first."""
LOCK_PARTS: Final = 4
"""Another member gets a locked record. If more than this fraction (1/4) of the lock time has passed, the lock ended too
early (S7); before, two members hold the record (S3)."""
FREED: Final = {"": "S2", RELEASED: "S5", SESSION: "S8", CUT: "S8", LOCK: "S7"}
"""The clause by which a record can be acquired, by the way in which it was freed; "" for one that was never
delivered."""
RECORD_LIMIT: Final = 1
"""The mode of a ShareFetch that acquires at most `max_records` records (KIP-1206)."""
AT_REST_NS: Final = 100 * MS
"""A record that has been free for this time before max_wait_ms is returned at max_wait_ms."""
WRITTEN: Final = 5
"""The records of an ended session are free within this number of times the declared lateness: the broker first writes
the change, and no response waits for this write."""
REFUSED: Final = frozenset({7, 35, 42, 124, 133, *LOADING, *EXCUSED})
"""Errors that no clause judges: share groups are disabled, the limit of sessions is reached, the persister or the
leader is not available, or the client is not authorized."""


@dataclass(frozen=True, slots=True)
class Freed:
    """A record that may be acquirable from `t` on, and is certainly acquirable from `sure_t` on. `clause` and `words`:
    the reason. `by`: the request with the events that show it."""

    part: Part
    offset: int
    t: int
    sure_t: int
    clause: str
    words: str
    by: Exchange


def shared(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """The occasions are ShareFetch requests, acknowledgements, and events that free records."""
    for group in share_groups(scene, topics):
        if all(asked.epoch != OPENS for asked in group.asked):
            continue  # no session was opened; X3 judges whether all versions are answered
        judged = _Judged(bounds, group)
        for asked in group.asked:
            yield from judged.session(asked)
            if asked.fetches and asked.wanted == 0 and not asked.one.throttled_ms:
                yield from judged.fetch(asked)
        for said in group.said:
            yield from judged.said(said)
        for one in scene.of(OF_LAG):
            yield from judged.lag(one)
        yield from judged.begun()
        yield from judged.woken()


@dataclass(frozen=True, slots=True)
class _Judged:
    bounds: Bounds
    group: ShareGroup

    # -- sessions

    def session(self, asked: ShareRequest) -> Rows:
        one, error = asked.one, asked.error
        if asked.wanted is None or one.unread or one.throttled_ms:
            return
        if not asked.wanted:
            if error in (GONE, NOT_THE_NEXT) or (one.got and not error and asked.epoch != OPENS):
                about = ": the request has the next epoch of the session"
                yield error_is("S9", "refused", one, error, 0, about)
            return
        cause = "unknown-session" if asked.wanted == GONE else "wrong-session-epoch"
        if one.got is not None and error != asked.wanted:
            if error not in REFUSED:
                yield broken("S9", cause, one, named(asked.wanted), named(error))
            return
        yield kept("S9", cause)
        if not one.behind:
            gap = one.wait_ms * MS or NO_WAIT_GAP_NS
            promise = f"{named(asked.wanted)} at once,"
            yield in_time(self.bounds, "S9", "refused-late", one, one.t, gap, promise)

    # -- fetches

    def fetch(self, asked: ShareRequest) -> Rows:
        """S1 to S4, for a ShareFetch with the next epoch of its session."""
        one = asked.one
        if one.unread or one.behind:
            return
        if one.got is not None:
            errors = {part: integer(told, "error_code") for part, told in parts(one.got, NAMED["fetch"][1])}
            if asked.error or any(errors.values()):
                yield from self._unexpected(asked, errors)
                return
            yield from self._given(asked)
            since_t, lock_ms = self.group.set_t(LOCKS), lock_ns(one) // MS
            if one.t > since_t + PATIENCE_TIMES * self.bounds.declared.late_topics_ms * MS and lock_ms:
                allowed = f"acquisition locks of {LOCKS[1]} ms, by the setting of the group"
                yield checked("S7", "other-duration", one, f"{lock_ms}" == LOCKS[1], allowed, f"{lock_ms} ms")
        if asked.epoch == OPENS or not asked.parts or not self.group.loaded(asked):
            return  # the first check at a partition may take its time
        yield from self._times(asked)

    def _unexpected(self, asked: ShareRequest, errors: Mapping[Part, int]) -> Rows:
        """S2: a partition from which the group has acquired records gets no error, while its topic exists."""
        group, one = self.group, asked.one
        for part in errors if group.loaded(asked) and not group.emptied_t else ():
            if any(x.by.ended_t <= one.t for x in group.acquired[part]) and group.topics.stays(part.topic):
                yield answered_with("S2", "refused", one, errors[part], 0, f" for {part}", REFUSED)

    def _given(self, asked: ShareRequest) -> Rows:
        """S3 and S4, for the records that the response has or lacks."""
        group, one = self.group, asked.one
        for part in sorted(asked.parts):
            mine = [held for held in group.acquired[part] if held.by is one]
            for held in mine:
                yield from self._counted(held)
                yield self._with_records(held)
                yield from self._committed(held)
            yield from self._held(asked, part, mine)
            yield from self._done(asked, part, mine)
        if integer(one.body, "share_acquire_mode") == RECORD_LIMIT:
            came = sum(
                len(held.offsets) for some in group.acquired.values() for held in some if held.by is one
            )
            most = integer(one.body, "max_records")
            yield checked("S3", "too-many", one, came <= most, f"at most {most} records", f"{came} records")

    def _committed(self, held: Acquired) -> Rows:
        """S1, in a group with read_committed: no record of an open or aborted transaction was there."""
        since_t = self.group.committed_t + self.bounds.declared.late_topics_ms * MS
        for append in self.group.appends(held.part) if held.by.t > since_t else ():
            within, end = append.within, append.base + append.count
            if within is None or append.base < 0 or held.last < append.base:
                continue
            isopen, shown = within.may_end_t > held.by.ended_t, held.first < end
            if isopen or (within.commits is False and within.ended_t <= held.by.t):
                cause = "open-transaction-shown" if isopen else "aborted-shown"
                allowed = f"no record of the {'open' if isopen else 'aborted'} transaction of {within.name}"
                seen = f"records {held.first} to {held.last}"
                yield checked("S1", cause, held.by, not shown, allowed, seen, *append.exchange.events)

    def _held(self, asked: ShareRequest, part: Part, mine: list[Acquired]) -> Rows:
        group, one, occasion = self.group, asked.one, False
        for other in group.acquired[part]:
            if other.by is one:
                continue
            for offset in _some(other):
                over_t = group.may_end_t(other, offset)
                occasion |= other.by.ended_t <= one.t and over_t > asked.one.ended_t
                for held in mine:
                    if offset not in held.offsets or over_t <= asked.one.ended_t:
                        continue
                    if group.may_end_t(held, offset) > other.by.ended_t:
                        yield self._also(held, other, offset)
                        return
        if occasion:
            yield kept("S3", "acquired-twice")

    def _also(self, held: Acquired, other: Acquired, offset: int) -> Row:
        """Two members hold one record at the same time."""
        first, second = sorted((held, other), key=lambda one: one.by.ended_t)
        passed_ns = second.by.ended_t - first.by.ended_t
        seen = (
            f"record {offset} of {held.part}, {after(second.by.ended_t, first.by.t)} after the first delivery"
        )
        if first.lock_ns and passed_ns * LOCK_PARTS > first.lock_ns:
            allowed = f"no locked record before its lock ends, after {first.lock_ns // MS} ms"
            return broken("S7", "early", second.by, allowed, seen, *first.by.events)
        allowed = f"no record that {_member(first)} holds"
        return broken("S3", "acquired-twice", second.by, allowed, seen, *first.by.events)

    def _counted(self, held: Acquired) -> Rows:
        """S3. The end of a session may undo the delivery count, because the client may not have seen the record."""
        group, offset = self.group, held.first
        others = [x for x in group.acquired[held.part] if x.by is not held.by and offset in x.offsets]
        before = [x for x in others if x.by.ended_t <= held.by.t]
        perhaps = [x for x in others if x.by.t <= held.by.ended_t]
        if (limit := self.bounds.declared.deliveries_most) is not None and held.count > limit:
            allowed = f"at most {limit} deliveries of record {offset}"
            yield broken("S3", "too-often", held.by, allowed, f"delivery {held.count}")
        if group.lost_t < held.by.ended_t:
            return
        back = sum(
            any(x.frees not in (RELEASED, LOCK) and x.t <= held.by.ended_t for x in group.ends(one, offset))
            for one in perhaps
        )
        least, most = max(1, 1 + len(before) - back), 1 + len(perhaps)
        counts = f"{least}" if least == most else f"{least} to {most}"
        witnesses = (i for x in before for i in x.by.events)
        allowed, right = f"delivery count {counts} of record {offset}", least <= held.count <= most
        yield checked(
            "S3", "delivery-count", held.by, right, allowed, f"delivery count {held.count}", *witnesses
        )

    def _with_records(self, held: Acquired) -> Row:
        records = items(held.by.results.get(held.part), "records")
        batches = [(integer(batch, "base"), integer(batch, "last")) for batch in records]
        lacks = [x for x in (held.first, held.last) if not any(base <= x <= last for base, last in batches)]
        allowed = f"records {held.first} to {held.last}, which the response lists as acquired"
        return checked("S3", "records-missing", held.by, not lacks, allowed, f"a response without {lacks}")

    def _done(self, asked: ShareRequest, part: Part, mine: list[Acquired]) -> Rows:
        group, one = self.group, asked.one
        done = {
            offset
            for held in group.acquired[part]
            for offset in _some(held)
            if group.done_by(offset, part) <= one.t
        }
        again = sorted(offset for held in mine for offset in _some(held) if offset in done)
        if done:
            allowed = f"no record of {part} that was accepted or rejected"
            said = [x.by for x in group.said if x.part == part and {*again[:1]} & {*x.types}]
            witnesses = (i for by in said if by.one.t <= asked.one.ended_t for i in by.one.events)
            yield checked("S4", "delivered-again", one, not again, allowed, f"records {again}", *witnesses)

    def _times(self, asked: ShareRequest) -> Rows:
        """S1, S2: the time of the response, and an empty response although records were available."""
        group, one = self.group, asked.one
        until_t = min(asked.one.ended_t, one.watched_t)
        gave = any(held.by is one for part in asked.parts for held in group.acquired[part])
        wait_ns = one.wait_ms * MS
        yield in_time(
            self.bounds, "S1", "late", one, one.t + wait_ns, max(wait_ns, FORGOTTEN_NS),
            f"an answer at max_wait_ms, {one.wait_ms} ms,",
        )  # fmt: skip
        if group.lost_t < until_t:
            return
        alone = not self._beside(asked, one.t, until_t)
        rest_t = min(asked.one.ended_t, one.t + wait_ns) - AT_REST_NS
        wants_any = integer(one.body, "min_bytes") <= 1
        if alone and wants_any and (ready := self._ready(asked, one.t)) is not None:
            what = f"record {ready.offset} of {ready.part}, which {ready.words}"
            if one.got is not None and not gave:
                yield late_row(ready.clause, "empty", one, what, "no records", (one.t, asked.one.ended_t))
            else:
                gap, promise = wait_ns or NO_WAIT_GAP_NS, f"an answer with {what}, at once,"
                yield in_time(self.bounds, ready.clause, "waits-though-ready", one, one.t, gap, promise)
        elif not wait_ns:
            yield in_time(
                self.bounds, "S2", "waits-without-max-wait", one, one.t, NO_WAIT_GAP_NS, "an answer at once,"
            )
        elif one.got is None:
            return
        elif gave:
            yield from self._given_while_it_waits(asked)
        elif (
            wants_any
            and not self._beside(asked, rest_t, until_t)
            and (ready := self._ready(asked, rest_t)) is not None
        ):
            what = f"record {ready.offset} of {ready.part}, which {ready.words}"
            what, late = f"{what}, no later than max_wait_ms", (one.t, asked.one.ended_t)
            yield late_row(ready.clause, "not-delivered", one, what, "no records", late, *ready.by.events)
        elif alone and not self._may_be_ready(asked, until_t):
            allowed = f"an answer at max_wait_ms, {one.wait_ms} ms, or an answer with records"
            right, seen = (
                one.ended_t >= one.t + wait_ns - EARLY_NS,
                f"none, {after(one.ended_t, one.t)} later",
            )
            yield checked("S1", "early", one, right, allowed, seen)

    def _given_while_it_waits(self, asked: ShareRequest) -> Rows:
        """Records that were freed after it was sent, and not by the end of a lock."""
        group = self.group
        for part in sorted(asked.parts):
            mine = {offset for held in group.acquired[part] if held.by is asked.one for offset in _some(held)}
            for held in group.acquired[part]:
                if held.by is asked.one or not mine & {*_some(held)}:
                    continue
                over = self._frees(held, min(mine & {*_some(held)}))
                locked_t = held.by.t + held.lock_ns
                if over is not None and asked.one.t < over.t and asked.one.ended_t < locked_t - EARLY_NS:
                    yield kept(FREED[over.frees], "not-delivered")

    def _beside(self, asked: ShareRequest, start_t: int, end_t: int) -> bool:
        """Whether another ShareFetch may have acquired or delayed the same records."""
        return any(
            other is not asked
            and other.fetches
            and other.overlaps(start_t, end_t)
            and other.parts & asked.parts
            for other in self.group.asked
        )

    def _ready(self, asked: ShareRequest, t: int) -> Freed | None:
        """A record that the ShareFetch can certainly acquire at `t`, if there is no other ShareFetch."""
        group = self.group
        for part in sorted(asked.parts):
            for append in self._sure_appends(part):
                if (append.ack_t or END_OF_TIME) > t:
                    continue
                for offset in range(append.base, append.base + min(append.count, MOST_LOOKED_AT)):
                    had = [
                        x
                        for x in group.acquired[part]
                        if offset in x.offsets and x.by is not asked.one and x.by.t <= asked.one.ended_t
                    ]
                    if not had:
                        words = "was appended"
                        return Freed(part, offset, append.t, t, FREED[""], words, append.exchange)
                    free_t = self._freed_by(had[0], offset) if len(had) == 1 else None
                    over = self._frees(had[0], offset)
                    if free_t is not None and free_t <= t and over is not None:
                        words = f"was acquired on connection {had[0].by.conn}"
                        return Freed(
                            part, offset, over.t, free_t, FREED[over.frees], words, over.by or had[0].by
                        )
        return None

    def _freed_by(self, held: Acquired, offset: int) -> int | None:
        """The time by which the end of the acquisition has certainly freed the record. None if unknown, or if the
        record is not available any more."""
        over = self._frees(held, offset)
        if over is None:
            return None
        if over.frees == RELEASED:
            return over.sure_t
        slow_ns = (WRITTEN - 1) * self.bounds.declared.late_ms * MS
        return over.sure_t + slow_ns + self.bounds.allowed_ns(over.sure_t, over.sure_t + 1000 * MS)

    def _frees(self, held: Acquired, offset: int) -> AcquisitionEnd | None:
        """The event that certainly frees the record, before another event may have ended the acquisition. Only for the
        first delivery, because a group may allow no more than two."""
        overs = self.group.ends(held, offset)
        first = min(overs, key=lambda over: over.sure_t)
        others = (over.t for over in overs if over is not first)
        if held.count != 1 or not first.frees or min(others, default=END_OF_TIME) <= first.sure_t:
            return None
        if first.frees in (SESSION, CUT) and self._shares_batches(held, first):
            return None
        return first

    def _shares_batches(self, held: Acquired, end: AcquisitionEnd) -> bool:
        """Whether another member may have had a neighboring record: then a broker may free no record of the batch."""
        group = self.group
        return any(
            min(over.sure_t for over in group.ends(x, offset)) > held.by.t
            for x in group.acquired[held.part]
            if x.asked.member != held.asked.member and x.by.t <= end.sure_t
            for offset in _some(x)
            if offset not in held.offsets or group.may_end_t(held, offset) < end.t
        )

    def _may_be_ready(self, asked: ShareRequest, end_t: int) -> bool:
        """Whether a record may have been available between the ShareFetch and `end_t`."""
        group, start_t = self.group, asked.one.t
        for part in asked.parts:
            first = min((held.first for held in group.acquired[part]), default=None)
            for append in group.appends(part):
                if append.t > end_t or not append.may_be_there:
                    continue
                if first is None or append.base < 0:
                    return True
                for offset in range(max(append.base, first), append.base + append.count):
                    if group.done_by(offset, part) <= start_t:
                        continue
                    if group.holds(offset, part, start_t, end_t) is None:
                        return True
        return False

    def begun(self) -> Rows:
        """S2, in a group that begins with the first record of each partition."""
        known_t = self.group.set_t(EARLIEST) + self.bounds.declared.late_topics_ms * MS
        if all(asked.one.t > known_t for asked in self.group.asked):
            for some in self.group.acquired.values():
                held = min(some, key=lambda held: held.by.ended_t)
                allowed = "record 0 first: the group begins with the earliest offset"
                yield checked(
                    "S2", "not-delivered", held.by, held.first == 0, allowed, f"record {held.first}"
                )

    # -- acknowledgements

    def said(self, said: AcknowledgedPart) -> Rows:
        group, one = self.group, said.by.one
        if said.by.wanted != 0 or said.error is None or said.by.error or one.throttled_ms:
            return
        if not said.valid:
            about = ": the batches of offsets are not in order, or their types are invalid"
            yield answered_with(
                "S6", "acknowledgement-accepted", one, said.error, INVALID, about, REFUSED - {INVALID}
            )
            return
        if said.error in REFUSED:
            yield undecided(
                "S6", f"{named(said.error)}: {EXCUSED.get(said.error, 'the acknowledgement could not be stored')}",
            )  # fmt: skip
            return
        holders = [
            group.holds(offset, said.part, one.t, said.by.one.ended_t, said.by)
            for offset in [*said.types][:MOST_LOOKED_AT]
        ]
        what = f"{min(said.types)} to {max(said.types)}"
        if all(held is not None and held.asked.member == said.by.member for held in holders):
            yield error_is(
                "S6", "refused", one, said.error, 0, f" for the records {what}, which it has acquired"
            )
            return
        if not said.error and self._may_be_deleted(said):
            return
        strange = any(held is not None and held.asked.member != said.by.member for held in holders)
        if strange or any(self._is_free(offset, said) for offset in said.types):
            whose = "which another member has acquired" if strange else "which the member has released"
            about = f" for the records {what}, {whose}"
            yield error_is("S6", "acknowledgement-accepted", one, said.error, NOT_HELD, about)

    def _may_be_deleted(self, said: AcknowledgedPart) -> bool:
        """Whether a deletion may have removed some of the records: then Kafka accepts every acknowledgement of them."""
        log = self.group.topics.logs.get(said.part)
        if log is None or not any(t <= said.by.one.ended_t for t in log.deletes_t):
            return False
        return len(log.deletes_t) > len(log.low) or min(said.types) < log.low_at(END_OF_TIME)

    def _is_free(self, offset: int, said: AcknowledgedPart) -> bool:
        """Whether the record was acquired once, and surely is free since."""
        had = [
            x for x in self.group.acquired[said.part] if offset in x.offsets and x.by.t <= said.by.one.ended_t
        ]
        if len(had) != 1 or self.group.lost_t < said.by.one.ended_t:
            return False
        return (self._freed_by(had[0], offset) or END_OF_TIME) <= said.by.one.t

    def lag(self, one: Exchange) -> Rows:
        """S4. The lag is the number of records from the start offset on that are not finished (KIP-1226)."""
        group = self.group
        for said in (x for x in items(one.got, "groups") if text(x, "group_id") == group.name):
            for part, told in parts(said, NAMED[OF_LAG][1]):
                log, lag = group.topics.logs[part], integer(told, "lag", -1)
                start = integer(told, "start_offset", -1)
                if start < 0 or lag < 0 or log.deletes_t or log.transactions or group.lost_t < one.ended_t:
                    continue
                some = (x for x in group.acquired[part] if x.by.t <= one.ended_t)
                held = [(x, at) for x in some for at in x.offsets if at >= start]
                sure = ((at, end) for x, at in held for end in group.ends(x, at) if end.done)
                done = {at for at, end in sure if end.sure_t <= one.t}
                least = log.least_end(one.t) - start - len({at for _, at in held})
                most = log.most_end(one.ended_t) - start - len(done)
                allowed = f"a lag of {max(least, 0)} to {most} records from offset {start} of {part} on"
                yield checked("S4", "lag", one, least <= lag <= most, allowed, f"{lag}")

    # -- what wakes

    def woken(self) -> Rows:
        """S2, S7: an append, and the end of a lock. A release, and the end of a session, need not wake a fetch:
        Kafka stores both first, and tries the waiting fetches before that."""
        for freed in self._freed():
            row = self._woken_by(freed)
            if row is not None:
                yield row

    def _freed(self) -> Iterator[Freed]:
        group = self.group
        for part in [*group.acquired]:
            for append in self._sure_appends(part):
                yield Freed(
                    part, append.base, append.t, append.ack_t or 0, "S2", "is appended", append.exchange
                )
            for held in group.acquired[part]:
                for offset in _some(held):
                    over = self._frees(held, offset)
                    if over is not None and over.frees == LOCK:
                        words = f"is locked for {held.lock_ns // MS} ms"
                        yield Freed(part, offset, over.t, over.sure_t, "S7", words, held.by)
                        break

    def _woken_by(self, freed: Freed) -> Row | None:
        """Whether some member has acquired the record in time, while a fetch waited from before this event on."""
        group = self.group
        waiting = [
            asked for asked in group.asked
            if asked.fetches and asked.wanted == 0 and freed.part in asked.parts and not asked.one.behind
            and asked.one.t < freed.t < asked.one.ended_t and integer(asked.one.body, "min_bytes") <= 1
            and asked.one.t + asked.one.wait_ms * MS > freed.sure_t and group.loaded(asked)
        ]  # fmt: skip
        if not waiting or group.lost_t < freed.sure_t:
            return None
        taken_t = min(
            (x.by.ended_t for x in group.acquired[freed.part] if freed.offset in x.offsets and x.by.ended_t > freed.t),
            default=END_OF_TIME,
        )  # fmt: skip
        one = max(waiting, key=lambda asked: asked.one.t + asked.one.wait_ms * MS).one
        first_t = min(taken_t, *(asked.one.ended_t for asked in waiting))
        answered_t = taken_t if taken_t < END_OF_TIME else first_t
        by = self.bounds.by(
            one.t, freed.sure_t, None if answered_t == END_OF_TIME else answered_t,
            gap_ns=one.t + one.wait_ms * MS - freed.sure_t, watched_t=one.watched_t,
        )  # fmt: skip
        if taken_t > by.limit_t and (first_t <= by.limit_t or one.watched_t <= by.limit_t):
            # The waiting ShareFetch was answered for another reason, or the client stopped waiting.
            return None
        promise = f"record {freed.offset} of {freed.part}, which {freed.words},"
        return timed(freed.clause, "not-woken", one, by, promise, one.t, *freed.by.events)

    def _sure_appends(self, part: Part) -> Iterable[Append]:
        """The appends that the group certainly sees: to one replica, after the records that it has already seen."""
        if not self.group.topics.stays(part.topic) or self.group.topics.transactions:
            return ()
        settled_t = self.group.settled_t(part)
        return (
            append
            for append in self.group.appends(part)
            if append.t >= settled_t and append.ack_t is not None and append.base >= 0
        )


def _some(held: Acquired) -> range:
    return held.offsets[:MOST_LOOKED_AT]


def _member(held: Acquired) -> str:
    return f"the member on {held.by.conn}"
