"""Scenarios with one thread that moves the clock of a timer over the boundaries of levels and buckets.

Wheels are small (size 2 and 3, tick 1 and 3). Clocks do not start at a round number. Delays are at boundaries, and
some buckets are polled late. Every task must run in the first drain at or after the time when the task is due.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purgatorio import HashedWheel, InvariantBroken, QueuedExecutor
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import Final_, one_thread
from purgatorio_stress.scenario.parts import CheckedTimer
from purgatorio_stress.scenario.timing import size_is, walk
from purgatorio_stress.scenario.world import Task, World


@dataclass
class _Walk:
    """One timer, drained at known times; says which tasks did not fire in the first drain that had to fire them."""

    world: World
    timer: CheckedTimer
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


def _all_fired(world: World, walked: list[_Walk]) -> Iterator[Broken]:
    world.cover("all fired", all(task.fired_at_ms for one in walked for task, _, _ in one.added))
    for one in walked:
        yield from one.wrong()


def walks(world: World, make: Callable[[int, int], tuple[CheckedTimer, QueuedExecutor]]) -> Final_:
    """What `make` makes of tick and size, walked over the ends of its levels."""
    walked: list[_Walk] = []

    def walk() -> None:
        for tick_ms, size in ((1, 2), (1, 3), (3, 2), (3, 3)):
            timer, executor = make(tick_ms, size)
            one = _Walk(world, timer, executor, tick_ms)
            walked.append(one)
            interval_ms = tick_ms * size
            one.add(
                *range(interval_ms * 2 + 2), tick_ms, interval_ms, interval_ms * size, interval_ms * size + 1
            )
            for _ in range(interval_ms * 2 - 1):
                one.step()
            one.add(tick_ms, interval_ms, interval_ms * size, interval_ms * size + tick_ms, interval_ms + 1)
            for _ in range(interval_ms * size + interval_ms + 2):
                one.step()
            # An idle gap, in which no thread drains; then a delay that is short.
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
        yield from _all_fired(world, walked)
        for one in walked:
            yield from size_is(one.timer, 0)

    return final


def _wheel_walk(world: World) -> Final_:
    def make(tick_ms: int, size: int) -> tuple[CheckedTimer, QueuedExecutor]:
        executor = QueuedExecutor(sync=world.sync)
        return world.timer(tick_ms, size, executor), executor

    return walks(world, make)


def _hashed_walk(world: World) -> Final_:
    def make(tick_ms: int, size: int) -> tuple[HashedWheel, QueuedExecutor]:
        executor = QueuedExecutor(sync=world.sync)
        parts = world.timer_parts(executor)
        return HashedWheel("hashed", tick_ms=tick_ms, wheel_size=size, **parts), executor

    return walks(world, make)


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

    return lambda: _all_fired(world, [one])


def _overdue_bucket(world: World) -> Final_:
    """Buckets that no thread polls for a while: the wheel's clock must follow the buckets, not the time."""
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

    return lambda: _all_fired(world, walks)


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
        yield from size_is(timer, 1)
        timer.check()
        walk(world, timer, executor, 20)
        world.cover("one fired", tasks[0].fired_at_ms == [1])
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
        world.cover("all wait", timer.size() == len(tasks))
        for task in tasks:
            if task.fired_at_ms:
                yield Broken("T1", task.id, f"a delay of {task.delay_ms} ms fired at once")
        yield from size_is(timer, len(tasks))

    return final


WALKS: Final = (
    one_thread(
        "wheel-walk", "delays on the boundaries of levels", ("T1", "T2", "T3", "T5"), _wheel_walk, "all fired"
    ),
    one_thread(
        "hashed-walk", "the same on the single wheel", ("T1", "T2", "T3", "T5"), _hashed_walk, "all fired"
    ),
    one_thread("far-edge", "a deadline one interval away", ("T2",), _inclusive, "all fired", start_ms=1),
    one_thread("overdue-bucket", "a bucket that is polled late", ("T2",), _overdue_bucket, "all fired"),
    one_thread("cancelling", "cancelled tasks leave at once", ("T4", "T5"), _cancelling, "one fired"),
    one_thread("largest-delays", "delays near 2**63", ("T1", "T5"), _largest_delays, "all wait"),
)
"""Scenarios of one timer and one thread."""
