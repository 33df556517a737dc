"""The memory of a purgatory: a million operations pending at once, 99 % of them completed by events.

Each operation waits under a key of its own and under one of many shared ones, for 30 s. Over the first 4 s 99 of 100
get the event on their own key, so that their entries under the shared key stay behind as garbage; every 200 ms the
timer is drained and the purge given its chance, as a reaper does. At 30 s the rest expires. Time is virtual, the
code is the reference's own.

What is measured: allocated blocks (`sys.getallocatedblocks`: exact, and back at the start if nothing is kept) and the
resident memory (`/proc/self/statm`, where there is one; an allocator need not give everything back); the garbage
right after each turn, to be at most the purge interval, in operations; tasks left in the timer; CPU time per call.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purgatorio import PENDING_FLAG, DelayedOperation, Purgatory, VirtualTime
from purgatorio.delayed.dialect import Dialect
from purgatorio.delayed.purgatory import DEFAULT_PURGE_INTERVAL

TIMEOUT_MS: Final = 30_000
_EVENTS_UNTIL_MS: Final = 4_000
_TURN_MS: Final = 200
_SHARED_KEYS: Final = 10_000
_BLOCKS_EACH: Final = 30
"""More than an operation with its entry, two keys and two lists takes (about 21)."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Memory:
    """One look: allocated blocks of the interpreter, resident bytes (0 where the system does not tell)."""

    blocks: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class PurgatoryBench:
    """What a run came to. Times are CPU nanoseconds a call; garbage is in operations; the rest are counts."""

    operations: int
    by_event: int
    expired: int
    start: Memory
    pending: Memory
    end: Memory
    most_garbage: int
    purge_interval: int
    watched_at_end: int
    delayed_at_end: int
    register_ns: float
    event_ns: float
    expire_ns: float

    @property
    def kept_blocks(self) -> int:
        """Blocks that are still allocated at the end and were not at the start: those of the garbage."""
        return self.end.blocks - self.start.blocks

    @property
    def passed(self) -> bool:
        """All completed, no timer left, garbage within the interval, and nothing kept but that garbage."""
        return (
            self.by_event + self.expired == self.operations
            and self.delayed_at_end == 0
            and self.most_garbage <= self.purge_interval
            and self.watched_at_end <= 2 * self.purge_interval
            and self.kept_blocks <= _BLOCKS_EACH * self.purge_interval
        )

    def results(self) -> list[dict[str, object]]:
        """Rows for the field `results` of `python -m benchmarks NAME --json`."""
        return [
            {
                "bench": "purgatory",
                "workload": "pending-99-percent-events",
                "size": self.operations,
                "subject": "faithful",
                "operation": operation,
                "ns": round(ns, 1),
                "ratio": {},
            }
            for operation, ns in (
                ("request", self.register_ns),
                ("event", self.event_ns),
                ("expire", self.expire_ns),
            )
        ]

    def memory(self) -> dict[str, object]:
        """The memory experiment, for `--json`."""
        return {
            "operations": self.operations,
            "by_event": self.by_event,
            "expired": self.expired,
            "blocks": [self.start.blocks, self.pending.blocks, self.end.blocks],
            "resident_bytes": [memory.resident_bytes for memory in (self.start, self.pending, self.end)],
            "bytes_per_pending": self._bytes_per_pending(),
            "most_garbage": self.most_garbage,
            "purge_interval": self.purge_interval,
            "watched_at_end": self.watched_at_end,
            "delayed_at_end": self.delayed_at_end,
            "passed": self.passed,
        }

    def text(self) -> str:
        """The experiment for people."""
        looks = (("start", self.start), ("all pending", self.pending), ("end", self.end))
        lines = [
            f"{self.operations:,} operations pending at once, time-out {TIMEOUT_MS // 1000} s: "
            f"{self.by_event:,} completed by events, {self.expired:,} expired",
            *(
                f"  {name:<12}{memory.blocks:>12,} blocks {memory.resident_bytes / 2**20:>8,.0f} MiB resident"
                for name, memory in looks
            ),
            f"  a pending operation takes {self._bytes_per_pending():,} bytes; kept at the end: "
            f"{self.kept_blocks:,} blocks",
            f"  garbage after a turn: {self.most_garbage:,} operations at most (purge interval "
            f"{self.purge_interval:,}); at the end {self.watched_at_end:,} entries watched, "
            f"{self.delayed_at_end:,} tasks in the timer",
            f"  register {self.register_ns / 1000:.1f} us, event {self.event_ns / 1000:.1f} us, "
            f"expire {self.expire_ns / 1000:.1f} us of CPU a call",
            f"  {'memory came back' if self.passed else 'NOT as promised'}",
        ]
        return "\n".join(lines)

    def _bytes_per_pending(self) -> int:
        return max(0, self.pending.resident_bytes - self.start.resident_bytes) // self.operations


