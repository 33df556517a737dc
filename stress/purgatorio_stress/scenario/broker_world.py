"""The common part of the broker's scenarios: a broker on a world's `Sync`, with fixed time or time that a task
moves."""

from collections.abc import Iterator, Sized
from typing import Final, TypeVar

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import DEFAULT_PURGE_INTERVAL, Purgatory
from purgatorio.faults import PROPAGATE, FaultPolicy
from purgatorio.timer.interface import Timer
from purgatorio.timer.mock_timer import MockTimer
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import Runtime, VirtualRuntime
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.world import World

P0: Final = TopicPartition("t", 0)
P1: Final = TopicPartition("t", 1)

Op = TypeVar("Op", bound=DelayedOperation)


class TimelessRuntime(Runtime):
    """Purgatories whose operations never expire: an expiry would hide a lost completion. `timer`: for the tasks that
    wait in no purgatory, if the scenario wants to let their time pass."""

    def __init__(self, world: World, timer: Timer | None = None, faults: FaultPolicy = PROPAGATE) -> None:
        super().__init__(dialect=world.dialect, faults=faults, sync=world.sync)
        self._timer = timer

    def purgatory(self, name: str, purge_interval: int = DEFAULT_PURGE_INTERVAL) -> Purgatory[Op]:
        return Purgatory(
            name,
            MockTimer(sync=self.sync),
            purge_interval=purge_interval,
            shards=1,
            reaper=False,
            timer_enabled=False,
            faults=self.faults,
            sync=self.sync,
        )

    def timer(self, name: str) -> Timer:
        return MockTimer(sync=self.sync) if self._timer is None else self._timer


def virtual_runtime(world: World) -> VirtualRuntime:
    """Time that a task lets pass by `advance`. It does not begin at 0."""
    return VirtualRuntime(7, dialect=world.dialect, faults=PROPAGATE, sync=world.sync)


def leading(runtime: Runtime, *partitions: TopicPartition, min_isr: int = 2) -> ReplicaManager:
    """Broker 0 leads these, with broker 1 in sync."""
    manager = ReplicaManager(runtime, min_isr=min_isr)
    for partition in partitions:
        manager.become_leader(partition, 1, (0, 1), (0, 1))
    manager.run_actions()
    return manager


def follower_has(manager: ReplicaManager, offsets: dict[TopicPartition, int]) -> Error:
    """The fetch of follower 1, which has all below these offsets; the error of the first."""
    errors: list[Error] = []
    params = FetchParams(0, 1, 100, Isolation.LOG_END, replica_id=1)
    manager.fetch_records(
        params,
        {partition: FetchPartition(offset, 100) for partition, offset in offsets.items()},
        lambda results: errors.extend(result.error for result in results.values()),
    )
    manager.run_actions()
    return errors[0]


def answered_once(clause: str, who: str, answers: Sized, expected: int = 1) -> Iterator[Broken]:
    """Broken where there are more or fewer answers."""
    if len(answers) != expected:
        yield Broken(clause, who, f"answered {len(answers)} times, expected {expected}")
