"""`python -m benchmarks skew`: equally many events with nothing hot, with one hot run, one hot key, one hot thread.

Each set is checked on Spark in a process of its own and must give what was put in. Which task of which stage ran
longest is told by Spark's own event log.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks.check_peer import Counts
from benchmarks.event_log import Stage, read_stages, settings
from benchmarks.process_tree import Cost, Failed, run_measured
from benchmarks.trace_set import EVENTS_PER_OPERATION, Skew, violations_of, write_run
from purgatorio_pipeline.command.progress import progress

MIB: Final = 1 << 20
HOT: Final = 0.9
RUNS: Final = 4
BROKEN_ONE_IN: Final = 7_000
"""Operations for each broken promise of a kind."""
SHOWN: Final = 3
SHAPES: Final = {
    "even": Skew(),
    "hot run": Skew(),
    "hot key": Skew(hot_key=HOT),
    "hot thread": Skew(one_thread=True),
}
"""All but the first have nine tenths of their events in one of the four runs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One shape: what its check cost and found, what had been put in, and its stages, the hottest first."""

    shape: str
    events: int
    cost: Cost
    found: Counts
    wanted: Counts
    stages: list[Stage]

    @property
    def right(self) -> bool:
        """Whether the check found exactly what had been put in."""
        return self.found == self.wanted


def write_shape(shape: str, folder: Path, events: int) -> tuple[int, int]:
    """Write the runs of a shape; how many events there are, and how many of each broken promise."""
    rest = (1 - HOT) / (RUNS - 1)
    shares = [1 / RUNS] * RUNS if shape == "even" else [HOT] + [rest] * (RUNS - 1)
    total = broken = 0
    for at, share in enumerate(shares):
        operations = max(BROKEN_ONE_IN // 10, int(events * share / EVENTS_PER_OPERATION))
        each = max(1, operations // BROKEN_ONE_IN)
        total += write_run(folder / f"run-{at}.parquet", operations, each, at, SHAPES[shape])
        broken += each
    return total, broken


def measure(shape: str, events: int) -> Measured:
    """Write a shape into a scratch folder and check it. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="purgatorio-bench-") as name:
        traces, log = Path(name) / "traces", Path(name) / "log"
        traces.mkdir()
        log.mkdir()
        written, broken = write_shape(shape, traces, events)
        click.echo(f"checking {written:,} events, {shape} ...", err=True)
        command = [sys.executable, "-m", "benchmarks.check_peer", "spark", str(traces)]
        cost = run_measured(command, settings(log))
        stages = sorted(read_stages(log), key=lambda stage: -stage.beyond_s)
    found: Counts = json.loads(cost.output.splitlines()[-1])
    return Measured(shape, written, cost, found, violations_of(broken), stages)


@click.command()
@click.option("--events", default=4_000_000, show_default=True, help="Events, about, in each shape.")
@click.option(
    "--shape", "shapes", multiple=True, type=click.Choice(list(SHAPES)), help="Only these [default: all]."
)
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output.")
def command(events: int, shapes: tuple[str, ...], as_text: bool) -> None:
    """The check on Spark of sets with nothing hot, one hot run, one hot key, one hot thread.

    Nine tenths of a hot set's events are of one run; of a hot key, nine tenths of that run's watches and checks, too;
    of a hot thread, all calls. Below each set are the stages whose longest task ran furthest beyond an even share.
    Exit status 1 if a set gives other violations than were put in.
    """
    results: list[Measured] = []
    wanted = shapes or SHAPES
    for shape in wanted:
        try:
            with progress(f"checking {shape}, {len(results)} of {len(wanted)} sets done", quiet=as_text):
                results.append(measure(shape, events))
        except Failed as failed:
            raise click.ClickException(str(failed)) from None
        if not as_text:
            click.echo("\n".join(_lines(results[-1])))
    if as_text:
        click.echo(json.dumps({"results": [_as_json(one) for one in results]}))
    sys.exit(0 if all(one.right for one in results) else 1)


def _lines(one: Measured) -> list[str]:
    wrong = "" if one.right else f"  WRONG: {one.found}, not {one.wanted}"
    told = (
        f"{one.shape}: {one.events:,} events, {one.cost.cpu_s:.1f} CPU s, "
        f"{one.cost.peak_bytes // MIB:,} MiB{wrong}"
    )
    return [told] + [
        f"  {stage.part_of:22} {len(stage.task_ms):>3} tasks, longest {stage.longest_s:.1f} s, "
        f"{stage.longest_share:.0%} of time, {stage.rows_share:.0%} of rows"
        for stage in one.stages[:SHOWN]
    ]


def _as_json(one: Measured) -> dict[str, object]:
    stages = [
        {
            "part_of": stage.part_of, "tasks": len(stage.task_ms), "longest_s": stage.longest_s,
            "longest_share": stage.longest_share, "beyond_s": stage.beyond_s, "rows_share": stage.rows_share,
        }
        for stage in one.stages[:SHOWN]
    ]  # fmt: skip
    return {
        "bench": "skew", "shape": one.shape, "events": one.events, "cpu_s": one.cost.cpu_s,
        "wall_s": one.cost.wall_s, "peak_bytes": one.cost.peak_bytes, "found": one.found, "right": one.right,
        "hottest": stages,
    }  # fmt: skip
