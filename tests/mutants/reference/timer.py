"""Bugs of the timers: buckets, levels, the delay queue, the single wheel, the reaper."""

import heapq
from typing import Any, Final

from mutants.reference.mutant import known, told
from purgatorio.timer.bucket import TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio_stress.mutant.patch import Patch

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


TIMER_MUTANTS: Final = (
    *told("timer"),
    known(60, "earlier-against-sleep", Patch(DelayQueue, "await_due", _await_publishing_late),
          Patch(DelayQueue, "offer", _offer_comparing_published), interleaving=True, memory=(_NEXT_WAKE,)),
    known(61, "drawn:system:1.2.0.0:0::walk.20:",
          Patch(TimerTaskList, "set_expiration", _only_the_first_time), memory=(_OFFERED,)),
)  # fmt: skip
"""By number."""
