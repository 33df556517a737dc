"""`Case`: one test of the suite. A case tests one clause in one scenario, for one `Promise` (a declared profile) of one
subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from purgatorio_conformance.protocol import periodic
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject import plan
from purgatorio_conformance.subject.contract import Subject as RealSubject
from purgatorio_conformance.suite.contract import BadPromise, Promise
from purgatorio_conformance.suite.gated import (
    PAUSES,
    PERIODIC,
    PLAN,
    SuiteScenario,
    periodic_clauses,
    play,
    scenarios_of,
)
from purgatorio_conformance.suite.in_process import named
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.durations import duration
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.recording import JudgedRun, judge_file
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict

Kind = Literal["timer", "purgatory", "subject"]

CLAUSE_NEEDS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "timer": {"T4": "cancel", "T5": "size"},
    "purgatory": {
        "O3": "expiry", "O5": "expiry", "P1": "gauges", "P2": "gauges", "P4": "gauges", "T1": "timer", "T2": "timer",
        "T3": "timer", "T4": "timer", "T5": "gauges",
    },
    "subject": {"T5": "size"},
}  # fmt: skip
"""For each clause, the lack that leaves nothing to judge."""

_BY_CHANCE: Final = (
    "real time meets races by chance; `purgatorio explore` runs every order of threads of Python code"
)
_SLEPT: Final = "control_worst_oversleep_ns"
_READ: Final = ("f", "ph", "id", "t", "deadline_t")
_UNSHORTENED: Final = 1_000_000
"""The length of a program that is not listed call by call. Any other program with the same cause is shown first."""


@dataclass
class SubjectRuns:
    """A subject under one promise, and its runs so far. Each run is made only once."""

    promise: Promise
    carry_out: Callable[[str], JudgedRun]
    runs: dict[str, JudgedRun] = field(default_factory=dict)

    def run(self, name: str) -> JudgedRun:
        if name not in self.runs:
            self.runs[name] = self.carry_out(name)
        return self.runs[name]


def driven_subject(promise: Promise, under: CommandSubject) -> SubjectRuns:
    """A subject that is driven in virtual time."""
    return SubjectRuns(promise, lambda run: play(run, under))


@runtime_checkable
class Offering(Protocol):
    """A subject that can play the `offers` of a promise, and pause its threads."""

    def lacking(self, promise: Promise) -> Mapping[str, str]:
        """The lacks of the promise and of the adapter."""

    def offering(self, promise: Promise, scenario: str) -> RealSubject:
        """The subject whose runs of this scenario use these offers."""


SubjectFactory = Callable[[Promise], RealSubject]
"""Makes a subject for each run."""


def real_time_subject(promise: Promise, factory: SubjectFactory, folder: Path, timers: int) -> SubjectRuns:
    """A timer with its own clock, a built-in subject. It executes random plans of `timers` timers in real time, on
    several threads, in the way of `purgatorio verify`, and records the calls; its traces go to `folder`. With `offers`,
    random programs of periodic tasks and resets follow. A run takes a few seconds, and mostly sleeps. Raises BadPromise
    if it declares another profile, or has no method that the promise offers."""
    made = factory(promise)
    found = SubjectRuns(promise, lambda run: carry_out(run))
    if isinstance(made, Offering):
        found.promise = replace(promise, lacks=made.lacking(promise))

    def carry_out(run: str) -> JudgedRun:
        subject = factory(promise)
        if subject.profile != promise.profile:
            raise BadPromise(f"{subject.name} declares the profile {subject.profile}, not {promise.profile}")
        scenario, _, seed = run.partition("-")
        if isinstance(subject, Offering):
            subject = subject.offering(promise, scenario)
        elif promise.offers:
            raise BadPromise(f"{subject.name} is no PythonSubject, so it cannot offer {promise.offers}")
        elif scenario == PAUSES:
            return found.run(f"{PLAN}-{seed}")
        (record,) = record_runs([subject], folder, int(seed), timers, workers=1, suffix=".jsonl")
        if record.failure is not None and record.failure.kind == "unavailable":
            raise BadPromise(record.failure.why)
        # Misbehavior of the subject breaks the run off.
        return judge_file(record.trace, record.run, "" if record.failure is None else str(record.failure))

    return found


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case. `text`: a reason, a note, or the whole counterexample. `judged`: the run that shows the
    violation. `calls`: the calls of this run, if it is so short that every call may matter. `run`: the description of a
    longer run."""

    verdict: Verdict
    occasions: int
    text: str = ""
    judged: JudgedRun | None = None
    calls: tuple[str, ...] = ()
    run: str = ""

    @property
    def breaks(self) -> tuple[str, ...]:
        """The clauses that the run breaks; or the reason why the run cannot be judged."""
        if self.judged is None or self.verdict is not Verdict.VIOLATED:
            return (": ".join(self.text.split(": ")[1:3]),)
        found = self.judged.result.clauses.items()
        return tuple(clause for clause, one in found if one.verdict is Verdict.VIOLATED)

    def leads(self, case: Case) -> bool:
        """Whether the clause is about the adapter's method that raised the exception. Such a case is shown first."""
        return named(CLAUSE_NEEDS[case.kind].get(case.clause, "?")) in self.text

    @property
    def steps(self) -> tuple[str, ...]:
        """The calls in order, or the description of the run."""
        return self.calls or ((self.run,) if self.run else ())

    @property
    def length(self) -> int:
        """The number of calls. A program that could not be minimized is longer than any other."""
        return len(self.calls) or _UNSHORTENED

    def shown(self, clause: str, file: Path, again: str) -> str:
        """The failure as text: the clause, the shortest prefix, the allowed and the seen behavior, and the command that
        repeats it. Writes the trace to `file`."""
        if self.judged is None:
            return self.text
        self.judged.write(file)
        whole = bool(self.calls)
        lines = [self.text or render(self.judged.example(clause, str(file), whole=whole)).rstrip("\n")]
        lines += _folded("program", self.steps)
        lines += [" " * 9 + self.judged.stopped] if self.judged.stopped else []
        lines.append(f"again    {again}")
        return "\n".join(lines)


