"""`purgatorio watch --kafka`: messages come to what a file of the same lines comes to, each once.

There is no broker here and no connector. What stands for them has the columns of Spark's Kafka source; that the
connector is absent is what the user is told, and that is tested as it is.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from pipeline.test_commands import run
from pipeline.test_watch import by_run, counts, many
from purgatorio_pipeline import session
from purgatorio_pipeline.documents import decoded
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Watch
from purgatorio_pipeline.watch import stream
from purgatorio_pipeline.watch.batch import News, Watcher
from purgatorio_pipeline.watch.messages import messages_arrived
from purgatorio_pipeline.watch.state import load_before
from purgatorio_pipeline.watch.stream import start_stream
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.trace.columns import Fields
from purgatorio_spec.verdict import Verdict

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
    """The lines of a trace as messages with one key; every third one has the header again, as after a restart."""
    header, rest = lines[0], lines[1:]
    parts = [rest[at : at + at_once] for at in range(0, len(rest), at_once)]
    return [
        Sent(run.encode(), b"\n".join([header, *part] if number % 3 == 0 else part), partition, number)
        for number, part in enumerate(parts)
    ]


def in_one_partition(messages: Sequence[Sent]) -> list[Sent]:
    return [one._replace(offset=number) for number, one in enumerate(messages)]


def write_messages(place: Path, messages: Iterable[Sent]) -> None:
    """A file of messages, which is a batch of `stand_in`."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{**one._asdict(), "topic": "runs", "timestamp": when, "timestampType": 0} for one in messages]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(_FIELDS)), place)


def stand_in(spark: SparkSession, folder: Path) -> DataFrame:
    """The messages of a folder as a stream, a file a batch."""
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))


WATCH = ["watch", "--kafka", "host:9092", "--topic", "runs"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def lines_of(place: Path, run: str, broken: bool) -> list[bytes]:
    return many(run, broken).write(place / f"{run}.jsonl").read_bytes().splitlines()


def by_check(place: Path, run: str) -> RunResult:
    return check_files([place / f"{run}.jsonl"]).runs[0]


def watch(spark: SparkSession, place: Path) -> list[News]:
    heard: list[News] = []
    watcher = Watcher(spark, place / "lake", heard.append, arrived=messages_arrived, allow_idle=True)
    start_stream(stand_in(spark, place / "in"), watcher).awaitTermination()
    return heard


@pytest.mark.slow
def test_messages_give_the_result_of_a_file_with_their_lines(spark: SparkSession, place: Path) -> None:
    """Runs interleaved and cut at batches; a message or a batch that comes twice counts once."""
    good = messages_of("good", lines_of(place, "good", broken=False), 40, 0)
    bad = messages_of("bad", lines_of(place, "bad", broken=True), 40, 0)
    half = len(good) // 2
    sent = in_one_partition([*bad[:half], *good[:half], *good[half:], *bad[half:]])
    torn_lines = lines_of(place, "torn", broken=False)
    torn_lines[8] = torn_lines[8][:-9]
    (place / "torn.jsonl").write_bytes(b"\n".join(torn_lines) + b"\n")
    torn = messages_of("torn", torn_lines, 5, 1)
    write_messages(place / "in" / "0.parquet", [*sent[: 2 * half], *torn, sent[2 * half - 1], sent[0]])
    (first,) = watch(spark, place)
    runs = by_run(first.state)
    assert {name: (run.verdict, run.open) for name, run in runs.items()} == {
        "good": ("UNKNOWN", True),
        "bad": ("VIOLATED", True),
        "torn": ("INVALID_TRACE", False),
    }
    assert [(run, one.clause, one.subject) for run, one in first.found] == [("bad", "T4", "op-10")]
    assert counts(runs["torn"]) == counts(by_check(place, "torn"))
    quarantine = pq.read_table(place / "lake" / "bronze" / "quarantine-000000000").to_pylist()
    (by_file,) = check_files([place / "torn.jsonl"]).broken
    # Line 9 of the file; the first message has the header and five lines.
    assert [(row["file"], row["line"], row["why"]) for row in quarantine] == [("runs-1@1", 3, by_file.why)]
    assert "runs-1@1:3" in str(runs["torn"].problems)

    write_messages(place / "in" / "1.parquet", sent[2 * half - 2 :])
    (second,) = watch(spark, place)
    assert second.found == [], "what was told is not told again"
    runs = by_run(second.state)
    assert not any(run.open for run in runs.values())
    for name in ("good", "bad"):
        expected = by_check(place, name)
        assert (runs[name].verdict, runs[name].events) == (expected.verdict, expected.events)
        assert counts(runs[name]) == counts(expected)
    assert runs["bad"].verdict == Verdict.VIOLATED
    assert second.state.offsets == {"runs-0": len(sent), "runs-1": len(torn)}

    again: list[News] = []
    watcher = Watcher(spark, place / "lake", again.append, arrived=messages_arrived, allow_idle=True)
    watcher.batch(spark.read.schema(COLUMNS).parquet(str(place / "in" / "1.parquet")), second.batch)
    assert again[0].state == second.state
    # The twin: without the offsets that were taken in, the same messages are a second time.
    third = spark.read.schema(COLUMNS).parquet(str(place / "in" / "1.parquet"))
    lake = Lake(place / "lake")
    for offsets, late in ((second.state.offsets, 0), ({}, 2)):
        state = load_before(lake, second.batch + 1)
        state.offsets = dict(offsets)
        lake.commit(second.batch, state)
        Watcher(spark, place / "lake", again.append, arrived=messages_arrived).batch(third, second.batch + 1)
        assert len(again[-1].closed) == late
    assert "was closed before" in str(again[-1].closed)


def test_messages_that_are_no_run_s(spark: SparkSession, place: Path) -> None:
    """No key, another key than the header's, no header, no value, an `i` that is not above the last."""
    lines = lines_of(place, "good", broken=False)
    some, repeated = b"\n".join(lines[:4]), b"\n".join(lines[2:6])
    batches = [
        [
            Sent(None, some, 0, 0), Sent(b"other", some, 0, 1), Sent(b"headless", lines[1], 0, 2),
            Sent(b"empty", None, 0, 3), Sent(b"\xff", lines[1], 0, 4), Sent(b"\xfe", lines[1], 0, 5),
            Sent(b"good", some, 0, 6),
        ],
        [Sent(None, some, 0, 7), Sent(b"headless", lines[2], 0, 8), Sent(b"good", repeated, 0, 9)],
    ]  # fmt: skip
    heard: list[News] = []
    for number, batch in enumerate(batches):
        write_messages(place / "in" / "batch.parquet", batch)
        frame = spark.read.schema(COLUMNS).parquet(str(place / "in" / "batch.parquet"))
        Watcher(spark, place / "lake", heard.append, arrived=messages_arrived).batch(frame, number)
    first, second = heard
    assert {one.file: one.verdict for one in first.closed} == dict.fromkeys(
        ("runs-0 key ", "runs-0 key other", "runs-0 key headless", "runs-0 key empty", "runs-0 key \ufffd"),
        "INVALID_TRACE",
    )
    problems = {one.file: str(one.problems) for one in first.closed}
    assert "there is no key" in problems["runs-0 key "]
    assert "the key is 'other', the header says 'good'" in problems["runs-0 key other"]
    assert second.closed == []
    run = second.state.runs["good"]
    assert (run.events, run.broken) == (5, 2)
    assert run.first_broken.startswith("runs-0@9:1: field 'i': 1 is not above 2")
    assert second.state.offsets == {"runs-0": 10}


def test_without_the_connector_the_user_is_told_what_to_bring(spark: SparkSession, place: Path) -> None:
    """PySpark has no connector, and neither has this test: nothing is made up here."""
    done = run(*WATCH, "--out", str(place / "lake"))
    assert done.exit_code == 2
    assert f"  {stream.connector(spark)}\n" in done.output
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}" == stream.connector(spark)
    assert "--packages" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert not (place / "lake").exists()


