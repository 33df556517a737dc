"""`PythonSubject` drives a Python timer that has its own clock. The timer runs in real time, in this process.

The callers, the driver and the timer share the GIL. So the driver may be the cause of a late task. But an early task is
always a bug of the timer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol, Self

from purgatorio_conformance.builtin.program import DrivenSubject
from purgatorio_conformance.protocol.message import SPOKEN, Description
from purgatorio_conformance.protocol.session import Listener
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, Adds, Cancels, Progress, SubjectFailed
from purgatorio_conformance.subject.plan import Plan, crowded
from purgatorio_conformance.suite.contract import BadPromise, Counts, Promise
from purgatorio_conformance.suite.gated import PAUSES, PERIODIC, PLAN, AdapterSubject
from purgatorio_conformance.suite.in_process import DrivenTimer, Naps
from purgatorio_conformance.suite.stage import Stage
from purgatorio_spec.trace.record import TimerConstants

LANES: Final = 4
_METHODS: Final[Mapping[str, type]] = {"size": Counts, "cancel": Cancels}
"""The methods that an adapter may lack."""


class PythonTimer(Adds, Protocol):
    """The methods of a timer, besides `cancel`. If `add` raises, the exception is recorded, and the run continues."""

    def stop(self) -> None:
        """End the timer: no task is expected to run any more."""


@dataclass(frozen=True, kw_only=True)
class PythonSubject(DrivenSubject):
    """One configuration of a Python timer. `version_of`, and `make` at the start of a run, raise SubjectFailed, kind
    `unavailable`, if the timer is not installed. `constants` returns the constants of the header for a plan."""

    implementation: str
    version_of: Callable[[], str]
    make: Callable[[], PythonTimer]
    constants: Callable[[Plan], TimerConstants]
    threads: int = LANES
    refuses: bool = True
    offers: tuple[str, ...] = ()
    catch_up: str | None = None
    lacks: Mapping[str, str] = field(default_factory=lambda: {"size": "it is not asked for"})
    """See `Promise`."""
    gates: tuple[str, ...] = ()
    pauses: bool = False
    """Whether threads sleep at random lines of the timer. The late bound of a run is then ten seconds longer."""

    @property
    def version(self) -> str:
        return self.version_of()

    def lacking(self, promise: Promise) -> Mapping[str, str]:
        """See `Offering`. A function `make` tells nothing of its adapter."""
        made = self.make
        absent = [
            name for name, kind in _METHODS.items() if isinstance(made, type) and not issubclass(made, kind)
        ]
        absent += ["cancel"] * (not self.shape.cancels)
        return {**{name: f"the adapter has no method {name}" for name in absent}, **promise.lacks}

    def offering(self, promise: Promise, scenario: str) -> Self:
        """See `Offering`."""
        return replace(
            self,
            name=self.name if scenario == PLAN else f"{self.name}-{scenario}",
            mode="real-periodic" if scenario == PERIODIC else self.mode,
            offers=promise.offers,
            catch_up=promise.catch_up,
            lacks=self.lacking(promise),
            pauses=scenario == PAUSES,
        )

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        if not self.pauses:
            return super().run(plan, out_path, progress)
        with Naps(plan.seed):
            return super().run(self.shape.fit(crowded(plan, self.tick_ns)), out_path, progress)

    def driven(self, plan: Plan, listener: Listener) -> AdapterSubject:
        constants = self.constants(plan)
        description = Description(
            n=0, protocol=SPOKEN[-1], name=self.implementation, version=self.version, language="Python",
            capabilities=(
                "timer", "real-time",
                *(can for lack, can in (("cancel", "cancel"), ("size", "gauge")) if lack not in self.lacks),
                *self.offers,
            ),
            reports=("timer_fire",), catch_up=self.catch_up, profile=self.profile,
            tick_ns=constants.tick_ns, wheel_size=constants.wheel_size,
            early_ns=constants.early_ns, late_ns=constants.late_ns,
            unit_ns=self.shape.unit_ns,
            least_delay_ns=self.shape.least_ns, most_delay_ns=self.shape.most_ns, lanes=self.threads,
            gates=self.gates,
        )  # fmt: skip
        return AdapterSubject(
            (),
            description,
            "timer",
            self.mode,
            self.name,
            late_slack_ns=LATE_SLACK_NS if self.pauses else 0,
            listener=listener,
            makes=self._made,
        )

    def _made(self, stage: Stage, now_ns: int) -> DrivenTimer:
        promise = Promise(
            self.profile, tick_ns=self.tick_ns, lacks=self.lacks, offers=self.offers, catch_up=self.catch_up
        )
        try:
            return DrivenTimer(promise, lambda _: _Closing(self.make()), stage, now_ns)
        except BadPromise as wrong:
            raise SubjectFailed(self.name, "unavailable", str(wrong)) from wrong


class _Closing:
    """A timer that the end of a run stops. Its clock is its own."""

    def __init__(self, timer: PythonTimer) -> None:
        self.close = timer.stop
        for name in ("add", "cancel", "fixed_rate", "fixed_delay", "reset", "size"):
            if (method := getattr(timer, name, None)) is not None:
                setattr(self, name, method)

    def advance(self, by_ns: int) -> None:
        raise AssertionError("its time is real")
