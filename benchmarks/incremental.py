"""`python -m benchmarks incremental`: what a check over a lake costs that knows all files, or all but one.

Four checks, each in a process of its own, the JVM's start included: of N files; of the same with one more; of these
again; and of all of them at once, over no lake. The last must find what the second and the third did, and the files
that each reads are counted.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks.process_tree import Cost, Failed, run_measured
from benchmarks.trace_set import EVENTS_PER_OPERATION, write_run
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.incremental.on_spark import judge_on_spark
from purgatorio_pipeline.printed import check_of
from purgatorio_pipeline.sources import find_traces

LEAST_OPERATIONS: Final = 100
"""Of a run with room for one of each broken promise."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One check: its name, the numbers of named and of read files, its cost, and a digest of its output."""

    check: str
    files: int
    read: int
    cost: Cost
    found: str


def write_file(folder: Path, number: int, events: int) -> int:
    """Write one run of about so many events; returns how many."""
    operations = max(LEAST_OPERATIONS, int(events / EVENTS_PER_OPERATION))
    return write_run(folder / f"run-{number:05d}.parquet", operations, 1, [number])


def measure(name: str, traces: Path, lake: Path) -> Measured:
    """Check a folder over a lake in a process of its own. Raises `Failed`."""
    files = len(list(traces.iterdir()))
    with progress(f"checking {name}, {files:,} files"):
        cost = run_measured([sys.executable, "-m", "benchmarks.incremental", str(traces), str(lake)])
    told = json.loads(cost.output.splitlines()[-1])
    return Measured(name, files, told["read"], cost, told["digest"])


def wrong(results: list[Measured], files: int) -> list[str]:
    """The differences from the expected result."""
    first, more, again, once = results
    read = [one.read for one in results]
    expected = [files, 1, 0, files + 1]
    found = [] if read == expected else [f"read {read} files instead of {expected}"]
    found += [
        f"{one.check!r} found other than all at once" for one in (more, again) if one.found != once.found
    ]
    return found + ([f"{first.check!r} found the same as with one more"] if first.found == once.found else [])


@click.command()
@click.option("--files", default=40, show_default=True, help="Files of the first check.")
@click.option("--events", default=100_000, show_default=True, help="Events, about, in each.")
@click.option("--json", "as_text", is_flag=True, help="One JSON object on standard output.")
def command(files: int, events: int, as_text: bool) -> None:
    """A first check of many files, a second with one more, a third of the same.

    Exit status 1 if a check reads other files than it must, or finds other than a check of all at once.
    """
    with tempfile.TemporaryDirectory(prefix="purgatorio-bench-") as name:
        traces, lake = Path(name, "traces"), Path(name, "lake")
        traces.mkdir()
        total = sum(write_file(traces, number, events) for number in range(files))
        try:
            results = [measure("first", traces, lake)]
            total += write_file(traces, files, events)
            results.append(measure("one more", traces, lake))
            results.append(measure("nothing new", traces, lake))
            results.append(measure("all at once", traces, Path(name, "other")))
        except Failed as failed:
            raise click.ClickException(str(failed)) from None
    complaints = wrong(results, files)
    if as_text:
        click.echo(json.dumps({"results": [_as_json(one) for one in results], "wrong": complaints}))
    else:
        click.echo(f"{total:,} events in {files + 1:,} files")
        click.echo(f"{'check':12} {'files':>6} {'read':>6} {'CPU s':>7} {'wall s':>7}")
        for one in results:
            click.echo(
                f"{one.check:12} {one.files:>6,} {one.read:>6,} {one.cost.cpu_s:>7.1f} {one.cost.wall_s:>7.1f}"
            )
        for complaint in complaints:
            click.echo(f"wrong: {complaint}")
    sys.exit(1 if complaints else 0)


def _as_json(one: Measured) -> dict[str, object]:
    return {
        "bench": "incremental", "check": one.check, "files": one.files, "read": one.read,
        "cpu_s": one.cost.cpu_s, "wall_s": one.cost.wall_s,
    }  # fmt: skip


def check_once(traces: str, lake: str) -> dict[str, object]:
    """The work of the measured process: a check. Prints the number of files that it read, and a digest of its
    findings. (The measuring process reads nothing before the end, and a pipe holds little.)"""
    judged = judge_on_spark(find_traces([traces]), out=Path(lake), master="local[2]")
    files = judged.files
    assert files is not None
    digest = hashlib.sha256(encoded(check_of(judged.result))).hexdigest()
    return {"read": files.new + files.changed + files.again, "digest": digest}


if __name__ == "__main__":
    print(json.dumps(check_once(*sys.argv[1:])))
