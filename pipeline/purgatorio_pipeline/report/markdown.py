"""Markdown summaries, for a CI job's page or a comment. Of a check: verdict, subjects by clause, violations, lateness,
results of other commands. Of a comparison: the changes, the lateness, the runs without a partner.

`markdown_text` escapes text from traces. The size of the summary is limited, because CI systems cut a summary at 1 MiB.
The summary says what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from purgatorio_pipeline.comparison import Comparison, RunPair
from purgatorio_pipeline.finding import Finding, has_check, verdict_of
from purgatorio_pipeline.report.grouped import CauseGroup, ExampleOf, grouped, verdicts_in_words, worst_first
from purgatorio_pipeline.report.markdown_text import fenced, lateness_cells, left_out, plain, table, text
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.selection import wording_of, wordings
from purgatorio_spec.show.text import render, rendered_without
from purgatorio_spec.verdict import Verdict, worst

LATENESS_HEAD: Final = ("tasks", "early", "p50", "p90", "p99", "max")
ROWS_SHOWN: Final = 100
SUBJECTS_SHOWN: Final = 100
GROUPS_SHOWN: Final = 20
LATENESS_SHOWN: Final = 60
PROBLEMS_SHOWN: Final = 20
FINDINGS_SHOWN: Final = 30
"""The maximum number of findings, the worst first."""


def markdown(
    result: CheckResult,
    examples: ExampleOf,
    lateness: Sequence[Lateness],
    findings: Sequence[Finding] = (),
    provenance: Mapping[str, str] | None = None,
) -> str:
    groups = grouped(result, examples)
    parts = [
        f"## Purgatorio: {verdict_of(result, findings)}\n",
        _runs(result, groups) if has_check(result, findings) else "",
        _subjects(result),
        *_examples(groups),
        _lateness(lateness),
        _findings(findings),
        _problems(result),
        "".join(f"- {name}: {text(said)}\n" for name, said in (provenance or {}).items()),
    ]
    return "\n".join(part for part in parts if part)


def _runs(result: CheckResult, groups: Sequence[CauseGroup]) -> str:
    said = f"{verdicts_in_words(result)}; {sum(run.events for run in result.runs):,} events"
    if groups:
        broken = sum(group.count for group in groups)
        said += f"; {broken:,} violations of {len(groups):,} kind{'s'[: len(groups) != 1]}"
    return f"{said}\n"


@dataclass(slots=True)
class _Sum:
    verdicts: set[Verdict] = field(default_factory=set)
    occasions: int = 0
    violations: int = 0

    def add(self, clause: ClauseResult) -> None:
        self.verdicts.add(clause.verdict)
        self.occasions += clause.occasions
        self.violations += clause.violations

    def cell(self) -> str:
        verdict = worst(self.verdicts)
        if verdict is Verdict.VIOLATED:
            return f"**VIOLATED** {self.violations:,} of {self.occasions:,}"
        if verdict is Verdict.PASS:
            return f"PASS {self.occasions:,}"
        return str(verdict)


def _subjects(result: CheckResult) -> str:
    """A row for each subject and profile, a column for each clause that one of them judges."""
    sums: dict[tuple[str, str], dict[str, _Sum]] = {}
    runs: dict[tuple[str, str], list[Verdict]] = {}
    for run in worst_first(result.runs):
        place = (run.subject, run.profile)
        runs.setdefault(place, []).append(run.verdict)
        for name, clause in run.clauses.items():
            sums.setdefault(place, {}).setdefault(name, _Sum()).add(clause)
    judged = [
        name
        for name in wordings(run.profile for run in result.runs)
        if any(one[name].verdicts != {Verdict.SKIPPED} for one in sums.values() if name in one)
    ]
    rows = [
        [
            text(" ".join(place).strip() or "?"), f"{len(verdicts):,}", str(worst(verdicts)),
            *(sums[place][name].cell() if name in sums.get(place, {}) else "" for name in judged),
        ]
        for place, verdicts in islice(runs.items(), SUBJECTS_SHOWN)
    ]  # fmt: skip
    note = "\nPASS has the number of occasions; PASS 0 tested nothing.\n"
    return _table(["subject", "runs", "verdict", *judged], rows, len(runs), "subjects", note)


def _examples(groups: Sequence[CauseGroup]) -> Iterator[str]:
    for group in groups[:GROUPS_SHOWN]:
        wording = wording_of(group.clause, group.profile, group.cause)
        title = f"{group.clause} {wording.title}: {group.cause}, {group.counted} of {group.subject}"
        yield f"### {plain(title)}\n\n{plain(wording.promise)}\n\n{fenced(_shown(group))}"
    if len(groups) > GROUPS_SHOWN:
        yield left_out(len(groups), GROUPS_SHOWN, "causes").strip() + "\n"


def _shown(group: CauseGroup) -> str:
    return rendered_without(group.violation) if group.example is None else render(group.example)


def _lateness(lateness: Sequence[Lateness]) -> str:
    rows = [[text(one.run), *lateness_cells(one)] for one in lateness[:LATENESS_SHOWN]]
    return _table(["lateness of run", *LATENESS_HEAD], rows, len(lateness), "runs")


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        [str(one.verdict), text(one.what, 160), plain(one.said), text(one.again) if one.again else ""]
        for one in findings[:FINDINGS_SHOWN]
    ]
    return _table(["found by other commands", "of", "result", "again"], rows, len(findings), "findings")


def _problems(result: CheckResult) -> str:
    said = [f"{run.file}: {problem}" for run in result.runs for problem in run.problems]
    said += [f"quarantined: {line}" for line in result.broken]
    total = len(said) + max(result.quarantined - len(result.broken), 0)
    return _listed(
        "Problems with the traces", map(text, said[:PROBLEMS_SHOWN]), total, PROBLEMS_SHOWN, "problems"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], total: int, noun: str, note: str = "") -> str:
    """The first rows of a table, and how many of `total` are left out. Nothing without rows."""
    return table(head, rows) + note + left_out(total, len(rows), noun) if rows else ""


def _listed(title: str, said: Iterable[str], total: int, limit: int, noun: str) -> str:
    lines = "".join(f"- {one}\n" for one in said)
    return f"### {title}\n\n{lines}{left_out(total, limit, noun)}" if lines else ""


def comparison_markdown(comparison: Comparison) -> str:
    said = comparison.counted() or "nothing to compare"
    parts = [f"## Purgatorio, before and after: {comparison.verdict}\n\nclauses by run: {said}\n"]
    parts += [_changes(comparison), _late_before_and_after(comparison.pairs)]
    parts += [_alone("Only before", comparison.only_before), _alone("Only after", comparison.only_after)]
    return "\n".join(part for part in parts if part)


def _changes(comparison: Comparison) -> str:
    rows = [
        [
            str(change), text(pair.after.run), one.clause, side(one.before), side(one.after),
            " ".join(map(text, one.new_causes)),
        ]
        for change, pair, one in comparison.changed()
    ]  # fmt: skip
    head = ["change", "run", "clause", "before", "after", "new causes"]
    return _table(head, rows[:ROWS_SHOWN], len(rows), "changes")


def side(clause: ClauseResult | None) -> str:
    """One side of a change: the verdict, and the numbers of violations and occasions."""
    if clause is None:
        return "not judged"
    if clause.violations:
        return f"{clause.verdict} {clause.violations:,} of {clause.occasions:,}"
    return f"{clause.verdict} {clause.occasions:,}" if clause.occasions else f"{clause.verdict}"


def _late_before_and_after(pairs: tuple[RunPair, ...]) -> str:
    rows = [
        [text(pair.after.run), *_figures(pair.lateness_before, pair.lateness_after)]
        for pair in pairs
        if pair.lateness_before is not None or pair.lateness_after is not None
    ]
    return _table(["lateness, before → after", *LATENESS_HEAD], rows[:ROWS_SHOWN], len(rows), "runs")


def _figures(before: Lateness | None, after: Lateness | None) -> list[str]:
    sides = [["–"] * 6 if one is None else lateness_cells(one) for one in (before, after)]
    return [f"{was} → {now}" for was, now in zip(*sides, strict=True)]


def _alone(title: str, runs: tuple[RunResult, ...]) -> str:
    said = (f"{text(run.run)} {run.verdict}" for run in runs[:ROWS_SHOWN])
    return _listed(title, said, len(runs), ROWS_SHOWN, "runs")
