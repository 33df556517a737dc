"""Runs the lemmas and the contracts, and hands each result over as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from purgatorio_spec.claim_result import ClaimResult, TwinResult
from purgatorio_spec.known_bugs import bug_name, bug_number
from purgatorio_spec.proof.contracts import CONTRACTS, Contract, search_contract, search_twin
from purgatorio_spec.proof.lemmas import LEMMAS, Lemma
from purgatorio_spec.proof.solver import follows, satisfiable
from purgatorio_spec.verdict import Verdict

LEMMA_BOUND = "all integers, symbolic tick and size"


def judge_lemma(lemma: Lemma) -> ClaimResult:
    """Prove the lemma, show that its hypotheses can hold at all, and refute its twin."""
    question, twin = lemma.question(), lemma.twin_question()
    proof = follows(question.hypotheses, question.goal)
    verdict = proof.verdict
    if verdict is Verdict.PASS and not satisfiable((*question.hypotheses, question.goal)):
        verdict = Verdict.UNKNOWN  # vacuous: the hypotheses contradict each other
    refuted = follows(twin.hypotheses, twin.goal)
    return ClaimResult(
        lemma.id,
        lemma.statement,
        LEMMA_BOUND,
        verdict,
        0,
        proof.seconds,
        (
            TwinResult(
                bug_name(lemma.twin),
                bug_number(lemma.twin),
                lemma.statement,
                refuted.verdict,
                _integers(refuted.counterexample),
                seconds=refuted.seconds,
            ),
        ),
        _integers(proof.counterexample),
    )


def _integers(values: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def judge_contract(contract: Contract, budget_s: float) -> ClaimResult:
    """Search the function's contract and the contract of its seeded bug."""
    searched = search_contract(contract, budget_s)
    twin = search_twin(contract, budget_s)
    conditions = searched.confirmed + searched.open
    return ClaimResult(
        f"X-{contract.function}",
        f"contract of {contract.function}: {searched.confirmed} of {conditions} conditions confirmed",
        f"the contract's own pre: lines; {budget_s:g} s a condition",
        searched.verdict,
        0,
        searched.seconds,
        (
            TwinResult(
                bug_name(contract.twin),
                bug_number(contract.twin),
                f"contract of {contract.function}",
                twin.verdict,
                twin.counterexample,
                seconds=twin.seconds,
            ),
        ),
        searched.counterexample,
    )


def prove_all(budget_s: float, workers: int) -> Iterator[ClaimResult]:
    """The lemmas first, one after the other, then the contracts, each in a process of its own."""
    yield from (judge_lemma(lemma) for lemma in LEMMAS)
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda contract: judge_contract(contract, budget_s), CONTRACTS)


def count_all() -> int:
    """How many results `prove_all` yields."""
    return len(LEMMAS) + len(CONTRACTS)
