"""Refused arguments, with explanations; forks, copies and pickles; one way to end things."""

import asyncio
import copy
import os
import pickle
import re
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from purgatorio import (
    ActionQueue,
    ActionTask,
    DirectExecutor,
    GaugeRegistry,
    HashedWheel,
    HeapTimer,
    IntrusiveTimer,
    LoopExecutor,
    MadeBeforeFork,
    MockTimer,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
    SystemTimer,
    TimerClosed,
)
from purgatorio.owned import Owned
from purgatorio.timer import compiled
from reference.waiting import TIMERS as STEPPED
from reference.waiting import Never, Stepped


def said(words: str) -> str:
    """The text of a TypeError. In the compiled build, a wrong class of an argument is refused before our check."""
    return f"{words}|object expected; got" if compiled else words


def queued(make: Callable[..., Stepped]) -> Stepped:
    return make(executor=QueuedExecutor())


TIMERS: dict[str, Callable[[], Any]] = {
    **{kind: partial(queued, make) for kind, make in STEPPED.items()},
    "handles": lambda: IntrusiveTimer("t", executor=QueuedExecutor(), integer_handles=False),
    "mock": MockTimer,
    "reaper": lambda: ReaperTimer("r", IntrusiveTimer("t")),
    "reaper-system": lambda: ReaperTimer("r", SystemTimer("t")),
}
every_timer = pytest.mark.parametrize("kind", TIMERS)


@every_timer
def test_a_timer_refuses_at_the_door(kind: str) -> None:
    """By a TypeError of the call that passes it, in words; nothing waits afterwards."""
    with TIMERS[kind]() as timer:
        for given in (42, None, "text"):
            with pytest.raises(TypeError, match="a function is needed, not "):
                timer.call_later(5, given)
            with pytest.raises(TypeError, match=r"a function is needed|the first argument must be callable"):
                timer.call_every(5, given)
        with pytest.raises(ValueError, match="1 ms at least"):
            timer.call_every(0, print)
        strange: tuple[Any, ...] = (None, 4.5, "text", print, object())
        for given in strange:
            with pytest.raises(TypeError, match=said("a timer takes a TimerTask")):
                timer.cancel(given)
            with pytest.raises(TypeError, match=said("a timer takes a TimerTask")):
                timer.add(given)
        delayed = [
            timer.call_later,
            timer.call_every,
            *([timer.call_at] if hasattr(timer, "call_at") else []),
        ]
        for delay_ms in (1.5, "5", None):
            for call in (*delayed, ActionTask):
                with pytest.raises(TypeError, match=said("whole number of milliseconds")):
                    call(delay_ms, print)
        assert timer.size() == 0
        if isinstance(timer, Stepped):
            timer.check()


def test_parts_are_looked_at_when_they_are_given() -> None:
    """A timer, an executor, a name: not at the first drain, on another thread."""
    for given in (None, 42, IntrusiveTimer):
        with pytest.raises(TypeError, match=said("a timer is needed")):
            ReaperTimer("r", given)  # type: ignore[arg-type]  # what it refuses
    with (
        ReaperTimer("reaper", IntrusiveTimer("inner")) as driven,
        pytest.raises(TypeError, match="drains itself"),
    ):
        ReaperTimer("second", driven)
    with pytest.raises(TypeError, match=said("a timer is needed, not 42: it has no add")):
        Purgatory[Never]("p", 42)  # type: ignore[arg-type]  # what it refuses
    with (
        ReaperTimer("r", IntrusiveTimer("t")) as timer,
        pytest.raises(ValueError, match=said("write reaper=False")),
    ):
        Purgatory[Never]("p", timer)
    with pytest.raises(TypeError, match=said("the name of a purgatory is a text")):
        Purgatory[Never](7)  # type: ignore[arg-type]  # what it refuses
    with pytest.raises(TypeError, match=said("the name of a reaper is a text")):
        ReaperTimer(7, MockTimer())  # type: ignore[arg-type]  # what it refuses
    for make in (SystemTimer, HeapTimer, HashedWheel, IntrusiveTimer):
        with pytest.raises(TypeError, match=said("an executor is needed, not .*: it has no submit")):
            make("t", executor=threading.Thread())  # type: ignore[arg-type]  # what it refuses
        with pytest.raises(TypeError, match=said("the name of a timer is a text, not 5")):
            make(5)  # type: ignore[arg-type]  # what it refuses


async def asynchronous() -> None:
    """Nothing would await it."""


