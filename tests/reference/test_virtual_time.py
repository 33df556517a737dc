"""A purgatory over a manual clock: any number of operations without a sleep or a thread."""

import random
import threading
import time

import pytest

from purgatorio import LOCKED, PENDING_FLAG, DelayedOperation, Purgatory, VirtualTime
from purgatorio.delayed.dialect import Dialect


class Quick(DelayedOperation):
    """An operation that is ready or not, and counts."""

    __slots__ = ("ready", "totals")

    def __init__(self, delay_ms: int, dialect: Dialect, totals: dict[str, int]) -> None:
        super().__init__(delay_ms, dialect=dialect)
        self.ready = False
        self.totals = totals

    def try_complete(self) -> bool:
        return self.force_complete() if self.ready else False

    def on_complete(self) -> None:
        self.totals["completed"] += 1

    def on_expiration(self) -> None:
        self.totals["expired"] += 1


def live(operations: int, dialect: Dialect) -> dict[str, int]:
    """Register them 100 a millisecond, on two keys of 500, make three of four ready before their time-out; to the end.

    Returns how many completed and expired, and what is left in lists and timer.
    """
    rng = random.Random(operations)
    totals = {"completed": 0, "expired": 0, "by_event": 0}
    world = VirtualTime()
    purgatory: Purgatory[Quick] = Purgatory("virtual", world.timer, reaper=False, shards=16)
    waiting: list[tuple[Quick, int]] = []
    for number in range(operations):
        operation = Quick(rng.randint(1, 400), dialect, totals)
        key = rng.randrange(500)
        purgatory.try_complete_else_watch(operation, [key, 500 + rng.randrange(500)])
        waiting.append((operation, key))
        if number % 4:
            ready, its_key = waiting[rng.randrange(max(0, number - 2_000), number + 1)]
            ready.ready = True
            totals["by_event"] += purgatory.check_and_complete(its_key)
        if number % 100 == 0:
            world.advance(1)
            purgatory.purge_if_needed()
        if number % 50_000 == 0:
            world.timer.check()
    world.advance(400)
    purgatory.purge_if_needed()
    world.timer.check()
    purgatory.check()
    return {**totals, "delayed": purgatory.num_delayed(), "watched": purgatory.watched()}


@pytest.mark.parametrize("dialect", [PENDING_FLAG, LOCKED], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("operations", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_million_operations_without_a_sleep_or_a_thread(
    operations: int, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operation completes once, by an event or by its time-out; the garbage is bounded; no thread, no sleep."""
    before = set(threading.enumerate())
    sleep, me = time.sleep, threading.current_thread()  # a thread of another test's JVM may sleep meanwhile
    monkeypatch.setattr(
        time,
        "sleep",
        lambda seconds: pytest.fail("slept") if threading.current_thread() is me else sleep(seconds),
    )
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("started a thread"))
    totals = live(operations, dialect)
    assert totals["completed"] == operations
    assert totals["expired"] + totals["by_event"] == operations
    assert min(totals["expired"], totals["by_event"]) > operations // 10
    assert totals["delayed"] == 0
    assert totals["watched"] <= 2 * 1000
    assert not set(threading.enumerate()) - before, "others may end meanwhile"
