"""Timers under threads: cancel, add and re-add against a flush, levels made twice, a reaper's sleep, shutdown."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from purgatorio import QueuedExecutor, ReaperTimer
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import ONE, Final_, Scenario
from purgatorio_stress.scenario.parts import CheckedTimer
from purgatorio_stress.scenario.world import FOREVER_MS, Operation, Task, World


def _walk(world: World, timer: CheckedTimer, executor: QueuedExecutor, until_ms: int) -> None:
    """Let time pass by single milliseconds, draining at each; for the quiet end of a run."""
    while world.run.now_ms < until_ms:
        world.virtual.advance(1)
        timer.advance_clock(0)
        executor.run_all()


def _of_the_world(world: World, wheel_size: int) -> tuple[CheckedTimer, QueuedExecutor]:
    executor = QueuedExecutor(sync=world.sync)
    return world.timer(wheel_size=wheel_size, executor=executor), executor


def _fired_once(*tasks: Task) -> Iterator[Broken]:
    """T3: each of them has."""
    for task in tasks:
        if len(task.fired_at_ms) != 1:
            yield Broken("T3", task.id, f"fired {len(task.fired_at_ms)} times, at {task.fired_at_ms}")


def _size_is(timer: CheckedTimer, size: int) -> Iterator[Broken]:
    """T5: so many tasks wait."""
    if timer.size() != size:
        yield Broken("T5", "timer", f"size() is {timer.size()}, and {size} tasks wait")


def _completed_by_shutdown(world: World, operation: Operation) -> Iterator[Broken]:
    """O5: the operation is completed."""
    world.cover("completed", operation.is_completed())
    if not operation.is_completed():
        yield Broken("O5", operation.id, "left behind by the shutdown")


def _cancel_against_flush(world: World) -> Final_:
    """At 2 ms the task moves from the upper level to the lower one, where it is due at 3 ms."""
    timer, executor = _of_the_world(world, 2)
    task = Task(world, "task", 3)
    task.add_to(timer)
    world.virtual.advance(2)
    world.task("drain", lambda: timer.advance_clock(0))
    world.task("cancel", task.cancel_recorded)

    def final() -> Iterator[Broken]:
        timer.check()
        yield from _size_is(timer, 0)
        _walk(world, timer, executor, 8)
        world.cover("did not fire", not task.fired_at_ms)
        if task.fired_at_ms:
            yield Broken("T4", "task", f"fired at {task.fired_at_ms} ms although cancelled at 2 ms")
        yield from _size_is(timer, 0)

    return final


def _cancel_against_add(world: World) -> Final_:
    """The first add of a task, and its cancel: it waits and fires, or it does neither."""
    timer, executor = _of_the_world(world, 2)
    task = Task(world, "task", 3)
    world.task("add", lambda: task.add_to(timer))
    world.task("cancel", task.cancel_recorded)

    def final() -> Iterator[Broken]:
        timer.check()
        cancelled = task.is_cancelled()
        yield from _size_is(timer, 0 if cancelled else 1)
        _walk(world, timer, executor, 8)
        world.cover("cancelled", cancelled)
        world.cover("waits", not cancelled)
        if len(task.fired_at_ms) != (0 if cancelled else 1):
            yield Broken("T4", "task", f"cancelled is {cancelled}, fired at {task.fired_at_ms}")

    return final


def _add_against_flush(world: World) -> Final_:
    """One bucket, without the timer's reader-writer lock: the caller that changes its expiration must offer it."""
    counter = world.sync.atomic_int(0, "tasks")
    bucket = TimerTaskList(counter, world.sync)
    entries = [TimerTaskEntry(Task(world, f"task-{n}", 1), 1, world.sync) for n in (0, 1)]
    bucket.add(entries[0])
    bucket.set_expiration(1)
    flushed: list[TimerTaskEntry] = []
    offered: list[int] = []

    def add() -> None:
        bucket.add(entries[1])
        if bucket.set_expiration(1):
            offered.append(1)

    world.task("flush", lambda: bucket.flush(flushed.append))
    world.task("add", add)

    def final() -> Iterator[Broken]:
        world.cover("flushed both", len(flushed) == 2)
        world.cover("added after the flush", len(flushed) == 1)
        if bucket.entries() and not offered:
            yield Broken("T3", "bucket", "it holds an entry and is in no queue")

    return final


