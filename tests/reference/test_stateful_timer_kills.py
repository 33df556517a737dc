"""The stateful tests of timers are worth what they kill: each known bug, planted, must be found in the CI profile.

Run without the checks of the structure (`check()`): the contract alone must find it, for a foreign timer has no
`check()`.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from timer_machine import TIMERS, TimerMachine, machine_for
from timer_mutants import INTERVAL_INCLUSIVE, TIMER_MUTANTS, Mutant
from timer_programs import Program, aligned_programs, run_program

FIND_ONLY = settings(settings.get_profile("ci"), phases=[Phase.generate], print_blob=False, max_examples=400)
"""As the CI profile (derandomised), but not shrunk: a kill is a kill. The search ends at the first failure."""

_FACTORIES = dict(TIMERS)


def blind_machine(timer: str) -> type[TimerMachine]:
    """The machine, with a timer that does not check itself."""
    factory = _FACTORIES[timer]

    def unchecked(*arguments: Any) -> object:
        made: Any = factory(*arguments)

        class Blind:
            add, cancel = made.add, made.cancel
            advance_clock, size = made.advance_clock, made.size

            def check(self) -> None:
                """Sees nothing."""

        return Blind()

    return machine_for((f"Blind{timer}", cast("Any", unchecked)))


@pytest.mark.parametrize("mutant", TIMER_MUTANTS, ids=str)
def test_killed_by_the_contract_alone(mutant: Mutant) -> None:
    """The twin of `test_stateful_timers`, which must pass on the same machine without the bug."""
    machine = blind_machine(mutant.timer)
    with mutant.planted(), pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=FIND_ONLY)


def test_interval_inclusive_is_killed_by_aligned_programs() -> None:
    """#66 needs three tasks on level ends, with steps of a revolution between: the machine's wide choice of rules does
    not hit that in 400 examples, and straight programs on level ends do."""

    @settings(FIND_ONLY, max_examples=1_500)
    @given(program=aligned_programs())
    def search(program: Program) -> None:
        run_program(program)

    with INTERVAL_INCLUSIVE.planted(), pytest.raises(AssertionError):
        search()
