"""The command `purgatorio prove`: proves the lemmas (z3), and checks the contracts (CrossHair)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import click

from purgatorio_pipeline.command.claim_table import show_claims
from purgatorio_pipeline.command.options import flag, json_flag, number, option, taking
from purgatorio_spec.campaign import judge_contract, judge_lemma
from purgatorio_spec.claim_result import ClaimResult
from purgatorio_spec.proof.contracts import CONTRACTS
from purgatorio_spec.proof.lemmas import LEMMAS


@dataclass(frozen=True, slots=True)
class ProveOptions:
    budget_s: float | None = option(
        "CPU seconds for each condition. [10; deep 60]", type=click.FloatRange(min=0.1)
    )
    deep: bool = flag("Use more time for the contracts.")
    stories: bool = flag("Print the integers that refute every mistake.")
    workers: int = number("Number of contract searches at a time.", 2, least=1, most=64)
    as_json: bool = json_flag()


@taking(ProveOptions, "prove", epilog="Exit status: 0 all proved, 1 refuted, 2 wrong usage, 3 unknown.")
def command(asked: ProveOptions) -> None:
    """Prove the arithmetic of the wheels for all integers (z3), and search for inputs that break a contract
    (CrossHair).

    The proofs are not about threads. For threads, use `purgatorio model` and `purgatorio explore`.

    \b
      purgatorio prove
      purgatorio prove --stories --json
    """
    budget = asked.budget_s if asked.budget_s is not None else (60.0 if asked.deep else 10.0)
    ids = [*(one.id for one in LEMMAS), *(f"X-{one.function}" for one in CONTRACTS)]
    proofs = prove_all(budget, asked.workers)
    try:
        show_claims(proofs, ids, "proving", as_json=asked.as_json, stories=asked.stories)
    except FileNotFoundError as missing:
        raise click.UsageError(f"the contracts need the reference's source: {missing}") from None


def prove_all(budget_s: float, workers: int) -> Iterator[ClaimResult]:
    """Prove the lemmas, one after another. Then check the contracts, each in its own process."""
    yield from (judge_lemma(lemma) for lemma in LEMMAS)
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda contract: judge_contract(contract, budget_s), CONTRACTS)
