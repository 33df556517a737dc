"""DelayedShareFetch: its tables, and the fetch locks where a callback or a read raises (see also `days/share.txt`)."""

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio.faults import CONTAIN
from purgatorio_broker.deferred import Cancelled, Deferred
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_partition import ShareLimits
from purgatorio_wire.table.remote import Read
from purgatorio_wire.table.share_fetch import (
    SHARE_FETCH,
    SHARE_READ,
    SHARE_REMOTE,
    LocalRead,
    Share,
    ShareAnswer,
    ShareReading,
    ShareRemote,
)
from wire.broker_days import TIERED
from wire.broker_scene import DIALECTS, P0, P1, Answers
from wire.share_scene import PARAMS, REMOTE_MS, Fetched, ShareScene, offsets

NONE = [False, False]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation(dialect: Dialect) -> None:
    """B921 to B926: the completion and its records. The locks are as before, then and after the time-out."""
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
    """B931 to B935: checked at the event and at the time-out. In the end no lock is left."""
    for situation in SHARE_READ.situations:
        made = ShareScene(later=True, dialect=dialect)
        assert play_read(made, situation) is SHARE_READ.decide(situation).answer, situation
        made.advance(30)
        assert made.locked() == NONE
        assert made.fetches.waiting() == 0


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
    """B941 to B944: requests that wait, that are answered, and that are answered later. No lock outlives the answer."""
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


def raises() -> None:
    raise OSError("disk")


def test_a_callback_that_raises_leaves_no_lock() -> None:
    made = ShareScene()
    made.scene.runtime.faults = CONTAIN
    made.bring(P0, Share.ENOUGH)
    made.manager.run_actions()
    made.fetches.fetch("m", FetchParams(30, 1, 1000), (P0, P1), lambda answer: raises())
    assert made.locked() == [False, False]
    assert made.manager.actions.size() == 1


def test_a_policy_that_raises_loses_no_lock() -> None:
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


def test_keys_are_equal_by_value_and_never_across_kinds() -> None:
    """The same group and partition make the same key; a group's key is no partition's."""
    assert ShareGroupKey("g", P0) == ShareGroupKey("g", TopicPartition("t", 0))
    assert hash(ShareGroupKey("g", P0)) == hash(ShareGroupKey("g", TopicPartition("t", 0)))
    keys: set[object] = {ShareGroupKey("g", P0), ShareGroupKey("h", P0), SharePartitionKey(P0), P0}
    assert len(keys) == 4


@pytest.mark.parametrize("field", ["capacity", "lock_ms", "max_deliveries"])
def test_limits_below_one_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}=0"):
        ShareLimits(**{field: 0})
