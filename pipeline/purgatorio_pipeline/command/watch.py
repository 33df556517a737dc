"""`purgatorio watch`: traces judged as they arrive."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from purgatorio_pipeline.watch.batch import News, Watcher
from purgatorio_pipeline.watch.state import WatchState, load_before
from purgatorio_spec.verdict import EXIT_STATUS, Verdict, Violation, worst

EPILOG = """
A run may come in several files: each begins with the run's header, the last one ends with its end record. Files must
appear whole: write them elsewhere and rename them.

\b
  purgatorio watch runs --out lake          # until Ctrl-C
  purgatorio watch runs --out lake --once   # what is there, then end
  purgatorio watch runs --out lake --metrics runs.prom   # Prometheus

A run is UNKNOWN while it is open, VIOLATED as soon as something is, and gets its verdict when its end has come. Started
again over the same --out, it goes on where it stopped.

Exit status: 0 all runs closed and pass, 1 violated, 2 invalid input, 3 unknown (a run is open).
"""


@click.command(epilog=EPILOG)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for tables, state, checkpoint.",
)
@click.option("--once", is_flag=True, help="Take in what is there, then end.")
@click.option("--every", "every_s", default=5.0, show_default=True, help="Seconds between two looks.")
@click.option("--files", default=64, show_default=True, help="Files a batch at most.")
@click.option(
    "--metrics", type=click.Path(path_type=Path), help="Keep this file of Prometheus text up to date."
)
@click.option("--master", help="Spark master; default local[*] or spark-submit's.")
@click.option("--memory", help="Heap of the Spark driver, such as 3g.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output at the end, nothing else."
)
def command(
    folder: Path,
    out: Path,
    once: bool,
    every_s: float,
    files: int,
    metrics: Path | None,
    master: str | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Judge the runs of FOLDER as their files arrive."""
    from purgatorio_pipeline.session import start_session
    from purgatorio_pipeline.watch.stream import start_watch

    console = Console(stderr=as_json)
    spark = start_session(master, quick=True, memory=memory)
    watcher = Watcher(spark, out, lambda news: _tell(console, news), metrics)
    query = start_watch(spark, folder, watcher, every_s=None if once else every_s, files_per_batch=files)
    with suppress(KeyboardInterrupt):
        query.awaitTermination()
    query.stop()
    state = load_before(out / "state", sys.maxsize)
    if as_json:
        click.echo(json.dumps(_as_json(state), ensure_ascii=False))
    else:
        _summary(console, state)
    sys.exit(EXIT_STATUS[_verdict(state)])


def _verdict(state: WatchState) -> Verdict:
    return worst(Verdict(str(run["verdict"])) for run in state.all_runs())


def _as_json(state: WatchState) -> dict[str, object]:
    return {"verdict": str(_verdict(state)), "batch": state.batch, "runs": list(state.all_runs())}


def _tell(console: Console, news: News) -> None:
    causes: dict[tuple[str, str, str], list[Violation]] = {}
    for run, violation in news.found:
        causes.setdefault((run, violation.clause, violation.cause), []).append(violation)
    for (run, clause, cause), same in causes.items():
        console.print(
            f"batch {news.batch}: [red]{clause} VIOLATED[/] in open run {escape(run)}: {escape(cause)}, {len(same)} new"
        )
        console.print(f"  first {escape(same[0].subject)}: {escape(same[0].seen)}")
    for one in news.closed:
        console.print(
            f"batch {news.batch}: run {escape(str(one['run']))} {one['verdict']}, {one['events']} events"
        )
        for problem in _texts(one["problems"]):
            console.print(f"  {escape(problem)}")


def _summary(console: Console, state: WatchState) -> None:
    runs = list(state.all_runs())
    for one in runs:
        broken = _broken(one)
        still = ", open" if one.get("open") else ""
        console.print(
            f"{one['verdict']!s:13} {escape(str(one['run']))}  {one['events']} events{still}  {broken}".rstrip()
        )
    console.print(f"{_verdict(state)}: {len(state.closed)} run(s) closed, {len(state.runs)} open")


def _broken(run: dict[str, object]) -> str:
    clauses = run["clauses"]
    assert isinstance(clauses, dict)
    return ", ".join(f"{name} {one['violations']}" for name, one in clauses.items() if one["violations"])


def _texts(values: object) -> Sequence[str]:
    return [str(value) for value in values] if isinstance(values, list) else []
