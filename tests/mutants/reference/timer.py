"""Bugs of the timers: buckets, levels, the delay queue, the single wheel, the reaper."""

import heapq
from typing import Any, Final

from mutants.reference.mutant import Mutant, known
from purgatorio import HashedWheel, SystemTimer, TimerTask
from purgatorio.reaper import Reaper
from purgatorio.timer import delay_queue, hand_over, hashed_wheel, system_timer, wheel
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
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
    _one(34, "drawn:reaper:5:0::wake:turn.0=raise",
         edited(Reaper, "_turn", 'self._faults.caught(error, "turn", self._name)', "raise"),
         edited(hand_over._Run, "run", 'self._faults.caught(error, "run", self._task)', "raise")),
    _one(49, "remove-against-move", edited(TimerTaskList, "remove", "is self", "is not None"),
         interleaving=True),
    _one(51, "cancel-against-flush", _ADD_UNSEEN,
         edited(SystemTimer, "_add_entry", " or entry.cancelled()", ""), interleaving=True),
    _one(52, "cancel-against-add", _ADD_UNSEEN, interleaving=True),
    _one(53, "overflow-twice", edited(TimingWheel, "_overflow_wheel", "with self._lock", "if True",
         "    overflow = self._overflow.get()\n        if overflow", "    if overflow"), interleaving=True),
    _one(55, "add-against-flush",
         edited(TimerTaskList, "flush", "        self._expiration_ms.set", "    self._expiration_ms.set"),
         interleaving=True),
    _one(56, _WALK, edited(
         TimerTaskList, "flush", "reinsert(head)\n            head = self._head()",
         "reinsert(head)\n            after = head.next.get()\n"
         "            head = after if isinstance(after, TimerTaskEntry) else None")),
    _one(57, _WALK, edited(TimerTaskList, "__init__", "sync.rlock(", "sync.lock(")),
    _one(58, "add-against-sleep", edited(
         DelayQueue, "await_due", "_wait_ms(now_ms, end_ms)", f"_wait_ms(now_ms, end_ms); {_LET_GO}"),
         interleaving=True),
    _one(60, "earlier-against-sleep", Patch(DelayQueue, "await_due", _await_publishing_late),
         Patch(DelayQueue, "offer", _offer_comparing_published), interleaving=True),
    _one(61, _WALK, Patch(TimerTaskList, "set_expiration", _only_the_first_time)),
    _one(63, _WALK, edited(TimingWheel, "advance_clock", "overflow is not None", "False")),
    _one(64, _WALK, edited(
         SystemTimer, "advance_clock", "self._add_entry(entry)",
         "None\n        if not entry.cancelled():\n"
         "            hand_over(entry.task, self._executor, self._faults, self._sync)")),
    _one(65, _WALK,
         Patch(wheel, "is_expired", lambda deadline, clock, tick: deadline <= clock + tick)),
    _one(66, _WALK,
         Patch(wheel, "is_within_level", lambda deadline, clock, interval: deadline <= clock + interval)),
    _one(67, "drawn:system:1.4.1.0:3::close,walk.5:",
         edited(SystemTimer, "advance_clock", "bucket.expiration_ms()", "self._clock.now_ms()")),
    _one(69, _WALK,
         edited(TimingWheel, "add", "bucket_index(deadline_ms", "bucket_index(deadline_ms - clock_ms")),
    _one(70, "drawn:system:3.2.0.0:4::pass.2,add.0,pass.1,drain.0,run:",
         edited(SystemTimer, "add", "self._clock.now_ms()", "self._wheel.clock_ms()")),
    _one(72, _HASHED_WALK,
         Patch(hashed_wheel, "rounds_left", lambda deadline_tick, cursor_tick, size: deadline_tick // size)),
    _one(73, _HASHED_WALK, edited(hashed_wheel, "_counted_off", "rounds - visits)", "rounds - visits); break")),
    _one(74, _HASHED_WALK, edited(
         HashedWheel, "_visit", "return ", "for entry in list(self._slots[tick % self.wheel_size].get()):\n"
         "        if entry.rounds.get():\n            self._take(entry)\n    return ")),
    _one(76, _HASHED_WALK, Patch(hashed_wheel, "rounds_left", lambda deadline_tick, cursor_tick, size: 0)),
    # The wall clock, set back by an hour.
    _one(78, _WALK, edited(
         DelayQueue, "__init__", "= clock",
         '= type("SteppedBack", (), {"now_ms": lambda _: clock.now_ms() - 3_600_000})()')),
    _one(79, "earlier-against-sleep",
         Patch(delay_queue, "wait_time", lambda expiration, now: max(expiration - now, 0) * 1000)),
    _one(80, "earlier-against-sleep",
         Patch(delay_queue, "wait_time", lambda expiration, now: max(expiration - now, 0) // 10 * 10)),
    _one(81, "drawn:system:1.2.0.0:9223372036854775807:pass.3,call_later.0:step.1,size:", edited(
         TimerTaskEntry, "__init__", "super()", "super(TimerTaskEntry, self)",
         "self.expiration_ms = expiration_ms", "self.expiration_ms = (expiration_ms + 2**63) % 2**64 - 2**63")),
    _one(83, "drawn:system:1.2.0.0:9:add.0:cancel.0,size:", edited(TimerTask, "cancel", "entry.remove()", "pass")),
    _one(84, "drawn:system:1.2.0.0:9:add.0:cancel.0,size:", edited(
         TimerTaskList, "remove", "_unlink(entry)", "_unlink(entry); self._task_counter.add(-1)")),
    _one(88, "earlier-against-sleep", edited(DelayQueue, "offer", "heap[0] is item", "len(heap) == 1"),
         interleaving=True),
    _one(94, "drawn:system:1.2.1.0:0:add.0:step.1:run.0=close",
         edited(system_timer, "close_executor", "executor.is_current() or ", "")),
)  # fmt: skip
"""By number."""
