"""The HTML report: one small page that needs no other files and no network.

The only script, `timeline.js`, lets the drawings react to mouse, touch and keyboard. Without the script, the page still
shows all information. The content security policy allows only this script and the page's style sheet. So even unescaped
text of a trace could not run a script. Each cause of violations is shown once, with a count. The numbers of runs,
causes and charts are limited, and the page says what is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Final

from purgatorio_pipeline.finding import Finding, has_check, verdict_of
from purgatorio_pipeline.pictures import GaugeSeries
from purgatorio_pipeline.report.gauge_chart import gauge_chart, gauge_key
from purgatorio_pipeline.report.gauge_chart import in_words as gauges_in_words
from purgatorio_pipeline.report.grouped import CauseGroup, grouped
from purgatorio_pipeline.report.histogram import (
    bounds_in_words,
    control_of,
    histogram,
    in_words,
    without_control,
)
from purgatorio_pipeline.report.markup import Markup, escaped, joined, tag
from purgatorio_pipeline.report.timeline import timeline
from purgatorio_pipeline.report.verdict_table import Links, badge, clause_anchor, left_out, verdict_table
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.durations import milliseconds
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.event_words import broken_here, line_of
from purgatorio_spec.show.selection import CauseKey, wording_of, wordings
from purgatorio_spec.show.visible import TEXT_LIMIT, first_few, visible
from purgatorio_spec.trace.record import Header, TimerConstants
from purgatorio_spec.verdict import Verdict

GROUPS_SHOWN: Final = 40
HISTOGRAMS_SHOWN: Final = 60
GAUGES_SHOWN: Final = 40
PROBLEMS_SHOWN: Final = 100
FINDINGS_SHOWN: Final = 200
"""The maximum number of findings, the worst first."""
RUNS_NAMED: Final = 10
SUBJECTS_NAMED: Final = 3
TITLE_GAP: Final = " - "


def page(
    result: CheckResult,
    counterexamples: Mapping[CauseKey, Counterexample],
    lateness: Sequence[Lateness],
    gauges: Sequence[GaugeSeries] = (),
    findings: Sequence[Finding] = (),
    provenance: Mapping[str, str] | None = None,
    docs: str = "",
) -> str:
    """The page as text, without empty sections. `docs`: the address of the project's pages."""
    verdict, checked = verdict_of(result, findings), has_check(result, findings)
    groups = grouped(result, counterexamples)
    style, script = _part("style.css"), _part("timeline.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{verdict}: {_subjects(result)}purgatorio report"),
        Markup(f"<style>{style}</style>"),
    )
    main = tag(
        "main",
        _header(
            verdict,
            _subjects(result).removesuffix(TITLE_GAP),
            _check_figures(result, groups) if checked else (),
        ),
        tag("section", tag("h2", "Verdicts"), verdict_table(result, _links(groups))) if checked else None,
        _examples(groups) if checked else None,
        _lateness(lateness, _headers(result)),
        _gauges(gauges),
        _findings(findings),
        _problems(result),
        _clauses(result, docs),
        None if provenance is None else _footer(provenance),
    )
    body = tag("body", main, Markup(f"<script>{script}</script>"))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _part(name: str) -> str:
    return files("purgatorio_pipeline.report").joinpath(name).read_text(encoding="utf-8")


def _hash(part: str) -> str:
    return f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'"


def _check_figures(result: CheckResult, groups: Sequence[CauseGroup]) -> Sequence[tuple[str, str]]:
    violated = sum(run.verdict is Verdict.VIOLATED for run in result.runs)
    return (
        (f"{len(result.runs):,}", "runs"),
        (f"{sum(run.events for run in result.runs):,}", "events"),
        (f"{violated:,}", "runs violated"),
        (f"{sum(group.count for group in groups):,}", "violations"),
        (f"{len(groups):,}", "causes"),
    )


def _subjects(result: CheckResult) -> str:
    names = list(dict.fromkeys(run.subject for run in result.runs if run.subject))
    more = f" and {len(names) - SUBJECTS_NAMED:,} more" if len(names) > SUBJECTS_NAMED else ""
    return ", ".join(map(visible, names[:SUBJECTS_NAMED])) + more + TITLE_GAP if names else ""


