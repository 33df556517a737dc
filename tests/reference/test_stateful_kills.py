"""The stateful tests are worth what they kill: every known bug that shows without a second thread, in the CI profile.

The timers' hunts do without the checks of the structure (`check()`): the contract alone must find it, for a foreign
timer has no `check()`. The purgatories' do without the clauses over the trace. The twins, which must pass with as many
examples and no bug, are `test_stateful_timers` and `test_stateful_purgatory`.

What of the list of bugs is not here: the mutants that need two threads (the explorer's), those of the broker (which has
stateful tests of its own), and `NOT_APPLICABLE`, whose mechanism this reference does not have.
"""

from __future__ import annotations

import logging

import pytest
from hypothesis import settings

from purgatorio_stress.mutant.catalogue import MUTANTS, NOT_APPLICABLE
from purgatorio_stress.mutant.patch import Mutant
from purgatorio_stress.stateful.profiles import CI, HUNT
from purgatorio_stress.stateful.registry import SEARCHES, searches_for
from purgatorio_stress.stateful.search import Search
from variant_mutants import CANCEL_FLAG_ONLY, VARIANTS

SEQUENTIAL = [mutant for mutant in MUTANTS.values() if not mutant.interleaving and searches_for(mutant)]
IN_A_WINDOW = [MUTANTS[41]]
"""A race, but the machine lets another thread in between two keys of a registration."""

EASY_OR_RARE = [
    *(
        6,
        7,
        9,
        10,
        13,
        16,
        17,
        21,
        22,
        25,
        27,
        28,
        30,
        31,
        32,
        33,
        34,
        36,
        37,
        39,
        41,
        43,
        45,
        46,
        48,
        52,
        56,
    ),
    *(
        57,
        61,
        63,
        64,
        65,
        66,
        67,
        69,
        70,
        72,
        73,
        74,
        76,
        78,
        79,
        80,
        83,
        84,
        88,
        89,
        91,
        92,
        94,
        96,
        97,
        98,
        100,
    ),
]
"""The rows of the list of bugs that plain tests are said to find, with ease or rarely."""
ALIGNED = "aligned-programs"


def name_of(mutant: Mutant) -> str:
    """For the test's id."""
    return f"{mutant.number}-{mutant.name}-{mutant.dialect}"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A mutant that ends the reaper's thread says so in the log."""
    caplog.set_level(logging.CRITICAL, "purgatorio")


def hunt(search: Search, mutant: Mutant, seed: int | None = None) -> bool:
    """Whether the search finds the mutant, with the examples that the CI profile takes for what must pass."""
    examples = search.examples if search.name == ALIGNED else CI.max_examples
    with mutant.applied():
        profile = settings(HUNT, max_examples=examples, derandomize=seed is None)
        return search.run(profile, seed) is not None


@pytest.mark.parametrize("mutant", [*SEQUENTIAL, *IN_A_WINDOW, *VARIANTS], ids=name_of)
def test_killed(mutant: Mutant) -> None:
    """By one of the searches that run the patched code. What needs some hundred examples is found from another seed."""
    seeds = (None, 1, 2, 3)
    assert any(hunt(search, mutant, seed) for seed in seeds for search in searches_for(mutant))


@pytest.mark.parametrize("timer", ["heap-timer", "hashed-wheel"])
def test_cancel_flag_only_is_killed_in_every_timer(timer: str) -> None:
    """#83 is in what the timers share; the catalogue looks for it in the hierarchical wheel."""
    mutant = Mutant(83, "cancel-flag-only", "asyncio", "", "", (), (CANCEL_FLAG_ONLY,))
    assert hunt(SEARCHES[timer], mutant)


def test_every_sequential_mutant_has_a_search() -> None:
    """But for those of the broker."""
    without = [m for m in MUTANTS.values() if not m.interleaving and not searches_for(m)]
    owners = {getattr(patch.owner, "__module__", str(patch.owner)) for m in without for patch in m.patches}
    assert all("purgatorio_broker" in owner for owner in owners), owners


def test_every_easy_or_rare_bug_is_accounted_for() -> None:
    """Killed here; or a deadlock or lost wake-up that needs a second thread; or the broker's; or without a place."""
    killed = {mutant.number for mutant in (*SEQUENTIAL, *IN_A_WINDOW, *VARIANTS)}
    two_threads = {mutant.number for mutant in MUTANTS.values() if mutant.interleaving}
    of_the_broker = {mutant.number for mutant in MUTANTS.values() if not searches_for(mutant)}
    left = set(EASY_OR_RARE) - killed - two_threads - of_the_broker - set(NOT_APPLICABLE)
    assert not left
    assert len(set(EASY_OR_RARE) & killed) >= 34, "most of them are killed here"
