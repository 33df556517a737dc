"""SharePartition: who has which record, for how long, and how often it is given out."""

from __future__ import annotations

import pytest

from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits, SharePartition
from wire.broker_scene import P0, Answers
from wire.share_scene import Fetched, ShareScene, offsets

ONE = FetchParams(1000, 1, 1000)
LIMITS = ShareLimits(capacity=3, lock_ms=40, max_deliveries=2)


def scene(records: int = 2) -> ShareScene:
    """So many records; they may be kept for 40 ms and given out twice."""
    made = ShareScene(limits=LIMITS)
    made.scene.append(P0, *[10] * records)
    made.manager.run_actions()
    return made


def get(made: ShareScene, member: str = "m") -> Answers[Fetched]:
    """A member's fetch of P0."""
    answers = made.fetch(ONE, P0, member=member)[1]
    made.manager.run_actions()
    return answers


def share(made: ShareScene) -> SharePartition:
    """Of P0."""
    return made.share(P0)


def test_a_record_has_one_owner() -> None:
    """B951: acquired by one member; accepted or rejected, by nobody any more."""
    made = scene()
    assert offsets(get(made, "m").only()) == [0, 1]
    assert not get(made, "n")
    assert made.fetches.acknowledge("m", P0, [0], Acknowledgement.ACCEPT) is Error.NONE
    assert made.fetches.acknowledge("m", P0, [1], Acknowledgement.REJECT) is Error.NONE
    made.manager.run_actions()
    assert (share(made).start(), share(made).next_offset()) == (2, 2)


def test_a_released_record_is_given_out_again() -> None:
    """B952: to whoever waits, told by the queue, with its second delivery counted."""
    made = scene()
    get(made, "m")
    waits = get(made, "n")
    made.fetches.acknowledge("m", P0, [0], Acknowledgement.RELEASE)
    assert not waits
    made.manager.run_actions()
    assert offsets(waits.only()) == [0]
    assert waits.only()[P0].deliveries == (2,)
    made.fetches.check()


def test_a_lock_that_times_out_releases_the_record() -> None:
    """B952: after its time and not before; whoever waits is told without any request."""
    made = scene()
    get(made, "m")
    waits = get(made, "n")
    made.advance(39)
    assert not waits
    made.advance(1)
    assert offsets(waits.only()) == [0, 1]
    assert waits.only()[P0].deliveries == (2, 2)
    owner = share(made).delivered(0)
    assert owner is not None
    assert owner.member == "n"


def test_a_lock_ends_with_its_records() -> None:
    """B952: acknowledged, the time-out is cancelled; another member's acquisition has its own time."""
    made = scene()
    get(made, "m")
    made.advance(30)
    made.fetches.acknowledge("m", P0, [0], Acknowledgement.ACCEPT)
    assert made.fetches._timer.size() == 1, "record 1 is still locked"
    made.fetches.acknowledge("m", P0, [1], Acknowledgement.RELEASE)
    assert made.fetches._timer.size() == 0
    assert offsets(get(made, "n").only()) == [1]
    made.advance(39)
    assert share(made).next_offset() == 2
    made.advance(1)
    assert share(made).next_offset() == 2, "delivered twice: archived"


@pytest.mark.parametrize("how", ["released", "timed out", "closed"])
def test_a_record_is_not_given_out_for_ever(how: str) -> None:
    """B953: archived after its last delivery, by whatever way it comes back; the start moves on."""
    made = scene(records=1)
    for _ in range(LIMITS.max_deliveries):
        assert offsets(get(made).only()) == [0]
        if how == "released":
            made.fetches.acknowledge("m", P0, [0], Acknowledgement.RELEASE)
        elif how == "closed":
            assert made.fetches.close_session("m") == 1
        else:
            made.advance(LIMITS.lock_ms)
    assert not get(made)
    assert share(made).start() == 1


def test_only_the_owner_may_acknowledge() -> None:
    """B954: a stranger, a second time, a record that was never given out; and nothing has changed."""
    made = scene()
    get(made, "m")
    accept = Acknowledgement.ACCEPT
    assert made.fetches.acknowledge("n", P0, [0], accept) is Error.INVALID_RECORD_STATE
    assert made.fetches.acknowledge("m", P0, [0, 7], accept) is Error.INVALID_RECORD_STATE
    assert made.fetches.acknowledge("", P0, [0], accept) is Error.INVALID_RECORD_STATE
    assert share(made).start() == 0
    assert made.fetches.acknowledge("m", P0, [0], accept) is Error.NONE
    assert made.fetches.acknowledge("m", P0, [0], accept) is Error.INVALID_RECORD_STATE


def test_no_more_are_in_flight_than_may_be() -> None:
    """B955: the rest waits for an acknowledgement; what was released fits always."""
    made = scene(records=5)
    assert offsets(get(made).only()) == [0, 1, 2]
    waits = get(made, "n")
    made.fetches.acknowledge("m", P0, [1], Acknowledgement.ACCEPT)
    made.manager.run_actions()
    assert not waits, "the record at the start is not done with: as many are in flight as before"
    made.fetches.acknowledge("m", P0, [0], Acknowledgement.ACCEPT)
    made.manager.run_actions()
    assert offsets(waits.only()) == [3, 4]


def test_a_closed_session_gives_back_what_it_had() -> None:
    """B952: of all its partitions, told by the queue; what it has not is not touched."""
    made = scene()
    get(made, "m")
    waits = get(made, "n")
    assert made.fetches.close_session("stranger") == 0
    assert made.fetches.close_session("m") == 2
    made.manager.run_actions()
    assert offsets(waits.only()) == [0, 1]


@pytest.mark.parametrize("field", ["capacity", "lock_ms", "max_deliveries"])
def test_limits_below_one_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}=0"):
        ShareLimits(**{field: 0})
