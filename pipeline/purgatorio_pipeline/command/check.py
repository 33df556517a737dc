"""The command `purgatorio check`: judges recorded traces."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.options import argument, clause_out_of, flag, option, shared, taking
from purgatorio_pipeline.command.output import EngineAsked, GroupedCommand, TablesOutput, show
from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.judging import Engine, Focus, Judged
from purgatorio_pipeline.sources import NoTraces, find_traces
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import without_silent_pass
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.show.visible import counted
from purgatorio_wire.clause.registry import WIRE_CLAUSES

EPILOG = """
A trace is a file of JSON lines (plain, gzip, zstd) or Parquet. The formats are purgatorio-trace/1, purgatorio-trace/2
and purgatorio-wire/1. `purgatorio wire` writes purgatorio-wire/1.

\b
  purgatorio check examples/traces             # chooses the engine by size
  purgatorio check run.jsonl --engine spark    # on Spark
  purgatorio check run.jsonl --operation op-7  # one operation only
  purgatorio check 'runs/*.parquet' --out lake --report report.html

Exit status: 0 pass, 1 violated, 2 invalid input, 3 unknown.
"""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    traces: Sequence[str] = argument(nargs=-1)
    engine: EngineAsked = shared(EngineAsked)
    output: TablesOutput = shared(TablesOutput)
    run: str | None = option("Show only this run.")
    clause: str | None = option(
        "Show only this clause, such as O4.",
        type=clause_out_of(list(dict.fromkeys((*CLAUSES, *WIRE_CLAUSES)))), metavar="ID",
    )  # fmt: skip
    operation: str | None = option("Judge only this operation or task. Sets --engine process.")
    allow_idle: bool = flag(
        "Ignore clauses that nothing in the trace could break. By default, such a clause makes the run UNKNOWN."
    )
    profiles: bool = flag("List the profiles.")
    clauses: bool = flag("List the clauses.")


@taking(CheckOptions, cls=GroupedCommand, epilog=EPILOG)
def command(asked: CheckOptions) -> None:
    """Judge recorded TRACES (files, folders, globs).

    The header of a trace names a profile. A profile is a set of clauses, and a clause is one promise.
    """
    if asked.profiles or asked.clauses:
        _list(asked.profiles, asked.clauses)
        return
    traces, engine, output, operation = asked.traces, asked.engine, asked.output, asked.operation
    if not traces:
        raise click.UsageError("no trace named: give a file, a folder or a glob")
    uris = [trace for trace in traces if is_uri(trace)]
    with wrong_usage(NoTraces):
        paths = find_traces(trace for trace in traces if not is_uri(trace))
    if operation is not None and output.out is not None:
        raise click.UsageError(
            "--operation cannot be combined with --out: --operation judges in this process, --out writes Spark's tables"
        )
    if operation is not None:
        engine = replace(engine, engine=Engine.PROCESS)
    choice = engine.choice(paths, output, uris)
    if uris and choice.engine is Engine.PROCESS:
        raise click.UsageError(f"{uris[0]}: a URI can be read by Spark only: run with --engine spark")
    what = f"checking {counted(len(paths), 'trace') if paths else ' '.join(uris)} {choice}"
    with wrong_usage(NoTraces):
        judged = engine.judge(
            choice.engine, what, paths, output, operation=operation, uris=uris, allow_idle=asked.allow_idle
        )
    focus = Focus(asked.run, asked.clause, operation)
    if not asked.allow_idle and operation is None:
        judged = replace(judged, result=without_silent_pass(judged.result))
    if not focus.of(judged).result.runs:
        # A missing name must not pass: in CI, nothing would be checked.
        what = f"run {asked.run!r}" if asked.run is not None else "run"
        raise click.UsageError(
            f"no {what}"
            + (f" has {operation!r}" if operation is not None else f" in these traces{_runs(judged)}")
        )
    sys.exit(show(judged, focus, output))


def _runs(judged: Judged) -> str:
    names = [run.run for run in judged.result.runs]
    return (
        f", which have {', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}" if names else ""
    )


def _list(profiles: bool, clauses: bool) -> None:
    if profiles:
        for profile in PROFILES.values():
            click.echo(_wrapped(f"{profile.name:20} ", profile.source))
    if clauses:
        for one in CLAUSES.values():
            click.echo(f"{one.id:3} {one.title}")
            click.echo(_wrapped("    ", one.wording.promise))
        about = (
            "Clauses of a broker, judged from wire traces. The words in brackets are the source of the promise. "
            "`documented` means Kafka's protocol guide. `as Kafka` means that Kafka behaves so:"
        )
        click.echo(_wrapped("", about))
        for asked in WIRE_CLAUSES.values():
            click.echo(f"{asked.id:3} {asked.title}")
            click.echo(_wrapped("    ", f"{asked.promise} ({asked.basis})"))


def _wrapped(name: str, text: str) -> str:
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        name + text, width, subsequent_indent=" " * min(len(name), 21), break_on_hyphens=False
    )
