"""Real clients against the broker behind a socket: they produce, consume, and rebalance.

Each is SKIPPED with the reason where it is not installed: `pip install purgatorio[wire-clients]`, and kcat from Debian.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings

VALUES = [f"value {number}".encode() for number in range(300)]
PATIENCE_S = 60


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Running(Settings(port=0, initial_delay_ms=200, default_partitions=2)) as running:
        yield f"127.0.0.1:{running.port}"


def test_confluent_kafka(address: str) -> None:
    """librdkafka: an idempotent producer, and two consumers that share a topic; when one goes the other has all."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    admin = pytest.importorskip("confluent_kafka.admin")
    client = {"bootstrap.servers": address, "log_level": 0}
    creator = admin.AdminClient(client)
    made = creator.create_topics([admin.NewTopic("confluent", 2, 1)])
    assert made["confluent"].result(PATIENCE_S) is None
    producer = confluent.Producer({**client, "enable.idempotence": True, "compression.type": "lz4"})
    failed: list[object] = []
    for number, value in enumerate(VALUES):
        producer.produce(
            "confluent", value, partition=number % 2, on_delivery=lambda error, _: failed.append(error)
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == [None] * len(VALUES)

    group = {**client, "group.id": "confluent", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    one, other = confluent.Consumer(group), confluent.Consumer(group)
    for consumer in (one, other):
        consumer.subscribe(["confluent"])
    got: list[bytes] = []
    while sorted(got) != sorted(VALUES) or len(one.assignment()) != 1 or len(other.assignment()) != 1:
        for consumer in (one, other):
            message = consumer.poll(0.05)
            if message is not None:
                assert message.error() is None
                got.append(message.value())
    (own,) = one.assignment()
    one.commit(asynchronous=False)
    assert one.committed([own])[0].offset == len(VALUES) // 2
    other.close()
    while len(one.assignment()) != 2:
        one.poll(0.05)
    one.close()


def test_transactions_of_confluent_kafka(address: str) -> None:
    """Committed records are read, aborted ones are not. A new producer fences the former one."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    client = {"bootstrap.servers": address, "log_level": 0}
    producers = [confluent.Producer({**client, "transactional.id": "confluent"}) for _ in range(2)]
    former, newer = producers
    former.init_transactions(PATIENCE_S)
    for round_, commits in enumerate((True, False, True)):
        former.begin_transaction()
        for number in range(4):
            former.produce("transactions", f"{round_}.{number}", partition=number % 2)
        if commits:
            former.commit_transaction(PATIENCE_S)
        else:
            assert former.flush(PATIENCE_S) == 0
            former.abort_transaction(PATIENCE_S)
    former.begin_transaction()
    former.produce("transactions", "open", partition=0)
    assert former.flush(PATIENCE_S) == 0
    newer.init_transactions(PATIENCE_S)
    with pytest.raises(confluent.KafkaException):
        former.commit_transaction(PATIENCE_S)
    newer.begin_transaction()
    newer.produce("transactions", "newer", partition=0)
    newer.commit_transaction(PATIENCE_S)

    reads = {**client, "group.id": "transactions", "auto.offset.reset": "earliest"}
    consumer = confluent.Consumer(
        {**reads, "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    consumer.assign([confluent.TopicPartition("transactions", number, 0) for number in range(2)])
    got: list[str] = []
    ends: set[int] = set()
    while len(ends) < 2:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error() is not None:
            ends.add(message.partition())
        else:
            got.append(message.value().decode())
    consumer.close()
    assert sorted(got) == sorted([*(f"{at}.{number}" for at in (0, 2) for number in range(4)), "newer"])


def test_kafka_python(address: str) -> None:
    """Another implementation, in Python; the topic is made by being asked for."""
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    producer = kafka.KafkaProducer(bootstrap_servers=address, acks="all")
    sent = [producer.send("kafka-python", value) for value in VALUES]
    assert len({(found.partition, found.offset) for found in (one.get(PATIENCE_S) for one in sent)}) == len(
        VALUES
    )
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kafka-python", bootstrap_servers=address, group_id="kafka-python", auto_offset_reset="earliest"
    )
    got: list[bytes] = []
    while len(got) < len(VALUES):
        got += [one.value for records in consumer.poll(1000).values() for one in records]
    assert sorted(got) == sorted(VALUES)
    consumer.close()


def test_aiokafka(address: str) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def there_and_back() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True)
        await producer.start()
        for value in VALUES:
            await producer.send_and_wait("aiokafka", value)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            "aiokafka", bootstrap_servers=address, group_id="aiokafka", auto_offset_reset="earliest"
        )
        await consumer.start()
        got: list[bytes] = []
        while len(got) < len(VALUES):
            records = await consumer.getmany(timeout_ms=1000)
            got += [one.value for some in records.values() for one in some]
        await consumer.stop()
        return got

    assert sorted(asyncio.run(asyncio.wait_for(there_and_back(), PATIENCE_S))) == sorted(VALUES)


def test_kcat(address: str) -> None:
    """From a shell: in by one process, out by another."""
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed")
    kcat_of = [kcat, "-b", address, "-q", "-t", "kcat"]
    run = subprocess.run(
        [*kcat_of, "-P", "-p", "0"], input=b"\n".join(VALUES), check=True, timeout=PATIENCE_S
    )
    assert run.returncode == 0
    read = subprocess.run(
        [*kcat_of, "-C", "-e", "-o", "beginning"], capture_output=True, check=True, timeout=PATIENCE_S
    )
    assert read.stdout.splitlines() == VALUES
