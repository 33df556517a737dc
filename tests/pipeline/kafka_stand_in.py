"""Messages as Spark's Kafka source gives them, from Parquet files: no broker and no connector are here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from purgatorio_spec.trace.columns import Fields

COLUMNS: Final = """key binary, value binary, topic string, partition int, offset long,
    timestamp timestamp, timestampType int"""
_FIELDS: Final[Fields] = [
    pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()), pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")), pa.field("timestampType", pa.int32()),
]  # fmt: skip


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    partition: int
    offset: int


def messages_of(run: str, lines: Sequence[bytes], at_once: int, partition: int) -> list[Sent]:
    """The lines of a trace as messages with one key, some in the same message. Every third message has the header
    again, as after a restart of the sender."""
    header, rest = lines[0], lines[1:]
    parts = [rest[at : at + at_once] for at in range(0, len(rest), at_once)]
    return [
        Sent(run.encode(), b"\n".join([header, *part] if number % 3 == 0 else part), partition, number)
        for number, part in enumerate(parts)
    ]


def in_one_partition(messages: Sequence[Sent]) -> list[Sent]:
    """Messages in send order, with new numbers."""
    return [one._replace(offset=number) for number, one in enumerate(messages)]


def write_messages(place: Path, messages: Iterable[Sent]) -> None:
    """A file of messages, which is a batch of `stand_in`."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{**one._asdict(), "topic": "runs", "timestamp": when, "timestampType": 0} for one in messages]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(_FIELDS)), place)


def stand_in(spark: SparkSession, folder: Path) -> DataFrame:
    """The messages of a folder as a stream, a file a batch."""
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
