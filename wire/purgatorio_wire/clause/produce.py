"""The clauses M1 to M7: the response to a Produce, and the time of the response."""

from collections.abc import Iterable, Sequence
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, FORGOTTEN_NS, MS, Bounds
from purgatorio_wire.history.finding import (
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
    timed,
    undecided,
)
from purgatorio_wire.history.history import (
    END_OF_TIME,
    EXCUSED,
    LOADING,
    Exchange,
    Part,
    Scene,
    integer,
    items,
    text,
)
from purgatorio_wire.history.log import (
    Append,
    Log,
    Topic,
    Topics,
    corrupt,
    limit,
    produced,
    summed,
    transactional,
    written_by,
)
from purgatorio_wire.history.transaction import CONCURRENT, INIT, Transaction, begins, renews
from purgatorio_wire.trace.record import BY_NOBODY, SEQUENCES, Body, Written

CORRUPT, TIMED_OUT, TOO_LARGE, NOT_ENOUGH, INVALID_ACKS = 2, 7, 10, 19, 21
OUT_OF_ORDER, UNKNOWN_PRODUCER = 45, 59
INVALID_EPOCH, FENCED = 47, 90
LOOKED_NS: Final = 1000 * MS
"""The client waits at least this long for the broker to close a connection."""
ENDS_GAP_NS: Final = 4000 * MS
BACK_NS: Final = 40_000 * MS
"""A resumed replica catches up within this time with the few records of a scene. Its node may first have to register
again."""
REMEMBERED: Final = 5
FEW: Final = frozenset({NOT_ENOUGH, 20})
BEGUN_BY_A_REPEAT: Final = "the transaction began with a repeated batch of an earlier transaction (KIP-890)"
FOLLOWS_TIMES: Final = 5
"""A replica follows within this number of times `late_topics_ms` after the creation of a topic. A replica that was
stopped before is slower."""
UNHEARD: Final = frozenset({*LOADING, 13, NOT_ENOUGH, CONCURRENT})
"""Errors of an append for which the leader could not verify the transaction (KIP-890): the client must send it
again."""


