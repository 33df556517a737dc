"""Functions on timers: arguments, repetition, refusals, and the warning for a timer that no thread drains."""

import gc
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from purgatorio import (
    THREADS,
    ActionTask,
    GaugeRegistry,
    HashedWheel,
    IntrusiveTimer,
    ManualClock,
    MockTimer,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
    Repeated,
    Timer,
)
from reference.waiting import TIMERS, Never, Stepped

KINDS = (*TIMERS, "mock")


def stepped(kind: str) -> tuple[Stepped | MockTimer, Callable[[int], None]]:
    clock, executor = ManualClock(), QueuedExecutor()
    if kind == "mock":
        mock = MockTimer(clock)

        def move(by_ms: int) -> None:
            for _ in range(by_ms):
                mock.advance_clock(1)  # as Kafka's: it moves the clock

        return mock, move
    timer = TIMERS[kind](clock=clock, executor=executor)

    def pass_(by_ms: int) -> None:
        for _ in range(by_ms):
            clock.advance(1)
            timer.advance_clock(0)
            executor.run_all()

    return timer, pass_


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_runs_again_and_again_until_it_is_cancelled(kind: str) -> None:
    timer, pass_ms = stepped(kind)
    ran: list[str] = []
    again = timer.call_every(10, ran.append, "turn")
    pass_ms(35)
    assert ran == ["turn"] * 3
    assert timer.size() == 1
    again.cancel()
    pass_ms(35)
    assert (len(ran), timer.size()) == (3, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_it_may_cancel_itself(kind: str) -> None:
    """A function that has seen enough ends the repetition from inside."""
    timer, pass_ms = stepped(kind)
    ran: list[Repeated] = []

    def twice() -> None:
        ran.append(again)
        if len(ran) == 2:
            timer.cancel(again)

    again = timer.call_every(5, twice)
    pass_ms(50)
    assert (len(ran), timer.size()) == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_takes_arguments(kind: str) -> None:
    timer, pass_ms = stepped(kind)
    said: list[str] = []
    timer.call_later(3, said.append, "three")
    cancel: Callable[[Any], None] = timer.cancel
    cancel(timer.call_later(3, said.append, "none"))
    pass_ms(5)
    assert said == ["three"]


def test_a_driven_timer_takes_them_too() -> None:
    with ReaperTimer("r", IntrusiveTimer("t")) as timer:
        lock = THREADS.lock()
        told = THREADS.condition(lock)
        said: list[str] = []

        def say(what: str) -> None:
            with lock:
                said.append(what)
                told.notify_all()

        timer.call_later(1, say, "once")
        again = timer.call_every(1, say, "again")
        with lock:
            while "once" not in said or said.count("again") < 3:
                assert told.wait(30_000)
        again.cancel()


@pytest.mark.parametrize("kind", TIMERS)
def test_a_timer_that_is_dropped_without_a_drain_warns(kind: str) -> None:
    """What waits in it never runs, and nothing else says so. (The stateful machines close one.)"""
    timer = TIMERS[kind]()
    timer.add(ActionTask(10, lambda: None))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del timer
        gc.collect()
    assert [one.category for one in told] == [RuntimeWarning]
    assert "'t': 1 pending task(s) never ran, because no thread called advance_clock" in str(told[0].message)


@pytest.mark.parametrize("kind", TIMERS)
def test_no_warning_without_a_reason(kind: str) -> None:
    """Drained, empty, with a reaper that had no time to run, or with a clock that is moved by hand."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses(kind):
            use()
        gc.collect()


def uses(kind: str) -> Iterator[Callable[[], object]]:
    made = TIMERS[kind]

    def drained() -> None:
        timer = made()
        timer.add(ActionTask(10_000, lambda: None))
        timer.advance_clock(0)
        timer.close()

    def reaped() -> None:
        with ReaperTimer("r", made()) as timer:
            timer.add(ActionTask(10_000, lambda: None))

    def waiting() -> None:
        with Purgatory[Never]("p", made()) as purgatory:
            purgatory.try_complete_else_watch(Never(10_000), ["k"])

    def by_hand() -> None:
        timer = IntrusiveTimer("t", clock=ManualClock())
        timer.call_later(10, lambda: None)
        timer.close()

    def by_itself() -> None:
        wheel = HashedWheel("t", own_worker=True)
        wheel.call_later(10_000, lambda: None)
        wheel.close()

    yield from (lambda: made().close(), drained, reaped, waiting, by_hand, by_itself)


@pytest.mark.parametrize("completes", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_a_purgatory_without_a_driver_warns(completes: bool, own: bool) -> None:
    """Without its reaper, and without `pass_time`: no request in it ever times out. The controls were drained, are
    empty, or have no time-outs."""

    def told(waits: int, *, drains: bool = False, timer_enabled: bool = True) -> list[str]:
        timer = IntrusiveTimer("p")
        purgatory = Purgatory[Never](
            "p",
            None if own else timer,
            reaper=False,
            complete_at_shutdown=completes,
            timer_enabled=timer_enabled,
        )
        for _ in range(waits):
            purgatory.try_complete_else_watch(Never(10_000), ["k"])
        if drains:
            purgatory.pass_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            purgatory.close()
            timer.close()
        return [str(one.message) for one in caught]

    (message,) = told(2)
    assert re.match("timer 'p': 2 pending task.* pass_time", message)
    assert told(2, drains=True) == told(0) == told(2, timer_enabled=False) == []


@pytest.mark.parametrize("kind", TIMERS)
@pytest.mark.parametrize("reap", [Purgatory[Never], ReaperTimer])
def test_a_timer_has_one_reaper(kind: str, reap: Callable[[str, Timer], object]) -> None:
    """Otherwise the first to close takes the time-outs of the other. The control has no reaper of its own."""
    timer, registry = TIMERS[kind](), GaugeRegistry()
    with Purgatory[Never]("first", timer, registry=registry):
        for _ in range(2):
            with pytest.raises(ValueError, match="this timer has a reaper, which will close it"):
                reap("second", timer)
        with Purgatory[Never]("second", timer, reaper=False, registry=registry) as second:
            second.try_complete_else_watch(Never(10_000), ["k"])
