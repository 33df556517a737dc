"""`python -m benchmarks timer`: the wheels, heaps, event loops and packages, in one process and one run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import cast, get_args

import click
from rich.console import Console

from benchmarks.builds import compile_now, why_not_compiled
from benchmarks.candidate import Entry
from benchmarks.empty_wheel import measure_empty
from benchmarks.figures import observation_row
from benchmarks.guard import GUARDS, check_guard
from benchmarks.instructions import count_instructions, no_valgrind
from benchmarks.performance_page import Run, page
from benchmarks.purgatory_bench import PurgatoryScale, run_purgatory_bench
from benchmarks.purgatory_request import PURGATORY_IDS
from benchmarks.registry import ENTRIES, HONEST_BASELINE, WHEEL_SIZES, steps_of_cost, wheel_sizes
from benchmarks.suite import IDS, Scale
from benchmarks.tables import WIDTH, rich_table
from benchmarks.timer_bench import TimerBench, run_timer_bench
from benchmarks.timer_tables import tables
from benchmarks.workload import Disagreement
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.report.provenance import machine
from purgatorio_spec.verdict import EXIT_STATUS, Verdict


def as_json(bench: TimerBench, load: float) -> dict[str, object]:
    """The public JSON. `observed`: other figures than mean times. `skipped`: the missing candidates, with reasons."""
    return {
        "machine": {**machine(), "load_at_start": load},
        "scale": bench.scale,
        "compiled": why_not_compiled() is None,
        "results": [figure.row() for figure in bench.figures],
        "observed": [observation_row(seen) for seen in bench.observed],
        "skipped": bench.skipped,
        "firings_compared": bench.compared,
        "shortest_batch_ns": bench.shortest_batch_ns,
    }


def skipped_lines(bench: TimerBench) -> list[str]:
    """The candidates that were left out, with workload and reason."""
    return [
        f"SKIPPED {name}: {reason} ({len(where)} of the workloads)"
        for name, reasons in bench.skipped.items()
        for reason, where in reasons.items()
    ]


def build_line() -> str:
    """Which build of the wheel for use this is."""
    reason = why_not_compiled()
    if reason is None:
        return "The wheel is here in both builds: `compiled` (mypyc) and `interpreted` (the same source)."
    return f"The wheel is here interpreted only; SKIPPED compiled: {reason}."


def entries(names: Collection[str], sizes: bool, steps: bool) -> list[Entry]:
    """The candidates of a run; the honest baseline is always among them."""
    if sizes:
        return wheel_sizes()
    if steps:
        return steps_of_cost()
    return [entry for entry in ENTRIES if not names or entry.name in (*names, HONEST_BASELINE)]


def default_ids(sizes: bool, steps: bool) -> tuple[str, ...]:
    """The default workloads."""
    return ("K2", "U3", "X1", "X4") if sizes else ("K1", "K2") if steps else ()


def prepare() -> None:
    """Compile the wheel unless it has been."""
    if why_not_compiled() is not None:
        click.echo("compiling the wheel, half a minute ...", err=True)
        problem = compile_now()
        if problem is not None:
            click.echo(f"SKIPPED compiled: {problem}", err=True)


def run(scale: Scale, candidates: list[Entry], ids: Collection[str]) -> TimerBench:
    """`run_timer_bench` with progress on standard error."""
    with progress("playing the workloads", 1.0) as going:
        return run_timer_bench(scale, candidates, ids, tell=going.tell)


def show_guards(as_text: bool) -> None:
    """Exits with 1 where a quotient is below its floor, with 3 where that cannot be said."""
    found = [check_guard(guard, ENTRIES) for guard in GUARDS]
    if as_text:
        rows = [
            {name: getattr(one.guard, name) for name in ("subject", "peer", "operation", "floor")}
            | {name: getattr(one, name) for name in ("median", "low", "high", "rounds", "verdict")}
            for one in found
        ]
        click.echo(json.dumps({"machine": machine(), "guards": rows}))
    else:
        for one in found:
            name = f"{one.guard.peer} / {one.guard.subject} {one.guard.operation}"
            measured = f"{one.median:.2f} ({one.low:.2f}-{one.high:.2f})" if one.rounds else "not built here"
            click.echo(f"{one.verdict.value:9} {name:35} floor {one.guard.floor:<4g} {measured}")
    verdicts = {one.verdict for one in found}
    worst = next((v for v in (Verdict.VIOLATED, Verdict.UNKNOWN) if v in verdicts), Verdict.PASS)
    if worst is not Verdict.PASS:
        sys.exit(EXIT_STATUS[worst])


def show_instructions(as_text: bool) -> None:
    """A cancel and an add by candidate; SKIPPED without valgrind."""
    reason = no_valgrind()
    names = [
        entry.name for entry in ENTRIES if entry.ours or entry.name in ("heapq", HONEST_BASELINE, "asyncio")
    ]
    counts = {} if reason else {name: round(count_instructions(name)) for name in names}
    if as_text:
        click.echo(json.dumps({"machine": machine(), "instructions": counts, "skipped": reason}))
        return
    click.echo(
        "\n".join(f"{name:12} {count:8,} instructions" for name, count in counts.items())
        or f"SKIPPED: {reason}"
    )


def measure_all(scale: Scale) -> Run:
    """All that the page tells, in one go."""
    start_s, load = os.times(), cast(float, machine()["load"])
    timer = run(scale, entries((), False, False), ())
    sizes = run(scale, wheel_sizes(), default_ids(True, False))
    steps = run(scale, steps_of_cost(), default_ids(False, True))
    purgatory_scale: PurgatoryScale = "quick" if scale == "quick" else "standard"
    with progress("playing the purgatory's workloads", len(PURGATORY_IDS), "workloads") as going:
        found = run_purgatory_bench(purgatory_scale, PURGATORY_IDS, going.tell)
    guarded = [check_guard(guard, ENTRIES) for guard in GUARDS]
    return Run(
        timer=timer,
        sizes=sizes,
        empty=measure_empty(WHEEL_SIZES),
        steps=steps,
        purgatory=found,
        guarded=guarded,
        machine=machine(),
        load=(load, cast(float, machine()["load"])),
        builds=build_line(),
        cpu_s=sum(os.times()[:4]) - sum(start_s[:4]),
        skipped=skipped_lines(timer),
    )


@click.command("timer")
@click.option("--workload", "ids", multiple=True, metavar="ID", help="Only these, such as K1 [default: all].")
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default="standard",
    show_default=True,
    help="quick: some seconds, to see that it works. standard: some minutes.",
)
@click.option(
    "--only", "names", multiple=True, metavar="NAME", help=f"Only these candidates; {HONEST_BASELINE} stays."
)
@click.option("--sizes", is_flag=True, help="The wheel at several sizes instead of the candidates.")
@click.option("--steps", is_flag=True, help="Parts of the wheel's cost instead of the candidates.")
@click.option("--guard", is_flag=True, help="Judge the guards of CI alone; exit status 1 below a floor.")
@click.option("--instructions", is_flag=True, help="Count instructions under valgrind alone.")
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Measure everything, the purgatory too, and write the page.",
)
@click.option("--json", "as_text", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    ids: tuple[str, ...],
    scale: Scale,
    names: tuple[str, ...],
    sizes: bool,
    steps: bool,
    guard: bool,
    instructions: bool,
    write: Path | None,
    as_text: bool,
) -> None:
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
    if scale != "quick":
        prepare()
    try:
        if guard:
            show_guards(as_text)
        if instructions:
            show_instructions(as_text)
        if guard or instructions:
            return
        if write is not None:
            write.write_text(page(measure_all(scale)))
            click.echo(f"wrote {write}")
            return
        load = cast(float, machine()["load"])
        bench = run(scale, entries(names, sizes, steps), ids or default_ids(sizes, steps))
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
