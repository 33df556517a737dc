"""The model of the wheel, compared with the set of deadlines."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio_spec.model.checker import check
from purgatorio_spec.model.wheel import Flaw, WheelCase, initial, steps
from purgatorio_spec.model.wheel_refinement import CASCADES, IN_ORDER, REFINES, abstract, refinement
from purgatorio_spec.oracle.timer_set import Deadlines, added, due_at, overdue, removed
from purgatorio_spec.verdict import Verdict

TICKS = st.integers(1, 1000)
TIMES = st.integers(-(10**12), 10**12)


@given(TICKS, TIMES)
@settings(max_examples=200, deadline=None)
def test_a_task_is_due_less_than_a_tick_before_its_deadline(tick: int, deadline: int) -> None:
    """At most T - 1 early (T1), never late, also below zero."""
    assert 0 <= deadline - due_at(deadline, tick) < tick


def test_the_set_of_deadlines_is_a_multiset() -> None:
    """Two tasks may share a deadline; removing one leaves the other."""
    state = added(added(Deadlines(0, ()), 5), 5)
    assert removed(state, 5).pending == (5,)
    assert not overdue(state, 1)
    assert overdue(state._replace(now=5), 1) == (5, 5)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_walks_of_larger_wheels_refine_the_set(data: st.DataObject) -> None:
    """Beyond the complete bound: random worlds, random walks, every step judged."""
    tick, size = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    delays = tuple(sorted(data.draw(st.sets(st.integers(0, tick * size**3), min_size=2, max_size=5))))
    world = WheelCase(tick, size, data.draw(st.integers(0, 50)), delays, tasks=8, ticks=30)
    model = refinement(world)
    state = initial(world)
    for _ in range(60):
        found = steps(world, state)
        action, after = found[data.draw(st.integers(0, len(found) - 1))]
        for name, holds in model.always_step.items():
            assert holds(state, action, after), name
        for name, always in model.always.items():
            assert always(after), name
        state = after


def test_interval_inclusive_needs_three_tasks_to_be_late() -> None:
    """A bound that is too small hides the bug: two tasks pass, three do not."""
    world = WheelCase(1, 2, 1, (0, 1, 2, 3, 4), tasks=2, ticks=6, cancels=False, flaw=Flaw.INTERVAL_INCLUSIVE)
    two = check(refinement(world)).finding(REFINES).verdict
    three = check(refinement(WheelCase(1, 2, 1, (0, 1, 2, 3, 4), 3, 6, False, Flaw.INTERVAL_INCLUSIVE)))
    assert three.finding(REFINES).verdict is Verdict.VIOLATED
    assert two is Verdict.PASS


def test_a_clock_that_stands_still_makes_a_task_circle() -> None:
    """no-overflow-advance beyond the second level: the flushed task goes back to where it came from."""
    world = WheelCase(1, 2, 0, (7,), tasks=1, ticks=8, cancels=False, flaw=Flaw.NO_OVERFLOW_ADVANCE)
    assert check(refinement(world)).finding(CASCADES).verdict is Verdict.VIOLATED


def test_the_abstraction_forgets_only_places() -> None:
    """The abstraction function keeps the time and every deadline."""
    world = WheelCase(2, 2, 3, (5, 9), tasks=1, ticks=2)
    after = steps(world, initial(world))[-1][1]
    assert abstract(after) == Deadlines(3, (12,))


@pytest.mark.parametrize(
    ("clause", "wanted", "flaw"),
    [
        ("T6", IN_ORDER, Flaw.FIRE_ON_FLUSH),
        ("T6", IN_ORDER, Flaw.ADVANCE_TO_NOW),
        ("T7", CASCADES, Flaw.FIRST_ONLY),
        ("T7", CASCADES, Flaw.NO_OVERFLOW_ADVANCE),
    ],
)
def test_order_within_a_drain_and_cascades_can_be_broken(clause: str, wanted: str, flaw: Flaw) -> None:
    """The twins of the claims are asked for other properties: these two, and both ways, each wheel breaks alone."""
    assert wanted.startswith(clause)
    world = WheelCase(tick=1, size=2, start=1, delays=(0, 1, 2, 3, 4), tasks=2, ticks=6)
    assert check(refinement(world)).finding(wanted).verdict is Verdict.PASS
    assert check(refinement(replace(world, flaw=flaw))).finding(wanted).verdict is Verdict.VIOLATED
