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
from purgatorio_stress.mutant.patch import Mutant, Patch

__all__ = ["TIMER_MUTANTS"]


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


def _one(
    number: int,
    name: str,
    source: str,
    what: str,
    scenario: str,
    clauses: tuple[str, ...],
    *patches: Patch,
    interleaving: bool = False,
) -> Mutant:
    return Mutant(
        number,
        name,
        source,
        what,
        scenario,
        clauses,
        patches,
        "pending-flag",
        interleaving,
        (_OFFERED, _NEXT_WAKE),
    )


TIMER_MUTANTS: Final = (
    _one(34, "exception-kills-reaper", "KAFKA-14601", "an exception leaves the reaper's loop",
         "reaper-survives", ("O8",), Patch(Reaper, "_turn", _turn_without_guard),
         Patch(hand_over._Run, "run", _uncontained)),
    _one(49, "remove-wrong-list", "KAFKA-2226", "remove trusts that the entry is in some list",
         "remove-against-move", ("T5", "CHECK", "O8", "P3"),
         Patch(TimerTaskList, "remove", _remove_from_wrong_list), interleaving=True),
    _one(51, "reinsert-no-cancel-check", "Go timingwheel #31", "re-inserted without a look whether cancelled",
         "cancel-against-flush", ("T5", "T4"), Patch(TimingWheel, "add", _insert_whatever),
         Patch(SystemTimer, "_add_entry", _submit_whatever), interleaving=True),
    _one(52, "insert-after-cancel", "tokio #8252", "add ignores that the task was cancelled before",
         "cancel-against-add", ("T5",), Patch(TimingWheel, "add", _insert_whatever), interleaving=True),
    _one(53, "overflow-wheel-twice", "KAFKA-2112", "the level above is made without a lock",
         "overflow-twice", ("T2", "T3", "T5", "CHECK"),
         Patch(TimingWheel, "_overflow_wheel", _overflow_without_lock), interleaving=True),
    _one(55, "flush-resets-expiration-late", "Go timingwheel PR 35", "the expiration is reset after unlocking",
         "add-against-flush", ("T3",), Patch(TimerTaskList, "flush", _flush_resetting_late),
         interleaving=True),
    _one(56, "flush-next-after-unlink", "Go timingwheel 469a18e", "the next entry is read after unlinking",
         "wheel-walk", ("T3", "T2", "CHECK"), Patch(TimerTaskList, "flush", _flush_next_after_unlink)),
    _one(57, "nonreentrant-bucket-lock", "Go timingwheel #25", "a bucket's lock is not re-entrant",
         "wheel-walk", ("P3",), Patch(TimerTaskList, "__init__", _bucket_with_plain_lock)),
    _one(58, "sleep-flag-outside-lock", "Go timingwheel #5", "the look and the sleep are two critical sections",
         "add-against-sleep", ("T2", "P3"), Patch(DelayQueue, "await_due", _await_letting_go), interleaving=True),
    _one(60, "next-wake-published-late", "tokio #6682", "the wake-up time is published after unlocking",
         "earlier-against-sleep", ("T2", "P3"), Patch(DelayQueue, "await_due", _await_publishing_late),
         Patch(DelayQueue, "offer", _offer_comparing_published), interleaving=True),
    _one(61, "no-reoffer-on-reuse", "hierarchical wheel", "a bucket is offered the first time only",
         "wheel-walk", ("T3", "T2", "CHECK"), Patch(TimerTaskList, "set_expiration", _only_the_first_time)),
    _one(63, "no-overflow-advance", "hierarchical wheel", "the level above does not advance",
         "wheel-walk", ("T2", "T3", "P3", "CHECK", "O8"),
         Patch(TimingWheel, "advance_clock", _advance_this_level_only)),
    _one(64, "fire-on-flush", "rpc-perf #180", "the tasks of a coarse bucket run when it is flushed",
         "wheel-walk", ("T1",), Patch(SystemTimer, "advance_clock", _fire_on_flush)),
    _one(65, "off-by-one-current-tick", "wheel", "the next tick counts as expired",
         "wheel-walk", ("T1",),
         Patch(wheel, "is_expired", lambda deadline, clock, tick: deadline <= clock + tick)),
    _one(66, "interval-inclusive", "wheel", "the interval's end counts as within",
         "far-edge", ("T2", "CHECK", "O8", "T3"),
         Patch(wheel, "is_within_level", lambda deadline, clock, interval: deadline <= clock + interval)),
    _one(67, "advance-to-now", "agrona 38ad7a8e", "the wheel advances to the time, not to the bucket",
         "overdue-bucket", ("T2", "CHECK", "O8", "T3"),
         Patch(SystemTimer, "advance_clock", _advance_to_now)),
    _one(69, "relative-slot", "wheel", "the slot is counted from the clock",
         "wheel-walk", ("T2", "T1", "T3", "CHECK", "O8"), Patch(TimingWheel, "add", _relative_slot)),
    _one(70, "relative-deadline-from-cursor", "akka #1547", "the deadline counts from the wheel's clock",
         "wheel-walk", ("T1",), Patch(SystemTimer, "add", _deadline_from_cursor)),
    _one(72, "rounds-from-absolute-tick", "netty #1959", "rounds are counted from zero",
         "hashed-walk", ("T2", "T3", "CHECK", "O8"),
         Patch(hashed_wheel, "rounds_left", _rounds_from_absolute_tick)),
    _one(73, "stop-scan-at-first-not-due", "netty #12888", "the scan of a slot stops at the first not due",
         "hashed-walk", ("T2", "T3", "CHECK", "O8"), Patch(HashedWheel, "_visit", _visit_stopping)),
    _one(74, "early-visited-dropped", "agrona #73", "what is visited before its time is dropped",
         "hashed-walk", ("T3",), Patch(HashedWheel, "_visit", _visit_dropping)),
    _one(76, "beyond-capacity-clamp", "Linux timer wheel", "what is beyond the wheel's reach is clamped to it",
         "hashed-walk", ("T1", "CHECK", "O8"), Patch(hashed_wheel, "rounds_left", _clamped)),
    _one(78, "wall-clock", "KAFKA-4051", "the queue goes by a wall clock that is set back",
         "wheel-walk", ("T2", "T3"), Patch(DelayQueue, "__init__", _queue_by_wall_clock)),
    _one(79, "unit-mix", "KAFKA-938", "a wait a thousand times too long",
         "earlier-against-sleep", ("T2",), Patch(delay_queue, "wait_time", _next_ms_wrong_unit)),
    _one(80, "sleep-rounds-to-zero", "netty #356", "a wait is rounded down, to zero near its end",
         "earlier-against-sleep", ("P3",), Patch(delay_queue, "wait_time", _rounded_down)),
    _one(81, "deadline-overflow", "netty #7760", "deadlines wrap at 64 bits",
         "largest-delays", ("T1",), Patch(TimerTaskEntry, "__init__", _wrapped_deadline)),
    _one(83, "cancel-flag-only", "asyncio", "cancel does not unlink",
         "cancelling", ("T5",), Patch(TimerTask, "cancel", _cancel_flag_only)),
    _one(84, "cancel-double-decrement", "netty #14959", "the counter is decremented twice",
         "cancelling", ("T5", "CHECK"), Patch(TimerTaskList, "remove", _remove_counting_twice)),
    _one(88, "re-arm-no-wake", "tokio #2290", "an earlier item does not wake the sleeper",
         "earlier-against-sleep", ("T2",), Patch(DelayQueue, "offer", _offer_waking_only_if_empty),
         interleaving=True),
    _one(94, "stop-from-callback", "netty #365", "a task waits for its own thread",
         "stop-from-callback", ("P3",), Patch(system_timer, "close_executor", _close_waiting)),
)  # fmt: skip
"""By number."""
