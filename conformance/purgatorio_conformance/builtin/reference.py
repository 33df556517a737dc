"""The reference as a subject: a purgatory with real threads, in both dialects, with an adapter of the suite. Its own
reaper and executor expire operations.

The declared bounds: `early_ns` is (tick - 1 ms), as the timer promises. `late_ns` is 0, but the driver allows for a
busy machine.
"""

import itertools
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from purgatorio import (
    CONTAIN,
    LOCKED,
    PENDING_FLAG,
    ActionTask,
    DelayedOperation,
    FaultPolicy,
    MonotonicClock,
    Purgatory,
    SystemTimer,
    Timer,
    TimerTask,
)
from purgatorio.timer import IntrusiveTimer, compiled
from purgatorio_conformance.builtin.program import DrivenSubject
from purgatorio_conformance.protocol.session import Listener
from purgatorio_conformance.subject.plan import MS, Plan
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import AdapterSubject
from purgatorio_conformance.suite.in_process import LANES, DrivenPurgatory, describe
from purgatorio_conformance.suite.probe import Probe
from purgatorio_conformance.suite.stage import RunEnded

PURGE_INTERVAL: Final = 100
"""Small enough for several purges in a run of some hundred operations."""

RESTLESS_S: Final = 15.0


def _is_news(entry: logging.LogRecord) -> bool:
    return entry.exc_info is None or entry.exc_info[0] is not RunEnded


# The suite itself ends these callbacks, after a run that was broken off.
logging.getLogger("purgatorio").addFilter(_is_news)


@dataclass(frozen=True, kw_only=True)
class ReferenceSubject(DrivenSubject):
    """One configuration, made by `reference_subject`."""

    promise: Promise
    intrusive: bool

    @property
    def version(self) -> str:
        """The version of the distribution, or `source` if it is not installed."""
        try:
            return version("purgatorio")
        except PackageNotFoundError:
            return "source"

    def driven(self, plan: Plan, listener: Listener) -> AdapterSubject:
        virtual = describe(replace(self.promise, version=self.version), "purgatory")
        kept = (one for one in virtual.capabilities if one != "virtual-time")
        description = replace(virtual, capabilities=("real-time", *kept), unit_ns=MS, gates=())
        makes = partial(DrivenPurgatory, self.promise, partial(_RealTime, self.intrusive))
        return AdapterSubject(
            (), description, "purgatory", self.mode, self.name, listener=listener, makes=makes
        )


def reference_subject(
    profile: str, tick_ms: int, wheel_size: int, *, intrusive: bool = False
) -> ReferenceSubject:
    """Make a subject from a dialect (the name of its profile), a tick in milliseconds, and a number of buckets.
    `intrusive`: uses `IntrusiveTimer`, in the imported build, instead of Kafka's classes."""
    promise = Promise(
        profile, tick_ns=tick_ms * MS, early_ns=(tick_ms - 1) * MS, late_ns=0, wheel_size=wheel_size,
        purge_interval=PURGE_INTERVAL, subject="purgatorio reference",
        language="Python, compiled by mypyc" if compiled else "Python",
    )  # fmt: skip
    return ReferenceSubject(
        name=f"reference-{profile}-tick{tick_ms}-{'intrusive' if intrusive else 'wheel'}{wheel_size}",
        profile=profile,
        tick_ns=tick_ms * MS,
        threads=LANES,
        promise=promise,
        intrusive=intrusive,
    )


def reference_subjects() -> list[ReferenceSubject]:
    """Both dialects, ticks 1 and 10, wheels of 2, 3 and 20 buckets; `IntrusiveTimer` with 256 and with 2."""
    sizes = (
        *((tick_ms, size, False) for tick_ms in (1, 10) for size in (2, 3, 20)),
        (1, 256, True),
        (10, 2, True),
    )
    found = itertools.product(("pending-flag", "locked"), sizes)
    return [reference_subject(profile, *size, intrusive=own) for profile, (*size, own) in found]


class ProbedOperation(DelayedOperation):
    """An operation of the reference that tells its probe of each call. `profile`: the name of its dialect."""

    def __init__(self, probe: Probe, profile: str, faults: FaultPolicy = CONTAIN) -> None:
        super().__init__(
            probe.delay_ns // MS, dialect=LOCKED if profile == "locked" else PENDING_FLAG, faults=faults
        )
        self.probe = probe

    def try_complete(self) -> bool:
        return self.probe.try_complete(self.force_complete)

    def force_complete(self) -> bool:
        return self.probe.force_complete(super().force_complete)

    def on_complete(self) -> None:
        self.probe.on_complete()

    def on_expiration(self) -> None:
        self.probe.on_expiration()

    def cancel(self) -> None:
        self.probe.timer_cancel(super().cancel)

    def run(self) -> None:
        self.probe.timer_fire(super().run)


class ToldTimer:
    """A timer that tells of the adds of operations, and counts the turns of the reaper."""

    def __init__(self, timer: Timer) -> None:
        self.cancel, self.size, self.close = timer.cancel, timer.size, timer.close
        self._timer = timer
        self.turns = 0

    def add(self, task: TimerTask) -> None:
        if isinstance(task, ProbedOperation):
            task.probe.timer_add(partial(self._timer.add, task))
        else:
            self._timer.add(task)

    def advance_clock(self, timeout_ms: int) -> bool:
        self.turns += 1
        return self._timer.advance_clock(timeout_ms)


class PurgatoryAdapter:
    """The suite's adapter of a purgatory of the reference. `profile`: the name of its dialect."""

    def __init__(self, purgatory: Purgatory[ProbedOperation], profile: str) -> None:
        self.purgatory, self.profile = purgatory, profile
        self._operations: dict[Probe, ProbedOperation] = {}

    def operation(self, probe: Probe) -> ProbedOperation:
        return ProbedOperation(probe, self.profile)

    def register(self, probe: Probe) -> bool:
        operation = self._operations[probe] = self.operation(probe)
        return self.purgatory.try_complete_else_watch(operation, probe.keys)

    def check(self, key: str) -> int:
        return self.purgatory.check_and_complete(key)

    def force(self, probe: Probe) -> bool:
        return self._operations[probe].force_complete()

    def advance(self, by_ns: int) -> None:
        raise AssertionError("its time is real")

    def cancel_for_key(self, key: str) -> Sequence[Probe]:
        return [one.probe for one in self.purgatory.cancel_for_key(key) if isinstance(one, ProbedOperation)]

    def gauges(self) -> tuple[int, int] | tuple[int, int, int]:
        now = self.purgatory.gauges()
        return now.purgatory_size, now.num_delayed_operations


class _RealTime(PurgatoryAdapter):
    def __init__(self, intrusive: bool, promise: Promise) -> None:
        kind, self._tick_ms = IntrusiveTimer if intrusive else SystemTimer, promise.tick_ns // MS
        size, clock = promise.wheel_size or 20, MonotonicClock()
        self._timer = ToldTimer(kind("reference", tick_ms=self._tick_ms, wheel_size=size, clock=clock))
        purgatory = Purgatory[ProbedOperation](
            "reference", self._timer, purge_interval=PURGE_INTERVAL, complete_at_shutdown=False
        )
        super().__init__(purgatory, promise.profile)

    def settle(self) -> None:
        """Wait until the executor is idle, and the reaper made a whole turn, in which it may purge."""
        turn = self._timer.turns
        while self._timer.turns < turn + 2:
            over = threading.Event()
            self._timer.add(ActionTask(self._tick_ms, over.set))
            if not over.wait(RESTLESS_S):
                return

    def close(self) -> None:
        self.purgatory.close()
