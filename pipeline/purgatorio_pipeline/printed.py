"""The types of the JSON output of `check`, `verify`, `watch` and `report`.

The module also reads the records of `purgatorio_stress.printed`. A document of an unknown kind, a missing field, or a
field of a wrong type is refused, with the place in the document.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from msgspec import UNSET, Struct, UnsetType, convert

from purgatorio_pipeline.documents import Unreadable
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.judging import FileCounts
from purgatorio_pipeline.report.grouped import ExampleOf
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import Cause, CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.verdict import Verdict, Violation, worst
from purgatorio_stress.printed import (
    Count,
    Explore,
    Explored,
    ExploredAdapter,
    ExplorePackage,
    Grade,
    Outcome,
    Raced,
    Stress,
)
from purgatorio_wire.clause.registry import WIRE_CLAUSES

BROKEN_SHOWN: Final = 100
"""The maximum number of printed broken lines. Further lines are only counted."""
FORBIDDEN_SHOWN: Final = 3
"""The maximum number of reported outcomes of a scenario. The output of its own command has all."""


class _Example(Struct):
    subject: str
    events: tuple[int, ...]
    allowed: str
    seen: str


class _Cause(Struct, omit_defaults=True):
    """`replay`: the command that shows the first example again."""

    count: Count
    examples: list[_Example]
    replay: str = ""


class Clause(Struct, omit_defaults=True):
    """One clause of a run. `reason`: the reason for SKIPPED or UNKNOWN. `causes`: its violations by cause."""

    verdict: Verdict
    violations: Count
    occasions: Count
    reason: str = ""
    causes: dict[str, _Cause] = {}


class Run(Struct, omit_defaults=True):
    """One run. `open`: in a watch, whether the end of the run has not arrived yet. `seed`: of its random choices."""

    run: str
    file: str
    subject: str
    profile: str
    verdict: Verdict
    events: Count
    clauses: dict[str, Clause]
    problems: tuple[str, ...]
    failure: str = ""
    open: bool | UnsetType = UNSET
    seed: int | UnsetType = UNSET


class _Runs(Struct, kw_only=True):
    verdict: Verdict
    runs: list[Run]
    quarantined: Count = 0
    broken: list[BrokenLine] = []


class Shortest(Struct):
    """The shortest calls, or the order of threads, that show a violation. `session`: its first lines."""

    run: str
    clause: str
    calls: int
    session: tuple[str, ...]


class Check(_Runs, tag_field="kind", tag="check", kw_only=True):
    """The record of `check` and `verify`. It has no events, so a report shows a cause in words, without a drawing.
    `files`: only with a lake. `shortest`, `not_looked_for`, `doubts`: only for driven programs."""

    files: FileCounts | UnsetType = UNSET
    shortest: list[Shortest] | UnsetType = UNSET
    not_looked_for: list[str] | UnsetType = UNSET
    doubts: list[str] | UnsetType = UNSET

    def result(self) -> CheckResult:
        return CheckResult(tuple(map(_run, self.runs)), self.quarantined, tuple(self.broken))


class Report(_Runs, tag_field="kind", tag="report", kw_only=True):
    """The record of `report`: the check of all traces, and the findings of other commands."""

    findings: list[Finding]


class Watch(Struct, tag_field="kind", tag="watch"):
    verdict: Verdict
    batch: int
    runs: list[Run]


def check_of(result: CheckResult, examples: ExampleOf = MappingProxyType({})) -> Check:
    check = convert(replace(result, broken=result.broken[:BROKEN_SHOWN]), Check, from_attributes=True)
    for run, shown in zip(result.runs, check.runs, strict=True):
        seed = run.header.params.get("seed") if run.header else None
        shown.seed = seed if isinstance(seed, int) else UNSET
        for clause, one in shown.clauses.items():
            for name, cause in one.causes.items():
                found = examples.get(CauseKey(run.file, run.run, clause, name))
                cause.replay = "" if found is None else " ".join(found.replay)
    return check


def run_of(result: RunResult) -> Run:
    return convert(result, Run, from_attributes=True)


def _run(run: Run) -> RunResult:
    for name in run.clauses:
        if name not in CLAUSES and name not in WIRE_CLAUSES:
            raise Unreadable(
                f"{visible(name)!r} is not a clause: another version wrote this; see `purgatorio check --clauses`"
            )
    clauses = {name: _clause(name, one) for name, one in run.clauses.items()}
    return RunResult(
        run.run,
        run.file,
        run.subject,
        run.profile,
        run.verdict,
        run.events,
        clauses,
        run.problems,
        run.failure,
    )


def _clause(name: str, clause: Clause) -> ClauseResult:
    causes = {
        cause: Cause(
            one.count,
            [Violation(name, ex.subject, cause, ex.events, ex.allowed, ex.seen) for ex in one.examples],
        )
        for cause, one in clause.causes.items()
    }
    return ClauseResult(name, clause.verdict, clause.occasions, causes, clause.reason)


def findings_of(document: Stress | Explore | ExplorePackage) -> list[Finding]:
    if isinstance(document, Stress):
        return [_raced(one, document) for one in document.scenarios]
    if isinstance(document, ExplorePackage):
        return [_explored_package(one) for one in document.scenarios]
    found = [_explored(one) for one in document.scenarios]
    if (drawn := document.drawn) is not UNSET and not found:
        said = (
            f"{drawn.programs:,} programs with seed {drawn.seed}, {drawn.schedules:,} schedules: no violation"
        )
        found.append(Finding("random programs, explore", document.verdict, said))
    return found


def _raced(one: Raced, document: Stress) -> Finding:
    said = [f"{one.rounds:,} rounds, threads overlapped in {one.overlapped:,}"]
    if one.given_up:
        said.append(f"{one.given_up:,} rounds were abandoned")
    stuck = document.stuck
    if stuck is not None and stuck.scenario == one.name:
        said += (f"stuck: {of}{f' at {of.stack[-1]}' if of.stack else ''}" for of in stuck.threads)
    verdict = one.verdict
    if document.problem:
        # A run that ended early proves nothing about this scenario.
        said.append(f"the run ended early: {document.problem}")
        verdict = worst((verdict, Verdict.UNKNOWN))
    return _finding(f"{one.name}, stress", verdict, document.mutant, said, one.outcomes)


def _covered(one: Explored | ExploredAdapter) -> list[str]:
    limit = [f"limit reached: {one.limit}"] if one.limit else []
    return [f"{one.schedules:,} schedules", one.bound, *limit]


def _explored_package(one: ExploredAdapter) -> Finding:
    broken = one.violations[:FORBIDDEN_SHOWN]
    said = [*(f"{shown.clause}: {shown.seen}" for shown in broken), *_covered(one)]
    said += [f"not controlled: {what}" for what in one.uncontrolled[:FORBIDDEN_SHOWN]]
    again = f"purgatorio explore --replay {broken[0].token}" if broken else ""
    return Finding(f"{one.program}, explore", one.verdict, "; ".join(filter(None, said)), again)


def _explored(one: Explored) -> Finding:
    said = _covered(one)
    said += [f"never reached: {', '.join(one.unreached)}"] if one.unreached else []
    what = f"{one.scenario}, explore {one.strategy}".strip()
    return _finding(what, one.verdict, one.mutant, said, one.outcomes)


def _finding(
    what: str, verdict: Verdict, mutant: str, said: Iterable[str], outcomes: Iterable[Outcome]
) -> Finding:
    """The finding of a scenario: its number of runs, its forbidden outcomes, and other remarks."""
    forbidden = [one for one in outcomes if one.grade is Grade.FORBIDDEN and one.count]
    told = [
        f"{one.count:,} times {f'{one.clause}: ' if one.clause else ''}{one.outcome}" for one in forbidden
    ]
    if len(told) > FORBIDDEN_SHOWN:
        told[FORBIDDEN_SHOWN:] = [f"{len(told) - FORBIDDEN_SHOWN:,} more outcomes that are forbidden"]
    bug = f", with the bug {mutant}" if mutant else ""
    again = forbidden[0].again if forbidden else ""
    return Finding(f"{what}{bug}", verdict, "; ".join(filter(None, [*told, *said])), again)


Printed = Check | Stress | Explore | ExplorePackage
"""The records that `report` reads."""
