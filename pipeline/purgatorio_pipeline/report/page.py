"""`report/index.html`: one page that needs nothing else, no network, no script, and stays small.

Its size is bounded: a cause is shown once, with a count; runs, causes, histograms, problems and broken lines have
limits, and what is left out is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Final

from purgatorio_pipeline.report.grouped import Group, grouped
from purgatorio_pipeline.report.histogram import histogram, in_words
from purgatorio_pipeline.report.markup import Markup, escaped, joined, tag
from purgatorio_pipeline.report.timeline import timeline
from purgatorio_pipeline.report.verdict_table import badge, verdict_table
from purgatorio_pipeline.report.whole_file import write_whole
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.event_words import line_of, milliseconds
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.verdict import Verdict

GROUPS_SHOWN: Final = 40
HISTOGRAMS_SHOWN: Final = 60
PROBLEMS_SHOWN: Final = 100
RUNS_NAMED: Final = 10

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Even if a text got through unescaped, nothing would load or run."""


def write_report(
    result: CheckResult,
    counterexamples: Mapping[CauseKey, Counterexample],
    lateness: Sequence[Lateness],
    path: Path,
) -> None:
    """Write the page of a check. The file appears whole or not at all; folders are made; an old page is replaced."""
    write_whole(path, page(result, counterexamples, lateness))


