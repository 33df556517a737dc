"""DelayedRemoteFetch and DelayedRemoteListOffsets: every situation together with one of each kind, and the
time-outs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product

import pytest

from purgatorio.threads import THREADS
from purgatorio_broker.deferred import Cancelled, Deferred
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.remote_reads import ListedOffset, OffsetFound, OffsetLookup, RemoteRead, RemoteReads
from wire.broker_scene import P0, P1, REFUSALS, Answers, Replica, Scene
from wire.share_scene import Read

Fetched = Mapping[TopicPartition, FetchResult]
Listed = Mapping[str, Mapping[int, ListedOffset]]

NOTHING = ReadRecords((), None, None)
REMOTE_DATA = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)
PARAMS = FetchParams(30, 1, 1000)


class Source(Enum):
    """The source of a partition's answer."""

    LOCAL = "the local result"
    REMOTE = "the remote data"
    FAILED = "UNKNOWN_SERVER_ERROR"


@dataclass(frozen=True, slots=True)
class Remote:
    """`has_place`: where the read began is known. `local_error`: the local read was refused."""

    has_place: bool
    replica: Replica
    read: Read
    local_error: bool

    def at_once(self) -> bool:
        """B901: it completes the request, whatever the others say."""
        return self.has_place and self.replica not in (Replica.LEADS, Replica.FOLLOWS)

    def source(self) -> Source:
        if self.local_error or self.read is Read.PENDING:  # B904, B905
            return Source.LOCAL
        return Source.FAILED if self.read is Read.FAILED else Source.REMOTE  # B906, B907


class Found(Enum):
    NOTHING = "no such offset"
    FETCHABLE = "an offset that the client may read"
    TOO_HIGH = "one that it may not read yet"


@dataclass(frozen=True, slots=True)
class Look:
    """`asked`: a remote look-up was needed. `held_back`: the error for the case that no offset can be returned."""

    asked: bool
    replica: Replica
    read: Read
    found: Found
    held_back: bool

    def decided(self) -> tuple[str, str | None]:
        """The clause, and the error with which the partition ends, None if it waits."""
        if not self.asked:
            return "B911", "NONE"
        if self.read is Read.FAILED:
            return "B912", "UNKNOWN_SERVER_ERROR"
        if self.read is Read.PENDING:
            return ("B913" if self.replica in REFUSALS else "B914"), REFUSALS.get(self.replica)
        if self.found is Found.FETCHABLE:
            return "B917", "NONE"
        return "B915, B916", "OFFSET_NOT_AVAILABLE" if self.held_back else "NONE"


def scene() -> tuple[Scene, RemoteReads]:
    """A leader of both partitions; a fetch waits 50 ms for the tier, an offset request 70 ms."""
    made = Scene().leads(P0, P1)
    return made, RemoteReads(made.runtime, made.manager, fetch_wait_ms=50, list_wait_ms=70)


def answer_of(result: FetchResult) -> Source:
    if result.error is Error.UNKNOWN_SERVER_ERROR:
        return Source.FAILED
    return Source.REMOTE if result.data is REMOTE_DATA else Source.LOCAL


def decide(future: Deferred[ReadRecords], read: Read) -> None:
    if read is Read.DONE:
        future.complete(REMOTE_DATA)
    elif read is Read.FAILED:
        future.fail(OSError("the tier is gone"))


