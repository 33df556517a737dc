"""The broker under the explorer: a produce over two partitions, a follower, and a change of leadership, as threads.

Whatever the interleaving, the producer is answered once, without any time passing, if its record of the first
partition was replicated (where the follower came too early it waits on, rightly). It is told that a partition is
replicated only if it was, or that it is led elsewhere; the consumer that waits sees no record above the high
watermark. These are promises of the broker (clauses B103, B105, B108, B214); a deadlock would be P3.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from purgatorio.broker.delayed_produce import ProduceResult
from purgatorio.broker.error import Error
from purgatorio.broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio.broker.key import TopicPartition
from purgatorio.broker.partition import Isolation
from purgatorio.broker.replica_manager import ReplicaManager
from purgatorio.broker.runtime import Runtime
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import DEFAULT_PURGE_INTERVAL, Purgatory
from purgatorio.faults import PROPAGATE
from purgatorio.timer.mock_timer import MockTimer
from purgatorio_stress.explorer.controlled import ControlledSync
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Run
from purgatorio_stress.scenario.world import DIALECTS, FOREVER_MS

__all__ = ["BrokerProgram"]

P0: Final = TopicPartition("t", 0)
P1: Final = TopicPartition("t", 1)

Op = TypeVar("Op", bound=DelayedOperation)


class _Timeless(Runtime):
    """Purgatories whose operations never expire: an expiry would hide a lost completion."""

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


class BrokerProgram:
    """A `Program`. `outcomes`: what the producer was told in its runs, () where it waits."""

    def __init__(self, dialect: str) -> None:
        self.name = f"broker/{dialect}"
        self.turns = 4
        self.horizon_ms = 0
        self.outcomes: set[tuple[str, ...]] = set()
        self._dialect = DIALECTS[dialect]
        self._produced: list[Mapping[TopicPartition, ProduceResult]] = []
        self._fetched: list[tuple[int, int]] = []
        self._manager: ReplicaManager | None = None

    def set_up(self, run: Run, /) -> None:
        """A leader of two partitions with one follower in sync, and a consumer that waits for the first."""
        self._produced, self._fetched = [], []
        runtime = _Timeless(dialect=self._dialect, faults=PROPAGATE, sync=ControlledSync(run))
        manager = self._manager = ReplicaManager(runtime, min_isr=2)
        for partition in (P0, P1):
            manager.become_leader(partition, 1, (0, 1), (0, 1))
        manager.run_actions()
        manager.fetch_records(FetchParams(FOREVER_MS, 1, 100), {P0: FetchPartition(0, 100)}, self._consumer)
        manager.append_records(FOREVER_MS, 1, {P0: (10,), P1: (10,)}, lambda results: None)
        run.spawn("producer", lambda: self._produce(manager))
        run.spawn("follower", lambda: _follow(manager))
        run.spawn("controller", lambda: _change_leader(manager))

    def judge(self, run: Run, /) -> Sequence[Broken]:
        """Everybody was answered, once, and told the truth."""
        if self._manager is None or len(self._fetched) != 1 or self._fetched[0][0] > self._fetched[0][1]:
            return [Broken("B214", "consumer", f"saw (records, high watermark) {self._fetched}")]
        self._manager.check()
        replicated = (
            self._manager.partition_or_raise(P0).ends(None, leader_only=True).high_watermark.offset > 1
        )
        if len(self._produced) != replicated:
            return [Broken("B108", "producer", f"answered {len(self._produced)} times, {replicated=}")]
        if not replicated:
            self.outcomes.add(())
            return []
        results = self._produced[0]
        self.outcomes.add(tuple(result.error.value for result in results.values()))
        broken = []
        if results[P0].error is not Error.NONE:
            broken.append(Broken("B105", "producer", f"t-0 is replicated, told {results[P0].error.value}"))
        if results[P1].error not in (Error.NONE, Error.NOT_LEADER_OR_FOLLOWER):
            broken.append(Broken("B103", "producer", f"t-1: told {results[P1].error.value}"))
        return broken

    def _consumer(self, results: Mapping[TopicPartition, FetchResult]) -> None:
        data = results[P0].data
        high_watermark = data.ends.high_watermark.offset if data.ends is not None else 0
        self._fetched.append((len(data.records), high_watermark))

    def _produce(self, manager: ReplicaManager) -> None:
        """Records at offset 1 of both; where leadership has gone by then, one of them is refused."""
        manager.append_records(FOREVER_MS, -1, {P0: (10,), P1: (10,)}, self._produced.append)
        manager.run_actions()


def _follow(manager: ReplicaManager) -> None:
    """The follower has what is there now."""
    ends = {p: manager.partition_or_raise(p).ends(None, leader_only=False).log_end.offset for p in (P0, P1)}
    params = FetchParams(0, 1, 100, Isolation.LOG_END, replica_id=1)
    manager.fetch_records(
        params, {p: FetchPartition(end, 100) for p, end in ends.items()}, lambda results: None
    )
    manager.run_actions()


def _change_leader(manager: ReplicaManager) -> None:
    manager.become_follower(P1, 2)
    manager.run_actions()
