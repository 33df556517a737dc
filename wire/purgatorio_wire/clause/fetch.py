"""The clauses F1 to F9, and D1 for Fetches (DeleteRecords): how long a Fetch waits, and the records that it returns.

The time of a Fetch's response is judged under four conditions. Its partitions belong to topics of the run. An earlier
request to each partition succeeded. A batch begins at each fetch offset. The Fetch has no fetch session. An append
takes effect between its request and its acknowledgement. So only an interval is known in which a Fetch becomes ready.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, FORGOTTEN_NS, MS, NO_WAIT_GAP_NS, Bounds, RowStatus
from purgatorio_wire.history.fetch_session import NO_SESSION, NOT_THE_NEXT
from purgatorio_wire.history.finding import (
    FENCED_LEADER_EPOCH,
    UNKNOWN_LEADER_EPOCH,
    Row,
    Rows,
    after,
    answered_with,
    broken,
    checked,
    deleted,
    error_is,
    in_time,
    in_words,
    kept,
    late_row,
    named,
)
from purgatorio_wire.history.history import (
    END_OF_TIME,
    EXCUSED,
    Exchange,
    Part,
    Scene,
    integer,
    items,
    text,
    texts,
)
from purgatorio_wire.history.log import (
    COMMITTED,
    EPOCH_FAR,
    CommittedLog,
    Log,
    Topics,
    corrupt,
    unknown_topic,
)
from purgatorio_wire.trace.record import Body

OUT_OF_RANGE: Final = 1
OF_TRANSACTIONS: Final[Mapping[str, str]] = {
    "F1": "R1", **dict.fromkeys(("F3", "F7"), "R2"), **dict.fromkeys(("F4", "F5"), "R3"),
}  # fmt: skip
"""The clauses of a fetch, and the clauses that replace them for a read_committed fetch of a log with transactions."""
SESSION_STAYS_NS: Final = 100_000 * MS
"""Kafka evicts no session of a consumer in its first 120 s for another consumer's (KIP-227)."""
_UNKNOWN_TOPIC: Final[tuple[str, str]] = "unknown-topic-waits", "unknown-topic-other-error"
_OUT_OF_RANGE: Final[tuple[str, str]] = "out-of-range-waits", "out-of-range-other-error"
_DELETED_RECORDS: Final[tuple[str, str]] = "deleted-records-waits", "deleted-records-other-error"
_UNKNOWN_EPOCH: Final[tuple[str, str]] = "unknown-epoch-waits", "unknown-epoch-other-error"


@dataclass(frozen=True, slots=True)
class _Asked:
    part: Part
    what: Body
    log: Log
    answer: Body | None

    @property
    def offset(self) -> int:
        return integer(self.what, "fetch_offset")

    @property
    def epoch(self) -> int:
        return integer(self.what, "current_leader_epoch", -1)

    @property
    def last_epoch(self) -> int:
        return integer(self.what, "last_fetched_epoch", -1)

    @property
    def error(self) -> int:
        return integer(self.answer, "error_code")

    @property
    def batches(self) -> Sequence[Body]:
        return () if self.answer is None else tuple(items(self.answer, "records"))

    @property
    def bytes(self) -> int:
        return sum(integer(batch, "bytes") for batch in self.batches)

    @property
    def room(self) -> int:
        return integer(self.what, "partition_max_bytes", 1 << 31)

    def adds(self, t: int, surely: bool) -> int:
        """The bytes that the partition adds to the fetch at `t`: with `surely` at least, otherwise at most."""
        here = self.log.least(t, self.offset) if surely else self.log.most(t, self.offset)
        # A first batch that is larger than max_bytes of the partition is returned whole.
        room = self.room if surely else max(self.room, self.log.largest(self.offset))
        return min(here, room)

    @property
    def whole(self) -> Log:
        """The log up to the high watermark, with records of open transactions."""
        return self.log.whole if isinstance(self.log, CommittedLog) else self.log

    @property
    def end(self) -> int:
        """The offset after the last record of the response, or the requested one."""
        return max((integer(batch, "last") + 1 for batch in self.batches), default=self.offset)


