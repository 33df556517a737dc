"""Outcome tables on the page: a fold for each scenario, the worst first, what is forbidden with its command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from purgatorio_pipeline.report.markup import Markup, joined, tag
from purgatorio_pipeline.report.verdict_table import badge
from purgatorio_pipeline.results.outcomes import OutcomeLine, OutcomeTables, ScenarioOutcomes
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.scenario.grade import Grade

SCENARIOS_SHOWN: Final = 200
"""The worst come first; of the rest it says how many there are."""
LINES_SHOWN: Final = 16
OPEN: Final = 10
"""Scenarios with something forbidden whose fold is open: more would hide one another."""

_STYLE: Final = {
    Grade.ACCEPTABLE: ("pass", "✓"),
    Grade.INTERESTING: ("interesting", "!"),
    Grade.FORBIDDEN: ("violated", "✗"),
    Grade.UNKNOWN: ("unknown", "?"),
}
_LEGEND: Final = {
    Grade.ACCEPTABLE: "also when the tasks run one after the other",
    Grade.INTERESTING: "breaks nothing, and only an interleaving gives it",
    Grade.FORBIDDEN: "breaks a clause, the scenario's own look, or a structure",
    Grade.UNKNOWN: "none of these can be said",
}


def outcome_section(tables: OutcomeTables) -> Markup | None:
    """The section; none where there are no outcomes."""
    if not tables:
        return None
    shown = tables.scenarios[:SCENARIOS_SHOWN]
    left = len(tables.scenarios) - len(shown)
    return tag(
        "section",
        tag("h2", "Outcomes"),
        tag("p", sums(tables.scenarios), class_="quiet"),
        *(tag("p", f"Not finished: {one}.", class_="quiet") for one in tables.unfinished),
        *(_fold(one, at < OPEN) for at, one in enumerate(shown)),
        tag("p", f"{left:,} more scenarios, none worse than these, are left out.", class_="quiet")
        if left > 0
        else None,
        tag("ul", *(tag("li", _sign(grade), f" {text}") for grade, text in _LEGEND.items()), class_="legend"),
    )


def sums(scenarios: Iterable[ScenarioOutcomes]) -> str:
    """How many scenarios came to what, and in how many runs, in words."""
    verdicts: dict[Verdict, int] = {}
    runs: dict[str, int] = {}
    for one in scenarios:
        verdicts[one.verdict] = verdicts.get(one.verdict, 0) + 1
        noun = "rounds of threads" if one.how == "stress" else "schedules explored"
        runs[noun] = runs.get(noun, 0) + one.runs
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items()) or "none"
    return "; ".join([f"Scenarios: {said}", *(f"{count:,} {noun}" for noun, count in runs.items())])


def _sign(grade: Grade) -> Markup:
    style, sign = _STYLE[grade]
    return tag("span", f"{sign} {grade}", class_=f"grade {style}")


def _fold(one: ScenarioOutcomes, near: bool) -> Markup:
    bug = f" · known bug {one.mutant} put in" if one.mutant else ""
    forbidden = f" · {one.forbidden:,} forbidden" if one.forbidden else ""
    different = len(one.lines) + one.left_out
    counts = f"{one.how} · {one.counted} · {different:,} outcome{'' if different == 1 else 's'}"
    summary = tag(
        "summary",
        badge(one.verdict),
        tag("span", visible(one.name, 120), class_="run"),
        tag("span", f"{counts}{forbidden}{bug}", class_="about"),
    )
    return tag(
        "details",
        summary,
        _table(one) if one.lines else None,
        tag("p", " · ".join(visible(note, TEXT_LIMIT) for note in one.said), class_="quiet")
        if one.said
        else None,
        class_="scenario",
        open="" if near and one.verdict is Verdict.VIOLATED else None,
    )


def _table(one: ScenarioOutcomes) -> Markup:
    left = len(one.lines) - LINES_SHOWN + one.left_out
    head = tag("tr", *(tag("th", name, scope="col") for name in ("grade", "seen", "of all", "outcome")))
    rows = [_row(line, one.runs) for line in one.lines[:LINES_SHOWN]]
    return joined(
        tag("table", tag("thead", head), tag("tbody", *rows), class_="outcomes"),
        tag("p", f"{left:,} more outcomes are left out.", class_="quiet") if left > 0 else None,
    )


def _row(line: OutcomeLine, runs: int) -> Markup:
    row = tag(
        "tr",
        tag("td", _sign(line.grade)),
        tag("td", f"{line.count:,}", class_="number"),
        tag("td", share(line.count, runs), class_="number"),
        tag(
            "td",
            joined(tag("span", visible(line.clause), class_="clause"), " ") if line.clause else None,
            visible(line.outcome, TEXT_LIMIT),
        ),
    )
    if not line.again:
        return row
    return joined(row, tag("tr", tag("td", tag("code", line.again), colspan=4), class_="again"))


def share(count: int, runs: int) -> str:
    """A part of the runs, in as many digits as tell a rare outcome from none."""
    part = 100 * count / runs if runs else 0.0
    if not part:
        return ""
    return f"{part:.0f} %" if part >= 10 else f"{part:.1f} %" if part >= 0.1 else "< 0.1 %"
