"""The wheel model beside the set of deadlines: the specification alone, and the model's own arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio_spec.model.checker import check
from purgatorio_spec.model.wheel import Flaw, World, initial, steps
from purgatorio_spec.model.wheel_refinement import CASCADES, IN_ORDER, REFINES, refinement
from purgatorio_spec.verdict import Verdict


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_walks_of_larger_wheels_refine_the_set(data: st.DataObject) -> None:
    """Beyond the complete bound: random worlds, random walks, every step judged."""
    tick, size = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    delays = tuple(sorted(data.draw(st.sets(st.integers(0, tick * size**3), min_size=2, max_size=5))))
    world = World(tick, size, data.draw(st.integers(0, 50)), delays, tasks=8, ticks=30)
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
    world = World(1, 2, 1, (0, 1, 2, 3, 4), tasks=2, ticks=6, cancels=False, flaw=Flaw.INTERVAL_INCLUSIVE)
    two = check(refinement(world)).finding(REFINES).verdict
    three = check(refinement(World(1, 2, 1, (0, 1, 2, 3, 4), 3, 6, False, Flaw.INTERVAL_INCLUSIVE)))
    assert three.finding(REFINES).verdict is Verdict.VIOLATED
    assert two is Verdict.PASS


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
    world = World(tick=1, size=2, start=1, delays=(0, 1, 2, 3, 4), tasks=2, ticks=6)
    assert check(refinement(world)).finding(wanted).verdict is Verdict.PASS
    assert check(refinement(replace(world, flaw=flaw))).finding(wanted).verdict is Verdict.VIOLATED
