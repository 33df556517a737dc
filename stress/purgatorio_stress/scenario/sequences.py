"""One thread: sequences on the boundaries of levels and buckets, bookkeeping, exceptions, long chains.

The explorer has nothing to choose here; these scenarios are for the bugs that need no second thread. Wheels are small
(size 2 and 3, tick 1 and 3), clocks start anywhere but at a round number, delays lie on the boundaries.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purgatorio import ActionQueue, HashedWheel, InvariantBroken, QueuedExecutor, ReaperTimer, SystemTimer
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import Final_, Scenario
from purgatorio_stress.scenario.world import Task, World

__all__ = ["SEQUENCES"]


@dataclass
class _Walk:
    """One timer, drained at known times; says which tasks did not fire in the first drain that had to fire them."""

    world: World
    timer: SystemTimer | HashedWheel
    executor: QueuedExecutor
    tick_ms: int
    drains_ms: list[int] = field(default_factory=list)
    added: list[tuple[Task, int, int]] = field(default_factory=list)
    broken_structure: str = ""

    def add(self, *delays_ms: int) -> None:
        for delay_ms in delays_ms:
            task = Task(self.world, f"task-{self.world.run.now_ms}-{delay_ms}-{len(self.added)}", delay_ms)
            self.added.append((task, self.now_ms() + delay_ms, len(self.drains_ms)))
            self.timer.add(task)

    def now_ms(self) -> int:
        return self.world.start_ms + self.world.run.now_ms

    def step(self, by_ms: int = 1) -> None:
        self.world.virtual.advance(by_ms)
        self.drain()

    def drain(self) -> None:
        self.drains_ms.append(self.now_ms())
        self.timer.advance_clock(0)
        self.executor.run_all()
        try:
            self.timer.check()
        except InvariantBroken as error:
            # Noted, not raised: what the wheel promises is judged first.
            self.broken_structure = self.broken_structure or str(error)

    def wrong(self) -> Iterator[Broken]:
        for task, deadline_ms, drains_before in self.added:
            due_ms = deadline_ms - deadline_ms % self.tick_ms
            later = [at for at in self.drains_ms[drains_before:] if at >= due_ms]
            expected = later[0] - self.world.start_ms if later else None
            fired = task.fired_at_ms
            if fired == ([] if expected is None else [expected]):
                continue
            # A task may run in `add` itself, or in a drain before the next that counts, where it is due.
            once = fired[0] if len(fired) == 1 else None
            if once is not None and expected is not None and due_ms - self.world.start_ms <= once <= expected:
                continue
            clause = "T3" if len(fired) != 1 else "T1" if expected is None or fired[0] < expected else "T2"
            yield Broken(clause, task.id, f"due in the drain at {expected} ms, fired at {fired}")
        if self.broken_structure:
            yield Broken("CHECK", "timer", self.broken_structure)


def _walks(
    world: World, make: Callable[[int, int], tuple[SystemTimer | HashedWheel, QueuedExecutor]]
) -> Final_:
    walks: list[_Walk] = []

    def walk() -> None:
        for tick_ms, size in ((1, 2), (1, 3), (3, 2), (3, 3)):
            timer, executor = make(tick_ms, size)
            one = _Walk(world, timer, executor, tick_ms)
            walks.append(one)
            interval_ms = tick_ms * size
            one.add(
                *range(interval_ms * 2 + 2), tick_ms, interval_ms, interval_ms * size, interval_ms * size + 1
            )
            for _ in range(interval_ms * 2 - 1):
                one.step()
            one.add(tick_ms, interval_ms, interval_ms * size, interval_ms * size + tick_ms, interval_ms + 1)
            for _ in range(interval_ms * size + interval_ms + 2):
                one.step()
            # An idle gap, in which nobody drains; then a delay that is short.
            one.add(interval_ms, interval_ms * size)
            one.step(interval_ms + tick_ms)
            one.add(tick_ms, interval_ms)
            one.step(tick_ms * 2 + 1)
            for _ in range(interval_ms * size * 2):
                one.step()
            world.virtual.advance(interval_ms * size + 1)
            one.add(1, tick_ms, interval_ms, interval_ms + tick_ms)
            for _ in range(interval_ms * 2 + 2):
                one.step()

    world.task("walker", walk)

    def final() -> Iterator[Broken]:
        world.mark("all fired", all(task.fired_at_ms for one in walks for task, _, _ in one.added))
        for one in walks:
            yield from one.wrong()
            if one.timer.size():
                yield Broken("T5", "timer", f"size() is {one.timer.size()} when everything has fired")

    return final


def _wheel_walk(world: World) -> Final_:
    def make(tick_ms: int, size: int) -> tuple[SystemTimer, QueuedExecutor]:
        executor = QueuedExecutor(sync=world.sync)
        return world.timer(tick_ms, size, executor), executor

    return _walks(world, make)


def _hashed_walk(world: World) -> Final_:
    def make(tick_ms: int, size: int) -> tuple[HashedWheel, QueuedExecutor]:
        executor = QueuedExecutor(sync=world.sync)
        wheel = HashedWheel(
            "hashed",
            tick_ms=tick_ms,
            wheel_size=size,
            clock=world.clock,
            executor=executor,
            faults=world.faults,
            sync=world.sync,
        )
        return wheel, executor

    return _walks(world, make)


def _inclusive(world: World) -> Final_:
    """The shortest that shows an inclusive interval: add 18, 9 ms, add 26, 9 ms, add 8, 9 ms; size 3, start 1."""
    executor = QueuedExecutor(sync=world.sync)
    one = _Walk(world, world.timer(1, 3, executor), executor, 1)

    def walk() -> None:
        for delay_ms in (18, 26, 8):
            one.add(delay_ms)
            one.step(9)
        for _ in range(20):
            one.step()

    world.task("walker", walk)

    def final() -> Iterator[Broken]:
        world.mark("all fired", all(task.fired_at_ms for task, _, _ in one.added))
        yield from one.wrong()

    return final


def _overdue_bucket(world: World) -> Final_:
    """Buckets that nobody polls for a while: the wheel's clock must follow the buckets, not the time."""
    executor = QueuedExecutor(sync=world.sync)
    walks = [_Walk(world, world.timer(1, size, executor), executor, 1) for size in (2, 3)]

    def walk() -> None:
        for one in walks:
            for gap_ms in (3, 4, 5, 7, 10):
                one.add(1, 2, 3, 4, 5, 6, 8, 9)
                world.virtual.advance(gap_ms)
                one.add(0, 1, 2, 3, 4, 5, 6, 7)
                one.drain()
                one.add(1, 2, 3)
                one.step(2)
            for _ in range(30):
                one.step()

    world.task("walker", walk)

    def final() -> Iterator[Broken]:
        world.mark("all fired", all(task.fired_at_ms for one in walks for task, _, _ in one.added))
        for one in walks:
            yield from one.wrong()

    return final


