"""A callback that ends with an exception that is not an `Exception` ends only itself, and the owner gets it (O8)."""

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

import pytest

from program_text import python
from purgatorio import (
    LOCKED,
    PENDING_FLAG,
    ActionQueue,
    ActionTask,
    DelayedOperation,
    DirectExecutor,
    HashedWheel,
    IntrusiveTimer,
    LoopExecutor,
    ManualClock,
    MockTimer,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
)
from purgatorio.sync import ExecutorClosed
from purgatorio.threads import THREADS
from purgatorio_stress.explorer.controlled import ControlledSync
from purgatorio_stress.explorer.endless import NoEnd
from reference.waiting import TIMERS, Stepped

EXITS = (SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)
every_exit = pytest.mark.parametrize("exits", EXITS)
INNER: dict[str, Callable[..., Stepped]] = {
    **TIMERS,
    "handles": partial(TIMERS["intrusive"], integer_handles=False),
}
every_timer = pytest.mark.parametrize("kind", INNER)


def leave(exits: type[BaseException]) -> None:
    raise exits("on purpose")


@every_exit
@every_timer
def test_the_threads_live_on_and_close_raises_it(
    kind: str, exits: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """The executor's thread, and with an executor on the caller the reaper's: later timers fire, the log says why."""
    for executor in (None, DirectExecutor()):
        caplog.clear()
        timer = ReaperTimer("reaper", INNER[kind](executor=executor))
        fired = threading.Event()
        timer.call_later(1, leave, exits)
        with caplog.at_level(logging.ERROR, logger="purgatorio"):
            timer.call_later(2, leave, exits)
            timer.call_later(3, fired.set)
            assert fired.wait(30)
        with pytest.raises(exits, match="on purpose"):
            timer.close()
        timer.close()  # raised once
        assert "continues after" in caplog.text


@every_exit
def test_what_is_due_with_it_runs_also_while_the_timer_closes(exits: type[BaseException]) -> None:
    """One batch: after the exit the others of the batch run; an executor that is closing takes nothing more from it."""
    clock, executor = ManualClock(), THREADS.executor("e")
    timer = IntrusiveTimer("t", clock=clock, executor=executor)
    ran: list[int] = []
    closing = threading.Event()

    def first() -> None:
        closing.wait(30)
        leave(exits)

    timer.call_later(1, first)
    for number in range(3):
        timer.call_later(1, lambda number=number: ran.append(number))  # type: ignore[misc]  # a default
    clock.advance(1)
    assert timer.advance_clock(0)
    executor.shutdown()
    closing.set()
    with pytest.raises(exits):
        timer.close()
    assert ran == [0, 1, 2]


@every_exit
@every_timer
def test_an_owner_on_the_stack_gets_it_there(kind: str, exits: type[BaseException]) -> None:
    """Executors that run on the caller: the remaining tasks run in the same call, or in the next call of the owner."""
    for executor in (DirectExecutor(), QueuedExecutor()):
        ran: list[str] = []
        with INNER[kind](executor=executor) as timer:
            timer.add(ActionTask(5, lambda: leave(exits)))
            timer.add(ActionTask(5, lambda ran=ran: ran.append("second")))  # type: ignore[misc]  # a default
            raised = 0
            while not ran:
                try:
                    timer.advance_clock(50)
                    if isinstance(executor, QueuedExecutor):
                        executor.run_all()
                except exits:
                    raised += 1
            assert raised == 1


@every_exit
def test_what_is_queued_runs_to_its_end_when_closed(exits: type[BaseException]) -> None:
    """All actions of one call run, then it raises."""
    executor, closed, actions = QueuedExecutor(), QueuedExecutor(), ActionQueue()
    ran: list[str] = []
    for queue in (executor.submit, closed.submit, actions.add):
        for act in (lambda: leave(exits), lambda: ran.append("second")) * 2:
            queue(act)
    for run in (executor.run_all, partial(closed.await_termination, 0), actions.run_all):
        with pytest.raises(exits):
            run()
    assert ran == ["second"] * 6


def test_the_worker_of_a_hashed_wheel_lives_on() -> None:
    """Its own thread, and an executor on it: an exit, and an executor that refuses once."""

    class Once(DirectExecutor):
        refused = False

        def submit(self, action: Callable[[], None], /) -> None:
            if not Once.refused:
                Once.refused = True
                raise LookupError("full")
            action()

    fired = threading.Event()
    wheel = HashedWheel("w", own_worker=True, executor=Once())
    wheel.call_later(1, leave, SystemExit)
    wheel.call_later(2, fired.set)
    assert fired.wait(30)
    with pytest.raises(SystemExit):
        wheel.close()


def test_a_mock_timer_raises_where_it_is_advanced() -> None:
    timer = MockTimer()
    ran: list[str] = []
    timer.call_later(1, leave, GeneratorExit)
    timer.call_later(1, ran.append, "second")
    with pytest.raises(GeneratorExit):
        timer.advance_clock(5)
    assert timer.advance_clock(5)
    assert ran == ["second"]


def test_a_loop_gets_it_and_goes_on_or_ends_as_loops_do() -> None:
    """CancelledError and GeneratorExit go to the loop's handler; SystemExit and KeyboardInterrupt end `run_forever`."""
    for exits in EXITS:
        loop = asyncio.new_event_loop()
        handled: list[object] = []
        loop.set_exception_handler(lambda _, context, handled=handled: handled.append(context["exception"]))  # type: ignore[misc]  # a default
        ran: list[str] = []
        timer = ReaperTimer("reaper", IntrusiveTimer("t", executor=LoopExecutor(loop)))
        timer.call_later(1, leave, exits)
        timer.call_later(1, ran.append, "second")
        timer.call_later(20, lambda ran=ran, loop=loop: (ran.append("later"), loop.stop()))  # type: ignore[misc]  # defaults
        if exits in (SystemExit, KeyboardInterrupt):
            with pytest.raises(exits):
                loop.run_forever()
            assert not handled
        while "later" not in ran:
            loop.run_forever()
        assert ran == ["second", "later"]
        assert [type(error) for error in handled] == (
            [] if exits in (SystemExit, KeyboardInterrupt) else [exits]
        )
        timer.close()
        loop.close()


class Waiter(DelayedOperation):
    def __init__(
        self, where: str, exits: type[BaseException], delay_ms: int = 60_000, **more: object
    ) -> None:
        super().__init__(delay_ms, **more)  # type: ignore[arg-type]  # the dialect
        self.where = where
        self.exits = exits
        self.ready = False
        self.calls: list[str] = []
        self.over = threading.Event()

    def try_complete(self) -> bool:
        if self.ready and self.where == "try_complete":
            leave(self.exits)
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.calls.append("on_complete")
        if self.where == "on_complete":
            leave(self.exits)

    def on_expiration(self) -> None:
        self.calls.append("on_expiration")
        self.over.set()
        if self.where == "on_expiration":
            leave(self.exits)


@every_exit
@pytest.mark.parametrize("where", ["try_complete", "on_complete"])
@pytest.mark.parametrize("dialect", [LOCKED, PENDING_FLAG])
def test_an_event_reaches_the_others(where: str, exits: type[BaseException], dialect: object) -> None:
    with Purgatory[Waiter]("p") as purgatory:
        waiters = [Waiter(where if number == 1 else "", exits, dialect=dialect) for number in range(4)]
        for waiter in waiters:
            purgatory.try_complete_else_watch(waiter, ["k"])
        for waiter in waiters:
            waiter.ready = True
        with pytest.raises(exits, match="on purpose"):
            purgatory.check_and_complete("k")
        done = [waiter.is_completed() for waiter in waiters]
        assert done == [True, where == "on_complete", True, True]
        waiters[1].where = ""


@every_exit
@pytest.mark.parametrize("where", ["on_complete", "on_expiration"])
def test_a_time_out_tells_all_and_the_next_comes(where: str, exits: type[BaseException]) -> None:
    """`on_expiration` follows an `on_complete` that left; the thread goes on; `close` raises it."""
    purgatory = Purgatory[Waiter]("p")
    first, second = Waiter(where, exits, 1), Waiter("", exits, 5)
    for waiter in (first, second):
        purgatory.try_complete_else_watch(waiter, ["k"])
        assert waiter.over.wait(30)
    with pytest.raises(exits, match="on purpose"):
        purgatory.close()
    assert first.calls == second.calls == ["on_complete", "on_expiration"]


@every_exit
def test_a_registration_that_leaves_has_its_time_out_or_has_not_happened(exits: type[BaseException]) -> None:
    """In the second look the operation is watched already: it stays and expires. In the first, nothing has happened."""

    class Second(Waiter):
        looks = 0

        def try_complete(self) -> bool:
            self.looks += 1
            if self.looks == self.leaves_at:
                leave(self.exits)
            return False

        leaves_at = 2

    with Purgatory[Waiter]("p") as purgatory:
        watched, refused = Second("", exits, 5), Second("", exits, 5)
        refused.leaves_at = 1
        for waiter in (watched, refused):
            with pytest.raises(exits):
                purgatory.try_complete_else_watch(waiter, ["k"])
        assert watched.over.wait(30)
        assert refused.looks == 1
        assert not refused.is_completed()


def test_closing_completes_all_that_wait() -> None:
    """Several leave: all are completed, the timer is closed, the first is raised."""
    purgatory = Purgatory[Waiter]("p")
    waiters = [Waiter("on_complete" if number < 2 else "", SystemExit) for number in range(4)]
    for waiter in waiters:
        purgatory.try_complete_else_watch(waiter, ["k"])
    with pytest.raises(SystemExit):
        purgatory.close()
    assert all(waiter.is_completed() for waiter in waiters)
    assert purgatory.close() == 0


def test_an_executor_that_contains_too_little_loses_later_timers() -> None:
    """The negative control: an executor that contains only `Exception`. Its later timer is lost."""

    class Frail:
        """As the executor of 0.1 was."""

        def __init__(self) -> None:
            self.inner = THREADS.executor("frail")
            self.dead = False

        def submit(self, action: Callable[[], None], /) -> None:
            if self.dead:
                return  # queued for a thread that has ended

            def run() -> None:
                try:
                    action()
                except BaseException:
                    self.dead = True

            self.inner.submit(run)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    clock, frail = ManualClock(), Frail()
    timer = IntrusiveTimer("t", clock=clock, executor=frail)  # type: ignore[arg-type]  # the rest is the inner's
    ran: list[str] = []
    timer.call_later(1, lambda: leave(SystemExit))
    timer.call_later(2, lambda: ran.append("later"))
    left = threading.Event()
    for _ in range(2):
        clock.advance(1)
        timer.advance_clock(0)
        frail.inner.submit(left.set)
        assert left.wait(30)
    assert ran == []


def test_what_ends_a_run_of_the_explorer_is_not_contained() -> None:
    """The explorer's own exceptions are not exceptions of the callback: a reaper would never end."""
    from greenlet import GreenletExit

    for error in (GreenletExit(), NoEnd(), KeyboardInterrupt()):
        assert not ControlledSync.outlives(object.__new__(ControlledSync), error)
    assert ControlledSync.outlives(object.__new__(ControlledSync), SystemExit())
    assert THREADS.outlives(KeyboardInterrupt())


def test_a_program_ends_as_its_callback_wished() -> None:
    """`sys.exit(5)` in a timer's function, and a `with` block around: the status is 5."""
    program = (
        "import sys, threading\nfrom purgatorio import IntrusiveTimer, ReaperTimer\n"
        "with ReaperTimer('r', IntrusiveTimer('t')) as timer:\n"
        "    done = threading.Event()\n    timer.call_later(1, sys.exit, 5)\n    timer.call_later(5, done.set)\n"
        "    assert done.wait(30)\n"
    )
    done = python(program, timeout=60)
    assert (done.returncode, "continues after SystemExit(5)" in done.stderr) == (5, True)


def test_an_executor_that_is_closed_says_so_after_an_exit() -> None:
    executor = THREADS.executor("e")
    executor.submit(lambda: leave(SystemExit))
    executor.shutdown()
    with pytest.raises(ExecutorClosed):
        executor.submit(lambda: None)
    with pytest.raises(SystemExit):
        executor.await_termination(30_000)
    assert executor.await_termination(30_000)
