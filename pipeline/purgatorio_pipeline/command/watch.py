"""The command `purgatorio watch`: judges traces as they arrive."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from pyspark.errors import PySparkException, PySparkRuntimeError, StreamingQueryException
from rich.console import Console

from purgatorio_pipeline.command.failed import told_status
from purgatorio_pipeline.command.options import argument, file, flag, folder, number, option, taking
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Watch
from purgatorio_pipeline.report.terminal import print_line
from purgatorio_pipeline.watch.batch import News, Watcher
from purgatorio_pipeline.watch.state import KIND, load_before
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.verdict import Verdict, Violation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EPILOG = """
A run may have several files. Each file begins with the header of the run. The last file ends with the end record. A
file must be complete when it appears in FOLDER: write the file in another folder, then rename it.

With --kafka, a run comes in messages. The key of a message is the name of the run. The value is one or more lines of
the trace. The first message begins with the header.

\b
  purgatorio watch runs --out lake          # until Ctrl-C
  purgatorio watch runs --out lake --once   # existing files, then end
  purgatorio watch runs --out lake --metrics runs.prom   # Prometheus
  purgatorio watch --kafka host:9092 --topic runs --out lake \\
    --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION

A run without an end record is open. An open run is UNKNOWN, or VIOLATED if a clause is broken. To continue
after a stop, start `purgatorio watch` again with the same --out.

