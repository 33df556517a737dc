"""The claims of `purgatorio model`: all hold, every negative control fails, and docs/measured/models.md has
the row of each; the large ones only with --slow."""

from __future__ import annotations

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


def assert_holds(name: str) -> None:
    result = judge_claim(name)
    assert result.verdict is Verdict.PASS, result.shown
    assert result.twins
    for twin in result.twins:
        assert twin.verdict is Verdict.VIOLATED, f"{twin.name} does not break {twin.property!r}"
        assert twin.shown
    assert result.states > 0
    assert result.bound
    assert claim_row(result) in part(PAGE.read_text(), "claims").splitlines()


@pytest.mark.parametrize("name", QUICK)
def test_a_claim_holds_and_its_twins_fail(name: str) -> None:
    """The whole point: complete within its bound, and able to fail."""
    assert_holds(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in chosen(deep=True) if name not in QUICK])
def test_a_large_claim_holds_and_its_twins_fail(name: str) -> None:
    """The same for the large wheels and the deep set."""
    assert_holds(name)


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
