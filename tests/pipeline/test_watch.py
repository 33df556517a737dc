"""`purgatorio watch`: segments in, verdicts as `check` gives them, nothing twice."""

import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from purgatorio_pipeline.documents import decoded
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Run, Watch
from purgatorio_pipeline.watch.batch import News, Watcher
from purgatorio_pipeline.watch.metrics import metrics_text
from purgatorio_pipeline.watch.segments import Segment
from purgatorio_pipeline.watch.state import OpenRun, WatchState, load_before
from purgatorio_pipeline.watch.stream import new_files, start_stream
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.writer import TraceWriter
from purgatorio_spec.verdict import Verdict, Violation
from spec.trace_builder import HEADER, MS, Trace


def write_segments(source: Path, folder: Path, events: int) -> list[Path]:
    """The segments of the trace `source`, `events` each, in order; only the last one has the end record."""
    reader = TraceReader(source)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    assert reader.header is not None
    assert reader.end is not None
    paths: list[Path] = []
    for number, start in enumerate(range(0, table.num_rows, events)):
        path = folder / f"{source.stem}-{number:05d}.jsonl"
        writer = TraceWriter(path, reader.header)
        for batch in table.slice(start, events).to_batches():
            writer.write_batch(batch)
        writer.finish(reader.end if start + events >= table.num_rows else None)
        paths.append(path)
    return paths


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "whole").mkdir()
    return tmp_path


@pytest.fixture
def another_default(spark: SparkSession) -> Iterator[None]:
    """Spark's default file system is not this machine's."""
    hadoop: Any = spark.sparkContext._jsc
    before = hadoop.hadoopConfiguration().get("fs.defaultFS")
    hadoop.hadoopConfiguration().set("fs.defaultFS", "hdfs://nowhere.invalid:1")
    yield
    hadoop.hadoopConfiguration().set("fs.defaultFS", before)


def many(run: str, broken: bool, operations: int = 40) -> Trace:
    """Operations, some completed, some expired; a broken one fires though it was completed (T4) early on."""
    made = Trace()
    made.header = replace(HEADER, run=run)
    for number in range(operations):
        name = f"op-{number}"
        made.register(name, [f"k{number % 3}"], delay_ns=10 * MS)
        made.ready(name)
        made.check(f"k{number % 3}", name)
        if broken and number == 10:
            made.wait(20 * MS)
            made.fire(name)
        if number % 4 == 0:
            made.register(f"late-{number}", ["z"], delay_ns=MS)
            made.wait(2 * MS)
            made.expire(f"late-{number}")
        made.wait(100 * MS)
    return made


def watch(spark: SparkSession, place: Path, files: int = 64) -> list[News]:
    """Judges the existing files. Returns the messages of each batch."""
    heard: list[News] = []
    watcher = Watcher(spark, place / "lake", heard.append, place / "m.prom", allow_idle=True)
    start_stream(new_files(spark, place / "in", files), watcher).awaitTermination()
    return heard


def by_run(state: WatchState) -> dict[str, Run]:
    return {run.run: run for run in state.printed().runs}


def counts(run: Run | RunResult) -> dict[str, tuple[Verdict, int]]:
    return {name: (one.verdict, one.violations) for name, one in run.clauses.items()}


def test_open_runs_are_unknown_or_violated_and_closed_ones_as_check_says(
    spark: SparkSession, place: Path, another_default: None
) -> None:
    """Half of each run's segments first, then a new stream over the same checkpoint for the rest. File names have
    characters that a URI escapes, and Spark's default file system is another one."""
    paths = {
        name: many(name, name == "bad").write(place / "whole" / f"{name}%20#1?.jsonl")
        for name in ("good", "bad")
    }
    parts = {name: write_segments(path, place / "whole", 200) for name, path in paths.items()}
    for name in paths:
        for part in parts[name][:2]:
            shutil.copy(part, place / "in")
    (place / "in" / "odd.jsonl").write_text("this is no trace\n")
    first = watch(spark, place)
    open_runs = by_run(first[-1].state)
    assert {name: run.verdict for name, run in open_runs.items() if run.open} == {
        "good": "UNKNOWN",
        "bad": "VIOLATED",
    }
    assert [(run, one.clause, one.subject) for run, one in first[-1].found] == [("bad", "T4", "op-10")]
    assert [run.verdict for run in first[-1].closed] == ["INVALID_TRACE"]

    for name in paths:
        for part in parts[name][2:]:
            shutil.copy(part, place / "in")
    second = watch(spark, place)
    assert [one.found for one in second] == [[]], "what was told is not told again"
    closed = by_run(second[-1].state)
    assert not any(run.open for run in closed.values())
    for name, path in paths.items():
        (expected,) = check_files([path]).runs
        assert closed[name].verdict == expected.verdict
        assert counts(closed[name]) == counts(expected)
        assert closed[name].events == expected.events
    assert closed["bad"].verdict == Verdict.VIOLATED
    assert closed["good"].verdict == Verdict.PASS
    assert watch(spark, place) == [], "nothing new: no batch"
    assert 'purgatorio_violations{run="bad",clause="T4"} 1' in (place / "m.prom").read_text()

    # A run's name is used once, and a batch that is done again comes to the same.
    shutil.copy(parts["good"][0], place / "in" / "again.jsonl")
    (third,) = watch(spark, place)
    assert "give every run a name of its own" in str(third.closed)
    again = spark.createDataFrame([(str(place / "in" / "again.jsonl"),)], "path string")
    Watcher(spark, place / "lake", lambda news: None).batch(again, third.batch)
    assert load_before(Lake(place / "lake"), third.batch + 1) == third.state


