"""The page `docs/measured/subjects.md`: what other people's timers promise, and what they were seen to do.

    python -m docs.makers.subject_page          # drives all that are installed: one to two minutes

Always the same sections in the same order, so that a difference between two of them can be read. What varies from run
to run stands in tables and in the counterexamples only. Texts of traces pass through `visible`.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from docs.makers.promises import promise_of
from purgatorio_conformance.subjects import FOREIGN, subjects_named
from purgatorio_pipeline.command.subjects import runtimes
from purgatorio_pipeline.report.provenance import machine
from purgatorio_pipeline.survey import Surveyed, survey
from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict

WIDTH: Final = 118
_CLAUSES: Final = ("T1", "T2", "T3", "T4", "T5")
_TERMS: Final = {
    "clock": "clock",
    "unit": "asked in",
    "tick": "tick",
    "early": "early bound",
    "late": "late bound",
    "cancel": "cancel",
}

_HEAD: Final = """\
# Timers that nobody here wrote

Written by `python -m docs.makers.subject_page`. A seeded plan drives each timer with four threads, or with one if it
allows no more. The delays are equal, zero, negative, huge, and around its tick; cancels come well before, at and after
the deadline, and twice. Each timer is recorded at its boundary, and judged by the
[clauses](../clauses.md) under a profile
made from its own documentation. If no bound is promised, none is declared, and its clause is SKIPPED: a timer that does
not promise to be punctual cannot be late. The figures are shown all the same.