def _remove_against_move(world: World) -> Final_:
    """Two buckets; one moves its entry to the other, which gets one more, while the moved one is removed."""
    counter = world.sync.atomic_int(0, "tasks")
    source, target = (TimerTaskList(counter, world.sync) for _ in range(2))
    entries = [TimerTaskEntry(Task(world, f"task-{n}", n), n, world.sync) for n in (1, 2)]
    source.add(entries[0])
    target.set_expiration(0)
    world.task("remove", entries[0].remove)
    world.task("move", lambda: source.flush(target.add))
    world.task("add", lambda: target.add(entries[1]))

    def final() -> Iterator[Broken]:
        inside = target.entries()
        world.cover("removed after the move", inside == [entries[1]])
        world.cover("removed before the move", not source.entries())
        target.check(10**6)
        if len(inside) != counter.get() or entries[1] not in inside:
            yield Broken("T5", "bucket", f"{len(inside)} entries are linked, {counter.get()} are counted")

    return final


def _overflow_twice(world: World) -> Final_:
    timer, executor = _of_the_world(world, 2)
    tasks = [Task(world, f"task-{delay}", delay) for delay in (2, 3)]
    for task in tasks:
        world.task(task.id, partial(task.add_to, timer))

    def final() -> Iterator[Broken]:
        timer.check()
        yield from _size_is(timer, 2)
        _walk(world, timer, executor, 10)
        world.cover("both fired", all(task.fired_at_ms for task in tasks))
        yield from _fired_once(*tasks)

    return final


def _add_against_drain(world: World) -> Final_:
    """One task is due when another comes for the next tick."""
    timer, executor = _of_the_world(world, 2)
    due, later = Task(world, "due", 1), Task(world, "later", 1)
    due.add_to(timer)
    world.virtual.advance(1)
    world.task("drain", lambda: timer.advance_clock(0))
    world.task("add", lambda: later.add_to(timer))

    def final() -> Iterator[Broken]:
        timer.check()
        executor.run_all()
        _walk(world, timer, executor, 6)
        world.cover("both fired", bool(due.fired_at_ms and later.fired_at_ms))
        yield from _fired_once(due, later)
        yield from _size_is(timer, 0)

    return final


def _moved_twice(world: World) -> Final_:
    """A waiting task is added again by two threads: it moves, and is there once."""
    timer, executor = _of_the_world(world, 3)
    task = Task(world, "task", 2)
    timer.add(task)
    for name in ("one", "two"):
        world.task(name, lambda: timer.add(task))

    def final() -> Iterator[Broken]:
        timer.check()
        yield from _size_is(timer, 1)
        _walk(world, timer, executor, 6)
        world.cover("fired", bool(task.fired_at_ms))
        yield from _fired_once(task)

    return final


def _completed_before_timer(world: World) -> Final_:
    timer, _ = _of_the_world(world, 2)
    purgatory = world.purgatory(timer)
    operation = world.operation("op", "k", delay_ms=1)
    world.task("registrar", lambda: purgatory.register(operation))
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        timer.check()
        world.cover("completed", operation.is_completed())
        yield from world.left_waiting(operation)
        yield from _size_is(timer, 0)

    return final


def _shutdown_against_registration(world: World) -> Final_:
    timer, _ = _of_the_world(world, 2)
    purgatory = world.purgatory(timer)
    operation = world.operation("op", "k", delay_ms=3)
    world.task("registrar", lambda: purgatory.register(operation))
    world.task("shutdown", purgatory.inner.close)
    return lambda: _completed_by_shutdown(world, operation)


def _against_sleep(waiting_ms: tuple[int, ...], world: World) -> Final_:
    """The reaper goes to sleep for 200 ms, or for what waits already, when a task comes that is due in 2."""
    timer = world.timer(wheel_size=20)
    waiting = [Task(world, f"waits-{delay_ms}", delay_ms) for delay_ms in waiting_ms]
    for one in waiting:
        timer.add(one)
    ReaperTimer("reaper", timer, faults=world.faults, sync=world.sync)
    task = Task(world, "task", 2)
    world.task("add", lambda: task.add_to(timer))

    def final() -> Iterator[Broken]:
        world.cover("fired", bool(task.fired_at_ms))
        for one in (*waiting, task):
            if one.fired_at_ms != [one.delay_ms]:
                yield Broken("T2", one.id, f"due at {one.delay_ms} ms, fired at {one.fired_at_ms} ms")

    return final


