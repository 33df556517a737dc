"""`HashedWheel`: a timer with one wheel, in which each task counts its remaining rounds (Varghese and Lauck, scheme 6).

`HashedWheel` keeps the promises of `purgatorio.timer.interface`. A deadline d belongs to the tick n = floor(d /
tick_ms), and tick n belongs to slot n mod wheel_size. A task stores how many visits of its slot come before its own
tick. A drain visits the slots of all ticks that have begun since the previous drain.

Promises.
* The first `add` starts the wheel and its worker thread, if any.
* `stop_now` returns the waiting tasks, which will not run.
* `stop_after_pending` refuses new tasks, and waits until every waiting task has been passed to the executor.
* `cancel` unlinks the task at once. `size()` is exact at any moment.

Not promised: a low cost while tasks wait. Unlike in the hierarchical wheel, the cost grows with the number of ticks
that pass.

One lock guards the wheel. A thread that takes this lock holds no other lock but `_drains`. So `add` has two steps: it
gives the task a new entry (atomically, without a lock), and then inserts the entry under the lock. A cancel between
these steps finds the entry in no slot, and marks it as cancelled. The lock is released while a task is passed to the
executor. So with a `DirectExecutor`, the task may wait for a thread that adds or cancels. Only other drains and stops
wait for a drain (`_drains`). A drain that a task of a drain calls has no effect.
"""

from collections.abc import Callable, Iterable

from purgatorio.arithmetic import rounds_left, virtual_id, wait_time
from purgatorio.clock import Clock, MonotonicClock, deadline_ms
from purgatorio.faults import CONTAIN, Exits, FaultPolicy
from purgatorio.given import at_least, given
from purgatorio.invariant import require
from purgatorio.sync import Cell, Executor, Lock, Sync, Worker
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Calls
from purgatorio.timer.hand_over import close_executor, given_executor, hand_over
from purgatorio.timer.interface import TimerClosed
from purgatorio.timer.task import TimerTask
from purgatorio.timer.undriven import Undriven

_POLL_MS = 200


class HashedEntry:
    """The entry of a task in the wheel, with the number of its tick. The wheel's lock guards `rounds` and `gone`.
    `gone` is set once, when the entry fires or is removed. If the entry is removed before it is inserted, the insertion
    has no effect."""

    __slots__ = ("_unlink", "deadline_tick", "gone", "rounds", "task")

    def __init__(
        self, task: TimerTask, deadline_tick: int, unlink: "Callable[[HashedEntry], None]", sync: Sync
    ) -> None:
        self.task = task
        self.deadline_tick = deadline_tick
        self._unlink = unlink
        self.rounds: Cell[int] = sync.cell(0, "hashed.rounds")
        self.gone: Cell[bool] = sync.cell(False, "hashed.gone")
        task.set_entry(self)

    def cancelled(self) -> bool:
        """Whether this is no longer the entry of the task: the task was cancelled, or added again."""
        return self.task.entry() is not self

    def remove(self) -> None:
        """Remove the entry from the wheel."""
        self._unlink(self)


