"""`Wheel`: the data structure of `IntrusiveTimer`: levels of buckets, and a heap of the buckets that are not empty.

A `Wheel` has no lock, no clock and no thread. The argument of `take_due` is the time. If several threads share a wheel,
the caller must guard every call.

All numbers are ticks. A level of shift s has buckets of 2**s ticks. In this level, tick t has the number t >> s, and
belongs to the bucket (t >> s) mod size. With `now` the current tick of the wheel, the level can hold

    t with (t >> s) - (now >> s) < size,   which is   t < limit = ((now >> s) + size) << s

The lowest level that can hold t gets t. (`purgatorio.arithmetic.is_within_level` is the same rule.) At any time, one
bucket of a level holds ticks of only one number. Below all levels is the level of overdue ticks: one bucket, for every
t < limit = now + 1.

Promises (clause ids in brackets).
* [T1] `take_due(now)` returns no item whose tick is above `now`.
* [T2] [T3] `take_due(now)` returns every item that waits for `now` or before, once, in the order of the ticks [T6].
* [T4] No later `take_due` returns an item that `unlink` or `pop` has removed.
* [T5] `size()` is the number of waiting items.
* [T7] Each item moves at most once in a `take_due`. `take_due` first takes out *all* due buckets, and then places the
  items that are not due yet by the new clock.

>>> wheel = Wheel(wheel_size=4, levels=1, now_tick=0)
>>> soon, late = wheel.put(2, print), wheel.put(70, print)
>>> wheel.take_due(1), wheel.next_due_tick()
(None, 2)
>>> [tick for tick, _, _ in wheel.take_due(2) or ()], wheel.size()
([2], 1)
>>> wheel.pop(late) is print, wheel.size(), wheel.take_due(80)
(True, 0, [])

Bounds: the wheel creates a level when a tick first needs it, so `2**63 - 1` ms at 256 slots takes 8 levels. A bucket is
in the heap at most once, even if all its items were cancelled. So the heap has at most levels x size + 1 members.

There are two ways to wait. A `Node` is linked into the ring of its bucket. A function waits in a dictionary of its
bucket, under an integer handle. In the interpreted build the dictionary is faster, in the compiled build the links
(docs/measured/performance.md).
"""

import heapq
import operator
import sys
from collections.abc import Callable
from typing import Final, cast

from purgatorio.invariant import require
from purgatorio.timer.interface import TimerClosed
from purgatorio.timer.intrusive.node import NOWHERE, Callback, Link, Node

HANDLE_BITS: Final = 60
"""An integer handle is `tick << HANDLE_BITS | n`, with n counted up by its wheel: no handle comes twice (five
million a second last for seven thousand years), and it determines the bucket. It has two digits of a Python integer,
so that the shifts stay cheap; and a dictionary hashes consecutive n to consecutive places."""

Calls = dict[int, Callback]
"""Functions by their handles."""

NO_CALLS: Final[Calls] = {}
"""Shared by all buckets without functions; no function is put into it. (An empty dictionary for each bucket would be
larger than an empty ring.)"""

Due = tuple[int, list[Node], Calls]
"""The entries of one tick: the tick, its nodes, and its functions under integer handles, in the order of their adds."""

_FINEST: Final = 1
"""The rank of the level whose buckets have one tick each."""

_COMPACT_TICKS: Final = 8
_COMPACT_BUCKETS: Final = 2
_SPARE_BYTES: Final = 1024
_SPARE_BYTES_A_CALL: Final = 200
"""After every `_COMPACT_TICKS`, `_COMPACT_BUCKETS` dictionaries are checked. A dictionary of n functions may have
`_SPARE_BYTES + n * _SPARE_BYTES_A_CALL` bytes. (A full dictionary has 30 to 90 bytes for each function.)"""

_tick_of: Final[Callable[[Due], int]] = operator.itemgetter(0)


