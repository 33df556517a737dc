"""The clauses R2, R5, R6, R8: the transaction coordinator's responses to the producer of a transactional id.

A producer is judged only while no other client uses its transactional id. Then its own earlier requests determine the
correct response.
"""

from collections.abc import Sequence
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, MS, Bounds
from purgatorio_wire.history.finding import Rows, checked, error_is, named, timed
from purgatorio_wire.history.history import (
    BUSY,
    END_OF_TIME,
    EXCUSED,
    LOADING,
    Exchange,
    Scene,
    integer,
    integers,
    items,
    text,
    texts,
)
from purgatorio_wire.history.log import Topics
from purgatorio_wire.history.transaction import (
    BEGINS,
    CONCURRENT,
    END,
    INIT,
    NOT_THEIRS,
    TOO_LONG,
    ProducerEpoch,
    Transaction,
    adds_itself,
    begins,
    by_name,
    error_of,
    name_of,
    producer_of,
    renews,
    went_well,
)
from purgatorio_wire.trace.record import Body

INVALID_REQUEST, INVALID_STATE, UNKNOWN_ID, ABORTABLE = 42, 48, 49, 120
ONGOING: Final = "Ongoing"
_STATES: Final = frozenset({"Ongoing", "CompleteCommit", "Empty"})
"""The states of transactions for which scenes filter."""
FENCED: Final = frozenset({47, UNKNOWN_ID, 90})
"""The errors for a former producer: its epoch is old, its id is unknown, or it is fenced."""
NO_SUCH_PART: Final = frozenset({3, 55})
ENDS_GAP_NS: Final = 12_000 * MS
"""The lateness of a transaction that never ends. A scene waits for this time."""