def _header(verdict: Verdict, subjects: str, figures: Sequence[tuple[str, str]]) -> Markup:
    return tag(
        "header",
        tag("h1", "Purgatorio ", badge(verdict)),
        tag("p", subjects, class_="subjects") if subjects else None,
        tag(
            "dl",
            *(tag("div", tag("dt", name), tag("dd", number)) for number, name in figures),
            class_="figures",
        ),
    )


def _anchor(group: CauseGroup, at: int) -> str:
    return f"{group.clause}-{at + 1}"


def _links(groups: Sequence[CauseGroup]) -> Links:
    """By run and clause, the anchor of the first shown cause."""
    links: dict[tuple[str, str, str], str] = {}
    for at, group in enumerate(groups[:GROUPS_SHOWN]):
        for file, run in group.places:
            links.setdefault((file, run, group.clause), _anchor(group, at))
    return links


def _examples(groups: Sequence[CauseGroup]) -> Markup:
    shown = [example_article(group, _anchor(group, at)) for at, group in enumerate(groups[:GROUPS_SHOWN])]
    return tag(
        "section",
        tag("h2", "Counterexamples"),
        *(shown or [tag("p", "No promise was broken.", class_="quiet")]),
        left_out(len(groups), GROUPS_SHOWN, "causes"),
    )


def example_article(group: CauseGroup, anchor: str | None = None) -> Markup:
    """One cause: the promise, the counts, the allowed and the seen behavior, the drawing, the replay line."""
    example, violation = group.example, group.violation
    wording = wording_of(group.clause, group.profile)
    pending = ""
    if example is not None:
        violation, pending = example.violation, example.pending
    runs = [f"{run} ({count:,})" for run, count in islice(group.counts.items(), RUNS_NAMED)]
    more = len(group.counts) - len(runs)
    return tag(
        "article",
        tag("h3", tag("span", _clause(group, anchor), class_="clause"), f" {wording.title}: {group.cause}"),
        tag("p", wording.promise, class_="promise"),
        tag("p", f"{group.counted} of {group.subject}; the first: ", tag("code", violation.subject)),
        tag("p", f"in {', '.join(runs)}{f' and {more:,} more runs' if more > 0 else ''}", class_="quiet"),
        tag(
            "dl",
            tag("dt", "allowed"),
            tag("dd", violation.allowed),
            *((tag("dt", "pending"), tag("dd", pending)) if pending else ()),
            tag("dt", "seen", class_="violated"),
            tag("dd", violation.seen),
            class_="said",
        ),
        None if example is None else _drawn(example),
        id=anchor,
    )


def _clause(group: CauseGroup, anchor: str | None) -> Markup | str:
    """The id of the clause, as a link to its sentence. In a notebook, without a link."""
    return group.clause if anchor is None else tag("a", group.clause, href=f"#{clause_anchor(group.clause)}")


def _drawn(example: Counterexample) -> Markup:
    note = f"times in ms after {example.start}; * marks the events that show the violation"
    if example.left_out:
        note += f"; {example.left_out:,} more events left out"
    return joined(
        _broken_at(example),
        _swipe(example),
        tag("div", timeline(example), class_="scroll", tabindex=0, role="group", aria_label="timeline"),
        tag("output", class_="fields", aria_label="fields of the chosen event") if example.rows else None,
        tag("p", note, class_="quiet"),
        tag("details", tag("summary", f"{len(example.rows)} events as a table"), _rows(example)),
        tag("p", "replay", class_="label"),
        tag("pre", tag("code", Markup(" \\\n  ".join(map(escaped, example.replay)))), tabindex=0),
    )


def _swipe(example: Counterexample) -> Markup | None:
    """A hint for phones, where the columns after the first are outside the screen."""
    threads = list(dict.fromkeys(visible(row.th) for row in example.rows))
    if len(threads) < 2:
        return None
    said = f"Swipe sideways \N{RIGHTWARDS ARROW} {len(threads)} threads: {first_few(threads)}"
    return tag("p", said, class_="quiet swipe")


def _broken_at(example: Counterexample) -> Markup | None:
    """The place in words, above the diagram: on a narrow screen its column may be outside."""
    if example.illegal_row is None:
        return None
    row = example.rows[example.illegal_row]
    where = f"{visible(row.th)}: {line_of(row, example.violation.subject, example.start_t)}"
    said = f"✗ {broken_here(example.violation.clause)}: line {row.line}, "
    return tag("p", said, tag("code", where), class_="broken")


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