def _cancelling(world: World) -> Final_:
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(wheel_size=3, executor=executor)
    tasks = [Task(world, f"task-{delay}", delay) for delay in (1, 1, 2, 5, 14)]

    def body() -> None:
        for task in tasks:
            timer.add(task)
        for task in tasks[1:]:
            task.cancel()
            task.cancel()

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        if timer.size() != 1:
            yield Broken("T5", "timer", f"size() is {timer.size()}, and 1 task waits")
        timer.check()
        for _ in range(20):
            world.virtual.advance(1)
            timer.advance_clock(0)
            executor.run_all()
        world.mark("one fired", tasks[0].fired_at_ms == [1])
        if sum(len(task.fired_at_ms) for task in tasks) != 1:
            yield Broken("T4", "timer", f"fired: {[task.fired_at_ms for task in tasks]}")

    return final


def _largest_delays(world: World) -> Final_:
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(wheel_size=20, executor=executor)
    delays = (2**63 - 1, 2**63 - 1 - world.start_ms, 2**62, 2**31)
    tasks = [Task(world, f"task-{n}", delay) for n, delay in enumerate(delays)]

    def body() -> None:
        for task in tasks:
            timer.add(task)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        timer.advance_clock(0)
        executor.run_all()
        world.mark("all wait", timer.size() == len(tasks))
        for task in tasks:
            if task.fired_at_ms:
                yield Broken("T1", task.id, f"a delay of {task.delay_ms} ms fired at once")
        if timer.size() != len(tasks):
            yield Broken("T5", "timer", f"size() is {timer.size()}, and {len(tasks)} tasks wait")

    return final


