"""`Purgatory`: the place where delayed operations wait (Kafka's DelayedOperationPurgatory).

Promises (clause ids in brackets). The dialects `pending_flag` and `locked` add promises (see their modules).
* [O4] If an event comes during a registration, the completion is not lost.
* [O5] Every operation is completed, at the latest by its time-out, unless `cancel_for_key` returned the operation. With
  `complete_at_shutdown`, the default, `close` completes the waiting operations.
* [O7] `try_complete_else_watch` returns True if and only if the call completed the operation. `check_and_complete`
  returns the number of operations that the call completed.
* [O8] An exception in a callback of one operation loses no other operation and stops no thread.
* [P1] The number of completed operations in the lists is bounded. The purgatory estimates the number of operations in
  its lists. If the estimate exceeds (number of timer tasks + `purge_interval`), a purge removes all completed
  operations. The reaper tests this condition at least every 200 ms. Without a reaper, `pass_time` tests it.
* [P3] While a callback runs, the purgatory holds no lock, except the lock of the callback's operation.

Not promised: exact gauges under load, an order of the operations of one key, or an atomic `check_and_complete`. A
completed operation may stay in the lists of its other keys until a purge.

Kafka differs in four ways. Its shutdown leaves operations pending, closes even a shared timer, and after it a new
operation never expires (here its registration raises TimerClosed). An exception of a callback goes to the caller. To
get the rest of Kafka's behavior, choose `complete_at_shutdown=False` and `purgatorio.faults.PROPAGATE`, and close the
timer.
"""

from collections.abc import Hashable, Sequence, Set
from contextlib import suppress
from typing import Generic, TypeVar

from purgatorio.compiling import mypyc_attr
from purgatorio.delayed.gauges import GaugeRegistry, PurgatoryGauges
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.watchers import WatcherList, Watchers
from purgatorio.faults import CONTAIN, FaultPolicy, first_exit
from purgatorio.given import at_least, given, require_name
from purgatorio.invariant import require
from purgatorio.owned import Owned
from purgatorio.process import PROCESS, made_before_fork
from purgatorio.reaper import POLL_MS, Reaper, ReaperTimer, wake
from purgatorio.sync import ExecutorClosed, Sync
from purgatorio.threads import THREADS, off_the_loop
from purgatorio.timer.interface import Timer, TimerClosed
from purgatorio.timer.intrusive.timer import IntrusiveTimer
from purgatorio.timer.undriven import expect_a_driver, refuse_a_second_reaper, tell_undriven

DEFAULT_SHARDS = 512
"""As in Kafka 2.2 and later (KAFKA-6431)."""

DEFAULT_PURGE_INTERVAL = 1000
"""Operations that may be garbage before a purge."""

Op = TypeVar("Op", bound=DelayedOperation)


