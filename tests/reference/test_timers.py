"""Every timer against the contract, by named cases in virtual time; `test_stateful_timers` draws programs of them."""

import random
import threading
from collections.abc import Callable
from functools import partial

import pytest

from purgatorio import (
    ActionTask,
    DirectExecutor,
    HashedWheel,
    IntrusiveTimer,
    ManualClock,
    MockTimer,
    MonotonicClock,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
    SystemTimer,
    TimerClosed,
)
from purgatorio.clock import Clock
from reference.waiting import TIMERS, Note, Request, Stepped

KINDS: dict[str, Callable[..., Stepped]] = {
    **{f"wheel{size}": partial(TIMERS["system"], wheel_size=size) for size in (2, 3, 20)},
    "heap": TIMERS["heap"],
    **{f"hashed{size}": partial(TIMERS["hashed"], wheel_size=size) for size in (1, 3, 512)},
    **{f"intrusive{size}": partial(TIMERS["intrusive"], wheel_size=size, levels=1) for size in (2, 4, 256)},
}
"""Wheels of several sizes; one level at first."""
every_kind = pytest.mark.parametrize("kind", KINDS)


class World:
    """A timer of one kind over a manual clock; `notes` has (name, time) of what ran."""

    def __init__(self, kind: str, tick_ms: int = 1, start_ms: int = 0) -> None:
        self.clock = ManualClock(start_ms)
        self.executor = QueuedExecutor()
        self.timer = KINDS[kind](clock=self.clock, executor=self.executor, tick_ms=tick_ms)
        self.notes: list[tuple[object, int]] = []

    def add(self, delay_ms: int, name: object) -> Note:
        """Add a task that notes its name and the time."""
        note = Note(delay_ms, self.notes, name, self.clock.now_ms)
        self.timer.add(note)
        return note

    def advance(self, by_ms: int) -> None:
        """Let time pass, drain, run, and check the structure."""
        self.clock.advance(by_ms)
        while self.timer.advance_clock(0):
            pass
        self.executor.run_all()
        self.timer.check()


@every_kind
def test_tasks_of_the_past_run_in_the_next_drain(kind: str) -> None:
    """testAlreadyExpiredTask: delays -5 to -1."""
    world = World(kind, start_ms=1000)
    for delay_ms in range(-5, 0):
        world.add(delay_ms, delay_ms)
    world.advance(0)
    assert sorted(name for name, _ in world.notes if isinstance(name, int)) == [-5, -4, -3, -2, -1]


@every_kind
def test_tasks_run_in_the_order_of_their_deadlines(kind: str) -> None:
    """testTaskExpiration: 0-4, 10-99 twice, 100-499, in one leap; duplicates included."""
    world = World(kind)
    delays = [*range(5), *range(10, 100), *range(10, 100), *range(100, 500)]
    random.Random(3).shuffle(delays)
    for delay_ms in delays:
        world.add(delay_ms, delay_ms)
    world.advance(2000)
    assert [name for name, _ in world.notes] == sorted(delays)
    assert world.timer.size() == 0


def test_levels_grow_with_the_logarithm_of_the_delay() -> None:
    """2**63 - 1 ms at 20 buckets a level: 15 levels, not more."""
    timer = SystemTimer("t", clock=ManualClock(), executor=QueuedExecutor())
    timer.add(ActionTask(2**63 - 1, lambda: None))
    levels, wheel = 1, timer._wheel
    while (above := wheel.overflow()) is not None:
        levels, wheel = levels + 1, above
    assert levels == 15


def test_an_idle_wheel_leaves_a_delay_of_zero_to_the_next_drain() -> None:
    """The clock of the wheel lags while nothing is due: the task waits in a bucket that is due."""
    world = World("wheel20")
    world.clock.advance(1_000)
    world.add(0, "late")
    assert world.executor.run_all() == 0
    assert world.timer.size() == 1
    world.advance(0)
    assert world.notes == [("late", 1_000)]


