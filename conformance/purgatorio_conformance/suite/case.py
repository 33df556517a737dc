"""One case of the suite: one clause, in one scenario, for one promise of one subject, and the result."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.fewest import fewest
from purgatorio_conformance.protocol.message import Add, Register
from purgatorio_conformance.suite import purgatory_scenarios, timer_scenarios
from purgatorio_conformance.suite.contract import Promise, PurgatoryFactory, TimerFactory
from purgatorio_conformance.suite.gated import (
    PlayedSession,
    Under,
    gated_scenarios,
    of_purgatory,
    of_timer,
    play,
    played_through,
    scope_scenario,
)
from purgatorio_conformance.suite.periodic_scenarios import periodic_scenarios
from purgatorio_conformance.suite.program import (
    NEVER_NS,
    CallProgram,
    GatedProgram,
    Pass,
    PlanProgram,
    Program,
    ProgramStep,
    Scenario,
)
from purgatorio_conformance.suite.purgatory_scenarios import PURGATORY_SCENARIOS
from purgatorio_conformance.suite.real_time import SubjectFactory, plan_scenario, run_plan
from purgatorio_conformance.suite.timer_scenarios import DRAWN, TIMER_SCENARIOS
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.oracle.hypothesis_profiles import CI
from purgatorio_spec.recording import Judged, Narrow, judge_file
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict

DRAWN_EXAMPLES: Final = 60
"""Programs that Hypothesis draws for one clause."""

_SHORTENED_MOST: Final = 150
"""The most executions of one violation's minimization."""

_HANGS_MOST: Final = 3
"""The most hangs of fixed scenarios, and of random programs; then no more are executed."""

_NOT_AGAIN: Final = "(and was not driven again)"

Kind = Literal["timer", "purgatory", "subject"]

CLAUSE_NEEDS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "timer": {"T4": "cancel", "T5": "size"},
    "purgatory": {
        "O3": "expiry", "O5": "expiry", "P1": "gauges", "P2": "gauges", "P4": "gauges", "T1": "timer", "T2": "timer",
        "T3": "timer", "T4": "timer", "T5": "gauges",
    },
    "subject": {},
}  # fmt: skip
"""The lack that leaves a clause nothing to judge."""


@dataclass
class Subject:
    """A subject under one promise, and its runs so far: each program is carried out once, whatever asks for it."""

    promise: Promise
    carry_out: Callable[[Program], Judged]
    drawn: st.SearchStrategy[Program]
    runs: dict[Program, Judged] = field(default_factory=dict)

    def run(self, program: Program) -> Judged:
        """Carried out, recorded and judged, once."""
        if program not in self.runs:
            self.runs[program] = self.carry_out(program)
        return self.runs[program]


def timer_subject(promise: Promise, factory: TimerFactory) -> Subject:
    return _adapted(of_timer(promise, factory), timer_scenarios.drawn_programs(promise))


def purgatory_subject(promise: Promise, factory: PurgatoryFactory) -> Subject:
    return _adapted(of_purgatory(promise, factory), purgatory_scenarios.drawn_programs(promise))


def _adapted(under: Under, drawn: st.SearchStrategy[Program]) -> Subject:
    hung: dict[bool, list[str]] = {True: [], False: []}

    def carry_out(program: Program) -> Judged:
        if isinstance(program, GatedProgram):
            return play(program, under)
        assert isinstance(program, CallProgram), "plans are for real time"
        hangs = hung[program.name == DRAWN]
        if len(hangs) >= _HANGS_MOST:
            return judge_file(None, program.name, f"{hangs[0]} {_NOT_AGAIN}")
        judged, failure = played_through(program, under, known_to_hang=any(hung.values()))
        if failure == "hang":
            hangs.append(judged.broken_off)
        return judged

    return Subject(under.promise, carry_out, drawn)


def real_time_subject(promise: Promise, factory: SubjectFactory, folder: Path) -> Subject:
    """A subject with a clock of its own; its traces go to `folder`."""

    def carry_out(program: Program) -> Judged:
        assert isinstance(program, PlanProgram), "subjects get plans"
        return run_plan(program, promise, factory, folder)

    return Subject(promise, carry_out, st.nothing())