def fetches(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    for fetching in _fetchings(bounds, scene, topics):
        yield from fetching.rows()


def sessions(bounds: Bounds, scene: Scene) -> Rows:
    """F6, for fetch sessions. An unknown session, or a session epoch that is not the next, is refused at once. The next
    epoch is accepted."""
    for one in scene.of("fetch"):
        if one.session and one.answer_t is not None and one.error in (0, NOT_THE_NEXT):
            yield answered_with("F6", "next-refused", one, one.error, 0, ": the next request of the session")
        if one.session and one.answer_t is not None and one.error == NO_SESSION:
            age_ns = one.answer_t - one.session_t
            if age_ns < SESSION_STAYS_NS:  # or the session of a follower has taken its place
                allowed = "the session, because a session stays for two minutes"
                seen = f"no session after {age_ns // MS} ms"
                late = one.session_t, one.answer_t
                yield late_row("F6", "session-evicted", one, allowed, seen, late)
        if not one.session_error or one.behind or one.unread or one.throttled_ms:
            continue
        promise, gap = f"{named(one.session_error)} at once:", one.wait_ms * MS or NO_WAIT_GAP_NS
        row = in_time(bounds, "F6", "session-waits", one, one.t, gap, promise)
        yield row
        if (
            row.status is RowStatus.KEPT and one.error != NO_SESSION
        ):  # there may be no room for the session any more
            yield answered_with("F6", "session-accepted", one, one.error, one.session_error)


def turns(scene: Scene, topics: Topics) -> Rows:
    """F7, for fetch sessions whose limit leaves no room for all records: a partition that returned records comes last
    in the next response. So each partition returns records once before any partition returns records for the second
    time (KIP-227)."""
    passed: dict[int, dict[Part, int]] = defaultdict(dict)
    for one in scene.of("fetch") if scene.name else ():
        if one.answer_t is None or one.unread or one.throttled_ms or one.error:
            passed.pop(one.session, None)
            continue
        asked = [_Asked(part, what, topics.logs[part], answer) for part, what, answer in one.pairs]
        brought = any(a.batches for a in asked)
        for a in asked if one.session else ():
            topic = topics.topics.get(a.part.topic)
            if topic is None or topic.replicas > 1:
                continue
            turn = passed[one.session].pop(a.part, 0)
            starves = brought and not a.batches and not a.error and a.log.least(one.t, a.offset)
            if starves:
                passed[one.session][a.part] = turn + 1
            starved = starves and turn + 1 >= len(asked)
            if starved or (a.batches and turn):
                allowed = f"records of {a.part}, before another partition returns records for the second time"
                seen = f"no records of it in {turn + 1} answers with records of other partitions"
                yield checked("F7", "partition-starved", one, not starved, allowed, seen)


def compacted(scene: Scene) -> Rows:
    """M1, for a compacted topic: the last record of each key stays. A record without a value stays for
    `delete.retention.ms`, which is longer than a scene."""
    keys = {text(x.body, "topic"): [*texts(x.body, "keys")] for x in scene.stimuli}
    for one in scene.of("fetch"):
        for part, what, answer in one.pairs:
            # The last batch of a producer may stay without records.
            batches = {integer(x, "last"): integer(x, "count") for x in items(answer, "records")}
            there = {at for at, count in batches.items() if count}
            through = range(integer(what, "fetch_offset"), 1 + max(batches, default=-1))
            each = {key: at for at, key in enumerate(keys.get(part.topic, ()))}
            last = {*each.values()} & {*through}
            if last and len(there) < len(through):
                gone, allowed = sorted(last - there), f"the last records of their keys, {sorted(last)}"
                yield checked("M1", "compacted-away", one, not gone, allowed, f"none at {gone}")


def at_followers(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """F3, for a consumer's fetch that waits at a follower (KIP-392): replicated records answer it. A follower gets the
    new high watermark with its next fetch, which may wait. So the bound is half of the remaining wait."""
    spans = scene.stopped
    for one in scene.of("fetch"):
        asked = [_Asked(part, what, topics.logs[part], said) for part, what, said in one.pairs]
        if not one.at_second or one.behind or one.unread or one.error or len(asked) != 1:
            continue
        (a,), deadline = asked, one.t + one.wait_ms * MS
        topic, until = topics.topics.get(a.part.topic), one.until_t
        if topic is None or topic.delete_t is not None or a.error or a.offset > a.log.replicated_end(one.t):
            continue
        made = (x.ack_t or 0 for x in a.log.surely(END_OF_TIME) if x.acks == -1 and x.base >= a.offset)
        ready_by = min(made, default=END_OF_TIME)
        if one.t < ready_by < deadline and not any(begin <= until and one.t <= end for begin, end in spans):
            half = (deadline - ready_by) // 2
            promise = "an answer with the replicated records, long before max_wait_ms,"
            yield in_time(bounds, "F3", "at-follower", one, ready_by + half, half, promise)


def waits(bounds: Bounds, scene: Scene, topics: Topics) -> Iterator[Fetching]:
    """The fetches to judge: their circumstances are known, and their responses have no error."""
    return (one for one in _fetchings(bounds, scene, topics) if one.known)


def _fetchings(bounds: Bounds, scene: Scene, topics: Topics) -> Iterator[Fetching]:
    for one in scene.of("fetch"):
        if (
            one.behind
            or one.at_second
            or integer(one.body, "session_id")
            or integer(one.body, "session_epoch", -1) > 0
        ):
            continue
        if one.unread or one.throttled_ms or one.error or integer(one.body, "replica_id", -1) >= 0:
            continue
        committed = integer(one.body, "isolation_level") == COMMITTED
        asked = [
            _Asked(part, what, CommittedLog.of(log) if committed else log, answer)
            for part, what, answer in one.pairs
            for log in (topics.logs[part],)
        ]
        if asked and not any(
            x.part.topic in topics.topics and topics.topics[x.part.topic].compacts for x in asked
        ):
            yield Fetching(bounds, scene, topics, one, asked)


@dataclass(slots=True)
class Fetching:
    bounds: Bounds
    scene: Scene
    topics: Topics
    one: Exchange
    asked: list[_Asked]

    @property
    def deadline(self) -> int:
        return self.one.t + self.one.wait_ms * MS

    @property
    def gap(self) -> int:
        """The lateness of the response if a broker lets a ready fetch wait until its time-out."""
        return self.one.wait_ms * MS or NO_WAIT_GAP_NS

    @property
    def until(self) -> int:
        """The latest time at which an append or another change may affect the response."""
        return self.one.watched_t if self.one.answer_t is None else self.one.answer_t

    def rows(self) -> Rows:
        if self.one.answer_t is None and self.one.watched_t < self.deadline:
            return  # cut by the scene while it waited: no occasion
        if all(a.part.topic not in self.topics.topics for a in self.asked):
            yield self._error("F6", _UNKNOWN_TOPIC, self.asked[0], unknown_topic(self.one))
            return
        there = [a for a in self.asked if not self._absent(a)]
        if len(there) < len(self.asked):
            yield from replace(self, asked=there)._beside_absent()
            return
        known = [self.topics.topics[a.part.topic] for a in self.asked]
        if any(topic.delete_t is not None and topic.delete_t <= self.until for topic in known):
            yield from self._deleted()
            return
        yield from self._moved()
        if any(a.log.settled_t > self.one.t or self._excused(a) for a in self.asked):
            return
        if any(topic.replicas > 1 for topic in known):
            yield from self._replicated()
            return
        yield from self._placed()
        wrong = self._wrong()
        if wrong is not None:
            yield wrong
            yield from self._bounds_of_logs(self.one.t)
        else:
            yield from self._overtaken() if any(map(self._doubtful, self.asked)) else self._valid()

    def _absent(self, a: _Asked) -> bool:
        topic = self.topics.topics.get(a.part.topic)
        partitions = None if topic is None else topic.partitions_at(self.one.t)
        return topic is None or (partitions is not None and a.part.number >= partitions)

    def _beside_absent(self) -> Rows:
        """F2 and F3, for existing partitions next to missing ones. A missing partition does not complete a fetch in
        Kafka, and nothing is promised about it; but it must not prevent a wake-up either."""
        if not self.asked or not self.known:
            return
        ready_by = self._ready_by()
        if self.one.t < ready_by < self.deadline - EARLY_NS:
            yield self._woken_in_time(self._clause("F3"), ready_by)
        elif ready_by >= self.deadline and self.one.wait_ms > 0:
            yield self._at_max_wait()

    @property
    def known(self) -> bool:
        """Whether the requested offsets exist, and each of its partitions has one replica, which stays the leader."""
        topics = [self.topics.topics.get(a.part.topic) for a in self.asked]
        return (
            all(topic is not None and topic.replicas == 1 and topic.delete_t is None for topic in topics)
            and not any(a.error or a.log.settled_t > self.one.t or self._doubtful(a) for a in self.asked)
            and self._wrong() is None
        )

    def ready(self) -> tuple[int, int]:
        """The earliest time at which the fetch may have enough data, and the time from which on it certainly has."""
        return self._ready_from(), self._ready_by()

    @property
    def had_enough(self) -> bool:
        """Whether the response has as many bytes as the fetch waited for, or as fit. A last batch that does not fit is
        not in the response, although its bytes count while the fetch waits."""
        least = integer(self.one.body, "min_bytes")
        came = sum(a.bytes for a in self.asked)
        most = integer(self.one.body, "max_bytes", 1 << 31)
        cut = came > 0 and any(a.log.largest(a.end) > min(a.room - a.bytes, most - came) for a in self.asked)
        return cut or came >= min(least, self._room)

    def _wrong(self) -> Row | None:
        """The row for a partition whose requested offset or epoch is certainly wrong. None if there is none."""
        for a in self.asked:
            beyond = a.offset > a.whole.most_end(self.until)
            if beyond and a.last_epoch >= 0:
                return self._diverges(a) if self._known_epoch(a.part, a.last_epoch) else None
            if a.offset < 0 or beyond:
                return self._error("F6", _OUT_OF_RANGE, a, OUT_OF_RANGE)
            if a.offset < a.log.low_at(self.one.t):
                return self._error("D1", _DELETED_RECORDS, a, OUT_OF_RANGE)
            if self._ahead(a):
                return self._error("F6", _UNKNOWN_EPOCH, a, UNKNOWN_LEADER_EPOCH)
        return None

    def _ahead(self, a: _Asked) -> bool:
        """Whether no broker knows the requested leader epoch yet."""
        epoch = self.topics.epoch(a.part, self.until)
        return epoch is not None and a.epoch > epoch + EPOCH_FAR

    def _excused(self, a: _Asked) -> bool:
        """FENCED_LEADER_EPOCH is about former epochs, so it does not excuse a later one."""
        return a.error in EXCUSED and not (a.error == FENCED_LEADER_EPOCH and self._ahead(a))

    def _doubtful(self, a: _Asked) -> bool:
        """Whether the right response for this partition is unknown."""
        if a.offset > a.log.least_end(self.one.t):
            return True
        # The offset is below a DeleteRecords that ran at about this time.
        low = max((low for _, low in a.log.low), default=END_OF_TIME)
        if any(t <= self.until for t in a.log.deletes_t) and a.offset < low:
            return True
        starts = {append.base for append in a.log.surely(END_OF_TIME)}
        inside = a.offset not in starts and a.offset < a.log.least_end(self.one.t)
        epochs = [one for one in (a.epoch, a.last_epoch) if one >= 0]
        return inside or not all(self._known_epoch(a.part, one) for one in epochs)

    def _known_epoch(self, part: Part, epoch: int) -> bool:
        return epoch == self.topics.epoch(part, self.one.t)

    def _diverges(self, a: _Asked) -> Row:
        """The log of the reader has diverged (KIP-595): the response comes at once, without an error, and has the end
        of the epoch."""
        one, promise = self.one, "the end offset of last_fetched_epoch at once:"
        row = in_time(self.bounds, "F6", "diverging-waits", one, one.t, self.gap, promise)
        if row.status is not RowStatus.KEPT:
            return row
        said = None if a.answer is None else a.answer.get("diverging_epoch")
        end = integer(said, "end_offset", -1) if isinstance(said, Mapping) else -1
        least, most = a.log.least_end(one.t), a.log.most_end(self.until)
        if not a.error and least <= end <= most:
            return row
        allowed = f"no error, and {in_words('end offset of last_fetched_epoch', least, most)}"
        return broken("F6", "diverging-other-end", one, allowed, f"{named(a.error)}, {end}")

    def _error(self, clause: str, ways: tuple[str, str], a: _Asked, error: int) -> Row:
        """The response comes at once, with this error. `ways`: the kinds of violation (the fetch waits, or gets another
        error)."""
        one, (waits, other) = self.one, ways
        if clause == "D1" and a.error == error:  # F6 judges the time of the response
            return kept(clause)
        row = in_time(self.bounds, clause, waits, one, one.t, self.gap, f"{named(error)} at once:")
        if row.status is not RowStatus.KEPT or (a.answer is not None and a.error == error):
            return row
        if a.answer is None:
            return broken(clause, other, one, named(error), "no answer for the partition")
        return answered_with(clause, other, one, a.error, error, excused=EXCUSED)

    def _overtaken(self) -> Rows:
        """D1, for a fetch that waited until max_wait while the records before its offset were deleted. Its final read
        must not find these records."""
        read_t = self.deadline - EARLY_NS
        if self.one.answer_t is None or self.one.answer_t < read_t or self._ready_from() <= self.until:
            return
        for a in self.asked:
            if a.offset < a.log.low_at(read_t):
                about = ": the records were deleted while the fetch waited"
                yield error_is("D1", "deleted-while-it-waits", self.one, a.error, OUT_OF_RANGE, about)

    def _deleted(self) -> Rows:
        """F8, for a fetch that waited while one of its topics was deleted."""
        known = {a.part.topic: self.topics.topics[a.part.topic] for a in self.asked}
        gone = [topic for topic in known.values() if topic.delete_t is not None]
        if len(gone) > 1 or self._ready_from() <= (gone[0].deleted_t or END_OF_TIME):
            return
        if not any(a.log.settled_t > self.one.t for a in self.asked):
            told = any(a.error for a in self.asked)
            yield from deleted(self.bounds, self.one, gone[0], "waits-for-deleted", self.deadline, told)

    def _moved(self) -> Rows:
        """F8, for a fetch that names the leader epoch, and waited while another broker became the leader."""
        one = self.one
        for a in self.asked if len(self.asked) == 1 and self.asked[0].epoch >= 0 else ():
            told = self.topics.leaders[a.part]
            before = [node for t, node in told if t <= one.t]
            if not before or (one.answer_t is not None and not a.error) or self._ready_from() < END_OF_TIME:
                continue
            moved_t = min(
                (t for t, node in told if t > one.t and node not in (before[-1], -1)), default=END_OF_TIME
            )
            if moved_t < self.deadline:
                promise, late_ms = (
                    "an error, because the leader has moved,",
                    self.bounds.declared.late_topics_ms,
                )
                gap = self.deadline - moved_t
                yield in_time(
                    self.bounds, "F8", "waits-for-moved", one, moved_t, gap, promise, late_ms=late_ms
                )

    def _ready_from(self) -> int:
        """The earliest time at which the fetch can have enough data."""
        return self._reached(False, [t for a in self.asked for t in a.log.moments(False)])

    def _ready_by(self) -> int:
        """The time from which on the fetch certainly has enough data."""
        return self._reached(True, [t for a in self.asked for t in a.log.moments(True)])

    def _reached(self, surely: bool, moments: list[int]) -> int:
        """The first of these times (and of the time of the request) at which the fetch has enough bytes."""
        least = min(integer(self.one.body, "min_bytes"), integer(self.one.body, "max_bytes", 1 << 31))
        last_t = max(self.deadline, self.until)
        for t in sorted({self.one.t, *(t for t in moments if self.one.t < t <= last_t)}):
            if sum(a.adds(t, surely) for a in self.asked) >= least:
                return t
        return END_OF_TIME

    def _clause(self, of_fetches: str) -> str:
        committed = any(isinstance(a.log, CommittedLog) for a in self.asked)
        return OF_TRANSACTIONS.get(of_fetches, of_fetches) if committed else of_fetches

    @property
    def _over_parts(self) -> bool:
        """Whether only several partitions together can have min_bytes. (If so, F7 judges the fetch.)"""
        least = integer(self.one.body, "min_bytes")
        return len(self.asked) > 1 and all(a.log.most(self.until, a.offset) < least for a in self.asked)

    def _valid(self) -> Rows:
        one, deadline = self.one, self.deadline
        ready_from, ready_by = self._ready_from(), self._ready_by()
        errors = [a.error for a in self.asked if a.error]
        if errors:
            clause, allowed = (
                ("M1", "the records") if ready_by <= one.t else ("F1", "no error, and the fetch waits")
            )
            yield broken(self._clause(clause), "error-without-reason", one, allowed, named(errors[0]))
            return
        if any(integer(batch, "base") < 0 for a in self.asked for batch in a.batches):
            yield broken("F7", "part-of-a-batch", one, "whole batches, or no batch", "a part of one batch")
            return
        if any(corrupt(a.batches) for a in self.asked):
            yield broken(
                "M1", "other-checksum", one, "the records as they were appended", "records with another checksum",
            )  # fmt: skip
            return
        expired = one.answer_t is not None and one.answer_t >= deadline - EARLY_NS and ready_from > deadline
        yield from self._bounds_of_logs(deadline - EARLY_NS if expired and one.wait_ms > 0 else one.t)
        yield from self._bounded()
        yield from self._decided()
        if one.wait_ms <= 0 or ready_by <= one.t:
            yield from self._at_once()
            return
        if ready_from > one.t and one.answer_t is not None:
            yield self._not_before(ready_from)
        if ready_by < deadline - EARLY_NS:  # later its expiry may be on its way
            yield from self._woken(ready_by)
            return
        yield self._at_max_wait()
        if expired:
            yield from self._there(self._clause("F5"), "empty-at-max-wait", deadline - EARLY_NS)

    def _bounded(self) -> Rows:
        """F7, for a fetch whose limits are less than the available records. No partition returns more than its limit,
        and the response returns no more than max_bytes. The exception is one batch that is too large (KIP-74): the
        first batch is always returned."""
        most = integer(self.one.body, "max_bytes", 1 << 31)
        there = [a.log.least(self.one.t, a.offset) for a in self.asked]
        if sum(there) <= most and all(here <= a.room for here, a in zip(there, self.asked, strict=True)):
            return
        yield from self._in_order()
        came = [[integer(batch, "bytes") for batch in a.batches] for a in self.asked]
        large = [held for held, a in zip(came, self.asked, strict=True) if sum(held) > a.room]
        batches = sum(map(len, came))
        total = sum(map(sum, came))
        if not batches:
            if self.one.answer is not None and self.one.version > 2:
                allowed = "one batch of the available records, of any size"
                yield broken("F7", "no-batch", self.one, allowed, "none")
            return
        right = len(large) <= 1 and all(len(held) == 1 for held in large) and (total <= most or batches == 1)
        allowed = f"{most} bytes, or one batch, and at most max_bytes of each partition"
        yield checked("F7", "too-much", self.one, right, allowed, f"{batches} batches of {total} bytes")

    def _in_order(self) -> Rows:
        """F7: if there is no room for all, the first requested partition with records returns them (KIP-74), unless
        records that came to an earlier partition may have taken the room. A session has an order of its own."""
        one = self.one
        for a in self.asked if one.answer is not None and not one.session else ():
            if a.log.least(one.t, a.offset):
                allowed = f"records of {a.part}, the first partition of the request that has records"
                brought = any(other.batches for other in self.asked)
                if a.batches or brought:
                    yield checked(
                        "F7", "out-of-order", one, a.batches, allowed, "only records of other partitions"
                    )
                return
            if a.log.most(self.until, a.offset):
                return

    def _not_before(self, ready_from: int) -> Row:
        one = self.one
        assert one.answer_t is not None
        earliest = min(self.deadline, ready_from)
        least = integer(one.body, "min_bytes")
        there = sum(a.log.most(one.answer_t, a.offset) for a in self.asked)
        what = "max_wait" if earliest == self.deadline else "the event that satisfies the fetch"
        allowed = f"not before {what}, {after(earliest, one.t)} after the request (less {EARLY_NS // MS} ms)"
        seen = f"answered after {after(one.answer_t, one.t)}, with at most {there} of {least} bytes available"
        right, appends = one.answer_t >= earliest - EARLY_NS, self._appends(END_OF_TIME)
        return checked(self._clause("F1"), "early", one, right, allowed, seen, *appends)

    def _at_once(self) -> Rows:
        """F4, or F7 if only several partitions together have enough bytes."""
        one = self.one
        clause = self._clause("F7" if self._over_parts and one.wait_ms > 0 else "F4")
        promise = f"an answer at once with {'max_wait 0' if one.wait_ms <= 0 else 'min_bytes available'},"
        yield in_time(
            self.bounds, clause, "waits-though-ready", one, one.t, self.gap, promise, *self._appends(one.t)
        )
        if one.answer_t is not None:
            yield from self._there(clause, "empty-at-once", one.t)

    def _woken(self, ready_by: int) -> Rows:
        """F3, or F7: an append makes the waiting fetch ready."""
        clause = self._clause("F7" if self._over_parts else "F3")
        woken = self._woken_in_time(clause, ready_by)
        yield woken
        if self.one.answer_t is not None and woken.status is RowStatus.KEPT:
            yield self._enough(clause)

    def _woken_in_time(self, clause: str, ready_by: int) -> Row:
        one = self.one
        promise = f"an answer {after(ready_by, one.t)} after the request, when the fetch is satisfied,"
        gap = self.deadline - ready_by
        return in_time(
            self.bounds, clause, "not-woken", one, ready_by, gap, promise, *self._appends(ready_by)
        )

    def _at_max_wait(self) -> Row:
        one, gap = self.one, max(self.one.wait_ms * MS, FORGOTTEN_NS)
        promise = f"an answer at max_wait {one.wait_ms} ms,"
        return in_time(self.bounds, "F2", "late", one, self.deadline, gap, promise)

    def _enough(self, clause: str) -> Row:
        """An answer before max_wait_ms has at least min_bytes. The records may differ, because other records may have
        been appended since."""
        allowed, appends = f"at least {integer(self.one.body, 'min_bytes')} bytes", self._appends(END_OF_TIME)
        cause = "answered-with-too-little"
        return checked(clause, cause, self.one, self.had_enough, allowed, "fewer", *appends)

    def _there(self, clause: str, cause: str, t: int) -> Rows:
        """The records that were available at `t` are in the answer. Without such records there is no occasion."""
        one = self.one
        missing = []
        there = 0
        for a in self.asked:
            end = a.log.least_end(t)
            there += max(end - a.offset, 0)
            if end > a.offset and a.end < end:
                missing.append(f"{a.part} up to offset {end}, not {a.end}")
        if not there or sum(a.log.most(self.until, a.offset) for a in self.asked) > self._room:
            return
        allowed = f"records of {'; '.join(missing)}"
        yield checked(clause, cause, one, not missing, allowed, "no records", *self._appends(t))

    def _bounds_of_logs(self, t: int) -> Rows:
        """F10, and R4 for the last stable offset: the answer has the bounds that the logs had at `t` or later."""
        for a in self.asked:
            marks: tuple[tuple[str, str, tuple[int, int]], ...] = (
                ("F10", "high-watermark", (a.whole.least_end(t), a.whole.most_end(self.until))),
                ("R4", "last-stable-offset", self._stable(a, t)),
                ("F10", "log-start-offset", a.log.start(t, self.until)),
            )
            for clause, way, (low, high) in marks if not a.error else ():
                name = way.replace("-", " ")
                mark = integer(a.answer, way.replace("-", "_"), -1)
                right = low <= mark <= high
                if mark >= 0 and (not right or clause == "F10" or a.log.transactions):
                    allowed, appends = f"{in_words(name, low, high)} of {a.part}", self._appends(self.until)
                    yield checked(clause, way, self.one, right, allowed, f"{name} {mark}", *appends)

    def _stable(self, a: _Asked, t: int) -> tuple[int, int]:
        """The bounds of the last stable offset for a fetch that was sent at `t`."""
        log = CommittedLog.of(a.whole)
        return log.least_end(t), log.most_end(self.until)

    def _decided(self) -> Rows:
        """Transactions in fetch responses: R1 and R3, the records that a read_committed fetch returns, and those that
        are listed as aborted."""
        for a in self.asked if self.one.answer is not None else ():
            if not a.log.transactions:
                continue
            if isinstance(a.log, CommittedLog):
                limit = a.log.most_end(self.until)
                if a.end > limit or limit < a.whole.least_end(self.one.t):
                    allowed = f"no record from offset {limit} on, where a transaction is open"
                    seen, appends = f"records up to offset {a.end}", self._appends(self.until)
                    cause = "open-transaction-shown"
                    yield checked("R1", cause, self.one, a.end <= limit, allowed, seen, *appends)
                yield from self._listed(a)

    def _listed(self, a: _Asked) -> Rows:
        """R3: the list of aborted transactions has each aborted transaction with records in the response, with its
        first offset. It has no committed transaction, whose records the reader would then drop."""
        said = {
            (integer(one, "producer_id"), integer(one, "first_offset"))
            for one in items(a.answer, "aborted_transactions")
        }
        came = {integer(batch, "base") for batch in a.batches}
        for one in a.log.transactions:
            first = a.log.first_of(one)
            bases = {append.base for append in a.log.appends if append.within is one}
            if first is None or one.commits is None or not bases & came:
                continue
            listed = (one.producer.id, first) in said
            cause = "listed" if one.commits else "not-listed"
            place = f"in the list of aborted transactions, from offset {first} on"
            allowed = f"producer {one.producer.id} {'not ' * one.commits}{place}"
            seen = f"aborted transactions: {sorted(said)}"
            yield checked("R3", cause, self.one, listed is not one.commits, allowed, seen)

    @property
    def _room(self) -> int:
        """The limit of bytes for the first batch: the smallest of max_bytes and the limits of the partitions."""
        return min(integer(self.one.body, "max_bytes", 1 << 31), *(a.room for a in self.asked))

    def _placed(self) -> Rows:
        """M1: an acknowledged record is at its acknowledged offset; a response begins with the batch that contains
        the offset, and leaves no record out."""
        for a in self.asked:
            if not a.batches or integer(a.batches[0], "base") < 0:
                continue
            first = integer(a.batches[0], "base")
            begins = a.offset in {append.base for append in a.log.surely(self.one.t)}
            holes = [
                integer(x, "last") + 1 for x, y in pairwise(a.batches)
                if integer(x, "last") + 1 != integer(y, "base")
            ]  # fmt: skip
            right = first <= a.offset <= integer(a.batches[0], "last") and (not begins or first == a.offset)
            allowed, seen = (f"a batch at offset {x}" for x in (a.offset, first))
            row, allowed = (
                kept("M1").but(right, "other-offset", self.one, allowed, seen),
                f"a batch at {holes}",
            )
            yield row.but(not holes, "batch-missing", self.one, allowed, "only later batches")

    def _replicated(self) -> Rows:
        """F9, for a fetch while an in-sync replica was stopped. F1 too, if the fetch requests records that came after
        the stop: then no event can answer the fetch before max_wait_ms."""
        one = self.one
        yield from self._woken_by_replicas()
        if one.answer_t is None:
            return
        for begin, end in self.scene.stopped:
            if not (begin <= one.t and one.answer_t <= end):
                continue
            for a in self.asked:
                held_back = [
                    append for append in a.log.surely(one.t) if append.t >= begin and append.base >= a.offset
                ]
                in_sync = self.topics.in_sync_around(a.part, begin, one.answer_t)
                stays = self.bounds.stays_in_sync(begin, one.answer_t)
                if not held_back or in_sync is None or in_sync < 2 or not stays:
                    continue
                first = min(append.base for append in held_back)
                seen = f"records up to offset {a.end}, while an in-sync replica was stopped"
                allowed = f"only records below offset {first}"
                yield checked("F9", "above-high-watermark", one, a.end <= first, allowed, seen)
                if (
                    len(self.asked) == 1
                    and not a.error
                    and one.wait_ms > 0
                    and a.log.most_end(begin) <= a.offset <= a.log.replicated_end(begin)
                ):
                    yield self._not_before(END_OF_TIME)

    def _woken_by_replicas(self) -> Rows:
        """F3 for a topic with replicas: an acknowledged append with acks=-1 is below the high watermark."""
        one = self.one
        if len(self.asked) > 1 or integer(one.body, "min_bytes") > 1 or any(a.error for a in self.asked):
            return
        (a,) = self.asked
        if a.offset > a.log.replicated_end(one.t):
            return
        replicated = [x for x in a.log.surely(END_OF_TIME) if x.acks == -1]
        ready_by = min((x.ack_t or 0 for x in replicated if x.base >= a.offset), default=END_OF_TIME)
        if one.t < ready_by < self.deadline - EARLY_NS:
            yield from self._woken(ready_by)

    def _appends(self, t: int) -> list[int]:
        """The events of the last appends that were taken by `t`."""
        made = [append for a in self.asked for append in a.log.taken(t)]
        return [i for append in made[-2:] for i in append.exchange.events]
