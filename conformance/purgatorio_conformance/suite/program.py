"""The content of a scenario: programs of protocol calls in a short form, and the conditions under which a program
cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Check,
    Description,
    Gauge,
    Register,
    Repeat,
    Reset,
    call_name,
)
from purgatorio_conformance.protocol.rule import written
from purgatorio_conformance.protocol.script import AtGate, Script, ScriptStep
from purgatorio_conformance.subject.plan import HUGE_NS, MS
from purgatorio_conformance.suite.contract import Promise
from purgatorio_spec.trace.record import MAX_INT, MIN_INT

NEVER_NS: Final = HUGE_NS
"""A delay or time-out from here on is not waited for: where a completion may be lost, an expiry would hide it."""


@dataclass(frozen=True, slots=True)
class Pass:
    by_ns: int
    times: int = 1


ProgramStep = ScriptStep | Pass


@dataclass(frozen=True, slots=True)
class CallProgram:
    """Steps in virtual time, from 0 on; at the end time passes until all that is waited for must be over."""

    name: str
    steps: tuple[ProgramStep, ...]

    def lines(self) -> Iterable[str]:
        return map(in_words, self.steps)

    def script(self, part: Part, description: Description, *, expires: bool = True) -> Script:
        """Its calls, as this subject takes them. `expires`: False where no operation has a time-out."""
        return Script(part, 0, tuple(self._calls(description, expires)))

    def _calls(self, description: Description, expires: bool) -> Iterator[ScriptStep]:
        gauge = (Gauge(),) if "gauge" in description.capabilities else ()
        tick_ns = description.grain_ns
        rest_ns = (description.late_ns or 0) + 2 * tick_ns
        now_ns = 0
        due: dict[str, int] = {}
        for step in self.steps:
            if isinstance(step, Pass):
                for _ in range(step.times):
                    now_ns += step.by_ns
                    yield Advance(now_ns)
                    yield from gauge
                continue
            begins_ns = due.get(step.id, now_ns) + rest_ns if isinstance(step, AtGate) else now_ns
            for call in step.calls if isinstance(step, AtGate) else (step,):
                if isinstance(call, Add | Register | Repeat | Reset) and call.delay_ns < NEVER_NS:
                    due[call.id] = begins_ns + call.delay_ns
            yield _in_range(step)
            if isinstance(step, Register | Check):
                yield from gauge
        end_ns = max(now_ns, *due.values()) + rest_ns if due else now_ns + 2 * tick_ns
        while expires and now_ns < end_ns:
            now_ns += tick_ns
            yield Advance(now_ns)
            yield from gauge


@dataclass(frozen=True, slots=True)
class GatedProgram:
    """`scope`: the small programs of one caller. `gates`: every order of those of several. `steps`: each of their
    calls paused at each of its steps."""

    name: str

    def lines(self) -> Iterable[str]:
        yield f"every small program, by its {self.name}: purgatorio_conformance.protocol.small_program"


@dataclass(frozen=True, slots=True)
class PlanProgram:
    """The plan of this seed in real time, with so many timers or operations."""

    name: str
    seed: int
    timers: int

    def lines(self) -> Iterable[str]:
        """Too long to print: how it is made."""
        yield f"make_plan(seed={self.seed}, timers={self.timers}) of purgatorio_conformance.subject.plan"


Program = CallProgram | GatedProgram | PlanProgram


def _in_range(step: ScriptStep) -> ScriptStep:
    """The trace format holds 64 bits; a time beyond is later than any run lasts."""
    if isinstance(step, Add):
        return Add(step.id, max(MIN_INT, min(MAX_INT, step.delay_ns)))
    return step


def in_words(step: ProgramStep) -> str:
    match step:
        case Pass(by_ns, times):
            return f"advance({in_time(by_ns)}){f' x {times}' if times > 1 else ''}"
        case AtGate(f, id, calls, fails):
            what = [*map(in_words, calls), *(("it raises",) if fails else ())]
            return f"in {f} of {id}: {', '.join(what)}"
        case _:
            return call_in_words({"m": call_name(step), **written(step)})


_NOT_TOLD: Final = frozenset({"m", "n", "lane", "hold", "step", "again"})


def call_in_words(call: Mapping[str, object]) -> str:
    """A call by the fields of its line."""
    told: list[str] = []
    for name, value in call.items():
        if isinstance(value, int) and name.endswith("_ns"):
            told.append("never" if value >= NEVER_NS and "keys" in call else in_time(value))
        elif name not in _NOT_TOLD:
            told.append("+".join(map(str, value)) if isinstance(value, list) else str(value))
    return f"{call['m']}({', '.join(told)})"


def in_time(time_ns: int) -> str:
    """In milliseconds, where it is a number of them."""
    whole, rest = divmod(time_ns, MS)
    return f"{time_ns} ns" if rest else f"{whole} ms"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Named programs, the same every time, and the clauses that they give an occasion to fail. `needs`: lacks that rule
    it out; `threads`: it needs calls from several threads."""

    name: str
    about: str
    clauses: tuple[str, ...]
    programs: Callable[[Promise], Iterable[Program]]
    needs: tuple[str, ...] = ()
    threads: bool = False
    also: Callable[[Promise], str | None] | None = None
    """What else may rule it out: why."""

    def ruled_out(self, promise: Promise) -> str | None:
        """Why it cannot be run, in the subject's own words."""
        if self.threads and not promise.has_threads:
            return "its calls come from one thread: the promise says no `threads`"
        lacking = [lack for lack in self.needs if lack in promise.lacks]
        if lacking:
            return f"the subject lacks {lacking[0]}: {promise.lacks[lacking[0]]}"
        return None if self.also is None else self.also(promise)
