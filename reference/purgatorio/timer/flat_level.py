"""One level of a flat wheel: its buckets, and how far it reaches.

All numbers are ticks of the timer. A level of shift s has buckets of 2**s ticks; tick t belongs to its number
t >> s, and that to the bucket number mod size. With `now` the tick that the timer stands at, the level takes

    t with (t >> s) - (now >> s) < size,   which is   t < limit = ((now >> s) + size) << s

and the lowest such level takes it. This is `purgatorio.arithmetic.is_within_level`, with the level's clock floored
to its own tick: of two ticks that may be in one level at a time, none share a bucket.

Below them all is the level of what is overdue: one bucket, for every t < limit = now + 1.

Whoever calls a method here holds the timer's lock.
"""

from collections.abc import Callable
from typing import Final, cast

from purgatorio.invariant import require
from purgatorio.timer.flat_task import FlatEntry, Link

__all__ = ["NUMBER_BITS", "Bucket", "Callback", "Calls", "Level"]

Callback = Callable[[], object]

NUMBER_BITS: Final = 60
"""A function that waits under a number has `tick << NUMBER_BITS | n`, with n counted up by its timer: no number comes
twice (five million a second last for seven thousand years), and it says where to look. Two digits of a Python integer,
so that the shifts stay cheap; and a dictionary hashes consecutive n to consecutive places."""

Calls = dict[int, Callback]
"""Functions by their numbers."""


class Bucket(Link):
    """The root of a ring of tasks, and what waits under numbers. `queued`: whether the timer's heap has it.

    `calls` is None from one emptying to the next function: an empty dictionary weighs more than an empty ring.
    """

    __slots__ = ("calls", "queued")

    def __init__(self) -> None:
        self._before = self
        self._after = self
        self.calls: Calls | None = None
        self.queued = False

    def taken_calls(self) -> Calls | None:
        """Take all functions out, in the order of their adding."""
        calls = self.calls
        self.calls = None
        return calls

    def emptied(self) -> list[FlatEntry]:
        """The heap has it no more: take all tasks out, in the order of their adding. Their links are left to the
        caller."""
        self.queued = False
        tasks: list[FlatEntry] = []
        link = self._after
        while link is not self:
            tasks.append(cast(FlatEntry, link))
            link = link._after
        self._before = self
        self._after = self
        return tasks

    def tasks(self) -> list[FlatEntry]:
        """Those in the ring; InvariantBroken where it does not close both ways."""
        found: list[FlatEntry] = []
        before: Link = self
        link = self._after
        while link is not self:
            require(link._before is before and isinstance(link, FlatEntry), "a link back is broken")
            found.append(cast(FlatEntry, link))
            before, link = link, link._after
        require(self._before is before, "the ring does not close at its tail")
        return found


class Level:
    """See the module. `rank` counts from 0, the overdue one; `size`, of the others, is a power of two. `shift` is for
    ticks, `number_shift` for the numbers of functions.

    `floor` is the limit of the level below: ticks from there up to `limit` belong here. (Those of the overdue level
    have no least one; its floor is its limit.)
    """

    __slots__ = ("buckets", "floor", "limit", "mask", "number_shift", "rank", "shift", "size")

    def __init__(self, rank: int, shift: int, size: int, now: int, floor: int) -> None:
        self.rank = rank
        self.shift = shift
        self.number_shift = shift + NUMBER_BITS
        self.size = size
        self.mask = size - 1
        self.floor = floor
        self.limit = ((now >> shift) + size) << shift
        self.buckets = tuple(Bucket() for _ in range(size))

    def move_to(self, now: int, floor: int) -> int:
        """The timer stands at `now`; returns the new limit, which is the floor of the level above."""
        self.floor = floor
        self.limit = ((now >> self.shift) + self.size) << self.shift
        return self.limit

    def due_tick(self, tick: int) -> int:
        """When the bucket of `tick` must be looked at: the start of its time."""
        return tick >> self.shift << self.shift

    def check_tick(self, tick: int, bucket: Bucket, due_tick: int, now: int) -> None:
        """Invariants of one deadline in one bucket, which the heap has at `due_tick`."""
        where = f"tick {tick} in the bucket of {due_tick}, shift {self.shift}, rank {self.rank}, now {now}"
        require(bucket is self.buckets[tick >> self.shift & self.mask], f"wrong slot: {where}")
        require(tick < self.limit, f"out of reach: {where}")
        if self.rank == 0:
            require(tick <= now, f"not overdue: {where}")
        else:
            require(self.due_tick(tick) == due_tick, f"wrong time: {where}")
            require(tick > now, f"overdue: {where}")
