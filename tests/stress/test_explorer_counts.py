"""The searches are complete: exact counts of interleavings and classes, and the classic bugs."""

from math import factorial

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer import bounded
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.sampling import explore_pct, explore_random
from stress import small_programs as programs
from stress.small_programs import every_interleaving

ALL = Limits(violations=0)
SIZES = ((2, 1), (3, 1), (2, 2), (3, 2), (2, 3))


@pytest.mark.parametrize(("threads", "variables"), SIZES)
def test_every_interleaving_once(threads: int, variables: int) -> None:
    """Without reduction the number of runs is the multinomial; the start of a thread is a step too."""
    steps = variables + 1
    expected = factorial(threads * steps) // factorial(steps) ** threads
    assert len(list(every_interleaving(programs.Small(programs.writers(threads, variables))))) == expected


@pytest.mark.parametrize(("threads", "variables"), SIZES)
def test_reduction_runs_each_class_once(threads: int, variables: int) -> None:
    """Writers of one variable have threads! classes; of independent variables it is the power. None is run twice."""
    result = explore_dpor(programs.Small(programs.writers(threads, variables)), ALL)
    assert result.complete
    assert result.schedules - result.redundant == factorial(threads) ** variables
    assert result.redundant == 0


CLASSIC = {
    "lost update": (programs.lost_update, programs.counted),
    "a notice between look and sleep": (programs.missed_signal, programs.kept_signal),
    "peterson": (programs.peterson(flag_first=False), programs.peterson(flag_first=True)),
}
"""By bug the program and its twin."""


@pytest.mark.parametrize("search", [explore_dpor, explore_bounded])
@pytest.mark.parametrize("bug", CLASSIC)
def test_a_classic_bug_is_found_and_its_twin_passes(bug: str, search: type) -> None:
    broken, sound = CLASSIC[bug]
    assert search(programs.Small(broken), Limits()).verdict is Verdict.VIOLATED
    assert search(programs.Small(sound), Limits()).verdict is Verdict.PASS


def test_lost_update_is_found_by_samples_and_by_every_interleaving() -> None:
    for sample in (explore_random, explore_pct):
        first, again = (sample(programs.Small(programs.lost_update), Limits(), seed=7) for _ in range(2))
        assert first.found == again.found, "a seed gives the same runs again"
        assert sample(programs.Small(programs.lost_update), Limits()).verdict is Verdict.VIOLATED
    assert any(every_interleaving(programs.Small(programs.lost_update)))
    assert not any(every_interleaving(programs.Small(programs.counted)))


def test_abba_has_three_classes_and_names_the_holders() -> None:
    """One class for each order, and the deadlock. Its text names the holder of each lock."""
    result = explore_dpor(programs.Small(programs.abba), ALL)
    assert result.schedules == 3
    (found,) = result.found
    assert found.broken[0].clause == "P3"
    assert "T1 holds a and waits for b (held by T2)" in found.broken[0].seen
    assert "T2 holds b and waits for a (held by T1)" in found.broken[0].seen


def test_bounded_buffer() -> None:
    """`if` for `while` takes from an empty buffer, with four threads."""
    good = explore_bounded(programs.Small(programs.bounded_buffer(1)), Limits(preemptions=1))
    assert good.verdict is Verdict.PASS
    assert explore_bounded(programs.Small(programs.bounded_buffer(0)), Limits()).verdict is Verdict.VIOLATED
    assert explore_dpor(programs.Small(programs.bounded_buffer(0)), Limits()).verdict is Verdict.VIOLATED


def test_fewest_preemptions_come_first() -> None:
    """The first counterexample of the bounded search has one preemption: the lost update needs no more."""
    result = explore_bounded(programs.Small(programs.lost_update), Limits())
    assert result.found[0].preemptions == 1


def test_what_lies_beyond_the_bound_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those schedules are never run: of a large scenario they were gigabytes."""
    costs: list[int] = []
    kept = bounded._Todo

    def noted(chosen: list[int], depth: int, index: int, cost: int) -> bounded._Todo:
        costs.append(cost)
        return kept(chosen, depth, index, cost)

    monkeypatch.setattr(bounded, "_Todo", noted)
    explore_bounded(programs.Small(programs.writers(3, 2)), Limits(preemptions=1, violations=0))
    assert set(costs) == {0, 1}


def test_a_limit_is_never_a_pass() -> None:
    """A search that stops short, and a sample, say UNKNOWN and which limit."""
    result = explore_dpor(programs.Small(programs.writers(3, 2)), Limits(schedules=5))
    assert (result.verdict, result.limit) == (Verdict.UNKNOWN, "5 schedules")
    sample = explore_random(programs.Small(programs.counted), Limits(schedules=20))
    assert (sample.verdict, sample.limit) == (Verdict.UNKNOWN, "20 schedules")
