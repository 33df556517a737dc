"""A share group's fetches, step by step, in virtual time: locks, a remote read, an answer that comes late, redelivery.

    python examples/share_fetch.py

Broker 0 leads partition t-0 alone. The first record of its log is only in the remote tier. The group has two members.
The acquisition lock of a record lasts 100 ms, and a record is delivered at most twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_share_fetch import ShareFetches, ShareResult
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_broker.share_log import ShareLog
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits

PARTITION = TopicPartition("t", 0)
FIRST = Record(0, 1, 60, 0, 0)


def main() -> None:
    """Play it, and say what happens."""
    runtime = VirtualRuntime()
    broker = ReplicaManager(runtime)
    remote_reads: list[Deferred[ReadRecords]] = []

    def tier(partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        remote_reads.append(Deferred(runtime.sync))
        return remote_reads[-1]

    log = ShareLog(broker.partition_or_raise, runtime.sync, tier=tier, local_start=lambda partition: 1)
    limits = ShareLimits(lock_ms=100, max_deliveries=2)
    group = ShareFetches(runtime, broker.actions, "g", [PARTITION], log, limits, remote_wait_ms=50)
    broker.also_check(group.partition_moved)

    def say(text: str) -> None:
        locked = "locked" if group.share(PARTITION).is_locked() else "free"
        print(f"{runtime.clock.now_ms():>3} ms  {text:<64} waiting: {group.waiting()}, fetch lock: {locked}")

    def fetch(member: str, max_wait_ms: int) -> None:
        def answered(answer: Mapping[TopicPartition, ShareResult]) -> None:
            result = answer.get(PARTITION)
            offsets = [] if result is None else [record.offset for record in result.records]
            deliveries = () if result is None else result.deliveries
            print(f"        -> {member}: offsets {offsets}, delivered {list(deliveries)} times")

        group.fetch(member, FetchParams(max_wait_ms, 1, 1000), [PARTITION], answered)
        broker.run_actions()

    broker.become_leader(PARTITION, 1, (0,), (0,))
    broker.append_records(0, 1, {PARTITION: (60, 60)}, lambda results: None)
    broker.run_actions()
    fetch("ann", 20)
    say("ann fetches; a read of offset 0 from the remote tier begins")
    fetch("bob", 500)
    say("bob fetches, and waits for the fetch lock")
    runtime.advance(20)
    say("ann's request times out: it is completed, but not answered yet")
    runtime.advance(10)
    remote_reads[0].complete(ReadRecords((FIRST,), None, None))
    say("the read ends: ann gets her answer, bob's fetch reads the log")
    group.acknowledge("bob", PARTITION, [1], Acknowledgement.ACCEPT)
    broker.run_actions()
    fetch("bob", 500)
    say("bob accepts offset 1, and fetches again")
    runtime.advance(100)
    say("ann's lock on offset 0 ends after 100 ms: bob's fetch reads it")
    remote_reads[1].complete(ReadRecords((FIRST,), None, None))
    say("the read from the remote tier ends")
    group.acknowledge("bob", PARTITION, [0], Acknowledgement.RELEASE)
    broker.run_actions()
    say(f"bob releases offset 0, which is now archived: start offset {group.share(PARTITION).start()}")


if __name__ == "__main__":
    main()
