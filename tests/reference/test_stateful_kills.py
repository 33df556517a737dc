"""The stateful tests are worth what they kill: every known bug that shows without a second thread, in the CI profile.

The timers' hunts do without the checks of the structure (`check()`): the contract alone must find it, for a foreign
timer has no `check()`. The purgatories' do without the clauses over the trace. The twins, which must pass with as many
examples and no bug, are `test_stateful_timers` and `test_stateful_purgatory`.

What of the list of bugs is not here: the mutants that need two threads (the explorer's), those of the broker (which has
stateful tests of its own), and `NOT_APPLICABLE`, whose mechanism this reference does not have.
"""

import logging

import pytest

from mutants.kill_matrix.layers import SEEDS, ci_hunt
from mutants.reference import MUTANTS
from mutants.reference.mutant import Mutant
from mutants.reference.variants import VARIANTS
from reference.stateful.registry import SEARCHES, searches_for
from reference.stateful.search import MachineSearch

OF_THE_REAPER = 34
"""It is half in the reaper's thread, which random programs play."""
SEQUENTIAL = [
    mutant
    for mutant in MUTANTS.values()
    if not mutant.interleaving
    and mutant.number != OF_THE_REAPER
    and searches_for(mutant.patches, mutant.dialect)
]
IN_A_WINDOW = [MUTANTS[41]]
"""A race, but the machine lets another thread in between two keys of a registration."""

RARE = {"22-on-expiration-unconditional-pending-flag", "66-interval-inclusive-pending-flag"}
"""Met after some hundred examples, from another seed than the first."""


def name_of(mutant: Mutant) -> str:
    return f"{mutant.number}-{mutant.name}-{mutant.dialect}"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A mutant that ends the reaper's thread says so in the log."""
    caplog.set_level(logging.CRITICAL, "purgatorio")


def hunt(search: MachineSearch, mutant: Mutant, seed: int | None = None) -> bool:
    with mutant.applied():
        return ci_hunt(search, seed) is not None


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name_of(mutant), marks=[pytest.mark.slow] * (name_of(mutant) in RARE))
        for mutant in (*SEQUENTIAL, *IN_A_WINDOW, *VARIANTS)
    ],
)
def test_killed(mutant: Mutant) -> None:
    """By one of the searches that run the patched code. What needs some hundred examples is found from another seed."""
    assert any(
        hunt(search, mutant, seed)
        for seed in SEEDS
        for search in searches_for(mutant.patches, mutant.dialect)
    )


@pytest.mark.parametrize("timer", ["heap-timer", "hashed-wheel"])
def test_cancel_flag_only_is_killed_in_every_timer(timer: str) -> None:
    """#83 is in what the timers share; the catalogue looks for it in the hierarchical wheel."""
    assert hunt(SEARCHES[timer], MUTANTS[83])


def test_every_sequential_mutant_has_a_search() -> None:
    """But for those of the broker."""
    without = [m for m in MUTANTS.values() if not m.interleaving and not searches_for(m.patches, m.dialect)]
    owners = {getattr(patch.owner, "__module__", str(patch.owner)) for m in without for patch in m.patches}
    assert all("purgatorio_broker" in owner for owner in owners), owners
