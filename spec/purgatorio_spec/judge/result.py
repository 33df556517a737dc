"""The results of a check: tallies over the parts of a run, and verdicts per clause, per run and in total.

A worker process returns tallies: they are small, and can be added.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from purgatorio_spec.clause.declaration import Clause, Part
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.history.operation import NEVER, OperationHistory
from purgatorio_spec.history.run import BACKWARDS, BROKEN_RECORDS, REPEATED, Run
from purgatorio_spec.trace.log import PROFILE as LOG_PROFILE
from purgatorio_spec.trace.log import log_facts, unknown_end
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Judgement, Verdict, Violation, worst

EXAMPLES: Final = 1_000
"""The maximum number of stored violations of a cause. Further violations are only counted."""


@dataclass(slots=True)
class Cause:
    """The violations of one clause by one cause: their number, and the first few by position."""

    count: int = 0
    examples: list[Violation] = field(default_factory=list)

    def add(self, violation: Violation) -> None:
        """Count a violation. Store it if it is earlier in the run than the last stored violation."""
        self.count += 1
        insort(self.examples, violation, key=lambda one: (one.events[-1], one.subject))
        del self.examples[EXAMPLES:]


@dataclass(slots=True)
class Tally:
    """The results of a clause over parts of a run. `undecided`: the number of undecided parts, by reason."""

    occasions: int = 0
    undecided: dict[str, int] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        return sum(cause.count for cause in self.causes.values())

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        self.occasions += judgement.occasions
        if why := judgement.undecided:
            self.undecided[why] = self.undecided.get(why, 0) + 1
        if judgement.violation is not None:
            self.causes.setdefault(judgement.violation.cause, Cause()).add(judgement.violation)


@dataclass(slots=True)
class RunTally:
    """The results of all clauses over parts of a run. `repeated`: the number of calls that are recorded twice, and the
    first. `told` gets each violation. Only the first few violations are stored. `failures`: the first error of each
    clause whose judging function raised."""

    clauses: dict[str, Tally] = field(default_factory=dict)
    repeated: tuple[int, int] = (0, NEVER)
    told: Callable[[Violation], None] | None = None
    failures: dict[str, Failure] = field(default_factory=dict)

    def occasions(self, clause: str) -> int:
        return self.clauses[clause].occasions if clause in self.clauses else 0

    def add(self, run: Run, part: Part, clauses: Iterable[Clause]) -> list[Violation]:
        """Judge one part of the run's history by the given clauses. Return its violations."""
        if isinstance(part, OperationHistory) and part.repeated:
            count, first_i = self.repeated
            self.repeated = (count + len(part.repeated), min(first_i, *part.repeated))
        broken: list[Violation] = []
        for clause in clauses:
            try:
                judgement = clause.judge(run, part)
            except Exception as error:
                # The results of other clauses, and of this clause on other parts, are not lost.
                self.failures.setdefault(clause.id, failure_of(f"judging {clause.id}", error))
                continue
            if judgement is not None:
                self.clauses.setdefault(clause.id, Tally()).add(judgement)
                broken += [] if judgement.violation is None else [judgement.violation]
                if self.told is not None and judgement.violation is not None:
                    self.told(judgement.violation)
        return broken


