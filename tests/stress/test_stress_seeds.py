"""A seed determines the plan."""

from __future__ import annotations

import random

from purgatorio_stress.harness.batch import rng_of
from purgatorio_stress.harness.campaign import StressPlan
from purgatorio_stress.harness.noise import YieldPlan
from purgatorio_stress.harness.settings import SWITCH_INTERVALS_S, drawn
from purgatorio_stress.mutant.patch import Bug


def test_a_seed_repeats_the_settings_of_every_batch() -> None:
    """A report names seed and batch; both must lead to the same settings, whatever ran before."""
    first = [drawn(rng_of(3, "two-events/locked", n), 2, 8, False, True) for n in range(30)]
    again = [drawn(rng_of(3, "two-events/locked", n), 2, 8, False, True) for n in reversed(range(30))]
    assert first == again[::-1]
    assert first != [drawn(rng_of(4, "two-events/locked", n), 2, 8, False, True) for n in range(30)]


def test_settings_sweep_through_everything() -> None:
    """Every switch interval, one processor and all, one crew and many; never more threads than allowed."""
    batches = [drawn(random.Random(n), 2, 8, False, True) for n in range(200)]
    assert {one.switch_interval_s for one in batches} == set(SWITCH_INTERVALS_S)
    assert {one.one_processor for one in batches} == {False, True}
    assert {one.crews for one in batches} == {1, 2, 4}
    assert {drawn(random.Random(n), 4, 2, False, False).crews for n in range(50)} == {1}


def test_a_seed_repeats_the_yields_of_every_round() -> None:
    """The calls at which a thread yields come from its seed alone."""

    def yields(seed: str) -> list[int]:
        lane, taken = YieldPlan(seed, most=2), []
        for _ in range(50):
            lane.begin()
            for call in range(20):
                before = lane.yields
                lane.pass_by()
                if lane.yields > before:
                    taken.append(call)
        return taken

    assert yields("7/a") == yields("7/a")
    assert yields("7/a") != yields("8/a")


def test_the_printed_command_has_every_option_that_is_not_default() -> None:
    """Pasted, it runs the same batch: everything that its settings were drawn from is in it."""
    plan = StressPlan([], rounds=64, threads=4, seed=9, yields=True, record_every=1, bug=Bug("my bug.py"))
    assert plan.command("two-events/pending-flag", 3) == (
        "purgatorio stress reference --scenario two-events/pending-flag --seed 9 --batch 3 --rounds 64 --threads 4 "
        "--yields always --record-every 1 --mutant 'my bug.py'"
    )
    assert StressPlan([], seed=2).command("a/locked", 0) == (
        "purgatorio stress reference --scenario a/locked --seed 2 --batch 0"
    )
