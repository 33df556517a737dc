"""The progress and the table of results of `model` and `prove`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import NoReturn

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from purgatorio_pipeline.command.failed import status_of
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded, fields_of
from purgatorio_spec.claim_result import ClaimResult, overall
from purgatorio_spec.verdict import Verdict

_STYLE = {Verdict.PASS: "green", Verdict.VIOLATED: "red", Verdict.UNKNOWN: "yellow"}


def show_claims(
    results: Iterable[ClaimResult], ids: Sequence[str], doing: str, *, as_json: bool, stories: bool
) -> NoReturn:
    """Collect the results of the claims, with progress on standard error. Print the table, and exit with its status.
    After Ctrl-C, the table has the results so far. Not PASS if some claims did not run."""
    start_s = time.perf_counter()
    taken: list[ClaimResult] = []
    stopped = False
    with progress(doing, len(ids), "claims", quiet=as_json) as going:
        try:
            for result in results:
                taken.append(result)
                going.tell(len(taken), f"{doing}: {result.id} {result.judged.value}")
        except KeyboardInterrupt:
            stopped = True
    if stopped:
        click.echo("stopped; the table has the claims that were finished", err=True)
    taken.sort(key=lambda result: ids.index(result.id))
    seconds = time.perf_counter() - start_s
    verdict = overall(taken)
    if verdict is Verdict.PASS and len(taken) < len(ids):
        verdict = Verdict.UNKNOWN
    if as_json:
        claims = [_document(result) for result in taken]
        shape = {"kind": "claims", "verdict": verdict, "seconds": round(seconds, 1), "claims": claims}
        click.echo(encoded(shape))
    else:
        _show(taken, verdict, stories, seconds, _console())
    sys.exit(status_of(verdict, stopped=stopped))


def _document(result: ClaimResult) -> dict[str, object]:
    names = "id statement verdict bound states seconds states_per_second twin twins"
    return fields_of(
        result, names, verdict=result.judged, seconds=round(result.seconds, 3),
        states_per_second=round(result.states / result.seconds) if result.states and result.seconds else 0,
        twins=[
            fields_of(twin, "name number property verdict states seconds", seconds=round(twin.seconds, 3))
            for twin in result.twins
        ],
    )  # fmt: skip


def _console() -> Console:
    """The console. For a pipe or a file, its lines are wide enough for the table."""
    console = Console()
    return console if console.is_terminal else Console(width=170)


def _show(
    results: list[ClaimResult], verdict: Verdict, stories: bool, seconds: float, console: Console
) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "claim", "bound", "states", "time", "verdict", "negative controls"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading in ("states", "time") else "left"
        )
    for result in results:
        failed = sum(twin.verdict is Verdict.VIOLATED for twin in result.twins)
        names = ", ".join(twin.name for twin in result.twins)
        table.add_row(
            result.id,
            Text(result.statement),
            result.bound,
            f"{result.states:,}" if result.states else "",
            f"{result.seconds:.2f} s",
            Text(result.judged.value, style=_STYLE.get(result.judged, "")),
            Text(f"{failed}/{len(result.twins)} fail: {names}"),
        )
    console.print(table)
    for result in results:
        if result.judged is not Verdict.PASS:
            console.print(Text(f"\n{result.id}: {result.statement}: {result.judged.value}\n{result.shown}"))
        for twin in result.twins if stories else ():
            console.print(Text(f"\n{twin.name} breaks: {twin.property}\n{twin.shown}"), soft_wrap=True)
    console.print(f"\n{verdict.value}: {len(results)} claims in {seconds:.1f} s")
