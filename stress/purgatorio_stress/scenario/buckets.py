"""Scenarios for single parts of a wheel (buckets and the delay queue), without a timer."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import Final_
from purgatorio_stress.scenario.world import FOREVER_MS, PlainTask, World


def _add_against_flush(world: World) -> Final_:
    """An add and a flush of one bucket, without the timer's reader-writer lock. The caller that changes the expiration
    of the bucket must offer the bucket."""
    counter = world.sync.atomic_int(0, "tasks")
    bucket = TimerTaskList(counter, world.sync)
    entries = [TimerTaskEntry(PlainTask(world, f"task-{n}", 1), 1, world.sync) for n in (0, 1)]
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
    """Two buckets. A flush moves an entry from one bucket to the other. Meanwhile another entry is added to the other
    bucket, and the moved entry is removed."""
    counter = world.sync.atomic_int(0, "tasks")
    source, target = (TimerTaskList(counter, world.sync) for _ in range(2))
    entries = [TimerTaskEntry(PlainTask(world, f"task-{n}", n), n, world.sync) for n in (1, 2)]
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


def _polled(waiting_ms: tuple[int, ...], world: World) -> Final_:
    """A thread waits for the delay queue without a time-out, while another thread offers a due bucket."""
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
        polled = world.run.said["poll"] is due
        world.cover("polled", polled)
        if not polled or world.run.now_ms:
            yield Broken("T2", "bucket", f"it was due at once, and polled after {world.run.now_ms} ms")

    return final


BUCKETS: Final[Mapping[str, Callable[[World], Final_]]] = {
    "add-against-flush": _add_against_flush,
    "remove-against-move": _remove_against_move,
    "offer-against-poll": partial(_polled, ()),
    "earlier-offer-against-poll": partial(_polled, (1 << 30,)),
}
"""By the name of the scenario."""
