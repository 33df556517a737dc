"""`purgatorio bench purgatory`: the reference's purgatory with a million operations pending."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.progress import Progress

from purgatorio_pipeline.bench.machine import machine
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from purgatorio_stress.bench_purgatory import bench_purgatory


@click.command()
@click.option("--operations", default=1_000_000, show_default=True, help="Operations pending at once.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
def command(operations: int, as_json: bool) -> None:
    """Register, complete 99 % by events, let the rest expire; memory must return to where it started.

    Virtual time and one thread, so it takes no longer than its work: about a minute and a half for a million. Exit
    status 1 if timers or more garbage than the purge interval stay behind.
    """
    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def tell(what: str, done: int, planned: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=planned)
            bar.update(tasks[what], completed=done)

        found = bench_purgatory(operations, progress=tell)
    if as_json:
        click.echo(json.dumps({"machine": machine(), "results": found.results(), "memory": found.memory()}))
    else:
        click.echo(found.text())
    sys.exit(EXIT_STATUS[Verdict.PASS if found.passed else Verdict.VIOLATED])
