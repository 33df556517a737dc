"""`IntrusiveTimer` under threads, and at the boundaries of ticks and levels.

Its state is in plain attributes, and the explorer sees only the lock that guards them all. This is enough by the
rule of `tests/reference/test_intrusive_rules.py`, because no other task can observe what happens under the lock.
Only a task's entry, an atomic, is read without the lock. (The scenarios are `plain`: `states` would not see the
plain attributes.)
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from purgatorio import QueuedExecutor, TimerClosed
from purgatorio.timer import IntrusiveTimer
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import ONE, Final_, Scenario, one_thread
from purgatorio_stress.scenario.timing import (
    add_against_drain,
    against_sleep,
    cancel_against_add,
    cancel_against_flush,
    fired_once,
    moved_twice,
    size_is,
    walk,
)
from purgatorio_stress.scenario.walks import walks
from purgatorio_stress.scenario.world import Task, World


def _timer(
    world: World, wheel_size: int = 2, tick_ms: int = 1, name: str = "timer"
) -> tuple[IntrusiveTimer, QueuedExecutor]:
    """A power of two of buckets."""
    executor = QueuedExecutor(sync=world.sync)
    timer = IntrusiveTimer(
        name,
        tick_ms=tick_ms,
        wheel_size=1 << (wheel_size - 1).bit_length(),
        levels=1,
        integer_handles=True,
        **world.timer_parts(executor),
    )
    return timer, executor


def _call_cancelled_against_drain(world: World) -> Final_:
    """As `cancel_against_flush`, of a function under a number, while another stays in the same bucket."""
    timer, executor = _timer(world)
    task, stays = Task(world, "task", 3), Task(world, "stays", 3)
    handle = timer.call_later(3, task.run)
    timer.call_later(3, stays.run)
    world.virtual.advance(2)
    world.task("drain", lambda: timer.advance_clock(0))
    world.task("cancel", lambda: timer.cancel(handle))

    def final() -> Iterator[Broken]:
        timer.check()
        yield from size_is(timer, 1)
        walk(world, timer, executor, 8)
        world.cover("did not fire", not task.fired_at_ms)
        if task.fired_at_ms:
            yield Broken("T4", "task", f"fired at {task.fired_at_ms} ms although cancelled at 2 ms")
        yield from fired_once(stays)

    return final


def _call_against_call(world: World) -> Final_:
    """Two functions for one bucket at once, while it is drained: two numbers, and both fire."""
    timer, executor = _timer(world)
    tasks = [Task(world, name, 1) for name in ("one", "two", "due")]
    timer.call_later(1, tasks[2].run)
    world.virtual.advance(1)
    for task in tasks[:2]:
        world.task(task.id, partial(timer.call_later, 1, task.run))
    world.task("drain", lambda: timer.advance_clock(0))

    def final() -> Iterator[Broken]:
        timer.check()
        executor.run_all()
        walk(world, timer, executor, 6)
        world.cover("all fired", all(task.fired_at_ms for task in tasks))
        if world.said["one"] == world.said["two"]:
            yield Broken("T3", "handles", f"not two numbers: {world.said['one']} twice")
        yield from fired_once(*tasks)
        yield from size_is(timer, 0)

    return final


def _two_timers(world: World) -> Final_:
    """A task that waits in one timer is added to another, while a third thread cancels it."""
    first, executor = _timer(world, 4, name="first")
    second, other = _timer(world, 4, name="second")
    task, stays = Task(world, "task", 2), Task(world, "stays", 2)
    first.add(task)
    first.add(stays)
    world.task("move", lambda: second.add(task))
    world.task("cancel", task.cancel)

    def final() -> Iterator[Broken]:
        first.check()
        second.check()
        cancelled = task.is_cancelled()
        if first.size() + second.size() != (1 if cancelled else 2):
            yield Broken("T5", "timers", f"{first.size()} and {second.size()} wait, cancelled is {cancelled}")
        world.virtual.advance(3)
        for timer, own in ((first, executor), (second, other)):
            timer.advance_clock(0)
            own.run_all()
        world.cover("moved", not cancelled)
        world.cover("cancelled", cancelled)
        if len(task.fired_at_ms) != (0 if cancelled else 1):
            yield Broken("T3", "task", f"cancelled is {cancelled}, fired at {task.fired_at_ms}")
        yield from fired_once(stays)

    return final


def _close_against_add(world: World) -> Final_:
    timer, executor = _timer(world)
    task = Task(world, "task", 3)

    def refused() -> bool:
        try:
            timer.add(task)
        except TimerClosed:
            return True
        return False

    world.task("add", refused)
    world.task("close", timer.close)

    def final() -> Iterator[Broken]:
        timer.check()
        world.cover("refused", world.said["add"] is True)
        world.cover("dropped", world.said["add"] is False)
        world.virtual.advance(9)
        if timer.advance_clock(0) or executor.run_all() or task.fired_at_ms:
            yield Broken("T5", "task", "waits in a timer that is closed")
        yield from size_is(timer, 0)

    return final


def _against_sleep(waiting_ms: tuple[int, ...], world: World, *, calls: bool = False) -> Final_:
    timer = IntrusiveTimer("timer", wheel_size=16, levels=1, integer_handles=True, **world.timer_parts())
    return against_sleep(
        world, timer, waiting_ms, (lambda task: timer.call_later(2, task.run)) if calls else None
    )


def _walk_boundaries(world: World) -> Final_:
    return walks(world, lambda tick_ms, size: _timer(world, size, tick_ms))


def _two(
    name: str, about: str, clauses: tuple[str, ...], build: Callable[[World], Final_], *labels: str
) -> Scenario:
    return Scenario(
        f"intrusive-{name}", about, 2, clauses, build, dialects=ONE, labels=labels, horizon_ms=8, plain=True
    )


INTRUSIVE: Final = (
    _two(
        "cancel-against-drain",
        "wheel for use: a task is cancelled while it moves between levels",
        ("T4", "T5"),
        partial(cancel_against_flush, make=_timer),
        "did not fire",
    ),
    _two(
        "cancel-against-add",
        "wheel for use: a task is cancelled while it is first added",
        ("T4", "T5"),
        partial(cancel_against_add, make=_timer),
        "cancelled",
        "waits",
    ),
    _two(
        "add-against-drain",
        "wheel for use: a task is added while the timer is drained",
        ("T3", "T5"),
        partial(add_against_drain, make=_timer),
        "both fired",
    ),
    _two(
        "call-cancelled-against-drain",
        "wheel for use: a function is cancelled while it moves between levels",
        ("T4", "T5"),
        _call_cancelled_against_drain,
        "did not fire",
    ),
    replace(
        _two(
            "call-against-call",
            "wheel for use: two functions come for one bucket while the timer is drained",
            ("T3", "T5"),
            _call_against_call,
            "all fired",
        ),
        threads=3,
    ),
    _two(
        "moved-twice",
        "wheel for use: a waiting task is added again by two threads",
        ("T3", "T5"),
        partial(moved_twice, make=_timer),
        "fired",
    ),
    _two(
        "two-timers",
        "wheel for use: a waiting task is added to another timer, and cancelled",
        ("T3", "T5"),
        _two_timers,
        "moved",
        "cancelled",
    ),
    _two(
        "close-against-add",
        "wheel for use: a task is added while the timer closes",
        ("T5",),
        _close_against_add,
        "refused",
        "dropped",
    ),
    *(
        Scenario(
            f"intrusive-{name}",
            f"wheel for use: {about}",
            3,
            ("T2", "P3"),
            partial(_against_sleep, delays_ms, calls=calls),
            dialects=ONE,
            labels=("fired",),
            strategy="bounded",
            horizon_ms=20,
            plain=True,
        )
        for name, about, delays_ms, calls in (
            ("add-against-sleep", "a task comes while the reaper goes to sleep", (), False),
            ("earlier-against-sleep", "a task comes due before the one the reaper sleeps for", (9,), False),
            ("call-against-sleep", "a function comes due before the task the reaper sleeps for", (9,), True),
        )
    ),
    replace(
        one_thread(
            "intrusive-walk",
            "wheel for use: delays on the boundaries of levels",
            ("T1", "T2", "T3", "T5"),
            _walk_boundaries,
            "all fired",
        ),
        plain=True,
    ),
)
"""Scenarios of the wheel for use."""