def _folded(word: str, parts: Iterable[str]) -> Iterator[str]:
    """The calls of a program, as many on a line as fit. A long program is cut, with the number of calls left out."""
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
    """One case. `id` is usable as the name of a test."""

    kind: Kind
    promise: Promise
    scenario: SuiteScenario
    clause: str
    part: str = ""
    """The part of the subject, if it is a program with several parts."""

    @property
    def id(self) -> str:
        names = (self.part, self.promise.profile, self.clause, self.scenario.name)
        return "-".join(name for name in names if name)

    @property
    def expected(self) -> str | None:
        listed = self.promise.expected_failures
        return listed.get(f"{self.clause}/{self.scenario.name}", listed.get(self.clause))

    def judge(self, subject: SubjectRuns) -> CaseResult:
        lack = CLAUSE_NEEDS[self.kind].get(self.clause, "")
        lacks = subject.promise.lacks
        if lack in lacks:
            return CaseResult(Verdict.SKIPPED, 0, f"the subject lacks {lack}: {lacks[lack]}")
        ruled_out = self.scenario.ruled_out(self.promise)
        if ruled_out is not None:
            return CaseResult(Verdict.SKIPPED, 0, ruled_out)
        runs = [(words, subject.run(name)) for name, words in self.scenario.runs.items()]
        result = self._sum(runs)
        note = self.kind == "subject" and result.verdict is Verdict.PASS
        return replace(result, text=self._note([judged for _, judged in runs])) if note else result

    def _note(self, runs: list[JudgedRun]) -> str:
        """What a PASS in real time leaves open."""
        if self.clause == "T2" and (header := runs[0].result.header):
            slept = [one.result.header.params.get(_SLEPT) for one in runs if one.result.header]
            slept_ns = max((one for one in slept if isinstance(one, int)), default=0)
            return (
                f"{header.implementation.name}: the latest task started {duration(max(map(_latest_ns, runs)))} late, "
                f"of {duration(header.timer.late_ns or 0)} that late_ns allows; a thread that only sleeps woke up to "
                f"{duration(slept_ns)} late"
            )
        return _BY_CHANCE if self.clause == "T4" else ""

    def _sum(self, runs: list[tuple[str, JudgedRun]]) -> CaseResult:
        """The first violation; otherwise the first run that broke off; otherwise the result of all runs together."""
        occasions = 0
        reasons: dict[Verdict, str] = {}
        for run, judged in runs:
            found = judged.result.clauses.get(self.clause)
            if found is None and judged.result.clauses and CLAUSES[self.clause].asked_by:
                return CaseResult(
                    Verdict.SKIPPED, occasions, f"the subject reports nothing that {self.clause} needs"
                )
            if found is None or judged.result.verdict is Verdict.INVALID_TRACE:
                if judged.broken_off:
                    continue
                why = "; ".join(judged.result.problems)
                return CaseResult(Verdict.INVALID_TRACE, occasions, self._not_judged(why), judged, run=run)
            occasions += found.occasions
            if found.verdict is Verdict.VIOLATED and judged.narrowed is not None:
                shown, calls = judged.narrowed(self.clause)
                return CaseResult(Verdict.VIOLATED, occasions, "", shown, calls, run)
            if found.verdict is Verdict.VIOLATED:
                return CaseResult(Verdict.VIOLATED, occasions, "", judged, run=run)
            reasons.setdefault(found.verdict, found.reason)
        for run, judged in runs:
            if judged.broken_off:
                text = self._not_judged(judged.broken_off)
                return CaseResult(Verdict.INVALID_TRACE, occasions, text, judged, judged.hung, run)
        unfinished = [judged.unfinished for _, judged in runs if judged.unfinished]
        if unfinished and Verdict.SKIPPED not in reasons:
            return CaseResult(Verdict.UNKNOWN, occasions, unfinished[0])
        if Verdict.SKIPPED in reasons:
            return CaseResult(Verdict.SKIPPED, occasions, reasons[Verdict.SKIPPED])
        if Verdict.UNKNOWN in reasons:
            return CaseResult(Verdict.UNKNOWN, occasions, reasons[Verdict.UNKNOWN])
        if not occasions:
            return CaseResult(Verdict.UNKNOWN, 0, f"{self.clause} had no occasion to fail")
        return CaseResult(Verdict.PASS, occasions)

    def _not_judged(self, why: str) -> str:
        return f"{self.clause}  cannot be judged: {visible(why, TEXT_LIMIT)}"


