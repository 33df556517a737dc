"""The interface of the adapter with which a user tests a timer or purgatory in this process, and `Promise`.

Time is virtual: only `advance` moves the clock. All times are integers in nanoseconds, also if the subject has another
unit.

A *lack* is a declaration, with a reason, that the subject does not have a feature. Scenarios and clauses that need the
feature are SKIPPED with this reason. If a method is missing and no lack declares this, the test fails with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.rule import Number, Text, field_rules
from purgatorio_conformance.suite.probe import Probe
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.parse import Refusal

LACKS: Final[Mapping[str, str]] = {
    "cancel": "timers: a task cannot be cancelled",
    "size": "timers: the number of waiting tasks is not known",
    "between-ticks": "timers: delays and time are multiples of the tick",
    "past": "timers: a delay of zero or below is refused",
    "far": "timers: no delay may be longer than `longest_delay_ns`",
    "leap": "timers: time must pass one tick at a time",
    "re-entry": "timers: a task may not add or cancel tasks",
    "raising": "a callback must not raise",
    "callbacks": "purgatories: the suite cannot act inside try_complete and on_complete",
    "force": "purgatories: only the purgatory itself completes an operation",
    "timer": "purgatories: the calls that set and run an operation's time-out are not reported",
    "expiry": "purgatories: operations have no time-outs",
    "cancel-for-key": "purgatories: operations cannot be removed from the list of a key",
    "several-keys": "purgatories: an operation waits under one key only",
    "other-keys": "purgatories: a returned operation waits under none of its other keys",
    "gauges": "purgatories: the number of waiting operations is not known",
}
"""The lacks that a subject may declare. The subject gives the reason."""

CAPABILITIES: Final[Mapping[str, str]] = {
    "cancel": "cancel",
    "size": "gauge",
    "gauges": "gauge",
    "cancel-for-key": "cancel-key",
    "force": "force",
    "raising": "failing",
}
"""For each lack, the capability of the protocol that is missing."""


OFFERS: Final[Mapping[str, str]] = {
    "fixed-rate": "timers: `fixed_rate`; the promise says its `catch_up`",
    "fixed-delay": "timers: `fixed_delay`",
    "reset": "timers: `reset`",
    "reset-same": "timers: a reset always has the delay of the add, as in a watchdog",
    "reset-periodic": "timers: `reset` of a periodic task: its periods begin again, also after a cancel",
    "period-first": "timers: the first run of a periodic task comes a period after it was added",
    "lasting": "timers: `move` only moves the clock, inside a run: the run lasts",
    "halts": "`close`: after it, no task and no expiry runs, also if `advance` is called (it may raise)",
    "turns": "profile hand-over: `advance` only moves the clock, and by 0 it runs one callback of the event loop",
    "amounts": "profile hand-over: an operation may wait for two units, see `probe.units`",
}
"""The features that the promise may offer, in addition to tasks that run once and to units."""


class BadPromise(ValueError):
    """Raised if the promise cannot be checked: it has an unknown profile, lack or clause, or the adapter lacks a
    method."""


@dataclass(frozen=True)
class Promise:
    """One profile that the subject promises, and its constants. The constants have no default values.

    `tick_ns`: the granularity. The suite chooses delays near multiples of it. `early_ns`, `late_ns`: how long before
    and after its deadline a task may start. A clock jump may make a task late by its length in addition. Without
    `early_ns`, T1 and T4 are SKIPPED; without `late_ns`, T2 is SKIPPED. `wheel_size`: the number of buckets of a wheel.
    `longest_delay_ns`: None for no limit. `purge_interval`: a number of operations; if None, P1 is SKIPPED. `threads`:
    whether several threads may call at once. None means yes for a purgatory, and no for a timer. `lacks`: see `LACKS`.
    `offers`: see `OFFERS`. `expected_failures`: the reason why the test of a clause (or clause/scenario) is expected to
    be VIOLATED. If the verdict is PASS, the test fails. `catch_up`: what a task at a fixed rate does after missed runs.
    `burst`: all runs; `once`: one run for all; `skip`: no run; `restart`: one run, from which the periods count.
    `turn`: if a task adds a task without a delay, the new task runs in the `same` advance or in the `next`."""

    profile: str
    tick_ns: int
    early_ns: int | None = None
    late_ns: int | None = None
    wheel_size: int | None = None
    longest_delay_ns: int | None = None
    purge_interval: int | None = None
    threads: bool | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    subject: str = "subject"
    version: str = ""
    language: str = "Python"
    offers: tuple[str, ...] = ()
    catch_up: str | None = None
    turn: str | None = None

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise BadPromise(f"no profile {self.profile!r}; there are {', '.join(PROFILES)}")
        for rule in field_rules(Description):
            # They are the limits of a program, too.
            value: object = getattr(self, rule.name, None)
            try:
                if isinstance(rule.rule, Number | Text) and value is not None:
                    rule.rule.taken(rule.name, value)
            except Refusal as refusal:
                raise BadPromise(str(refusal)) from None
        if self.longest_delay_ns is not None and self.longest_delay_ns < 1:
            raise BadPromise(
                f"longest_delay_ns is {self.longest_delay_ns}: write at least 1, or None for no limit"
            )
        unknown = [lack for lack in self.lacks if lack not in LACKS]
        if unknown:
            raise BadPromise(f"no such lack: {', '.join(unknown)}; there are {', '.join(LACKS)}")
        offers: object = self.offers
        if isinstance(offers, str):
            raise BadPromise(f"offers is a tuple: write offers=({offers!r},)")
        unknown = [offer for offer in self.offers if offer not in OFFERS]
        if unknown:
            raise BadPromise(f"no such offer: {', '.join(unknown)}; there are {', '.join(OFFERS)}")
        if self.catch_up is not None and "fixed-rate" not in self.offers:
            raise BadPromise("a catch_up is promised only with a fixed rate")

    @property
    def has_threads(self) -> bool:
        """Whether several threads may call at once."""
        return "O1" in PROFILES[self.profile].clauses if self.threads is None else self.threads


SAME: Final = sorted(Promise.__dataclass_fields__.keys() & Description.__dataclass_fields__.keys())
"""The fields that a promise and the description of a program have in common."""


class TimerUnderTest(Protocol):
    """A timer whose clock is at 0. It also has `add` (`Adds`), unless all its tasks are periodic, and `cancel`
    (`Cancels`) and `size` (`Counts`), unless it declares the lack."""

    def advance(self, by_ns: int) -> None:
        """Move the clock forward by `by_ns`. Run all due tasks on the calling thread before returning."""


@runtime_checkable
class Closes(Protocol):
    """A timer or purgatory that needs a call at the end of a run, for example to end tasks of an event loop."""

    def close(self) -> None:
        """Called at the end of a run."""


@runtime_checkable
class Settles(Protocol):
    """A purgatory whose calls may leave unfinished work, such as callbacks of an event loop."""

    def settle(self) -> None:
        """Return when all work has ended."""


@runtime_checkable
class Counts(Protocol):
    """A timer that counts its waiting tasks."""

    def size(self) -> int:
        """The number of waiting tasks."""


@runtime_checkable
class RepeatsAtRate(Protocol):
    """A timer with tasks at a fixed rate."""

    def fixed_rate(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        """Run `task` after `first_ns`, and then at every period from that deadline on, until it is cancelled. Returns a
        handle for `cancel`."""


@runtime_checkable
class RepeatsAfterDelay(Protocol):
    """A timer with tasks at a fixed delay."""

    def fixed_delay(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        """Run `task` after `first_ns`, and then one period after the end of each run, until it is cancelled."""


@runtime_checkable
class Moves(Protocol):
    """A timer whose clock can be moved inside a run."""

    def move(self, by_ns: int) -> None:
        """Set the clock forward, and run nothing."""


@runtime_checkable
class Resets(Protocol):
    """A timer whose deadlines can be moved."""

    def reset(self, handle: object, delay_ns: int) -> bool | None:
        """Move the deadline to `delay_ns` from now. True: the task runs at the new deadline, not earlier. False: it has
        ended. None: a thread may have begun to run it before, or the timer does not tell."""


class PurgatoryUnderTest(Protocol):
    """A purgatory whose clock is at 0. Each of its operations calls a `Probe`.

    If it has no time-outs (`advance`), no `cancel_for_key` or no `gauges`, it must declare the lack. The suite then
    never calls the method.
    """

    def register(self, probe: Probe) -> bool:
        """Make an operation that calls `probe` (see `Probe`), and register it under `probe.keys` with the time-out
        `probe.delay_ns`. Returns True iff this call completed it."""

    def check(self, key: str) -> int:
        """Report an event for `key`. Returns the number of operations that this call completed."""

    def force(self, probe: Probe) -> bool:
        """Complete the probe's operation. Returns True iff this call completed it."""

    def advance(self, by_ns: int) -> None:
        """Move the clock forward by `by_ns`. Expire all timed-out operations on the calling thread before returning.
        Purge if a purge is due."""

    def cancel_for_key(self, key: str) -> Sequence[Probe]:
        """Remove all operations that wait under `key` from the list of the key. Returns their probes."""

    def gauges(self) -> tuple[int, int] | tuple[int, int, int]:
        """The number of entries in the watch lists, of operations with a pending time-out, and (if known) of keys with
        a list (P4)."""


TimerFactory = Callable[[Promise], TimerUnderTest]
"""Makes a fresh timer for each program."""

PurgatoryFactory = Callable[[Promise], PurgatoryUnderTest]
"""Makes a fresh purgatory for each program."""
