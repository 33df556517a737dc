"""What commands print with --json, and what `mutants --kept` keeps, as records by their `kind`; and what each says.

A document of another kind, a field that is missing and one of another type are refused with their place.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from purgatorio_pipeline.documents import Unreadable
from purgatorio_pipeline.results.kills import KillMatrix, KillRow
from purgatorio_pipeline.results.outcomes import OutcomeLine, ScenarioOutcomes
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.judge.tally import Cause
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.verdict import Verdict, Violation, worst
from purgatorio_spec.wire.registry import WIRE_CLAUSES
from purgatorio_stress.kill_matrix.kill import Kill

Count = Annotated[int, Meta(ge=0)]


class _Example(Struct):
    subject: str
    events: tuple[int, ...]
    allowed: str
    seen: str


class _Cause(Struct):
    cause: str
    count: Count
    examples: list[_Example]


class _Clause(Struct):
    verdict: Verdict
    occasions: Count = 0
    reason: str = ""
    causes: list[_Cause] = []


class _Run(Struct):
    run: str
    file: str
    subject: str
    profile: str
    verdict: Verdict
    events: Count
    clauses: dict[str, _Clause]
    problems: tuple[str, ...] = ()
    failure: str = ""


class _Broken(Struct):
    file: str
    line: Count
    field: str
    why: str
    hint: str
    text: str = ""


class Check(Struct, tag_field="kind", tag="check"):
    """Of `check` and `verify`. The events are not among it, so a cause is told in words and not drawn."""

    runs: list[_Run]
    quarantined: Count = 0
    broken: list[_Broken] = []

    def result(self) -> CheckResult:
        """The check. Raises `Unreadable` for a clause that nobody knows."""
        broken = (
            BrokenLine(one.file, one.line, one.field, one.why, one.hint, one.text) for one in self.broken
        )
        return CheckResult(tuple(map(_run, self.runs)), self.quarantined, tuple(broken))


def _run(run: _Run) -> RunResult:
    for name in run.clauses:
        if name not in CLAUSES and name not in WIRE_CLAUSES:
            raise Unreadable(
                f"{visible(name)!r} is no clause: another version wrote this; see `purgatorio check --clauses`"
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


def _clause(name: str, clause: _Clause) -> ClauseResult:
    causes = {
        one.cause: Cause(
            one.count,
            [Violation(name, ex.subject, one.cause, ex.events, ex.allowed, ex.seen) for ex in one.examples],
        )
        for one in clause.causes
    }
    return ClauseResult(name, clause.verdict, clause.occasions, causes, clause.reason)


class _Raced(Struct):
    name: str
    verdict: Verdict
    rounds: Count
    outcomes: list[OutcomeLine]
    overlapped: Count = 0
    given_up: Count = 0


class _Thread(Struct):
    name: str
    moved: bool
    stack: list[str]


class _Stuck(Struct):
    scenario: str
    threads: list[_Thread]


class Stress(Struct, tag_field="kind", tag="stress"):
    """Of `stress`."""

    verdict: Verdict
    scenarios: list[_Raced]
    rounds: Count = 0
    mutant: Count = 0
    problem: str = ""
    stuck: _Stuck | None = None

    def outcomes(self) -> list[ScenarioOutcomes]:
        """By scenario."""
        return [self._outcomes(one) for one in self.scenarios]

    def _outcomes(self, one: _Raced) -> ScenarioOutcomes:
        notes = [f"{one.given_up:,} rounds were given up"] if one.given_up else []
        if self.stuck is not None and self.stuck.scenario == one.name:
            notes += map(_stands, self.stuck.threads)
        verdict = one.verdict
        if self.problem:
            # A run that broke off shows nothing, whatever it had seen of this scenario.
            notes.append(f"the run ended early: {self.problem}")
            verdict = worst((verdict, Verdict.UNKNOWN))
        return ScenarioOutcomes(
            one.name, "stress", verdict, one.rounds, tuple(one.outcomes), self.mutant, one.overlapped,
            notes=tuple(notes),
        )  # fmt: skip


def _stands(thread: _Thread) -> str:
    how = "goes round" if thread.moved else "stands still"
    return f"stuck: {thread.name} {how}{f' at {thread.stack[-1]}' if thread.stack else ''}"


class Found(Struct):
    """A violation of an exploration."""

    clause: str
    seen: str
    token: str


class _Explored(Struct):
    scenario: str
    verdict: Verdict
    schedules: Count = 0
    outcomes: list[OutcomeLine] = []
    violations: list[Found] = []
    strategy: str = ""
    bound: str = ""
    limit: str | None = None
    unreached: list[str] = []
    mutant: Count = 0

    def as_outcomes(self) -> ScenarioOutcomes:
        notes = [self.bound, f"limit reached: {self.limit}" if self.limit else ""]
        notes += [f"never reached: {', '.join(self.unreached)}"] if self.unreached else []
        return ScenarioOutcomes(
            self.scenario, f"explore {self.strategy}".strip(), self.verdict, self.schedules,
            tuple(self.outcomes), self.mutant, notes=tuple(filter(None, notes)),
        )  # fmt: skip


class Explore(Struct, tag_field="kind", tag="explore"):
    """Of `explore`."""

    verdict: Verdict
    scenarios: list[_Explored]
    schedules: Count = 0

    def outcomes(self) -> list[ScenarioOutcomes]:
        """By scenario."""
        return [one.as_outcomes() for one in self.scenarios]

    @property
    def violations(self) -> list[Found]:
        """Of all scenarios."""
        return [found for one in self.scenarios for found in one.violations]


class Mutant(Struct, tag_field="kind", tag="mutant"):
    """A row of `mutants`, and a line of a file of `mutants --kept`."""

    number: Count
    name: str
    layers: dict[str, Kill]
    source: str = ""
    scenario: str = ""

    def row(self) -> KillRow:
        """A row of the kill matrix."""
        return KillRow(self.number, self.name, self.source, self.scenario, self.layers)

    def matrix(self) -> KillMatrix:
        """A matrix of this row."""
        return KillMatrix((self.row(),))


class _NotApplicable(Struct):
    number: Count
    name: str
    reason: str


class Mutants(Struct, tag_field="kind", tag="mutants"):
    """Of `mutants`."""

    mutants: list[Mutant]
    not_applicable: list[_NotApplicable] = []
    equivalent: tuple[str, ...] = ()

    def matrix(self) -> KillMatrix:
        """The kill matrix."""
        missing = tuple((one.number, one.name, one.reason) for one in self.not_applicable)
        return KillMatrix(tuple(one.row() for one in self.mutants), missing, self.equivalent)


Printed = Check | Stress | Explore | Mutant | Mutants
"""What `report` reads."""
