"""The command `purgatorio model`: checks every state of small models."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import click

from purgatorio_pipeline.command.claim_table import show_claims
from purgatorio_pipeline.command.options import argument, flag, json_flag, option, taking
from purgatorio_pipeline.stopping import begin_worker
from purgatorio_spec.campaign import chosen, judge_claim
from purgatorio_spec.claim_result import ClaimResult

USUAL_PROCESSES = min(2, os.cpu_count() or 1)
"""The searches share memory bandwidth: more than two gain little."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    claims: tuple[str, ...] = argument(nargs=-1, metavar="[CLAIM]...")
    deep: bool = flag("Check larger bounds too (several minutes more).")
    stories: bool = flag("Print the shortest path of every mistake, with a column for each thread.")
    processes: int = option(
        "Number of searches at a time.", type=click.IntRange(1, 64), default=USUAL_PROCESSES
    )
    as_json: bool = json_flag()


@taking(ModelOptions, "model", epilog="Exit status: 0 all hold, 1 violated, 2 wrong usage, 3 unknown.")
def command(asked: ModelOptions) -> None:
    """Check every state of small models of the purgatory and of the wheel, within the printed bounds.

    A claim is a property of a model. Each claim has negative controls: models with a known mistake that must break the
    claim. If a negative control does not fail, the claim is UNKNOWN. CLAIM is the id of a claim. Default: all claims.

    \b
      purgatorio model
      purgatorio model C1 --stories      # KAFKA-6653, as a table
      purgatorio model --deep --json
    """
    try:
        names = chosen(asked.deep, asked.claims)
    except KeyError as unknown:
        raise click.UsageError(
            f"no claim {unknown.args[0]!r}; there are: {', '.join(chosen(True))}"
        ) from None
    searches = judge_claims(names, asked.processes)
    show_claims(searches, names, "searching", as_json=asked.as_json, stories=asked.stories)


def judge_claims(names: list[str], processes: int) -> Iterator[ClaimResult]:
    """The results, in the order in which the searches end. The last claims start first, because they are the
    largest."""
    if processes <= 1:
        yield from (judge_claim(name) for name in names)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(names)), spawn, begin_worker) as pool:
        pending = [pool.submit(judge_claim, name) for name in reversed(names)]
        try:
            for done in as_completed(pending):
                yield done.result()
        except BaseException:
            # Searches would run to their end, but their results are not needed any more.
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