@every_timer
def test_a_coroutine_function_is_refused_at_the_door(kind: str) -> None:
    """As a function, a method, and with arguments; and nothing waits."""
    with TIMERS[kind]() as timer:
        for function in (asynchronous, Holder().method, partial(asynchronous)):
            for call in (timer.call_later, timer.call_every):
                with pytest.raises(TypeError, match="coroutine function, which nothing would await"):
                    call(5, function)
        assert timer.size() == 0


class Holder:
    async def method(self) -> None: ...


def test_callbacks_of_a_class_are_plain_methods() -> None:
    """Of a task and of an operation: where the class is made, and no later."""
    for base, name in (
        (ActionTask, "run"),
        (Never, "try_complete"),
        (Never, "on_complete"),
        (Never, "on_expiration"),
    ):
        with pytest.raises(TypeError, match=f"Asynchronous.{name} is a coroutine function"):
            type("Asynchronous", (base,), {name: Holder.method})


def test_a_part_of_another_kind_is_refused_at_the_door() -> None:
    """A dialect, a policy, a clock, a lock, a loop, a registry: a class or another object in its place."""
    wrong: dict[str, list[Callable[[Any], object]]] = {
        r"a dialect \(LOCKED or PENDING_FLAG\)": [lambda part: Never(5, dialect=part)],
        "a lock": [lambda part: Never(5, lock=part)],
        "a fault policy": [
            lambda part: Never(5, faults=part),
            lambda part: Purgatory[Never]("p", faults=part),
            lambda part: ActionQueue(faults=part),
            lambda part: QueuedExecutor(faults=part),
            lambda part: ReaperTimer("r", MockTimer(), faults=part),
            *(
                partial(_timer_with, make, "faults")
                for make in (SystemTimer, HeapTimer, HashedWheel, IntrusiveTimer)
            ),
        ],
        "a clock": [
            partial(_timer_with, make, "clock")
            for make in (SystemTimer, HeapTimer, HashedWheel, IntrusiveTimer)
        ],
        "an event loop": [LoopExecutor],
        "a gauge registry": [lambda part: Purgatory[Never]("p", registry=part)],
    }
    for what, calls in wrong.items():
        for call in calls:
            strange: tuple[Any, ...] = ("LOCKED", 5, {}, Holder)
            for part in strange:
                with pytest.raises(TypeError, match=said(f"{what} is needed, not")):
                    call(part)
    with pytest.raises(TypeError, match="an event loop is needed, not None: it has no call_soon_threadsafe"):
        LoopExecutor(None)  # type: ignore[arg-type]  # what it refuses


def _timer_with(make: Callable[..., object], name: str, part: object) -> None:
    make("t", **{name: part})


def test_a_purgatory_refuses_at_the_door() -> None:
    """Keys that are no list, an iterator among them, whose keys are gone after one look. Nothing is watched then."""
    with Purgatory[Never]("p") as purgatory:
        no_keys: tuple[Any, ...] = ("abc", b"abc", 42, None, iter(["k"]), (key for key in ["k"]), {"k": 1})
        for keys in no_keys:
            with pytest.raises(TypeError, match=said("keys are a list")):
                purgatory.try_complete_else_watch(Never(5), keys)
        empty: tuple[Any, ...] = ((), [], set())
        for keys in empty:
            with pytest.raises(ValueError, match=said("needs a key")):
                purgatory.try_complete_else_watch(Never(5), keys)
        with pytest.raises(TypeError, match=said("DelayedOperation, not 42")):
            purgatory.try_complete_else_watch(42, ["k"])  # type: ignore[arg-type]  # what it refuses
        with pytest.raises(TypeError, match=re.escape("NoSuper does not call super().__init__(delay_ms)")):
            purgatory.try_complete_else_watch(NoSuper(), ["k"])
        with pytest.raises(TypeError, match="unhashable"):
            purgatory.try_complete_else_watch(Never(5), ["good", ["k"]])  # type: ignore[list-item]  # what it refuses
        assert purgatory.watched() == 0
        sound: tuple[Any, ...] = (["k"], ("k",), {"k"}, {"k": 1}.keys(), [("topic", 0)], [7])
        for keys in sound:
            purgatory.try_complete_else_watch(Never(60_000), keys)
        assert purgatory.watched() == 6


class NoSuper(Never):
    """Forgets its base class."""

    def __init__(self) -> None:
        pass


def made() -> list[object]:
    loop = asyncio.new_event_loop()
    loop.close()
    timers = [make() for kind, make in TIMERS.items() if "reaper" not in kind]
    purgatory = Purgatory[Never]("p", MockTimer(), reaper=False)
    return [
        *timers, purgatory, Never(5), ActionTask(5, print), DirectExecutor(), QueuedExecutor(), LoopExecutor(loop),
        ActionQueue(), GaugeRegistry(),
    ]  # fmt: skip


