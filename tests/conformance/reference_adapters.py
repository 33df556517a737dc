"""The reference, plugged into the conformance suite as a user would: adapters of a few lines around public names."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from purgatorio import (
    ActionQueue,
    ActionTask,
    HashedWheel,
    HeapTimer,
    ManualClock,
    Purgatory,
    QueuedExecutor,
    SystemTimer,
    Timer,
)
from purgatorio.faults import ContainFaults
from purgatorio.sync import Lock
from purgatorio.timer import IntrusiveTimer
from purgatorio_conformance.builtin.reference import ProbedOperation, PurgatoryAdapter, ToldTimer
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.probe import Probe
from purgatorio_stress.recorded import DIALECTS

NS_PER_MS: Final = 1_000_000
IN_MS: Final = {"between-ticks": "it counts in milliseconds"}


class Quiet(ContainFaults):
    """A fault policy that ignores the exceptions of the suite."""

    def report(self, error: Exception, where: str, subject: object) -> None:
        """Expected."""


class AnyTimer:
    def __init__(self, timer: Timer, clock: ManualClock, executor: QueuedExecutor) -> None:
        self.timer, self.clock, self.executor = timer, clock, executor

    def add(self, delay_ns: int, task: Callable[[], None]) -> ActionTask:
        added = ActionTask(delay_ns // NS_PER_MS, task)
        self.timer.add(added)
        self.executor.run_all()
        return added

    def cancel(self, handle: object) -> None:
        assert isinstance(handle, ActionTask)
        handle.cancel()

    def advance(self, by_ns: int) -> None:
        self.clock.advance(by_ns // NS_PER_MS)
        self.timer.advance_clock(0)
        self.executor.run_all()

    def size(self) -> int:
        return self.timer.size()


def any_timer(kind: Callable[..., Timer], promise: Promise, *, wheel: bool = True) -> AnyTimer:
    clock, executor = ManualClock(), QueuedExecutor(faults=Quiet())
    sized = {"wheel_size": promise.wheel_size or 8} if wheel else {}
    tick_ms = promise.tick_ns // NS_PER_MS
    timer = kind("t", tick_ms=tick_ms, clock=clock, executor=executor, faults=Quiet(), **sized)
    return AnyTimer(timer, clock, executor)


wheel = partial(any_timer, SystemTimer)
heap_timer = partial(any_timer, HeapTimer, wheel=False)
hashed_wheel = partial(any_timer, HashedWheel)
intrusive_timer = partial(any_timer, IntrusiveTimer)


class AnyPurgatory(PurgatoryAdapter):
    def __init__(self, promise: Promise) -> None:
        self.clock, self.executor = ManualClock(), QueuedExecutor(faults=Quiet())
        tick_ms, size = promise.tick_ns // NS_PER_MS, promise.wheel_size or 8
        timer = SystemTimer(
            "t", tick_ms=tick_ms, wheel_size=size, clock=self.clock, executor=self.executor, faults=Quiet()
        )
        interval = promise.purge_interval or 0
        purgatory = Purgatory[ProbedOperation](
            "p", ToldTimer(timer), purge_interval=interval, reaper=False, faults=Quiet()
        )
        super().__init__(purgatory, promise.profile)

    def operation(self, probe: Probe) -> ProbedOperation:
        return ProbedOperation(probe, self.profile, Quiet())

    def register(self, probe: Probe) -> bool:
        done = super().register(probe)
        self.executor.run_all()
        return done

    def advance(self, by_ns: int) -> None:
        self.clock.advance(by_ns // NS_PER_MS)
        self.purgatory.pass_time(0)
        self.executor.run_all()


class GroupedOperation(ProbedOperation):
    """One whose answer needs the locks of its keys' groups, one after the other."""

    groups: Callable[[str], Lock]

    def on_complete(self) -> None:
        for key in self.probe.keys:
            with self.groups(key):
                pass
        super().on_complete()


class GroupedPurgatory(AnyPurgatory):
    """A purgatory as in Kafka's coordinators: each key is a group with a lock. A thread that changes a group has its
    lock, and puts the check of its key on an `ActionQueue`. The queue runs when the lock is released."""

    def __init__(self, promise: Promise) -> None:
        super().__init__(promise)
        self.locks: dict[str, Lock] = {}

    def group(self, key: str) -> Lock:
        return self.locks.setdefault(key, threading.RLock())

    def operation(self, probe: Probe) -> ProbedOperation:
        operation = GroupedOperation(probe, self.profile, Quiet())
        operation.groups = self.group
        return operation

    def check(self, key: str) -> int:
        actions, completed = ActionQueue(), list[int]()
        with self.group(key):
            actions.add(lambda: completed.append(self.purgatory.check_and_complete(key)))
        actions.run_all()
        return sum(completed)


WHEEL: Final = Promise(
    "pending-flag",
    tick_ns=2 * NS_PER_MS,
    early_ns=NS_PER_MS,
    late_ns=0,
    wheel_size=3,
    subject="SystemTimer",
    lacks=IN_MS,
)
HEAP: Final = Promise("locked", tick_ns=NS_PER_MS, early_ns=0, late_ns=0, subject="HeapTimer", lacks=IN_MS)
# No profile of netty's: its executor has all that is due at once, and a task of these that cancels another is too late.
HASHED: Final = Promise(
    "timer",
    tick_ns=NS_PER_MS,
    early_ns=0,
    late_ns=0,
    wheel_size=4,
    subject="HashedWheel",
    lacks=IN_MS,
)
PURGATORIES: Final = [
    Promise(
        profile,
        tick_ns=NS_PER_MS,
        early_ns=0,
        late_ns=0,
        wheel_size=3,
        purge_interval=5,
        subject="Purgatory",
    )
    for profile in DIALECTS
]
