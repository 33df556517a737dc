"""Actions on an event loop: on its thread, in order, never inside `submit`; and how it ends."""

import asyncio
import threading

import pytest

from purgatorio import (
    ExecutorClosed,
    IntrusiveTimer,
    LoopExecutor,
    ManualClock,
)
from purgatorio.faults import PROPAGATE


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
