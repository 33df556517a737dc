"""`purgatorio model`: search the small-step models completely."""

from __future__ import annotations

import time

import click

from purgatorio_pipeline.command.claim_table import collect, finish
from purgatorio_spec.campaign import chosen, judge_claims, usual_processes


@click.command("model", epilog="Exit status: 0 all hold, 1 violated, 2 wrong usage, 3 unknown.")
@click.argument("claims", nargs=-1, metavar="[CLAIM]...")
@click.option("--deep", is_flag=True, help="Larger bounds as well (several minutes more).")
@click.option("--stories", is_flag=True, help="Print the shortest path of every mistake, a column a thread.")
@click.option("--processes", type=click.IntRange(1, 64), default=usual_processes, help="Searches at once.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
def command(claims: tuple[str, ...], deep: bool, stories: bool, processes: int, as_json: bool) -> None:
    """Search the models of the completion protocol and of the wheel completely, within the bounds shown.

    Every claim stands beside known mistakes (twins) that must fail in the same model; a claim whose twin does
    not fail counts as UNKNOWN. Name claims by id to run only those.

    \b
    purgatorio model
    purgatorio model C1 --stories      # KAFKA-6653, as a table
    purgatorio model --deep --json
    """
    try:
        names = chosen(deep, claims)
    except KeyError as unknown:
        raise click.UsageError(
            f"no claim {unknown.args[0]!r}; there are: {', '.join(chosen(True))}"
        ) from None
    start = time.perf_counter()
    results = collect(judge_claims(names, processes), len(names), "searching", quiet=as_json)
    results.sort(key=lambda result: names.index(result.id))
    finish(results, len(names), as_json, stories, time.perf_counter() - start)
