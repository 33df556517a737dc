"""Groups the causes of violations in the runs of one subject, so that a report shows each cause once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol, TypeVar

from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.selection import CauseKey, causes, noun
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.trace.log import PROFILE as LOG_PROFILE
from purgatorio_spec.verdict import Verdict, Violation

RUNS_NAMED: Final = 10
SUBJECTS_NAMED: Final = 12
ExampleOf = Mapping[CauseKey, Counterexample]

_ORDER: Final = (Verdict.VIOLATED, Verdict.INVALID_TRACE, Verdict.UNKNOWN, Verdict.PASS, Verdict.SKIPPED)


class _Judged(Protocol):
    @property
    def verdict(self) -> Verdict: ...


J = TypeVar("J", bound=_Judged)


def worst_first(judged: Iterable[J]) -> list[J]:
    """Sorted by verdict, the worst first, so that a report of the first items omits no worse item."""
    return sorted(judged, key=lambda one: _ORDER.index(one.verdict))


def run_titles(runs: Iterable[RunResult]) -> dict[tuple[str, str], str]:
    """The title of each run by file and name: its name, with the file if another run has the same name."""
    places = [(run.file, run.run) for run in runs]
    named = Counter(name for _, name in places)
    return {(file, name): name if named[name] == 1 else f"{name} ({file})" for file, name in places}


def verdicts_in_words(result: CheckResult) -> str:
    """The number of runs for each verdict: `2 PASS, 1 UNKNOWN`."""
    counts = Counter(run.verdict for run in result.runs)
    return ", ".join(f"{counts[one]:,} {one}" for one in Verdict if counts[one]) or "no runs"


def skipped_everywhere(result: CheckResult) -> list[ClauseResult]:
    """The results of clauses that were skipped in all runs."""
    judged = [one for run in result.runs for one in run.clauses.values()]
    looked_for = {one.clause for one in judged if one.verdict is not Verdict.SKIPPED}
    return [one for one in judged if one.clause not in looked_for]


def why_skipped(clauses: Iterable[ClauseResult]) -> Iterator[str]:
    """Each reason for a skip, with its clauses."""
    skipped: dict[str, dict[str, None]] = {}
    for one in clauses:
        if one.verdict is Verdict.SKIPPED:
            skipped.setdefault(one.reason, {})[one.clause] = None
    for reason, names in skipped.items():
        yield f"{', '.join(names)} skipped: {visible(reason, TEXT_LIMIT)}"


@dataclass(slots=True)
class CauseGroup:
    """A cause in the runs of one subject. `counts`: the number of violations by title of a run, in order. `example`:
    the counterexample of the run whose violation comes after the fewest events, because it is the shortest. Without
    events, it is None, and `violation` still has the allowed and the seen behavior."""

    subject: str
    clause: str
    cause: str
    violation: Violation
    file: str
    profile: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    places: list[tuple[str, str]] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)
    example: Counterexample | None = None

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    @property
    def where(self) -> str:
        """The runs, at most `RUNS_NAMED` of them by name."""
        named = [f"{run} ({count:,})" for run, count in islice(self.counts.items(), RUNS_NAMED)]
        more = len(self.counts) - len(named)
        return f"in {', '.join(named)}{f' and {more:,} more runs' if more > 0 else ''}"

    @property
    def named(self) -> str:
        """The requests of a log, at most `SUBJECTS_NAMED` of them. In other traces, a program chose the names."""
        if self.profile != LOG_PROFILE or self.count == 1:
            return ""
        more = self.count - SUBJECTS_NAMED
        named = visible(", ".join(self.subjects[:SUBJECTS_NAMED]), TEXT_LIMIT)
        return named + (f" and {more:,} more (--json has all)" if more > 0 else "")

    @property
    def counted(self) -> str:
        return noun(self.clause, self.cause, self.count, self.profile)


def grouped(result: CheckResult, examples: ExampleOf) -> list[CauseGroup]:
    """The groups, sorted by the order of the clauses in the runs, then by count, then by run."""
    groups: dict[tuple[str, str, str], CauseGroup] = {}
    titles = run_titles(result.runs)
    for key, run, count, violation in causes(result):
        place = (run.subject, key.clause, key.cause)
        group = groups.setdefault(
            place, CauseGroup(run.subject, key.clause, key.cause, violation, key.file, run.profile)
        )
        title = titles[key.file, key.run]
        group.counts[title] = group.counts.get(title, 0) + count
        group.places.append((key.file, key.run))
        group.subjects += (one.subject for one in run.clauses[key.clause].causes[key.cause].examples)
        found = examples.get(key)
        if found is not None and (group.example is None or found.breaks_at < group.example.breaks_at):
            group.example = found
    order = list(dict.fromkeys(clause for run in result.runs for clause in run.clauses))
    return sorted(groups.values(), key=lambda group: (order.index(group.clause), -group.count))
