"""Known bugs of timers, put into the reference in memory: the numbers are those of the project's list of bugs.

Each is the smallest change that brings a real bug back and shows without a second thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest.mock import patch

from purgatorio import TimerTask
from purgatorio.sync import AtomicRef
from purgatorio.timer import bucket, hashed_wheel, heap_timer, system_timer, wheel
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.hashed_entry import HashedEntry

__all__ = ["INTERVAL_INCLUSIVE", "TIMER_MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """A bug: where to put it, what to put there, and the timer that it is a bug of."""

    number: int
    name: str
    timer: str
    target: object
    attribute: str
    wrong: Callable[..., object]

    def planted(self) -> AbstractContextManager[object]:
        """A context in which the reference has the bug."""
        return patch.object(self.target, self.attribute, self.wrong)

    def __str__(self) -> str:
        return f"{self.number}-{self.name}-{self.timer}"


def _expired_one_late(deadline: int, clock: int, tick: int) -> bool:
    return deadline <= clock + tick


def _within_inclusive(deadline: int, clock: int, interval: int) -> bool:
    return deadline <= clock + interval


def _flush_keeps_next(self: TimerTaskList, reinsert: Callable[[TimerTaskEntry], None]) -> None:
    """#56: looks for the next entry after unlinking, finds none, and believes that it is done."""
    with self._lock:
        entries = self.entries()
        for entry in entries:
            self.remove(entry)
        if entries:
            reinsert(entries[0])
        self._expiration_ms.set(None)


def _offered_once(self: TimerTaskList, expiration_ms: int) -> bool:
    """#61: a bucket is offered only the first time."""
    before = self._expiration_ms.get_and_set(expiration_ms)
    offered = id(self) in _offered
    _offered[id(self)] = self
    return before != expiration_ms and not offered


_offered: dict[int, TimerTaskList] = {}
"""Keeps the buckets, so that no id comes twice."""


def _advance_this_level_only(self: wheel.TimingWheel, time_ms: int) -> None:
    """#63: the level above stands still."""
    if time_ms >= self._clock_ms.get() + self.tick_ms:
        self._clock_ms.set(time_ms - time_ms % self.tick_ms)


def _fire_on_flush(self: system_timer.SystemTimer, timeout_ms: int) -> bool:
    """#64: what is in a due bucket runs, of whatever level."""
    due = self._queue.poll(timeout_ms)
    if due is None:
        return False
    while due is not None:
        self._wheel.advance_clock(due.expiration_ms())
        due.flush(
            lambda entry: (
                None
                if entry.cancelled()
                else self._executor.submit(system_timer.contained(entry.task, self._faults))
            )
        )
        due = self._queue.poll(0)
    return True


def _advance_to_now(self: system_timer.SystemTimer, timeout_ms: int) -> bool:
    """#67: the wheel's clock goes to now, not to the bucket that is due; others are overtaken."""
    due = self._queue.poll(timeout_ms)
    if due is None:
        return False
    self._wheel.advance_clock(self._clock.now_ms())
    due.flush(self._add_entry)
    return True


