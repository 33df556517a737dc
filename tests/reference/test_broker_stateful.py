"""The broker and a group under arbitrary sequences of events (see the machines)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from reference.broker_machine import BrokerMachine
from reference.group_machine import GroupMachine

MACHINES = [BrokerMachine, GroupMachine]


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int, *, fixed: bool) -> None:
    """Run the machine; `fixed`: the same examples each time."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=fixed,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("machine", MACHINES)
def test_arbitrary_days(machine: type[RuleBasedStateMachine]) -> None:
    """Answered exactly once and in time, nothing acknowledged or shown too early, nobody expelled who was in time."""
    run(machine, 150, 30, fixed=True)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_many_arbitrary_days(machine: type[RuleBasedStateMachine]) -> None:
    """The same, longer and not always the same."""
    run(machine, 400, 50, fixed=False)
