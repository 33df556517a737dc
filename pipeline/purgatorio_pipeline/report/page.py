"""The HTML report: one small page that needs no other files and no network.

The only script, `timeline.js`, lets the drawings react to mouse, touch and keyboard. Without the script, the page still
shows all information. The content security policy allows only this script and the page's style sheet. So even unescaped
text of a trace could not run a script. Each cause of violations is shown once, with a count. The numbers of runs,
causes and charts are limited, and the page says what is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from markupsafe import Markup

from purgatorio_pipeline.finding import Finding, has_check, verdict_of
from purgatorio_pipeline.pictures import GaugeSeries
from purgatorio_pipeline.report.gauge_chart import LINES, gauge_chart, in_words
from purgatorio_pipeline.report.grouped import CauseGroup, grouped
from purgatorio_pipeline.report.histogram import Histogram, control_of
from purgatorio_pipeline.report.markup import filled, part
from purgatorio_pipeline.report.timeline import drawing_of
from purgatorio_pipeline.report.verdict_table import verdict_table
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.selection import CauseKey, wordings
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Verdict

GROUPS_SHOWN: Final = 40
HISTOGRAMS_SHOWN: Final = 60
GAUGES_SHOWN: Final = 40
PROBLEMS_SHOWN: Final = 100
FINDINGS_SHOWN: Final = 200
"""The maximum number of findings, the worst first."""
SUBJECTS_NAMED: Final = 3
_CONTROL: Final = (
    " The dashed outline is a control thread that only sleeps: it shows the machine's own lateness."
)


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
    groups = grouped(result, counterexamples)
    anchors = {f"{group.clause}-{at}": group for at, group in enumerate(groups[:GROUPS_SHOWN], 1)}
    links: dict[tuple[str, str, str], str] = {}
    for anchor, group in anchors.items():
        for file, run in group.places:
            links.setdefault((file, run, group.clause), anchor)
    style, script = _part("style.css"), _part("timeline.js")
    headers = _headers(result)
    controlled = any(control_of(header.params) is not None for header in headers.values())
    checked = has_check(result, findings)
    body = filled(
        "page.html",
        policy=Markup(f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"),
        style=style,
        script=script,
        verdict=verdict_of(result, findings),
        subjects=_subjects(result),
        figures=_figures(result, groups) if checked else {},
        checked=checked,
        table=verdict_table(result, links),
        articles=[example_article(group, anchor) for anchor, group in anchors.items()],
        causes=len(groups),
        controlled=_CONTROL * controlled,
        histograms=[Histogram(one, headers.get(one.run)) for one in lateness[:HISTOGRAMS_SHOWN]],
        late_runs=len(lateness),
        charts=[(one, gauge_chart(one), in_words(one)) for one in gauges[:GAUGES_SHOWN]],
        gauge_runs=len(gauges),
        gauge_lines=LINES,
        findings=[(one, *(visible(text, TEXT_LIMIT) for text in (one.what, one.said))) for one in findings],
        findings_shown=FINDINGS_SHOWN,
        problems=[(run.file, problem) for run in result.runs for problem in run.problems],
        problems_shown=PROBLEMS_SHOWN,
        quarantined=result.quarantined,
        broken=result.broken,
        wordings=wordings(run.profile for run in result.runs),
        pages=[f"{docs}/{name}" for name in ("wire.md", "clauses.md")] if docs else (),
        clauses=CLAUSES,
        provenance=provenance,
    )
    return f"<!doctype html>\n{body}\n"


def _part(name: str) -> Markup:
    return Markup(files("purgatorio_pipeline.report").joinpath(name).read_text(encoding="utf-8"))


def _hash(part: str) -> str:
    return f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'"


def _figures(result: CheckResult, groups: Sequence[CauseGroup]) -> Mapping[str, int]:
    return {
        "runs": len(result.runs),
        "events": sum(run.events for run in result.runs),
        "runs violated": sum(run.verdict is Verdict.VIOLATED for run in result.runs),
        "violations": sum(group.count for group in groups),
        "causes": len(groups),
    }


def _subjects(result: CheckResult) -> str:
    names = list(dict.fromkeys(run.subject for run in result.runs if run.subject))
    more = f" and {len(names) - SUBJECTS_NAMED:,} more" if len(names) > SUBJECTS_NAMED else ""
    return ", ".join(map(visible, names[:SUBJECTS_NAMED])) + more


def example_article(group: CauseGroup, anchor: str | None = None) -> Markup:
    """One cause: the promise, the counts, the allowed and the seen behavior, the drawing, the replay line. In a
    notebook (without `anchor`), its clause is no link to a sentence."""
    example = group.example
    return part("article", group, anchor, example or group, None if example is None else drawing_of(example))


def _headers(result: CheckResult) -> dict[str, Header]:
    """The header of each run by name. If two runs have one name, the header of the first."""
    headers: dict[str, Header] = {}
    for run in result.runs:
        if run.header is not None:
            headers.setdefault(run.run, run.header)
    return headers