Exit status: 0 all runs closed and pass, 1 violated, 2 invalid input, 3 unknown (a run is open).
"""
TOLD_OF_A_FAILURE: Final = 2_000
"""Characters of what Spark says when a stream fails."""


def name_value(value: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{value!r} is not NAME=VALUE")
    if name in ("kafka.bootstrap.servers", "subscribe"):
        raise click.BadParameter(f"{name} is set by --kafka or --topic: leave out --kafka-option {name}")
    return name, text


@dataclass(frozen=True, slots=True)
class WatchOptions:
    out: Path = folder("Folder for tables, state and checkpoints.", required=True)
    folder: Path | None = argument(
        type=click.Path(exists=True, file_okay=False, path_type=Path), required=False
    )
    once: bool = flag("Judge the existing files, then exit.")
    every_s: float = number("Seconds between two reads of the folder.", 5.0, named="--every", least=0)
    files: int = number("Largest number of files in a batch.", 64, least=1)
    kafka: str | None = option("Bootstrap servers of Kafka, instead of FOLDER.", metavar="SERVERS")
    topics: Sequence[str] = option("Topic of Kafka; may be repeated.", named="--topic", multiple=True)
    kafka_options: Sequence[tuple[str, str]] = option(
        "Option of Spark's Kafka source, such as kafka.security.protocol=SSL; may be repeated.",
        named="--kafka-option", type=name_value, metavar="NAME=VALUE", multiple=True,
    )  # fmt: skip
    messages: int = number("Largest number of messages in a batch.", 100_000, least=1)
    packages: str | None = option(
        "Maven coordinates of Spark's Kafka connector. Spark downloads the connector."
    )
    jars: str | None = option("Paths of jars for Spark, separated by commas.")
    metrics: Path | None = option("Write Prometheus text to this file after each batch.", type=file)
    allow_idle: bool = flag(
        "Ignore clauses that nothing in the run could break. By default, such a clause makes a complete run UNKNOWN."
    )
    master: str | None = option("Spark master. Default: local[*], or the master that spark-submit sets.")
    memory: str | None = option("Heap of the Spark driver, such as 3g.")
    as_json: bool = flag("Print one JSON object at the end and nothing else.", named="--json")


@taking(WatchOptions, epilog=EPILOG)
def command(asked: WatchOptions) -> None:
    """Judge runs as they arrive, in FOLDER or in a Kafka topic.

    \b
      purgatorio watch runs --out lake
    """
    from purgatorio_pipeline.watch.messages import messages_arrived
    from purgatorio_pipeline.watch.stream import new_files, start_stream

    folder, kafka = asked.folder, asked.kafka
    if (folder is None) == (kafka is None):
        raise click.UsageError("no source named: give a folder, or Kafka's servers with --kafka")
    if (kafka is None) == bool(asked.topics):
        raise click.UsageError("--kafka and --topic need each other: give both or neither")
    jars = {"spark.jars.packages": asked.packages, "spark.jars": asked.jars}
    spark = _session(asked.master, asked.memory, jars)
    console = Console(stderr=asked.as_json)
    watcher = Watcher(
        spark, asked.out, lambda news: tell(console, news), asked.metrics, allow_idle=asked.allow_idle
    )
    # A missing connector is reported before a folder is created.
    if folder is not None:
        arriving = new_files(spark, folder, asked.files)
    else:
        assert kafka is not None, "a folder or Kafka is named, as checked above"
        arriving = _kafka(spark, kafka, asked.topics, dict(asked.kafka_options), asked.messages)
        watcher.arrived = messages_arrived
    lake, every_s = Lake(asked.out), None if asked.once else asked.every_s
    with lake.owned(KIND):
        ended = _wait(start_stream(arriving, watcher, every_s=every_s), watcher)
    seen = load_before(lake).printed()
    if asked.as_json:
        click.echo(encoded(seen))
    else:
        summary(console, seen)
    if ended and seen.verdict is not Verdict.VIOLATED:
        raise click.UsageError(ended)
    if ended:
        click.echo(f"Error: {ended}", err=True)
    sys.exit(told_status(seen.verdict, watcher.failures))


def _session(master: str | None, memory: str | None, jars: Mapping[str, str | None]) -> SparkSession:
    from purgatorio_pipeline.session import start_session, under_submit

    brought = {name: value for name, value in jars.items() if value is not None}
    if brought and under_submit():
        raise click.UsageError("under spark-submit give --packages and --jars to spark-submit")
    try:
        return start_session(master, quick=True, memory=memory, brought=brought)
    except PySparkRuntimeError as failed:
        if not brought:
            raise
        what = ", ".join(brought.values())
        raise click.UsageError(f"Spark did not start with {what}: see Spark's messages above") from failed


def _kafka(
    spark: SparkSession, servers: str, topics: Sequence[str], options: Mapping[str, str], messages: int
) -> DataFrame:
    from purgatorio_pipeline.watch import stream

    try:
        return stream.kafka_messages(spark, servers, topics, options, messages)
    except stream.NoConnector as absent:
        raise click.UsageError(str(absent)) from None
    except PySparkException as refused:
        raise click.UsageError(f"Spark's Kafka source refuses the options: {refused}") from None


def _wait(query: StreamingQuery, watcher: Watcher) -> str:
    """Wait until the stream ends, or for Ctrl-C. Returns the error of the stream, if any."""
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        from purgatorio_pipeline.session import kill_machine

        # The next `watch` repeats an unfinished batch. `stop` would interrupt the batch, and Spark would print its
        # stacks, or fail because Ctrl-C broke the connection.
        if not kill_machine():
            query.stop()
    except StreamingQueryException as failed:
        refused = watcher.refused
        why = f"{refused.filename}: {refused.strerror}" if refused else str(failed)[:TOLD_OF_A_FAILURE]
        return f"the stream failed; to continue, run the command again: {why}"
    return ""


def tell(console: Console, news: News) -> None:
    causes: dict[tuple[str, str, str], list[Violation]] = {}
    for run, violation in news.found:
        causes.setdefault((run, violation.clause, violation.cause), []).append(violation)
    for (run, clause, cause), same in causes.items():
        where = f"{clause} VIOLATED in open run {visible(run, TEXT_LIMIT)}"
        told = f"batch {news.batch}: {where}: {visible(cause)}, {len(same)} new"
        print_line(console, told, "red")
        print_line(console, f"  first {visible(same[0].subject)}: {visible(same[0].seen, TEXT_LIMIT)}")
    for one in news.closed:
        print_line(
            console,
            f"batch {news.batch}: run {visible(one.run, TEXT_LIMIT)} {one.verdict}, {one.events} events",
        )
        for problem in one.problems:
            print_line(console, f"  {visible(problem, TEXT_LIMIT)}")


def summary(console: Console, seen: Watch) -> None:
    for one in seen.runs:
        clauses = one.clauses.items()
        broken = ", ".join(f"{name} {clause.violations}" for name, clause in clauses if clause.violations)
        still = ", open" if one.open else ""
        told = f"{one.verdict!s:13} {visible(one.run, TEXT_LIMIT)}  {one.events} events{still}  {broken}"
        print_line(console, told.rstrip())
    open_runs = sum(bool(one.open) for one in seen.runs)
    print_line(
        console, f"{seen.verdict}: {counted(len(seen.runs) - open_runs, 'run')} closed, {open_runs} open"
    )
