"""Writes a comparison as Markdown: the changes, then the lateness, then the runs that are not in a pair. Text from
traces is escaped as in `markdown`."""

from __future__ import annotations

from typing import Final

from purgatorio_pipeline.comparison import Comparison, RunPair
from purgatorio_pipeline.report.markdown_text import lateness_cells, left_out, table, text
from purgatorio_spec.judge.result import ClauseResult, RunResult
from purgatorio_spec.lateness import Lateness

ROWS_SHOWN: Final = 100


def comparison_markdown(comparison: Comparison) -> str:
    said = comparison.counted() or "nothing to compare"
    parts = [f"## Purgatorio, before and after: {comparison.verdict}\n\nclauses by run: {said}\n"]
    parts += [_changes(comparison), _lateness(comparison.pairs)]
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
    if not rows:
        return ""
    head = ["change", "run", "clause", "before", "after", "new causes"]
    return table(head, rows[:ROWS_SHOWN]) + left_out(len(rows), ROWS_SHOWN, "changes")


def side(clause: ClauseResult | None) -> str:
    """One side of a change: the verdict, and the numbers of violations and occasions."""
    if clause is None:
        return "not judged"
    if clause.violations:
        return f"{clause.verdict} {clause.violations:,} of {clause.occasions:,}"
    return f"{clause.verdict} {clause.occasions:,}" if clause.occasions else f"{clause.verdict}"


def _lateness(pairs: tuple[RunPair, ...]) -> str:
    rows = [
        [text(pair.after.run), *_figures(pair.lateness_before, pair.lateness_after)]
        for pair in pairs
        if pair.lateness_before is not None or pair.lateness_after is not None
    ]
    if not rows:
        return ""
    head = ["lateness, before → after", "tasks", "early", "p50", "p90", "p99", "max"]
    return table(head, rows[:ROWS_SHOWN]) + left_out(len(rows), ROWS_SHOWN, "runs")


def _figures(before: Lateness | None, after: Lateness | None) -> list[str]:
    sides = [["–"] * 6 if one is None else lateness_cells(one) for one in (before, after)]
    return [f"{was} → {now}" for was, now in zip(*sides, strict=True)]


def _alone(title: str, runs: tuple[RunResult, ...]) -> str:
    if not runs:
        return ""
    lines = "".join(f"- {text(run.run)} {run.verdict}\n" for run in runs[:ROWS_SHOWN])
    return f"### {title}\n\n{lines}" + left_out(len(runs), ROWS_SHOWN, "runs")