@dataclass(frozen=True, slots=True)
class Outcome:
    """`text` says why, for people: a reason, or the whole counterexample. `judged` is the run that shows it."""

    verdict: Verdict
    occasions: int
    text: str = ""
    judged: Judged | None = None
    program: Narrow | None = None

    @property
    def breaks(self) -> tuple[str, ...]:
        """The clauses that the run breaks; of one that cannot be judged, what kept it from that."""
        if self.judged is None or self.verdict is not Verdict.VIOLATED:
            return (": ".join(self.text.split(": ")[1:3]),)
        found = self.judged.result.clauses.items()
        return tuple(clause for clause, one in found if one.verdict is Verdict.VIOLATED)

    @property
    def short(self) -> bool:
        """Whether the program is so short that every call may matter."""
        return isinstance(self.program, CallProgram | PlayedSession)

    @property
    def steps(self) -> tuple[str, ...]:
        """The calls in order."""
        return () if self.program is None else tuple(self.program.lines())

    @property
    def length(self) -> int:
        """The length of the program: its calls, each walk counted by its length; a plan of timers is longer than
        any."""
        if isinstance(self.program, PlanProgram):
            return 1_000 * self.program.timers
        if isinstance(self.program, CallProgram):
            return sum(step.times if isinstance(step, Pass) else 1 for step in self.program.steps)
        return len(self.steps)

    def shown(self, clause: str, file: Path, again: str) -> str:
        """The failure: clause, shortest prefix, allowed and seen, how to repeat it. Writes the trace to `file`."""
        if self.judged is None or self.program is None:
            return self.text
        self.judged.write(file)
        whole = self.short
        lines = [self.text or render(self.judged.example(clause, str(file), whole=whole)).rstrip("\n")]
        lines += _folded("program", self.program.lines())
        lines.append(f"again    {again}")
        return "\n".join(lines)


def _folded(word: str, parts: Iterable[str]) -> Iterator[str]:
    """The calls of a program, as many on a line as fit; a long one is cut, with the number left out."""
    line, held = f"{word:<9}", 0
    steps = list(parts)
    for number, step in enumerate(steps):
        if len(line) + len(step) > 78 and line.strip() not in (word, ""):
            yield line.rstrip()
            line, held = " " * 9, held + 1
            if held == 8:
                yield f"{line}... {len(steps) - number} more"
                return
        line += f"{step}{';' if number + 1 < len(steps) else ''} "
    yield line.rstrip()


@dataclass(frozen=True)
class Case:
    """`id` is fit for a test's name."""

    kind: Kind
    promise: Promise
    scenario: Scenario
    clause: str
    part: str = ""
    """Of a program that has several."""

    @property
    def id(self) -> str:
        names = (self.part, self.promise.profile, self.clause, self.scenario.name)
        return "-".join(name for name in names if name)

    @property
    def expected(self) -> str | None:
        """Why it is expected to fail, if it is."""
        listed = self.promise.expected_failures
        return listed.get(f"{self.clause}/{self.scenario.name}", listed.get(self.clause))

    def judge(self, subject: Subject) -> Outcome:
        """Carry out the scenario and ask the clause."""
        lack = CLAUSE_NEEDS[self.kind].get(self.clause, "")
        if lack in self.promise.lacks:
            return Outcome(Verdict.SKIPPED, 0, f"the subject lacks {lack}: {self.promise.lacks[lack]}")
        ruled_out = self.scenario.ruled_out(self.promise)
        if ruled_out is not None:
            return Outcome(Verdict.SKIPPED, 0, ruled_out)
        if self.scenario.name == DRAWN:
            return self._drawn(subject)
        programs: list[Program] = list(self.scenario.programs(self.promise))
        outcome = self._sum([(program, subject.run(program)) for program in programs])
        shortens = outcome.verdict is Verdict.VIOLATED and isinstance(outcome.program, CallProgram)
        return self._shortened(subject, outcome) if shortens else outcome

    def _shortened(self, subject: Subject, broken: Outcome) -> Outcome:
        """The same cause by a minimal program: no call can be removed, and no walk or delay shortened further."""
        program, judged = broken.program, broken.judged
        assert isinstance(program, CallProgram)
        assert judged is not None
        cause, name = self._cause(judged), program.name
        shortest, left = (program.steps, judged), _SHORTENED_MOST

        def shows(steps: tuple[ProgramStep, ...]) -> bool:
            nonlocal shortest, left
            left -= 1
            if left < 0:
                return False
            again = subject.carry_out(CallProgram(name, steps))
            if again.broken_off or self._cause(again) != cause:
                return False
            shortest = steps, again
            return True

        steps = fewest(program.steps, shows, lambda kept: len(kept) == 1)
        for place in range(len(steps)):
            while any(shows(one) for one in _simpler(steps, place, self.promise.tick_ns)):
                steps = shortest[0]
        return replace(broken, judged=shortest[1], program=CallProgram(name, shortest[0]))

    def _cause(self, judged: Judged) -> str | None:
        """How the run breaks the clause first."""
        found = judged.result.clauses.get(self.clause)
        if found is None or found.verdict is not Verdict.VIOLATED:
            return None
        return min(found.causes.values(), key=lambda one: one.examples[0].events[-1]).examples[0].cause

    def _sum(self, runs: list[tuple[Program, Judged]]) -> Outcome:
        """The first violation; else the first run that broke off; else what all of them came to."""
        occasions = 0
        reasons: dict[Verdict, str] = {}
        for program, judged in runs:
            found = judged.result.clauses.get(self.clause)
            if found is None and judged.result.clauses and CLAUSES[self.clause].asked_by:
                return Outcome(
                    Verdict.SKIPPED, occasions, f"the subject shows nothing that {self.clause} is about"
                )
            if found is None or judged.result.verdict is Verdict.INVALID_TRACE:
                if judged.broken_off:
                    continue
                why = "; ".join(judged.result.problems)
                return Outcome(Verdict.INVALID_TRACE, occasions, self._not_judged(why), judged, program)
            occasions += found.occasions
            if found.verdict is Verdict.VIOLATED and judged.narrowed is not None:
                shown, part = judged.narrowed(self.clause)
                return Outcome(Verdict.VIOLATED, occasions, "", shown, part)
            if found.verdict is Verdict.VIOLATED:
                return Outcome(Verdict.VIOLATED, occasions, "", judged, program)
            reasons.setdefault(found.verdict, found.reason)
        for program, judged in runs:
            if judged.broken_off:
                text = self._not_judged(judged.broken_off)
                return Outcome(Verdict.INVALID_TRACE, occasions, text, judged, judged.hung or program)
        unfinished = [judged.unfinished for _, judged in runs if judged.unfinished]
        if unfinished and Verdict.SKIPPED not in reasons:
            return Outcome(Verdict.UNKNOWN, occasions, unfinished[0])
        if Verdict.SKIPPED in reasons:
            return Outcome(Verdict.SKIPPED, occasions, reasons[Verdict.SKIPPED])
        if Verdict.UNKNOWN in reasons:
            return Outcome(Verdict.UNKNOWN, occasions, reasons[Verdict.UNKNOWN])
        if not occasions:
            return Outcome(Verdict.UNKNOWN, 0, f"{self.clause} had no occasion to fail in {len(runs)} runs")
        return Outcome(Verdict.PASS, occasions)

    def _not_judged(self, why: str) -> str:
        return f"{self.clause}  cannot be judged: {visible(why, TEXT_LIMIT)}"

    def _drawn(self, subject: Subject) -> Outcome:
        runs: dict[Program, Judged] = {}

        @settings(CI, max_examples=DRAWN_EXAMPLES, report_multiple_bugs=False, print_blob=False)
        @given(program=subject.drawn)
        def holds(program: Program) -> None:
            runs[program] = subject.run(program)
            outcome = self._sum([(program, runs[program])])
            if outcome.verdict in (Verdict.VIOLATED, Verdict.INVALID_TRACE) and not given_up(runs[program]):
                raise _FoundOne(outcome)

        try:
            # What Hypothesis would print is said better by the counterexample.
            with contextlib.redirect_stdout(io.StringIO()):
                holds()
        except _FoundOne as found:
            return found.outcome
        return self._sum(list(runs.items()))


