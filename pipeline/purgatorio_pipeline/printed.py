"""What commands print with --json, and what `mutants --kept` keeps, as records by their `kind`; and what each says.

A document of another kind, a field that is missing and one of another type are refused with their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta, Struct

from purgatorio_pipeline.documents import Unreadable
from purgatorio_pipeline.finding import Finding
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.judge.tally import Cause
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.verdict import Verdict, Violation, worst
from purgatorio_spec.wire.registry import WIRE_CLAUSES
from purgatorio_stress.kill_matrix.kill import Kill
from purgatorio_stress.scenario.grade import Grade

FORBIDDEN_SHOWN: Final = 3
"""Outcomes of a scenario that are told; the terminal of its command has all."""

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


class Check(Struct, tag_field="kind", tag="check"):
    """Of `check` and `verify`. The events are not among it, so a cause is told in words and not drawn."""

    runs: list[_Run]
    quarantined: Count = 0
    broken: list[BrokenLine] = []

    def result(self) -> CheckResult:
        """The check. Raises `Unreadable` for a clause that nobody knows."""
        return CheckResult(tuple(map(_run, self.runs)), self.quarantined, tuple(self.broken))


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


class _Outcome(Struct):
    outcome: str
    count: Count
    grade: Grade
    clause: str = ""
    again: str = ""


def _found(
    what: str, verdict: Verdict, mutant: int, said: Iterable[str], outcomes: Iterable[_Outcome]
) -> Finding:
    """A scenario: how often it was run, what was forbidden of it, and what else there is to say."""
    forbidden = [one for one in outcomes if one.grade is Grade.FORBIDDEN and one.count]
    told = [
        f"{one.count:,} times {f'{one.clause}: ' if one.clause else ''}{one.outcome}" for one in forbidden
    ]
    if len(told) > FORBIDDEN_SHOWN:
        told[FORBIDDEN_SHOWN:] = [f"{len(told) - FORBIDDEN_SHOWN:,} more outcomes that are forbidden"]
    bug = f", with known bug {mutant}" if mutant else ""
    again = forbidden[0].again if forbidden else ""
    return Finding(f"{what}{bug}", verdict, "; ".join(filter(None, [*told, *said])), again)


class Raced(Struct):
    """A scenario of `stress`."""

    name: str
    verdict: Verdict
    rounds: Count
    outcomes: list[_Outcome]
    overlapped: Count = 0
    given_up: Count = 0


class _Thread(Struct):
    name: str
    moved: bool
    stack: list[str]

    def __str__(self) -> str:
        how = "goes round" if self.moved else "stands still"
        return f"stuck: {self.name} {how}{f' at {self.stack[-1]}' if self.stack else ''}"


class _Stuck(Struct):
    scenario: str
    threads: list[_Thread]


class Stress(Struct, tag_field="kind", tag="stress"):
    """Of `stress`."""

    verdict: Verdict
    scenarios: list[Raced]
    rounds: Count = 0
    mutant: Count = 0
    problem: str = ""
    stuck: _Stuck | None = None

    def findings(self) -> list[Finding]:
        """By scenario."""
        return [self._finding(one) for one in self.scenarios]

    def _finding(self, one: Raced) -> Finding:
        said = [f"{one.rounds:,} rounds, threads overlapped in {one.overlapped:,}"]
        if one.given_up:
            said.append(f"{one.given_up:,} rounds were given up")
        if self.stuck is not None and self.stuck.scenario == one.name:
            said += map(str, self.stuck.threads)
        verdict = one.verdict
        if self.problem:
            # A run that broke off shows nothing, whatever it had seen of this scenario.
            said.append(f"the run ended early: {self.problem}")
            verdict = worst((verdict, Verdict.UNKNOWN))
        return _found(f"{one.name}, stress", verdict, self.mutant, said, one.outcomes)


class Found(Struct):
    """A violation of an exploration."""

    clause: str
    seen: str
    token: str


class _Explored(Struct):
    scenario: str
    verdict: Verdict
    schedules: Count = 0
    outcomes: list[_Outcome] = []
    violations: list[Found] = []
    strategy: str = ""
    bound: str = ""
    limit: str | None = None
    unreached: list[str] = []
    mutant: Count = 0

    def finding(self) -> Finding:
        """With what was covered of it."""
        said = [f"{self.schedules:,} schedules", self.bound]
        said += [f"limit reached: {self.limit}"] if self.limit else []
        said += [f"never reached: {', '.join(self.unreached)}"] if self.unreached else []
        what = f"{self.scenario}, explore {self.strategy}".strip()
        return _found(what, self.verdict, self.mutant, said, self.outcomes)


class Explore(Struct, tag_field="kind", tag="explore"):
    """Of `explore`."""

    verdict: Verdict
    scenarios: list[_Explored]
    schedules: Count = 0

    def findings(self) -> list[Finding]:
        """By scenario."""
        return [one.finding() for one in self.scenarios]

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

    @property
    def mutants(self) -> list[Mutant]:
        """This one."""
        return [self]


class Mutants(Struct, tag_field="kind", tag="mutants"):
    """Of `mutants`."""

    mutants: list[Mutant]


def known_bugs(rows: Iterable[Mutant]) -> list[Finding]:
    """How many of these bugs some layer found, and those that survive. Layers that were run apart are put together: a
    bug that one of them finds does not survive."""
    names: dict[int, str] = {}
    layers: dict[int, dict[str, Kill]] = {}
    for row in rows:
        names[row.number] = f"known bug {row.number} {row.name}" + (f" ({row.source})" if row.source else "")
        layers.setdefault(row.number, {}).update(row.layers)
    alive = [number for number, by in layers.items() if not any(kill.killed for kill in by.values())]
    if not layers:
        return []
    said = f"{len(layers) - len(alive):,} of {len(layers):,} were found by a layer"
    return [
        Finding("known bugs put into the reference", Verdict.VIOLATED if alive else Verdict.PASS, said),
        *(
            Finding(names[number], Verdict.VIOLATED, f"survives {', '.join(layers[number])}")
            for number in sorted(alive)
        ),
    ]


Printed = Check | Stress | Explore | Mutant | Mutants
"""What `report` reads."""
