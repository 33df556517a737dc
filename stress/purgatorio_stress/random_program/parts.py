"""Random programs for single parts of a timer: two buckets, and the delay queue.

In a whole timer, a reader-writer lock separates adds and drains. This hides most races of the parts, so the parts are
also tested alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from purgatorio import TimerTask
from purgatorio.timer.bucket import NOT_QUEUED_MS, TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import Player, vocabulary
from purgatorio_stress.scenario.world import World

_ONE_TICK_MS: Final = 10**6
"""All deadlines are in the tick that begins at 0."""


class _Task(TimerTask):
    def run(self) -> None:
        raise AssertionError("no thread runs it")


class BucketPlayer(Player):
    """Two buckets, and the list of offered buckets. A flush of bucket 1 moves its entries to bucket 0. A flush of
    bucket 0 removes its entries."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.counter = world.sync.atomic_int(0, "tasks")
        self.buckets = [TimerTaskList(self.counter, world.sync) for _ in range(2)]
        self.entries = [
            TimerTaskEntry(_Task(due_ms, sync=world.sync), due_ms, world.sync) for (due_ms,) in drawn.things
        ]
        self.offered: list[int] = []

    def do_add(self, thing: int, bucket: int) -> None:
        """`add`. If the caller changes the expiration, it offers the bucket."""
        self._add(bucket, self.entries[thing])

    def _add(self, bucket: int, entry: TimerTaskEntry) -> None:
        self.buckets[bucket].add(entry)
        if self.buckets[bucket].set_expiration(0):
            if bucket in self.offered:
                self.breaks("CHECK", f"bucket-{bucket}", "offered twice")
            self.offered.append(bucket)

    def do_flush(self, bucket: int) -> None:
        """Poll an offered bucket, and `flush` it."""
        if bucket in self.offered:
            self.offered.remove(bucket)
            self.buckets[bucket].flush(partial(self._add, 0) if bucket else lambda entry: None)

    def do_remove(self, thing: int) -> None:
        self.entries[thing].remove()

    def do_show(self, bucket: int) -> None:
        """Read the entries, the expiration and the delay."""
        one = self.buckets[bucket]
        one.entries()
        due_ms, delay_ms = one.expiration_ms(), one.delay_ms(-1)
        right = (0, 1) if len(self.drawn.threads) > 1 else (int(due_ms == 0),)
        if due_ms not in (0, NOT_QUEUED_MS) or delay_ms not in right:
            self.breaks("CHECK", f"bucket-{bucket}", f"due at {due_ms} ms, at -1 ms in {delay_ms} ms")

    def final(self) -> Iterator[Broken]:
        """Check that the linked lists are closed, the counter equals the linked entries, and a bucket with an entry is
        offered."""
        inside = [bucket.entries() for bucket in self.buckets]
        for number, bucket in enumerate(self.buckets):
            if inside[number] and number not in self.offered:
                yield Broken("T3", f"bucket-{number}", "it holds an entry and is in no queue")
            bucket.check(_ONE_TICK_MS)
        linked = sum(map(len, inside))
        if linked != self.counter.get():
            yield Broken("T5", "buckets", f"{linked} entries are linked, {self.counter.get()} are counted")
        for entry in self.entries:
            bucket_of = entry.bucket.get()
            if bucket_of is not None and entry not in bucket_of.entries():
                yield Broken("T3", "entry", "it names a bucket that does not have it")
        yield from super().final()


class _Item:
    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms

    def expiration_ms(self) -> int:
        return self.due_ms

    def __lt__(self, other: Any, /) -> bool:
        return self.due_ms < int(other.due_ms)


