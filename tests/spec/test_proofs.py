"""The contracts of the reference's arithmetic and the lemmas; their negative controls; the commands that run them."""

import ast
import json

import pytest
from click.testing import CliRunner

from purgatorio_pipeline.command.model import command as model_command
from purgatorio_pipeline.command.prove import command as prove_command
from purgatorio_spec.campaign import judge_contract, judge_lemma
from purgatorio_spec.claim_result import ClaimResult, TwinResult, overall
from purgatorio_spec.proof.contracts import CONTRACTS, kernel_file, read_report
from purgatorio_spec.proof.lemmas import LEMMAS, Lemma
from purgatorio_spec.proof.solver import choose, follows, integers, satisfiable
from purgatorio_spec.verdict import Verdict


def test_a_contract_is_confirmed_and_its_seeded_bug_found() -> None:
    """Through the whole way: file, copy, process, report. `purgatorio prove` runs all."""
    contract = next(one for one in CONTRACTS if one.function == "is_expired")
    result = judge_contract(contract, budget_s=20)
    assert result.verdict is Verdict.PASS, result.shown
    assert result.twin is Verdict.VIOLATED
    assert "is_expired" in result.twins[0].shown


def test_every_function_of_the_kernel_has_a_contract_that_is_searched() -> None:
    """A function that is added without a seeded bug would be believed."""
    tree = ast.parse(kernel_file().read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {contract.function for contract in CONTRACTS} == functions
    source = kernel_file().read_text()
    for contract in CONTRACTS:
        assert source.count(contract.right) == 1, contract.function


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("f.py:1: info: Confirmed over all paths.\n", Verdict.PASS),
        ("f.py:1: info: Confirmed over all paths.\nf.py:2: info: Not confirmed.\n", Verdict.UNKNOWN),
        ("f.py:1: error: false when calling f(0)\n", Verdict.VIOLATED),
        ("", Verdict.UNKNOWN),
    ],
)
def test_silence_and_not_confirmed_are_no_pass(text: str, verdict: Verdict) -> None:
    """CrossHair that crashed, or that ran out of its budget, has shown nothing."""
    assert read_report(text, "", 0.0).verdict is verdict


def result(verdict: Verdict, *twins: Verdict) -> ClaimResult:
    made = tuple(TwinResult("twin", None, "property", twin, "") for twin in twins)
    return ClaimResult("C", "claim", "bound", verdict, 1, 0.0, made)


def test_a_claim_without_a_failing_twin_is_unknown() -> None:
    """A check that cannot fail shows nothing."""
    assert result(Verdict.PASS, Verdict.VIOLATED).judged is Verdict.PASS
    assert result(Verdict.PASS, Verdict.VIOLATED, Verdict.PASS).judged is Verdict.UNKNOWN
    assert result(Verdict.PASS).judged is Verdict.UNKNOWN
    assert result(Verdict.VIOLATED, Verdict.VIOLATED).judged is Verdict.VIOLATED
    assert overall([]) is Verdict.UNKNOWN


def test_model_prints_the_agreed_json() -> None:
    """The shape is public: verdict, and a claim's id, verdict, bound, states, seconds and twin."""
    ran = CliRunner().invoke(model_command, ["C1", "L1", "--processes", "1", "--json"])
    assert ran.exit_code == 0
    report = json.loads(ran.stdout)
    assert report["verdict"] == "PASS"
    assert [claim["id"] for claim in report["claims"]] == ["C1", "L1"]
    for claim in report["claims"]:
        assert {"id", "verdict", "bound", "states", "seconds", "twin"} <= claim.keys()
        assert claim["twin"] == "VIOLATED"


def test_model_shows_the_stories_as_text() -> None:
    ran = CliRunner().invoke(model_command, ["C1", "--processes", "1", "--stories"])
    assert ran.exit_code == 0
    assert "trylock-give-up breaks: O4" in ran.stdout
    assert "try_lock: held by another thread" in ran.stdout


def test_prove_explains_itself() -> None:
    """The help teaches; the whole is run by `test_doc_commands`."""
    ran = CliRunner().invoke(prove_command, ["--help"])
    assert ran.exit_code == 0
    assert "The proofs are not about threads." in ran.output


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: str(lemma.id))
def test_a_lemma_is_proved_and_its_twin_refuted(lemma: Lemma) -> None:
    """For all integers; the twin's counterexample is a set of integers to read."""
    result = judge_lemma(lemma)
    assert result.verdict is Verdict.PASS
    assert result.twin is Verdict.VIOLATED
    assert "=" in result.twins[0].shown
    assert result.judged is Verdict.PASS
    question = lemma.question(False)
    assert satisfiable((*question.hypotheses, question.goal)), "or its hypotheses would prove anything"


def test_ids_are_unique() -> None:
    assert len({lemma.id for lemma in LEMMAS}) == len(LEMMAS)


def test_the_layer_proves_refutes_and_shows_integers() -> None:
    """Each operator of the layer once, with an answer known by hand."""
    x, y = integers("x y")
    assert follows((x < y,), x + 1 <= y).verdict is Verdict.PASS
    refuted = follows((x >= 0, x <= 0), ~x.equals(0))
    assert refuted.verdict is Verdict.VIOLATED
    assert refuted.counterexample == {"x": 0}
    assert follows((), choose(x > y, x, y) >= y).verdict is Verdict.PASS
    assert follows((x * 2 > y,), (y < x * 2) | (x > y)).verdict is Verdict.PASS
    assert follows(((x - y).equals(0).implies(x > 0), x.equals(y)), x > 0).verdict is Verdict.PASS
    assert not satisfiable((x < y, y < x))


def test_what_z3_cannot_decide_in_time_is_unknown() -> None:
    """A time limit is a limit: never PASS. (Fermat's cubes: no small proof, no counterexample.)"""
    x, y, z = integers("x y z")
    facts = (x > 0, y > 0, z > 0)
    answer = follows(facts, ~(x * x * x + y * y * y).equals(z * z * z), limit_ms=200)
    assert answer.verdict is Verdict.UNKNOWN
