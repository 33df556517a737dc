"""The memory of a purgatory: many operations pending at once, 99 % of them completed by events, the rest expires.

Each operation waits under a key of its own and under one of many shared ones, for 30 s. Over the first 4 s 99 of 100
get the event on their own key, so that their entries under the shared key stay behind as garbage; every 200 ms the
timer is drained and the purge given its chance, as a reaper does. Time is virtual.
"""

import gc
import sys
from typing import Final

import pytest

from purgatorio import DelayedOperation, Purgatory, VirtualTime
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.delayed.purgatory import DEFAULT_PURGE_INTERVAL

OPERATIONS: Final = 2_500
_TIMEOUT_MS: Final = 30_000
_TURN_MS: Final = 200
_TURNS: Final = 20
_SHARED_KEYS: Final = 10_000
_BLOCKS_EACH: Final = 30
"""More than an operation with its entry, two keys and two lists takes (about 21)."""


class _World:
    """The parts, and the counts; one thread, so plain attributes will do."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.purgatory: Purgatory[_Pending] = Purgatory("memory", self.time.timer, reaper=False)
        self.ready = -1
        self.by_event = 0
        self.expired = 0
        self.most_garbage = 0

    def register(self, first: int, end: int) -> None:
        for number in range(first, end):
            keys = (("own", number), ("shared", number % _SHARED_KEYS))
            self.purgatory.try_complete_else_watch(_Pending(self, number), keys)

    def events(self, first: int, end: int) -> None:
        """99 of 100 operations get their event; after 200 ms and a purge, the remaining garbage is counted."""
        for number in range(first, end):
            if number % 100:
                self.ready = number
                self.by_event += self.purgatory.check_and_complete(("own", number))
        self.ready = -1
        self.time.advance(_TURN_MS)
        self.purgatory.purge_if_needed()
        live = OPERATIONS - self.by_event
        self.most_garbage = max(self.most_garbage, self.purgatory.watched() - 2 * live)


class _Pending(DelayedOperation):
    """An operation that is completed by the event on its own key."""

    __slots__ = ("_number", "_world")

    def __init__(self, world: _World, number: int) -> None:
        super().__init__(_TIMEOUT_MS)
        self._world = world
        self._number = number

    def try_complete(self) -> bool:
        return self.force_complete() if self._world.ready == self._number else False

    def on_complete(self) -> None:
        return None

    def on_expiration(self) -> None:
        self._world.expired += 1


def _blocks() -> int:
    """The blocks that the interpreter has allocated: exact, and the same as at the start if nothing is kept."""
    gc.collect()
    return sys.getallocatedblocks()


def _played() -> tuple[_World, int, int, int]:
    """The world at its end, and the blocks at the start, with all pending, and at the end."""
    world = _World()
    # Once with a few, so that what is made on first use (levels of the wheel, for one) is not counted as kept.
    world.register(-_SHARED_KEYS - 1, -1)
    world.time.advance(_TIMEOUT_MS)
    world.purgatory.purge_if_needed()
    for key in range(_SHARED_KEYS):
        world.purgatory.check_and_complete(("shared", key))
    world.expired = 0
    start = _blocks()
    world.register(0, OPERATIONS)
    pending = _blocks()
    for turn in range(_TURNS):
        world.events(OPERATIONS * turn // _TURNS, OPERATIONS * (turn + 1) // _TURNS)
    world.time.advance(_TIMEOUT_MS)
    world.purgatory.purge_if_needed()
    return world, start, pending, _blocks()


def test_memory_comes_back() -> None:
    """Nothing but the garbage that the purge interval allows is kept, and no timer."""
    world, start, pending, end = _played()
    assert (world.by_event, world.expired) == (2_475, 25)
    assert pending > start + 15 * OPERATIONS
    assert world.purgatory.num_delayed() == 0
    assert world.most_garbage <= DEFAULT_PURGE_INTERVAL
    assert world.purgatory.watched() <= 2 * DEFAULT_PURGE_INTERVAL
    assert end - start <= _BLOCKS_EACH * DEFAULT_PURGE_INTERVAL


def test_timers_left_behind_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (KAFKA-16663): without the cancel, operations stay in the timer, and so the purge never starts."""

    def without_cancel(self: PendingFlag, operation: DelayedOperation) -> bool:
        if not operation.completed.compare_and_set(False, True):
            return False
        operation.call_on_complete()
        return True

    monkeypatch.setattr(PendingFlag, "force_complete", without_cancel)
    world, _, _, _ = _played()
    assert world.most_garbage > DEFAULT_PURGE_INTERVAL
