"""DelayedShareFetch at its first look: its table, the balance of the fetch locks on every way out, the keys."""

from __future__ import annotations

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio.faults import CONTAIN
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import ReadRecords
from purgatorio_wire.table.share_fetch import SHARE_FETCH, Share
from wire.broker_scene import DIALECTS, P0, P1
from wire.share_scene import ShareScene, offsets

TIERED = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation(dialect: Dialect) -> None:
    """B921 to B926: who completes, with what; and the locks are as they were, then and after the time-out."""
    for situation in SHARE_FETCH.situations:
        made = ShareScene(dialect=dialect)
        pairs = list(zip((P0, P1), situation.partitions, strict=True))
        for partition, share in pairs:
            made.bring(partition, share)
        others = made.locked()
        _, answers = made.fetch()
        decided = SHARE_FETCH.decide(situation)
        assert bool(answers) is decided.answer, situation
        tiered = [share is Share.TIERED for share in situation.partitions]
        assert made.locked() == [before or kept for before, kept in zip(others, tiered, strict=True)]
        for future in made.tier.futures.values():
            future.complete(TIERED)
        made.advance(30)
        assert made.locked() == others
        got = {p: result.error for p, result in answers.only().items()}
        shown = dict.fromkeys((Share.SOME, Share.ENOUGH, Share.TIERED), Error.NONE)
        shown[Share.LOST] = Error.NOT_LEADER_OR_FOLLOWER
        assert got == {p: shown[share] for p, share in pairs if share in shown}
        assert made.fetches.expirations.total() == (not decided.answer and not any(tiered))


def test_where_the_places_are_known_nothing_is_read() -> None:
    """B927: the first look reads, the second one counts; the records are read on completion."""
    made = ShareScene()
    made.bring(P0, Share.SOME)
    _, answers = made.fetch()
    assert made.log.reads_later == [(P0, P1)]
    reads = len(made.log.reads_now)
    made.fetches.partition_moved(P0)
    assert not answers
    assert (made.log.reads_later, len(made.log.reads_now)) == ([(P0, P1)], reads)
    made.scene.append(P0, 10)
    made.fetches.partition_moved(P0)
    assert offsets(answers.only()) == [0, 1]
    assert made.log.reads_later == [(P0, P1)]


def test_a_later_segment_and_a_truncated_log_have_enough() -> None:
    """B927: what arithmetic cannot tell is read, by completing."""
    made = ShareScene(segment_bytes=15)
    made.bring(P0, Share.SOME)
    _, answers = made.fetch()
    made.scene.append(P0, 10)
    made.fetches.partition_moved(P0)
    assert offsets(answers.only()) == [0], "a read ends with its segment"

    made = ShareScene()
    made.scene.append(P0, 10, 10)
    made.share(P0).note_place(made.log.end(P0, made.fetch()[0]._params.isolation))
    _, waits = made.fetch()
    assert not waits
    made.manager.become_follower(P0, 2, truncate_to=0)
    made.manager.become_leader(P0, 3, (0,), (0,))
    made.fetches.partition_moved(P0)
    assert waits.only()[P0].error is Error.OFFSET_OUT_OF_RANGE


def test_an_error_in_the_arithmetic_completes() -> None:
    """The leadership is lost while the places are known: the answer says so, and no lock is left."""
    made = ShareScene()
    _, answers = made.fetch()
    made.manager.become_follower(P0, 2)
    made.fetches.partition_moved(P0)
    assert answers.only()[P0].error is Error.NOT_LEADER_OR_FOLLOWER
    assert made.locked() == [False, False]


def test_everyone_gets_the_same_share_of_the_bytes() -> None:
    """B928: of the partitions that are acquired, not of those that are asked for."""
    made = ShareScene()
    made.fetch(FetchParams(0, 1, 1000))
    assert made.log.reads_now == [(P0, 500), (P1, 500)]
    made.bring(P1, Share.FETCHED_BY_ANOTHER)
    made.scene.append(P0, 10)
    made.fetch(FetchParams(0, 1, 1000))
    assert made.log.reads_now[-1] == (P0, 1000)


def test_completion_queues_the_checks() -> None:
    """B929: only an operation that gave data has something to tell the others, and tells it by the queue."""
    made = ShareScene()
    made.manager.run_actions()
    operation, _ = made.fetch()
    operation.force_complete()
    assert made.manager.actions.size() == 0
    made.bring(P0, Share.ENOUGH)
    made.manager.run_actions()
    made.fetch()
    assert made.manager.actions.size() == 1


def test_forced_twice_it_completes_once() -> None:
    made = ShareScene()
    operation, answers = made.fetch()
    assert operation.force_complete()
    assert not operation.force_complete()
    assert not operation.try_complete()
    assert len(answers.got) == 1
    assert made.locked() == [False, False]


def test_a_forced_fetch_reads_what_is_there() -> None:
    """Completed from outside, with some bytes of the many it wanted: it acquires them."""
    made = ShareScene()
    made.bring(P0, Share.SOME)
    operation, answers = made.fetch()
    assert operation.force_complete()
    assert offsets(answers.only()) == [0]


def test_the_time_out_answers_with_what_is_there() -> None:
    """B925: at its own time, once, counted; an empty answer where nothing is there."""
    made = ShareScene()
    _, answers = made.fetch()
    made.advance(29)
    assert not answers
    made.advance(1)
    assert answers.only() == {}
    assert made.fetches.expirations.total() == 1
    assert made.fetches.waiting() == 0


def raises() -> None:
    """As a broken disk does."""
    raise OSError("disk")


def test_a_read_that_raises_leaves_no_lock() -> None:
    made = ShareScene()
    made.scene.runtime.faults = CONTAIN
    made.log.before.append(raises)
    _, answers = made.fetch()
    assert {result.error for result in answers.only().values()} == {Error.UNKNOWN_SERVER_ERROR}
    assert made.locked() == [False, False], "locks for ever"


def test_a_callback_that_raises_leaves_no_lock() -> None:
    made = ShareScene()
    made.scene.runtime.faults = CONTAIN
    made.bring(P0, Share.ENOUGH)
    made.manager.run_actions()
    made.fetches.fetch("m", FetchParams(30, 1, 1000), (P0, P1), lambda answer: raises())
    assert made.locked() == [False, False]
    assert made.manager.actions.size() == 1


def test_completed_while_it_reads_it_gives_the_locks_back() -> None:
    """KAFKA-17848: somebody else completes the operation while its try holds the locks."""
    made = ShareScene()
    operation, answers = made.fetch()
    made.bring(P0, Share.ENOUGH)
    made.share(P0).note_place(None)
    made.log.before.append(operation.force_complete)
    assert not operation.try_complete()
    assert answers.only() == {}, "it had nothing to acquire: the try had the locks"
    assert made.locked() == [False, False], "locks for ever"


def test_keys_are_equal_by_value_and_never_across_kinds() -> None:
    """The same group and partition make the same key; a group's key is no partition's."""
    assert ShareGroupKey("g", P0) == ShareGroupKey("g", TopicPartition("t", 0))
    assert hash(ShareGroupKey("g", P0)) == hash(ShareGroupKey("g", TopicPartition("t", 0)))
    keys: set[object] = {ShareGroupKey("g", P0), ShareGroupKey("h", P0), SharePartitionKey(P0), P0}
    assert len(keys) == 4