def _exceptions(world: World) -> Final_:
    def fail() -> None:
        raise ValueError("callback")

    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)
    bad, good = world.operation("bad", "k", trying=fail), world.operation("good", "k")
    last = world.operation("last", "l", completing=fail)

    def body() -> None:
        try:
            purgatory.register(bad)
        except ValueError:
            world.mark("the registration raised")
        purgatory.inner.try_complete_else_watch(good, ["k"])
        purgatory.register(last)
        for operation in (bad, good, last):
            operation.become_ready(world.log.now_ns())
        actions.add(fail)
        actions.add(lambda: purgatory.check("l"))
        actions.run_all()

    def event() -> None:
        body()
        watched = purgatory.inner.check_and_complete("k")
        world.mark("checked", watched == 1)

    world.task("caller", event)

    def final() -> Iterator[Broken]:
        for operation in (good, last):
            if not operation.is_completed():
                yield Broken("O8", operation.id, "lost by another callback's exception")

    return final


def _failing_operation_first(world: World) -> Final_:
    failing = [False]

    def trying() -> None:
        if failing[0]:
            raise ValueError("callback")

    purgatory = world.purgatory()
    bad, good = world.operation("bad", "k", trying=trying), world.operation("good", "k")

    def body() -> None:
        purgatory.register(bad)
        purgatory.register(good)
        failing[0] = True
        good.become_ready(world.log.now_ns())
        purgatory.check("k")

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("the exception was contained", bool(world.contained.caught_errors))
        if not good.is_completed():
            yield Broken("O8", "good", "lost by the exception of the operation before it")

    return final


def _reaper_survives(world: World) -> Final_:
    """The executor has been closed behind the reaper's back, or a callback raises: the thread must go on."""

    class Failing(Task):
        def run(self) -> None:
            super().run()
            raise ValueError("callback")

    timer = world.timer(wheel_size=20, executor=_InlineExecutor())
    ReaperTimer("reaper", timer, faults=world.faults, sync=world.sync)
    first, second = Failing(world, "first", 2), Task(world, "second", 400)

    def body() -> None:
        timer.add(first)
        timer.add(second)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("both fired", bool(first.fired_at_ms and second.fired_at_ms))
        if not second.fired_at_ms:
            yield Broken("O8", "second", "never fired: the exception of the first ended the reaper")

    return final


class _InlineExecutor:
    """Runs on the drainer: an exception that is not contained reaches the reaper."""

    def submit(self, action: Callable[[], None], /) -> None:
        action()

    def shutdown(self) -> None:
        return None

    def shutdown_now(self) -> int:
        return 0

    def await_termination(self, timeout_ms: int) -> bool:
        return True

    def is_current(self) -> bool:
        return False


def _long_chain(world: World) -> Final_:
    """Each completion makes the next ready: through the queue a loop, directly a recursion."""
    length = 400
    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)

    def then(number: int) -> Callable[[], None]:
        return lambda: actions.add(lambda: purgatory.inner.check_and_complete(f"k{number + 1}"))

    operations = [world.operation(f"op-{n}", f"k{n}", completing=then(n)) for n in range(length)]

    def body() -> None:
        for operation in operations:
            purgatory.inner.try_complete_else_watch(operation, operation.keys)
            operation.become_ready(0)
        purgatory.inner.check_and_complete("k0")
        while actions.size():
            actions.run_all()

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("all completed", all(operation.is_completed() for operation in operations))
        if any(isinstance(error, RecursionError) for error in world.contained.caught_errors):
            yield Broken("O8", "chain", f"RecursionError in a chain of {length} operations")
        yield from list(world.left_waiting(*operations))[:1]

    return final


def _bookkeeping(world: World) -> Final_:
    interval = 2
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(wheel_size=3, executor=executor)
    purgatory = world.purgatory(timer, purge_interval=interval)
    operations = [world.operation(f"op-{n}", f"a{n}", f"b{n}", delay_ms=50) for n in range(12)]
    purges: list[int] = []

    def body() -> None:
        for operation in operations:
            purgatory.register(operation)
        for number, operation in enumerate(operations[:10]):
            operation.force_complete()
            purges.append(purgatory.inner.purge_if_needed())
            live = len(operations) - number - 1
            if timer.size() != live:
                world.mark(f"size {timer.size()} with {live} live")

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        live = [operation for operation in operations if not operation.is_completed()]
        world.mark("purged", any(purges))
        purgatory.gauge("quiesce")
        most = (interval + len(live)) * 2
        if purgatory.inner.watched() > most:
            yield Broken(
                "P1", "purgatory", f"watched is {purgatory.inner.watched()}, at most {most} are allowed"
            )
        if timer.size() != len(live):
            yield Broken("T5", "timer", f"size() is {timer.size()}, and {len(live)} operations wait")
        inside = purgatory.inner.watched() // 2
        estimate = purgatory.inner._estimated_operations.get()
        if estimate > inside + interval:
            yield Broken("P2", "purgatory", f"the estimate is {estimate}, and {inside} operations are inside")

    return final


