"""What a broker may do with a share group accuses it of nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purgatorio_spec.verdict import Verdict
from wire_story import Story
from wire_twins.shares import ACCEPT, RELEASE, append, held, made, say, shared, take

CLAUSES = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "X2", "X4", "M1")


def records_from_before_it_began(s: Story) -> None:
    """`share.auto.offset.reset` is `latest`."""
    made(s)
    append(s, 4, 0)
    take(s, 6, 7, "a", 0)
    append(s, 8, 1)
    take(s, 10, 11, "a", 1, wait=500)
    take(s, 20, 521, "a", 2, wait=500)


def another_took_it(s: Story) -> None:
    """An answer may be early and empty then."""
    shared(s)
    take(s, 20, 102, "a", 3, [(1, 1, 1)], wait=3000)
    take(s, 20, 103, "b", 1, wait=3000)
    append(s, 100, 1)


def one_record_for_two(s: Story) -> None:
    shared(s)
    take(s, 20, 102, "a", 3, [(1, 1, 1)], wait=3000)
    take(s, 20, 3022, "b", 1, wait=3000)
    append(s, 100, 1)


def a_release_that_nobody_answered(s: Story) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)], takes=None)
    take(s, 30, 500, "b", 1, [(1, 1, 2)], wait=3000)


def a_release_that_wakes_nobody(s: Story) -> None:
    """It is written down first, and who waits has been tried before that."""
    held(s)
    take(s, 20, 1021, "b", 1, [(1, 1, 2)], wait=1000)
    say(s, 100, "a", 4, [(1, 1, RELEASE)])


def a_session_that_is_written_down_behind_its_end(s: Story) -> None:
    held(s)
    say(s, 20, "a", -1, [])
    take(s, 22, 423, "b", 1, wait=400)
    take(s, 2000, 2001, "b", 2, [(1, 1, 1)], wait=400)


def a_release_that_failed(s: Story) -> None:
    held(s)
    take(s, 20, 2021, "b", 1, wait=2000)
    say(s, 100, "a", 4, [(1, 1, RELEASE)], told=15)


@pytest.mark.parametrize("count", [1, 2])
def test_the_end_of_a_session_may_take_a_delivery_back(count: int) -> None:
    s = Story()
    held(s)
    say(s, 20, "a", -1, [])
    take(s, 30, 31, "b", 1, [(1, 1, count)])
    assert s.judged("S3").verdict is Verdict.PASS


def a_lock_that_is_over_under_an_acknowledgement(s: Story) -> None:
    held(s)
    take(s, 4000, 5014, "b", 1, [(1, 1, 2)], wait=9000)
    say(s, 5010, "a", 4, [(1, 1, ACCEPT)], told=121, takes=10)


def accepted_twice(s: Story) -> None:
    """What lies below all that is open is let pass."""
    held(s)
    say(s, 20, "a", 4, [(1, 1, ACCEPT)])
    say(s, 30, "a", 5, [(1, 1, ACCEPT)])
    say(s, 40, "b", 1, [(1, 1, ACCEPT)])


def a_cut_with_a_fetch_that_waits(s: Story) -> None:
    """A connection that waits is not looked at."""
    held(s)
    take(s, 20, None, "a", 4, wait=4000)
    take(s, 20, 3021, "b", 1, wait=3000)
    s.close(100, "a")
    append(s, 3100, 2)
    take(s, 3200, 3201, "b", 2)


def a_session_with_a_part_of_a_batch(s: Story) -> None:
    """Where another has the rest, the end of a session may free nothing: the lock does."""
    held(s, 3)
    say(s, 20, "a", 4, [(2, 3, RELEASE)])
    take(s, 30, 31, "b", 1, [(2, 3, 2)])
    take(s, 40, 41, "c", 0)
    take(s, 50, 2051, "c", 1, wait=2000)
    say(s, 100, "a", -1, [])


def a_session_that_has_no_room(s: Story) -> None:
    shared(s)
    take(s, 20, 521, "c", 0, wait=500, error=133)


def no_more_than_two_deliveries(s: Story) -> None:
    """A group may allow no more."""
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)])
    take(s, 30, 31, "b", 1, [(1, 1, 2)])
    say(s, 40, "b", 2, [(1, 1, RELEASE)])
    take(s, 50, 1051, "a", 5, wait=1000)


def more_bytes_than_there_are(s: Story) -> None:
    shared(s)
    append(s, 20, 1)
    take(s, 30, 531, "a", 3, [(1, 1, 1)], wait=500, least=100_000)


def several_requests_on_their_way(s: Story) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, ACCEPT)], takes=5)
    take(s, 21, 26, "a", 5)
    take(s, 22, 27, "a", 9, error=123)


def a_partition_that_moved(s: Story) -> None:
    shared(s)
    take(s, 20, 40, "a", 3, wait=2000, part_error=6)


def a_lock_that_nobody_tells(s: Story) -> None:
    shared(s)
    append(s, 10, 1)
    take(s, 11.5, 12, "a", 3, [(1, 1, 1)], lock=0)
    take(s, 20, 21, "b", 1, [(1, 1, 2)], lock=0)


def a_member_that_leaves(s: Story) -> None:
    """Its session goes on, or not."""
    held(s)
    gone = {"group_id": "s", "member_id": "a", "member_epoch": -1}
    s.ask(20, "share_group_heartbeat", gone, 21, {"error_code": 0, "member_epoch": -1}, version=1)
    take(s, 30, 31, "b", 1, [(1, 1, 2)])


def a_session_that_is_begun_anew(s: Story) -> None:
    """What it held may be free, and may be held on."""
    held(s)
    take(s, 20, 21, "a", 0)
    take(s, 30, 31, "b", 1)
    take(s, 40, 5013, "b", 2, [(1, 1, 2)], wait=6000)


def batches_that_are_longer(s: Story) -> None:
    """What comes is of whole batches, of which only what was acquired counts."""
    held(s, 5)
    say(s, 20, "a", 4, [(3, 3, RELEASE)])
    take(s, 30, 31, "b", 1, [(3, 3, 2)], batches=[(1, 5)])
    append(s, 40, 6, 2)
    take(s, 50, 51, "b", 2, [(6, 7, 1)])


LEGAL = [
    records_from_before_it_began,
    another_took_it,
    one_record_for_two,
    a_release_that_nobody_answered,
    a_release_that_wakes_nobody,
    a_session_that_is_written_down_behind_its_end,
    a_release_that_failed,
    a_lock_that_is_over_under_an_acknowledgement,
    accepted_twice,
    a_cut_with_a_fetch_that_waits,
    a_session_with_a_part_of_a_batch,
    a_session_that_has_no_room,
    no_more_than_two_deliveries,
    more_bytes_than_there_are,
    several_requests_on_their_way,
    a_partition_that_moved,
    a_lock_that_nobody_tells,
    a_member_that_leaves,
    a_session_that_is_begun_anew,
    batches_that_are_longer,
]


@pytest.mark.parametrize("told", LEGAL, ids=lambda one: one.__name__)
def test_what_a_broker_may_do_is_no_violation(told: Callable[[Story], None]) -> None:
    story = Story()
    told(story)
    story.repeat()
    found = {clause: story.judged(clause) for clause in CLAUSES}
    assert not {name: one.causes for name, one in found.items() if one.verdict is Verdict.VIOLATED}


def test_what_may_have_gone_to_an_answer_that_was_lost_is_not_judged() -> None:
    s = Story()
    held(s)
    take(s, 20, None, "a", 4, wait=100)
    s.close(30, "a")
    append(s, 40, 2)
    take(s, 50, 1051, "b", 1, wait=1000)
    s.repeat()
    assert s.judged("S2").verdict is Verdict.PASS
