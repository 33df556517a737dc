"""Bugs of the timers: buckets, levels, the delay queue, the single wheel, the reaper."""

import heapq
from collections.abc import Callable
from typing import Any, Final

from purgatorio import HashedWheel, SystemTimer, TimerTask
from purgatorio.arithmetic import bucket_expiration, is_expired, is_within_level
from purgatorio.clock import Clock
from purgatorio.reaper import Reaper
from purgatorio.sync import Executor, Sync
from purgatorio.timer import delay_queue, hand_over, hashed_wheel, system_timer, wheel
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.wheel import TimingWheel
from purgatorio_stress.mutant.patch import Mutant, Patch, known


def _remove_from_wrong_list(self: TimerTaskList, entry: TimerTaskEntry) -> None:
    with self._lock, entry.lock:
        if entry.bucket.get() is not None:
            self._unlink(entry)


def _remove_counting_twice(self: TimerTaskList, entry: TimerTaskEntry) -> None:
    with self._lock, entry.lock:
        if entry.bucket.get() is self:
            self._unlink(entry)
            self._task_counter.add(-1)


def _insert_whatever(self: TimingWheel, entry: TimerTaskEntry) -> bool:
    deadline_ms, clock_ms = entry.expiration_ms, self._clock_ms.get()
    if is_expired(deadline_ms, clock_ms, self.tick_ms):
        return False
    if not is_within_level(deadline_ms, clock_ms, self.interval_ms):
        return self._overflow_wheel().add(entry)
    bucket = self._buckets[deadline_ms // self.tick_ms % self.wheel_size]
    bucket.add(entry)
    if bucket.set_expiration(bucket_expiration(deadline_ms, self.tick_ms)):
        self._queue.offer(bucket)
    return True


def _relative_slot(self: TimingWheel, entry: TimerTaskEntry) -> bool:
    deadline_ms, clock_ms = entry.expiration_ms, self._clock_ms.get()
    if entry.cancelled() or is_expired(deadline_ms, clock_ms, self.tick_ms):
        return False
    if not is_within_level(deadline_ms, clock_ms, self.interval_ms):
        return self._overflow_wheel().add(entry)
    bucket = self._buckets[(deadline_ms - clock_ms) // self.tick_ms % self.wheel_size]
    bucket.add(entry)
    if bucket.set_expiration(bucket_expiration(deadline_ms, self.tick_ms)):
        self._queue.offer(bucket)
    return True


def _drained(
    self: SystemTimer, timeout_ms: int, insert: Callable[[TimerTaskEntry], object], *, to_now: bool
) -> bool:
    """`SystemTimer.advance_clock` with `insert` for what is flushed, to the time of the bucket or to now."""
    if not self._queue.await_due(timeout_ms):
        return False
    with self._gate.write:
        bucket = self._queue.poll()
        while bucket is not None:
            self._wheel.advance_clock(self._clock.now_ms() if to_now else bucket.expiration_ms())
            bucket.flush(insert)
            bucket = self._queue.poll()
    return True


def _submit_whatever(self: SystemTimer, entry: TimerTaskEntry) -> BaseException | None:
    if self._wheel.add(entry):
        return None
    return hand_over.hand_over(entry.task, self._executor, self._faults, self._sync)


def _overflow_without_lock(self: TimingWheel) -> TimingWheel:
    overflow = self._overflow.get()
    if overflow is None:
        overflow = TimingWheel(
            self.interval_ms,
            self.wheel_size,
            self._clock_ms.get(),
            self._task_counter,
            self._queue,
            self._sync,
        )
        self._overflow.set(overflow)
    return overflow


def _flush_resetting_late(self: TimerTaskList, reinsert: Callable[[TimerTaskEntry], object]) -> None:
    with self._lock:
        head = self._head()
        while head is not None:
            self.remove(head)
            reinsert(head)
            head = self._head()
    self._expiration_ms.set(None)


def _flush_next_after_unlink(self: TimerTaskList, reinsert: Callable[[TimerTaskEntry], object]) -> None:
    with self._lock:
        entry = self._head()
        while entry is not None:
            self.remove(entry)
            reinsert(entry)
            following = entry.next.get()
            entry = following if isinstance(following, TimerTaskEntry) else None
        self._expiration_ms.set(None)


_BUCKET_INIT: Final[Callable[..., None]] = TimerTaskList.__init__


class _NotReentrant:
    """The seam with plain locks for re-entrant ones."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sync, "lock" if name == "rlock" else name)


def _bucket_with_plain_lock(self: TimerTaskList, task_counter: Any, sync: Sync) -> None:
    _BUCKET_INIT(self, task_counter, _NotReentrant(sync))


def _await_letting_go(self: DelayQueue[Any], timeout_ms: int) -> bool:
    """Look, let go of the lock, and then sleep on what was seen."""
    end_ms = self._clock.now_ms() + max(timeout_ms, 0)
    while True:
        with self._lock:
            now_ms = self._clock.now_ms()
            due = self._has_due(now_ms)
            if due or now_ms >= end_ms:
                return due
            wait_ms = self._wait_ms(now_ms, end_ms)
        with self._lock:
            if not self._available.wait(wait_ms) and now_ms + wait_ms >= end_ms:
                return self._has_due(self._clock.now_ms())


_NEXT_WAKE: Final[dict[int, int]] = {}
"""What each queue has published as its next wake-up; by queue, for one run."""


def _await_publishing_late(self: DelayQueue[Any], timeout_ms: int) -> bool:
    """The wake-up time is published after the lock is given back; offers compare with what is published."""
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


def _offer_waking_only_if_empty(self: DelayQueue[Any], item: Any) -> None:
    with self._lock:
        heap = self._heap.mutate()
        heapq.heappush(heap, item)
        if len(heap) == 1:
            self._available.notify_all()


_OFFERED: Final[list[TimerTaskList]] = []


def _only_the_first_time(self: TimerTaskList, expiration_ms: int) -> bool:
    self._expiration_ms.set(expiration_ms)
    if any(bucket is self for bucket in _OFFERED):
        return False
    _OFFERED.append(self)
    return True


def _advance_this_level_only(self: TimingWheel, time_ms: int) -> None:
    if time_ms >= self._clock_ms.get() + self.tick_ms:
        self._clock_ms.set(time_ms - time_ms % self.tick_ms)


def _fire_on_flush(self: SystemTimer, timeout_ms: int) -> bool:
    def fire(entry: TimerTaskEntry) -> None:
        if not entry.cancelled():
            hand_over.hand_over(entry.task, self._executor, self._faults, self._sync)

    return _drained(self, timeout_ms, fire, to_now=False)


def _advance_to_now(self: SystemTimer, timeout_ms: int) -> bool:
    return _drained(self, timeout_ms, self._add_entry, to_now=True)


def _deadline_from_cursor(self: SystemTimer, task: TimerTask) -> None:
    with self._gate.read:
        self._add_entry(TimerTaskEntry(task, task.delay_ms + self._wheel.clock_ms(), self._sync))


_ENTRY_INIT: Final[Callable[..., None]] = TimerTaskEntry.__init__


def _wrapped_deadline(self: TimerTaskEntry, task: TimerTask, expiration_ms: int, sync: Sync) -> None:
    _ENTRY_INIT(self, task, (expiration_ms + 2**63) % 2**64 - 2**63, sync)


def _next_ms_wrong_unit(expiration: int, now: int) -> int:
    return max(expiration - now, 0) * 1000


def _rounded_down(expiration: int, now: int) -> int:
    return max(expiration - now, 0) // 10 * 10


class _SteppedBack:
    """The wall clock, set back by an hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms() - 3_600_000


_QUEUE_INIT: Final[Callable[..., None]] = DelayQueue.__init__


def _queue_by_wall_clock(self: DelayQueue[Any], clock: Clock, sync: Sync) -> None:
    _QUEUE_INIT(self, _SteppedBack(clock), sync)


def _cancel_flag_only(self: TimerTask) -> None:
    self._entry.set(None)


def _rounds_from_absolute_tick(deadline_tick: int, cursor_tick: int, size: int) -> int:
    return deadline_tick // size


def _clamped(deadline_tick: int, cursor_tick: int, size: int) -> int:
    return 0


def _visit_stopping(self: HashedWheel, tick: int) -> int:
    self._cursor.set(tick)
    due = []
    for entry in self._slots[tick % self.wheel_size].get():
        rounds = entry.rounds.get()
        if rounds:
            entry.rounds.set(rounds - 1)
            break
        due.append(entry)
    return self._fire_all(due)


def _visit_dropping(self: HashedWheel, tick: int) -> int:
    self._cursor.set(tick)
    due = []
    for entry in list(self._slots[tick % self.wheel_size].get()):
        if entry.rounds.get() == 0:
            due.append(entry)
        else:
            self._take(entry)
    return self._fire_all(due)


def _turn_without_guard(self: Reaper) -> None:
    self._work()


def _uncontained(self: hand_over._Run) -> None:
    self._task.run()


def _close_waiting(executor: Executor) -> None:
    executor.shutdown()
    executor.await_termination(5_000)


def _one(number: int, scenario: str, *patches: Patch, interleaving: bool = False) -> Mutant:
    return known(number, scenario, *patches, interleaving=interleaving, memory=(_OFFERED, _NEXT_WAKE))


TIMER_MUTANTS: Final = (
    _one(34, "reaper-survives", Patch(Reaper, "_turn", _turn_without_guard),
         Patch(hand_over._Run, "run", _uncontained)),
    _one(49, "remove-against-move", Patch(TimerTaskList, "remove", _remove_from_wrong_list),
         interleaving=True),
    _one(51, "cancel-against-flush", Patch(TimingWheel, "add", _insert_whatever),
         Patch(SystemTimer, "_add_entry", _submit_whatever), interleaving=True),
    _one(52, "cancel-against-add", Patch(TimingWheel, "add", _insert_whatever), interleaving=True),
    _one(53, "overflow-twice", Patch(TimingWheel, "_overflow_wheel", _overflow_without_lock),
         interleaving=True),
    _one(55, "add-against-flush", Patch(TimerTaskList, "flush", _flush_resetting_late), interleaving=True),
    _one(56, "wheel-walk", Patch(TimerTaskList, "flush", _flush_next_after_unlink)),
    _one(57, "wheel-walk", Patch(TimerTaskList, "__init__", _bucket_with_plain_lock)),
    _one(58, "add-against-sleep", Patch(DelayQueue, "await_due", _await_letting_go), interleaving=True),
    _one(60, "earlier-against-sleep", Patch(DelayQueue, "await_due", _await_publishing_late),
         Patch(DelayQueue, "offer", _offer_comparing_published), interleaving=True),
    _one(61, "wheel-walk", Patch(TimerTaskList, "set_expiration", _only_the_first_time)),
    _one(63, "wheel-walk", Patch(TimingWheel, "advance_clock", _advance_this_level_only)),
    _one(64, "wheel-walk", Patch(SystemTimer, "advance_clock", _fire_on_flush)),
    _one(65, "wheel-walk",
         Patch(wheel, "is_expired", lambda deadline, clock, tick: deadline <= clock + tick)),
    _one(66, "far-edge",
         Patch(wheel, "is_within_level", lambda deadline, clock, interval: deadline <= clock + interval)),
    _one(67, "overdue-bucket", Patch(SystemTimer, "advance_clock", _advance_to_now)),
    _one(69, "wheel-walk", Patch(TimingWheel, "add", _relative_slot)),
    _one(70, "wheel-walk", Patch(SystemTimer, "add", _deadline_from_cursor)),
    _one(72, "hashed-walk", Patch(hashed_wheel, "rounds_left", _rounds_from_absolute_tick)),
    _one(73, "hashed-walk", Patch(HashedWheel, "_visit", _visit_stopping)),
    _one(74, "hashed-walk", Patch(HashedWheel, "_visit", _visit_dropping)),
    _one(76, "hashed-walk", Patch(hashed_wheel, "rounds_left", _clamped)),
    _one(78, "wheel-walk", Patch(DelayQueue, "__init__", _queue_by_wall_clock)),
    _one(79, "earlier-against-sleep", Patch(delay_queue, "wait_time", _next_ms_wrong_unit)),
    _one(80, "earlier-against-sleep", Patch(delay_queue, "wait_time", _rounded_down)),
    _one(81, "largest-delays", Patch(TimerTaskEntry, "__init__", _wrapped_deadline)),
    _one(83, "cancelling", Patch(TimerTask, "cancel", _cancel_flag_only)),
    _one(84, "cancelling", Patch(TimerTaskList, "remove", _remove_counting_twice)),
    _one(88, "earlier-against-sleep", Patch(DelayQueue, "offer", _offer_waking_only_if_empty),
         interleaving=True),
    _one(94, "stop-from-callback", Patch(system_timer, "close_executor", _close_waiting)),
)  # fmt: skip
"""By number."""