def produces(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    keyed = {text(x.body, "topic") for x in scene.stimuli if text(x.body, "what") == "keys"}
    for one in scene.of("produce"):
        acks = integer(one.body, "acks")
        if acks == 0:
            yield from _unanswered(scene, one, topics)
            yield from _told_by_the_end(bounds, one, topics)
            continue
        if one.unread:
            continue
        for part, batches, answer in produced(one):
            topic, count = topics.topics.get(part.topic), summed(batches, "count")
            if topic is None or not count or topics.logs[part].settled_t > one.t:
                continue
            if topic.delete_t is not None:
                done_t = topic.deleted_t or END_OF_TIME
                if acks == -1 and any(begin <= one.t and done_t <= end for begin, end in scene.stopped):
                    due, refused = one.t + one.wait_ms * MS, bool(integer(answer, "error_code"))
                    yield from deleted(bounds, one, topic, "append-waits-for-deleted", due, refused)
            elif acks not in (-1, 1):
                if answer is not None:
                    error, about = integer(answer, "error_code"), f" for acks {acks}"
                    cause = "invalid-acks-accepted"
                    yield answered_with("M3", cause, one, error, INVALID_ACKS, about, excused=EXCUSED)
            elif part.topic not in keyed and any(forbids := _forbids(bounds, topic, one, batches)):
                if answer is not None and all(forbids):
                    error = integer(answer, "error_code")
                    yield error_is("M1", "forbidden-accepted", one, error, None, f": {forbids[0]}")
                    if wrong := [integer(x, "batch_index") for x in items(answer, "record_errors")]:
                        allowed = f"errors of all {count} records, which have the same key"
                        same = wrong == [*range(count)]
                        yield checked("M1", "other-records", one, same, allowed, f"errors of records {wrong}")
            elif "max.message.bytes" in topic.configs and integer(answer, "error_code") == TOO_LARGE:
                allowed = "no error: the topic's max.message.bytes allows the batch"
                yield broken("M1", "refused", one, allowed, named(TOO_LARGE))
            elif corrupt(batches):
                if answer is not None:
                    error = integer(answer, "error_code")
                    about = " for a corrupt batch"
                    yield answered_with("M1", "corrupt-accepted", one, error, CORRUPT, about, excused=EXCUSED)
            else:
                yield from _by_producer(bounds, one, part, batches, answer, topics, scene)


def _by_producer(
    bounds: Bounds, one: Exchange, part: Part, batches: list[Body], answer: Body | None, topics: Topics, scene: Scene
) -> Rows:  # fmt: skip
    """An append of valid batches: in a transaction, of an idempotent producer, or of another producer."""
    topic, log, count = topics.topics[part.topic], topics.logs[part], summed(batches, "count")
    written = written_by(batches)
    if transactional(batches):
        if answer is not None and topic.replicas == 1:
            yield from _in_transaction(one, part, count, written, answer, topics)
    elif written != BY_NOBODY and topic.replicas > 1:
        if _sent_since(one, written, log, scene):
            yield from _stopped(bounds, one, part, answer, topics, scene)
    elif _open_beside(one, written, log):
        if answer is not None:
            error, about = integer(answer, "error_code"), ": the producer has an open transaction there"
            yield error_is("M1", "forbidden-accepted", one, error, None, about)
    elif other := _other_epoch(one, written, log):
        yield from _refused_epoch(one, written, answer, *other)
    elif written != BY_NOBODY and not _is_next(one, written, before := _before(one, written, log)):
        yield from _out_of_order(one, written, count, answer, before)
    elif topic.replicas == 1:
        yield from _acknowledged(one, part, count, answer, topics)
    else:
        yield from _stopped(bounds, one, part, answer, topics, scene)


def _forbids(bounds: Bounds, topic: Topic, one: Exchange, batches: list[Body]) -> list[str]:
    """Why each of the topic's possible settings forbids a batch of records without keys; "" if it does not."""
    why, size = list[str](), summed(batches, "bytes")
    if len(batches) > 1:
        return ["a partition takes one batch of a request"]
    if any(map(_invalid, batches)):
        return ["the batch has two numbers of records or no sequence number, or is a marker"]
    for configs in topic.settings(one, bounds.declared.late_topics_ms * MS):
        small = size > limit(configs, "max.message.bytes", size)
        compacts = "compact" in configs.get("cleanup.policy", "").split(",")
        keys = "a compacted topic takes no record without a key" if compacts else ""
        why.append(f"a batch of {size} bytes is above max.message.bytes" if small else keys)
    return why


def _invalid(batch: Body) -> bool:
    spans, unnumbered = (
        integer(batch, "last") - integer(batch, "base") + 1,
        integer(batch, "base_sequence") < 0,
    )
    return spans != integer(batch, "count") or unnumbered or bool(batch.get("control"))


def _unanswered(scene: Scene, one: Exchange, topics: Topics) -> Rows:
    """M2. An occasion is a Produce with acks=0 that another request follows on the connection, or that names a
    missing partition."""
    if one.answer is not None or one.again:
        extra = [*one.again, *([one.answer] if one.answer is not None else [])]
        seen = f"answered after {after(extra[0].t, one.t)}"
        yield broken("M2", "acks-0-answered", one, "no answer", seen, *(event.i for event in extra))
        return
    behind = [x for x in scene.lanes[one.conn].requests if x.i > one.i and x.owed]
    may_close = not behind and any(topics.logs[part].settled_t > one.t for part, *_ in produced(one))
    if may_close or any(x.answer is not None for x in behind):
        yield kept("M2", "acks-0-answered")
    elif behind and one.closed is not None and one.closed.by == "peer":
        seen = f"the broker closed the connection after {after(one.closed.t, one.t)}"
        yield broken(
            "M2", "closed-after-acks-0", one, "the connection stays open", seen, behind[0].i, one.closed.i
        )


def _told_by_the_end(bounds: Bounds, one: Exchange, topics: Topics) -> Rows:
    """M2, for a Produce with acks=0 that names a partition which its topic does not have. Only the end of the
    connection tells the producer to refresh its metadata. Without a test for this end there is no row."""
    named_parts = [part for part, *_ in produced(one) if part.topic in topics.topics]
    absent = [
        part for part in named_parts
        if topics.topics[part.topic].delete_t is None
        and part.number >= (topics.topics[part.topic].partitions_at(one.t) or part.number + 1)
    ]  # fmt: skip
    ended_t = one.closed.t if one.closed is not None and one.closed.by == "peer" else None
    if not absent or (ended_t is None and one.watched_t < one.t + LOOKED_NS):
        return
    by = bounds.by(one.t, one.t, ended_t, gap_ns=ENDS_GAP_NS, watched_t=one.watched_t)
    promise = "the broker closes the connection, because the append is refused,"
    yield timed("M2", "refused-but-open", one, by, promise, one.t, what="closed")


def _in_transaction(
    one: Exchange, part: Part, count: int, written: Written, answer: Body, topics: Topics
) -> Rows:
    """M1, of an append to a partition of an open transaction, and M7 where it is sent again; R5, of one by a producer
    that was fenced, whose transaction there was aborted for that."""
    error, t = integer(answer, "error_code"), one.ended_t
    log = topics.logs[part]
    within = next((x.within for x in log.appends if x.exchange is one or x.written == written), None)
    renewing = any(x.ending is not None and renews(x.ending) for x in topics.transactions)
    if renewing and not begins(one) and (within is None or within.stray) and error not in UNHEARD:
        about = ", because the partition is not in the transaction"
        yield error_is("R8", "append-outside", one, error, None, about)
    if within is None:
        return
    ending = within.ending
    fenced = ending is not None and (renews(ending) or (ending.api == INIT and not within.commits))
    if t < within.may_end_t:
        if error in UNHEARD:
            why = f"{named(error)}: the partition's leader does not know the transaction"
            yield undecided("M1", why, "offsets-do-not-grow")
        elif error == OUT_OF_ORDER and _begins_with_a_repeat(one, within, log):
            yield undecided("M1", f"{named(error)}: {BEGUN_BY_A_REPEAT}", "offsets-do-not-grow")
        elif _is_next(one, written, before := _before(one, written, log)):
            yield from _acknowledged(one, part, count, answer, topics)
        else:
            yield from _out_of_order(one, written, count, answer, before)
    elif fenced and within.ended_t <= one.t:
        yield error_is("R5", "fenced-producer-appends", one, error, None, ": the producer is fenced")


def _begins_with_a_repeat(one: Exchange, within: Transaction, log: Log) -> bool:
    """Whether all earlier batches of the transaction repeat batches of an earlier transaction."""
    begun = [x for x in log.appends if x.within is within and x.may_be_there and x.t < one.t]
    return not begun and any(x.within is within and x.t < one.t for x in log.repeats)


def _open_beside(one: Exchange, written: Written, log: Log) -> bool:
    """Whether the producer of this append without a transaction certainly has an open transaction in the partition."""
    mine = (x for x in log.appends if written != BY_NOBODY and x.written[:2] == written[:2] and not x.error)
    return any(
        x.within is not None and (x.ack_t or END_OF_TIME) <= one.t and one.ended_t < x.within.may_end_t
        for x in mine
    )


def _before(one: Exchange, written: Written, log: Log) -> list[Append]:
    """The earlier batches of the same producer that are, or may be, in the log, in their order."""
    mine = (x for x in log.appends if x.written[:2] == written[:2])
    return [x for x in mine if x.may_be_there and x.t < one.t]


def _sent_since(one: Exchange, written: Written, log: Log, scene: Scene) -> bool:
    """Whether the batch was first sent during the present stop of the replica: then the replica does not have the
    batch."""
    first_t = min((x.t for x in log.appends if x.written == written), default=one.t)
    return any(begin <= first_t and one.t <= end for begin, end in scene.stopped)


def _all_taken(before: Iterable[Append], t: int) -> bool:
    return all(x.ack_t is not None and x.ack_t <= t for x in before)


def _is_next(one: Exchange, written: Written, before: Sequence[Append]) -> bool:
    """Whether the batch has the next sequence number after the accepted batches. The first batch of an epoch has 0."""
    return _all_taken(before, one.t) and written.base_sequence == _next(before)


def _next(before: Sequence[Append]) -> int:
    first = before[0].written.base_sequence if before else 0
    return (first + sum(x.count for x in before)) % SEQUENCES


def _other_epoch(one: Exchange, written: Written, log: Log) -> tuple[int, bool] | None:
    """If a batch is not of the newest epoch of its producer, or begins an epoch with another number than 0: that
    epoch, and whether it is certain."""
    mine = [x for x in log.appends if x.written.producer_id == written.producer_id and x.exchange is not one]
    there = [x for x in mine if x.may_be_there and x.t < one.t]
    newest = max((x.written.producer_epoch for x in there), default=written.producer_epoch)
    begins = written != BY_NOBODY and newest < written.producer_epoch and written.base_sequence
    return (newest, _all_taken(there, one.t)) if begins or newest > written.producer_epoch else None


def _refused_epoch(one: Exchange, written: Written, answer: Body | None, newest: int, certain: bool) -> Rows:
    """M7, of a batch that no state of its producer accepts."""
    error = integer(answer, "error_code")
    if answer is None or not certain or error in EXCUSED:
        return
    wanted = {OUT_OF_ORDER} if newest < written.producer_epoch else {INVALID_EPOCH, FENCED}
    about = (
        f" for epoch {written.producer_epoch}, sequence number {written.base_sequence}, after epoch {newest}"
    )
    yield error_is("M7", "out-of-order", one, error, wanted, about)


def _out_of_order(
    one: Exchange, written: Written, count: int, answer: Body | None, before: Sequence[Append]
) -> Rows:
    """M7. A broker knows the last five batches of a producer again, each by its first number and its last."""
    if answer is None or not before or not _all_taken(before, one.t):
        return
    error, base = integer(answer, "error_code"), integer(answer, "base_offset", -1)
    begins_so = [x for x in before[-REMEMBERED:] if x.written == written]
    same = next((x for x in begins_so if x.count == count), None)
    ahead = (written.base_sequence - _next(before)) % SEQUENCES < SEQUENCES // 2
    if error in EXCUSED:
        yield undecided("M7", f"{named(error)}: {EXCUSED[error]}")
    elif same is not None:
        right, seen = not error and same.base in (base, -1), f"{named(error)}, base offset {base}"
        allowed = (
            "no error" if same.base < 0 else f"no error, and base offset {same.base}, where the batch is"
        )
        yield checked("M7", "sent-again", one, right, allowed, seen)
    elif begins_so or ahead:
        about = f" for {count} records from sequence number {written.base_sequence} on"
        yield answered_with("M7", "out-of-order", one, error, OUT_OF_ORDER, about)


def _acknowledged(one: Exchange, part: Part, count: int, answer: Body | None, topics: Topics) -> Rows:
    """M1: accepted, at an offset above every record that was acknowledged before it was sent."""
    if answer is None:
        return
    error, base = integer(answer, "error_code"), integer(answer, "base_offset", -1)
    too_soon = one.answer_t is not None and one.answer_t < one.t + one.wait_ms * MS - EARLY_NS
    if error in EXCUSED:
        yield undecided("M1", f"{named(error)}: {EXCUSED[error]}")
    elif error in FEW and integer(one.body, "acks") == -1:
        # A minimum of the broker's own, above the topic's one replica: older brokers do not cap it.
        why = f"{named(error)}: min.insync.replicas is more than the number of replicas"
        yield undecided("M1", why, "few-replicas")
    elif error == TIMED_OUT and not too_soon:
        # There is no other replica to wait for; a broker that cannot write for so long does not do so again.
        late = (one.t, one.answer_t or one.t)
        yield late_row("M1", "timed-out", one, "the only replica accepts the append", named(error), late)
    elif error:
        yield broken("M1", "refused", one, "no error: the append is accepted", named(error))
    else:
        log = topics.logs[part]
        end, own = log.least_end(one.t), log.own_end(one)
        later = log.most_end(one.answer_t or one.t)
        if own > end:
            seen = f"base offset {base}"
            allowed = f"a base offset of at least {own}, after the records that this connection appended with acks=0"
            yield checked("M2", "acks-0-records-lost", one, base >= own, allowed, seen)
        if topics.topics[part.topic].configs.get("message.timestamp.type") == "LogAppendTime":
            time_ms = integer(answer, "log_append_time_ms", -1)
            right, allowed = time_ms > 0, "the time of the append, as the topic is set to LogAppendTime"
            yield checked("M1", "append-time", one, right, allowed, f"log append time {time_ms}")
        start, (least, most) = (
            integer(answer, "log_start_offset", -1), log.start(one.t, one.answer_t or one.t),
        )  # fmt: skip
        if start >= 0:
            right, allowed = least <= start <= most, in_words("log start offset", least, most)
            yield checked("F10", "log-start-offset", one, right, allowed, f"log start offset {start}")
        cause = "offsets-do-not-grow" if base <= later - count else "offset-beyond-the-end"
        right, allowed = end <= base <= later - count, in_words("base offset", end, later - count)
        yield checked("M1", cause, one, right, allowed, f"base offset {base} for {count} records")


def _stopped(
    bounds: Bounds, one: Exchange, part: Part, answer: Body | None, topics: Topics, scene: Scene
) -> Rows:
    """M4, M5, M6: a topic with replicas, of which one is or was stopped."""
    acks, error = integer(one.body, "acks"), integer(answer, "error_code")
    topic, spans = topics.topics[part.topic], scene.stopped
    until = one.until_t
    in_sync = topics.in_sync_around(part, one.t, until)
    needed = min(limit(topic.configs, "min.insync.replicas", 1), topic.replicas)
    stays_away = any(begin <= one.t and until <= end for begin, end in spans)
    if acks == -1 and answer is not None and needed == topic.replicas and stays_away:
        about = ", because all replicas must be in sync and one is stopped"
        yield error_is("M4", "too-few-in-sync", one, error, None, about)
    few = in_sync is not None and in_sync < needed
    if error in EXCUSED:
        if few:
            yield undecided("M4", f"{named(error)}: {EXCUSED[error]}")
        return
    if few:
        if acks == 1 and answer is not None:
            yield error_is("M4", "acks-1-refused", one, error, 0)
        elif acks == -1:
            gap = max(one.wait_ms * MS, 1)
            row = in_time(bounds, "M4", "refused-late", one, one.t, gap, f"{named(NOT_ENOUGH)} at once:")
            yield row.but(error == NOT_ENOUGH, "below-min-insync", one, named(NOT_ENOUGH), named(error))
        return
    if acks != -1:
        return
    if answer is not None and not any(begin < until for begin, _ in spans):
        known_t = (topic.made_t or 0) + FOLLOWS_TIMES * bounds.declared.late_topics_ms * MS
        follows = one.t >= known_t or topics.logs[part].replicated_end(one.t) > 0
        yield _all_healthy(bounds, one, error, follows)
        return
    given_up = topics.given_up(part, one.t, needed)
    left, told_t = given_up or (END_OF_TIME, END_OF_TIME)
    if left < one.ended_t and any(begin <= one.t and told_t <= end for begin, end in spans):
        yield _given_up(bounds, one, error, told_t)
    for begin, end in spans:
        ends_t = min(until, end)
        in_sync = topics.in_sync_around(part, begin, ends_t)
        if begin <= one.t <= end and in_sync == topic.replicas and bounds.stays_in_sync(begin, ends_t):
            due = one.t + one.wait_ms * MS
            if due < end:
                yield from _times_out(bounds, one, error, due)
            else:
                yield _goes_on(bounds, one, error, end, scene.continued_t(end), due)


def _all_healthy(bounds: Bounds, one: Exchange, error: int, follows: bool) -> Row:
    """M1, where no replica has been stopped: they all have it in time. `follows`: whether the other replicas must know
    of the partition."""
    cause = "timed-out"
    if error != TIMED_OUT:
        return kept("M1", cause) if not error else undecided("M1", named(error), cause)
    t = one.until_t
    if 2 * bounds.allowed_ns(one.t, t) >= max(one.wait_ms * MS, 1):
        return undecided("M1", f"{named(error)}, while the machine was overloaded", cause)
    if not follows:
        return undecided("M1", f"{named(error)}: a replica may not know the new topic yet", cause)
    return late_row("M1", cause, one, "no error, because no replica was stopped", named(error), (one.t, t))


def back_in_sync(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """M4, for a replica that left the in-sync replicas and continues: it fetches the missing records and joins them
    again. Metadata shows this after the controller has received the change."""
    for begin, end in scene.stopped:
        on_t = scene.continued_t(end)
        for topic in topics.topics.values():
            asked = [(x, _in_sync(x, topic.name)) for x in scene.of("metadata")]
            fewer = [(x, count) for x, count in asked if count is not None and count < topic.replicas]
            if topic.delete_t is not None or not any(begin <= x.t <= end for x, _ in fewer):
                continue
            later = [(x, count) for x, count in asked if count is not None and x.t >= on_t]
            last, count = later[-1] if later else (None, 0)
            back = any(count >= topic.replicas for _, count in later)
            if last and (back or last.t > on_t + BACK_NS + bounds.added_ns(on_t, last.t)):
                allowed = f"{topic.replicas} replicas in sync, {BACK_NS // MS} ms after the replica resumed"
                seen, late = f"{count} replicas in sync after {after(last.t, on_t)}", (on_t, last.t)
                yield checked("M4", "in-sync-again", last, back, allowed, seen, late=late)


def _in_sync(one: Exchange, name: str) -> int | None:
    """The number of in-sync replicas of a topic's partition 0, by metadata."""
    for topic in items(one.got, "topics"):
        for part in items(topic, "partitions") if text(topic, "name") == name else ():
            nodes = part.get("isr_nodes")
            if not integer(part, "partition_index") and isinstance(nodes, list):
                return len(nodes)
    return None


def _times_out(bounds: Bounds, one: Exchange, error: int, due: int) -> Rows:
    if error == UNKNOWN_PRODUCER:
        yield broken("M5", "unknown-producer", one, f"{named(TIMED_OUT)} at its time-out", named(error))
        return
    if one.answer_t is not None and one.answer_t < due - EARLY_NS:
        seen = f"{named(error)} after {after(one.answer_t, one.t)}"
        yield broken("M5", "early", one, f"no answer before timeout_ms, {one.wait_ms} ms", seen)
        return
    gap = max(one.wait_ms * MS, FORGOTTEN_NS)
    row = in_time(bounds, "M5", "late", one, due, gap, f"{named(TIMED_OUT)} at timeout_ms,")
    yield row.but(error == TIMED_OUT, "other-error", one, named(TIMED_OUT), named(error))


def _goes_on(bounds: Bounds, one: Exchange, error: int, end: int, on_t: int, due: int) -> Row:
    late_ms, promise = bounds.declared.late_topics_ms, "an answer when the replica resumes,"
    row = in_time(bounds, "M6", "waits-though-resumed", one, on_t, due - on_t, promise, late_ms=late_ms)
    if one.answer_t is not None and one.answer_t < end - EARLY_NS:
        seen = f"answered {after(end, one.answer_t)} before the replica resumed"
        return broken("M6", "before-the-replica-resumes", one, "no answer before the replica resumes", seen)
    return row.but(not error, "other-error", one, "no error", named(error))


def _given_up(bounds: Bounds, one: Exchange, error: int, told_t: int) -> Row:
    """M6, if the replica leaves the in-sync set instead: the other replicas have all records, and are enough. Metadata
    shows this when the controller has changed the set. The leader gets the change from the controller."""
    due, late_ms = one.t + one.wait_ms * MS, bounds.declared.late_topics_ms
    promise = "an answer when the replica leaves the in-sync set,"
    row = in_time(
        bounds, "M6", "waits-though-replica-left", one, told_t, due - told_t, promise, late_ms=late_ms,
        since_t=told_t,
    )  # fmt: skip
    return row.but(
        not error, "other-error", one, "no error, because enough replicas have the records", named(error)
    )
