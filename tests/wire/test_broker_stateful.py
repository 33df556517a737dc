"""The broker and a group under arbitrary sequences of events (see the machines)."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from mutants.reference.broker_operations import BROKER_MUTANTS
from purgatorio_broker import group_coordinator
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import Error
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.partition import LogEnds, Partition
from purgatorio_broker.share_partition import SharePartition
from purgatorio_stress.mutant.patch import Patch, edited, patched
from wire.broker_machine import BrokerMachine
from wire.broker_scene import P0, P1
from wire.group_machine import GroupMachine
from wire.group_scene import REBALANCE_MS, SESSION_MS, GroupScene
from wire.share_machine import ShareMachine

STORED_BYTES = 7


class WholeMachine(GroupMachine, BrokerMachine):
    """Both machines at once. A commit of the group, under its lock, may complete a fetch: at the end of the member's
    request, or at the time-out that stored it, not later."""

    def make_group(self) -> GroupScene:
        return GroupScene(self.scene.runtime, self.manager.actions, self.store)

    def store(self) -> None:
        """Append to the second partition, if it is led here."""
        if self.leads[P1]:
            self.sizes[P1].append(STORED_BYTES)
        self.manager.append_records(0, 1, {P1: (STORED_BYTES,)}, lambda results: None)

    def request_ends(self) -> None:
        self.manager.run_actions()

    @rule(by_ms=st.sampled_from((1, 4, 20, 50, SESSION_MS - 1, SESSION_MS)))
    def pass_time(self, by_ms: int) -> None:
        GroupMachine.pass_time(self, by_ms)

    def teardown(self) -> None:
        """In the end no request waits, and no member is left."""
        GroupMachine.teardown(self)
        BrokerMachine.teardown(self)


ACKNOWLEDGED_EARLY = Patch(Partition, "enough_replicas", lambda self, offset: Error.NONE)
MACHINES = [BrokerMachine, GroupMachine, WholeMachine, ShareMachine]


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int, *, fixed: bool) -> None:
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
    """No record is acknowledged or shown too early; no member with heartbeats in time is removed."""
    run(machine, 40, 30, fixed=True)


def replicated() -> BrokerMachine:
    """The broker's day by hand: a consumer waits, a record is appended, both followers fetch it; all is looked at."""
    machine = BrokerMachine()
    machine.consume((P0,), 0, 1, 20)
    machine.produce((P0,), -1, [10], 20)
    for follower in (1, 2):
        machine.follow(follower, P0, 0, True, 0)
        machine.every_request_is_answered_once_and_in_time()
        machine.a_fetch_waits_only_for_what_is_not_there()
    machine.delete(P0, 0, 20)
    machine.teardown()
    return machine


def shared() -> ShareMachine:
    """The share group's day by hand: a record is given out, and times out, until it is archived."""
    machine = ShareMachine()
    machine.append(P0, 1)
    for member in ("m", "n", "m"):
        machine.fetch(member, (P0,), 1, 1)
        machine.reads_end()
        machine.fetch("n", (P0,), 1, 1)
        machine.pass_time(40)
        machine.every_fetch_is_answered_once_and_in_time()
        machine.no_lock_without_a_fetch()
    machine.teardown()
    return machine


def stable(members: int) -> GroupMachine:
    """The group's day by hand: so many members, in a stable generation."""
    machine = GroupMachine()
    for _ in range(members):
        machine.come()
    machine.pass_time(SESSION_MS - 1)
    for number in reversed(range(members)):
        machine.sync(number)
    return machine


def heard_of() -> None:
    machine = stable(2)
    machine.pass_time(SESSION_MS - 1)
    machine.beat(0)
    machine.pass_time(20)


def ended_by_time() -> None:
    """A rebalance ends at its time-out without members, and this is stored. A consumer waits for it."""
    machine = WholeMachine()
    machine.shrink(P1, (0,))
    for _ in range(2):
        machine.come()
    machine.pass_time(SESSION_MS - 1)
    for number in (1, 0):
        machine.sync(number)
    machine.leave(1)
    machine.consume((P1,), 0, 1, 1000)
    for _ in range(3):
        machine.pass_time(REBALANCE_MS // 4)
        machine.beat(0)
    assert machine.fetches[0].answers.got == []
    machine.pass_time(REBALANCE_MS // 4)
    machine.a_fetch_waits_only_for_what_is_not_there()
    assert machine.fetches == []


ANSWER = "self._callback(self.results())"
TWINS: list[tuple[Callable[[], object], str, Patch]] = [
    (replicated, "a deletion that a replica has not made",
     Patch(Partition, "low_watermark", lambda self: self._log.start())),
    (replicated, "enough was there", BROKER_MUTANTS[31].patches[0]),
    (replicated, "not replicated yet", Patch(LogEnds, "end", lambda self, isolation: self.log_end)),
    (replicated, "answered twice", edited(DelayedParts, "on_complete", ANSWER, f"{ANSWER}, {ANSWER}")),
    (replicated, "acknowledged, not replicated", ACKNOWLEDGED_EARLY),
    (shared, "given out too often", edited(SharePartition, "_give_back", "done or spent", "done")),
    (shared, "two members have one record",
     Patch(SharePartition, "acquire", lambda self, member, offsets: dict.fromkeys(offsets, 1))),
    (shared, "a lock outlives its answer", BROKER_MUTANTS[98].patches[0]),
    (lambda: stable(1).teardown(), "a silent member is left",
     Patch(GroupCoordinator, "_heard_of", lambda self, group, member, timeout_ms: None)),
    (heard_of, "expelled, though heard of in time",
     Patch(GroupCoordinator, "heartbeat", lambda self, group, generation, member: Error.NONE)),
    (ended_by_time, "enough was there", BROKER_MUTANTS[16].patches[0]),
    # The leader receives a member that was never answered.
    (lambda: stable(2).a_generation_has_all_its_members(), "",
     edited(group_coordinator, "_joined", "m.id for m in told", "m.id + id for m in told for id in ['', '?']")),
]  # fmt: skip
"""A day, what the machine says of it, and the change that causes that."""


@pytest.mark.parametrize(("day", "said", "change"), TWINS)
def test_a_broken_promise_of_the_day_is_found(day: Callable[[], object], said: str, change: Patch) -> None:
    """Each of the machines' checks, on a day that is the same each time; without the change it passes."""
    day()
    with patched([change]), pytest.raises(AssertionError, match=said or None):
        day()


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_many_arbitrary_days(machine: type[RuleBasedStateMachine]) -> None:
    run(machine, 400, 50, fixed=False)