`purgatorio subjects` is not part of `purgatorio verify`, whose subjects are expected to pass: a bug in somebody else's
timer, or a package that is not installed, must not fail your own job. `--traces DIR` keeps the traces that the replay
lines below name.
"""


def subject_page(rows: Sequence[Surveyed], machine: Mapping[str, object], seed: int, operations: int) -> str:
    """The whole page. `machine`: a description of the machine without names."""
    driven = [row for row in rows if row.result is not None]
    lines = [_HEAD, *_measured(machine, seed, operations), *_summary(driven), *_skipped(rows)]
    for profile in dict.fromkeys(row.profile for row in rows):
        lines += _section(profile, [row for row in rows if row.profile == profile])
    return "\n".join(lines).rstrip() + "\n"


def _measured(machine: Mapping[str, object], seed: int, operations: int) -> Iterator[str]:
    on = ", ".join(f"{name} {value}" for name, value in machine.items())
    yield from _wrapped(
        f"**Figures vary from run to run.** These are of one run each, at most {operations:,} timers "
        f"(and more of the driver's own, at boundaries and to show that all is at rest), seed {seed}, on "
        f"a machine with other work: {on}. Lateness is of the timers that fired and were not "
        "cancelled, in milliseconds from the deadline, or from the return of the add if that came later; *before* "
        "counts those that fired before the deadline, whatever the bound. In the tables of verdicts the numbers are "
        "how many occasions a clause had to be broken."
    )
    yield ""


def _summary(driven: Sequence[Surveyed]) -> Iterator[str]:
    yield "| subject | version | timers | fired | cancelled | refused | before | p50 | p99 | max | verdict |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for row in driven:
        counts, late = row.counts, row.lateness
        assert counts is not None, "a driven subject was counted"
        figures: list[object] = [counts.timers, counts.fired, counts.cancelled, sum(counts.refused.values())]
        times = ["-"] * 4
        if late is not None:
            times = [f"{late.early:,}", *(_ms(ns) for ns in (late.p50_ns, late.p99_ns, late.max_ns))]
        cells = [
            row.name,
            _text(row.version),
            *(f"{figure:,}" for figure in figures),
            *times,
            _bold(row.verdict),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _skipped(rows: Sequence[Surveyed]) -> Iterator[str]:
    missing = [row for row in rows if row.why]
    if not missing:
        return
    yield "Not driven, or not to the end:"
    yield ""
    yield "| subject | verdict | why |"
    yield "|---|---|---|"
    for row in missing:
        yield f"| {row.name} | {row.verdict} | {_text(row.why)} |"
    yield ""


def _section(profile: str, rows: Sequence[Surveyed]) -> Iterator[str]:
    yield f"## {profile}"
    yield ""
    for name in dict.fromkeys(row.implementation for row in rows if row.implementation):
        yield f"`{_text(name)}`"
        yield ""
    yield from promise_lines(profile)
    driven = [row for row in rows if row.result is not None]
    if driven:
        yield from _verdicts(driven)
    for row in driven:
        for example in row.examples:
            yield f"The shortest counterexample of {row.name}:"
            yield ""
            yield "```text"
            # The page must not name the folder that the traces were kept in.
            yield render(replace(example, file=Path(example.file).name)).rstrip()
            yield "```"
            yield ""


def promise_lines(profile: str) -> Iterator[str]:
    """The promises of a section, which are the same in every run."""
    promise = promise_of(profile)
    for number, (sentence, where) in enumerate(promise.said):
        if number:
            yield ">"
        yield from _wrapped(f'> "{sentence}" ({where})', "> ")
    yield ""
    yield "| | |"
    yield "|---|---|"
    for field, term in _TERMS.items():
        yield f"| {term} | {getattr(promise, field)} |"
    yield ""
    for paragraph in promise.examined.split("\n\n") if promise.examined else ():
        if paragraph.startswith("    "):
            yield from ("```text", *textwrap.dedent(paragraph).splitlines(), "```")
        else:
            yield from _wrapped(" ".join(paragraph.split()))
        yield ""


def _verdicts(driven: Sequence[Surveyed]) -> Iterator[str]:
    yield f"| run | early bound | {' | '.join(_CLAUSES)} |"
    yield f"|---|--:|{'---|' * len(_CLAUSES)}"
    reasons: dict[str, str] = {}
    for row in driven:
        assert row.result is not None, "driven"
        clauses = row.result.clauses
        early_ns = None if row.constants is None else row.constants.early_ns
        bound = "-" if early_ns is None else f"{early_ns:,} ns"
        cells = [_clause(clauses[name]) if name in clauses else "-" for name in _CLAUSES]
        yield f"| {row.name} | {bound} | {' | '.join(cells)} |"
        reasons |= {name: one.reason for name in _CLAUSES if (one := clauses.get(name)) and one.reason}
    yield ""
    for name, reason in reasons.items():
        yield f"- {name}: {_text(reason)}."
    if reasons:
        yield ""
    refused = _refusals(driven)
    if refused:
        yield from _wrapped(f"Refused: {refused}.")
        yield ""


def _clause(result: ClauseResult) -> str:
    if result.verdict is Verdict.SKIPPED:
        return "SKIPPED"
    if result.verdict is Verdict.PASS and not result.occasions:
        return "no occasion"
    if result.verdict is Verdict.VIOLATED:
        return f"**VIOLATED** {result.violations:,} of {result.occasions:,}"
    return f"{result.verdict} ({result.occasions:,})"


def _refusals(driven: Iterable[Surveyed]) -> str:
    said = [
        f"{row.name} {count:,} by {_text(name)}"
        for row in driven
        if row.counts is not None
        for name, count in row.counts.refused.items()
    ]
    return ", ".join(said)


def _bold(verdict: Verdict) -> str:
    return f"**{verdict}**" if verdict is Verdict.VIOLATED else str(verdict)


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f}"


def _text(text: str) -> str:
    """A text from outside, for a cell of a table."""
    return visible(" ".join(text.split()), 300).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def _wrapped(text: str, prefix: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=prefix, break_on_hyphens=False, break_long_words=False
    )


def main(operations: int = 2_000, seed: int = 1) -> None:
    """Drive all of them, and write the page."""
    chosen = [subject for name in FOREIGN for subject in subjects_named(name)]
    with tempfile.TemporaryDirectory(prefix="purgatorio-traces-") as folder:
        rows = survey(chosen, Path(folder), seed, operations)
    page = subject_page(rows, machine() | runtimes(), seed, operations)
    Path(__file__).parents[1].joinpath("measured", "subjects.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
