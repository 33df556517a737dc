"""`purgatorio bench forms`: what the same events cost as one Parquet file, as one gzip file, and as many small files.

One run, one file: a Parquet trace is read by all tasks at once, a compressed one by one task, which nobody can split.
Each form is checked in a process of its own (on Spark: the JVM's start included) and must give the same violations.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from purgatorio_pipeline.bench.check_peer import Counts
from purgatorio_pipeline.bench.process_tree import Cost, Failed, run_measured
from purgatorio_pipeline.bench.trace_set import EVENTS_PER_OPERATION, header_of, run_events
from purgatorio_spec.trace.convert import convert
from purgatorio_spec.trace.writer import TraceWriter

MIB: Final = 1 << 20
FORMS: Final = ("parquet", "jsonl.gz", "many")


@dataclass(frozen=True, slots=True)
class Measured:
    """One form: its files and their bytes, what the check of them cost, and what it found."""

    form: str
    files: int
    input_bytes: int
    events: int
    cost: Cost
    found: Counts


def write_form(form: str, folder: Path, events: int, files: int) -> int:
    """Write the events in a form and return how many there are; `many` is `files` runs of the same total."""
    if form == "many":
        return sum(_run(folder / f"run-{at:05d}.parquet", events // files, at) for at in range(files))
    written = _run(folder / "run.parquet", events, 0)
    if form != "parquet":
        convert(folder / "run.parquet", folder / f"run.{form}")
        (folder / "run.parquet").unlink()
    return written


def _run(path: Path, events: int, seed: int) -> int:
    table = run_events(max(100, int(events / EVENTS_PER_OPERATION)), 1, seed)
    with TraceWriter(path, header_of(f"run-{seed}")) as writer:
        for batch in table.to_batches(max_chunksize=1 << 17):
            writer.write_batch(batch)
    return table.num_rows


def measure(form: str, events: int, files: int, engine: str) -> Measured:
    """Write a form into a scratch folder and check it. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="purgatorio-bench-") as name:
        folder = Path(name)
        written = write_form(form, folder, events, files)
        traces = list(folder.iterdir())
        size = sum(path.stat().st_size for path in traces)
        click.echo(f"checking {written:,} events as {form} ({len(traces):,} files) ...", err=True)
        cost = run_measured([sys.executable, "-m", "purgatorio_pipeline.bench.check_peer", engine, name])
    return Measured(form, len(traces), size, written, cost, json.loads(cost.output.splitlines()[-1]))


@click.command()
@click.option("--events", default=1_000_000, show_default=True, help="Events, about, in each form.")
@click.option("--files", default=2_000, show_default=True, help="Files of the form `many`.")
@click.option("--form", "forms", multiple=True, type=click.Choice(FORMS), help="Only these [default: all].")
@click.option("--engine", type=click.Choice(["spark", "process"]), default="spark", show_default=True)
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output.")
def command(events: int, files: int, forms: tuple[str, ...], engine: str, as_text: bool) -> None:
    """The check of the same events as Parquet, as gzip, and as many small files.

    Exit status 1 if the gzip file gives other violations than the Parquet file.
    """
    try:
        results = [measure(form, events, files, engine) for form in forms or FORMS]
    except Failed as failed:
        raise click.ClickException(str(failed)) from None
    if as_text:
        click.echo(json.dumps({"results": [_as_json(one, engine) for one in results]}))
    else:
        click.echo(
            f"{'form':10} {'files':>6} {'MiB':>7} {'events':>11} {'CPU s':>7} {'wall s':>7} {'peak MiB':>9}"
        )
        for one in results:
            click.echo(
                f"{one.form:10} {one.files:>6,} {one.input_bytes / MIB:>7.1f} {one.events:>11,} "
                f"{one.cost.cpu_s:>7.1f} {one.cost.wall_s:>7.1f} {one.cost.peak_bytes // MIB:>9,}"
            )
    whole = [one.found for one in results if one.form != "many"]
    sys.exit(0 if all(found == whole[0] for found in whole) else 1)


def _as_json(one: Measured, engine: str) -> dict[str, object]:
    return {
        "bench": "forms", "engine": engine, "form": one.form, "files": one.files, "input_bytes": one.input_bytes,
        "events": one.events, "cpu_s": one.cost.cpu_s, "wall_s": one.cost.wall_s,
        "peak_bytes": one.cost.peak_bytes, "found": one.found,
    }  # fmt: skip