def _latest_ns(run: JudgedRun) -> int:
    """The largest lateness of a task that was only added, and ran."""
    due: dict[str, int] = {}
    late = [0]
    for f, ph, task, t, deadline_t in zip(
        *(run.table.column(name).to_pylist() for name in _READ), strict=True
    ):
        if (f, ph) == ("timer_add", "ret") and deadline_t is not None:
            due[task] = max(t, deadline_t)
        elif (f, ph) == ("timer_fire", "call"):
            late.append(t - due.pop(task, t))
        elif f in ("timer_cancel", "timer_reset"):
            due.pop(task, None)
    return max(late)


def cases(kind: Kind, promise: Promise, part: str = "", description: Description | None = None) -> list[Case]:
    """One case for each scenario, and each clause that the profile may promise and that can fail in it. The scenarios
    with the plainest counterexamples come first. `part`, `description`: of a program."""
    of: Part = "timer" if kind == "timer" else "purgatory"
    # `purgatorio verify` pauses the threads of a program; the suite does not.
    scenarios = [one for one in scenarios_of(of, promise, description) if not (part and one.threads)]
    return [
        Case(kind, promise, scenario, clause, part)
        for scenario in scenarios
        for clause in CLAUSES
        if clause in scenario.clauses
    ]


_OF_VIRTUAL_TIME: Final = (
    "early_ns", "late_ns", "wheel_size", "longest_delay_ns", "purge_interval", "threads", "turn"
)  # fmt: skip
_REAL_OFFERS: Final = ("fixed-rate", "fixed-delay", "reset", "reset-same", "period-first")


def plan_cases(promise: Promise, seeds: tuple[int, ...], timers: int) -> list[Case]:
    """The clauses of the profile that are judged from traces, for one run in real time for each seed, and one more if
    the promise has `offers`. Raises BadPromise for a declaration that these runs would ignore."""
    ignored = [f"the lack {lack!r}" for lack in promise.lacks if lack not in ("size", "cancel")]
    ignored += [f"the offer {offer!r}" for offer in promise.offers if offer not in _REAL_OFFERS]
    ignored += [name for name in _OF_VIRTUAL_TIME if getattr(promise, name) is not None]
    if ignored:
        raise BadPromise(
            f"a timer with its own clock cannot declare {', '.join(ignored)}: it has the lacks 'size' and 'cancel', "
            f"and the offers {', '.join(_REAL_OFFERS)}; its TimerConstants have the bounds, and its PlanShape "
            "limits the delays"
        )
    promised = PROFILES[promise.profile].clauses
    clauses = tuple(
        name
        for name, one in CLAUSES.items()
        if name in promised and (not one.asked_by or (name == "T11" and "reset" in promise.offers))
    )
    made = f"make_plan(seed={{}}, timers={timers}) of {plan.__name__}"
    scenarios = {
        PLAN: (clauses, made),
        PERIODIC: (periodic_clauses(promise), f"seed {{}} of {periodic.__name__} in real time"),
        # A pause makes tasks late.
        PAUSES: (tuple(name for name in clauses if name != "T2"), f"crowded({made})"),
    }
    found = [
        SuiteScenario(name, of_it, {f"{name}-{seed}": words.format(seed) for seed in seeds})
        for name, (of_it, words) in scenarios.items()
    ]
    return [
        Case("subject", promise, one, clause) for one in found for clause in CLAUSES if clause in one.clauses
    ]