def _headers(result: CheckResult) -> dict[str, Header]:
    """The header of each run by name. If two runs have one name, the header of the first."""
    headers: dict[str, Header] = {}
    for run in result.runs:
        if run.header is not None:
            headers.setdefault(run.run, run.header)
    return headers


def _lateness(lateness: Sequence[Lateness], headers: Mapping[str, Header]) -> Markup | None:
    if not lateness:
        return None
    about = "Firing time minus deadline, of tasks that were neither cancelled nor completed."
    if any(control_of(header.params) is not None for header in headers.values()):
        about += (
            " The dashed outline is a control thread that only sleeps: it shows the machine's own lateness."
        )
    return tag(
        "section",
        tag("h2", "Lateness"),
        tag("p", about, class_="quiet"),
        tag(
            "div",
            *(_late(one, headers.get(one.run)) for one in lateness[:HISTOGRAMS_SHOWN]),
            class_="histograms",
        ),
        left_out(len(lateness), HISTOGRAMS_SHOWN, "runs"),
    )


def _late(one: Lateness, header: Header | None) -> Markup:
    timer = TimerConstants() if header is None else header.timer
    control = None if header is None else control_of(header.params)
    return tag(
        "figure",
        _caption(one.run, f"{one.count:,} tasks"),
        histogram(one, timer, control),
        tag("p", in_words(one), class_="quiet"),
        # A lake's tables have no headers: whether one declares a bound is not known.
        None if header is None else tag("p", bounds_in_words(timer), class_="quiet"),
        None if control is None else tag("p", without_control(one, control), class_="quiet"),
    )


def _gauges(gauges: Sequence[GaugeSeries]) -> Markup | None:
    if not gauges:
        return None
    about = "The gauges over the run, with the pending operations. The difference is a lower bound of the garbage."
    return tag(
        "section",
        tag("h2", "Garbage and pending"),
        tag("p", about, class_="quiet"),
        gauge_key(),
        tag("div", *(_gauge(one) for one in gauges[:GAUGES_SHOWN]), class_="histograms"),
        left_out(len(gauges), GAUGES_SHOWN, "runs"),
    )


def _gauge(one: GaugeSeries) -> Markup:
    said = f"{one.count:,} readings"
    if one.count > len(one.points):
        said = f"{len(one.points):,} of {said}"
    return tag(
        "figure", _caption(one.run, said), gauge_chart(one), tag("p", gauges_in_words(one), class_="quiet")
    )


def _findings(findings: Sequence[Finding]) -> Markup | None:
    """The findings of other commands in their words: one row for each, with the command that repeats it below."""
    if not findings:
        return None
    head = tag("tr", *(tag("th", name, scope="col") for name in ("verdict", "of", "result")))
    return tag(
        "section",
        tag("h2", "Found by other commands"),
        tag(
            "table",
            tag("thead", head),
            tag("tbody", *map(_finding, findings[:FINDINGS_SHOWN])),
            class_="findings",
        ),
        left_out(len(findings), FINDINGS_SHOWN, "findings, none worse than these,"),
    )


def _finding(one: Finding) -> Markup:
    row = tag(
        "tr",
        tag("td", badge(one.verdict)),
        tag("td", visible(one.what, TEXT_LIMIT)),
        tag("td", visible(one.said, TEXT_LIMIT)),
    )
    if not one.again:
        return row
    return joined(row, tag("tr", tag("td", tag("code", one.again), colspan=3), class_="again"))


def _caption(run: str, said: str) -> Markup:
    return tag("figcaption", tag("span", run, class_="run"), tag("span", said))


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


def _footer(provenance: Mapping[str, str]) -> Markup:
    rows = (joined(tag("dt", name), tag("dd", text)) for name, text in provenance.items())
    return tag("footer", tag("dl", *rows, class_="said"))


def _clauses(result: CheckResult, docs: str) -> Markup:
    named = wordings(run.profile for run in result.runs)

    def about(name: str) -> Markup | None:
        page = "clauses.md" if name in CLAUSES else "wire.md"
        return tag("a", " more", href=f"{docs}/{page}#{name.lower()}") if docs else None

    rows = (
        joined(
            tag("dt", name, id=clause_anchor(name)),
            tag("dd", tag("b", wording.title), ". ", wording.promise, about(name)),
        )
        for name, wording in named.items()
    )
    return tag(
        "section", tag("details", tag("summary", "What the clauses promise"), tag("dl", *rows, class_="said"))
    )
