"""One table of the verdicts: a row for each run, a column for each clause. Signs and numbers make it readable without
color.

A clause that was SKIPPED in every run has no column: the reason is below the table. If there are too many clauses for
the width of a page, as for a broker, the clauses of a run are listed below the name of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from markupsafe import Markup

from purgatorio_pipeline.report.grouped import run_titles, skipped_everywhere, why_skipped, worst_first
from purgatorio_pipeline.report.markup import SIGN, part, style_of
from purgatorio_spec.judge.result import CheckResult, ClauseResult
from purgatorio_spec.show.selection import wordings
from purgatorio_spec.verdict import Verdict

RUNS_SHOWN: Final = 200
"""The maximum number of runs in the table, the worst first. The number of other runs is shown."""

COLUMNS: Final = 20
"""The maximum number of columns of clauses on a page."""

Links = Mapping[tuple[str, str, str], str]
"""The anchor of the counterexample of a clause in a run, by the run's file, its name and the clause."""


def compact(count: int) -> str:
    """A number in at most four characters: `999`, `9.9k`, `10k`, `1.3M`. Rounded down."""
    if count < 1_000:
        return str(count)
    if count < 10_000:
        return f"{count // 100 / 10:.1f}k"
    if count < 1_000_000:
        return f"{count // 1000}k"
    return f"{count // 100_000 / 10:.1f}M" if count < 10_000_000 else f"{count // 1_000_000}M"


def verdict_table(result: CheckResult, links: Links | None = None) -> Markup:
    """The table, the legend, the number of omitted runs, and the clauses without information. A violated clause links
    to the counterexample of this run, if it is shown. Without `links`, the page has no sentences of clauses either."""
    skipped = skipped_everywhere(result)
    every = wordings(run.profile for run in result.runs)
    for one in skipped:
        every.pop(one.clause, None)
    # T8 of a trace without periodic tasks has no result, and needs no column.
    judged = {name for run in result.runs for name in run.clauses}
    named = {name: wording for name, wording in every.items() if name in judged}
    remarks = [*_never(result, named), *why_skipped(skipped)]
    runs = worst_first(result.runs)
    many, titles = len(named) > COLUMNS, run_titles(result.runs)
    return part("verdict_table", runs[:RUNS_SHOWN], len(runs), titles, named, many, links, remarks, said)


def _never(result: CheckResult, named: Iterable[str]) -> Iterator[str]:
    """The clauses without an occasion in any run. Their PASS proves nothing."""
    judged = [one for run in result.runs for one in run.clauses.values()]
    had = {one.clause for one in judged if one.occasions}
    if judged and (never := [name for name in named if name not in had]):
        yield f"No run had an occasion for {', '.join(never)}: these clauses were not tested."


def said(clause: ClauseResult) -> tuple[str, str]:
    """The style and the text of a clause of a run."""
    if clause.verdict is Verdict.PASS and not clause.occasions:
        return "empty", "○"
    number = {Verdict.PASS: compact(clause.occasions), Verdict.VIOLATED: f"{clause.violations:,}"}
    return style_of(clause.verdict), f"{SIGN[clause.verdict]} {number.get(clause.verdict, '')}".strip()