def _completing_once_more(world: World) -> Final_:
    """The callback checks its own key, on the same thread: it must find the operation completed."""
    purgatory = world.purgatory()
    calls: list[int] = []

    def completing() -> None:
        calls.append(1)
        if len(calls) < 5:
            purgatory.check("k")

    operation = world.operation("op", "k", completing=completing)
    purgatory.register(operation)
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.mark("completed", operation.is_completed())
        return iter(())

    return final


def _stop_from_callback(world: World) -> Final_:
    timer = world.timer()

    class Closing(Task):
        def run(self) -> None:
            super().run()
            timer.close()

    task = Closing(world, "task", 0)

    def body() -> None:
        timer.add(task)
        world.virtual.advance(1)
        timer.advance_clock(0)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("closed", bool(task.fired_at_ms))
        if world.run.now_ms > 1:
            yield Broken("P3", "timer", f"close() from a task waited until {world.run.now_ms} ms")

    return final


def _shut_down(world: World) -> Final_:
    timer = world.timer(executor=QueuedExecutor(sync=world.sync))
    purgatory = world.purgatory(timer)
    operation = world.operation("op", "k", delay_ms=5)

    def body() -> None:
        purgatory.register(operation)
        purgatory.inner.shutdown()

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("completed", operation.is_completed())
        if not operation.is_completed():
            yield Broken("O5", "op", "left behind by the shutdown")

    return final


def _cancel_against_add(world: World) -> Final_:
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(executor=executor)
    task = Task(world, "task", 1)
    world.task("add", lambda: timer.add(task))
    world.task("cancel", task.cancel)

    def final() -> Iterator[Broken]:
        timer.check()
        waits = 0 if task.is_cancelled() else 1
        world.mark("cancelled", waits == 0)
        world.mark("waits", waits == 1)
        if timer.size() != waits:
            yield Broken("T5", "timer", f"size() is {timer.size()}, and {waits} tasks wait")

    return final


def _one(
    name: str, about: str, clauses: tuple[str, ...], build: Callable[[World], Final_], mark: str, **more: int
) -> Scenario:
    return Scenario(
        name,
        about,
        1,
        clauses,
        build,
        dialects=("pending-flag",),
        marks=(mark,),
        start_ms=more.get("start_ms", 7),
        horizon_ms=more.get("horizon_ms", 0),
        purge_interval=more.get("purge_interval", 1000),
        turns=more.get("turns", 1000),
    )


SEQUENCES: Final = (
    _one(
        "wheel-walk", "delays on the boundaries of levels", ("T1", "T2", "T3", "T5"), _wheel_walk, "all fired"
    ),
    _one("hashed-walk", "the same on the single wheel", ("T1", "T2", "T3", "T5"), _hashed_walk, "all fired"),
    _one("far-edge", "a deadline one interval away", ("T2",), _inclusive, "all fired", start_ms=1),
    _one("overdue-bucket", "a bucket that is polled late", ("T2",), _overdue_bucket, "all fired"),
    _one("cancelling", "cancelled tasks leave at once", ("T4", "T5"), _cancelling, "one fired"),
    _one("largest-delays", "delays near 2**63", ("T1", "T5"), _largest_delays, "all wait"),
    _one("exceptions", "callbacks and actions that raise", ("O8",), _exceptions, "the registration raised"),
    _one(
        "failing-first",
        "an operation that raises, before one that is ready",
        ("O8",),
        _failing_operation_first,
        "the exception was contained",
    ),
    _one("reaper-survives", "a task raises", ("O8",), _reaper_survives, "both fired", horizon_ms=800),
    _one(
        "long-chain",
        "400 completions, each making the next ready",
        ("O8", "O4"),
        _long_chain,
        "all completed",
    ),
    _one(
        "bookkeeping", "purge, estimate, sizes", ("P1", "P2", "T5"), _bookkeeping, "purged", purge_interval=2
    ),
    _one("once-more", "a callback checks its own key", ("O1",), _completing_once_more, "completed"),
    _one("stop-from-callback", "a task closes its timer", ("P3",), _stop_from_callback, "closed"),
    _one("shut-down", "an operation waits at the shutdown", ("O5",), _shut_down, "completed"),
    Scenario(
        "cancel-against-add",
        "a task is cancelled while it is added",
        2,
        ("T5",),
        _cancel_against_add,
        dialects=("pending-flag",),
        marks=("cancelled", "waits"),
    ),
)
"""Scenarios of one thread, and the smallest of two."""
