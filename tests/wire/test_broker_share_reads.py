"""DelayedShareFetch while reads are on their way: of the local log on another thread, and of the tier; late answers."""

from __future__ import annotations

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio.faults import CONTAIN
from purgatorio_broker.deferred import Cancelled, Deferred
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.log import Record
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_partition import ShareLimits
from purgatorio_wire.table.remote import Read
from purgatorio_wire.table.share_fetch import (
    SHARE_READ,
    SHARE_REMOTE,
    LocalRead,
    Share,
    ShareAnswer,
    ShareReading,
    ShareRemote,
)
from wire.broker_scene import DIALECTS, P0, P1, Answers
from wire.share_scene import PARAMS, REMOTE_MS, Fetched, ShareScene, offsets

TIERED = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)
NONE = [False, False]
WANTS_ONE = FetchParams(1_000, 1, 100)


class Once:
    """Raises the first time, as a disk that recovers."""

    def __init__(self) -> None:
        self.failed = False

    def __call__(self) -> None:
        if not self.failed:
            self.failed = True
            raise OSError("disk")


def is_cancelled(future: Deferred[ReadRecords]) -> bool:
    outcome = future.outcome()
    return outcome is not None and isinstance(outcome.error, Cancelled)


def play_read(made: ShareScene, situation: ShareReading) -> ShareAnswer:
    """Bring a fetch of P0 there, and say what became of it."""
    made.bring(P0, Share.ENOUGH if situation.read is LocalRead.ENOUGH else Share.SOME)
    operation, answers = made.fetch(PARAMS, P0)
    assert (bool(answers), made.locked()) == (False, [True, False]), "the read is on its way"
    if situation.read is LocalRead.FAILED:
        made.log.before.append(Once())
    if situation.read is LocalRead.PENDING:
        made.advance(30 if situation.timed_out else 29)
    else:
        if situation.timed_out:
            made.log.ended.append(operation.force_complete)
        made.executor.run_all()
    if not answers:
        return ShareAnswer.WAITS_LOCKED if made.locked() == [True, False] else ShareAnswer.WAITS_UNLOCKED
    assert made.locked() == NONE
    if not offsets(answers.only()):
        return ShareAnswer.EMPTY
    return ShareAnswer.READ_AGAIN if situation.read is LocalRead.FAILED else ShareAnswer.DATA


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation_of_a_local_read(dialect: Dialect) -> None:
    """B931 to B935: whoever looks, the event or the time-out; and in the end no lock is left."""
    for situation in SHARE_READ.situations:
        made = ShareScene(later=True, dialect=dialect)
        assert play_read(made, situation) is SHARE_READ.decide(situation).answer, situation
        made.advance(30)
        assert made.locked() == NONE
        assert made.fetches.waiting() == 0


def test_a_read_that_ends_too_late_changes_nothing() -> None:
    """B932: the time-out has answered; the read finds its future cancelled."""
    made = ShareScene(later=True)
    made.bring(P0, Share.ENOUGH)
    _, answers = made.fetch(PARAMS, P0)
    made.advance(30)
    assert answers.only() == {}
    made.executor.run_all()
    assert len(answers.got) == 1
    assert made.share(P0).next_offset() == 0, "nothing was acquired for nobody"


def test_completed_while_a_read_begins_it_begins_no_other() -> None:
    """It gives up its read, which is done by that, and must not take it for one that has ended and look again."""
    made = ShareScene(later=True)
    made.bring(P0, Share.FETCHED_BY_ANOTHER)
    operation, answers = made.fetch(PARAMS, P0)
    made.share(P0).unlock()
    made.log.begun.append(operation.force_complete)
    made.fetches.partition_moved(P0)
    assert answers.only() == {}
    assert made.locked() == NONE
    assert made.log.reads_later == [(P0,)]


