"""Checks the claims of `purgatorio model` and `purgatorio prove` with their negative controls. Lists the known bugs
that the claims detect."""

from dataclasses import dataclass
from functools import cache

from purgatorio_spec.claim_result import ClaimResult, TwinResult
from purgatorio_spec.known_bugs import bug_name, bug_number
from purgatorio_spec.model.claims import Claim, Twin, all_claims
from purgatorio_spec.proof.contracts import CONTRACTS, Contract, search_contract, search_twin
from purgatorio_spec.proof.lemmas import LEMMAS, Lemma
from purgatorio_spec.proof.solver import follows, satisfiable
from purgatorio_spec.verdict import Verdict

LEMMA_BOUND = "all integers, symbolic tick and size"


@dataclass(frozen=True, slots=True, order=True)
class ClaimKill:
    """A known bug (its number), and the layer (`model` or `proof`) and the claim that detect it."""

    number: int
    layer: str
    claim: str


def kills() -> tuple[ClaimKill, ...]:
    """All detected bugs, by number. Several claims may detect one bug. The list is made from the claims, so a removed
    or renamed negative control is not in it."""
    found = [
        (twin.number, "model", claim.id) for claim in all_claims() for twin in claim.twins if not claim.deep
    ]
    found += [(bug_number(lemma.twin), "proof", lemma.id) for lemma in LEMMAS]
    found += [(bug_number(contract.twin), "proof", f"X-{contract.function}") for contract in CONTRACTS]
    return tuple(sorted({ClaimKill(number, *rest) for number, *rest in found if number is not None}))


@cache
def claims_by_id() -> dict[str, Claim]:
    claims = {claim.id: claim for claim in all_claims()}
    if len(claims) != len(all_claims()):
        raise ValueError("two claims share an id")
    return claims


def chosen(deep: bool, wanted: tuple[str, ...] = ()) -> list[str]:
    """The ids of the claims to check: those of `wanted`. If empty: all claims (without `deep`, only the small ones).
    Raises KeyError for an unknown id."""
    known = claims_by_id()
    if wanted:
        return [known[name].id for name in wanted]
    return [claim.id for claim in known.values() if deep or not claim.deep]


def judge_claim(name: str) -> ClaimResult:
    claim = claims_by_id()[name]
    answer = claim.examine()
    twins = tuple(_judge_twin(twin) for twin in claim.twins)
    return ClaimResult(
        claim.id, claim.statement, answer.bound, answer.verdict, answer.states, answer.seconds, twins, answer.story
    )  # fmt: skip


def _judge_twin(twin: Twin) -> TwinResult:
    answer = twin.examine()
    verdict = answer.finding(twin.property).verdict
    shown = answer.story if verdict is Verdict.VIOLATED else ""
    return TwinResult(twin.name, twin.number, twin.property, verdict, shown, answer.states, answer.seconds)


def judge_lemma(lemma: Lemma) -> ClaimResult:
    """Prove the lemma, test that its hypotheses can be true, and refute its negative control."""
    question, mistaken = lemma.question(False), lemma.question(True)
    proof = follows(question.hypotheses, question.goal)
    verdict = proof.verdict
    if verdict is Verdict.PASS and not satisfiable((*question.hypotheses, question.goal)):
        verdict = Verdict.UNKNOWN  # vacuous, because the hypotheses contradict each other
    refuted = follows(mistaken.hypotheses, mistaken.goal)
    shown = _integers(refuted.counterexample)
    twin = _proof_twin(lemma.twin, lemma.statement, refuted.verdict, shown, refuted.seconds)
    shown = _integers(proof.counterexample)
    return ClaimResult(lemma.id, lemma.statement, LEMMA_BOUND, verdict, 0, proof.seconds, (twin,), shown)


def _proof_twin(bug: int | str, property_: str, verdict: Verdict, shown: str, seconds: float) -> TwinResult:
    return TwinResult(bug_name(bug), bug_number(bug), property_, verdict, shown, seconds=seconds)


def _integers(values: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def judge_contract(contract: Contract, budget_s: float) -> ClaimResult:
    found, wrong = search_contract(contract, budget_s), search_twin(contract, budget_s)
    conditions = found.confirmed + found.open
    named = f"contract of {contract.function}"
    twin = _proof_twin(contract.twin, named, wrong.verdict, wrong.counterexample, wrong.seconds)
    return ClaimResult(
        f"X-{contract.function}",
        f"{named}: {found.confirmed} of {conditions} conditions confirmed",
        f"the contract's own pre: lines; {budget_s:g} s a condition",
        found.verdict,
        0,
        found.seconds,
        (twin,),
        found.counterexample,
    )
