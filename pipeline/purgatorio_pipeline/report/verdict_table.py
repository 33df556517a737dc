"""Makes one table of the verdicts: a row for each run, a column for each clause. Signs and numbers make it readable
without color.

A clause that was SKIPPED in every run has no column: the reason is below the table. If there are too many clauses for
the width of a page, as for a broker, the clauses of a run are listed below the name of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from purgatorio_pipeline.report.grouped import run_titles, skipped_everywhere, why_skipped, worst_first
from purgatorio_pipeline.report.markup import Markup, joined, tag
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.selection import wordings
from purgatorio_spec.verdict import Verdict

RUNS_SHOWN: Final = 200
"""The maximum number of runs in the table, the worst first. The number of other runs is shown."""

COLUMNS: Final = 20
"""The maximum number of columns of clauses on a page."""

_SIGN: Final = {
    Verdict.PASS: "✓",
    Verdict.VIOLATED: "✗",
    Verdict.UNKNOWN: "?",
    Verdict.SKIPPED: "–",
    Verdict.INVALID_TRACE: "⚠",
}
_LEGEND: Final = (
    ("pass", "✓ kept, with the number of occasions"),
    ("violated", "✗ broken, with the number of violations"),
    ("empty", "○ no occasion: nothing in the trace could break this clause"),
    ("unknown", "? unknown: records are missing, or there was no occasion"),
    ("skipped", "– not promised or not recorded"),
)


def badge(verdict: Verdict) -> Markup:
    return tag("span", f"{_SIGN[verdict]} {verdict}", class_=f"badge {style_of(verdict)}")


def style_of(verdict: Verdict) -> str:
    return "invalid" if verdict is Verdict.INVALID_TRACE else str(verdict).lower()


def compact(count: int) -> str:
    """A number in at most four characters: `999`, `9.9k`, `10k`, `1.3M`. Rounded down."""
    if count < 1_000:
        return str(count)
    if count < 10_000:
        return f"{count // 100 / 10:.1f}k"
    if count < 1_000_000:
        return f"{count // 1000}k"
    return f"{count / 1_000_000:.1f}M" if count < 10_000_000 else f"{count // 1_000_000}M"


def left_out(total: int, limit: int, noun: str) -> Markup | None:
    return tag("p", f"{total - limit:,} more {noun} are left out.", class_="quiet") if total > limit else None


Links = Mapping[tuple[str, str, str], str]
"""The anchor of the counterexample of a clause in a run, by the run's file, its name and the clause."""

NO_LINKS: Final[Links] = {}


def clause_anchor(name: str) -> str:
    return f"clause-{name}"


def verdict_table(result: CheckResult, links: Links = NO_LINKS) -> Markup:
    """The table, the legend, the number of omitted runs, and the clauses without information. A violated clause links
    to the counterexample of this run, if it is shown."""
    titles = run_titles(result.runs)
    skipped = skipped_everywhere(result)
    every = wordings(run.profile for run in result.runs)
    for one in skipped:
        every.pop(one.clause, None)
    # T8 of a trace without periodic tasks has no result, and needs no column.
    judged = {name for run in result.runs for name in run.clauses}
    named = {name: wording for name, wording in every.items() if name in judged}
    runs = worst_first(result.runs)
    shown = runs[:RUNS_SHOWN]
    head = tag(
        "tr",
        tag("th", "run", scope="col"),
        tag("th", "verdict", scope="col"),
        joined(*(_heading(name, one.title, links is not NO_LINKS) for name, one in named.items())),
    )
    return joined(
        tag(
            "div",
            tag(
                "table",
                tag("thead", head),
                tag("tbody", *(_row(run, titles[run.file, run.run], named, links) for run in shown)),
                class_="verdicts many" if len(named) > COLUMNS else "verdicts",
            ),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label="verdicts by run and clause",
        ),
        left_out(len(runs), RUNS_SHOWN, "runs, none worse than these,"),
        tag("ul", *(tag("li", text, class_=f"key {kind}") for kind, text in _LEGEND), class_="legend"),
        *(tag("p", said, class_="quiet") for said in (*_never(result, every), *why_skipped(skipped))),
    )


def _heading(name: str, title: str, leads: bool) -> Markup:
    """The heading of a column: the clause, as a link to its sentence if the page has it."""
    inside = tag("a", name, href=f"#{clause_anchor(name)}") if leads else name
    return tag("th", inside, scope="col", title=title)


def _never(result: CheckResult, named: Iterable[str]) -> Iterator[str]:
    """The clauses without an occasion in any run. Their PASS proves nothing."""
    judged = [one for run in result.runs for one in run.clauses.values()]
    had = {one.clause for one in judged if one.occasions}
    if judged and (never := [name for name in named if name not in had]):
        yield f"No run had an occasion for {', '.join(never)}: these clauses were not tested."


def _row(run: RunResult, title: str, named: Iterable[str], links: Links) -> Markup:
    about = f"{run.subject} · {run.profile} · {run.events:,} events{_seed(run)}"
    return tag(
        "tr",
        tag("th", tag("span", title, class_="run"), tag("span", about, class_="about"), scope="row"),
        tag("td", badge(run.verdict), tag("span", _broken(run), class_="broken narrow")),
        *(_cell(run, name, links.get((run.file, run.run, name))) for name in named),
    )


def _broken(run: RunResult) -> str:
    """The violated clauses as text, because their columns may be outside of a narrow screen."""
    return " ".join(clause.clause for clause in run.clauses.values() if clause.violations)


def _seed(run: RunResult) -> str:
    """The seed in the header of a driven run, for a repetition of the run."""
    seed = None if run.header is None else run.header.params.get("seed")
    return f" · seed {seed}" if isinstance(seed, int) else ""


def _cell(run: RunResult, name: str, anchor: str | None) -> Markup:
    label = tag("b", name)
    clause = run.clauses.get(name)
    if clause is None:
        return tag("td", label, "–", class_="skipped", title=f"{name}: not judged, the trace is invalid")
    kind, text = _said(clause)
    said = f"{name} {clause.verdict}: {clause.violations:,} violations, {clause.occasions:,} occasions"
    title = f"{name} {clause.verdict}: {clause.reason}" if clause.reason else said
    inside: Markup | str = text if anchor is None else tag("a", text, href=f"#{anchor}")
    return tag("td", label, inside, class_=kind, title=title)


def _said(clause: ClauseResult) -> tuple[str, str]:
    if clause.verdict is Verdict.PASS and not clause.occasions:
        return "empty", "○"
    sign = _SIGN[clause.verdict]
    number = {Verdict.PASS: compact(clause.occasions), Verdict.VIOLATED: f"{clause.violations:,}"}
    return style_of(clause.verdict), f"{sign} {number.get(clause.verdict, '')}".strip()