def test_buckets_of_cancelled_tasks_still_come_due() -> None:
    """`advance_clock` may say True though nothing ran."""
    world = World("wheel20")
    world.add(5, "never").cancel()
    world.clock.advance(5)
    assert world.timer.advance_clock(0)
    assert not world.timer.advance_clock(0)
    assert world.notes == []


class TestHashedWheelStops:
    """The two stops of the single wheel."""

    def test_stop_now_returns_waiting_tasks(self) -> None:
        """Pending tasks are returned, earliest first, and never run; nothing more is taken."""
        world = World("hashed3")
        wheel = world.timer
        assert isinstance(wheel, HashedWheel)
        later, soon = world.add(50, "later"), world.add(5, "soon")
        world.add(9, "gone").cancel()
        assert wheel.stop_now() == [soon, later]
        assert wheel.size() == 0
        with pytest.raises(TimerClosed):
            world.add(1, "no")
        assert not wheel.advance_clock(0)
        assert wheel.stop_now() == []

    def test_after_pending_waits_for_every_task(self) -> None:
        """Its own worker hands over all tasks, then ends, and so does the executor."""
        wheel = HashedWheel("pending", wheel_size=4, own_worker=True)
        ran: list[int] = []
        for delay_ms in (3, 0, 12, -4, 7):
            wheel.add(ActionTask(delay_ms, partial(ran.append, delay_ms)))
        assert wheel.stop_after_pending()
        assert sorted(ran) == [-4, 0, 3, 7, 12]
        with pytest.raises(TimerClosed):
            wheel.add(ActionTask(1, lambda: None))
        assert not [thread for thread in threading.enumerate() if thread.name.endswith("-pending")]

    def test_after_pending_gives_up_at_its_time_out(self) -> None:
        """No thread drains, so the wait ends at the time-out and returns False."""
        world = World("hashed3")
        assert isinstance(world.timer, HashedWheel)
        world.add(5, "waits")
        assert not world.timer.stop_after_pending(timeout_ms=1)

    def test_a_task_may_stop_its_own_wheel(self) -> None:
        """netty #365: a task that stops the wheel must not wait for the thread that it runs on."""
        wheel = HashedWheel("self", own_worker=True)
        answers: list[object] = []
        done = threading.Event()

        def stop() -> None:
            answers.append(wheel.stop_after_pending())
            answers.append(wheel.stop_now())
            done.set()

        wheel.add(ActionTask(1, stop))
        assert done.wait(30)
        assert answers == [True, []]

    def test_nothing_starts_before_the_first_task(self) -> None:
        """Start on first use: no thread, and a cursor only from the first `add` on."""
        before = set(threading.enumerate())
        wheel = HashedWheel("idle", own_worker=True)
        assert not set(threading.enumerate()) - before, "others may end meanwhile"
        wheel.check()
        wheel.close()


class TestReaperTimer:
    """What Kafka's SystemTimerReaperTest asserts."""

    def test_its_tasks_run_by_themselves(self) -> None:
        """testReaper: three tasks, all of which expire."""
        timer = ReaperTimer("reaper-r", SystemTimer("r"))
        ran = [threading.Event() for _ in range(3)]
        for delay_ms, event in zip((10, 20, 30), ran, strict=True):
            timer.add(ActionTask(delay_ms, event.set))
        assert all(event.wait(30) for event in ran)
        timer.close()

    def test_close_ends_the_thread_and_closes_the_inner_timer_once(self) -> None:
        """testReaperClose."""
        closes: list[int] = []

        class Inner(SystemTimer):
            def close(self) -> None:
                closes.append(1)
                super().close()

        timer = ReaperTimer("reaper-c", Inner("c"))
        timer.close()
        timer.close()
        assert closes == [1]
        assert not [thread for thread in threading.enumerate() if thread.name == "reaper-c"]

    def test_a_second_user_is_served_as_well(self) -> None:
        """testSharedTimerBetweenConsumers: the tasks of one user are done, and a later task of another user still
        runs."""
        timer = ReaperTimer("reaper-s", SystemTimer("s"))
        first, second = threading.Event(), threading.Event()
        timer.add(ActionTask(5, first.set))
        assert first.wait(30)
        timer.add(ActionTask(5, second.set))
        assert second.wait(30)
        timer.close()

    def test_a_name_and_a_timer_are_needed(self) -> None:
        """testRejectsNullName, testRejectsNullTimer."""
        with pytest.raises(TypeError):
            ReaperTimer(None, SystemTimer("n"))  # type: ignore[arg-type]  # what is tested
        with pytest.raises(TypeError):
            ReaperTimer("name", None)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(ValueError, match="name"):
            ReaperTimer("", SystemTimer("n"))

    def test_no_other_thread_drains_it(self) -> None:
        """Two drainers would share the tasks between their threads: refused."""
        timer = ReaperTimer("reaper-d", SystemTimer("d"))
        assert repr(timer) == "<ReaperTimer 'reaper-d'>"
        with pytest.raises(RuntimeError):
            timer.advance_clock(0)
        timer.close()