def test_nothing_is_remembered_of_a_read_that_was_not_enough() -> None:
    """B934: the next look starts afresh, by arithmetic, for the place is known by now."""
    made = ShareScene(later=True)
    made.bring(P0, Share.SOME)
    _, answers = made.fetch(PARAMS, P0)
    made.executor.run_all()
    made.scene.append(P0, 10)
    made.fetches.partition_moved(P0)
    assert offsets(answers.only()) == [0, 1]
    assert made.log.reads_later == [(P0,)]


def test_a_record_released_during_a_read_behind_it_is_not_lost() -> None:
    """B952: its event finds the fetch reading; the read finds too little, and the fetch looks again."""
    made = ShareScene(later=True, limits=ShareLimits(lock_ms=20))
    made.scene.append(P0, 10)
    _, first = made.fetch(WANTS_ONE, P0, member="other")
    made.executor.run_all()
    assert offsets(first.only()) == [0]
    _, answers = made.fetch(WANTS_ONE, P0)
    made.advance(20)
    made.executor.run_all()
    assert offsets(answers.only()) == [0]
    assert made.log.reads_later == [(P0,), (P0,), (P0,)]


def test_a_partition_that_opens_during_a_read_of_another_is_not_lost() -> None:
    """B952: the read of P0 finds too little; the records of P1 were released while it was on its way."""
    made = ShareScene(later=True, limits=ShareLimits(capacity=1, lock_ms=20))
    made.scene.append(P1, 10)
    _, first = made.fetch(WANTS_ONE, P1, member="other")
    made.executor.run_all()
    assert offsets(first.only(), P1) == [0]
    _, answers = made.fetch(WANTS_ONE)
    made.advance(20)
    made.executor.run_all()
    assert offsets(answers.only(), P1) == [0]


def test_known_limit_a_lock_given_back_without_records_tells_nobody() -> None:
    """B929: the fetch that came first wants less, and would go; it was looked at before the lock was given back."""
    made = ShareScene(later=True)
    _, patient = made.fetch(FetchParams(30, 5, 1000), P0, member="n")
    made.executor.run_all()
    made.bring(P0, Share.SOME)
    made.share(P0).note_place(None)
    _, hungry = made.fetch(PARAMS, P0)
    made.executor.run_all()
    assert made.locked() == NONE
    assert (bool(patient), bool(hungry)) == (False, False)
    made.fetches.partition_moved(P0)
    assert (offsets(patient.only()), bool(hungry)) == ([0], False)


def test_what_was_read_later_and_what_is_read_now_are_one_answer() -> None:
    """The place of P0 is known, that of P1 is not: P1 is read by the look, P0 on completion."""
    made = ShareScene(later=True)
    made.bring(P0, Share.SOME)
    made.fetch(PARAMS, P0)
    made.executor.run_all()
    made.bring(P1, Share.SOME)
    _, answers = made.fetch()
    assert made.log.reads_later == [(P0,), (P1,)]
    assert not answers
    made.executor.run_all()
    assert (offsets(answers.only(), P0), offsets(answers.only(), P1)) == ([0], [0])


def waiting_remotely(made: ShareScene, params: FetchParams = PARAMS) -> Answers[Fetched]:
    """A fetch of both partitions that waits for the tier."""
    for partition in (P0, P1):
        made.bring(partition, Share.TIERED)
    _, answers = made.fetch(params)
    assert (bool(answers), made.locked()) == (False, [True, True])
    return answers


