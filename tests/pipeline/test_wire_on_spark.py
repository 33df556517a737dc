"""Wire traces among others: judged by both engines, alike, and two of one name compared."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from purgatorio_pipeline.command import wire
from purgatorio_pipeline.command.output import CheckOutput
from purgatorio_pipeline.comparison import Change, compare
from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.incremental import cached
from purgatorio_pipeline.incremental.spark_fold import cached_of_files
from purgatorio_pipeline.process_engine import Tracker, judge_in_process
from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import counterexample
from purgatorio_wire.client.connection import Address
from purgatorio_wire.judge import judge_file, judge_trace
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.trace.file import WireTrace, WireWriter, convert_wire
from purgatorio_wire.trace.record import WireEvent, WireHeader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def nightly(folder: Path, *, broken: bool) -> Path:
    """A trace of one question, which a broken broker answers twice."""
    folder.mkdir()
    writer = WireWriter(folder / "wire.jsonl", WireHeader("nightly", {"address": "here:1"}))
    common = {"conn": "c", "scene": "s#1", "corr": 1, "api": "api_versions", "version": 0}
    writer.write(WireEvent(0, 6, "request", body={}, **common))  # type: ignore[arg-type] # fields by name
    writer.write(WireEvent(1, 9, "answer", c=0, body={}, **common))  # type: ignore[arg-type] # fields by name
    if broken:
        writer.write(WireEvent(2, 9, "answer", body={}, **common))  # type: ignore[arg-type] # fields by name
    writer.close({}, {})
    return folder / "wire.jsonl"


def test_two_nights_are_compared(tmp_path: Path) -> None:
    nights = [nightly(tmp_path / name, broken=name == "after") for name in ("before", "after")]
    compared = compare(*(judge_in_process([path]) for path in nights))
    assert [one.clause for _, one in compared.changes(Change.BROKEN)] == ["X1"]


def test_progress_says_that_judging_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reading, seen = (
        nightly(tmp_path / "a", broken=False),
        Tracker(),
        list[tuple[float, float]](),
    )

    def watched(trace: WireTrace) -> RunResult:
        seen.append(reading.so_far())
        return judge_trace(trace)

    monkeypatch.setattr("purgatorio_wire.judge.judge_trace", watched)
    judge_in_process([path], reading=reading)
    assert seen == [(path.stat().st_size, path.stat().st_size)]


def test_a_time_limit_in_judging_loses_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """The first SIGTERM is noted, and another one has its usual effect."""
    before = signal.getsignal(signal.SIGTERM)
    with wire._verdicts_first():
        assert signal.getsignal(signal.SIGTERM) != before
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGTERM) == before
    assert "when the verdicts are printed" in capsys.readouterr().err


def test_a_stored_result_has_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = nightly(tmp_path / "b", broken=True)
    trace, run = judge_file(path)
    stored = decoded(encoded(cached.cached_wire(trace, run)), cached.CachedResult)
    assert cached.assemble([stored]).examples == judge_in_process([path]).examples != {}
    monkeypatch.setattr(counterexample, "counterexamples", lambda trace, run: 1 // 0)
    unshown = cached.cached_wire(trace, run).run
    assert (unshown.verdict, len(unshown.failures)) == (Verdict.VIOLATED, 1)


@pytest.mark.parametrize("ended", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interrupted_run_tells_its_errors_and_what_is_left(
    ended: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Only Ctrl-C changes the exit status."""

    async def record(asked: RunOptions, path: Path, failures: list[Failure], *rest: object) -> None:
        path.touch()
        failures.append(failure_of("playing a scene", KeyError("x")))
        asked.made.topics.add("a")
        asked.made.groups.update({"b": set(), "c": set()})
        raise ended

    monkeypatch.setattr(wire, "record", record)
    asked = RunOptions(Address("", 0), "here:1", ())
    failures, stopped = wire._record(asked, tmp_path / "x.jsonl", CheckOutput(json=True))
    assert (len(failures), stopped) == (1, ended is KeyboardInterrupt)
    told = capsys.readouterr().err
    assert "kafka-topics.sh --bootstrap-server here:1 --delete --topic a\n" in told
    assert "kafka-consumer-groups.sh --bootstrap-server here:1 --delete --group b --group c\n" in told


@pytest.mark.slow
def test_spark_judges_them_alike(tmp_path: Path, spark: SparkSession) -> None:
    paths = [nightly(tmp_path / name, broken=name == "b") for name in "ab"]
    assert convert_wire(paths[1], tmp_path / "c.parquet").valid
    paths.append(tmp_path / "c.parquet")
    kept = cached_of_files(spark.sparkContext, paths, full=False)
    by_process = judge_in_process(paths).result.runs
    assert [one.run.clauses for one in kept] == [run.clauses for run in by_process]
    assert [one.run.verdict is Verdict.VIOLATED for one in kept] == [False, True, True]