class Bucket(Link):
    """A bucket: the root of a ring of nodes, and a dictionary of functions. `queued`: whether it is in the wheel's
    heap."""

    __slots__ = ("calls", "queued")

    def __init__(self) -> None:
        self.previous = self
        self.next = self
        self.calls = NO_CALLS
        self.queued = False

    def emptied(self) -> tuple[list[Node], Calls]:
        """Empty a bucket that left the heap, and return its items in the order of adding. The nodes keep their links;
        the caller must reset the links."""
        self.queued = False
        nodes: list[Node] = []
        link = self.next
        while link is not self:
            nodes.append(cast(Node, link))
            link = link.next
        self.previous = self
        self.next = self
        calls = self.calls
        self.calls = NO_CALLS
        return nodes, calls

    def nodes(self) -> list[Node]:
        """The nodes of the ring. Raises InvariantBroken if the ring does not close in both directions."""
        found: list[Node] = []
        before: Link = self
        link = self.next
        while link is not self:
            require(link.previous is before and isinstance(link, Node), "a link back is broken")
            found.append(cast(Node, link))
            before, link = link, link.next
        require(self.previous is before, "the ring does not close at its tail")
        return found


class Level:
    """A level: buckets of 2**`shift` ticks, for the ticks from `floor` up to `limit`. `rank` is 0 for the level of
    overdue ticks. `size` is a power of two in the other levels. The bucket of an integer handle has the index `handle
    >> handle_shift & mask`. `floor` is the limit of the level below. (The overdue level has no least tick; its floor is
    its limit.)"""

    __slots__ = ("buckets", "floor", "handle_shift", "limit", "mask", "rank", "shift", "size")

    def __init__(self, rank: int, shift: int, size: int, now: int, floor: int) -> None:
        self.rank = rank
        self.shift = shift
        self.handle_shift = shift + HANDLE_BITS
        self.size = size
        self.mask = size - 1
        self.floor = floor
        self.limit = ((now >> shift) + size) << shift
        self.buckets = tuple(Bucket() for _ in range(size))

    def move_to(self, now: int, floor: int) -> int:
        """Set the level's time to `now`. Returns the new limit, which is the floor of the level above."""
        self.floor = floor
        self.limit = ((now >> self.shift) + self.size) << self.shift
        return self.limit

    def due_tick(self, tick: int) -> int:
        """The tick at which the bucket of `tick` must be checked: the start of its time."""
        return tick >> self.shift << self.shift

    def check_tick(self, tick: int, bucket: Bucket, due_tick: int, now: int) -> None:
        """Check that a deadline (`tick`) is in the right bucket. The heap has the bucket at `due_tick`."""
        where = f"tick {tick} in the bucket of {due_tick}, shift {self.shift}, rank {self.rank}, now {now}"
        require(bucket is self.buckets[tick >> self.shift & self.mask], f"wrong slot: {where}")
        require(tick < self.limit, f"out of reach: {where}")
        if self.rank == 0:
            require(tick <= now, f"not overdue: {where}")
        else:
            require(self.due_tick(tick) == due_tick, f"wrong time: {where}")
            require(tick > now, f"overdue: {where}")


_Queued = tuple[int, int, Bucket]
"""A bucket in the heap: the tick at which it is due, the rank of its level, and itself. No two have the same rank and
tick, so buckets are never compared."""


