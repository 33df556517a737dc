"""DelayedFetch: every situation, and the promises around it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

import pytest

from purgatorio_broker.delayed_fetch import DelayedFetch, FetchStatus
from purgatorio_broker.fetch_request import CONSUMER, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import OffsetMetadata
from purgatorio_broker.partition import Isolation
from wire.broker_scene import P0, P1, Answers, Replica, Scene

Results = Mapping[TopicPartition, FetchResult]


class Epoch(Enum):
    """The leader epoch that the fetcher gave."""

    NOT_SAID = None
    CURRENT = 5
    BEHIND = 4
    AHEAD = 6


class Distance(Enum):
    """The fetch offset, relative to the end of the readable records."""

    BEHIND_END = "above the end"
    AT_END = "at the end"
    OLDER_SEGMENT = "below the end, on an older segment"
    SAME_SEGMENT = "below the end, on the same segment"
    NO_PLACE = "below the end, one of the two without a place"


class Divergence(Enum):
    """The last epoch of the fetcher: records 0 to 2 of the leader have epoch 3, the others epoch 5."""

    NOT_ASKED = None
    NONE = 5
    UNDEFINED = 2
    SMALLER_EPOCH = 4
    SHORTER = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """`has_place`: the place of the fetch offset was known when the request began to wait. `leader_only`: a
    follower may not serve it."""

    has_place: bool
    replica: Replica
    leader_only: bool
    epoch: Epoch
    distance: Distance
    throttled: bool
    divergence: Divergence
    max_bytes: int


SITUATIONS = [
    Fetched(*values)
    for values in product(
        (True, False), Replica, (True, False), Epoch, Distance, (True, False), Divergence, (40, 1000)
    )
    # A throttled reader is a follower, and followers read from leaders only. A fetch offset above the end has no
    # epoch that ends at or above it.
    if (values[2] or not values[5])
    and not (values[4] is Distance.BEHIND_END and values[6] is Divergence.NONE)
]


def bytes_added(s: Fetched) -> int | None:
    """The bytes that the partition adds; None, if it completes the request at once. The first case that holds."""
    cases = (
        (not s.has_place, 0),  # B211
        (s.replica in (Replica.ELSEWHERE, Replica.UNKNOWN, Replica.OFFLINE), None),  # B202 to B204
        (s.epoch in (Epoch.BEHIND, Epoch.AHEAD), None),  # B205, B206
        (s.replica is Replica.FOLLOWS and s.leader_only, None),  # B201
        (s.distance is Distance.BEHIND_END, None),  # B207
        (s.distance is Distance.OLDER_SEGMENT and not s.throttled, None),  # B208
        (s.divergence not in (Divergence.NOT_ASKED, Divergence.NONE), None),  # B209
        (s.throttled or s.distance is not Distance.SAME_SEGMENT, 0),  # B210, B212
    )
    return next((added for holds, added in cases if holds), min(50, s.max_bytes))  # B213


STARTS = {
    Distance.BEHIND_END: OffsetMetadata(25, 20, 50),
    Distance.AT_END: OffsetMetadata(20, 10, 100),
    Distance.OLDER_SEGMENT: OffsetMetadata(5, 0, 50),
    Distance.SAME_SEGMENT: OffsetMetadata(15, 10, 50),
    Distance.NO_PLACE: OffsetMetadata(15),
}
"""Of a log with 20 records of 10 bytes in segments of 100 bytes; it ends on the second segment."""


def scene_of(replica: Replica, throttled: bool) -> Scene:
    """A broker whose partition stands as said."""
    scene = Scene().leads(P0, epoch=3)
    scene.append(P0, 10, 10, 10)
    scene.leads(P0, epoch=5)
    scene.append(P0, *[10] * 17)
    scene.moves(P0, replica, epoch=5)
    if throttled:
        scene.manager.throttle(frozenset({P0}))
    return scene


def waiting_fetch(
    scene: Scene, situation: Fetched, min_bytes: int, more: tuple[FetchStatus, ...] = ()
) -> DelayedFetch:
    """The operation in this situation. The follower that is held back is replica 9, which is not in sync."""
    params = FetchParams(
        30, min_bytes, 1000, Isolation.LOG_END, 9 if situation.throttled else CONSUMER, situation.leader_only
    )
    start = STARTS[situation.distance]
    request = FetchPartition(
        start.offset, situation.max_bytes, situation.epoch.value, situation.divergence.value
    )
    status = FetchStatus(P0, request, start if situation.has_place else None)
    meter = scene.manager.fetch_expirations
    return DelayedFetch(params, (status, *more), scene.manager, lambda: None, meter, scene.runtime)


def test_every_situation() -> None:
    """B201 to B214, at min bytes, one byte below, and one byte above."""
    scenes = {
        (replica, throttled): scene_of(replica, throttled)
        for replica in Replica
        for throttled in (True, False)
    }
    for situation in SITUATIONS:
        added = bytes_added(situation)
        for min_bytes in {max((added or 0) + more, 1) for more in (-1, 0, 1)}:
            operation = waiting_fetch(scenes[situation.replica, situation.throttled], situation, min_bytes)
            expected = added is None or added >= min_bytes
            assert operation.try_complete() is expected, (situation, min_bytes, added)
            assert operation.is_completed() is expected


@pytest.mark.parametrize(("min_bytes", "complete"), [(90, True), (91, False)])
def test_the_sum_is_over_all_partitions(min_bytes: int, complete: bool) -> None:
    """B214: 40 of one partition (its maximum) and 50 of the other make 90."""
    scene = scene_of(Replica.LEADS, throttled=False).leads(P1)
    scene.append(P1, 10, 10, 10, 10, 10)
    second = FetchStatus(P1, FetchPartition(0, 1000), OffsetMetadata(0, 0, 0))
    situation = Fetched(
        True, Replica.LEADS, True, Epoch.CURRENT, Distance.SAME_SEGMENT, False, Divergence.NONE, 40
    )
    assert waiting_fetch(scene, situation, min_bytes, (second,)).try_complete() is complete


@pytest.mark.parametrize(("end", "complete"), [(0, True), (500, False)])
def test_an_end_without_a_place(end: int, complete: bool) -> None:
    """Fetch at 450, the high watermark a bare offset: 0 is a truncated log and answers; 500 says nothing of bytes."""
    scene = Scene(segment_bytes=100_000)
    scene.manager.become_follower(P0, 5)
    scene.manager.partition_or_raise(P0).replicate([10] * 500, 5, end)
    params = FetchParams(30, 1, 1000, Isolation.HIGH_WATERMARK, leader_only=False)
    status = FetchStatus(P0, FetchPartition(450, 1000), OffsetMetadata(450, 0, 4500))
    meter = scene.manager.fetch_expirations
    operation = DelayedFetch(params, (status,), scene.manager, lambda: None, meter, scene.runtime)
    assert operation.try_complete() is complete


def consume(scene: Scene, offset: int, min_bytes: int = 1, **more: Isolation) -> Answers[Results]:
    """A consumer's fetch of partition 0, ready to wait for 30 ms."""
    answers: Answers[Results] = Answers()
    params = FetchParams(30, min_bytes, 1000, more.get("isolation", Isolation.HIGH_WATERMARK))
    scene.manager.fetch_records(params, {P0: FetchPartition(offset, 1000)}, answers)
    return answers


