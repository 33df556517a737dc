"""The command `purgatorio compare`: compares the runs before and after a change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.line import echo_line
from purgatorio_pipeline.command.options import argument, file, json_flag, option, taking
from purgatorio_pipeline.command.output import CheckOutput, EngineAsked
from purgatorio_pipeline.comparison import Change, Comparison, compare
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.judging import Engine, Judged
from purgatorio_pipeline.report.markdown import comparison_markdown, side
from purgatorio_pipeline.report.terminal import print_line
from purgatorio_pipeline.sources import NoTraces, find_traces
from purgatorio_spec.durations import duration
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.whole_file import write_whole

ROWS_SHOWN = 100
_STYLE = {
    Change.BROKEN: "bold red",
    Change.LOST: "yellow",
    Change.STILL_BROKEN: "red",
    Change.MENDED: "green",
    Change.GAINED: "green",
}

_MOVED = ("p50", "p99", "max")
EPILOG = """
BEFORE is a trace, a folder or a glob, and so is AFTER. `compare` pairs runs that have the same name.

\b
  purgatorio verify --command ./old --traces before
  purgatorio verify --command ./new --traces after
  purgatorio compare before after

Exit status: 0 no clause got worse (old violations may remain), 1 a clause is newly broken, 2 a trace of AFTER is
invalid, 3 a clause that was judged before is UNKNOWN now, or a trace of BEFORE is invalid or has no partner.
"""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    before: str = argument()
    after: str = argument()
    engine: str | None = option(
        "Judge on Spark or in this process. Default: by the size of the traces.",
        type=click.Choice([e.value for e in Engine]),
    )
    master: str | None = option("Spark master, such as spark://host:7077.")
    markdown: Path | None = option("Write the comparison in Markdown.", type=file)
    as_json: bool = json_flag()


@taking(CompareOptions, epilog=EPILOG)
def command(asked: CompareOptions) -> None:
    """Compare two sets of traces, from before and after a change: the verdicts and the lateness.

    \b
      purgatorio compare before after
    """
    with wrong_usage(NoTraces):
        sides = [(place, find_traces([place])) for place in (asked.before, asked.after)]

    def judge(place: str, paths: Sequence[Path]) -> Judged:
        what = f"checking {counted(len(paths), 'trace')} of {place}"
        engine, output = EngineAsked(asked.engine, asked.master), CheckOutput(json=asked.as_json)
        return engine.judge(engine.choice(paths, output).engine, what, paths, output)

    compared = compare(*(judge(place, paths) for place, paths in sides))
    if asked.markdown is not None:
        write_whole(asked.markdown, comparison_markdown(compared))
    if asked.as_json:
        click.echo(encoded(compared.as_json()))
    else:
        _tell(Console(), compared)
    sys.exit(compared.exit_status)


def _tell(console: Console, compared: Comparison) -> None:
    rows = compared.changed()
    wide = max([len("change"), *(len(str(change)) for change, _, _ in rows[:ROWS_SHOWN])])
    before = max([len("before"), *(len(side(one.before)) for _, _, one in rows[:ROWS_SHOWN])])
    named = ""
    if rows:
        print_line(console, f"  {'change':{wide}}  clause  {'before':{before}}  after", "bold")
    for change, pair, one in rows[:ROWS_SHOWN]:
        # A name may be long, so it is printed once, above the consecutive rows that have it.
        if pair.after.run != named:
            named = pair.after.run
            print_line(console, visible(named))
        new = f" new: {', '.join(map(visible, one.new_causes))}" if one.new_causes else ""
        said = f"  {change!s:{wide}}  {one.clause:6}  {side(one.before):{before}}  {side(one.after)}{new}"
        print_line(console, said, _STYLE[change])
    if len(rows) > ROWS_SHOWN:
        print_line(console, f"... {len(rows) - ROWS_SHOWN:,} more changes: use --json")
    for pair in compared.pairs[:ROWS_SHOWN]:
        if (was := pair.lateness_before) is not None and (now := pair.lateness_after) is not None:
            moved = [
                f"{name} {duration(was.figures_ns[name])} -> {duration(now.figures_ns[name])}"
                for name in _MOVED
            ]
            print_line(console, f"lateness of {visible(pair.after.run)}")
            print_line(console, f"  {', '.join(moved)}")
    for title, runs in (("only before", compared.only_before), ("only after", compared.only_after)):
        if runs:
            named = ", ".join(visible(run.run) for run in runs[:10])
            more = f" and {len(runs) - 10:,} more" if len(runs) > 10 else ""
            print_line(console, f"{title}: {named}{more}")
    for run in compared.invalid()[:ROWS_SHOWN]:
        echo_line(visible(f"{run.file}: {run.problems[0]}", TEXT_LIMIT), 2)
    print_line(console, f"clauses by run: {compared.counted()}")
    print_line(console, f"{compared.verdict}: {compared.meaning}")