def play_remote(made: ShareScene, situation: ShareRemote) -> tuple[ShareAnswer, Answers[Fetched]]:
    """Bring a fetch of both there, and say what became of it."""
    answers = waiting_remotely(made)
    for partition, read in zip((P0, P1), situation.reads, strict=True):
        if partition == P1 and situation.gone:
            # Before anybody looks at the last read.
            made.tier.ended.append(lambda: made.manager.become_follower(P1, 2))
        if read is Read.DONE:
            made.tier.futures[partition].complete(TIERED)
        elif read is Read.FAILED:
            made.tier.futures[partition].fail(OSError("the tier is gone"))
    if situation.gone and situation.reads[1] is Read.PENDING:
        made.manager.become_follower(P1, 2)
    made.fetches.partition_moved(P1)
    if situation.timed_out and made.fetches.waiting():
        made.advance(30)
    if answers:
        return ShareAnswer.DATA, answers
    return (ShareAnswer.LATER if made.fetches.waiting() == 0 else ShareAnswer.WAITS_LOCKED), answers


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation_of_remote_reads(dialect: Dialect) -> None:
    """B941 to B944: who waits, who is answered, who is answered later, and with what; no lock outlives the answer."""
    shown = {Read.DONE: Error.NONE, Read.FAILED: Error.UNKNOWN_SERVER_ERROR}
    for situation in SHARE_REMOTE.situations:
        made = ShareScene(dialect=dialect, remote_wait_ms=REMOTE_MS if situation.patient else 20)
        answered, answers = play_remote(made, situation)
        assert answered is SHARE_REMOTE.decide(situation).answer, situation
        if answered is not ShareAnswer.DATA:
            assert made.locked() == [True, True], situation
        made.advance(REMOTE_MS)
        expected = {
            p: shown[read] for p, read in zip((P0, P1), situation.reads, strict=True) if read in shown
        }
        if situation.gone and expected.get(P1, Error.NONE) is Error.NONE:
            expected[P1] = Error.NOT_LEADER_OR_FOLLOWER
        assert {p: result.error for p, result in answers.only().items()} == expected, situation
        assert made.locked() == NONE
        pending = [read is Read.PENDING for read in situation.reads]
        assert [is_cancelled(made.tier.futures[p]) for p in (P0, P1)] == pending


def test_a_late_answer_comes_from_the_reads() -> None:
    """B943: completed by the time-out, counted, and answered by the last read's end, on the tier's thread."""
    made = ShareScene()
    answers = waiting_remotely(made)
    made.tier.futures[P0].complete(TIERED)
    made.advance(30)
    assert not answers
    assert (made.fetches.waiting(), made.fetches.expirations.total()) == (0, 1)
    made.tier.futures[P1].complete(TIERED)
    assert (offsets(answers.only(), P0), offsets(answers.only(), P1)) == ([0], [0])
    assert made.locked() == NONE
    made.advance(REMOTE_MS)
    assert len(answers.got) == 1, "the timer's answer would be a second one"


def test_a_late_answer_comes_from_the_timer() -> None:
    """B943: when the tier's time is over, and not before; a read that ends afterwards changes nothing."""
    made = ShareScene()
    answers = waiting_remotely(made)
    made.tier.futures[P0].complete(TIERED)
    made.advance(REMOTE_MS - 1)
    assert not answers
    made.advance(1)
    assert list(answers.only()) == [P0]
    made.tier.futures[P1].complete(TIERED)
    assert len(answers.got) == 1
    assert made.locked() == NONE


def test_a_late_answer_checks_the_others() -> None:
    """B929: there is no request to run the queue; a fetch that waits for the locks goes on by itself."""
    made = ShareScene()
    first = waiting_remotely(made)
    _, second = made.fetch(FetchParams(1000, 1, 1000), member="n")
    made.advance(30)
    assert not second
    made.tier.futures[P0].complete(TIERED)
    made.tier.starts.clear()
    made.tier.futures[P1].complete(TIERED)
    assert first
    assert offsets(second.only()) == [1], "what the first has not acquired"


def test_after_the_shutdown_nobody_is_left() -> None:
    """What would be answered later, or waits for its late answer, is answered at once."""
    for wait_ms in (0, 30):
        made = ShareScene()
        answers = waiting_remotely(made)
        made.advance(wait_ms)
        made.fetches.shutdown()
        assert answers.only() == {}
        assert made.locked() == NONE


def test_the_local_partition_is_answered_beside_the_tiers() -> None:
    """B946: P1 is local: its lock is given back while the tier is read, and it is read on completion."""
    made = ShareScene()
    made.bring(P0, Share.TIERED)
    made.bring(P1, Share.SOME)
    _, answers = made.fetch()
    assert made.locked() == [True, False]
    made.tier.futures[P0].complete(TIERED)
    assert (offsets(answers.only(), P0), offsets(answers.only(), P1)) == ([0], [0])
    assert made.locked() == NONE


