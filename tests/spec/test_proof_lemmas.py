"""The lemmas are proved, their negative controls are refuted, and the layer over z3 gives correct answers."""

from __future__ import annotations

import pytest

from purgatorio_spec.campaign import judge_lemma
from purgatorio_spec.proof.lemmas import LEMMAS, Lemma
from purgatorio_spec.proof.solver import choose, follows, integers, satisfiable
from purgatorio_spec.verdict import Verdict


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: str(lemma.id))
def test_a_lemma_is_proved_and_its_twin_refuted(lemma: Lemma) -> None:
    """For all integers; the twin's counterexample is a set of integers to read."""
    result = judge_lemma(lemma)
    assert result.verdict is Verdict.PASS
    assert result.twin is Verdict.VIOLATED
    assert "=" in result.twins[0].shown
    assert result.judged is Verdict.PASS


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: str(lemma.id))
def test_a_lemma_is_not_vacuous(lemma: Lemma) -> None:
    """Hypotheses that cannot hold together would prove anything."""
    question = lemma.question(False)
    assert satisfiable((*question.hypotheses, question.goal))


def test_ids_are_unique() -> None:
    """Kills and reports name lemmas by id."""
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
