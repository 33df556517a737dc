"""A lake's check without Spark: a reader that judges in this process, a lake that can be killed at each of its steps,
and everything that a check leaves for people, as values that can be compared."""

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from purgatorio_pipeline.hadoop import Place
from purgatorio_pipeline.incremental.batch import write_gold
from purgatorio_pipeline.incremental.cached import CachedResult, cached_of
from purgatorio_pipeline.incremental.check import KeptFile, Manifest, check_lake
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.report.page import page
from purgatorio_spec.check import fold_reader
from purgatorio_spec.trace.reader import TraceReader
from spec.broken_cases import CASES
from spec.trace_builder import Trace

CHECKER = "this one"


class Killed(BaseException):
    """The process ended here: nothing that handles errors hears of it."""


def disk_full(what: str) -> OSError:
    """The stand-in for a disk that is full from now on."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), what)


@dataclass
class Killer:
    """Counts the steps of a check, and ends the check before step `at`: by a kill, or by a full disk."""

    at: int = -1
    done: list[str] = field(default_factory=list)
    end: Callable[[str], BaseException] = Killed

    def step(self, what: str) -> None:
        if len(self.done) == self.at:
            raise self.end(what)
        self.done.append(what)


class KilledLake(Lake):
    """A lake whose every change is a step, before it and after it."""

    killer = Killer()

    def remove(self, name: str) -> None:
        self.killer.step(f"before remove {name}")
        super().remove(name)
        self.killer.step(f"remove {name}")

    def write_bytes(self, name: str, data: bytes) -> None:
        self.killer.step(f"before write {name}")
        super().write_bytes(name, data[: len(data) // 2])
        self.killer.step(f"half of {name}")
        super().write_bytes(name, data)
        self.killer.step(f"write {name}")

    def commit(self, number: int, manifest: object) -> None:
        self.killer.step(f"before commit {number}")
        super().commit(number, manifest)
        self.killer.step(f"commit {number}")


@dataclass
class ProcessReader:
    """Reads and judges here. `read`: the files that it was asked to read, in order; `meanwhile` is called between."""

    killer: Killer = field(default_factory=Killer)
    read: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None
    published: int = 0

    def judge(self, places: Sequence[Place], lake: Lake) -> list[CachedResult]:
        cached: list[CachedResult] = []
        for place in places:
            assert isinstance(place, Path)
            self.read.append(place.name)
            reader = TraceReader(place)
            cached.append(cached_of(fold_reader(reader), reader.broken))
            self.killer.step(f"read {place.name}")
        self.meanwhile()
        self.killer.step("judged")
        lake.write_arrow("found", pa.table({"run_key": list(range(len(cached)))}))
        return cached

    def publish(self, lake: Lake, gold: Lake, held: Sequence[KeptFile], judged: Judged) -> None:
        self.published += 1
        write_gold(gold, judged, None)


def check(folder: Path, paths: Sequence[Path], checker: str = CHECKER) -> tuple[Judged, list[str]]:
    reader = ProcessReader()
    return check_lake(Lake(folder), paths, reader, checker), reader.read


def all_of(judged: Judged, lake: Path) -> dict[str, object]:
    """All that a check leaves: values, the page, the tables."""
    shown = page(judged.result, judged.examples, judged.lateness, judged.gauges)
    gold = gold_of(lake)
    tables = ("runs", "verdicts", "lateness", "violations", "quarantine")
    return {
        "result": judged.result,
        "headers": [run.header for run in judged.result.runs],
        "examples": judged.examples,
        "lateness": judged.lateness,
        "gauges": judged.gauges,
        "page": shown,
        **{
            f"gold/{name}": sorted(map(repr, pq.read_table(gold / name).to_pylist()))
            for name in tables
            if (gold / name).exists()
        },
    }


def gold_of(lake: Path) -> Path:
    """The folder of the gold tables, as the manifest names it."""
    held = Lake(lake)
    return lake / "gold" / held.manifest(held.manifests()[-1], Manifest).gold


def at_once(paths: Sequence[Path], scratch: Path) -> dict[str, object]:
    fresh = scratch / f"at-once-{len(list(scratch.glob('at-once-*')))}"
    once, read = check(fresh, paths)
    assert read == [path.name for path in paths]
    return all_of(once, fresh)


def same_as(theirs: dict[str, object], judged: Judged, lake: Path) -> None:
    mine = all_of(judged, lake)
    for name in theirs.keys() | mine.keys():
        assert mine.get(name) == theirs.get(name), name


def same_as_at_once(judged: Judged, lake: Path, paths: Sequence[Path], scratch: Path) -> None:
    same_as(at_once(paths, scratch), judged, lake)


def run(folder: Path, name: str, *, broken: bool = False, profile: str = "locked") -> Path:
    """A run with two readings and a task that fires; a broken one has an operation that was not completed."""
    made = Trace(profile)
    made.register("a")
    made.gauge(1, 1, "gauge")
    made.ready("a", th="w", back_ns=0)
    made.check("k", *([] if broken else ["a"]))
    made.add("t", delay_ns=1_000)
    made.wait(5_000)
    made.fire("t")
    made.gauge(int(broken), int(broken))
    return made.write(folder / name)


def some_of_all(folder: Path) -> list[Path]:
    """Runs that pass and that do not, two of one name, an unknown profile, and files that are broken in many ways."""
    folder.mkdir()
    paths = [
        run(folder, "a-good.jsonl"),
        run(folder, "b-broken.jsonl", broken=True),
        run(folder, "c-good.parquet"),
        run(folder, "d-strange.jsonl", profile="nobody's"),
    ]
    for name in ("broken line in the middle", "cut gzip", "missing header", "empty file", "dropped records"):
        file, _, write = CASES[name]
        place = folder / f"{name.replace(' ', '-')}-{file}"
        write(place)
        paths.append(place)
    return sorted(paths)


def put_back(path: Path, data: bytes, like: os.stat_result) -> None:
    """Other bytes under the size and the time of before."""
    assert len(data) == like.st_size
    path.write_bytes(data)
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))