@pytest.mark.slow
def test_a_watch_that_is_killed_goes_on_and_comes_to_the_same(place: Path) -> None:
    """The watch is killed inside its third batch. It still reports everything that an undisturbed watch reports."""
    for name in ("good", "bad"):
        path = many(name, name == "bad").write(place / "whole" / f"{name}.jsonl")
        write_segments(path, place / "in", 150)
    whole = finished(place, "calm")
    killed = subprocess.Popen(command(place, "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    third = place / "killed" / "silver" / "events-000000002"
    while not third.exists() and killed.poll() is None:
        select.select([], [], [], 0.05)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL, "it was over before it could be killed"
    state = load_before(Lake(place / "killed"))
    assert 0 <= state.batch < whole.batch
    again = finished(place, "killed")
    assert again.runs == whole.runs
    assert again.verdict == whole.verdict == "VIOLATED"


def command(place: Path, lake: str) -> list[str]:
    """The watch of the folder in a process of its own, two files a batch."""
    arguments = ["watch", str(place / "in"), "--out", str(place / lake), "--once", "--files", "2", "--json"]
    return [str(Path(sys.executable).with_name("purgatorio")), *arguments]


def finished(place: Path, lake: str) -> Watch:
    done = subprocess.run(command(place, lake), capture_output=True, check=False)
    assert done.returncode == 1
    return decoded(done.stdout, Watch)


def segment(run: str, events: int, **more: object) -> Segment:
    values: dict[str, object] = {"file": "f.jsonl", "run": run, "header": HEADER, "events": events}
    return Segment(**{**values, **more})  # type: ignore[arg-type]  # the fields, by name


def test_a_run_closes_when_all_that_its_end_counts_is_there() -> None:
    """Segments may come in any order."""
    run = OpenRun("r", HEADER, "f.jsonl", 0)
    run.take(segment("r", 10, declared=30))
    assert not run.closed
    assert run.printed().problems == ("open: 20 events to come",)
    run.take(segment("r", 19))
    assert not run.closed
    run.take(segment("r", 1))
    assert run.closed


def test_a_segment_with_another_header_is_a_problem() -> None:
    run = OpenRun("r", HEADER, "f.jsonl", 0)
    run.take(segment("r", 1, header=replace(HEADER, profile="pending-flag"), file="g.jsonl"))
    assert run.odd == "g.jsonl has another header than f.jsonl"


def test_the_state_is_the_same_when_it_is_read_back(tmp_path: Path) -> None:
    run = OpenRun("r", HEADER, "f.jsonl", 0)
    run.take(segment("r", 10))
    assert run.add(Violation("O1", "op-1", "completed-twice", (1, 2), "once", "twice"), 0)
    assert not run.add(Violation("O1", "op-1", "completed-twice", (1, 2), "once", "twice"), 1)
    lake = Lake(tmp_path)
    closed = [Run("old", "old.jsonl", "", "", Verdict.PASS, 3, {}, (), open=False)]
    for batch in range(3):
        WatchState(batch, {"r": run}, closed).save(lake)
    state = load_before(lake, 3)
    assert state == WatchState(2, {"r": run}, closed)
    state.closed.append(Run("new", "new.jsonl", "", "", Verdict.PASS, 3, {}, (), open=False))
    state.save(lake)
    assert load_before(lake, 3) == state
    assert b"old.jsonl" not in (lake.read_bytes("manifest/000000002.json") or b""), "it is written once"
    assert len(lake.names("closed")) == 4
    assert load_before(lake, 2).batch == 1
    lake.forget_but(2)
    assert load_before(lake, 2) == WatchState()


def test_metrics_escape_texts_of_a_trace() -> None:
    run = OpenRun('a"b\\c\nd', HEADER, "f.jsonl", 0)
    run.add(Violation("O1", "op-1", "completed-twice", (1,), "once", "twice"), 0)
    text = metrics_text(WatchState(7, {run.run: run}))
    assert 'purgatorio_violations{run="a\\"b\\\\c\\nd",clause="O1"} 1\n' in text
    assert 'purgatorio_runs{verdict="VIOLATED",open="true"} 1\n' in text
    assert text.endswith("purgatorio_batch 7\n")
