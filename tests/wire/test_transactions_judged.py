"""What a broker may do with transactions accuses it of nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purgatorio_spec.verdict import Verdict
from wire_story import Story
from wire_twins.told import delete_records
from wire_twins.transactions import (
    CONCURRENT,
    add,
    end,
    ended,
    held,
    hold,
    init,
    of_group,
    offsets,
    opened,
    read,
    write,
)

CLAUSES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "G9", "F1", "F3", "F4", "M1", "L1", "X4", "O4")


def an_end_without_an_answer(s: Story) -> None:
    """It may have ended or not."""
    opened(s)
    end(s, 300, True, takes=None)
    read(s, 310, 311, [], stable=0)
    read(s, 320, 321, [0, 1], stable=2)


def an_end_under_way(s: Story) -> None:
    opened(s)
    ended(s, 300, False)
    read(s, 300.5, 301.5, [], stable=0)
    read(s, 302, 303, [0, 1], stable=2, aborted=[(7, 0)])
    read(s, 302.5, 303.5, [0, 1], stable=2, committed=False)


def one_that_is_timed_out(s: Story) -> None:
    opened(s)
    read(s, 31_000, 31_001, [], stable=0)
    read(s, 32_000, 32_001, [0, 1], stable=2, aborted=[(7, 0)])
    write(s, 33_000, -1, 47, sequence=1)
    end(s, 34_000, True, 90)


def one_that_is_left_open(s: Story) -> None:
    """Coordinators look for that now and then."""
    opened(s)
    for at in (31_000, 40_000, 49_000):
        read(s, at, at + 1, [], stable=0)
    read(s, 50_000, 50_001, [0, 1], stable=2, aborted=[(7, 0)])


def one_of_which_records_are_deleted(s: Story) -> None:
    """While that goes on it may be done or not."""
    opened(s)
    write(s, 25, 1, sequence=1)
    read(s, 30, 33, [], stable=1, offset=1)
    delete_records(s, 31, 1, 1)
    read(s, 32.5, 33.5, [], stable=1, offset=1)
    ended(s, 300, False)
    read(s, 400, 401, [1, 2], offset=1, stable=3, aborted=[(7, 0)])


def one_after_a_rest(s: Story) -> None:
    """When the one before has ended nobody asked."""
    opened(s)
    end(s, 300, True)
    add(s, 20_000)


def one_behind_another_that_was_timed_out(s: Story) -> None:
    opened(s)
    end(s, 31_000, True, 90)
    add(s, 32_000, error=47)
    init(s, 33_000, 2)
    add(s, 33_010, epoch=2)
    write(s, 33_020, 2, epoch=2)
    end(s, 60_000, True, epoch=2)


def a_leader_that_has_not_heard_of_it(s: Story) -> None:
    opened(s)
    write(s, 30, -1, 19, sequence=1)
    write(s, 40, 1, sequence=1)


def a_coordinator_that_loads(s: Story) -> None:
    s.topic()
    init(s, 4, -1, 15)
    init(s, 5, -1, 14)
    init(s, 6, 0)
    add(s, 8, error=16)
    add(s, 10)
    end(s, 20, True, 15)
    end(s, 30, True)


def others_that_are_aborted_behind(s: Story) -> None:
    """Who reads may be told of more than what it reads."""
    opened(s)
    ended(s, 300, True)
    write(s, 310, 2, sequence=1)
    end(s, 320, False)
    add(s, 330)
    read(s, 319, 325, [0, 1], aborted=[(7, 2)])


def one_without_an_addition(s: Story) -> None:
    """As newer clients write them: when it ends is not known."""
    s.topic()
    init(s, 4, 0)
    write(s, 20, 0)
    read(s, 30, 31, [], stable=0)
    read(s, 40, 41, [0, 1], stable=2)
    read(s, 50, 60, [], wait=1000, offset=2)


def one_that_is_taken_over_slowly(s: Story) -> None:
    opened(s)
    for at in range(300, 1200, 100):
        init(s, at, -1, CONCURRENT)
    init(s, 1200, 2)
    end(s, 1210, True, 90)
    add(s, 1220, epoch=2)


def an_end_that_was_asked_for_twice(s: Story) -> None:
    opened(s)
    end(s, 300, True)
    end(s, 302, True, CONCURRENT)
    end(s, 304, True)
    end(s, 306, False, CONCURRENT)
    end(s, 308, False, 48)


def one_that_commits_while_another_does(s: Story) -> None:
    """Which of the two commits was written last nobody knows."""
    held(s, 5)
    s.commit(10.5, "", -1, at=9)
    ended(s, 300, True)
    offsets(s, 3000, 5)
    offsets(s, 3010, 9)


def one_whose_producer_is_fenced(s: Story) -> None:
    """Its commit is refused for itself, whoever sends it."""
    s.pair()
    of_group(s)
    for at, error in ((2100, 47), (2110, 48), (2120, 19), (2130, 15)):
        hold(s, at, 5, "b", 9, error=error)
    offsets(s, 3000, -1)


def two_markers_behind_an_open_one(s: Story) -> None:
    """An id with another producer's transaction before and behind it: each offset is taken by a record or a marker."""
    opened(s)
    init(s, 22, 0, name="y", producer=8)
    for at, base in ((30, 1), (50, 3)):
        add(s, at, name="y", producer=8)
        write(s, at + 2, base, sequence=base // 2, producer=8)
        end(s, at + 4, True, name="y", producer=8)
    add(s, 70, name="y", producer=8)
    read(s, 80, 81, [], stable=0)
    ended(s, 100, True)
    read(s, 200, 201, [0, 1, 2, 3, 4, 5], stable=6)
    s.produce(300, 301, 6)


def one_whose_id_is_written_of(s: Story) -> None:
    """Kafka 4 looks first whether a state of the id is being written, and then who asks (KAFKA-18660)."""
    opened(s)
    init(s, 100, -1, CONCURRENT)
    init(s, 105, 2)
    add(s, 110, epoch=2)
    end(s, 120, True, epoch=2)
    add(s, 122, error=CONCURRENT)
    end(s, 124, False, CONCURRENT, producer=9)
    add(s, 130, error=90)


def ids_that_the_controller_does_not_give_in_time(s: Story) -> None:
    """Kafka 3.1 to 3.3 waits for them, and times out (KAFKA-14417)."""
    init(s, 4, -1, 7)
    init(s, 40, 0)


def a_commit_of_nobody_that_is_under_way(s: Story) -> None:
    """Up to Kafka 3.9 it is as one of a transaction to who asks for what is stable."""
    s.topic()
    s.commit(10, "", -1, at=9)
    offsets(s, 10.5, -1, stable=True, error=88)
    offsets(s, 20, 9, stable=True)


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize(
    "told",
    [
        one_whose_id_is_written_of, ids_that_the_controller_does_not_give_in_time, a_commit_of_nobody_that_is_under_way,
        an_end_without_an_answer, an_end_under_way, one_that_is_timed_out, a_leader_that_has_not_heard_of_it,
        a_coordinator_that_loads, others_that_are_aborted_behind, one_without_an_addition,
        one_that_is_left_open, one_of_which_records_are_deleted, one_behind_another_that_was_timed_out,
        one_after_a_rest, one_that_commits_while_another_does, one_whose_producer_is_fenced,
        one_that_is_taken_over_slowly, an_end_that_was_asked_for_twice, two_markers_behind_an_open_one,
    ],
    ids=lambda told: told.__name__,
)  # fmt: skip
def test_what_is_open_accuses_nobody(told: Callable[[Story], None], clause: str) -> None:
    story = Story()
    told(story)
    result = story.judged(clause)
    assert result.verdict is not Verdict.VIOLATED, result.causes


@pytest.mark.parametrize("clause", ["M1", "R5", "R6"])
def test_who_has_to_ask_again_is_answered_in_the_end(clause: str) -> None:
    story = Story()
    a_leader_that_has_not_heard_of_it(story)
    story.scene = "another#1"
    a_coordinator_that_loads(story)
    result = story.judged(clause)
    assert result.verdict is Verdict.PASS, result.reason


def test_a_transaction_that_takes_two_seconds_to_end_is_on_time_and_one_late_row_is_unknown() -> None:
    for over, verdict in ((2300, Verdict.PASS), (9000, Verdict.UNKNOWN)):
        story = Story()
        opened(story)
        end(story, 300, True)
        add(story, over - 10, error=CONCURRENT)
        add(story, over)
        assert story.judged("R2").verdict is verdict