def _polled(world: World, waiting_ms: tuple[int, ...] = ()) -> Final_:
    """A thread polls the delay queue, without an end of its patience, while another offers a bucket that is due."""
    queue: DelayQueue[TimerTaskList] = DelayQueue(world.clock, world.sync)
    counter = world.sync.atomic_int(0, "tasks")

    def bucket(expiration_ms: int) -> TimerTaskList:
        made = TimerTaskList(counter, world.sync)
        made.set_expiration(expiration_ms)
        return made

    for expiration_ms in waiting_ms:
        queue.offer(bucket(expiration_ms))
    due = bucket(world.clock.now_ms())
    world.task("poll", lambda: queue.poll() if queue.await_due(FOREVER_MS) else None)
    world.task("offer", lambda: queue.offer(due))

    def final() -> Iterator[Broken]:
        queue.check()
        polled = world.said["poll"] is due
        world.cover("polled", polled)
        if not polled or world.run.now_ms:
            yield Broken("T2", "bucket", f"it was due at once, and polled after {world.run.now_ms} ms")

    return final


def _timer(name: str, about: str, build_clauses: tuple[str, ...]) -> tuple[str, str, int, tuple[str, ...]]:
    return name, about, 2, build_clauses


TIMING: Final = (
    Scenario(
        *_timer("cancel-against-flush", "a task is cancelled while it moves between levels", ("T4", "T5")),
        _cancel_against_flush,
        dialects=ONE,
        labels=("did not fire",),
        horizon_ms=8,
    ),
    Scenario(
        *_timer("cancel-against-add", "a task is cancelled while it is added", ("T4", "T5")),
        _cancel_against_add,
        dialects=ONE,
        labels=("cancelled", "waits"),
        horizon_ms=8,
    ),
    Scenario(
        *_timer("add-against-flush", "a bucket is filled while it is flushed", ("T3",)),
        _add_against_flush,
        dialects=ONE,
        labels=("flushed both", "added after the flush"),
    ),
    Scenario(
        "remove-against-move",
        "an entry is removed while it moves from bucket to bucket; uses of links are steps",
        3,
        ("T5",),
        _remove_against_move,
        dialects=ONE,
        labels=("removed after the move", "removed before the move"),
        strategy="states",
        stepping=frozenset({"link.next", "link.previous"}),
    ),
    Scenario(
        *_timer("overflow-twice", "two adders need the level above for the first time", ("T3", "T5")),
        _overflow_twice,
        dialects=ONE,
        labels=("both fired",),
        horizon_ms=10,
        late_ms=0,
    ),
    Scenario(
        *_timer("add-against-drain", "a task is added while the timer is drained", ("T3", "T5")),
        _add_against_drain,
        dialects=ONE,
        labels=("both fired",),
        horizon_ms=6,
    ),
    Scenario(
        *_timer("moved-twice", "a waiting task is added again by two threads", ("T3", "T5")),
        _moved_twice,
        dialects=ONE,
        labels=("fired",),
        horizon_ms=6,
    ),
    Scenario(
        *_timer("completed-before-timer", "completed before its timer starts (KAFKA-2226)", ("T5", "O4")),
        _completed_before_timer,
        labels=("completed",),
    ),
    Scenario(
        *_timer("shutdown-against-registration", "registering while the purgatory closes", ("O5",)),
        _shutdown_against_registration,
        labels=("completed",),
    ),
    Scenario(
        "add-against-sleep",
        "a task comes while the reaper goes to sleep",
        3,
        ("T2", "P3"),
        partial(_against_sleep, ()),
        dialects=ONE,
        strategy="states",
        labels=("fired",),
        horizon_ms=20,
    ),
    Scenario(
        "earlier-against-sleep",
        "a task comes that is due before the one the reaper sleeps for",
        3,
        ("T2", "P3"),
        partial(_against_sleep, (9,)),
        dialects=ONE,
        strategy="states",
        labels=("fired",),
        horizon_ms=20,
    ),
    Scenario(
        *_timer("offer-against-poll", "a due bucket is offered to whom may be going to sleep", ("T2", "P3")),
        _polled,
        dialects=ONE,
        labels=("polled",),
    ),
    Scenario(
        *_timer("earlier-offer-against-poll", "the same, with a bucket that is due later", ("T2", "P3")),
        partial(_polled, waiting_ms=(1 << 30,)),
        dialects=ONE,
        labels=("polled",),
    ),
)
"""Scenarios with a timer."""