@pytest.mark.parametrize(
    ("params", "request_"),
    [
        (FetchParams(30, 500, 1000, isolation), FetchPartition(0, 1000))
        for isolation in (Isolation.HIGH_WATERMARK, Isolation.COMMITTED)
    ]
    + [
        (FetchParams(30, 500, 15), FetchPartition(0, 1000)),
        (FetchParams(30, 500, 1000), FetchPartition(0, 25)),
        (FetchParams(30, 500, 1000), FetchPartition(1, 1000, current_epoch=5)),
        (FetchParams(30, 500, 1000, leader_only=False), FetchPartition(0, 1000)),
        (FetchParams(30, 500, 1000, Isolation.LOG_END, replica_id=1), FetchPartition(2, 1000)),
    ],
)
def test_to_have_waited_changes_no_answer(params: FetchParams, request_: FetchPartition) -> None:
    """B215: isolation, maxima, epoch and replica are the request's, whether it waited or not."""
    scene = Scene(segment_bytes=1000).leads(P0, isr=(0,))
    scene.append(P0, 10, 10)
    waited: Answers[Results] = Answers()
    at_once: Answers[Results] = Answers()
    scene.manager.fetch_records(params, {P0: request_}, waited)
    assert not waited
    scene.manager.append_records(0, 1, {P0: (10, 10)}, lambda results: None, producer="open transaction")
    scene.manager.run_actions()
    scene.advance(30)
    scene.manager.fetch_records(replace(params, max_wait_ms=0), {P0: request_}, at_once)
    assert waited.only() == at_once.only()