class Wheel:
    """The waiting tasks, by tick. `link` adds a node, and `unlink` removes it. `put` adds a function, and `pop` removes
    it. `take_due` returns the due items. `wheel_size` is a power of two. `levels` (at least 1) is the number of levels
    at the start.

    `idle_until`: a `take_due` before this tick returns no task and moves no task.
    """

    __slots__ = ("_bits", "_compact_next", "_compact_tick", "_heap", "_last_number", "_levels", "_linked",
                 "_now_tick", "_recent", "idle_until", "wheel_size")  # fmt: skip

    def __init__(self, wheel_size: int, levels: int, now_tick: int) -> None:
        self.wheel_size = wheel_size
        self._bits = wheel_size.bit_length() - 1
        self._heap: list[_Queued] = []
        self._linked = 0
        self._last_number = 0
        self._now_tick = now_tick
        self.idle_until = now_tick
        self._compact_next = 0
        self._compact_tick = now_tick
        made = [Level(0, 0, 1, now_tick, now_tick + 1)]
        for rank in range(1, levels + 1):
            made.append(Level(rank, self._bits * (rank - 1), wheel_size, now_tick, made[-1].limit))
        self._levels: tuple[Level, ...] = tuple(made)
        self._recent = made[_FINEST]

    def link(self, node: Node) -> None:
        """Add `node`, which is in no ring. Raises TimerClosed after `clear`."""
        tick = node.tick
        level = self._recent
        if not level.floor <= tick < level.limit:
            level = self._level_of(tick)
        bucket = level.buckets[tick >> level.shift & level.mask]
        if not bucket.queued:
            self._offer(bucket, level, tick)
        last = bucket.previous
        node.previous = last
        node.next = bucket
        last.next = node
        bucket.previous = node
        self._linked += 1

    def unlink(self, node: Node) -> bool:
        """Unlink `node` from its ring. False if it is in no ring."""
        before = node.previous
        if before is NOWHERE:
            return False
        after = node.next
        before.next = after
        after.previous = before
        node.previous = NOWHERE
        node.next = NOWHERE
        self._linked -= 1
        return True

    def put(self, tick: int, callback: Callback) -> int:
        """Add a function for `tick`, and return its handle. Raises TypeError for a float, and TimerClosed after
        `clear`."""
        self._last_number = number = self._last_number + 1
        handle = tick << HANDLE_BITS | number
        self._link_call(handle, tick, callback)
        return handle

    def pop(self, handle: int) -> Callback | None:
        """Remove and return the function of `handle`, in any level. None if it does not wait."""
        for level in self._levels:
            callback = level.buckets[handle >> level.handle_shift & level.mask].calls.pop(handle, None)
            if callback is not None:
                return callback
        return None

    def put_back(self, dues: list[Due]) -> None:
        """Put back entries of `take_due` that the executor did not accept. They wait again, overdue, except cancelled
        nodes."""
        for tick, nodes, calls in dues:
            for node in nodes:
                if node.is_wanted():
                    self.link(node)
            for handle, callback in calls.items():
                self._link_call(handle, tick, callback)

    def size(self) -> int:
        """The number of waiting entries. After the first `put`, each call visits every bucket of the heap."""
        if self._last_number == 0:
            return self._linked
        return self._linked + sum(len(bucket.calls) for _, _, bucket in self._heap)

    def next_due_tick(self) -> int | None:
        """The next tick at which `take_due` can find something. None if nothing waits."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_tick: int) -> list[Due] | None:
        """Move to `now_tick` (never back), and remove the due tasks, in the order of their ticks. Returns None if no
        bucket was due, and an empty list if all tasks of the due buckets were cancelled or moved to a lower level."""
        if now_tick < self._now_tick:
            # Another thread has read the clock later, but came here earlier.
            now_tick = self._now_tick
        heap = self._heap
        if not heap or heap[0][0] > now_tick:
            self._move_clock(now_tick)
            return None
        dues: list[Due] = []
        mixed: list[tuple[list[Node], Calls]] = []
        while heap and heap[0][0] <= now_tick:
            tick, rank, bucket = heapq.heappop(heap)
            nodes, calls = bucket.emptied()
            self._linked -= len(nodes)
            # The heap returns buckets of one tick in order. Other buckets hold several ticks, so they are sorted below.
            if rank != _FINEST:
                mixed.append((nodes, calls))
            elif nodes or calls:
                dues.append((tick, nodes, calls))
        # Only now, when every due bucket is out of the heap: no other bucket needs a change for the new clock.
        self._move_clock(now_tick)
        if mixed:
            late = self._cascade(mixed, now_tick)
            if late:
                dues += late
                dues.sort(key=_tick_of)
        for _, nodes, _ in dues:
            for node in nodes:
                node.previous = NOWHERE
                node.next = NOWHERE
            # Why the test: (1) A cancels, and clears the task's entry. (2) B adds the task again, with a new node. (3)
            # B drains, and finds the old node, which A has not unlinked yet.
            nodes[:] = [node for node in nodes if node.is_wanted()]
        return dues

    def clear(self) -> list[Due]:
        """Remove all items. The wheel then refuses new items."""
        dropped: list[Due] = []
        for tick, _, bucket in self._heap:
            nodes, calls = bucket.emptied()
            for node in nodes:
                node.previous = NOWHERE
                node.next = NOWHERE
            if nodes or calls:
                dropped.append((tick, nodes, calls))
        self._heap.clear()
        self._linked = 0
        self._levels = ()
        self._recent = Level(0, 0, 1, 0, 1)
        return dropped

    def check(self) -> None:
        """Invariants: rings close, every item is in the bucket of its tick, each bucket with items is queued, the count
        is right."""
        due_ticks = [due_tick for due_tick, _, _ in self._heap]
        require(
            not due_ticks or self.idle_until <= min(due_ticks), f"idle until {self.idle_until}: {due_ticks}"
        )
        queued = {id(bucket): due_tick for due_tick, _, bucket in self._heap}
        require(len(queued) == len(due_ticks), "a bucket is in the heap twice")
        linked = 0
        for level in self._levels:
            for bucket in level.buckets:
                due_tick = queued.get(id(bucket))
                require(bucket.queued == (due_tick is not None), f"queued is {bucket.queued}, at {due_tick}")
                nodes = bucket.nodes()
                linked += len(nodes)
                ticks = [node.tick for node in nodes] + [handle >> HANDLE_BITS for handle in bucket.calls]
                for tick in ticks:
                    require(due_tick is not None, f"the heap has no bucket for tick {tick}")
                    level.check_tick(tick, bucket, due_tick or 0, self._now_tick)
        require(linked == self._linked, f"{self._linked} were counted, linked are {linked}")

    def _link_call(self, handle: int, tick: int, callback: Callback) -> None:
        """As `link`, of a function that has its handle."""
        level = self._recent
        if not level.floor <= tick < level.limit:
            level = self._level_of(tick)
        bucket = level.buckets[tick >> level.shift & level.mask]
        if bucket.calls is not NO_CALLS:
            bucket.calls[handle] = callback
            return
        if not bucket.queued:
            self._offer(bucket, level, tick)
        bucket.calls = {handle: callback}

    def _offer(self, bucket: Bucket, level: Level, tick: int) -> None:
        due_tick = level.due_tick(tick)
        heapq.heappush(self._heap, (due_tick, level.rank, bucket))
        bucket.queued = True
        if due_tick < self.idle_until:
            self.idle_until = due_tick

    def _level_of(self, tick: int) -> Level:
        """The lowest level that can hold `tick`. Creates the level if necessary. Raises TimerClosed after `clear`."""
        for level in self._levels:
            if tick < level.limit:
                if level.rank > 0:
                    self._recent = level
                return level
        if not self._levels:
            raise TimerClosed("this timer has been closed")
        made = list(self._levels)
        while tick >= made[-1].limit:
            rank = len(made)
            shift = self._bits * (rank - 1)
            made.append(Level(rank, shift, self.wheel_size, self._now_tick, made[-1].limit))
        self._levels = tuple(made)
        return made[-1]

    def _cascade(self, mixed: list[tuple[list[Node], Calls]], now_tick: int) -> list[Due]:
        """Empties buckets of several ticks: returns the due entries by tick, and moves the others to lower levels."""
        late: dict[int, Due] = {}
        for nodes, calls in mixed:
            for node in nodes:
                if node.tick > now_tick:
                    self.link(node)
                else:
                    late.setdefault(node.tick, (node.tick, [], {}))[1].append(node)
            for handle, callback in calls.items():
                tick = handle >> HANDLE_BITS
                if tick > now_tick:
                    self._link_call(handle, tick, callback)
                else:
                    late.setdefault(tick, (tick, [], {}))[2][handle] = callback
        return list(late.values())

    def _move_clock(self, now_tick: int) -> None:
        """Set the clock to `now_tick`, and set `idle_until` to at most a quarter of the lowest level after `now_tick`.

        An old clock costs time, but is not wrong: a new item may go to a higher level than necessary.
        """
        self._now_tick = now_tick
        floor = now_tick + 1
        for level in self._levels:
            floor = level.move_to(now_tick, floor)
        if self._last_number > 0 and now_tick >= self._compact_tick:
            self._compact(now_tick)
        idle_until = now_tick + (self.wheel_size >> 2) + 1
        self.idle_until = min(idle_until, self._heap[0][0]) if self._heap else idle_until

    def _compact(self, now_tick: int) -> None:
        """Copy dictionaries of which most functions were cancelled, because a dictionary does not shrink by itself.
        Each call tests only the next few dictionaries, so that no drain takes long."""
        self._compact_tick = now_tick + _COMPACT_TICKS
        for _ in range(min(_COMPACT_BUCKETS, len(self._heap))):
            self._compact_next += 1
            bucket = self._heap[self._compact_next % len(self._heap)][2]
            calls = bucket.calls
            if sys.getsizeof(calls) > _SPARE_BYTES + _SPARE_BYTES_A_CALL * len(calls):
                bucket.calls = dict(calls) if calls else NO_CALLS
