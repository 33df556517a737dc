"""`purgatorio verify`: drive subjects, record them, judge what was recorded, write the report."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from purgatorio_pipeline.command.showing import CheckOutput, engine_options, note, show
from purgatorio_pipeline.judging import Engine, Focus, judge_in_process, judge_on_spark
from purgatorio_spec.verdict import EXIT_STATUS, Verdict, worst
from purgatorio_stress.subject.registry import SUBJECTS, record_runs, subjects_named

RECORDERS = 8
"""Runs recorded at a time: they mostly sleep."""
DEFAULT_REPORT = Path("report/index.html")


@click.command()
@click.argument("subjects", nargs=-1)
@click.option(
    "--seed", default=1, show_default=True, help="Seed of the plans; the same seed drives the same calls."
)
@click.option("--operations", default=2_000, show_default=True, help="Timers or operations a run.")
@click.option("--traces", type=click.Path(path_type=Path), help="Keep the recorded traces in this folder.")
@click.option("--list", "listing", is_flag=True, help="List the subjects.")
@engine_options
def command(
    subjects: Sequence[str],
    seed: int,
    operations: int,
    traces: Path | None,
    listing: bool,
    engine: str,
    master: str | None,
    memory: str | None,
    full: bool,
    output: CheckOutput,
) -> None:
    """Drive SUBJECTS (all built-in ones by default), record every call, and judge the recorded runs.

    Writes report/index.html, one page that needs no network. Exit status: 0 pass, 1 violated, 2 invalid, 3 unknown.
    """
    if listing:
        for name in SUBJECTS:
            click.echo(name)
        return
    names = list(subjects) or list(SUBJECTS)
    try:
        chosen = [subject for name in names for subject in subjects_named(name)]
    except KeyError as unknown:
        raise click.UsageError(str(unknown.args[0])) from None
    output = replace(output, report=output.report or DEFAULT_REPORT)
    folder = traces or Path(tempfile.mkdtemp(prefix="purgatorio-traces-"))
    try:
        with note(f"recording {len(chosen)} runs of {', '.join(names)}", output):
            records = record_runs(chosen, folder, seed, operations, workers=RECORDERS)
        paths = [record.path for record in records if record.path is not None]
        for record in records:
            if record.failure is not None:
                click.echo(f"{record.run}: {record.failure}", err=True)
        failed = any(record.failure is not None for record in records)
        if not paths:
            sys.exit(EXIT_STATUS[Verdict.UNKNOWN])
        with note(f"checking {len(paths)} recorded runs", output):
            if Engine(engine) is Engine.PROCESS:
                judged = judge_in_process(paths)
            else:
                judged = judge_on_spark(paths, out=output.out, master=master, full=full, memory=memory)
        status = show(judged, Focus(), output)
        if failed and status == EXIT_STATUS[Verdict.PASS]:
            status = EXIT_STATUS[worst([Verdict.UNKNOWN])]
        sys.exit(status)
    finally:
        if traces is None:
            shutil.rmtree(folder, ignore_errors=True)
