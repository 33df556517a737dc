"""Turns Kafka messages into segments. A segment has the events of one run, in one batch, from one partition.

The key of a message is the name of the run. The value is one or several lines of a trace. In each partition, the first
line of a run is the header. Any later message may repeat the header unchanged. Within a partition, the event numbers
`i` increase. The state between two batches is the header and the last `i` of each open run.

Topic, partition and offset identify a message. A message counts once, even if it is read again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.watch.segments import (
    SEGMENT_SCHEMA,
    event_rows,
    told_by,
    told_rows,
)
from purgatorio_pipeline.watch.state import WatchState
from purgatorio_spec.trace.columns import fields_of
from purgatorio_spec.trace.lines import Line, split
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header


class Known(NamedTuple):
    """An open run: its header line, and by partition the `i` of the last event."""

    header: bytes
    last_i: dict[str, int]


class Message(NamedTuple):
    """One Kafka message. Without a key, its run has no name. Without a value, it has no lines."""

    partition: str
    key: bytes
    offset: int
    value: bytes


def messages_arrived(spark: SparkSession, messages: DataFrame, state: WatchState) -> DataFrame:
    """The rows of new messages, from the columns of Spark's Kafka source. Messages of earlier batches are left out."""
    fresh = messages.select(
        fn.concat_ws("-", "topic", "partition").alias("part"),
        fn.expr("coalesce(key, X'') AS key"),
        fn.col("offset").cast("long"),
        "value",
    )
    seen = list(state.offsets.items()) or [("", 0)]
    taken = spark.createDataFrame(seen, "part string, taken long")
    new = fresh.join(fn.broadcast(taken), "part", "left").where("offset >= coalesce(taken, 0)")
    known = {run.run: Known(orjson.dumps(fields_of(run.header)), run.last_i) for run in state.runs.values()}
    return (
        new.select("part", "key", "offset", "value")
        .repartition("part", "key")
        .sortWithinPartitions("part", "key", "offset")
        .mapInArrow(partial(_read, known=known), from_arrow_schema(SEGMENT_SCHEMA))
    )


def _read(batches: Iterable[pa.RecordBatch], known: dict[str, Known]) -> Iterator[pa.RecordBatch]:
    # By the key's bytes: keys that are no UTF-8 can look the same as texts, and their offsets are not sorted together.
    for (part, key), some in groupby(_messages(batches), key=lambda one: (one.partition, one.key)):
        run = key.decode(errors="replace")
        yield from _segment(_Messages(some), part, run, known.get(run))


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Message(row["part"], bytes(row["key"]), row["offset"], bytes(row["value"] or b""))


@dataclass(slots=True)
class _Messages:
    messages: Iterable[Message]
    first_lines: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def lines(self) -> Iterator[Line]:
        number = 0
        for message in self.messages:
            if self.offsets and message.offset <= self.offsets[-1]:
                continue  # seen before; they are sorted
            self.first_lines.append(number + 1)
            self.offsets.append(message.offset)
            for line in split(iter((message.value + b"\n",))):
                yield replace(line, number=number + line.number)
            number += message.value.count(b"\n") + 1

    def place(self, part: str, broken: BrokenLine) -> BrokenLine:
        """The broken line, with the message as its file, and the line number in this message."""
        at = bisect_right(self.first_lines, broken.line) - 1
        if at < 0:
            return broken
        line = broken.line - self.first_lines[at] + 1
        return replace(broken, file=f"{part}@{self.offsets[at]}", line=line)


def _segment(messages: _Messages, part: str, run: str, known: Known | None) -> Iterator[pa.RecordBatch]:
    def lines() -> Iterator[Line]:
        if known is not None:
            yield Line(0, known.header)
        yield from messages.lines()

    name = f"{part} key {run}"
    last_i = -1 if known is None else known.last_i.get(part, -1)
    reader = TraceReader(Path(part), name, segment=True, lines=lines(), repeats=True, last_i=last_i)
    for events in reader.batches():
        yield event_rows(run, events)
    broken = [messages.place(part, one) for one in reader.broken]
    told = told_by(reader)
    header = told.header
    if header is not None and header.run != run:
        broken.insert(0, _misplaced(messages, part, run, header))
        told = replace(told, header=None, broken=told.broken + 1)
    told = replace(
        told,
        run=run,
        first_broken=str(broken[0]) if broken else "",
        partition=part,
        next_offset=messages.offsets[-1] + 1,
        last_i=reader.last_i,
    )
    yield from told_rows(told, broken)


def _misplaced(messages: _Messages, part: str, run: str, header: Header) -> BrokenLine:
    key = f"the key is {run!r}" if run else "there is no key"
    return BrokenLine(
        f"{part}@{messages.offsets[0]}",
        1,
        "run",
        f"{key}, the header says {header.run!r}",
        "write the run's name as the key of each of its messages",
        "",
    )