def test_nothing_is_copied_or_pickled() -> None:
    """A copy would share locks and lists with its original."""
    for one in made():
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                act(one)


def in_child(act: Callable[[], None]) -> int:
    """`act` in a fork; its status, 0 where it returned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
@pytest.mark.filterwarnings("ignore:timer 't' ends")
@every_timer
def test_a_child_cannot_use_the_timer_of_its_parent(kind: str) -> None:
    """Each call raises, and `close` does nothing. New objects work, and so do the parent's."""

    def child() -> None:
        calls: list[Callable[[], object]] = [
            lambda: timer.add(ActionTask(5, print)),
            lambda: timer.call_later(5, print),
            lambda: timer.call_every(5, print),
            lambda: timer.cancel(handle),
            lambda: timer.cancel(task),
            timer.size,
        ]
        if kind not in ("reaper", "reaper-system"):
            calls.append(lambda: timer.advance_clock(0))
        for call in calls:
            with pytest.raises(MadeBeforeFork, match="create a new one after the fork"):
                call()
        timer.close()
        with ReaperTimer("new", IntrusiveTimer("new")) as own:
            fired = threading.Event()
            own.call_later(1, fired.set)
            assert fired.wait(30)

    timer = TIMERS[kind]()
    task = ActionTask(60_000, print)
    handle = timer.call_later(60_000, print)
    timer.add(task)
    assert in_child(child) == 0
    assert timer.size() == 2
    timer.close()


@pytest.mark.parametrize("make", [SystemTimer, HeapTimer, HashedWheel, IntrusiveTimer])
def test_a_tick_that_is_no_whole_number_is_refused_at_the_door(make: Callable[..., object]) -> None:
    """And not by the first add."""
    for tick_ms in (1.5, "1"):
        with pytest.raises(TypeError, match=said("tick_ms is a whole number")):
            make("t", tick_ms=tick_ms)


@every_timer
def test_a_closed_timer_refuses_a_task(kind: str) -> None:
    """Otherwise an operation of a purgatory over it would wait forever. (A `MockTimer` cannot be closed.)"""
    timer = TIMERS[kind]()
    timer.close()
    if kind != "mock":
        with pytest.raises(TimerClosed, match=r"closed|stopped"):
            timer.add(ActionTask(5, print))
        with pytest.raises(TimerClosed, match=r"closed|stopped"):
            Purgatory[Never]("p", timer, reaper=False).try_complete_else_watch(Never(5), ["k"])


@needs_fork
def test_the_negative_control_of_the_fork() -> None:
    """Without the look at the process the child's timer takes a function that never runs."""

    def child() -> None:
        timer._forks += 1  # as if the child had made it
        timer.call_later(1, print)
        assert timer.size() == 1
        assert threading.enumerate() == [threading.current_thread()]  # nobody drains it

    timer = IntrusiveTimer("t")
    with ReaperTimer("r", timer):
        assert in_child(child) == 0


def test_all_end_by_the_same_words() -> None:
    """`close`, `with` and `async with`, of all that has threads or what waits; twice is as good as once."""
    for one in [*made(), TIMERS["reaper"](), TIMERS["reaper-system"]()]:
        if not isinstance(one, Owned):
            continue

        async def main(one: Owned = one) -> None:
            async with one as entered:
                assert entered is one

        asyncio.run(main())
        with one as entered:
            assert entered is one
        one.close()


def test_leaving_an_async_block_does_not_hold_up_the_loop() -> None:
    """A function that runs, and waits for the loop, is waited for on another thread."""

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        answered = threading.Event()
        started = threading.Event()

        def ask() -> None:
            started.set()
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)
            answered.set()

        async with ReaperTimer("r", IntrusiveTimer("t")) as timer:
            timer.call_later(1, ask)
            assert await asyncio.to_thread(started.wait, 30)
        return answered.is_set()

    assert asyncio.run(main())


def test_an_async_block_completes_waiting_operations_on_the_loop_s_thread() -> None:
    """So `on_complete` may touch futures; with `with`, on the thread of the block as well."""
    seen: list[int] = []

    class Waits(Never):
        def on_complete(self) -> None:
            seen.append(threading.get_ident())

    async def main() -> None:
        async with Purgatory[Waits]("p") as purgatory:
            purgatory.try_complete_else_watch(Waits(60_000), ["k"])
        assert purgatory.close() == 0

    asyncio.run(main())
    with Purgatory[Waits]("p") as purgatory:
        purgatory.try_complete_else_watch(Waits(60_000), ["k"])
    assert seen == [threading.get_ident()] * 2