@mypyc_attr(allow_interpreted_subclasses=True)
class Purgatory(Owned, Generic[Op]):
    """Operations wait here under keys until an event, a time-out or a shutdown completes them. Each operation is
    completed once.

    `timer`: by default an `IntrusiveTimer` with a tick of 1 ms. `reaper=True`: a thread named `ExpirationReaper-<name>`
    drives the timer, and `close` closes the timer. `reaper=False`: several purgatories may share a `timer`, and the
    creator of the timer closes the timer. `timer_enabled=False`: operations never expire. `registry`: exports the
    gauges. Raises ValueError for an empty name, fewer than 1 shard, a negative purge interval, or, with
    `reaper`, a `ReaperTimer` or a timer that has a reaper (noticed if the timer has the real clock)."""

    __slots__ = ("_closed", "_complete_at_shutdown", "_estimated_operations", "_owns_timer", "_purge_interval",
                 "_reaper", "_registry", "_sync", "_timer", "_timer_enabled", "_watcher_lists", "name")  # fmt: skip

    def __init__(
        self,
        name: str,
        timer: Timer | None = None,
        *,
        purge_interval: int = DEFAULT_PURGE_INTERVAL,
        shards: int = DEFAULT_SHARDS,
        reaper: bool = True,
        timer_enabled: bool = True,
        complete_at_shutdown: bool = True,
        faults: FaultPolicy = CONTAIN,
        registry: GaugeRegistry | None = None,
        sync: Sync = THREADS,
    ) -> None:
        require_name("purgatory", name)
        at_least(1, shards=shards)
        at_least(0, purge_interval=purge_interval)
        if timer is not None:
            given("a timer", timer)
        given("a fault policy", faults)
        if registry is not None:
            given("a gauge registry", registry)
        if reaper and isinstance(timer, ReaperTimer):
            raise ValueError("a ReaperTimer drains itself: write reaper=False")
        if reaper:
            refuse_a_second_reaper(timer)
        super().__init__()
        self.name = name
        self._sync = sync
        self._timer: Timer = IntrusiveTimer(name, faults=faults, sync=sync) if timer is None else timer
        self._owns_timer = reaper or timer is None
        self._timer_enabled = timer_enabled
        self._purge_interval = purge_interval
        self._complete_at_shutdown = complete_at_shutdown
        self._registry = registry
        self._closed = sync.atomic_flag(False, "purgatory.closed")
        self._estimated_operations = sync.atomic_int(0, "purgatory.estimate")
        self._watcher_lists = tuple(WatcherList(faults, sync) for _ in range(shards))
        if registry is not None:
            registry.add(self)
        if reaper:
            expect_a_driver(self._timer)
        # The last line, because the thread uses all the attributes.
        self._reaper = (
            Reaper(f"ExpirationReaper-{name}", self._reap, faults=faults, sync=sync) if reaper else None
        )

    def try_complete_else_watch(self, operation: Op, keys: Sequence[Hashable]) -> bool:
        """Complete `operation` if its condition holds. Otherwise let it wait for an event of `keys` or its time-out.

        True iff this call completed the operation. (If False, another thread may have completed it.) Raises ValueError
        without a key. Raises TypeError if `operation` is no operation, a key has no hash, or `keys` is a string or an
        iterator. Raises TimerClosed if the timer was closed and `complete_at_shutdown` does not apply. Then nothing is
        registered, but a concurrent event may still complete the operation.
        """
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        try:
            dialect = operation.dialect
        except AttributeError:
            raise _no_operation(operation) from None
        if type(keys) is not list and type(keys) is not tuple:
            _require_keys(keys)
        if not keys:
            raise ValueError("an operation needs a key to wait under")
        for key in keys:
            hash(key)
        try:
            if dialect.register(operation, keys, self._watch, self._count_one):
                return True
        except Exception:
            raise
        except BaseException:
            # [O5] An exit of `try_complete` or of a callback. If the operation is in a list already, it gets its
            # time-out.
            if any(waiting is operation for key in keys for waiting in self._waiting_under(key)):
                with suppress(ExecutorClosed, TimerClosed):
                    self._arm(operation, keys)
                self._complete_late(operation)
            raise
        self._arm(operation, keys)
        return self._complete_late(operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Evaluate every operation that waits under `key`, after an event of `key`. Returns the number of operations
        that this call completed. Make the change visible before the call, and hold no exclusive lock during the call.
        """
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        watchers = self._watcher_list(key).watchers(key)
        return 0 if watchers is None else watchers.try_complete_watched()

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove the operations that wait under `key` from its list and from the timer, and return them.

        The returned operations are *not* completed, and no callback is called. If a returned operation also waits under
        another key, an event of that key can still complete it. If its registration has not returned yet, its time-out
        can. All other returned operations are never completed. The result also has the completed operations of the
        list.
        """
        self._require_made_here()
        return self._watcher_list(key).cancel(key)

    def pass_time(self, timeout_ms: int = 0) -> bool:
        """One turn of the reaper, for a purgatory without a reaper: drain the timer, then purge if necessary. Waits up
        to `timeout_ms` for a due task. Returns the result of the timer's `advance_clock`."""
        advanced = self._timer.advance_clock(timeout_ms)
        self.purge_if_needed()
        return advanced

    def purge_if_needed(self) -> int:
        """Unlink all completed operations if there may be more than `purge_interval`. Returns the number of unlinked
        entries.

        *Before* the purge cleans the lists, it sets the estimate to the number of tasks in the timer. So the estimate
        counts operations that are completed and removed during the purge. The estimate does not count an operation
        whose time-out is submitted and has not run. The entry of this operation may stay until a check of its key, or
        until the list of its key is dropped."""
        delayed = self.num_delayed()
        if self._estimated_operations.get() - delayed <= self._purge_interval:
            return 0
        self._estimated_operations.set(delayed)
        return sum(watchers.purge_completed() for watchers in self._all_watchers())

    def watched(self) -> int:
        """[P2] The gauge PurgatorySize: the number of watch entries. The cost is proportional to the number of keys."""
        self._require_made_here()
        return sum(watchers.size() for watchers in self._all_watchers())

    def num_delayed(self) -> int:
        """The gauge NumDelayedOperations: the number of tasks in the timer, of all its users. 0 without a timer."""
        self._require_made_here()
        return self._timer.size() if self._timer_enabled else 0

    def gauges(self) -> PurgatoryGauges:
        """Both gauges."""
        return PurgatoryGauges(self.watched(), self.num_delayed())

    def close(self) -> int:
        """Stop the reaper and its timer (Kafka's `shutdown`). Returns the number of operations that this call
        completed. Idempotent. At the end, raises the first exit of a callback, if any (see `purgatorio.faults`).

        With `complete_at_shutdown`, the calling thread completes every waiting operation, without `on_expiration`. A
        concurrent registration completes its own operation.
        """
        if not self._made_here() or self._closed.get_and_set(True):
            return 0
        completed = 0
        # [O5] An exit of a step (Ctrl-C, a cancelled task) comes after the other steps.
        try:
            self._stop_reaper()
        finally:
            try:
                completed = self._complete_waiting()
            finally:
                self._end_timer()
        return completed

    async def __aexit__(self, *_: object) -> None:
        """As `close`, without blocking the event loop. The waiting operations are completed on the loop's thread."""
        if not self._made_here() or self._closed.get_and_set(True):
            return
        try:
            await off_the_loop(self._stop_reaper)
        finally:
            try:
                self._complete_waiting()
            finally:
                await off_the_loop(self._end_timer)

    def check(self) -> None:
        """Invariants: each key is in its own list; the estimate is not negative; and the invariants of every list."""
        for keys in self._watcher_lists:
            keys.check()
            for watchers in keys.all_watchers():
                require(
                    self._watcher_list(watchers.key) is keys, f"key {watchers.key!r} is in a foreign list"
                )
        require(self._estimated_operations.get() >= 0, f"estimate {self._estimated_operations.get()}")

    def _watcher_list(self, key: Hashable) -> WatcherList:
        return self._watcher_lists[hash(key) % len(self._watcher_lists)]

    def _watch(self, key: Hashable, operation: DelayedOperation) -> None:
        # `_watcher_list`, without the call.
        lists = self._watcher_lists
        lists[hash(key) % len(lists)].watch(key, operation)

    def _count_one(self) -> None:
        self._estimated_operations.add(1)

    def _all_watchers(self) -> list[Watchers]:
        return [watchers for keys in self._watcher_lists for watchers in keys.all_watchers()]

    def _arm(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        """Start the time-out, outside the operation's lock. Cancel the time-out if the operation is completed by then.

        Without this recheck (KAFKA-2226): (1) A finds the operation incomplete. (2) B completes the operation, and
        cancels a time-out that is not in the timer yet. (3) A adds the time-out, which stays in the timer to its end.
        """
        if operation.is_completed():
            return
        if self._timer_enabled:
            try:
                self._timer.add(operation)
            except (ExecutorClosed, TimerClosed):
                # [O5] Without a time-out, the operation might wait forever, so A removes it from the lists. The timer
                # was closed before the registration, or: (1) A adds the operation to the lists. (2) B closes the timer.
                # (3) A adds the time-out. If `close` of this purgatory closed the timer, the caller completes the
                # operation.
                if not (self._complete_at_shutdown and self._closed.get()):
                    for key in keys:
                        watchers = self._watcher_list(key).watchers(key)
                        if watchers is not None:
                            watchers.unwatch(operation)
                    if not operation.is_completed():
                        raise
        if operation.is_completed():
            operation.cancel()

    def _complete_late(self, operation: Op) -> bool:
        """Complete an operation that was registered during a shutdown. True iff this call completed it."""
        # [O5] A registration during a shutdown must not leave its operation pending. A shutdown sets the flag, then
        # completes all operations in the lists. Suppose that A tested the flag first: (1) A finds the flag clear. (2) B
        # sets the flag and completes the lists. (3) A adds its operation to a list. So A tests the flag *after* step 3:
        # either B finds the operation, or A sees the flag.
        return self._complete_at_shutdown and self._closed.get() and operation.force_complete()

    def _stop_reaper(self) -> None:
        if self._reaper is not None:
            self._reaper.initiate_shutdown()
            wake(self._timer, self._sync)
            self._reaper.await_shutdown()

    def _end_timer(self) -> None:
        try:
            if self._owns_timer:
                self._timer.close()
        finally:
            if self._registry is not None:
                self._registry.remove(self)
            if self._reaper is not None:
                self._reaper.raise_exit()

    def _complete_waiting(self) -> int:
        """With `complete_at_shutdown`, completes every waiting operation. If callbacks raise, the first exception is
        raised at the end."""
        if not self._complete_at_shutdown:
            return 0
        completed = 0
        first: BaseException | None = None
        for watchers in self._all_watchers():
            for operation in watchers.operations():
                try:
                    completed += operation.force_complete()
                except BaseException as error:
                    first = first_exit(first, error, operation)
        if self._timer_enabled:
            tell_undriven(self._timer, completed)
        if first is not None:
            raise first
        return completed

    def _waiting_under(self, key: Hashable) -> list[DelayedOperation]:
        watchers = self._watcher_list(key).watchers(key)
        return [] if watchers is None else watchers.operations()

    def _reap(self) -> None:
        self.pass_time(POLL_MS)


def _no_operation(wrong: object) -> TypeError:
    if isinstance(wrong, DelayedOperation):
        return TypeError(f"__init__ of {type(wrong).__name__} does not call super().__init__(delay_ms)")
    return TypeError(f"a purgatory holds objects of type DelayedOperation, not {wrong!r}")


def _require_keys(keys: object) -> None:
    if isinstance(keys, str | bytes | bytearray):
        raise TypeError(f"keys are a list: write [{keys!r}], not {keys!r}")
    if not isinstance(keys, Sequence | Set):
        raise TypeError(f"keys are a list, not {keys!r}")
