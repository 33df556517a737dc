"""`python -m benchmarks forms`: the same events as one Parquet file, as one gzip file, and as many small files.

One run, one file: a Parquet trace is read by all tasks at once, a compressed one by one task, which nobody can split.
Each form is checked in a process of its own (on Spark: the JVM's start included) and must give what was put in.
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
from benchmarks.process_tree import Cost, Failed, run_measured
from benchmarks.trace_set import EVENTS_PER_OPERATION, violations_of, write_run
from purgatorio_pipeline.command.progress import progress
from purgatorio_spec.trace.convert import convert

MIB: Final = 1 << 20
FORMS: Final = ("parquet", "jsonl.gz", "many", "many.jsonl")
LEAST_BROKEN: Final = 100
"""Operations of the smallest run that has room for one of each broken promise."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One form: its files and their bytes, what the check of them cost, what it found, and what had been put in."""

    form: str
    files: int
    input_bytes: int
    events: int
    cost: Cost
    found: Counts
    wanted: Counts

    @property
    def right(self) -> bool:
        """Whether the check found exactly what had been put in."""
        return self.found == self.wanted


def write_form(form: str, folder: Path, events: int, files: int) -> tuple[int, int]:
    """Write the events in a form; how many there are, and how many of each broken promise.

    The forms `many` are `files` runs of the same total. Of runs too small to hold broken promises every tenth is
    larger.
    """
    count = files if form.startswith("many") else 1
    operations = max(1, int(events / count / EVENTS_PER_OPERATION))
    total = broken = 0
    for at in range(count):
        larger = max(operations, LEAST_BROKEN) if at % 10 == 0 else operations
        each = int(larger >= LEAST_BROKEN)
        path = folder / f"run-{at:05d}.parquet"
        total += write_run(path, larger, each, at)
        broken += each
        suffix = form.removeprefix("many").removeprefix(".") or "parquet"
        if suffix != "parquet":
            convert(path, path.with_suffix(f".{suffix}"))
            path.unlink()
    return total, broken


def measure(form: str, events: int, files: int, engine: str) -> Measured:
    """Write a form into a scratch folder and check it. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="purgatorio-bench-") as name:
        folder = Path(name)
        written, broken = write_form(form, folder, events, files)
        traces = list(folder.iterdir())
        size = sum(path.stat().st_size for path in traces)
        click.echo(f"checking {written:,} events as {form} ({len(traces):,} files) ...", err=True)
        cost = run_measured([sys.executable, "-m", "benchmarks.check_peer", engine, name])
    found: Counts = json.loads(cost.output.splitlines()[-1])
    return Measured(form, len(traces), size, written, cost, found, violations_of(broken))


@click.command()
@click.option("--events", default=1_000_000, show_default=True, help="Events, about, in each form.")
@click.option("--files", default=2_000, show_default=True, help="Files of the forms `many`.")
@click.option("--form", "forms", multiple=True, type=click.Choice(FORMS), help="Only these [default: all].")
@click.option("--engine", type=click.Choice(["spark", "process"]), default="spark", show_default=True)
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output.")
def command(events: int, files: int, forms: tuple[str, ...], engine: str, as_text: bool) -> None:
    """The check of the same events as Parquet, as gzip, and as many small files.

    `many` are Parquet files, `many.jsonl` plain JSON lines. Exit status 1 if a form gives other violations than were
    put in.
    """
    results: list[Measured] = []
    if not as_text:
        click.echo(
            f"{'form':10} {'files':>6} {'MiB':>7} {'events':>11} {'CPU s':>7} {'wall s':>7} {'peak MiB':>9}"
        )
    wanted = forms or FORMS
    for form in wanted:
        try:
            with progress(f"checking {form}, {len(results)} of {len(wanted)} forms done", quiet=as_text):
                one = measure(form, events, files, engine)
        except Failed as failed:
            raise click.ClickException(str(failed)) from None
        results.append(one)
        if not as_text:
            click.echo(_line(one))
    if as_text:
        click.echo(json.dumps({"results": [_as_json(one, engine) for one in results]}))
    sys.exit(0 if all(one.right for one in results) else 1)


def _line(one: Measured) -> str:
    return (
        f"{one.form:10} {one.files:>6,} {one.input_bytes / MIB:>7.1f} {one.events:>11,} "
        f"{one.cost.cpu_s:>7.1f} {one.cost.wall_s:>7.1f} {one.cost.peak_bytes // MIB:>9,}"
        + ("" if one.right else f"  WRONG: {one.found}")
    )


def _as_json(one: Measured, engine: str) -> dict[str, object]:
    return {
        "bench": "forms", "engine": engine, "form": one.form, "files": one.files, "input_bytes": one.input_bytes,
        "events": one.events, "cpu_s": one.cost.cpu_s, "wall_s": one.cost.wall_s,
        "peak_bytes": one.cost.peak_bytes, "found": one.found, "right": one.right,
    }  # fmt: skip
