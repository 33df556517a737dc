"""The command `purgatorio subjects`: judges timers of other projects."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.subjects import FOREIGN, subjects_named
from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.options import argument, flag, folder, json_flag, number, taking
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.report.provenance import machine
from purgatorio_pipeline.survey import Surveyed, survey
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import counted
from purgatorio_spec.verdict import EXIT_STATUS, worst


@dataclass(frozen=True, slots=True)
class SubjectsOptions:
    names: Sequence[str] = argument(nargs=-1, metavar="[NAME]...")
    listing: bool = flag("List the names of the timers.", named="--list")
    operations: int = number("Maximum number of timers in each run.", 2_000, least=1)
    seed: int = number("Seed of the random calls.", 1)
    traces: Path | None = folder("Keep the recorded traces in this folder.")
    as_json: bool = json_flag()


@taking(
    SubjectsOptions,
    "subjects",
    epilog="Exit status: 0 each installed timer passes, 1 a timer is violated, 2 wrong usage, 3 a timer misbehaved.",
)
def command(asked: SubjectsOptions) -> None:
    """Test timers of other projects, each by the promises of its documentation.

    If a timer is not installed, its runs are SKIPPED with the reason. All timers take one to two minutes.

    \b
      purgatorio subjects                          # all installed timers
      purgatorio subjects jdk-timer sched --json
    """
    with wrong_usage(KeyError):
        families = {name: subjects_named(name) for name in asked.names or FOREIGN}
    if asked.listing:
        for name, subjects in families.items():
            click.echo(f"{name:16} {', '.join(subject.name for subject in subjects)}")
        return
    chosen = [subject for subjects in families.values() for subject in subjects]
    place = asked.traces or Path(tempfile.mkdtemp(prefix="purgatorio-traces-"))
    try:
        with progress(
            f"driving {counted(len(chosen), 'subject')}", len(chosen), "runs", quiet=asked.as_json
        ) as going:
            measured_on = machine() | runtimes()
            rows = survey(chosen, place, asked.seed, asked.operations, going.share)
    finally:
        if asked.traces is None:
            shutil.rmtree(place, ignore_errors=True)
    verdict = worst(row.verdict for row in rows)
    if asked.as_json:
        shape = {
            "kind": "subjects",
            "verdict": str(verdict),
            "machine": measured_on,
            "subjects": [row.as_json() for row in rows],
        }
        click.echo(encoded(shape))
    else:
        _tell(rows, kept=asked.traces is not None)
    sys.exit(EXIT_STATUS[verdict])


def runtimes() -> dict[str, object]:
    found: dict[str, object] = {}
    with suppress(JavaNotFound):
        found["java"] = find_java().version
    node = shutil.which("node")
    if node is not None:
        said = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
        found["node"] = said.strip().removeprefix("v")[:40]
    return found


def _tell(rows: Sequence[Surveyed], *, kept: bool) -> None:
    """Print a line for each run, then the violations. `kept`: the traces are stored, so the replay lines are valid."""
    width = max(len(row.name) for row in rows)
    for row in rows:
        said = []
        if row.lateness is not None and row.counts is not None:
            late = row.lateness
            said.append(
                f"{row.counts.fired:,} of {row.counts.timers:,} fired, {late.early:,} before the deadline"
            )
            said.append(f"late p50 {late.p50_ns / 1e6:.2f} ms, p99 {late.p99_ns / 1e6:.2f} ms")
        if row.why:
            said.append(row.why)
        click.echo(f"{row.name:{width}} {row.verdict!s:8} {'; '.join(said)}")
    examples = [example for row in rows for example in row.examples]
    for example in examples:
        click.echo(f"\n{render(example)}", nl=False)
    if examples and not kept:
        click.echo("\nThe traces were deleted. To use the replay lines, run with --traces DIR.")
