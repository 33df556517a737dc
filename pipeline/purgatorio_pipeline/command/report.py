"""`purgatorio report`: one page of what several commands found."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from purgatorio_pipeline.command.out_file import file
from purgatorio_pipeline.documents import Unreadable, encoded
from purgatorio_pipeline.gather import Gathered, gather
from purgatorio_pipeline.report.junit import junit
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import write_report
from purgatorio_pipeline.report.provenance import provenance_here
from purgatorio_pipeline.report.sarif import sarif
from purgatorio_pipeline.report.terminal import print_check
from purgatorio_pipeline.sources import NoTraces
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import EXIT_STATUS
from purgatorio_stress.whole_file import write_whole

FINDINGS_SHOWN = 40

EPILOG = """
A SOURCE is one of

\b
  traces: files, folders, globs; judged here, without Spark
  the folder of `purgatorio check --out` (its verdicts; no drawings)
  the folder of `purgatorio campaign --out`
  a file with what stress, explore, mutants, check or verify print
    with --json, or that `mutants --kept` keeps

\b
  purgatorio stress --json > stress.json
  purgatorio mutants --json > mutants.json
  purgatorio report runs/ nightly/ *.json --html page.html

Exit status, of the worst that is shown: 0 pass, 1 violated or a known bug that no layer finds, 2 wrong usage or invalid
input, 3 unknown.
"""


@click.command("report", epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--html", "html", type=file, help="Write a page: one file that needs no network.")
@click.option(
    "--markdown", "markdown_", type=file, help="Write a summary in Markdown, for the page of a CI job."
)
@click.option("--junit", "junit_", type=file, help="Write JUnit XML of the runs.")
@click.option("--sarif", "sarif_", type=file, help="Write SARIF 2.1.0 of the runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
@click.option("--verbose", is_flag=True, help="All runs and causes, and what was skipped, and why.")
def command(
    sources: tuple[str, ...],
    html: Path | None,
    markdown_: Path | None,
    junit_: Path | None,
    sarif_: Path | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Put together what is known of SOURCES: verdicts, counterexamples, what other commands found."""
    try:
        found = gather(sources)
    except (Unreadable, NoTraces) as wrong:
        raise click.UsageError(str(wrong)) from None
    judged, findings = found.judged, found.findings
    if not (judged.result.runs or findings):
        # A report of nothing must not pass.
        raise click.UsageError("the sources hold no run, no scenario and no known bug")
    if not judged.result.runs and (junit_ or sarif_):
        raise click.UsageError("--junit and --sarif hold runs, and the sources have none")
    if html is not None:
        write_report(
            judged.result, judged.examples, judged.lateness, html, judged.gauges, findings, provenance_here()
        )
    if markdown_ is not None:
        summary = markdown(judged.result, judged.examples, judged.lateness, findings, provenance_here())
        write_whole(markdown_, summary)
    if junit_ is not None:
        write_whole(junit_, junit(judged.result, judged.examples))
    if sarif_ is not None:
        write_whole(sarif_, sarif(judged.result, judged.examples))
    if as_json:
        click.echo(encoded(found.printed()))
    else:
        _tell(Console(), found, verbose=verbose)
        if html is not None:
            click.echo(f"report: {html}")
    sys.exit(EXIT_STATUS[found.verdict])


def _tell(console: Console, found: Gathered, *, verbose: bool) -> None:
    if found.judged.result.runs:
        print_check(console, found.judged.result, found.judged.examples, verbose=verbose)
    for one in found.findings[:FINDINGS_SHOWN]:
        _line(console, f"{one.verdict!s:9} {visible(one.what)}: {visible(one.said, TEXT_LIMIT)}")
        if one.again:
            _line(console, f"          {one.again}")
    if len(found.findings) > FINDINGS_SHOWN:
        _line(console, f"... {len(found.findings) - FINDINGS_SHOWN:,} more, none worse than these")
    _line(console, f"all in all: {found.verdict}")


def _line(console: Console, said: str) -> None:
    console.print(Text(said), highlight=False)
