"""Shows checks and histories in a notebook, as tables and drawings.

    from purgatorio_pipeline.notebook import check, history
    checked = check("runs/*.parquet")      # a table of verdicts and the counterexamples
    checked.counterexamples[0]             # one of them
    history("runs/a.jsonl", "op-7")        # one operation, event by event, broken or not

The output looks like the page of `purgatorio check --report`, and does not change the style of other output. It has no
script, because a notebook would not run it. The fields of an event are tooltips. Text from traces is escaped as in the
page. `print` gives plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
from markupsafe import Markup

from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.pictures import GaugeSeries
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_pipeline.report.grouped import CauseGroup, grouped
from purgatorio_pipeline.report.markup import part
from purgatorio_pipeline.report.page import example_article
from purgatorio_pipeline.report.timeline import Drawing
from purgatorio_pipeline.report.verdict_table import verdict_table
from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import ShownEvent, operation_rows
from purgatorio_spec.show.event_words import line_of
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict

EXAMPLES_SHOWN = 10
"""The maximum number of counterexamples under the table of a check. `counterexamples` has all."""


@dataclass(frozen=True, slots=True)
class ShownCause:
    """One cause of a check: its count, its runs, and its first counterexample."""

    group: CauseGroup

    def __str__(self) -> str:
        if self.group.example is not None:
            return render(self.group.example)
        return f"{self.group.clause} {visible(self.group.cause)}: {self.group.counted}"

    def __repr__(self) -> str:
        return f"<{self.group.clause} {visible(self.group.cause)}: {self.group.counted}>"

    def _repr_html_(self) -> str:
        return _framed(example_article(self.group))


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """A check. `result` has the data of `--json`. `lateness` and `gauges` are by run, for the runs that have them."""

    judged: Judged

    @property
    def result(self) -> CheckResult:
        """Verdicts by run and clause."""
        return self.judged.result

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the runs."""
        return self.result.verdict

    @property
    def counterexamples(self) -> list[ShownCause]:
        return [ShownCause(group) for group in grouped(self.result, self.judged.examples)]

    @property
    def lateness(self) -> Sequence[Lateness]:
        return self.judged.lateness

    @property
    def gauges(self) -> Sequence[GaugeSeries]:
        """The readings of the gauges, by run."""
        return self.judged.gauges

    def __repr__(self) -> str:
        return f"<check: {self.verdict}, {len(self.result.runs)} runs, {len(self.counterexamples)} causes>"

    def _repr_html_(self) -> str:
        groups = grouped(self.result, self.judged.examples)
        return _framed(
            Markup("<p>{}</p>").format(part("badge", self.verdict)),
            verdict_table(self.result),
            *(example_article(group) for group in groups[:EXAMPLES_SHOWN]),
            part("left_out", len(groups), EXAMPLES_SHOWN, "causes"),
        )


@dataclass(frozen=True, slots=True)
class ShownHistory:
    """The events of one operation or task in their order, at most 60."""

    operation: str
    rows: tuple[ShownEvent, ...]

    def __str__(self) -> str:
        start_t = self.rows[0].t if self.rows else 0
        return "\n".join(
            f"{row.line:>6} {visible(row.th):20} {'  ' * row.depth}{line_of(row, self.operation, start_t)}"
            for row in self.rows
        )

    def __repr__(self) -> str:
        return f"<history of {visible(self.operation)}: {len(self.rows)} events>"

    def _repr_html_(self) -> str:
        return _framed(
            Markup('<div class="scroll">{}</div>').format(
                part("timeline", Drawing(self.rows, self.operation))
            )
        )


def check(*traces: str | Path) -> ShownCheck:
    """Judge trace files, folders or globs in this process. Raises `NoTraces` if there are none."""
    return ShownCheck(judge_in_process(find_traces([str(trace) for trace in traces])))


def history(trace: str | Path, operation: str) -> ShownHistory:
    """The history of a task or operation in a trace. Raises KeyError if it has no event, OSError if unreadable."""
    reader = TraceReader(Path(trace))
    rows = operation_rows(pa.Table.from_batches(reader.batches(), EVENT_SCHEMA), operation)
    if not rows:
        raise KeyError(f"no event of {operation!r} in {trace}")
    return ShownHistory(operation, rows)


def _framed(*parts: Markup) -> str:
    """The parts with the style sheet of the page, nested so that it affects only this output."""
    style = files("purgatorio_pipeline.report").joinpath("style.css").read_text(encoding="utf-8")
    rules = f".purgatorio {{ {style.replace(':root', '&')} color: var(--ink); background: var(--page); }}"
    return f'<div class="purgatorio"><style>{rules}</style>{"".join(parts)}</div>'
