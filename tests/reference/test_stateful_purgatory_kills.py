"""Each known sequential bug of a purgatory, planted, must be found by the stateful test in the CI profile.

Without the clauses over the trace: the model alone finds them, and in a tenth of the time.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from purgatorio import LOCKED, PENDING_FLAG
from purgatory_machine import PurgatoryMachine
from purgatory_mutants import PURGATORY_MUTANTS, PurgatoryMutant

FIND_ONLY = settings(settings.get_profile("ci"), phases=[Phase.generate], print_blob=False, max_examples=300)
"""As the CI profile (derandomised), but not shrunk: a kill is a kill. The search ends at the first failure."""

MACHINES = {
    dialect.name: type("KillMachine", (PurgatoryMachine,), {"dialect": dialect, "judged": False})
    for dialect in (LOCKED, PENDING_FLAG)
}


@pytest.mark.parametrize("mutant", PURGATORY_MUTANTS, ids=str)
def test_killed(mutant: PurgatoryMutant) -> None:
    """The twin of `test_stateful_purgatory`, which must pass on the same machine without the bug."""
    with mutant.planted(), pytest.raises(AssertionError):
        run_state_machine_as_test(MACHINES[mutant.dialect], settings=FIND_ONLY)