def test_jars_are_for_a_jvm_that_is_started_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars are settings of the session. Under spark-submit, and if Spark does not start, the user gets a message."""
    given: list[object] = []

    def start(*_: object, brought: object, **__: object) -> None:
        given.append(brought)
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(session, "start_session", start)
    done = run(*WATCH, "--out", "lake", "--packages", "a:b:1", "--jars", "x.jar,y.jar")
    assert (done.exit_code, "did not start with a:b:1, x.jar,y.jar" in done.output) == (2, True)
    assert given == [{"spark.jars.packages": "a:b:1", "spark.jars": "x.jar,y.jar"}]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    done = run(*WATCH, "--out", "lake", "--jars", "x.jar")
    assert (done.exit_code, "give --packages and --jars to spark-submit" in done.output) == (2, True)


def test_the_command_from_options_to_verdict(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the stand-in for what the connector would give; then with one that fails."""
    given: list[object] = []

    def messages(_: SparkSession, *arguments: object) -> object:
        given.append(arguments)
        return stand_in(spark, place / "in")

    monkeypatch.setattr(stream, "kafka_messages", messages)
    write_messages(place / "in" / "0.parquet", messages_of("bad", lines_of(place, "bad", broken=True), 40, 0))
    arguments = [
        *WATCH,
        "--topic",
        "more",
        "--kafka-option",
        "kafka.security.protocol=SSL",
        "--messages",
        "9",
    ]
    done = run(*arguments, "--once", "--allow-idle", "--json", "--out", str(place / "lake"))
    assert given == [("host:9092", ("runs", "more"), {"kafka.security.protocol": "SSL"}, 9)]
    found = decoded(done.stdout, Watch)
    assert (done.exit_code, found.verdict) == (1, "VIOLATED")
    assert counts(found.runs[0]) == counts(by_check(place, "bad"))
    again = [*arguments, "--once", "--out", str(place / "lake")]
    (place / "in" / "1.parquet").write_bytes((place / "in" / "0.parquet").read_bytes())
    done = run(*again, "--metrics", "/dev/full")
    failed = "the stream failed; to continue, run the command again: "
    # What was found before is found, whatever fails after it.
    assert (done.exit_code, f"{failed}/dev/full: No space left on device\n" in done.output) == (1, True)
    (place / "in" / "2.parquet").write_bytes(b"no Parquet")
    done = run(*again)
    assert (done.exit_code, failed in done.output) == (1, True)
