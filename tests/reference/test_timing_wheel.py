"""One level and its overflow, buckets and their links: what Kafka's TimingWheelTest and TimerTaskListTest assert."""

import pytest

from purgatorio import THREADS, InvariantBroken, ManualClock
from purgatorio.sync import AtomicInt
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.task import ActionTask
from purgatorio.timer.wheel import TimingWheel

START_MS = 1000


class Level:
    """A wheel of tick 10 and 5 buckets that starts at 1000, as in Kafka's test."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.counter: AtomicInt = THREADS.atomic_int()
        self.queue: DelayQueue[TimerTaskList] = DelayQueue(ManualClock(start_ms), THREADS)
        self.wheel = TimingWheel(10, 5, start_ms, self.counter, self.queue, THREADS)

    def overflow(self) -> TimingWheel:
        overflow = self.wheel.overflow()
        assert overflow is not None
        return overflow


def entry_at(deadline_ms: int) -> TimerTaskEntry:
    return TimerTaskEntry(ActionTask(0, lambda: None), deadline_ms, THREADS)


def test_a_task_within_the_interval_is_stored() -> None:
    """testAddValidTask: stored, counted, and its bucket queued."""
    level = Level()
    assert level.wheel.add(entry_at(START_MS + 20))
    assert (level.queue.size(), level.counter.get()) == (1, 1)
    level.wheel.check()


@pytest.mark.parametrize("deadline_ms", [999, 1005, 1009])
def test_a_task_of_the_present_tick_has_expired(deadline_ms: int) -> None:
    """testAddExpiredTask, testAddTaskInCurrentBucket: not stored; the first deadline that is, is 1010."""
    level = Level()
    assert not level.wheel.add(entry_at(deadline_ms))
    assert level.wheel.add(entry_at(1010))
    assert level.counter.get() == 1


def test_a_cancelled_task_is_not_stored() -> None:
    """testAddCancelledTask."""
    level = Level()
    entry = entry_at(START_MS + 20)
    entry.task.cancel()
    assert not level.wheel.add(entry)
    assert entry.cancelled()
    assert (level.queue.size(), level.counter.get()) == (0, 0)


@pytest.mark.parametrize(
    ("time_ms", "clock_ms"), [(1005, 1000), (1009, 1000), (1010, 1010), (1019, 1010), (990, 1000)]
)
def test_the_clock_moves_by_whole_ticks_and_not_back(time_ms: int, clock_ms: int) -> None:
    """testAdvanceClockWithinTick, testAdvanceClockToNextTick."""
    level = Level()
    level.wheel.advance_clock(time_ms)
    assert level.wheel.clock_ms() == clock_ms


def test_the_level_above_is_made_once_and_on_demand() -> None:
    """testOverflowWheelCreation: none until a task lies beyond the interval, then one for all such tasks."""
    level = Level()
    assert level.wheel.overflow() is None
    assert level.wheel.add(entry_at(START_MS + 49))
    assert level.wheel.overflow() is None
    assert level.wheel.add(entry_at(START_MS + 60))
    made = level.overflow()
    assert made.tick_ms == 50
    assert level.wheel.add(entry_at(START_MS + 61))
    assert level.wheel.overflow() is made
    level.wheel.check()


def test_the_clock_above_is_the_one_below_floored() -> None:
    """testAdvanceClockWithOverflowWheel: at 1060 the level above, of tick 50, reads 1050."""
    level = Level()
    assert level.wheel.add(entry_at(START_MS + 60))
    level.wheel.advance_clock(1060)
    assert (level.wheel.clock_ms(), level.overflow().clock_ms()) == (1060, 1050)


def test_the_start_is_floored_on_every_level() -> None:
    """Measured on Kafka: start 1234 reads 1230 at tick 10, 1200 at tick 50, 1000 at tick 250."""
    level = Level(1234)
    assert level.wheel.add(entry_at(1234 + 500))
    above = level.overflow().overflow()
    assert above is not None
    assert (level.wheel.clock_ms(), level.overflow().clock_ms(), above.clock_ms()) == (1230, 1200, 1000)


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(0, 5), (-1, 5), (1, 1), (1, 0)])
def test_a_wheel_that_could_hold_nothing_is_refused(tick_ms: int, wheel_size: int) -> None:
    """With one bucket no deadline fits any level, and the making of levels would never end."""
    with pytest.raises(ValueError, match="is at least"):
        TimingWheel(tick_ms, wheel_size, 0, THREADS.atomic_int(), DelayQueue(ManualClock(), THREADS), THREADS)


def test_entries_move_between_lists_and_are_counted_once() -> None:
    """testAll: ten entries; four, then six go to other lists; the shared counter stays 10 until lists are emptied."""
    counter = THREADS.atomic_int()
    lists = [TimerTaskList(counter, THREADS) for _ in range(3)]
    entries = [entry_at(0) for _ in range(10)]
    for bucket in lists:
        bucket.set_expiration(0)
    for entry in entries:
        lists[0].add(entry)
    assert counter.get() == 10
    for entry in entries[:4]:
        lists[1].add(entry)
    assert [len(bucket.entries()) for bucket in lists] == [6, 4, 0]
    for entry in entries[4:]:
        lists[2].add(entry)
    assert [len(bucket.entries()) for bucket in lists] == [0, 4, 6]
    assert counter.get() == 10
    for bucket in lists:
        bucket.check(1)
        for entry in bucket.entries():
            entry.task.cancel()
        assert bucket.entries() == []
    assert counter.get() == 0


def test_the_delay_of_a_bucket_is_what_is_left() -> None:
    """testGetDelay: due in 10 s, and 5 s later in 5 s; never negative."""
    bucket = TimerTaskList(THREADS.atomic_int(), THREADS)
    assert bucket.set_expiration(10_000)
    assert [bucket.delay_ms(now) for now in (0, 5_000, 10_000, 12_000)] == [10_000, 5_000, 0, 0]


def test_the_check_sees_a_deadline_in_the_wrong_bucket() -> None:
    """The checks are checked: a bucket of tick 100 that holds a deadline of tick 110 is reported with both."""
    level = Level()
    bucket = level.wheel.buckets()[0]
    bucket.set_expiration(1100)
    bucket.add(entry_at(1110))
    with pytest.raises(InvariantBroken, match="deadline 1110 ms in the bucket of 1100 ms"):
        level.wheel.check()
