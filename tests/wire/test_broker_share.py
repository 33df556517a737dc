"""DelayedShareFetch: every situation, and the fetch locks where a call raises (see also `days/share.txt`)."""

from enum import Enum
from itertools import product

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio.faults import CONTAIN
from purgatorio_broker.deferred import Cancelled, Deferred
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_partition import ShareLimits
from wire.broker_days import TIERED
from wire.broker_scene import DIALECTS, P0, P1, Answers
from wire.share_scene import MIN_BYTES, PARAMS, REMOTE_MS, Fetched, Read, Share, ShareScene, offsets

NONE = [False, False]


def answered_at_once(first: Share, second: Share) -> bool:
    """B921 to B926, of a request that wants `MIN_BYTES` of both partitions."""
    shares = {first, second}
    if shares <= {Share.FETCHED_BY_ANOTHER, Share.FULL} or Share.TIERED in shares:
        return False
    sizes = {Share.SOME: MIN_BYTES // 2, Share.ENOUGH: MIN_BYTES}
    return Share.LOST in shares or sizes.get(first, 0) + sizes.get(second, 0) >= MIN_BYTES


class LocalRead(Enum):
    """A read of the local log that was put on another thread."""

    PENDING = "on its way"
    FAILED = "failed"
    TOO_LITTLE = "done, less than min bytes"
    ENOUGH = "done, min bytes"


class ShareAnswer(Enum):
    """The result of the request."""

    WAITS_LOCKED = "it waits, and keeps its locks"
    WAITS_UNLOCKED = "it waits, without locks"
    DATA = "answered with what was read"
    EMPTY = "answered with nothing"
    READ_AGAIN = "answered with what can be read now"
    LATER = "completed, and answered later"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation(dialect: Dialect) -> None:
    """B921 to B926: the completion and its records. The locks are as before, then and after the time-out."""
    for situation in product(Share, repeat=2):
        made = ShareScene(dialect=dialect)
        pairs = list(zip((P0, P1), situation, strict=True))
        for partition, share in pairs:
            made.bring(partition, share)
        others = made.locked()
        _, answers = made.fetch()
        at_once = answered_at_once(*situation)
        assert bool(answers) is at_once, situation
        tiered = [share is Share.TIERED for share in situation]
        assert made.locked() == [before or kept for before, kept in zip(others, tiered, strict=True)]
        for future in made.tier.futures.values():
            future.complete(TIERED)
        made.advance(30)
        assert made.locked() == others
        got = {p: result.error for p, result in answers.only().items()}
        shown = dict.fromkeys((Share.SOME, Share.ENOUGH, Share.TIERED), Error.NONE)
        shown[Share.LOST] = Error.NOT_LEADER_OR_FOLLOWER
        assert got == {p: shown[share] for p, share in pairs if share in shown}
        assert made.fetches.expirations.total() == (not at_once and not any(tiered))


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


def play_read(made: ShareScene, read: LocalRead, timed_out: bool) -> ShareAnswer:
    """Bring a fetch of P0 there, and say what became of it."""
    made.bring(P0, Share.ENOUGH if read is LocalRead.ENOUGH else Share.SOME)
    operation, answers = made.fetch(PARAMS, P0)
    assert (bool(answers), made.locked()) == (False, [True, False]), "the read is on its way"
    if read is LocalRead.FAILED:
        made.log.before.append(Once())
    if read is LocalRead.PENDING:
        made.advance(30 if timed_out else 29)
    else:
        if timed_out:
            made.log.ended.append(operation.force_complete)
        made.executor.run_all()
    if not answers:
        return ShareAnswer.WAITS_LOCKED if made.locked() == [True, False] else ShareAnswer.WAITS_UNLOCKED
    assert made.locked() == NONE
    if not offsets(answers.only()):
        return ShareAnswer.EMPTY
    return ShareAnswer.READ_AGAIN if read is LocalRead.FAILED else ShareAnswer.DATA


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation_of_a_local_read(dialect: Dialect) -> None:
    """B931 to B935: checked at the event and at the time-out. In the end no lock is left."""
    expected = {
        (LocalRead.PENDING, False): ShareAnswer.WAITS_LOCKED,
        (LocalRead.PENDING, True): ShareAnswer.EMPTY,
        (LocalRead.FAILED, False): ShareAnswer.READ_AGAIN,
        (LocalRead.FAILED, True): ShareAnswer.READ_AGAIN,
        (LocalRead.TOO_LITTLE, False): ShareAnswer.WAITS_UNLOCKED,
    }
    for read, timed_out in product(LocalRead, (False, True)):
        made = ShareScene(later=True, dialect=dialect)
        answer = expected.get((read, timed_out), ShareAnswer.DATA)
        assert play_read(made, read, timed_out) is answer, (read, timed_out)
        made.advance(30)
        assert made.locked() == NONE
        assert made.fetches.waiting() == 0


def waiting_remotely(made: ShareScene) -> Answers[Fetched]:
    """A fetch of both partitions that waits for the tier."""
    for partition in (P0, P1):
        made.bring(partition, Share.TIERED)
    _, answers = made.fetch(PARAMS)
    assert (bool(answers), made.locked()) == (False, [True, True])
    return answers


def play_remote(
    made: ShareScene, reads: tuple[Read, Read], gone: bool, timed_out: bool
) -> tuple[ShareAnswer, Answers[Fetched]]:
    """Bring a fetch of both there, and say what became of it. `gone`: P1 is led elsewhere by now."""
    answers = waiting_remotely(made)
    for partition, read in zip((P0, P1), reads, strict=True):
        if partition == P1 and gone:
            # Before anybody looks at the last read.
            made.tier.ended.append(lambda: made.manager.become_follower(P1, 2))
        if read is Read.DONE:
            made.tier.futures[partition].complete(TIERED)
        elif read is Read.FAILED:
            made.tier.futures[partition].fail(OSError("the tier is gone"))
    if gone and reads[1] is Read.PENDING:
        made.manager.become_follower(P1, 2)
    made.fetches.partition_moved(P1)
    if timed_out and made.fetches.waiting():
        made.advance(30)
    if answers:
        return ShareAnswer.DATA, answers
    return (ShareAnswer.LATER if made.fetches.waiting() == 0 else ShareAnswer.WAITS_LOCKED), answers


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_situation_of_remote_reads(dialect: Dialect) -> None:
    """B941 to B944: requests that wait, that are answered, and that are answered later. No lock outlives the answer."""
    shown = {Read.DONE: Error.NONE, Read.FAILED: Error.UNKNOWN_SERVER_ERROR}
    flags = (False, True)
    for first, second, gone, timed_out, patient in product(Read, Read, flags, flags, flags):
        reads, situation = (first, second), (first, second, gone, timed_out, patient)
        made = ShareScene(dialect=dialect, remote_wait_ms=REMOTE_MS if patient else 20)
        answered, answers = play_remote(made, reads, gone, timed_out)
        if Read.PENDING not in reads:  # B941
            assert answered is ShareAnswer.DATA, situation
        elif not timed_out and not gone:  # B942
            assert answered is ShareAnswer.WAITS_LOCKED, situation
        else:  # B943, B944
            assert answered is (ShareAnswer.LATER if patient else ShareAnswer.DATA), situation
        if answered is not ShareAnswer.DATA:
            assert made.locked() == [True, True], situation
        made.advance(REMOTE_MS)
        expected = {p: shown[read] for p, read in zip((P0, P1), reads, strict=True) if read in shown}
        if gone and expected.get(P1, Error.NONE) is Error.NONE:
            expected[P1] = Error.NOT_LEADER_OR_FOLLOWER
        assert {p: result.error for p, result in answers.only().items()} == expected, situation
        assert made.locked() == NONE
        pending = [read is Read.PENDING for read in reads]
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