def test_remote_fetches() -> None:
    """B901 to B907: whether a request of two partitions completes, and what each is answered."""
    every = [Remote(*values) for values in product((True, False), Replica, Read, (True, False))]
    kinds = {(s.at_once(), s.read, s.source()): s for s in every}
    for situations in product(every, kinds.values()):
        made, remote = scene()
        pairs: list[tuple[TopicPartition, Remote]] = list(zip((P0, P1), situations, strict=True))
        futures: dict[TopicPartition, Deferred[ReadRecords]] = {p: Deferred(THREADS) for p, _ in pairs}
        reads = tuple(RemoteRead(p, futures[p], situation.has_place) for p, situation in pairs)
        local = {
            p: FetchResult(Error.OFFSET_OUT_OF_RANGE if s.local_error else Error.NONE, NOTHING)
            for p, s in pairs
        }
        for partition, situation in pairs:
            made.moves(partition, situation.replica)
            decide(futures[partition], situation.read)
        answers: Answers[Fetched] = Answers()
        remote.fetch(PARAMS, reads, local, answers)
        pending = any(s.read is Read.PENDING for s in situations)  # B902, B903
        complete = not pending or any(s.at_once() for s in situations)
        assert bool(answers) is complete, situations
        made.runtime.advance(50)
        got = [answer_of(answers.only()[p]) for p, _ in pairs]
        assert got == [s.source() for s in situations]
        assert [answers.only()[p].error is Error.OFFSET_OUT_OF_RANGE for p, _ in pairs] == [
            s.local_error for s in situations
        ]
        assert remote.fetch_expirations.total() == (not complete)


def waiting_reads(remote: RemoteReads) -> tuple[list[Deferred[ReadRecords]], Answers[Fetched]]:
    """A fetch of both partitions that waits for the tier."""
    futures: list[Deferred[ReadRecords]] = [Deferred(THREADS), Deferred(THREADS)]
    reads = (RemoteRead(P0, futures[0]), RemoteRead(P1, futures[1]))
    answers: Answers[Fetched] = Answers()
    local = {P0: FetchResult(Error.NONE, NOTHING), P1: FetchResult(Error.NONE, NOTHING)}
    remote.fetch(PARAMS, reads, local, answers)
    assert not answers
    return futures, answers


def test_a_failed_remote_read_is_an_error_of_its_partition() -> None:
    """The last future answers the request, without another event. The other partition has its data."""
    _, remote = scene()
    futures, answers = waiting_reads(remote)
    futures[0].complete(REMOTE_DATA)
    assert not answers
    futures[1].fail(OSError("gone"))
    assert [result.error for result in answers.only().values()] == [Error.NONE, Error.UNKNOWN_SERVER_ERROR]
    assert remote.waiting() == (0, 0)


def test_the_manager_reports_lost_leadership() -> None:
    """Named to it once, the purgatories of remote reads are checked with its own: by the queue, as they are."""
    made, remote = scene()
    made.manager.also_check(remote.partition_moved)
    _, answers = waiting_reads(remote)
    listed: Answers[Listed] = Answers()
    remote.list_offsets(70, (OffsetLookup(P1, future=Deferred(THREADS)),), listed)
    made.manager.stop_replica(P1)
    assert not answers
    assert not listed
    made.manager.run_actions()
    assert [answer_of(result) for result in answers.only().values()] == [Source.LOCAL, Source.LOCAL]
    assert listed.only()["t"][1].error is Error.NOT_LEADER_OR_FOLLOWER


def test_a_remote_fetch_that_expires() -> None:
    """The answer comes first, then the unfinished reads are cancelled. One expiration is counted for the request."""
    made, remote = scene()
    futures, answers = waiting_reads(remote)
    futures[0].complete(REMOTE_DATA)
    made.runtime.advance(49)
    assert not answers
    made.runtime.advance(1)
    assert [answer_of(result) for result in answers.only().values()] == [Source.REMOTE, Source.LOCAL]
    outcomes = [future.outcome() for future in futures]
    assert [outcome is not None and isinstance(outcome.error, Cancelled) for outcome in outcomes] == [
        False,
        True,
    ]
    assert remote.fetch_expirations.total() == 1


def test_followers_do_not_read_remotely() -> None:
    _, remote = scene()
    with pytest.raises(ValueError, match="replica 1"):
        remote.fetch(FetchParams(30, 1, 1000, replica_id=1), (), {}, lambda results: None)


def lookup(partition: TopicPartition, look: Look) -> OffsetLookup:
    """The partition of the request, as far as it is known when it is made."""
    if not look.asked:
        return OffsetLookup(partition, answer=ListedOffset(Error.NONE, 1, 2, 3))
    future: Deferred[OffsetFound | None] = Deferred(THREADS)
    if look.read is Read.FAILED:
        future.fail(OSError("gone"))
    elif look.read is Read.DONE:
        offset = 20 if look.found is Found.TOO_HIGH else 5
        future.complete(None if look.found is Found.NOTHING else OffsetFound(100, offset, 3))
    held_back = Error.OFFSET_NOT_AVAILABLE if look.held_back else Error.NONE
    return OffsetLookup(partition, None, future, 20, held_back)


