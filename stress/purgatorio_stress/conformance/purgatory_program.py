"""A program for a purgatory under test, step by step, in virtual time and on one thread; and carrying it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from purgatorio_spec.trace.record import State
from purgatorio_stress.conformance.contract import BadPromise, Promise, PurgatoryFactory, PurgatoryUnderTest
from purgatorio_stress.conformance.late_bound import LateBound
from purgatorio_stress.conformance.probe import Probe, in_range, in_words
from purgatorio_stress.conformance.virtual_time import NEVER_NS, Pass, header_of
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.recording import Recording

__all__ = [
    "NEVER_NS",
    "CancelKey",
    "Check",
    "Force",
    "Pass",
    "PurgatoryProgram",
    "PurgatoryStep",
    "Ready",
    "Register",
    "Spoil",
    "carry_out",
]


@dataclass(frozen=True, slots=True)
class Register:
    """An operation is registered. `ready`: its condition holds `before`, `no`t yet, or comes true in the `window`: in
    the middle of its first try, with an event on its first key. `then`: what its `on_complete` does: check this key, or
    raise."""

    operation: str
    keys: tuple[str, ...]
    delay_ns: int = NEVER_NS
    ready: str = "no"
    then: Check | str = ""

    def __str__(self) -> str:
        timeout = "never" if self.delay_ns >= NEVER_NS else in_words(self.delay_ns)
        told = [f"ready {self.ready}" if self.ready != "no" else "", f"then {self.then}" if self.then else ""]
        return ", ".join(
            [
                f"register({self.operation}, {'+'.join(self.keys)}, {timeout})",
                *(word for word in told if word),
            ]
        )


@dataclass(frozen=True, slots=True)
class Ready:
    """Its condition holds from here on."""

    operation: str

    def __str__(self) -> str:
        return f"ready({self.operation})"


@dataclass(frozen=True, slots=True)
class Spoil:
    """Its `try_complete` raises from here on."""

    operation: str

    def __str__(self) -> str:
        return f"spoil({self.operation})"


@dataclass(frozen=True, slots=True)
class Check:
    """Something happened to this key."""

    key: str

    def __str__(self) -> str:
        return f"check({self.key})"


@dataclass(frozen=True, slots=True)
class Force:
    """Somebody completes it, whatever its condition."""

    operation: str

    def __str__(self) -> str:
        return f"force({self.operation})"


@dataclass(frozen=True, slots=True)
class CancelKey:
    """What waits under this key is taken off it."""

    key: str

    def __str__(self) -> str:
        return f"cancel_for_key({self.key})"


PurgatoryStep = Register | Ready | Spoil | Check | Force | CancelKey | Pass


@dataclass(frozen=True, slots=True)
class PurgatoryProgram:
    """Steps; at the end time passes until every time-out that is waited for is over."""

    name: str
    steps: tuple[PurgatoryStep, ...]

    def lines(self) -> Iterable[str]:
        """A line a step."""
        return map(str, self.steps)


def carry_out(program: PurgatoryProgram, promise: Promise, factory: PurgatoryFactory) -> Recording:
    """Run it on a fresh purgatory. What the purgatory raises ends the run: `broken_off` says so."""
    drive = _Drive(promise, factory(promise))
    why = ""
    try:
        for step in program.steps:
            drive.take(step)
        drive.finish()
    except BadPromise:
        raise
    except Exception as error:
        why = f"the purgatory raised {type(error).__name__}: {error}"
    return drive.recording(program.name, why)


class _Drive:
    def __init__(self, promise: Promise, purgatory: PurgatoryUnderTest) -> None:
        self.promise = promise
        self.purgatory = purgatory
        self.now_ns = 0
        self.recorder = Recorder(lambda: self.now_ns)
        self.probes: dict[str, Probe] = {}
        self.deadlines: list[int] = []
        self.late = LateBound(promise.late_ns)
        self.expires = "expiry" not in promise.lacks
        self.gauged = "gauges" not in promise.lacks
        self._do: dict[type, Callable[..., None]] = {
            Register: self._register,
            Ready: self._ready,
            Spoil: self._spoil,
            Check: self._check,
            Force: self._force,
            CancelKey: self._cancel_key,
            Pass: self._pass,
        }

    def take(self, step: PurgatoryStep) -> None:
        self._do[type(step)](step)

    def _register(self, step: Register) -> None:
        probe = Probe(self.recorder, step.operation, step.keys, step.delay_ns)
        self.probes[step.operation] = probe
        if step.then:
            probe.on_completing = partial(self._then, probe, step.then)
        if step.ready == "before":
            probe.become_ready()
        if step.ready == "window":
            probe.in_the_window = partial(self._check, Check(step.keys[0]))
        if self.expires and step.delay_ns < NEVER_NS:
            self.deadlines.append(self.now_ns + step.delay_ns)
            self.late.add(self.now_ns, self.now_ns + step.delay_ns)
        delay_ns = in_range(step.delay_ns) if self.expires else None
        c = self.recorder.call("try_complete_else_watch", probe.id, keys=probe.keys, delay_ns=delay_ns)
        done = self.purgatory.register(probe)
        self.recorder.ret("try_complete_else_watch", c, probe.id, out=int(done))
        self._look()

    def _then(self, probe: Probe, then: Check | str) -> None:
        if isinstance(then, Check):
            self._check(then)
        else:
            raise ValueError(f"{probe.id} raises, as the suite meant it to")

    def _ready(self, step: Ready) -> None:
        if step.operation in self.probes:
            self.probes[step.operation].become_ready()

    def _spoil(self, step: Spoil) -> None:
        if step.operation in self.probes:
            self.probes[step.operation].raises = True

    def _check(self, step: Check) -> None:
        c = self.recorder.call("check_and_complete", keys=(step.key,))
        completed = self.purgatory.check(step.key)
        self.recorder.ret("check_and_complete", c, out=int(completed))
        self._look()

    def _force(self, step: Force) -> None:
        if step.operation in self.probes:
            self.purgatory.force(self.probes[step.operation])

    def _cancel_key(self, step: CancelKey) -> None:
        c = self.recorder.call("cancel_for_key", keys=(step.key,))
        given_back = self.purgatory.cancel_for_key(step.key)
        for probe in given_back:
            self.recorder.at("cancelled", probe.id, keys=(step.key,))
        self.recorder.ret("cancel_for_key", c, out=len(given_back))

    def _pass(self, step: Pass) -> None:
        for _ in range(step.times):
            self.now_ns += step.by_ns
            self.late.drain(self.now_ns)
            self.purgatory.advance(step.by_ns)
        self._look()

    def _look(self) -> None:
        if self.gauged:
            c = self.recorder.call("gauge")
            self.recorder.ret("gauge", c, state=State(*self.purgatory.gauges()))

    def finish(self) -> None:
        """Let every time-out that is waited for pass, and two turns more for the purge."""
        tick_ns = self.promise.tick_ns
        end_ns = max(self.deadlines, default=0) + (self.promise.late_ns or 0)
        while self.expires and self.now_ns < end_ns:
            self._pass(Pass(tick_ns))
        if self.expires:
            self._pass(Pass(tick_ns, 2))
        self.recorder.at("quiesce", state=State(*self.purgatory.gauges()) if self.gauged else State())

    def recording(self, run: str, broken_off: str) -> Recording:
        recorded = ["try_complete_else_watch", "check_and_complete", "force_complete", "try_complete"]
        recorded += ["on_complete", "on_expiration", "ready", "cancel_for_key", "cancelled", "quiesce"]
        recorded += ["gauge"] if self.gauged else []
        recorded += [] if "timer" in self.promise.lacks else ["timer_add", "timer_cancel", "timer_fire"]
        if not self.gauged:
            recorded.remove("quiesce")
        header = header_of(self.promise, run, self.late, recorded, self.promise.purge_interval)
        return Recording(header, tuple(self.recorder.drain(last=True)), broken_off)