class HashedWheel(Calls):
    """A timer of one wheel. The cost of an add does not depend on the delay. A drain visits each slot that the clock
    passes. `tick_ms` and `wheel_size` must be at least 1 (ValueError).

    With `own_worker`, a thread named `wheel-<name>` drains the timer from the first `add` on. Otherwise the owner
    drains it."""

    __slots__ = ("_changed", "_clock", "_closed", "_cursor", "_drains", "_executor", "_exits", "_faults", "_handing",
                 "_lock", "_own_worker", "_refused", "_size", "_slots", "_sync", "_worker", "name", "tick_ms",
                 "undriven", "wheel_size")  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = 512,
        clock: Clock | None = None,
        executor: Executor | None = None,
        own_worker: bool = False,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        at_least(1, tick_ms=tick_ms, wheel_size=wheel_size)
        super().__init__()
        self.name = name
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self._sync = sync
        self._faults = given("a fault policy", faults)
        self._exits = Exits(sync)
        self._own_worker = own_worker
        self._clock: Clock = MonotonicClock() if clock is None else given("a clock", clock)
        self._executor = given_executor(executor, name, sync)
        self._drains: Lock = sync.rlock("hashed-wheel.drains")
        self._lock: Lock = sync.rlock("hashed-wheel")
        self._changed = sync.condition(self._lock, "hashed-wheel.changed")
        self._closed: Cell[bool] = sync.cell(False, "hashed-wheel.closed")
        self._refused: Cell[dict[HashedEntry, None]] = sync.cell({}, "hashed-wheel.refused")
        self._handing: Cell[bool] = sync.cell(False, "hashed-wheel.handing")
        self._cursor: Cell[int | None] = sync.cell(None, "hashed-wheel.cursor")
        self._size: Cell[int] = sync.cell(0, "hashed-wheel.size")
        self._worker: Cell[Worker | None] = sync.cell(None, "hashed-wheel.worker")
        self.undriven = Undriven(name, self._size.get, sync) if clock is None and not own_worker else None
        self._slots: tuple[Cell[dict[HashedEntry, None]], ...] = tuple(
            sync.cell({}, f"hashed-wheel.slot{slot}") for slot in range(wheel_size)
        )

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`. If the task's tick has been visited, the task is submitted at once. If the executor then
        refuses the task, the call raises the exception, and the task does not wait. Raises TimerClosed after a stop."""
        self._admit(task)
        tick = virtual_id(deadline_ms(self._clock, task.delay_ms), self.tick_ms)
        entry = HashedEntry(task, tick, self.unlink, self._sync)
        with self._lock:
            if self._closed.get():
                raise TimerClosed(f"wheel {self.name!r} has been stopped")
            self._start_on_first_use()
            due = self._insert(entry)
            self._changed.notify_all()
        # Outside the lock, because a `DirectExecutor` runs the task here: (1) The task closes the wheel, or the
        # `ReaperTimer` around it, and waits for the thread that drains. (2) That thread waits for the lock.
        refused = hand_over(task, self._executor, self._faults, self._sync) if due else None
        if refused is not None:
            raise refused

    def advance_clock(self, timeout_ms: int) -> bool:
        """Drain, after a wait of up to `timeout_ms` for a due task. True iff a task was submitted. If the executor
        refuses a task, the task waits, and the next drain submits it again."""
        self._require_made_here()
        if self.undriven is not None:
            self.undriven.driven.set(True)
        end_ms = self._clock.now_ms() + timeout_ms if timeout_ms > 0 else None
        while True:
            self._drains.acquire()
            with self._lock:
                try:
                    if self._handing.get():
                        return False
                    now_ms = self._clock.now_ms()
                    fired = self._visit_until(virtual_id(now_ms, self.tick_ms))
                finally:
                    self._drains.release()
                if fired or end_ms is None or now_ms >= end_ms or self._closed_and_empty():
                    return fired > 0
                wait_ms = self._wait_ms(now_ms, end_ms)
                if not self._changed.wait(wait_ms) and now_ms + wait_ms == end_ms:
                    end_ms = None

    def size(self) -> int:
        """The number of waiting tasks."""
        self._require_made_here()
        with self._lock:
            return self._size.get()

    def close(self) -> None:
        """Calls `stop_now`, and returns nothing."""
        self.stop_now()

    def stop_now(self) -> list[TimerTask]:
        """Stop at once. Returns the tasks that were waiting, earliest first. These tasks will not run.

        Submitted tasks still run. A call from inside a task does not wait for the end of the threads.
        """
        if not self._made_here():
            return []
        if self.undriven is not None:
            self.undriven.tell(self.size())
        with self._drains, self._lock:
            self._closed.set(True)
            waiting = sorted(self._entries(), key=lambda entry: entry.deadline_tick)
            for entry in waiting:
                self._take(entry)
            self._changed.notify_all()
        self._end_threads()
        return [entry.task for entry in waiting if not entry.cancelled()]

    def stop_after_pending(self, timeout_ms: int | None = None) -> bool:
        """Accept no new tasks, wait until every waiting task has been submitted to the executor, then stop.

        Another thread (such as the worker) must drain meanwhile. Returns False if the time ended first. In a task that
        a drain submitted, returns False at once, because the task would wait for itself. After False, the wheel refuses
        new tasks, but still runs."""
        self._require_made_here()
        with self._drains:
            inside = self._executor.is_current() or self._handing.get()
        with self._lock:
            self._closed.set(True)
            self._changed.notify_all()
            if inside:
                return self._size.get() == 0
            end_ms = None if timeout_ms is None else self._clock.now_ms() + timeout_ms
            while self._size.get() > 0 or self._handing.get():
                self._sync.loop_head(self)
                left_ms = None if end_ms is None else max(end_ms - self._clock.now_ms(), 0)
                if not self._changed.wait(left_ms) and left_ms is not None:
                    return False
        self._end_threads()
        return True

    def unlink(self, entry: HashedEntry) -> None:
        """Called by `entry.remove`: unlink `entry`. No effect if it is not linked."""
        with self._lock:
            self._take(entry)
            if self._size.get() == 0:
                self._changed.notify_all()

    def check(self) -> None:
        """Invariants: slot and rounds of each task give the task's tick, and `size()` is the number of tasks in the
        slots."""
        entries = len(self._refused.get())
        cursor = self._cursor.get()
        for slot, cell in enumerate(self._slots):
            for entry in cell.get():
                entries += 1
                require(cursor is not None, "tasks in a wheel that never started")
                ahead = 0 if cursor is None else (slot - cursor - 1) % self.wheel_size + 1
                named = (cursor or 0) + ahead + entry.rounds.get() * self.wheel_size
                require(
                    entry.deadline_tick == named,
                    f"tick {entry.deadline_tick} in slot {slot} with {entry.rounds.get()} rounds, {cursor=}",
                )
        require(entries == self._size.get(), f"size is {self._size.get()}, slots have {entries}")

    def _start_on_first_use(self) -> None:
        if self._cursor.get() is None:
            self._cursor.set(virtual_id(self._clock.now_ms(), self.tick_ms) - 1)
        if self._own_worker and self._worker.get() is None:
            self._worker.set(self._sync.spawn(f"wheel-{self.name}", self._drain_until_stopped))

    def _insert(self, entry: HashedEntry) -> bool:
        """Insert the entry into its slot. True, and no insertion, if its tick has been visited. Drop a cancelled
        entry."""
        cursor = self._cursor.get()
        if cursor is None or entry.gone.get() or entry.cancelled():
            return False
        if entry.deadline_tick <= cursor:
            self._take(entry)
            return True
        entry.rounds.set(rounds_left(entry.deadline_tick, cursor, self.wheel_size))
        self._slot_of(entry).mutate()[entry] = None
        self._size.set(self._size.get() + 1)
        return False

    def _take(self, entry: HashedEntry) -> None:
        if not entry.gone.get():
            entry.gone.set(True)
            for place in (self._slot_of(entry), self._refused):
                if entry in place.get():
                    del place.mutate()[entry]
                    self._size.set(self._size.get() - 1)

    def _keep(self, entry: HashedEntry) -> None:
        entry.gone.set(False)
        self._refused.mutate()[entry] = None
        self._size.set(self._size.get() + 1)

    def _visit_until(self, now_tick: int) -> int:
        """Visit every tick up to `now_tick`, inclusive. Returns the number of submitted tasks."""
        cursor = self._cursor.get()
        fired = self._fire_all(list(self._refused.get()))
        if cursor is None or now_tick <= cursor:
            return fired
        if self._size.get() == 0:
            self._cursor.set(now_tick)
            return fired
        fired += self._leap((now_tick - cursor) // self.wheel_size)
        for tick in range(cursor + (now_tick - cursor) // self.wheel_size * self.wheel_size, now_tick):
            fired += self._visit(tick + 1)
        return fired

    def _visit(self, tick: int) -> int:
        """Visits a slot: fires the tasks without rounds left, and decrements the rounds of the others."""
        self._cursor.set(tick)
        return self._fire_all(_counted_off(self._slots[tick % self.wheel_size].get(), 1))

    def _leap(self, revolutions: int) -> int:
        """Move the cursor by whole revolutions in one step, which counts as that many visits of every slot."""
        cursor = self._cursor.get()
        if revolutions == 0 or cursor is None:
            return 0
        self._cursor.set(cursor + revolutions * self.wheel_size)
        due = _counted_off([entry for slot in self._slots for entry in slot.get()], revolutions)
        return self._fire_all(sorted(due, key=lambda entry: entry.deadline_tick))

    def _fire_all(self, due: list[HashedEntry]) -> int:
        """Submit the tasks. If the executor refuses one, keep this task and all later tasks, and raise the executor's
        exception."""
        left = iter(due)
        fired = 0
        self._handing.set(True)
        try:
            for entry in left:
                gone = entry.gone.get()
                self._take(entry)
                if gone or entry.cancelled():
                    # An earlier task of this drain removed it; or another thread has cancelled the task, but not called
                    # `remove` yet.
                    continue
                fired += 1
                self._lock.release()
                try:
                    refused = hand_over(entry.task, self._executor, self._faults, self._sync)
                finally:
                    self._lock.acquire()
                if refused is not None:
                    # Without the lock, another thread may have cancelled the task, or added it again.
                    if not entry.cancelled():
                        self._keep(entry)
                    raise refused
        finally:
            self._handing.set(False)
            if due:
                self._changed.notify_all()
            for entry in left:
                if not entry.gone.get():
                    self._take(entry)
                    self._keep(entry)
        return fired

    def _entries(self) -> list[HashedEntry]:
        return [entry for place in (self._refused, *self._slots) for entry in place.get()]

    def _slot_of(self, entry: HashedEntry) -> Cell[dict[HashedEntry, None]]:
        return self._slots[entry.deadline_tick % self.wheel_size]

    def _wait_ms(self, now_ms: int, end_ms: int) -> int:
        """The time to sleep: until the next tick begins if tasks wait, otherwise until `end_ms`."""
        if self._size.get() == 0:
            return wait_time(end_ms, now_ms)
        next_tick_ms = (virtual_id(now_ms, self.tick_ms) + 1) * self.tick_ms
        return wait_time(min(next_tick_ms, end_ms), now_ms)

    def _closed_and_empty(self) -> bool:
        return self._closed.get() and self._size.get() == 0

    def _drain_until_stopped(self) -> None:
        while True:
            self._sync.loop_head(self)
            failed = self._drain_once()
            with self._lock:
                if self._closed_and_empty():
                    return
                if failed:
                    self._changed.wait(_POLL_MS)

    def _drain_once(self) -> bool:
        """One turn of the worker. Raises nothing, so the worker continues. True after an exception: the worker pauses
        before its next turn."""
        try:
            self.advance_clock(_POLL_MS)
        except Exception as error:
            self._faults.caught(error, "drain", self.name)
            return True
        except BaseException as error:
            self._exits.caught(error, f"wheel-{self.name}")
        return False

    def _end_threads(self) -> None:
        with self._drains, self._lock:
            worker, inside = self._worker.get(), self._handing.get() or self._executor.is_current()
        joined = worker is not None and not inside and not worker.is_current()
        if worker is not None and joined:
            worker.join()
        try:
            close_executor(self._executor, self.name)
        finally:
            if joined:
                self._exits.raise_first()


def _counted_off(entries: Iterable[HashedEntry], visits: int) -> list[HashedEntry]:
    """Subtracts `visits` from the rounds of the entries. Returns the entries with fewer rounds, which are due."""
    due = []
    for entry in entries:
        rounds = entry.rounds.get()
        if rounds < visits:
            due.append(entry)
        else:
            entry.rounds.set(rounds - visits)
    return due