def test_list_offsets_of_each_kind() -> None:
    """B911 to B917, every situation together with one of each kind: the time of each answer, and its contents."""
    drawn = (Look(*values) for values in product((True, False), Replica, Read, Found, (True, False)))
    every = [look for look in drawn if look.read is Read.DONE or look.found is Found.NOTHING]
    kinds = {look.decided()[0]: look for look in every}
    for situations in product(every, kinds.values()):
        made, remote = scene()
        for partition, look in zip((P0, P1), situations, strict=True):
            made.moves(partition, look.replica)
        lookups = tuple(lookup(p, look) for p, look in zip((P0, P1), situations, strict=True))
        answers: Answers[Listed] = Answers()
        remote.list_offsets(30, lookups, answers)
        decided = [look.decided() for look in situations]
        assert bool(answers) is all(error is not None for _, error in decided), situations
        made.runtime.advance(30)
        got = answers.only()["t"]
        assert [got[n].error.value for n in (0, 1)] == [error or "REQUEST_TIMED_OUT" for _, error in decided]
        shown = [got[n].offset for n in (0, 1)]
        assert shown == [{"B911": 2, "B917": 5}.get(clause, -1) for clause, _ in decided]
        for made_lookup, (clause, _) in zip(lookups, decided, strict=True):
            if clause == "B913":
                assert made_lookup.future is not None
                assert made_lookup.future.is_done()


def test_list_offsets_that_expire() -> None:
    """Each open partition is cancelled and counted; without a time-out of its own the default holds."""
    made, remote = scene()
    futures: list[Deferred[OffsetFound | None]] = [Deferred(THREADS), Deferred(THREADS)]
    lookups = tuple(OffsetLookup(p, future=f) for p, f in zip((P0, P1), futures, strict=True))
    answers: Answers[Listed] = Answers()
    remote.list_offsets(0, lookups, answers)
    made.runtime.advance(69)
    assert not answers
    made.runtime.advance(1)
    assert {listed.error for listed in answers.only()["t"].values()} == {Error.REQUEST_TIMED_OUT}
    assert all(future.is_done() for future in futures)
    meter = remote.list_expirations
    assert (meter.total(), meter.count(P0), meter.count(P1)) == (2, 1, 1)


def test_removing_a_partition_removes_its_meter() -> None:
    """The partition's own count goes with it, the total stays; an unknown one is no error."""
    made, remote = scene()
    future: Deferred[OffsetFound | None] = Deferred(THREADS)
    remote.list_offsets(30, (OffsetLookup(P0, future=future),), lambda answers: None)
    made.runtime.advance(30)
    meter = remote.list_expirations
    assert (meter.total(), meter.count(P0)) == (1, 1)
    remote.partition_deleted(P0)
    remote.partition_deleted(P1)
    assert (meter.total(), meter.count(P0), meter.keys()) == (1, 0, [])


def test_old_clients_do_not_get_the_epoch() -> None:
    """The field is left blank, the offset is not."""
    _, remote = scene()
    future: Deferred[OffsetFound | None] = Deferred(THREADS)
    answers: Answers[Listed] = Answers()
    remote.list_offsets(30, (OffsetLookup(P0, future=future),), answers, with_epoch=False)
    future.complete(OffsetFound(100, 5, 3))
    assert answers.only()["t"][0] == ListedOffset(Error.NONE, 100, 5, -1)


def test_an_action_that_raises_keeps_no_other_from_running() -> None:
    future: Deferred[int] = Deferred(THREADS)
    ran: list[str] = []

    def fails() -> None:
        ran.append("fails")
        raise LookupError("the action's own bug")

    for action in (fails, lambda: ran.append("runs")):
        future.when_done(action)
    with pytest.raises(LookupError):
        future.complete(1)
    assert ran == ["fails", "runs"]
    assert future.is_done()