class QueuePlayer(Player):
    """A `DelayQueue`. An item is certainly inside if its offer has returned, and no poll or remove of it has begun."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.queue: DelayQueue[_Item] = DelayQueue(world.clock, world.sync)
        self.items = [_Item(due_ms) for (due_ms,) in drawn.things]
        self.begun: list[_Item] = []
        self.inside: dict[int, int] = {}
        """By number of an item that is inside, the time in ms at which its offer returned."""
        self.out: list[_Item] = []
        self.takers = [0]
        self.alone = len(drawn.threads) == 1

    def _now_ms(self) -> int:
        return self.world.run.now_ms

    def do_offer(self, thing: int) -> None:
        if self.items[thing] not in self.begun:
            self.begun.append(self.items[thing])
            self.queue.offer(self.items[thing])
            self.inside[thing] = self._now_ms()

    def do_wait(self, timeout_ms: int) -> None:
        """`await_due`. It returns when an item is due, neither earlier nor later."""
        began_ms = self._now_ms()
        due = self.queue.await_due(timeout_ms)
        now_ms = self._now_ms()
        since = [max(self.items[n].due_ms, at_ms, began_ms) for n, at_ms in self.inside.items()]
        if since and not self.takers[0] and min(since) + 1 < now_ms:
            self.breaks("T2", "queue", f"due at {min(since)} ms, returned at {now_ms} ms")
        if due and not any(item.due_ms <= now_ms for item in self.begun):
            self.breaks("T1", "queue", f"returned at {now_ms} ms, before it was due")
        if not due and now_ms < began_ms + timeout_ms:
            self.breaks("T2", "queue", f"gave up at {now_ms} ms, not at {began_ms + timeout_ms} ms")

    def do_poll(self) -> None:
        sure = [self.items[n].due_ms for n in self.inside]
        self.takers[0] += 1
        item = self.queue.poll()
        self.takers[0] -= 1
        if item is not None:
            self._is_out(item)
            if item.due_ms > self._now_ms():
                self.breaks("T1", "queue", f"due at {item.due_ms} ms, polled at {self._now_ms()} ms")
        if self.alone and sure and min(sure) <= self._now_ms():
            got = None if item is None else item.due_ms
            if got != min(sure):
                self.breaks("T6", "queue", f"due at {min(sure)} ms, and polled {got}")

    def do_remove(self, thing: int) -> None:
        self.takers[0] += 1
        item = self.items[thing]
        removed = self.queue.remove(item)
        self.takers[0] -= 1
        if removed:
            self._is_out(item)

    def _is_out(self, item: _Item) -> None:
        if item in self.out:
            self.breaks("T3", "queue", f"due at {item.due_ms} ms, came out twice")
        self.out.append(item)
        self.inside.pop(self.items.index(item), None)

    def do_show(self) -> None:
        if self.queue.size() < 0 or len(self.queue.items()) > len(self.items):
            self.breaks("T5", "queue", f"size {self.queue.size()}")

    def do_pass(self, by_ms: int) -> None:
        self.world.virtual.advance(by_ms)

    def final(self) -> Iterator[Broken]:
        """Check that each offered item leaves the queue once, in the order of the due times."""
        self.queue.check()
        left = [item for item in self.begun if item not in self.out]
        if self.queue.size() != len(left):
            yield Broken("T5", "queue", f"size() is {self.queue.size()}, and {len(left)} are inside")
        self.world.virtual.advance(max([0, *(item.due_ms for item in left)]))
        last_ms = None
        while (item := self.queue.poll()) is not None:
            self._is_out(item)
            if last_ms is not None and item.due_ms < last_ms:
                yield Broken("T6", "queue", f"due at {item.due_ms} ms, after one of {last_ms} ms")
            last_ms = item.due_ms
        for item in self.begun:
            if item not in self.out:
                yield Broken("T3", "queue", f"due at {item.due_ms} ms, never came out")
        yield from super().final()


def _sleeps_undisturbed(drawn: Drawn, dialect: str) -> bool:
    """Whether no thread moves the time while another thread waits. The move may come before a check of the clock, so
    the waiting thread would be late."""
    acts = {act.do for thread in drawn.threads for act in thread}
    return len(drawn.threads) == 1 or not {"wait", "pass"} <= acts


PARTS: Final = (
    vocabulary("buckets", BucketPlayer, TimerTaskList),
    vocabulary("queue", QueuePlayer, DelayQueue, legal=_sleeps_undisturbed),
)
"""The vocabularies of buckets, and of the queue that buckets are offered to."""