def page(
    result: CheckResult, counterexamples: Mapping[CauseKey, Counterexample], lateness: Sequence[Lateness]
) -> str:
    """The page as text."""
    groups = grouped(result, counterexamples)
    style = files("purgatorio_pipeline.report").joinpath("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{result.verdict}: purgatorio report"),
        Markup(f"<style>{style}</style>"),
    )
    main = tag(
        "main",
        _summary(result, groups),
        tag("section", tag("h2", "Verdicts"), verdict_table(result), _never(result)),
        _examples(groups),
        _lateness(lateness),
        _problems(result),
        _clauses(),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', main), lang='en')}\n"


def _summary(result: CheckResult, groups: Sequence[Group]) -> Markup:
    violated = sum(run.verdict is Verdict.VIOLATED for run in result.runs)
    figures = (
        (f"{len(result.runs):,}", "runs"),
        (f"{sum(run.events for run in result.runs):,}", "events"),
        (f"{violated:,}", "runs violated"),
        (f"{sum(group.count for group in groups):,}", "violations"),
        (f"{len(groups):,}", "causes"),
    )
    return tag(
        "header",
        tag("h1", "Purgatorio ", badge(result.verdict)),
        tag(
            "dl",
            *(tag("div", tag("dt", name), tag("dd", number)) for number, name in figures),
            class_="figures",
        ),
    )


def _never(result: CheckResult) -> Markup | None:
    """The clauses that no run could have broken: a PASS of theirs says nothing."""
    judged = [run for run in result.runs if run.clauses]
    never = [name for name in CLAUSES if not any(run.clauses[name].occasions for run in judged)]
    if not judged or not never:
        return None
    return tag(
        "p", f"No run gave an occasion to break {', '.join(never)}: nothing is known of them.", class_="quiet"
    )


def _examples(groups: Sequence[Group]) -> Markup:
    left = len(groups) - GROUPS_SHOWN
    named: set[str] = set()
    shown: list[Markup] = []
    for group in groups[:GROUPS_SHOWN]:
        shown.append(_example(group, None if group.clause in named else group.clause))
        named.add(group.clause)
    return tag(
        "section",
        tag("h2", "Counterexamples"),
        *(shown or [tag("p", "No promise was broken.", class_="quiet")]),
        tag("p", f"{left:,} more causes are left out.", class_="quiet") if left > 0 else None,
    )


def _example(group: Group, anchor: str | None) -> Markup:
    example, violation = group.example, group.violation
    if example is not None:
        violation = example.violation
    runs = [f"{run} ({count:,})" for run, count in islice(group.counts.items(), RUNS_NAMED)]
    more = len(group.counts) - len(runs)
    return tag(
        "article",
        tag("h3", tag("span", group.clause, class_="clause"), " ", group.cause),
        tag("p", CLAUSES[group.clause].promise, class_="promise"),
        tag("p", f"{group.counted} of {group.subject}; the first: ", tag("code", violation.subject)),
        tag("p", f"in {', '.join(runs)}{f' and {more:,} more runs' if more > 0 else ''}", class_="quiet"),
        tag(
            "dl",
            tag("dt", "allowed"),
            tag("dd", violation.allowed),
            tag("dt", "seen", class_="violated"),
            tag("dd", violation.seen),
            class_="said",
        ),
        None if example is None else _drawn(example),
        id=anchor,
    )


def _drawn(example: Counterexample) -> Markup:
    note = f"times in ms after t = {example.start_t:,} ns; * shows it; hover a row for its fields"
    if example.left_out:
        note += f"; {example.left_out:,} more events left out"
    return joined(
        tag("div", timeline(example), class_="scroll", tabindex=0, role="region", aria_label="timeline"),
        tag("p", note, class_="quiet"),
        tag("details", tag("summary", f"{len(example.rows)} events as a table"), _rows(example)),
        tag("p", "replay", class_="label"),
        tag("pre", tag("code", Markup(" \\\n  ".join(map(escaped, example.replay))))),
    )


def _rows(example: Counterexample) -> Markup:
    names = ("", "line", "i", "ms", "thread", "event")
    body: list[Markup] = []
    for at, row in enumerate(example.rows):
        mark = "✗" if at == example.illegal_row else "*" if row.witness else ""
        cells = (
            mark, str(row.line), str(row.i), milliseconds(row.t - example.start_t), row.th,
            line_of(row, example.violation.subject, example.start_t),
        )  # fmt: skip
        body.append(
            tag("tr", *(tag("td", cell) for cell in cells), class_="witness" if row.witness else None)
        )
    head = tag("thead", tag("tr", *(tag("th", name) for name in names)))
    return tag("div", tag("table", head, tag("tbody", *body), class_="rows"), class_="scroll", tabindex=0)


def _lateness(lateness: Sequence[Lateness]) -> Markup | None:
    if not lateness:
        return None
    left = len(lateness) - HISTOGRAMS_SHOWN
    return tag(
        "section",
        tag("h2", "Lateness"),
        tag(
            "p",
            "Firing time less deadline, of tasks that nothing had cancelled or completed.",
            class_="quiet",
        ),
        tag(
            "div",
            *(
                tag(
                    "figure",
                    tag(
                        "figcaption", tag("span", one.run, class_="run"), tag("span", f"{one.count:,} tasks")
                    ),
                    histogram(one),
                    tag("p", in_words(one), class_="quiet"),
                )
                for one in lateness[:HISTOGRAMS_SHOWN]
            ),
            class_="histograms",
        ),
        tag("p", f"{left:,} more runs are left out.", class_="quiet") if left > 0 else None,
    )


def _problems(result: CheckResult) -> Markup | None:
    problems = [(run.file, problem) for run in result.runs for problem in run.problems]
    broken = [str(line) for line in result.broken]
    if not problems and not result.quarantined:
        return None
    return tag(
        "section",
        tag("h2", "Problems with the traces"),
        _list([joined(tag("code", file), " ", text) for file, text in problems], len(problems)),
        tag("h3", f"Quarantined lines ({result.quarantined:,})") if result.quarantined else None,
        _list(broken, result.quarantined),
    )


def _list(items: Iterable[str | Markup], total: int) -> Markup | None:
    shown = list(islice(items, PROBLEMS_SHOWN))
    if not shown:
        return None
    left = total - len(shown)
    return tag(
        "ul",
        *(tag("li", item) for item in shown),
        tag("li", f"and {left:,} more", class_="quiet") if left > 0 else None,
        class_="problems",
    )


def _clauses() -> Markup:
    rows = (joined(tag("dt", name), tag("dd", clause.promise)) for name, clause in CLAUSES.items())
    return tag(
        "section", tag("details", tag("summary", "What the clauses promise"), tag("dl", *rows, class_="said"))
    )