def judged_clauses(run: Run) -> list[Clause]:
    return [clause for clause in CLAUSES.values() if clause.skipped(run) is None]


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """One clause over one run. `reason`: why it is SKIPPED or UNKNOWN."""

    clause: str
    verdict: Verdict
    occasions: int = 0
    causes: dict[str, Cause] = field(default_factory=dict)
    reason: str = ""

    @property
    def violations(self) -> int:
        """The number of operations, tasks, calls or readings that violate the clause."""
        return sum(cause.count for cause in self.causes.values())


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run. `problems`: the faults of the trace itself, in words, each with a remedy.

    `failure`: one word for the reason why a driven subject did not finish its run; otherwise empty. `header`: the
    header of the trace, for reports that show the constants. `quarantined`: the number of lines that are no records.
    `failures`: internal errors while the run was judged."""

    run: str
    file: str
    subject: str
    profile: str
    verdict: Verdict
    events: int
    clauses: dict[str, ClauseResult]
    problems: tuple[str, ...] = ()
    failure: str = ""
    header: Header | None = None
    quarantined: int = 0
    failures: tuple[Failure, ...] = ()

    def breaks(self, clause: str) -> bool:
        """Whether the run violates this clause. False if the run has no result for it."""
        return clause in self.clauses and self.clauses[clause].verdict is Verdict.VIOLATED


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: its runs in the order of their files, and the lines that are no records."""

    runs: tuple[RunResult, ...]
    quarantined: int = 0
    broken: tuple[BrokenLine, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the runs."""
        return worst(run.verdict for run in self.runs)


NO_OCCASION: Final = (
    "no occasion: nothing in the trace could break this clause (`purgatorio clause ID`); "
    "to ignore such clauses: --allow-idle"
)


def without_silent_pass(result: CheckResult) -> CheckResult:
    """The check, with UNKNOWN instead of PASS for each promised and recorded clause without an occasion."""
    return replace(result, runs=tuple(no_silent_pass(run) for run in result.runs))


def no_silent_pass(run: RunResult) -> RunResult:
    if run.verdict is Verdict.INVALID_TRACE:
        return run
    clauses = {
        name: replace(one, verdict=Verdict.UNKNOWN, reason=NO_OCCASION)
        if one.verdict is Verdict.PASS and not one.occasions
        else one
        for name, one in run.clauses.items()
    }
    verdicts = (run.verdict, *(one.verdict for one in clauses.values()))
    return replace(run, clauses=clauses, verdict=worst(verdicts) if run.clauses else run.verdict)


INCOMPLETE: Final = "the trace has no end record, or records were dropped"


def broken_off(run: RunResult, failure: str, why: str) -> RunResult:
    """The result of a run that the subject did not finish: violations remain, and no clause is PASS. A `deadlock`,
    `raced`, `raises`, `endless` or `crashes` breaks P3, `late` breaks T2 or O5. The missing end of the trace is not
    reported in addition, because the failure explains it."""
    broken = failure in ("deadlock", "late", "raced", "raises", "endless", "crashes")
    verdict = worst((run.verdict, Verdict.VIOLATED if broken else Verdict.UNKNOWN))
    clauses = {
        name: replace(one, reason=f"the run ended early ({failure})") if one.reason == INCOMPLETE else one
        for name, one in run.clauses.items()
    }
    return replace(run, verdict=verdict, failure=failure, problems=(f"{failure}: {why}",), clauses=clauses)


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """The result of reading a file: all facts for a verdict, except the tallies. `quarantined`: the number of broken
    lines, including a last line that a killed writer cut."""

    file: str
    header: Header | None
    events: int
    broken: int = 0
    dropped: int = 0
    has_end: bool = True
    cut: str | None = None
    first_broken: str = ""
    quarantined: int = 0


def subject_of(header: Header) -> str:
    return f"{header.implementation.name} {header.implementation.version}".strip()


def conclude(facts: TraceFacts, run: Run | None, tally: RunTally) -> RunResult:
    """The result of a run, from the tally of its parts. `run` is None if the header or profile is unusable."""
    broken = {} if run is None else _broken_records(run, tally)
    problems = [*_problems(facts, run), *map(_broken_record, sorted(broken.items()))]
    header = facts.header
    clauses: dict[str, ClauseResult] = {}
    invalid = run is None or facts.broken > 0 or bool(broken)
    if run is not None:
        clauses = {
            name: _clause(name, run, tally.clauses.get(name, Tally()), tally.failures.get(name))
            for name, clause in CLAUSES.items()
            if header is None or clause.is_asked(header) or tally.occasions(name)
        }
    if invalid:
        clauses = {name: accusing_nobody(one) for name, one in clauses.items()}
    verdict = Verdict.INVALID_TRACE if invalid else verdict_of(clauses.values())
    if verdict is Verdict.UNKNOWN and all(one.verdict is Verdict.SKIPPED for one in clauses.values()):
        problems.append(NOTHING_JUDGED)
    return RunResult(
        run=facts.file if header is None else header.run,
        file=facts.file,
        subject="" if header is None else subject_of(header),
        profile="" if header is None else header.profile,
        verdict=verdict,
        events=facts.events,
        clauses=clauses,
        problems=tuple(problems),
        header=header,
        quarantined=facts.quarantined,
        failures=tuple(tally.failures.values()),
    )


def unjudged(facts: TraceFacts, failure: Failure) -> RunResult:
    result = conclude(facts, None, RunTally(failures={"": failure}))
    verdict = result.verdict if facts.header is None else Verdict.UNKNOWN
    return replace(result, verdict=verdict, problems=(f"an internal error of Purgatorio: {failure}",))


NOTHING_JUDGED: Final = (
    "nothing was judged: every clause is SKIPPED; record the functions that a clause needs "
    "(`purgatorio clause ID` lists them)"
)


def verdict_of(clauses: Iterable[ClauseResult]) -> Verdict:
    """The verdict of a run by its clauses. UNKNOWN if no clause was judged, because a PASS would prove nothing."""
    verdict = worst(one.verdict for one in clauses)
    return Verdict.UNKNOWN if verdict is Verdict.SKIPPED else verdict


def accusing_nobody(clause: ClauseResult) -> ClauseResult:
    """The result of a clause in a broken recording: UNKNOWN, because a missing or wrong record may be the cause."""
    if clause.verdict is Verdict.SKIPPED:
        return clause
    reason = "the recording is broken"
    if clause.violations:
        reason += f"; if the other records are right, {clause.violations:,} of {clause.occasions:,} occasions broke it"
    return ClauseResult(clause.clause, Verdict.UNKNOWN, clause.occasions, reason=reason)


def _broken_records(run: Run, tally: RunTally) -> dict[str, tuple[int, int]]:
    """The records that contradict others, by kind, except contradictions that dropped records explain."""
    repeated = {REPEATED: tally.repeated} if tally.repeated[0] else {}
    found = {**run.facts.broken, **repeated}
    return {kind: seen for kind, seen in found.items() if kind == BACKWARDS or not run.dropped}


def _broken_record(found: tuple[str, tuple[int, int]]) -> str:
    kind, (times, first_i) = found
    return f"{kind}, {times:,} time{'s' * (times > 1)}, first at i = {first_i}: {BROKEN_RECORDS[kind]}"


def _clause(name: str, run: Run, tally: Tally, failure: Failure | None) -> ClauseResult:
    clause = CLAUSES[name]
    skipped = clause.skipped(run)
    if skipped is not None:
        return ClauseResult(name, Verdict.SKIPPED, reason=skipped)
    if tally.causes:
        # Engines find the causes in different orders.
        causes = sorted(tally.causes.items(), key=lambda one: (one[1].examples[0].events[-1], one[0]))
        return ClauseResult(name, Verdict.VIOLATED, tally.occasions, dict(causes))
    if failure is not None:
        return ClauseResult(
            name, Verdict.UNKNOWN, tally.occasions, reason=f"an internal error of Purgatorio: {failure}"
        )
    # A row that is left out of a log takes its whole request with it, and any clause may be broken there.
    if (clause.needs_whole or run.profile.answered_in_time) and not run.whole:
        return ClauseResult(name, Verdict.UNKNOWN, tally.occasions, reason=INCOMPLETE)
    if name == "O4" and (beyond := run.log.beyond_events):
        reason = f"the log has no events of keys from the time of {beyond:,} request{'s' * (beyond > 1)}"
        return ClauseResult(name, Verdict.UNKNOWN, tally.occasions, reason=reason)
    if tally.undecided:
        reason = "; ".join(f"{count:,} undecided {why}" for why, count in sorted(tally.undecided.items()))
        return ClauseResult(name, Verdict.UNKNOWN, tally.occasions, reason=reason)
    if not tally.occasions and (never := clause.never_asked(run)) is not None:
        return ClauseResult(name, Verdict.SKIPPED, reason=never)
    return ClauseResult(name, Verdict.PASS, tally.occasions)


def _problems(facts: TraceFacts, run: Run | None) -> Sequence[str]:
    problems: list[str] = []
    unreadable = facts.first_broken.removeprefix(f"{facts.file}: ")
    if facts.header is None and not unreadable.startswith(("field ", facts.first_broken)):
        return [unreadable]
    if facts.header is None:
        empty = facts.events == 0 and facts.broken == 0 and facts.cut is None
        what = "the file is empty" if empty else "no usable header"
        log = "" if empty else "; for a log of your own, use `purgatorio convert --from-log`"
        problems.append(f"{what}: line 1 of a trace must be its header, see `purgatorio check --help`{log}")
    elif run is None:
        problems.append(
            f"unknown profile {facts.header.profile!r}: use a profile that `purgatorio check --profiles` lists"
        )
    if facts.broken:
        problems.append(
            f"{facts.broken:,} broken line{'' if facts.broken == 1 else 's'}, first {facts.first_broken}"
        )
    if facts.cut is not None:
        problems.append(f"{facts.cut}: only the events before this place are judged; record to the end")
    if not facts.has_end and facts.cut is None and facts.header is not None:
        problems.append("no end record: the recorder did not finish")
    if facts.dropped:
        of_log = facts.header is not None and facts.header.profile == LOG_PROFILE
        unknown = log_facts(facts.header).unknown_ends
        bad = facts.dropped - sum(unknown.values())
        problems += map(unknown_end, unknown.items())
        if bad > 0:
            problems.append(
                f"bad rows of the log are left out ({bad:,}): mend them, and convert it again"
                if of_log
                else f"the recorder dropped {facts.dropped} record(s): enlarge its buffers and record again"
            )
    return problems
