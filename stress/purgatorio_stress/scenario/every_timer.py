"""Scenarios for the promises of all timers under threads: two concurrent drains, a refusing executor."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from purgatorio import DirectExecutor, HashedWheel, HeapTimer, QueuedExecutor
from purgatorio.sync import Executor
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.calls import Repeated
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import ONE, Final_, Scenario
from purgatorio_stress.scenario.parts import CheckedTimer
from purgatorio_stress.scenario.timing import fired_once, size_is, walk
from purgatorio_stress.scenario.world import Task, World


class Refused(Exception):
    """The error that `RefusingExecutor` raises."""


class RefusingExecutor(QueuedExecutor):
    """Takes `taken` actions, then refuses one, and takes all others."""

    __slots__ = ("_left",)

    def __init__(self, world: World, taken: int) -> None:
        super().__init__(sync=world.sync)
        self._left = world.sync.atomic_int(taken, "executor.left")

    def submit(self, action: Callable[[], None], /) -> None:
        if self._left.add(-1) == -1:
            raise Refused("the queue is full")
        super().submit(action)


_Make = Callable[[World, Executor], CheckedTimer]


def _of_the_world(world: World, executor: Executor) -> CheckedTimer:
    return world.timer(wheel_size=3, executor=executor)


def _hashed(world: World, executor: Executor) -> CheckedTimer:
    return HashedWheel("timer", wheel_size=3, **world.timer_parts(executor))


def _heap(world: World, executor: Executor) -> CheckedTimer:
    return HeapTimer("timer", **world.timer_parts(executor))


def _intrusive(world: World, executor: Executor) -> CheckedTimer:
    return IntrusiveTimer("timer", wheel_size=2, levels=1, **world.timer_parts(executor))


def _early_or_lost(tasks: list[tuple[Task, int]]) -> Iterator[Broken]:
    for task, deadline_ms in tasks:
        yield from fired_once(task)
        if len(task.fired_at_ms) == 1 and task.fired_at_ms[0] < deadline_ms:
            yield Broken("T1", task.id, f"due at {deadline_ms} ms, fired at {task.fired_at_ms[0]} ms")


def _two_drains(make: _Make, world: World) -> Final_:
    """At 4 ms two threads drain what is due at 3 and 4, while a third adds what is due at 6, a round of the wheel after
    3."""
    executor = QueuedExecutor(sync=world.sync)
    timer = make(world, executor)
    first = Task(world, "due-2", 2)
    timer.add(first)
    for _ in range(2):
        world.virtual.advance(1)
        timer.advance_clock(0)
    tasks = [(Task(world, f"due-{2 + delay_ms}", delay_ms), 2 + delay_ms) for delay_ms in (1, 2)]
    for task, _ in tasks:
        timer.add(task)
    world.virtual.advance(2)
    later = Task(world, "due-6", 2)
    for name in ("one", "two"):
        world.task(name, lambda: timer.advance_clock(0))
    world.task("add", lambda: timer.add(later))

    def final() -> Iterator[Broken]:
        timer.check()
        executor.run_all()
        world.cover("one drain found all", world.said["one"] is not world.said["two"])
        walk(world, timer, executor, 12)
        yield from _early_or_lost([(first, 2), *tasks, (later, 6)])
        yield from size_is(timer, 0)

    return final


def _refused(make: _Make, world: World) -> Final_:
    """Three tasks of one tick, of which the executor refuses the second (a batch: all three); one is cancelled
    meanwhile."""
    executor = RefusingExecutor(world, 0 if make is _intrusive else 1)
    timer = make(world, executor)
    tasks = [Task(world, f"task-{n}", 2) for n in range(3)]
    for task in tasks:
        timer.add(task)
    world.virtual.advance(2)
    refused: list[str] = []

    def drain() -> None:
        try:
            timer.advance_clock(0)
        except Refused as error:
            refused.append(str(error))

    world.task("drain", drain)
    world.task("cancel", tasks[2].cancel)

    def final() -> Iterator[Broken]:
        timer.check()
        left = timer.size()
        world.cover("refused", bool(refused))
        walk(world, timer, executor, 8)
        yield from _early_or_lost([(task, 2) for task in tasks[:2]])
        if len(tasks[2].fired_at_ms) > 1:
            yield Broken("T3", "task-2", f"fired at {tasks[2].fired_at_ms}")
        if refused and not left:
            yield Broken("T5", "timer", "what was refused is not counted")
        yield from size_is(timer, 0)

    return final


def _again_beside_cancel(make: _Make, world: World) -> Final_:
    """A task is due, and is cancelled by one thread, while another adds it again, for 2 ms later, and drains."""
    executor = QueuedExecutor(sync=world.sync)
    timer = make(world, executor)
    task = Task(world, "task", 2)
    timer.add(task)
    world.virtual.advance(2)

    def again() -> None:
        timer.add(task)
        timer.advance_clock(0)

    world.task("cancel", task.cancel)
    world.task("again", again)

    def final() -> Iterator[Broken]:
        timer.check()
        executor.run_all()
        cancelled = task.is_cancelled()
        world.cover("cancelled", cancelled)
        world.cover("waits", not cancelled)
        if task.fired_at_ms:
            yield Broken("T1", "task", f"due at 4 ms, or cancelled, fired at {task.fired_at_ms}")
        walk(world, timer, executor, 8)
        if task.fired_at_ms != ([] if cancelled else [4]):
            yield Broken("T3", "task", f"cancelled is {cancelled}, fired at {task.fired_at_ms}")
        yield from size_is(timer, 0)

    return final


def _inside_a_task(make: _Make, world: World) -> Final_:
    """A task that the drain runs itself cancels another that is due, adds one and drains; a thread adds one beside."""
    timer = make(world, DirectExecutor())
    tasks = {name: Task(world, name, 2) for name in ("added", "beside")}
    # All that one drain of the wheel for use finds is one action: too late to cancel.
    tasks["cancelled"] = Task(world, "cancelled", 3 if isinstance(timer, IntrusiveTimer) else 2)

    class Acting(Task):
        def run(self) -> None:
            super().run()
            tasks["cancelled"].cancel()
            timer.add(tasks["added"])
            timer.advance_clock(0)

    first = Acting(world, "first", 2)
    timer.add(first)
    timer.add(tasks["cancelled"])
    world.virtual.advance(2)
    world.task("drain", lambda: timer.advance_clock(0))
    world.task("beside", lambda: timer.add(tasks["beside"]))

    def final() -> Iterator[Broken]:
        timer.check()
        world.cover("acted", len(first.fired_at_ms) == 1)
        yield from size_is(timer, 2)
        for _ in range(6):
            world.virtual.advance(1)
            timer.advance_clock(0)
        yield from _early_or_lost([(first, 2), (tasks["added"], 4), (tasks["beside"], 4)])
        if tasks["cancelled"].fired_at_ms:
            yield Broken("T4", "cancelled", f"cancelled at 2 ms, fired at {tasks['cancelled'].fired_at_ms}")
        yield from size_is(timer, 0)

    return final


def _repeats_itself_away(make: _Make, world: World) -> Final_:
    """A function that runs every 2 ms cancels itself in its second run, while a thread drains too."""
    timer = make(world, DirectExecutor())
    ran: list[int] = []

    def act() -> None:
        ran.append(world.run.now_ms)
        if len(ran) == 2:
            repeated.cancel()

    repeated = Repeated(timer, 2, act, sync=world.sync)
    timer.add(repeated)
    world.virtual.advance(2)
    for name in ("one", "two"):
        world.task(name, lambda: timer.advance_clock(0))

    def final() -> Iterator[Broken]:
        timer.check()
        world.cover("ran", ran == [2])
        for _ in range(8):
            world.virtual.advance(1)
            timer.advance_clock(0)
        if ran != [2, 4]:
            clause = "T4" if ran[:2] == [2, 4] else "T3"
            yield Broken(clause, "repeated", f"every 2 ms, cancelled in its second run, ran at {ran} ms")
        yield from size_is(timer, 0)

    return final


def _stop_beside_cancel(world: World) -> Final_:
    """One thread stops the wheel once nothing waits, another cancels the last task that does."""
    timer = HashedWheel("timer", wheel_size=3, **world.timer_parts(QueuedExecutor(sync=world.sync)))
    task = Task(world, "task", 5)
    timer.add(task)
    world.task("stop", timer.stop_after_pending)
    world.task("cancel", task.cancel)

    def final() -> Iterator[Broken]:
        timer.check()
        world.cover("stopped", world.said["stop"] is True)
        yield from size_is(timer, 0)

    return final


def _of(prefix: str, about: str, make: _Make) -> tuple[Scenario, ...]:
    scenario = partial(Scenario, dialects=ONE, plain=make is _intrusive)
    return (
        scenario(
            f"{prefix}two-drains",
            f"{about}: two threads drain, a third adds a round ahead",
            3,
            ("T1", "T3", "T5"),
            partial(_two_drains, make),
            labels=("one drain found all",),
            strategy="bounded",
            horizon_ms=12,
        ),
        scenario(
            f"{prefix}refused",
            f"{about}: the executor refuses in the middle of a drain",
            2,
            ("T3", "T5"),
            partial(_refused, make),
            labels=("refused",),
            horizon_ms=8,
        ),
        scenario(
            f"{prefix}again-beside-cancel",
            f"{about}: a due task is cancelled while it is added again, and drained",
            2,
            ("T1", "T3", "T5"),
            partial(_again_beside_cancel, make),
            labels=("cancelled", "waits"),
            horizon_ms=8,
        ),
        scenario(
            f"{prefix}inside-a-task",
            f"{about}: a task that the drain runs itself cancels, adds and drains",
            2,
            ("T1", "T3", "T4", "T5", "P3"),
            partial(_inside_a_task, make),
            labels=("acted",),
            horizon_ms=8,
        ),
        scenario(
            f"{prefix}repeats-itself-away",
            f"{about}: a repeated function cancels itself, while two threads drain",
            2,
            ("T3", "T4", "T5"),
            partial(_repeats_itself_away, make),
            labels=("ran",),
            horizon_ms=12,
        ),
    )


EVERY_TIMER: Final = (
    *_of("", "wheel", _of_the_world),
    *_of("heap-", "heap", _heap),
    *_of("hashed-", "hashed wheel", _hashed),
    Scenario(
        "hashed-stop-beside-cancel",
        "hashed wheel: a stop waits for the last task, which is cancelled",
        2,
        ("P3", "T5"),
        _stop_beside_cancel,
        dialects=ONE,
        labels=("stopped",),
        horizon_ms=8,
    ),
    *_of("intrusive-", "wheel for use", _intrusive),
)
"""Scenarios that every timer passes."""
