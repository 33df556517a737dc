"""The claims of `purgatorio model`: all hold, every negative control fails, and docs/measured/models.md has
the row of each; the large ones only with --slow. Known limits of the protocols: missing promises, and the programs that
show them."""

from dataclasses import replace
from pathlib import Path

import pytest

from docs.makers.marked import part
from docs.makers.models import claim_row
from purgatorio_spec.campaign import chosen, claims_by_id, judge_claim
from purgatorio_spec.model import completion as protocol
from purgatorio_spec.model import variant
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.completion import Setup, completion
from purgatorio_spec.verdict import Verdict

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "models.md"
LARGE = {"W0", "W2", "W3", "W4", "W5", "W6"}
QUICK = [name for name in chosen(deep=False) if name not in LARGE]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in chosen(deep=True)],
)
def test_a_claim_holds_and_its_twins_fail(name: str) -> None:
    """The whole point: complete within its bound, and able to fail. The large wheels and the deep set are slow."""
    result = judge_claim(name)
    assert result.verdict is Verdict.PASS, result.shown
    assert result.twins
    for twin in result.twins:
        assert twin.verdict is Verdict.VIOLATED, f"{twin.name} does not break {twin.property!r}"
        assert twin.shown
    assert result.states > 0
    assert result.bound
    assert claim_row(result) in part(PAGE.read_text(), "claims").splitlines()


@pytest.mark.parametrize("dialect", variant.DIALECTS, ids=lambda dialect: str(dialect.name))
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_symmetry_does_not_change_a_verdict(dialect: variant.Variant, threads: int) -> None:
    """The reduced search must agree with the full one, on what holds and on what fails."""
    reduced = check(completion(dialect, Setup(threads, symmetric=True)))
    assert reduced.verdict is Verdict.PASS
    flawed = check(completion(variant.GIVE_UP, Setup(threads, symmetric=True))).finding(protocol.NO_LOST)
    full = check(completion(variant.GIVE_UP, Setup(threads))).finding(protocol.NO_LOST)
    assert flawed.verdict is full.verdict is Verdict.VIOLATED
    assert flawed.trace is not None
    assert full.trace is not None
    assert len(flawed.trace.steps) == len(full.trace.steps)
    assert reduced.states < check(completion(dialect, Setup(threads))).states


def test_retry_once_is_invisible_with_two_threads() -> None:
    """The reason why claims are printed with their bounds: the same bug passes one bound and fails at the next."""
    two = check(completion(variant.RETRY_ONCE, Setup(2))).finding(protocol.NO_LOST)
    assert two.verdict is Verdict.PASS
    three = check(completion(variant.RETRY_ONCE, Setup(3))).finding(protocol.NO_LOST)
    assert three.verdict is Verdict.VIOLATED


def test_the_story_of_the_lost_completion() -> None:
    """KAFKA-6653 step by step: one thread evaluates false, and the other finds the lock held and leaves."""
    twin = claims_by_id()["C1"].twins[0]
    story = twin.examine().story
    assert "try_lock: held by another thread" in story
    assert "try_complete reads the condition: false" in story
    assert "on_complete" not in story


def test_ids_are_unique_and_unknown_ones_are_refused() -> None:
    """An id that names two claims, or none, would make a report unreadable."""
    names = chosen(deep=True)
    assert len(names) == len(set(names))
    with pytest.raises(KeyError):
        chosen(deep=False, wanted=("C0",))


def test_two_checkers_can_spin_in_lockstep_while_the_condition_stays_false() -> None:
    """The pending-flag loop is unbounded even under weak fairness: its end needs the condition or luck.

    One thread holds the lock; the other fails to take it and sets the flag, so the first goes round again, takes
    the lock, and so on. Every thread moves in the loop, so fairness does not forbid it.
    """
    model = completion(variant.PENDING_FLAG, Setup(2, progress=True, never_ready=True))
    spinning = replace(model, possible={}, eventually={"every call returns": model.done})
    finding = check(spinning).finding("every call returns")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert {step.column for step in finding.trace.loop} == {"event-0", "event-1"}
    assert any("set the pending flag" in step.text for step in finding.trace.loop)


def test_the_locked_dialect_has_no_such_loop() -> None:
    """Blocking instead of retrying: every call returns whether or not the condition comes."""
    model = completion(variant.LOCKED, Setup(3, progress=True, never_ready=True))
    ending = replace(model, possible={}, eventually={"every call returns": model.done})
    assert check(ending).finding("every call returns").verdict is Verdict.PASS


def test_the_pending_flag_dialect_does_not_promise_completion_at_return() -> None:
    """A check may return while another thread still has to evaluate for it (the locked form of O4 fails there)."""
    claims_more = replace(variant.PENDING_FLAG, name="pending-flag, asked too much", register_locked=True)
    answer = check(completion(claims_more, Setup(2)))
    assert answer.finding(protocol.AT_RETURN).verdict is Verdict.VIOLATED
    assert answer.finding(protocol.NO_LOST).verdict is Verdict.PASS


def test_try_complete_and_on_complete_may_overlap_before_4_1() -> None:
    """The 2.7 to 4.0 form keeps every promise except O6 (KAFKA-19312)."""
    answer = check(completion(variant.UNLOCKED_FORCE, Setup(2, register=True, timed=True)))
    broken = {finding.property for finding in answer.findings if finding.verdict is Verdict.VIOLATED}
    assert broken == {protocol.NO_OVERLAP}
