"""`python -m benchmarks check`: the check on Spark beside the process engine, in one run.

Each engine checks the same files in a process of its own. What it costs is measured over its whole tree, start included
(the JVM's start and warm-up are some 10 to 20 CPU seconds, most of what Spark needs for a million events).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import pyarrow.parquet as pq

from benchmarks.process_tree import Cost, Failed, run_measured
from benchmarks.trace_set import injected, violations_of, write_traces
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.report.provenance import machine
from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.judge.result import CheckResult

MIB: Final = 1 << 20
NAMES: Final = {"spark": "purgatorio", "process": "process"}
MEMORY: Final = "1800m"
"""The driver's heap: with the rest of the JVM and the Python workers the tree stays below 3 GiB."""

Counts = dict[str, int]


def check_with_spark(paths: list[Path]) -> CheckResult:
    from purgatorio_pipeline.incremental.spark_fold import check_files
    from purgatorio_pipeline.session import start_context

    spark = start_context("local[2]", memory=MEMORY, quick=True)
    result = check_files(spark, paths)
    spark.stop()
    return result


def check_in_process(paths: list[Path]) -> CheckResult:
    from purgatorio_spec.check import check_files

    return check_files(paths)


PEERS: Final[dict[str, Callable[[list[Path]], CheckResult]]] = {
    "spark": check_with_spark,
    "process": check_in_process,
}


def violations_in(result: CheckResult) -> Counts:
    """Violations by clause, of those that have any."""
    found: Counter[str] = Counter()
    for run in result.runs:
        found.update({name: clause.violations for name, clause in run.clauses.items() if clause.violations})
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one engine on one set: its cost, its findings, and whether they are the injected ones."""

    peer: str
    events: int
    cost: Cost
    found: Counts
    right: bool

    @property
    def cpu_ns(self) -> float:
        return self.cost.cpu_s * 1e9 / self.events


def measure(events: int, folder: Path, peers: tuple[str, ...], runs: int | None = None) -> list[Measured]:
    """Generate a set and check it with each peer. Raises `Failed`."""
    paths = write_traces(folder, events, runs)
    rows = sum(pq.read_metadata(path).num_rows for path in paths) - 2 * len(paths)
    wanted = violations_of(injected(events))
    results: list[Measured] = []
    for peer in peers:
        with progress(f"checking {rows:,} events with {peer}, {len(results)} of {len(peers)} peers done"):
            cost = run_measured([sys.executable, "-m", "benchmarks.check", peer, str(folder)])
        found: Counts = json.loads(cost.output.splitlines()[-1])
        results.append(Measured(peer, rows, cost, found, found == wanted))
    return results


def as_json(results: list[Measured]) -> dict[str, object]:
    """The public shape: `ns` is CPU time an event, a ratio is peer / subject."""
    rows = []
    for one in results:
        others = [o for o in results if o.events == one.events and o.peer != one.peer]
        rows.append(
            {
                "bench": "check", "workload": "clean-with-known-violations", "size": one.events,
                "subject": NAMES[one.peer], "operation": "check", "ns": one.cpu_ns,
                "ratio": {NAMES[other.peer]: other.cpu_ns / one.cpu_ns for other in others},
                "cpu_s": one.cost.cpu_s, "wall_s": one.cost.wall_s, "peak_bytes": one.cost.peak_bytes,
                "events_per_wall_s": one.events / one.cost.wall_s,
                "events_per_cpu_s": one.events / one.cost.cpu_s, "found": one.found, "right": one.right,
            }
        )  # fmt: skip
    return {"machine": machine(), "results": rows}


def table(results: list[Measured]) -> str:
    lines = [f"{'events':>12} {'':10} {'events/s':>10} {'CPU s':>8} {'k ev/CPU s':>11} {'peak MiB':>9}"]
    for one in results:
        lines.append(
            f"{one.events:>12,} {one.peer:10} {one.events / one.cost.wall_s:>10,.0f} {one.cost.cpu_s:>8.1f} "
            f"{one.events / one.cost.cpu_s / 1000:>11,.0f} {one.cost.peak_bytes // MIB:>9,}"
            + ("" if one.right else f"  WRONG: {one.found}")
        )
    return "\n".join(lines)


@click.command()
@click.option("--events", default=1_000_000, show_default=True, help="Size of the generated set.")
@click.option("--runs", type=click.IntRange(1), help="In so many runs [default: one for 2.5 million events].")
@click.option("--scale", is_flag=True, help="Check a tenth of it first, to show how the cost grows.")
@click.option(
    "--peer", "peers", multiple=True, type=click.Choice(list(NAMES)), help="Only these [default: all]."
)
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output.")
def command(events: int, runs: int | None, scale: bool, peers: tuple[str, ...], as_text: bool) -> None:
    """Check a generated trace set with Spark and the process engine, side by side.

    Exit status 1 if one does not find exactly what was put in.
    """
    results: list[Measured] = []
    for size in (events // 10, events) if scale else (events,):
        with tempfile.TemporaryDirectory(prefix="purgatorio-bench-") as folder:
            try:
                results += measure(size, Path(folder), peers or tuple(NAMES), runs)
            except Failed as failed:
                raise click.ClickException(str(failed)) from None
    click.echo(json.dumps(as_json(results)) if as_text else table(results))
    sys.exit(0 if all(one.right for one in results) else 1)


if __name__ == "__main__":
    print(json.dumps(violations_in(PEERS[sys.argv[1]](find_traces(sys.argv[2:])))))
