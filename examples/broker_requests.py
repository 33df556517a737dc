"""A produce with acks=-1 and a fetch with min bytes, step by step, in virtual time.

    python examples/broker_requests.py

Broker 0 leads partition t-0; brokers 1 and 2 follow. At least two replicas must be in sync.
"""

from __future__ import annotations

from collections.abc import Mapping

from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import VirtualRuntime

PARTITION = TopicPartition("t", 0)


def main() -> None:
    """Play it, and say what happens."""
    runtime = VirtualRuntime()
    broker = ReplicaManager(runtime, min_isr=2)

    def say(text: str) -> None:
        produce, fetch, _ = broker.waiting()
        print(f"{runtime.clock.now_ms():>3} ms  {text:<60} waiting: {produce} produce, {fetch} fetch")

    def produced(results: Mapping[TopicPartition, ProduceResult]) -> None:
        print(
            f"        -> producer: {results[PARTITION].error.value}, offset {results[PARTITION].base_offset}"
        )

    def fetched(results: Mapping[TopicPartition, FetchResult]) -> None:
        records = results[PARTITION].data.records
        offsets = [record.offset for record in records]
        print(f"        -> consumer: {results[PARTITION].error.value}, offsets {offsets}")

    def follow(replica: int, offset: int) -> None:
        params = FetchParams(0, 1, 1000, Isolation.LOG_END, replica_id=replica)
        broker.fetch_records(params, {PARTITION: FetchPartition(offset, 1000)}, lambda results: None)
        broker.run_actions()

    broker.become_leader(PARTITION, 1, (0, 1, 2), (0, 1, 2))
    broker.run_actions()
    broker.fetch_records(FetchParams(500, 100, 1000), {PARTITION: FetchPartition(0, 1000)}, fetched)
    say("a consumer fetches at offset 0 and wants 100 bytes")
    broker.append_records(300, -1, {PARTITION: (60, 60)}, produced)
    broker.run_actions()
    say("a producer appends 2 x 60 bytes with acks=-1")
    runtime.advance(5)
    follow(1, 2)
    say("follower 1 has both records; follower 2 (in sync) has none")
    runtime.advance(5)
    follow(2, 1)
    say("follower 2 has one record: 60 readable bytes are not enough")
    runtime.advance(5)
    follow(2, 2)
    say("follower 2 has both records: the high watermark is 2")
    broker.append_records(300, -1, {PARTITION: (60,)}, produced)
    broker.run_actions()
    say("the producer appends again; no consumer fetches")
    runtime.advance(299)
    say("299 ms have passed")
    runtime.advance(1)
    say("the time-out of the Produce has passed")
    broker.append_records(300, -1, {PARTITION: (60,)}, produced)
    broker.run_actions()
    say("the producer appends again")
    broker.become_follower(PARTITION, 2)
    say("another broker is leader now: the check is in the queue")
    broker.run_actions()
    say("the request ends, and its thread runs the queue")


if __name__ == "__main__":
    main()
