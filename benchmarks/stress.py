"""`python -m benchmarks stress`: what recording costs the threaded harness."""

from __future__ import annotations

import json
import sys

import click

from benchmarks.stress_cost import measure_stress_cost
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.report.provenance import machine
from purgatorio_spec.verdict import EXIT_STATUS, Verdict


@click.command()
@click.option(
    "--pairs", type=click.IntRange(1), default=20, show_default=True, help="Recorded and unrecorded."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(pairs: int, as_json: bool) -> None:
    """Race the same rounds with eight threads, recorded and unrecorded in turns.

    Exit status 1 below 50,000 recorded events a second, above 1.5 times the CPU time of the unrecorded rounds, or if
    a record was dropped.
    """
    with progress("racing", pairs, "pairs", quiet=as_json) as going:
        found = measure_stress_cost(pairs, going.tell)
    if as_json:
        click.echo(json.dumps({"machine": machine(), "results": found.results(), "passed": found.passed}))
    else:
        click.echo(found.text())
    sys.exit(EXIT_STATUS[Verdict.PASS if found.passed else Verdict.VIOLATED])
