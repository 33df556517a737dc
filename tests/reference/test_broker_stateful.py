"""The broker and a group under arbitrary sequences of events (see the machines)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from purgatorio.broker.error import Error
from purgatorio.broker.group_coordinator import GroupCoordinator
from purgatorio.broker.partition import EnoughReplicas, Partition
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
        phases=[Phase.generate] if fixed else list(Phase),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("machine", MACHINES)
def test_arbitrary_days(machine: type[RuleBasedStateMachine]) -> None:
    """Answered exactly once and in time, nothing acknowledged or shown too early, nobody expelled who was in time."""
    run(machine, 150, 30, fixed=True)


def test_an_early_acknowledgement_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the broker's day: a producer is answered before its record is replicated."""
    monkeypatch.setattr(Partition, "enough_replicas", lambda self, offset: EnoughReplicas(True, Error.NONE))
    with pytest.raises(AssertionError, match="acknowledged, not replicated"):
        run(BrokerMachine, 150, 30, fixed=True)


def test_a_session_that_nobody_watches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the group's day: no session is ever begun, so that silent members stay for ever."""
    monkeypatch.setattr(GroupCoordinator, "_heard_of", lambda self, group, member, timeout_ms: None)
    with pytest.raises(AssertionError):
        run(GroupMachine, 150, 30, fixed=True)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_many_arbitrary_days(machine: type[RuleBasedStateMachine]) -> None:
    """The same, longer and not always the same."""
    run(machine, 400, 50, fixed=False)