def _simpler(steps: tuple[ProgramStep, ...], place: int, tick_ns: int) -> Iterator[tuple[ProgramStep, ...]]:
    """The program with a shorter walk or delay at this place, if there is one."""
    step = steps[place]
    simpler: list[ProgramStep] = []
    if isinstance(step, Pass) and step.times > 1:
        simpler += (replace(step, times=times) for times in (1, step.times // 2, step.times - 1))
    elif isinstance(step, Add | Register) and step.delay_ns < NEVER_NS:
        ticks, rest_ns = divmod(step.delay_ns, tick_ns)
        delays_ns = (fewer * tick_ns + rest_ns for fewer in (0, 1, ticks // 2, ticks - 1))
        simpler += (replace(step, delay_ns=one) for one in delays_ns if 0 < one < step.delay_ns)
    for one in simpler:
        yield (*steps[:place], one, *steps[place + 1 :])


def given_up(judged: Judged) -> bool:
    """Whether the program was not carried out, because others hung."""
    return judged.broken_off.endswith(_NOT_AGAIN)


class _FoundOne(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__("a program that fails")
        self.outcome = outcome


def cases(kind: Kind, promise: Promise, part: str = "") -> list[Case]:
    """Every clause that the profile could promise in every scenario that lets it fail; in the same order always."""
    of: Part = "timer" if kind == "timer" else "purgatory"
    scenarios: tuple[Scenario, ...] = TIMER_SCENARIOS if kind == "timer" else PURGATORY_SCENARIOS
    if kind == "timer":
        scenarios += periodic_scenarios(promise)
    scenarios += (scope_scenario(of),)
    if not part:
        scenarios += gated_scenarios(of)
    return [
        Case(kind, promise, scenario, clause, part)
        for clause in CLAUSES
        for scenario in scenarios
        if clause in scenario.clauses
    ]


def plan_cases(promise: Promise, seeds: tuple[int, ...], timers: int) -> list[Case]:
    """The clauses of the profile, over a run in real time for each seed."""
    scenario = plan_scenario(promise, seeds, timers)
    return [Case("subject", promise, scenario, clause) for clause in scenario.clauses]
