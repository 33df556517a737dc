"""`python -m benchmarks purgatory`: what an operation costs, by threads, at a rate."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import cast, get_args

import click
from rich.console import Console

from benchmarks.builds import compile_now, why_not_compiled
from benchmarks.purgatory_bench import PurgatoryFigures, PurgatoryScale, run_purgatory_bench
from benchmarks.purgatory_kafka import Achieved
from benchmarks.purgatory_request import PURGATORY_IDS
from benchmarks.purgatory_threads import Threaded
from benchmarks.tables import WIDTH, Table, rich_table
from benchmarks.timer_tables import single
from benchmarks.workload import Disagreement
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.report.provenance import machine
from purgatorio_spec.verdict import EXIT_STATUS, Verdict


def tables(found: PurgatoryFigures) -> list[Table]:
    """P1-P4 a table each, P5 by threads, P6 by latency."""
    made = [
        single(name, "request", figures)
        for name in PURGATORY_IDS
        if (figures := [figure for figure in found.figures if figure.id == name])
    ]
    if found.threaded:
        rows: list[tuple[str, ...]] = [
            (play.subject, str(play.threads), f"{play.ns:,.0f}", f"{play.wall_ops_per_s:,.0f}")
            for play in found.threaded
        ]
        made.append(Table(f"P5 {PURGATORY_IDS['P5']}", ("subject", "threads", "CPU ns", "wall ops/s"), rows))
    for p50_ms, p75_ms in dict.fromkeys((point.p50_ms, point.p75_ms) for point in found.achieved):
        points: list[tuple[str, ...]] = [
            (
                point.subject,
                f"{point.asked_per_s:,}",
                f"{point.achieved_per_s:,.0f}",
                f"{point.cpu_ns:,.0f}",
                f"{point.expired:.0%}",
            )
            for point in found.achieved
            if (point.p50_ms, point.p75_ms) == (p50_ms, p75_ms)
        ]
        head = ("subject", "asked/s", "achieved/s", "CPU ns", "expired")
        made.append(Table(f"P6 completion after {p50_ms} / {p75_ms} ms (p50 / p75)", head, points))
    return made


def rows(found: PurgatoryFigures) -> list[dict[str, object]]:
    return [
        *(figure.row() for figure in found.figures),
        *(_row("P5", play.threads, play.ns, play) for play in found.threaded),
        *(_row("P6", point.asked_per_s, point.cpu_ns, point) for point in found.achieved),
    ]


def _row(which: str, size: int, ns: float, one: Threaded | Achieved) -> dict[str, object]:
    first = {"bench": "purgatory", "workload": which, "id": which, "size": size, "operation": "request"}
    return {**first, "ratio": {}, **asdict(one), "ns": round(ns, 1)}


@click.command()
@click.option(
    "--workload",
    "ids",
    multiple=True,
    type=click.Choice(list(PURGATORY_IDS)),
    help="Only these [default: all].",
)
@click.option(
    "--scale", type=click.Choice(get_args(PurgatoryScale)), default="standard", show_default=True,
    help="quick: a second, to see that it works.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(ids: tuple[str, ...], scale: str, as_json: bool) -> None:
    """What an operation costs the purgatory from its making to its completion.

    P1 to P4: CPU time in virtual time, one or three keys, completed by an event or by force. P5: by 1 to 8 threads.
    P6: Kafka's own performance test in real time.
    """
    if scale != "quick":
        compile_now()
    wanted = set(ids) or set(PURGATORY_IDS)
    with progress("playing the purgatory's workloads", len(wanted), "workloads", quiet=as_json) as going:
        try:
            found = run_purgatory_bench(cast(PurgatoryScale, scale), wanted, going.tell)
        except Disagreement as odd:
            click.echo(f"not every operation was completed, so no figure means anything: {odd}", err=True)
            sys.exit(EXIT_STATUS[Verdict.VIOLATED])
    if as_json:
        shown = {"machine": machine(), "compiled": why_not_compiled() is None, "results": rows(found)}
        click.echo(json.dumps(shown))
        return
    console = Console(width=WIDTH, highlight=False)
    for table in tables(found):
        console.print(rich_table(table))
    console.print(
        "compiled: mypyc; interpreted and faithful: the source."
        if why_not_compiled() is None
        else f"SKIPPED compiled: {why_not_compiled()}; all of this is interpreted."
    )
