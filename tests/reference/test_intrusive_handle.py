"""Functions that wait once, under an integer handle or linked: what that promises beyond the contract of a timer, and
what frees them.

Runs on both builds (`test_compiled_build`): in the compiled one the collector does not see a handle, so whoever keeps
its own handle must be freed without the collector's help. Numbers it sees in neither.
"""

import gc
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest

from purgatorio import ManualClock, QueuedExecutor
from purgatorio.timer import Handle, IntrusiveTimer, compiled
from purgatorio.timer.intrusive.timer import CallNode


class Driven:
    def __init__(self, *, integer_handles: bool) -> None:
        self.clock = ManualClock()
        self.executor = QueuedExecutor()
        self.timer = IntrusiveTimer(
            "t",
            wheel_size=256,
            integer_handles=integer_handles,
            clock=self.clock,
            executor=self.executor,
        )

    def advance(self, delay_ms: int) -> None:
        self.drain(delay_ms)
        self.executor.run_all()

    def drain(self, delay_ms: int) -> None:
        """Moves the time. Due functions are passed to the executor, and have not run."""
        self.clock.advance(delay_ms)
        self.timer.advance_clock(0)


class Session:
    """Keeps the handle of its own time-out, as sessions do: handle, bound method and session are a circle."""

    def __init__(self, timer: IntrusiveTimer) -> None:
        self.expired = 0
        self.timeout = timer.call_later(30, self.expire)

    def expire(self) -> None:
        self.expired += 1


@pytest.fixture
def no_collector() -> Iterator[None]:
    """An object is freed by its last reference, not by the collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=[True, False], ids=["number", "handle"])
def driven(request: pytest.FixtureRequest) -> Driven:
    return Driven(integer_handles=request.param is True)


def end_by_firing(driven: Driven, handle: Handle) -> None:
    driven.advance(30)


def end_by_cancelling(driven: Driven, handle: Handle) -> None:
    driven.timer.cancel(handle)


def end_by_closing(driven: Driven, handle: Handle) -> None:
    driven.timer.close()


ENDS = (end_by_firing, end_by_cancelling, end_by_closing)
End = Callable[[Driven, Handle], None]


def test_the_default_is_the_faster_choice_in_this_build() -> None:
    """Numbers where Python is interpreted, linked handles where it is machine code."""
    assert isinstance(
        IntrusiveTimer("t", clock=ManualClock()).call_later(5, lambda: None), CallNode if compiled else int
    )


def test_a_cancelled_function_leaves_no_place_behind() -> None:
    """A dictionary keeps the places of what left it; the timer does not keep the dictionary."""
    driven = Driven(integer_handles=True)
    handles = [driven.timer.call_later(30_000, print) for _ in range(10_000)]
    for handle in handles[1:]:
        driven.timer.cancel(handle)

    def weight() -> int:
        return sum(sys.getsizeof(bucket.calls) for _, _, bucket in driven.timer._wheel._heap)

    assert weight() > 100_000
    driven.advance(256)
    assert weight() < 2_000
    assert driven.timer.size() == 1
    driven.timer.check()
    driven.timer.cancel(handles[0])
    assert driven.timer.size() == 0


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("end", ENDS)
def test_who_keeps_its_own_handle_is_freed_at_the_end_of_the_wait(end: End, driven: Driven) -> None:
    session = Session(driven.timer)
    seen, handle = weakref.ref(session), session.timeout
    end(driven, handle)
    del session
    assert seen() is None


@pytest.mark.usefixtures("no_collector")
def test_who_keeps_its_own_handle_is_not_freed_before(driven: Driven) -> None:
    """The twin: it waits, so something is still to be done with it."""
    seen = weakref.ref(Session(driven.timer))
    gc.collect()
    assert seen() is not None
    driven.timer.close()
    assert seen() is None


@pytest.mark.parametrize("end", ENDS)
def test_a_finalizer_may_use_the_timer(end: End, driven: Driven) -> None:
    """The function is released outside of the lock, because a finalizer may use the timer."""
    sizes: list[int] = []

    class Asking:
        def run(self) -> None: ...

        def __del__(self) -> None:
            sizes.append(driven.timer.size())

    handle = driven.timer.call_later(30, Asking().run)
    end(driven, handle)
    assert sizes == [0]


def test_the_collector_walks_no_compiled_handle() -> None:
    """The reason of the compiled build: the collector walks every interpreted object with slots, and no integer."""
    assert gc.is_tracked(Driven(integer_handles=False).timer.call_later(1, print)) is not compiled
    assert not gc.is_tracked(Driven(integer_handles=True).timer.call_later(1, print))


@pytest.mark.usefixtures("no_collector")
def test_a_closed_timer_is_freed_with_all_that_waited(driven: Driven) -> None:
    """And by the collector alone, where it was not closed: not with compiled handles, as `CallNode` says."""
    handles = [weakref.ref(Session(driven.timer)) for _ in range(100)]
    driven.timer.close()
    assert not any(seen() for seen in handles)

    left = Driven(integer_handles=driven.timer.integer_handles)
    seen = weakref.ref(Session(left.timer))
    del left
    gc.collect()
    assert (seen() is None) is not (compiled and not driven.timer.integer_handles)
