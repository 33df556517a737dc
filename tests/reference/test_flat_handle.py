"""`FlatHandle`: a function that waits once. What it promises beyond the contract of a timer, and what frees it.

Runs on both builds (`test_compiled_build`): in the compiled one the collector does not see a handle, so whoever keeps
its own handle must be freed without the collector's help.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from purgatorio import ManualClock, QueuedExecutor
from purgatorio.timer import FlatHandle, FlatTimer, compiled


class Driven:
    """A timer, its clock and its executor, driven by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.executor = QueuedExecutor()
        self.timer = FlatTimer("t", clock=self.clock, executor=self.executor)

    def advance(self, delay_ms: int) -> None:
        """Let time pass, and what is due run."""
        self.drain(delay_ms)
        self.executor.run_all()

    def drain(self, delay_ms: int) -> None:
        """Let time pass; what is due is handed over, and has not run."""
        self.clock.advance(delay_ms)
        self.timer.advance_clock(0)


class Session:
    """Keeps the handle of its own time-out, as sessions do: handle, bound method and session are a circle."""

    def __init__(self, timer: FlatTimer) -> None:
        self.expired = 0
        self.timeout = timer.call_later(30, self.expire)

    def expire(self) -> None:
        """The time-out."""
        self.expired += 1


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is freed is freed by its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def end_by_firing(driven: Driven, handle: FlatHandle) -> None:
    """Its time comes."""
    driven.advance(30)


def end_by_cancelling(driven: Driven, handle: FlatHandle) -> None:
    """It is cancelled."""
    handle.cancel()


def end_by_closing(driven: Driven, handle: FlatHandle) -> None:
    """The timer is closed."""
    driven.timer.close()


ENDS = (end_by_firing, end_by_cancelling, end_by_closing)
End = Callable[[Driven, FlatHandle], None]


def test_it_runs_once_at_its_deadline() -> None:
    """Not before, and not again."""
    driven = Driven()
    fired: list[int] = []
    handle = driven.timer.call_at(5, lambda: fired.append(driven.clock.now_ms()))
    driven.advance(4)
    assert not fired
    assert not handle.is_cancelled()
    driven.advance(1)
    driven.advance(100)
    assert fired == [5]
    assert not handle.is_cancelled()


def test_one_that_waits_is_moved() -> None:
    """`add_at` takes it along, within a timer and to another one."""
    one, other = Driven(), Driven()
    fired: list[str] = []
    handle = one.timer.call_later(5, lambda: fired.append("fired"))
    one.timer.add_at(handle, 9)
    one.advance(8)
    other.timer.add_at(handle, 3)
    assert (one.timer.size(), other.timer.size(), handle.is_cancelled()) == (0, 1, False)
    one.advance(100)
    assert not fired
    other.advance(3)
    assert fired == ["fired"]


@pytest.mark.parametrize("end", ENDS[:2])
def test_one_that_has_ended_is_refused(end: End) -> None:
    """By its own timer and by another, which stay as they were."""
    one, other = Driven(), Driven()
    handle = one.timer.call_later(30, lambda: None)
    end(one, handle)
    for driven in (one, other):
        with pytest.raises(ValueError, match="waits no more"):
            driven.timer.add_at(handle, 50)
        driven.timer.check()
        assert driven.timer.size() == 0
    one.timer.add_at(FlatHandle(lambda: None), 50)
    assert one.timer.size() == 1


def test_what_was_handed_over_runs_though_it_is_cancelled() -> None:
    """As every task of this timer; the function is not taken from under the drain."""
    driven = Driven()
    fired: list[str] = []
    handle = driven.timer.call_later(5, lambda: fired.append("fired"))
    driven.drain(5)
    handle.cancel()
    driven.executor.run_all()
    assert fired == ["fired"]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("end", ENDS)
def test_who_keeps_its_own_handle_is_freed_at_the_end_of_the_wait(end: End) -> None:
    """Without the collector."""
    driven = Driven()
    session = Session(driven.timer)
    seen, handle = weakref.ref(session), session.timeout
    end(driven, handle)
    del session
    assert seen() is None


@pytest.mark.usefixtures("no_collector")
def test_who_keeps_its_own_handle_is_not_freed_before() -> None:
    """The twin: it waits, so something is still to be done with it."""
    driven = Driven()
    seen = weakref.ref(Session(driven.timer))
    gc.collect()
    assert seen() is not None
    driven.timer.close()
    assert seen() is None


@pytest.mark.parametrize("end", ENDS)
def test_a_finalizer_may_use_the_timer(end: End) -> None:
    """The function goes outside of the lock: what it was the last to hold may come back to the timer."""
    driven = Driven()
    sizes: list[int] = []

    class Asking:
        def run(self) -> None:
            """Nothing."""

        def __del__(self) -> None:
            sizes.append(driven.timer.size())

    handle = driven.timer.call_later(30, Asking().run)
    end(driven, handle)
    assert sizes == [0]


def test_the_collector_walks_no_compiled_handle() -> None:
    """What the build for speed is about; interpreted, every object with slots is walked."""
    assert gc.is_tracked(Driven().timer.call_later(1, lambda: None)) is not compiled


@pytest.mark.usefixtures("no_collector")
def test_a_closed_timer_is_freed_with_all_that_waited() -> None:
    """And by the collector alone, where it was not closed: only interpreted, as `FlatHandle` says."""
    driven = Driven()
    handles = [weakref.ref(Session(driven.timer)) for _ in range(100)]
    driven.timer.close()
    assert not any(seen() for seen in handles)

    left = Driven()
    seen = weakref.ref(Session(left.timer))
    del left
    gc.collect()
    assert (seen() is None) is not compiled