class _Pending(DelayedOperation):
    """An operation that is completed by the event on its own key."""

    __slots__ = ("_world", "number")

    def __init__(self, world: "_World", number: int, dialect: Dialect) -> None:
        super().__init__(TIMEOUT_MS, dialect=dialect)
        self._world = world
        self.number = number

    def try_complete(self) -> bool:
        return self.force_complete() if self._world.ready == self.number else False

    def on_complete(self) -> None:
        return None

    def on_expiration(self) -> None:
        self._world.expired += 1


class _World:
    """The parts, and the counts; one thread, so plain attributes will do."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.time = VirtualTime()
        self.purgatory: Purgatory[_Pending] = Purgatory("bench", self.time.timer, reaper=False)
        self.ready = -1
        self.by_event = 0
        self.expired = 0
        self.most_garbage = 0

    def turn(self, live: int) -> None:
        """A reaper's turn: 200 ms pass, what is due expires, garbage is purged; then count what is left of it."""
        self.time.advance(_TURN_MS)
        self.purgatory.purge_if_needed()
        self.most_garbage = max(self.most_garbage, self.purgatory.watched() - 2 * live)


def bench_purgatory(
    operations: int = 1_000_000, dialect: Dialect = PENDING_FLAG, progress: Progress | None = None
) -> PurgatoryBench:
    """Run it; a million operations take about a minute and a half and 1.5 GiB. ValueError below 1,000 operations."""
    if operations < 1_000:
        raise ValueError(f"at least 1,000 operations, not {operations}")
    tell = progress or _silent
    world = _World(dialect)
    # Once with a few, so that what is made on first use (levels of the wheel, for one) is not counted as kept.
    _register(world, -_SHARED_KEYS - 1, -1, _silent)
    world.time.advance(TIMEOUT_MS)
    world.purgatory.purge_if_needed()
    for key in range(_SHARED_KEYS):
        world.purgatory.check_and_complete(("shared", key))
    world.expired = 0
    start = _look()
    register_ns = _register(world, 0, operations, tell)
    pending = _look()
    event_ns = _events(world, operations, tell)
    before_ns = time.thread_time_ns()
    left = operations - world.by_event
    world.time.advance(TIMEOUT_MS)
    expire_ns = (time.thread_time_ns() - before_ns) / left
    world.purgatory.purge_if_needed()
    watched, delayed = world.purgatory.watched(), world.purgatory.num_delayed()
    return PurgatoryBench(
        operations,
        world.by_event,
        world.expired,
        start,
        pending,
        _look(),
        world.most_garbage,
        DEFAULT_PURGE_INTERVAL,
        watched,
        delayed,
        register_ns,
        event_ns,
        expire_ns,
    )


def _register(world: _World, first: int, end: int, tell: Progress) -> float:
    """Register operations `first` up to `end`; nanoseconds a call."""
    before_ns = time.thread_time_ns()
    for number in range(first, end):
        keys = (("own", number), ("shared", number % _SHARED_KEYS))
        world.purgatory.try_complete_else_watch(_Pending(world, number, world.dialect), keys)
        if number % 50_000 == 0:
            tell("register", number, end)
    return (time.thread_time_ns() - before_ns) / (end - first)


def _events(world: _World, operations: int, tell: Progress) -> float:
    """99 of 100 operations get their event, spread over turns of 200 ms; nanoseconds an event, purges left out."""
    turns = _EVENTS_UNTIL_MS // _TURN_MS
    spent_ns = 0
    for turn in range(turns):
        before_ns = time.thread_time_ns()
        for number in range(operations * turn // turns, operations * (turn + 1) // turns):
            if number % 100:
                world.ready = number
                world.by_event += world.purgatory.check_and_complete(("own", number))
        spent_ns += time.thread_time_ns() - before_ns
        world.ready = -1
        world.turn(operations - world.by_event)
        tell("event", turn, turns)
    return spent_ns / max(1, world.by_event)


def _look() -> Memory:
    gc.collect()
    return Memory(sys.getallocatedblocks(), _resident_bytes())


def _resident_bytes() -> int:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _silent(what: str, done: int, planned: int) -> None:
    """No progress is wanted."""


if __name__ == "__main__":
    print(bench_purgatory(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000).text())
