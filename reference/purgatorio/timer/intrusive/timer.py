"""`IntrusiveTimer`: the hierarchical timing wheel for production use, one `Wheel` under one lock.

docs/measured/performance.md says what the timer costs, and when another timer is better. To read or port Kafka's
classes, use `SystemTimer`.

`IntrusiveTimer` keeps the promises of `purgatorio.timer.interface`, and clause T7: the number of steps of every call is
bounded. It differs from `SystemTimer` in four ways, which the promises allow:

* `add` never runs a task. A due task waits in the overdue bucket for the next drain, and can be cancelled until then.
* A plain function can be added, without a task object. `call_at` and `call_later` return a handle for `cancel`.
* A drain submits all its due tasks to the executor as one action, after the lock is released. [T3] If the executor
  refuses the action, all its tasks wait for the next drain, and the caller of the drain gets the exception.
* `close` drops the waiting tasks, so that tasks and timer can be freed. Every later `add` raises TimerClosed.

Not promised: use in a signal handler, because the lock is not re-entrant. Also not promised: use after an asynchronous
exception (such as Ctrl-C) has interrupted a call. The exception may come between the acquisition of the lock and the
following `try`, and then no thread releases the lock.

Lock order: a thread holds the lock of at most one timer, and reads the clock before it takes the lock. No callback,
executor or fault policy is called under the lock.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NewType

from purgatorio.clock import Clock, MonotonicClock, nanoseconds
from purgatorio.compiling import mypyc_attr
from purgatorio.executors import LoopExecutor
from purgatorio.faults import CONTAIN, FaultPolicy, first_exit
from purgatorio.given import CO_COROUTINE, FUNCTIONS, at_least, given, no_task, require_function, whole_ms
from purgatorio.lock import COMPILED
from purgatorio.owned import Owned
from purgatorio.process import PROCESS, made_before_fork
from purgatorio.sync import Executor, ExecutorClosed, Lock, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Args, Repeated, bound
from purgatorio.timer.hand_over import close_executor, given_executor
from purgatorio.timer.intrusive.node import NOWHERE, Callback, Node
from purgatorio.timer.intrusive.wheel import HANDLE_BITS, NO_CALLS, Calls, Due, Wheel
from purgatorio.timer.task import TimerTask
from purgatorio.timer.undriven import Undriven

DEFAULT_WHEEL_SIZE: Final = 256
"""Slots of a level; measured (docs/measured/performance.md)."""


class TaskNode(Node):
    """The entry of a task in an `IntrusiveTimer`."""

    __slots__ = ("_task", "_timer")

    def __init__(self, tick: int, task: TimerTask, timer: "IntrusiveTimer") -> None:
        # As in the base class, but without a call, because a program may create millions of nodes.
        self.previous = NOWHERE
        self.next = NOWHERE
        self.tick = tick
        self._task: TimerTask | None = task
        self._timer = timer

    def remove(self) -> None:
        """Remove the task from the timer. No effect if a drain has taken it."""
        timer = self._timer
        lock = timer._lock
        lock.acquire()
        try:
            timer._wheel.unlink(self)
        finally:
            lock.release()

    def is_wanted(self) -> bool:
        return self._task is not None and self._task._entry.get() is self

    def run(self) -> None:
        task = self._task
        self._task = None
        if task is not None:
            try:
                task.run()
            except Exception as error:
                self._timer.faults.caught(error, "run", task)

    def drop(self) -> None:
        self._task = None


@mypyc_attr(acyclic=True)
class CallNode(Node):
    """A function that runs once, in a timer without integer handles. After a cancel, a run or a `close`, the node no
    longer holds the function.

    In the compiled build, it takes 64 bytes, and the garbage collector does not traverse it. So a reference cycle
    through a waiting handle is freed only when the handle runs or is cancelled, or its timer is closed. A timer with
    waiting functions that is dropped without `close` is never freed."""

    __slots__ = ("_callback", "_timer")

    def __init__(self, tick: int, callback: Callback, timer: "IntrusiveTimer") -> None:
        self.previous = NOWHERE
        self.next = NOWHERE
        self.tick = tick
        self._callback: Callback | None = callback
        self._timer = timer

    def cancel(self) -> None:
        """Cancel the run of the function. No effect if a drain has taken it, except with a `LoopExecutor`."""
        timer = self._timer
        lock = timer._lock
        lock.acquire()
        try:
            was_linked = timer._wheel.unlink(self)
        finally:
            lock.release()
        # A task that a drain has taken still runs, except on a loop: the drain has its function. Outside the lock,
        # because a finalizer may run.
        if was_linked or timer._handed is not None:
            self._callback = None

    def is_wanted(self) -> bool:
        return self._callback is not None

    def run(self) -> None:
        callback = self._callback
        self._callback = None
        if callback is not None:
            try:
                callback()
            except Exception as error:
                self._timer.faults.caught(error, "run", callback)

    def drop(self) -> None:
        self._callback = None


Handle = NewType("Handle", object)
"""The result of `call_at` and `call_later`. Pass it only to `IntrusiveTimer.cancel`. The type is the same in both
builds."""


class IntrusiveTimer(Owned):
    """A timing wheel for production use. Any thread may call any method. The cost of `add` and `cancel` does not depend
    on the number of pending tasks. Raises ValueError if `tick_ms` is below 1, or `wheel_size` is not a power of two of
    at least 2. `levels` (at least 1) is the number of levels at the start. The timer creates more levels when needed.
    `integer_handles=True`: handles of functions are integers, and functions wait in dictionaries. False: functions wait
    as linked nodes. None: the cheaper of both in this build (docs/measured/performance.md). `executor` runs the tasks,
    by default one thread called `executor-<name>`. `faults` gets the exceptions of tasks."""

    __slots__ = ("_alarm", "_closed", "_executor", "_handed", "_lock", "_now_ms", "_now_ns", "_sleepers", "_sync",
                 "_wake_tick", "_wheel", "faults", "integer_handles", "name", "tick_ms", "undriven")  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        levels: int = 2,
        integer_handles: bool | None = None,
        clock: Clock | None = None,
        executor: Executor | None = None,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        at_least(1, tick_ms=tick_ms, levels=levels)
        at_least(2, wheel_size=wheel_size)
        if wheel_size & (wheel_size - 1) != 0:
            raise ValueError(f"wheel_size is a power of two, not {wheel_size}")
        super().__init__()
        self.name = name
        self.tick_ms = tick_ms
        self.integer_handles = not COMPILED if integer_handles is None else integer_handles
        self.faults = given("a fault policy", faults)
        shown: Clock = MonotonicClock() if clock is None else given("a clock", clock)
        self._now_ms: Callable[[], int] = shown.now_ms
        self._now_ns = nanoseconds(shown)
        self._sync = sync
        self._executor = given_executor(executor, name, sync)
        self._lock = sync.mutex("intrusive-timer")
        self._wheel = Wheel(wheel_size, levels, self._now_ms() // tick_ms)
        self.undriven = Undriven(name, self._wheel.size, sync) if clock is None else None
        self._alarm = Alarm(sync)
        # With a `LoopExecutor`: the functions that the loop has and has not begun, by handle (`pop` is atomic).
        self._handed: Calls | None = {} if isinstance(executor, LoopExecutor) else None
        self._closed = False
        self._sleepers = 0
        self._wake_tick: int | None = None

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`. Raises TimerClosed after `close`."""
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        try:
            # (`isinstance` of an abstract class costs a fifth of the whole call.)
            entry = task._entry
        except AttributeError:
            raise no_task(task) from None
        delay_ms = task.delay_ms
        # `clock.deadline_ms`, without the calls.
        now_ns = self._now_ns
        if now_ns is None or delay_ms <= 0:
            tick = (self._now_ms() + delay_ms) // self.tick_ms
        else:
            tick = ((now_ns() + 999_999) // 1_000_000 + delay_ms) // self.tick_ms
        node = TaskNode(tick, task, self)
        lock = self._lock
        lock.acquire()
        try:
            self._wheel.link(node)
            # [T4] Both steps are under the lock. Otherwise: (1) A sets `node` as the task's entry. (2) B cancels:
            # clears the entry, and finds `node` in no ring. (3) A links `node`, which stays. B takes the same lock
            # after it has cleared the entry, so B finds the node in the ring.
            before = entry.get_and_set(node)
            if before is not None and isinstance(before, TaskNode) and before._timer is self:
                self._wheel.unlink(before)
                before = None
            wake_tick = self._wake_tick
        finally:
            lock.release()
        if before is not None:
            before.remove()
        if wake_tick is not None and tick < wake_tick:
            self._alarm.ring()

    def call_at(self, deadline_ms: int, callback: Callback) -> Handle:
        """Run `callback` once at `deadline_ms` of the timer's clock. Raises TypeError for a float or for an object that
        is no function, and TimerClosed after `close`."""
        if not isinstance(callback, FUNCTIONS) or callback.__code__.co_flags & CO_COROUTINE:
            require_function(callback)
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        try:
            tick = deadline_ms // self.tick_ms
        except TypeError:
            tick = whole_ms(deadline_ms) // self.tick_ms
        handle: CallNode | int
        lock = self._lock
        lock.acquire()
        try:
            if self.integer_handles:
                handle = self._wheel.put(tick, callback)
            else:
                handle = node = CallNode(tick, callback, self)
                self._wheel.link(node)
            wake_tick = self._wake_tick
        except TypeError:
            whole_ms(deadline_ms)  # a float is noticed by the wheel only; this says it in words
            raise
        finally:
            lock.release()
        if wake_tick is not None and tick < wake_tick:
            self._alarm.ring()
        return handle  # type: ignore[return-value]  # a number or a node inside; `Handle(...)` would be a call

    def call_later(self, delay_ms: int, function: Callable[[*Args], object], *args: *Args) -> Handle:
        """Run `function(*args)` once, `delay_ms` from now. Errors and handle as for `call_at`."""
        callback: Callback = partial(function, *args) if args else function
        if not isinstance(callback, FUNCTIONS) or callback.__code__.co_flags & CO_COROUTINE:
            require_function(callback)
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        try:
            now_ns = self._now_ns
            if now_ns is None or delay_ms <= 0:
                tick = (self._now_ms() + delay_ms) // self.tick_ms
            else:
                tick = ((now_ns() + 999_999) // 1_000_000 + delay_ms) // self.tick_ms
        except TypeError:
            whole = whole_ms(delay_ms)
            if whole is delay_ms:
                raise  # of the clock
            return self.call_later(whole, callback)
        handle: CallNode | int
        lock = self._lock
        lock.acquire()
        try:
            wheel = self._wheel
            if self.integer_handles:
                # `Wheel.put`, without the call, because every `call_later` comes here.
                level = wheel._recent
                if not level.floor <= tick < level.limit:
                    level = wheel._level_of(tick)
                calls = level.buckets[tick >> level.shift & level.mask].calls
                if calls is NO_CALLS:
                    handle = wheel.put(tick, callback)
                else:
                    wheel._last_number = number = wheel._last_number + 1
                    handle = tick << HANDLE_BITS | number
                    calls[handle] = callback
            else:
                handle = node = CallNode(tick, callback, self)
                wheel.link(node)
            wake_tick = self._wake_tick
        except TypeError:
            whole_ms(delay_ms)  # a float is noticed by the wheel only; this says it in words
            raise
        finally:
            lock.release()
        if wake_tick is not None and tick < wake_tick:
            self._alarm.ring()
        return handle  # type: ignore[return-value]  # a number or a node inside; `Handle(...)` would be a call

    def call_every(self, period_ms: int, function: Callable[..., object], *args: object) -> Repeated:
        """Run `function(*args)` periodically (see `Repeated`). Returns the `Repeated`, for `cancel`."""
        task = Repeated(self, period_ms, bound(function, args), sync=self._sync)
        self.add(task)
        return task

    def cancel(self, waiting: Handle | TimerTask) -> None:
        """For a task, the same as `task.cancel()`. For a handle: the function does not run, unless a drain has taken it
        before. A second cancel has no effect.

        With a `LoopExecutor`, a cancel or a move on the loop also stops a task or function that a drain has taken, as
        in asyncio: if its run has not begun, it does not run.

        Use a handle only with its own timer. In another timer, the number may be the handle of another function."""
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        if not isinstance(waiting, int):
            node: object = waiting
            if isinstance(node, CallNode):
                node.cancel()  # a branch of its own, because compiled code calls this method without a look-up
            elif isinstance(node, TimerTask):
                node.cancel()
            else:
                raise no_task(waiting)
            return
        lock = self._lock
        lock.acquire()
        try:
            # Most functions wait in the level that got the last one.
            wheel = self._wheel
            level = wheel._recent
            callback = level.buckets[waiting >> level.handle_shift & level.mask].calls.pop(waiting, None)
            if callback is None:
                callback = wheel.pop(waiting)
                if callback is None and self._handed is not None:
                    callback = self._handed.pop(waiting, None)
        finally:
            lock.release()
        # The function is kept until the lock is released, because its finalizer may use this timer. (Compiled code
        # drops a local variable after its last use. This is a use.)
        if callback is None:
            return

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`; a bucket in which all tasks are cancelled counts as due. If the executor raises an
        exception, the caller gets it, and the tasks wait again."""
        self._require_made_here()
        if self._drain():
            return True
        if timeout_ms <= 0:
            return False
        return self._wait_and_drain(self._now_ms() + timeout_ms)

    def size(self) -> int:
        """The number of waiting tasks and functions. Checks each bucket with functions."""
        self._require_made_here()
        with self._lock:
            return self._wheel.size()

    def next_due_ms(self) -> int | None:
        """The next time at which a drain can find something, in ms of the timer's clock. None if nothing waits. The
        drain may only move tasks to a lower level, or find a bucket whose tasks were all cancelled."""
        self._require_made_here()
        with self._lock:
            tick = self._wheel.next_due_tick()
            return None if tick is None else tick * self.tick_ms

    def close(self) -> None:
        """Drop the waiting tasks and functions, then as `SystemTimer.close`. Idempotent."""
        if not self._made_here():
            return
        if self.undriven is not None:
            self.undriven.tell(self.size())
        with self._lock:
            self._closed = True
            dropped = self._wheel.clear()
        for _, nodes, _ in dropped:
            for node in nodes:
                node.drop()
        # Outside the lock, as in `cancel`.
        dropped.clear()
        self._alarm.ring()
        close_executor(self._executor, self.name)

    def check(self) -> None:
        """Invariants of the wheel."""
        self._wheel.check()

    def _drain(self) -> bool:
        """Removes the due tasks and passes them to the executor. Returns False if no bucket was due."""
        if self.undriven is not None:
            self.undriven.driven.set(True)
        now_tick = self._now_ms() // self.tick_ms
        lock = self._lock
        lock.acquire()
        try:
            wheel = self._wheel
            if now_tick < wheel.idle_until:
                return False
            dues = wheel.take_due(now_tick)
            if self._handed is not None:
                for _, _, calls in dues or ():
                    self._handed.update(calls)
        finally:
            lock.release()
        if dues is None:
            return False
        self.hand_over(dues)
        return True

    def hand_over(self, dues: list[Due]) -> None:
        """For drains: submit the tasks to the executor as one action. If the executor refuses, the tasks wait again,
        and the exception is raised."""
        if not dues:
            return
        batch = DueBatch(dues, self)
        try:
            self._executor.submit(batch.run)
        except BaseException as error:
            # The executor has run the batch at once, and the exception is from the batch. So the executor refused
            # nothing.
            if batch.started:
                raise
            with self._lock:
                closed = self._closed
                if self._handed is not None:
                    for _, _, calls in dues:
                        for late in [key for key in calls if self._handed.pop(key, None) is None]:
                            del calls[late]
                if not closed:
                    self._wheel.put_back(dues)
            # If the timer was closed meanwhile, the tasks are dropped, like all waiting tasks.
            if not (closed and isinstance(error, ExecutorClosed)):
                raise

    def _wait_and_drain(self, end_ms: int) -> bool:
        while True:
            self._sync.loop_head(self)
            with self._lock:
                due_tick = self._wheel.next_due_tick()
                wake_ms = end_ms if due_tick is None else min(due_tick * self.tick_ms, end_ms)
                if self._closed:
                    return False
                # An add of a task that is due before `_wake_tick` rings. With several sleepers, it is the latest
                # wake-up.
                wake_tick = -(-wake_ms // self.tick_ms)
                if self._wake_tick is None or self._wake_tick < wake_tick:
                    self._wake_tick = wake_tick
                self._sleepers += 1
                ticket = self._alarm.ticket()
            wait_ms = wake_ms - self._now_ms()
            rung = wait_ms <= 0 or self._alarm.sleep(wait_ms, ticket)
            with self._lock:
                self._sleepers -= 1
                if self._sleepers == 0:
                    self._wake_tick = None
            if self._drain():
                return True
            # The sleep lasted `timeout_ms`. The clock may show an earlier time: a `ManualClock` does not move by
            # itself.
            if wake_ms == end_ms and (not rung or wait_ms <= 0):
                return False


class DueBatch:
    """The due tasks of one drain, in the order of their ticks: one action for the executor, with any number of tasks.

    [T3] Each task runs once. An exception of a task goes to the timer's fault policy, and the next tasks run. An
    exception of the policy, and an exit (see `purgatorio.faults`), is raised at the end (the first of several). Not
    promised: that `Executor.shutdown_now` counts tasks, because it counts a batch as one action."""

    __slots__ = ("_dues", "_timer", "started")

    def __init__(self, dues: list[Due], timer: IntrusiveTimer) -> None:
        self._dues = dues
        self._timer = timer
        self.started = False
        """Whether the executor has taken it. Looked at by the thread that submits, after `submit` has raised."""

    def run(self) -> None:
        """Run them all."""
        self.started = True
        faults = self._timer.faults
        handed = self._timer._handed
        first: BaseException | None = None
        for _, nodes, calls in self._dues:
            for node in nodes:
                if handed is not None and not node.is_wanted():
                    continue
                try:
                    node.run()
                except BaseException as error:
                    first = first_exit(first, error, node)
            for handle, callback in calls.items():
                if handed is not None and handed.pop(handle, None) is None:
                    continue
                try:
                    try:
                        callback()
                    except Exception as error:
                        faults.caught(error, "run", callback)
                except BaseException as error:
                    first = first_exit(first, error, callback)
        if first is not None:
            raise first


class Alarm:
    """A sleep that another thread can end, for a timer whose lock has no condition variable.

    [T2] A `ring` after `ticket()` ends a `sleep` with this ticket, even if the ring comes before the sleep: (1) Thread
    A, under the timer's lock, sees that no task is due, and takes a ticket. (2) Thread B adds a task that is due
    earlier, and rings. (3) A compares the ticket with the number of rings, under the alarm's lock. They differ, so A
    does not sleep. (Without the ticket, A would sleep too long: Go timingwheel #5, tokio #6682.) Lock order: the
    timer's lock may be held when `ticket` is called. The alarm's lock is taken alone.
    """

    __slots__ = ("_lock", "_rings", "_rung")

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("alarm")
        self._rung = sync.condition(self._lock, "alarm.rung")
        self._rings = sync.atomic_int(0, "alarm.rings")

    def ticket(self) -> int:
        """The number of rings so far."""
        return self._rings.get()

    def ring(self) -> None:
        """Wake the sleeping threads, and the threads that are about to sleep."""
        with self._lock:
            self._rings.add(1)
            self._rung.notify_all()

    def sleep(self, wait_ms: int, ticket: int) -> bool:
        """Sleep until a ring after `ticket`. False if the time ended first. Spurious wake-ups are possible."""
        with self._lock:
            return self._rings.get() != ticket or self._rung.wait(wait_ms)