class Floored:
    """A clock that shows only whole milliseconds of a count of nanoseconds."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ms = MonotonicClock(now_ns).now_ms


def earliest_ns(kind: str, clock_of: Callable[[Callable[[], int]], Clock], add: str) -> tuple[int, int]:
    """The shortest and the longest time from an add of 2 ms to its run, over parts of a millisecond."""
    took: list[int] = []
    for start_ns in (0, 1, 499_999, 500_000, 999_999):
        now_ns = [7_000_000 + start_ns]
        timer = TIMERS[kind](clock=clock_of(partial(now_ns.__getitem__, 0)), executor=DirectExecutor())
        ran: list[int] = []
        if add == "function" and isinstance(timer, IntrusiveTimer):
            timer.call_later(2, partial(ran.append, 1))
        elif add == "operation":
            purgatory = Purgatory[Request]("p", timer, reaper=False)
            purgatory.try_complete_else_watch(Request(2, during_complete=partial(ran.append, 1)), ["k"])
        else:
            timer.add(ActionTask(2, partial(ran.append, 1)))
        waited_ns = 0
        for waited_ns in (
            1_000_001,
            1_500_000,
            1_999_999,
            2_000_000,
            2_000_001,
            2_500_001,
            2_999_999,
            3_000_000,
        ):
            now_ns[0] = 7_000_000 + start_ns + waited_ns
            timer.advance_clock(0)
            if ran:
                break
        took.append(waited_ns)
        timer.close()
    return min(took), max(took)


@pytest.mark.parametrize("add", ["task", "function", "operation"])
@pytest.mark.parametrize("kind", TIMERS)
def test_no_delay_is_shorter_in_nanoseconds(kind: str, add: str) -> None:
    """[T1] By a clock that only floors, some tasks are up to 1 ms early."""
    assert earliest_ns(kind, MonotonicClock, add) == (2_000_000, 2_999_999)
    assert earliest_ns(kind, Floored, add)[0] < 2_000_000


@pytest.mark.parametrize("kind", TIMERS)
def test_a_delay_of_0_is_due_within_its_millisecond(kind: str) -> None:
    timer = TIMERS[kind](clock=MonotonicClock(lambda: 7_000_001), executor=DirectExecutor())
    ran: list[int] = []
    timer.add(ActionTask(0, partial(ran.append, 1)))
    timer.advance_clock(0)
    assert ran == [1]
    timer.close()


def test_the_mock_timer() -> None:
    """MockTimer: 0 and below at once on the caller; then strictly before the new time, in order, without cancelled."""
    timer = MockTimer(ManualClock(100))
    notes: list[tuple[object, int]] = []

    def add(delay_ms: int) -> Note:
        note = Note(delay_ms, notes, delay_ms, timer.clock.now_ms)
        timer.add(note)
        return note

    add(0)
    add(-1)
    assert notes == [(0, 100), (-1, 100)]
    notes.clear()
    add(30)
    add(10)
    add(20).cancel()
    assert timer.size() == 2
    assert not timer.advance_clock(10)
    assert timer.advance_clock(1)
    assert notes == [(10, 111)]
    assert timer.advance_clock(100)
    assert [name for name, _ in notes] == [10, 30]
    assert timer.size() == 0