def coordinated(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """The occasions are the requests about transactional ids, and the ends of transactions."""
    for one in scene.of(INIT):
        if one.body.get("transactional_id") == "" and one.got is not None:
            yield error_is("R5", "init-refused", one, error_of(one), INVALID_REQUEST, ": the id is empty")
    for one in scene.of(END, *BEGINS):
        if not name_of(one) and one.got is not None and error_of(one) not in (*LOADING, *EXCUSED):
            yield error_is("R6", "unknown-producer", one, error_of(one), INVALID_REQUEST, ": the id is empty")
    for asked in by_name(scene.exchanges).values():
        for one in asked:
            if one.got is not None and not one.throttled_ms and not any(_beside(one, x) for x in asked):
                yield from _told(bounds, one, [x for x in asked if x.t < one.t])
    for each in topics.transactions:
        yield from _ends(bounds, scene, each)
        starts_ms = set[int]()
        for one in scene.of("describe_transactions", "list_transactions", "describe_producers"):
            if each.made_t <= one.t and one.answer_t is not None and one.answer_t < each.may_end_t:
                yield from _described(one, each, topics, starts_ms)


def _beside(one: Exchange, other: Exchange) -> bool:
    """Whether both requests were open at one time."""
    ends = [x.ended_t for x in (one, other)]
    return one is not other and one.t < ends[1] and other.t < ends[0]


def _told(bounds: Bounds, one: Exchange, before: Sequence[Exchange]) -> Rows:
    error = error_of(one)
    if error in LOADING or error in EXCUSED:
        return  # a scene repeats the request until a coordinator answers
    changes_nothing = {*NOT_THEIRS, TOO_LONG}
    before = [x for x in before if x.api != INIT or error_of(x) not in changes_nothing]
    inits = [x for x in before if x.api == INIT]
    made = [x for x in before if (x.api == INIT or renews(x)) and went_well(x)]
    if one.api == INIT:
        if all(x.got is not None for x in inits):
            yield from _initialized(bounds, one, error, made)
        return
    by, now = producer_of(one.body), producer_of(made[-1].got) if made else None
    if not inits:
        yield error_is(
            "R6", "unknown-producer", one, error, UNKNOWN_ID, ": no producer has the transactional id"
        )
    elif now is not None and by != now:
        if error == CONCURRENT or adds_itself(one):
            return  # Kafka 4 looks first whether something is being written of the id (KAFKA-18660)
        if renews(one) and renews(made[-1]) and by == producer_of(made[-1].body):
            since = [x for x in before if x.t > made[-1].t and begins(x) and producer_of(x.body) == now]
            yield from _ended_again(one, error, made[-1], since)
            return
        known = any(by == producer_of(x.got) for x in made)
        why = ": a newer producer has the transactional id" if known else ": no producer got this producer id"
        yield error_is(
            "R5" if known else "R6", "not-fenced" if known else "unknown-producer", one, error, FENCED, why
        )
    elif made and not any(x.t > made[-1].t and (x.api == INIT or x.got is None) for x in before):
        since = [x for x in before if x.t > made[-1].t and x.api != INIT and producer_of(x.body) == by]
        timeout_ns = integer(inits[-1].body, "transaction_timeout_ms") * MS
        if one.ended_t < _begun_t(since, one) + timeout_ns:
            yield from (_renewed if renews(one) or adds_itself(one) else _mine)(one, error, since)


def _begun_t(since: Sequence[Exchange], one: Exchange) -> int:
    """The earliest time at which the open transaction may have begun: after the last accepted EndTxn."""
    ended = [at for at, x in enumerate(since) if x.api == END and went_well(x)]
    return min((x.t for x in since[ended[-1] + 1 if ended else 0 :]), default=one.t)


def _initialized(bounds: Bounds, one: Exchange, error: int, before: Sequence[Exchange]) -> Rows:
    """R5, for InitProducerId. In Kafka 3.1 to 3.3, a broker may wait for new producer ids from the controller, and time
    out. `before`: the requests that gave the id its producers."""
    most_ms = bounds.declared.transaction_most_ms or 1 << 31
    if not 0 < integer(one.body, "transaction_timeout_ms") <= most_ms and error not in (CONCURRENT, *BUSY):
        about = f": the transaction timeout is not from 1 to {most_ms} ms"
        yield error_is("R5", "init-refused", one, error, TOO_LONG, about)
        return
    if error in (CONCURRENT, TOO_LONG, *BUSY):
        return
    former, by = [producer_of(x.got) for x in before], producer_of(one.body)
    if former and by.epoch >= 0 and by != former[-1]:
        if before[-1].api == INIT and by == producer_of(before[-1].body):  # KIP-360
            again, wanted = producer_of(one.got), f"{named(0)} and epoch {former[-1].epoch}, as before"
            right, told = not error and again == former[-1], f"{named(error)}, epoch {again.epoch}"
            yield checked("R5", "sent-again", one, right, wanted, told, *before[-1].events)
        elif before[-1].api == INIT and (by in former or by.id not in {x.id for x in former}):
            yield error_is(
                "R5", "not-fenced", one, error, FENCED, ": another producer has the transactional id"
            )
        return
    made = producer_of(one.got)
    seen = f"{named(error)}, producer id {made.id}, epoch {made.epoch}"
    if error or made.id < 0 or made.epoch < 0 or not former:
        right = not error and made.id >= 0 and made.epoch >= 0
        yield checked("R5", "init-refused", one, right, "a producer id and an epoch", seen)
    else:
        most = max((x.epoch for x in former if x.id == made.id), default=-1)
        allowed, seen = f"an epoch above {most}, or another producer id", f"epoch {made.epoch}"
        yield checked("R5", "not-a-new-epoch", one, made.epoch > most, allowed, seen)


def _mine(one: Exchange, error: int, since: Sequence[Exchange]) -> Rows:
    """R6, for the current producer of the id. `since`: its requests since it has the id."""
    done = [x for x in since if went_well(x)]
    unsure = [x for x in since if x.got is None or error_of(x) in LOADING]
    if unsure:
        return
    if begins(one):
        if error != CONCURRENT and error not in NO_SUCH_PART:
            yield error_is("R6", "begin-refused", one, error, 0)
    elif done and begins(done[-1]):
        if error != CONCURRENT:
            yield error_is("R6", "end-refused", one, error, 0)
    elif not done:
        yield error_is("R6", "without-a-transaction", one, error, INVALID_STATE, ": there is no transaction")
    elif error != CONCURRENT:
        same = done[-1].body.get("committed") == one.body.get("committed")
        why = ", as for the first EndTxn" if same else ": the transaction has ended in the other way"
        yield error_is("R6", "end-after-end", one, error, 0 if same else INVALID_STATE, why)


def _renewed(one: Exchange, error: int, since: Sequence[Exchange]) -> Rows:
    """R8, for the current producer of the id. `since`: its requests since it has its epoch. Each of them but an end
    begins a transaction, or may have if it was refused. A client may abort although nothing has begun."""
    if error == CONCURRENT:
        return
    begun = [x for x in since if x.api != END]
    if adds_itself(one):
        allowed = "no error: the request begins a transaction"
        right = error not in {*NOT_THEIRS, ABORTABLE}
        yield checked("R8", "begin-refused", one, right, allowed, named(error))
    elif any(map(went_well, begun)) or not (begun or one.body.get("committed")):
        now, by = producer_of(one.got), producer_of(one.body)
        right = not error and (now.epoch > by.epoch or now.id not in (by.id, -1))
        allowed = f"no error, and an epoch above {by.epoch} or another producer id"
        yield checked("R8", "not-a-new-epoch", one, right, allowed, f"{named(error)}, epoch {now.epoch}")
    elif not begun:
        yield error_is("R8", "without-a-transaction", one, error, INVALID_STATE, ": there is no transaction")


def _ended_again(one: Exchange, error: int, ended: Exchange, since: Sequence[Exchange]) -> Rows:
    """R8, for an EndTxn that is sent again with its former epoch. `since`: the requests that began the next
    transaction."""
    if any(map(went_well, since)):
        yield error_is(
            "R8", "not-fenced", one, error, FENCED, ": the producer has begun its next transaction"
        )
    elif since:
        return  # a refused request may have begun the next transaction
    elif ended.body.get("committed") == one.body.get("committed"):
        now, seen = producer_of(ended.got), producer_of(one.got)
        allowed = f"{named(0)} and epoch {now.epoch}, as for the first EndTxn"
        told = f"{named(error)}, epoch {seen.epoch}"
        yield checked("R8", "repeated-end", one, not error and seen == now, allowed, told, *ended.events)
    else:
        yield error_is(
            "R8", "end-after-end", one, error, INVALID_STATE, ": the transaction has ended in the other way"
        )


def _described(one: Exchange, each: Transaction, topics: Topics, starts_ms: set[int]) -> Rows:
    """R6, for the requests of KIP-664, while a transaction is open. `starts_ms`: the start of the transaction, by
    earlier responses."""
    by, whose = each.producer, f"producer {each.producer.id}, epoch {each.producer.epoch}"
    if one.api == "describe_producers":
        for part, said in one.results.items():
            log = topics.logs[part]
            every = [x for x in log.appends if x.within is each and x.may_be_there and x.t <= one.ended_t]
            there = [x for x in every if x.ack_t is not None and x.ack_t <= one.t]
            if there and not log.deletes_t and not integer(said, "error_code"):
                first = min(x.base for x in there)
                least, most = (
                    max(x.written.base_sequence + x.count - 1 for x in some) for some in (there, every)
                )
                its = [x for x in items(said, "active_producers") if integer(x, "producer_id") == by.id]
                right = len(its) == 1 and integer(its[0], "current_txn_start_offset", -1) == first
                right = right and least <= integer(its[0], "last_sequence", -1) <= most and _is_of(its[0], by)
                allowed = f"{whose}, since offset {first} of {part}, last sequence number {least} to {most}"
                yield checked("R6", "described", one, right, allowed, f"{its}")
        return
    named_so = (x for x in items(one.got, "transaction_states") if text(x, "transactional_id") == each.name)
    said = next(named_so, {})
    if integer(one.got, "error_code") or integer(said, "error_code") in {*LOADING, *EXCUSED}:
        return
    wanted = each.name in texts(one.body, "transactional_ids")
    if one.api == "list_transactions":
        states, ids = {*texts(one.body, "state_filters")}, {*integers(one.body, "producer_id_filters")}
        pattern, age_ns = text(one.body, "transactional_id_pattern"), one.t - each.made_t  # at the least
        least_ns = integer(one.body, "duration_filter", -1) * MS
        if max(0, age_ns - EARLY_NS) <= least_ns <= one.ended_t - each.begun_t + EARLY_NS:
            return
        its_prefix = pattern.endswith(".*") and each.name.startswith(pattern[:-2])
        wanted = least_ns < age_ns and (pattern in ("", each.name) or its_prefix)
        wanted = wanted and (not states or ONGOING in states) and (not ids or by.id in ids)
        if "unknown_state_filters" in (one.got or {}):
            unknown, told = states - _STATES, {*texts(one.got, "unknown_state_filters")}
            allowed, seen = (f"the unknown states {sorted(x)}" for x in (unknown, told))
            yield checked("R6", "described", one, told == unknown, allowed, seen)
    elif not wanted:
        return
    shown = {
        (text(topic, "topic"), n) for topic in items(said, "topics") for n in integers(topic, "partitions")
    }
    own = {(topic, number) for topic, number in shown if not topic.startswith("__")}
    right = (
        text(said, "transaction_state") == ONGOING and _is_of(said, by) and not integer(said, "error_code")
    )
    if "topics" in said:
        sure = {part for part, t in each.parts.items() if t <= one.t}
        right &= sure <= own <= each.parts.keys()
    timeout_ms = (each.times_out_t - each.begun_t) // MS
    right &= integer(said, "transaction_timeout_ms", timeout_ms) == timeout_ms
    right = right if wanted else not said
    if right and "transaction_start_time_ms" in said:  # adding a partition does not move it
        starts_ms.add(integer(said, "transaction_start_time_ms"))
        right = len(starts_ms) == 1
    allowed = f"{ONGOING}, {whose}, {timeout_ms} ms, with {sorted(each.parts)}" if wanted else "not listed"
    allowed += f", since {min(starts_ms)}" if starts_ms else ""
    allowed += f", at least {(one.t - each.made_t) // MS} ms old" * ("duration_filter" in one.body)
    yield checked("R6", "described", one, right, allowed, f"{said or 'not listed'}")


def _is_of(said: Body, by: ProducerEpoch) -> bool:
    """Whether a description names this producer. ListTransactions lists no epochs."""
    return integer(said, "producer_id") == by.id and integer(said, "producer_epoch", by.epoch) == by.epoch


def _ends(bounds: Bounds, scene: Scene, each: Transaction) -> Rows:
    """R2: after an EndTxn, the transaction ends in time."""
    ending = each.ending
    asked = by_name(scene.exchanges).get(each.name, [])
    if ending is None or ending.answer_t is None or (ending.api == END and not went_well(ending)):
        return
    since_t = ending.answer_t
    later = [
        x.answer_t or 0
        for x in asked
        if (x.api == INIT or begins(x)) and x.t >= since_t and x.got is not None
    ]
    ended_t = each.ended_t if each.ended_t < END_OF_TIME else None
    if ended_t is None and not later:
        return
    if ended_t is not None:
        # The transaction may have ended earlier: count from the last CONCURRENT_TRANSACTIONS.
        told = [x.answer_t or 0 for x in asked if x.t >= since_t and error_of(x) == CONCURRENT]
        ended_t = max((t for t in told if t <= ended_t), default=since_t)
    by = bounds.by(
        since_t, since_t, ended_t, gap_ns=ENDS_GAP_NS, watched_t=max(later, default=since_t),
        late_ms=bounds.declared.late_topics_ms,
    )  # fmt: skip
    yield timed(
        "R2", "never-ended", ending, by, "the transaction ends after the response,", since_t, what="ended",
    )  # fmt: skip