def _relative_slot(self: wheel.TimingWheel, entry: TimerTaskEntry) -> bool:
    """#69: the slot counts from the clock, not from zero; two ticks share one."""
    deadline_ms, clock_ms = entry.expiration_ms, self._clock_ms.get()
    if entry.cancelled() or deadline_ms < clock_ms + self.tick_ms:
        return False
    if deadline_ms >= clock_ms + self.interval_ms:
        return self._overflow_wheel().add(entry)
    into = self._buckets[(deadline_ms - clock_ms) // self.tick_ms % self.wheel_size]
    into.add(entry)
    if into.set_expiration(deadline_ms - deadline_ms % self.tick_ms):
        self._queue.offer(into)
    return True


def _deadline_from_cursor(self: system_timer.SystemTimer, task: TimerTask) -> None:
    """#70: counts the delay from the wheel's lagging clock."""
    self._add_entry(TimerTaskEntry(task, task.delay_ms + self._wheel.clock_ms(), self._sync))


def _wrapped_deadline(self: system_timer.SystemTimer, task: TimerTask) -> None:
    """#81: 64 bits."""
    deadline_ms = (task.delay_ms + self._clock.now_ms() + (1 << 63)) % (1 << 64) - (1 << 63)
    self._add_entry(TimerTaskEntry(task, deadline_ms, self._sync))


def _cancel_flag_only(self: TimerTask) -> None:
    """#83: does not unlink."""
    pointer: AtomicRef[object] = self._entry  # type: ignore[assignment] # the mutant clears whatever is there
    pointer.set(None)


def _double_decrement(self: TimerTaskEntry) -> None:
    """#84: counted off by the unlinking and by the cancel."""
    inside = self.bucket.get()
    if inside is not None:
        inside.remove(self)
        inside._task_counter.add(-1)


def _no_move(self: TimerTask, entry: TimerTaskEntry) -> None:
    """The old entry stays linked when a task is added again."""
    self._entry.set(entry)


def _rounds_from_zero(deadline_tick: int, cursor_tick: int, size: int) -> int:
    return deadline_tick // size


def _rounds_off_by_one(deadline_tick: int, cursor_tick: int, size: int) -> int:
    return (deadline_tick - cursor_tick) // size


def _stop_at_first(self: hashed_wheel.HashedWheel, tick: int) -> int:
    """#73: the scan of a slot ends at the first that is not due."""
    self._cursor.set(tick)
    due: list[HashedEntry] = []
    for entry in list(self._slots[tick % self.wheel_size].get()):
        if entry.rounds.get() > 0:
            entry.rounds.set(entry.rounds.get() - 1)
            break
        due.append(entry)
    return self._fire_all(due)


def _drop_early_visited(self: hashed_wheel.HashedWheel, tick: int) -> int:
    """#74: takes a task out, then looks whether its round has come."""
    self._cursor.set(tick)
    fired = 0
    for entry in list(self._slots[tick % self.wheel_size].get()):
        self._take(entry)
        if entry.rounds.get() == 0:
            self._fire(entry)
            fired += 1
    return fired


def _clamped_rounds(deadline_tick: int, cursor_tick: int, size: int) -> int:
    """#76: beyond its capacity (here 4 revolutions) it fires at the end of the capacity."""
    return min((deadline_tick - cursor_tick - 1) // size, 3)


def _ticks_for_ms(time_ms: int, tick_ms: int) -> int:
    """#79: takes milliseconds for ticks."""
    return time_ms


_LIST, _SYSTEM, _HASHED = TimerTaskList, system_timer.SystemTimer, hashed_wheel.HashedWheel

INTERVAL_INCLUSIVE = Mutant(
    66, "interval-inclusive", "SystemTimer", wheel, "is_within_level", _within_inclusive
)
TIMER_MUTANTS = (
    Mutant(52, "insert-after-cancel", "SystemTimer", TimerTask, "set_entry", _no_move),
    Mutant(56, "flush-next-after-unlink", "SystemTimer", _LIST, "flush", _flush_keeps_next),
    Mutant(61, "no-reoffer-on-reuse", "SystemTimer", _LIST, "set_expiration", _offered_once),
    Mutant(
        63, "no-overflow-advance", "SystemTimer", wheel.TimingWheel, "advance_clock", _advance_this_level_only
    ),
    Mutant(64, "fire-on-flush", "SystemTimer", _SYSTEM, "advance_clock", _fire_on_flush),
    Mutant(65, "off-by-one-current-tick", "SystemTimer", wheel, "is_expired", _expired_one_late),
    Mutant(67, "advance-to-now", "SystemTimer", _SYSTEM, "advance_clock", _advance_to_now),
    Mutant(69, "relative-slot", "SystemTimer", wheel.TimingWheel, "add", _relative_slot),
    Mutant(70, "relative-deadline-from-cursor", "SystemTimer", _SYSTEM, "add", _deadline_from_cursor),
    Mutant(81, "deadline-overflow", "SystemTimer", _SYSTEM, "add", _wrapped_deadline),
    Mutant(83, "cancel-flag-only", "SystemTimer", TimerTask, "cancel", _cancel_flag_only),
    Mutant(83, "cancel-flag-only", "HeapTimer", TimerTask, "cancel", _cancel_flag_only),
    Mutant(83, "cancel-flag-only", "HashedWheel", TimerTask, "cancel", _cancel_flag_only),
    Mutant(84, "cancel-double-decrement", "SystemTimer", bucket.TimerTaskEntry, "remove", _double_decrement),
    Mutant(72, "rounds-from-absolute-tick", "HashedWheel", hashed_wheel, "rounds_left", _rounds_from_zero),
    Mutant(72, "rounds-off-by-one", "HashedWheel", hashed_wheel, "rounds_left", _rounds_off_by_one),
    Mutant(73, "stop-scan-at-first-not-due", "HashedWheel", _HASHED, "_visit", _stop_at_first),
    Mutant(74, "early-visited-dropped", "HashedWheel", _HASHED, "_visit", _drop_early_visited),
    Mutant(76, "beyond-capacity-clamp", "HashedWheel", hashed_wheel, "rounds_left", _clamped_rounds),
    Mutant(79, "unit-mix", "HashedWheel", hashed_wheel, "virtual_id", _ticks_for_ms),
    Mutant(
        79,
        "unit-mix",
        "HeapTimer",
        heap_timer,
        "bucket_expiration",
        lambda time_ms, tick_ms: time_ms // tick_ms,
    ),
)
"""The sequential ones of the list that this code base has a place for."""
