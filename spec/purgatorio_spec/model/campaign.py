"""Runs the model claims on a few processes and hands each result over as it comes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache

from purgatorio_spec.claim_result import ClaimResult, TwinResult
from purgatorio_spec.model.claims import Claim, Twin, all_claims
from purgatorio_spec.verdict import Verdict


@cache
def claims_by_id() -> dict[str, Claim]:
    """Every claim under its id. ValueError if two share one."""
    claims = {claim.id: claim for claim in all_claims()}
    if len(claims) != len(all_claims()):
        raise ValueError("two claims share an id")
    return claims


def chosen(deep: bool, wanted: tuple[str, ...] = ()) -> list[str]:
    """The ids to run: those named, else all that are not deep, or with `deep` all. KeyError for an unknown id."""
    known = claims_by_id()
    if wanted:
        return [known[name].id for name in wanted]
    return [claim.id for claim in known.values() if deep or not claim.deep]


def judge_claim(name: str) -> ClaimResult:
    """Search one claim and its twins, here and now."""
    claim = claims_by_id()[name]
    examined = claim.examine()
    answer = examined.answer
    return ClaimResult(
        claim.id,
        claim.statement,
        answer.bound,
        answer.verdict,
        answer.states,
        answer.seconds,
        tuple(_judge_twin(twin) for twin in claim.twins),
        examined.story,
    )


def _judge_twin(twin: Twin) -> TwinResult:
    examined = twin.examine()
    answer = examined.answer
    verdict = answer.finding(twin.property).verdict
    shown = examined.story if verdict is Verdict.VIOLATED else ""
    return TwinResult(twin.name, twin.number, twin.property, verdict, shown, answer.states, answer.seconds)


def judge_claims(names: list[str], processes: int) -> Iterator[ClaimResult]:
    """Results in the order they end; the last claims are the largest, so they start first."""
    if processes <= 1:
        yield from (judge_claim(name) for name in names)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(names)), mp_context=spawn) as pool:
        pending = [pool.submit(judge_claim, name) for name in reversed(names)]
        try:
            for done in as_completed(pending):
                yield done.result()
        finally:
            for left in pending:
                left.cancel()


def usual_processes() -> int:
    """Two, or one on a machine with one core: the searches share memory bandwidth, more gains little."""
    return min(2, os.cpu_count() or 1)
