"""A watch that is killed before any of its steps: nothing is lost, nothing counts twice.

Spark's part is played here: tasks are carried out one after the other, and what the stream gives is a list of paths.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession

from pipeline.lake_reader import Killer, disk_full
from pipeline.test_watch import many, write_segments
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import run_of
from purgatorio_pipeline.watch import batch as batches
from purgatorio_pipeline.watch.batch import News, Watcher
from purgatorio_pipeline.watch.segments import (
    Segment,
    event_rows,
    events_folder,
    run_name,
    told_by,
)
from purgatorio_pipeline.watch.state import WatchState, load_before
from purgatorio_spec.check import check_files
from purgatorio_spec.fast_path import carry
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.trace.reader import TraceReader


class Tasks:
    def __init__(self, some: Sequence[object] = ()) -> None:
        self.some = some
        self.sparkContext = self
        self.defaultParallelism = 2

    def parallelize(self, some: Sequence[object], slices: int) -> Tasks:
        assert 0 < slices <= len(some)
        return Tasks(some)

    def map(self, function: Callable[[object], object]) -> Tasks:
        return Tasks([function(one) for one in self.some])

    def collect(self) -> Sequence[object]:
        return self.some


@dataclass
class Machine:
    out: Path
    paths: Sequence[Path]
    killer: Killer
    patch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        step = self.killer.step
        commit, forget = Lake.commit, Watcher._forget

        def write_carry(fold: Fold, place: Path) -> None:
            step("before a carry")
            carry.write_carry(fold, place)
            step("carry written")

        def committed(lake: Lake, number: int, manifest: object) -> None:
            step("before the state")
            commit(lake, number, manifest)
            step("state committed")

        def forgotten(watcher: Watcher, lake: Lake, state: WatchState) -> None:
            forget(watcher, lake, state)
            step("forgotten")

        self.patch.setattr(batches, "read_segments", self.read)
        self.patch.setattr("purgatorio_pipeline.watch.follow.write_carry", write_carry)
        self.patch.setattr(Lake, "commit", committed)
        self.patch.setattr(Watcher, "_forget", forgotten)

    def read(self, spark: SparkSession, lake: Lake, number: int, rows: Iterable[Path]) -> list[Segment]:
        """The segments of files, and their table, which is written next to its place and renamed, as `Lake` does."""
        staged = self.out / "silver" / ".staged-events"
        table = self.out / "silver" / f"events-{number:09d}"
        segments: list[Segment] = []
        for at, path in enumerate(rows):
            reader = TraceReader(path, segment=True)
            for events in reader.batches():
                folder = events_folder(staged.parent, number).name
                (staged / folder).mkdir(parents=True, exist_ok=True)
                own = pa.Table.from_batches([event_rows(run_name(reader), events)]).drop_columns(["kind"])
                pq.write_table(own, staged / folder / f"part-{at}.parquet")
            segments.append(told_by(reader))
        self.killer.step("table staged")
        shutil.rmtree(table, ignore_errors=True)
        staged.rename(table)
        self.killer.step("table there")
        return segments

    def watch(self, heard: list[News]) -> None:
        """All batches that are not committed, as a stream with a checkpoint gives them: the last may come again."""
        state = load_before(Lake(self.out))
        spark = cast(SparkSession, Tasks())
        watcher = Watcher(spark, self.out, heard.append, arrived=_as_they_are, allow_idle=True)
        for number in range(max(state.batch, 0), (len(self.paths) + 1) // 2):
            watcher.batch(cast(DataFrame, self.paths[2 * number : 2 * number + 2]), number)
            self.killer.step("batch over")


def _as_they_are(spark: SparkSession, fresh: DataFrame, state: WatchState) -> DataFrame:
    return fresh


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two runs, one broken, in segments that come in turn."""
    (tmp_path / "in").mkdir()
    parts = [
        write_segments(many(name, name == "bad", 16).write(tmp_path / f"{name}.jsonl"), tmp_path / "in", 180)
        for name in ("good", "bad")
    ]
    return [path for pair in zip(*parts, strict=True) for path in pair]


@dataclass
class Copying(Killer):
    """Kills nothing: before each step it copies the folder, which is what a watch that is killed there leaves."""

    out: Path = Path()

    def step(self, what: str) -> None:
        shutil.copytree(self.out, self.copy(len(self.done)))
        super().step(what)

    def copy(self, number: int) -> Path:
        return self.out.with_name(f"killed-{number}")


Ended = Callable[[Path, Sequence[Path], pytest.MonkeyPatch], Iterator[WatchState]]
"""The state at the end of each watch that ended before its first step, its second, ... and was started again."""


def killed_everywhere(
    tmp_path: Path, paths: Sequence[Path], patch: pytest.MonkeyPatch, after: str = ""
) -> Iterator[WatchState]:
    """By a kill, of which nothing hears: one watch for all of them, or for those right after this step."""
    copying = Copying(out=tmp_path / "copied")
    copying.out.mkdir()
    with patch.context() as context:
        Machine(copying.out, paths, copying, context).watch([])
    assert len(copying.done) > 15
    for number in (at for at, last in enumerate(["", *copying.done[:-1]]) if after in last):
        with patch.context() as context:
            Machine(copying.copy(number), paths, Killer(), context).watch([])
            yield load_before(Lake(copying.copy(number)))


def full_disk_everywhere(
    tmp_path: Path, paths: Sequence[Path], patch: pytest.MonkeyPatch
) -> Iterator[WatchState]:
    """By an error that every error handler sees."""
    at = 0
    while True:
        out = tmp_path / f"full-{at}"
        killer = Killer(at, end=disk_full)
        with patch.context() as context:
            machine = Machine(out, paths, killer, context)
            try:
                machine.watch([])
            except OSError:
                killer.at = -1
                machine.watch([])
                yield load_before(Lake(out))
            else:
                break
        at += 1
    assert at > 15


@pytest.mark.parametrize(
    "ended", [killed_everywhere, pytest.param(full_disk_everywhere, marks=pytest.mark.slow)]
)
def test_nothing_is_lost_and_nothing_counts_twice(
    tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch, ended: Ended
) -> None:
    """After any end, the state is that of an undisturbed watch, and its verdicts are those of `check`."""
    with monkeypatch.context() as context:
        calm = Machine(tmp_path / "calm", paths, Killer(), context)
        heard: list[News] = []
        calm.watch(heard)
    expected = load_before(Lake(tmp_path / "calm"))
    closed = {one.run: one for one in expected.closed}
    for run in check_files([tmp_path / "good.jsonl", tmp_path / "bad.jsonl"]).runs:
        found = closed[run.run]
        assert found == structs.replace(run_of(run), file=found.file, open=False)
    assert [one.subject for news in heard for _, one in news.found] == ["op-10"]
    for state in ended(tmp_path, paths, monkeypatch):
        assert replace(state) == expected


def test_a_watch_that_forgets_too_early_is_caught(
    tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: carries that only the state before needs are removed. Killed then, the batch cannot be done again."""
    forget = Watcher._forget

    def eager(watcher: Watcher, lake: Lake, state: WatchState) -> None:
        forget(watcher, lake, state)
        for place in (watcher.out / "silver").glob("carry-*"):
            if f"-{state.batch:09d}-" not in place.name:
                place.unlink()

    monkeypatch.setattr(Watcher, "_forget", eager)
    with pytest.raises(FileNotFoundError, match="carry-"):
        list(killed_everywhere(tmp_path, paths, monkeypatch, after="forgotten"))
