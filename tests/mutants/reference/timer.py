"""Bugs of the timers: buckets, levels, the delay queue, the single wheel, the reaper."""

import heapq
from typing import Any, Final

from mutants.reference.mutant import Mutant, known, told
from purgatorio import HashedWheel, SystemTimer
from purgatorio.timer import delay_queue, hashed_wheel, system_timer, wheel
from purgatorio.timer.bucket import TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.wheel import TimingWheel
from purgatorio_stress.mutant.patch import Patch, edited

_NEXT_WAKE: Final[dict[int, int]] = {}
"""What each queue has published as its next wake-up; by queue, for one run."""


def _await_publishing_late(self: DelayQueue[Any], timeout_ms: int) -> bool:
    """The wake-up time is published after the lock is released; offers compare with what is published."""
    end_ms = self._clock.now_ms() + max(timeout_ms, 0)
    while True:
        with self._lock:
            now_ms = self._clock.now_ms()
            due = self._has_due(now_ms)
            if due or now_ms >= end_ms:
                return due
            wait_ms = self._wait_ms(now_ms, end_ms)
        with self._lock:
            _NEXT_WAKE[id(self)] = now_ms + wait_ms
            in_time = self._available.wait(wait_ms)
            _NEXT_WAKE.pop(id(self), None)
            if not in_time and now_ms + wait_ms >= end_ms:
                return self._has_due(self._clock.now_ms())


def _offer_comparing_published(self: DelayQueue[Any], item: Any) -> None:
    with self._lock:
        heapq.heappush(self._heap.mutate(), item)
        if item.expiration_ms() < _NEXT_WAKE.get(id(self), -(1 << 70)):
            self._available.notify_all()


_OFFERED: Final[list[TimerTaskList]] = []


def _only_the_first_time(self: TimerTaskList, expiration_ms: int) -> bool:
    self._expiration_ms.set(expiration_ms)
    if any(bucket is self for bucket in _OFFERED):
        return False
    _OFFERED.append(self)
    return True


def _one(number: int, scenario: str, *patches: Patch, interleaving: bool = False) -> Mutant:
    return known(number, scenario, *patches, interleaving=interleaving, memory=(_OFFERED, _NEXT_WAKE))


_ADD_UNSEEN: Final = edited(
    TimingWheel, "add", "entry.cancelled() or is_", "is_", "if entry.cancelled()", "if False"
)
_WALK: Final = "drawn:system:1.2.0.0:0::walk.20:"
_HASHED_WALK: Final = "drawn:hashed:1.3.0.0:0::walk.30:"
"""Drained tick after tick, with a task for every end of a level."""
_LET_GO: Final = "self._lock.release(); self._lock.acquire()"

TIMER_MUTANTS: Final = (
    *told("timer"),
    _one(51, "cancel-against-flush", _ADD_UNSEEN,
         edited(SystemTimer, "_add_entry", " or entry.cancelled()", ""), interleaving=True),
    _one(52, "cancel-against-add", _ADD_UNSEEN, interleaving=True),
    _one(60, "earlier-against-sleep", Patch(DelayQueue, "await_due", _await_publishing_late),
         Patch(DelayQueue, "offer", _offer_comparing_published), interleaving=True),
    _one(61, _WALK, Patch(TimerTaskList, "set_expiration", _only_the_first_time)),
    _one(65, _WALK,
         Patch(wheel, "is_expired", lambda deadline, clock, tick: deadline <= clock + tick)),
    _one(66, _WALK,
         Patch(wheel, "is_within_level", lambda deadline, clock, interval: deadline <= clock + interval)),
    _one(72, _HASHED_WALK,
         Patch(hashed_wheel, "rounds_left", lambda deadline_tick, cursor_tick, size: deadline_tick // size)),
    _one(74, _HASHED_WALK, edited(
         HashedWheel, "_visit", "return ", "for entry in list(self._slots[tick % self.wheel_size].get()):\n"
         "        if entry.rounds.get():\n            self._take(entry)\n    return ")),
    _one(76, _HASHED_WALK, Patch(hashed_wheel, "rounds_left", lambda deadline_tick, cursor_tick, size: 0)),
    # The wall clock, set back by an hour.
    _one(79, "earlier-against-sleep",
         Patch(delay_queue, "wait_time", lambda expiration, now: max(expiration - now, 0) * 1000)),
    _one(80, "earlier-against-sleep",
         Patch(delay_queue, "wait_time", lambda expiration, now: max(expiration - now, 0) // 10 * 10)),
    _one(94, "drawn:system:1.2.1.0:0:add.0:step.1:run.0=close",
         edited(system_timer, "close_executor", "executor.is_current() or ", "")),
)  # fmt: skip
"""By number."""