def test_another_member_may_fetch_the_local_partition_meanwhile() -> None:
    """B946: then it is not in the answer."""
    made = ShareScene()
    made.bring(P0, Share.TIERED)
    made.bring(P1, Share.ENOUGH)
    _, answers = made.fetch()
    _, other = made.fetch(PARAMS, P1, member="n")
    assert offsets(other.only(), P1) == [0, 1]
    made.tier.futures[P0].complete(TIERED)
    assert list(answers.only()) == [P0]


def test_a_read_of_the_tier_that_cannot_begin() -> None:
    """B945: answered at once with an error, the one that had begun cancelled, and no lock is left."""
    made = ShareScene()
    made.scene.runtime.faults = CONTAIN
    made.tier.fails_for.add(P1)
    for partition in (P0, P1):
        made.bring(partition, Share.TIERED)
    _, answers = made.fetch()
    assert {result.error for result in answers.only().values()} == {Error.UNKNOWN_SERVER_ERROR}
    assert is_cancelled(made.tier.futures[P0])
    assert made.locked() == NONE


def test_whoever_lets_faults_through_loses_no_lock_either() -> None:
    made = ShareScene()
    made.tier.fails_for.add(P0)
    made.bring(P0, Share.TIERED)
    answers: Answers[Fetched] = Answers()
    with pytest.raises(OSError, match="no thread left"):
        made.fetches.fetch("m", PARAMS, (P0, P1), answers)
    assert answers.only()[P0].error is Error.UNKNOWN_SERVER_ERROR

    def raises(answer: Fetched) -> None:
        raise ValueError(answer)

    made.bring(P1, Share.ENOUGH)
    with pytest.raises(ValueError, match="partition=1"):
        made.fetches.fetch("m", PARAMS, (P1,), raises)
    assert made.locked() == NONE


@pytest.mark.parametrize(
    "expected", [Error.KAFKA_STORAGE_ERROR, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER]
)
def test_a_partition_that_is_gone_ends_the_wait(expected: Error) -> None:
    """B943: offline, deleted or stopped; the answer, which comes later, has its error, and the other's records."""
    made = ShareScene()
    answers = waiting_remotely(made)
    if expected is Error.KAFKA_STORAGE_ERROR:
        made.manager.fail_directory(P0)
    else:
        made.manager.stop_replica(P0, deleted=expected is Error.UNKNOWN_TOPIC_OR_PARTITION)
    made.fetches.partition_moved(P0)
    assert made.fetches.waiting() == 0
    made.tier.futures[P0].complete(TIERED)
    made.tier.futures[P1].complete(TIERED)
    assert answers.only()[P0].error is expected
    assert offsets(answers.only(), P1) == [0]


def test_what_moved_to_the_tier_is_found_there() -> None:
    """The place was known when the record was still here: the fetch is answered empty, and the next one reads."""
    made = ShareScene()
    made.bring(P0, Share.SOME)
    made.fetch(PARAMS, P0)
    made.scene.append(P0, 10)
    made.tier.starts[P0] = 2
    made.fetches.partition_moved(P0)
    _, answers = made.fetch(PARAMS, P0)
    assert not answers
    made.tier.futures[P0].complete(TIERED)
    assert offsets(answers.only()) == [0]


def test_a_callback_that_raises_late_leaves_no_lock() -> None:
    made = ShareScene()
    made.scene.runtime.faults = CONTAIN
    for partition in (P0, P1):
        made.bring(partition, Share.TIERED)

    def raises(answer: Fetched) -> None:
        raise ValueError(answer)

    made.fetches.fetch("m", PARAMS, (P0, P1), raises)
    made.advance(30)
    for future in made.tier.futures.values():
        future.complete(TIERED)
    assert made.locked() == NONE
