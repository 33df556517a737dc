"""The command `purgatorio report`: one page with the results of several commands."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click
from rich.console import Console

from purgatorio_pipeline.command.failed import told_status, wrong_usage
from purgatorio_pipeline.command.options import argument, shared, taking
from purgatorio_pipeline.command.output import CheckOutput, GroupedCommand, write_files
from purgatorio_pipeline.documents import Unreadable, encoded
from purgatorio_pipeline.gather import Gathered, gather
from purgatorio_pipeline.report.terminal import print_check, print_line
from purgatorio_pipeline.sources import NoTraces
from purgatorio_spec.show.visible import TEXT_LIMIT, visible

FINDINGS_SHOWN = 40

EPILOG = """
A SOURCE is one of these:

\b
  traces: files, folders or globs, which this command judges
  the folder of `purgatorio check --out`, with verdicts and no diagrams
  the folder of `purgatorio campaign --out`
  the --json output of stress, explore, check or verify

\b
  purgatorio stress --json > stress.json
  purgatorio report runs/ nightly/ *.json --html page.html

The worst result determines the exit status: 0 pass, 1 violated, 2 wrong usage or invalid input, 3
unknown.
"""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    sources: tuple[str, ...] = argument(nargs=-1, required=True, metavar="SOURCE...")
    output: CheckOutput = shared(CheckOutput)


@taking(ReportOptions, "report", cls=GroupedCommand, epilog=EPILOG)
def command(asked: ReportOptions) -> None:
    """Make one report of all SOURCES: verdicts, counterexamples and findings.

    \b
      purgatorio report runs/ --html page.html
    """
    with wrong_usage(Unreadable, NoTraces):
        found = gather(asked.sources)
    judged, findings, output = found.judged, found.findings, asked.output
    if not (judged.result.runs or findings):
        # A report without results must not pass.
        raise click.UsageError("the sources hold no run and no scenario")
    if not judged.result.runs and (output.junit or output.sarif):
        raise click.UsageError("--junit and --sarif list runs, and the sources have no runs")
    failures = write_files(judged, output, findings)
    if output.json:
        click.echo(encoded(found.printed()))
    else:
        _tell(Console(), found, verbose=output.verbose)
        if output.report is not None:
            click.echo(f"report: {output.report}")
    sys.exit(told_status(found.verdict, failures))


def _tell(console: Console, found: Gathered, *, verbose: bool) -> None:
    if found.judged.result.runs:
        print_check(console, found.judged.result, found.judged.examples, verbose=verbose)
    for one in found.findings[:FINDINGS_SHOWN]:
        print_line(console, f"{one.verdict!s:9} {visible(one.what)}: {visible(one.said, TEXT_LIMIT)}")
        if one.again:
            print_line(console, f"          {one.again}")
    if len(found.findings) > FINDINGS_SHOWN:
        print_line(console, f"... {len(found.findings) - FINDINGS_SHOWN:,} more, none worse than these")
    print_line(console, f"total: {found.verdict}")
