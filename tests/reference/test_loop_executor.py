"""Actions on an event loop: on its thread, in order, never inside `submit`; and how it ends."""

import asyncio
import threading

import pytest

from purgatorio import (
    ExecutorClosed,
    IntrusiveTimer,
    LoopExecutor,
    ManualClock,
    QueuedExecutor,
)
from purgatorio.faults import PROPAGATE
from purgatorio.timer.task import ActionTask


def test_callbacks_run_on_the_loop_s_thread_in_order() -> None:
    """Submitted by another thread, as by a reaper; none runs before that thread has returned from `submit`."""
    seen: list[tuple[str, int]] = []

    async def main() -> None:
        executor = LoopExecutor(asyncio.get_running_loop())

        def submit_two() -> None:
            for name in ("first", "second"):
                executor.submit(lambda name=name: seen.append((name, threading.get_ident())))  # type: ignore[misc]  # the default is the point

        await asyncio.to_thread(submit_two)
        while len(seen) < 2:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert [name for name, _ in seen] == ["first", "second"]
    assert {thread for _, thread in seen} == {threading.get_ident()}


def test_what_raises_goes_to_the_fault_policy_and_the_next_runs() -> None:
    """The default policy contains the exception. The negative control raises it in the loop's own handler."""
    told: list[str] = []

    async def main(executor: LoopExecutor, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        executor.submit(lambda: (_ for _ in ()).throw(ValueError("broken")))
        executor.submit(lambda: told.append("ran"))
        while "ran" not in told:
            await asyncio.sleep(0)

    for faults, wanted in ((None, ["ran"]), (PROPAGATE, ["broken", "ran"])):
        told.clear()
        loop = asyncio.new_event_loop()
        executor = LoopExecutor(loop) if faults is None else LoopExecutor(loop, faults=faults)
        loop.run_until_complete(main(executor, loop))
        loop.close()
        assert [word for word in told if word in ("ran", "broken")] == wanted


def test_a_closed_loop_refuses_and_the_timer_keeps_the_task() -> None:
    """ExecutorClosed, as for any executor. The refused task waits again."""
    loop = asyncio.new_event_loop()
    clock = ManualClock()
    timer = IntrusiveTimer("t", clock=clock, executor=LoopExecutor(loop))
    timer.call_later(5, lambda: None)
    loop.close()
    clock.advance(5)
    with pytest.raises(ExecutorClosed):
        timer.advance_clock(0)
    assert timer.size() == 1


@pytest.mark.parametrize("integer_handles", [True, False])
def test_a_cancel_on_the_loop_stops_what_the_loop_has_not_begun(integer_handles: bool) -> None:
    """As asyncio's: the deadline has passed and the loop has the batch, but has not run it. A moved task runs once, at
    its new deadline. The negative control is another executor, where what a drain has taken runs."""
    ran: list[str] = []

    def cancel_late(executor: LoopExecutor | QueuedExecutor) -> tuple[IntrusiveTimer, ManualClock]:
        ran.clear()
        clock = ManualClock()
        timer = IntrusiveTimer("t", clock=clock, executor=executor, integer_handles=integer_handles)
        task, moved = (ActionTask(5, lambda name=name: ran.append(name)) for name in ("task", "moved"))  # type: ignore[misc]  # the default is the point

        def cancel_second() -> None:
            ran.append("first")
            timer.cancel(second)

        first = timer.call_later(5, cancel_second)
        second = timer.call_later(5, lambda: ran.append("second"))
        handle = timer.call_later(5, lambda: ran.append("handle"))
        timer.add(task)
        timer.add(moved)
        clock.advance(5)
        timer.advance_clock(0)
        for cancelled in (handle, task):
            timer.cancel(cancelled)
        timer.add(moved)
        assert (ran, timer.size(), first == second) == ([], 1, False)
        return timer, clock

    async def main() -> None:
        timer, clock = cancel_late(LoopExecutor(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        assert ran == ["first"]
        clock.advance(5)
        timer.advance_clock(0)
        await asyncio.sleep(0)
        assert ran == ["first", "moved"]
        timer.close()

    asyncio.run(main())
    executor = QueuedExecutor()
    cancel_late(executor)
    executor.run_all()
    assert sorted(ran) == ["first", "handle", "moved", "second", "task"]
