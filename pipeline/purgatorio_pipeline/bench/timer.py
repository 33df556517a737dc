"""`purgatorio bench timer`: the wheels beside heaps, event loops and packages, in one process and one run."""

from __future__ import annotations

import json
import sys
from typing import cast, get_args

import click
from rich.console import Console
from rich.progress import Progress

from purgatorio_pipeline.bench.machine import machine
from purgatorio_pipeline.bench.tables import WIDTH, rich_table
from purgatorio_pipeline.bench.timer_tables import tables
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from purgatorio_stress.bench.figures import observation_row
from purgatorio_stress.bench.registry import COMPILED, ENTRIES, HONEST_BASELINE
from purgatorio_stress.bench.suite import IDS, Scale
from purgatorio_stress.bench.timer_bench import TimerBench, run_timer_bench
from purgatorio_stress.bench.witness import Disagreement


def as_json(bench: TimerBench, load: float) -> dict[str, object]:
    """The public shape; `observed` has what is no mean time, `skipped` who was left out, where and why."""
    return {
        "machine": {**machine(), "load_at_start": load},
        "scale": bench.scale,
        "compiled": COMPILED,
        "results": [figure.row() for figure in bench.figures],
        "observed": [observation_row(seen) for seen in bench.observed],
        "skipped": bench.skipped,
        "firings_compared": bench.compared,
        "shortest_batch_ns": bench.shortest_batch_ns,
    }


def skipped_lines(bench: TimerBench) -> list[str]:
    """Who was left out, where and why."""
    return [
        f"SKIPPED {name}: {reason} ({len(where)} of the workloads)"
        for name, reasons in bench.skipped.items()
        for reason, where in reasons.items()
    ]


def build_line() -> str:
    """Which build of the wheel for use this is."""
    if COMPILED:
        return "The wheel is here in both builds: `compiled` (mypyc) and `interpreted` (the same source)."
    return "The wheel is here interpreted only; SKIPPED compiled: the package was not compiled (CONTRIBUTING.md)."


@click.command("timer")
@click.option("--workload", "ids", multiple=True, metavar="ID", help="Only these, such as K1 [default: all].")
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default="standard",
    show_default=True,
    help="quick: some seconds, to see that it works. standard: some minutes. full: up to a million everywhere.",
)
@click.option(
    "--only", "names", multiple=True, metavar="NAME", help=f"Only these candidates; {HONEST_BASELINE} stays."
)
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output, nothing else.")
def command(ids: tuple[str, ...], scale: str, names: tuple[str, ...], as_text: bool) -> None:
    """Requests, heartbeats, fills, churns and edge cases on the wheels and on their peers.

    CPU time of the process, rounds interleaved in rotating and reversed order. Before a workload is timed, all
    candidates play a small one, and must fire the same timers at the same times; exit status 1 if they do not.
    `x compiled` in a table is the median of the rounds' quotients, candidate / compiled. Workloads:

    \b
    K1 request   K2 slow requests   K3 heartbeat
    U1 fill      U2 churn           U3 hold         U4 cancel all
    X1 sparse    X2 ping-pong       X3 herd         X4 worst tick    X5 collector
    """
    unknown = set(names) - {entry.name for entry in ENTRIES}
    if unknown or not set(ids) <= set(IDS):
        raise click.UsageError(
            f"workloads are {', '.join(IDS)}; candidates {', '.join(entry.name for entry in ENTRIES)}"
        )
    entries = [entry for entry in ENTRIES if not names or entry.name in (*names, HONEST_BASELINE)]
    load = cast(float, machine()["load"])
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        try:
            bench = run_timer_bench(
                cast(Scale, scale),
                entries,
                ids,
                tell=lambda name, done, total: bar.update(
                    task, description=name, completed=done, total=total
                ),
            )
        except Disagreement as odd:
            click.echo(f"the candidates disagree, so no figure means anything: {odd}", err=True)
            sys.exit(EXIT_STATUS[Verdict.VIOLATED])
    if as_text:
        click.echo(json.dumps(as_json(bench, load)))
        return
    console = Console(width=WIDTH, highlight=False)
    for table in tables(bench):
        console.print(rich_table(table))
    for line in (build_line(), *skipped_lines(bench)):
        console.print(line)
    console.print(f"{bench.compared:,} firings compared: all candidates agree. Load at the start {load}.")
