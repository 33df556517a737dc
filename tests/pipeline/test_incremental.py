"""The second check over a lake: what it reads, that its answers are those of one check of all, and what a kill leaves.

Judged in this process, by the steps that Spark's check takes; Spark itself is in `test_incremental_spark.py`.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.incremental import Measured, wrong
from benchmarks.process_tree import Cost
from pipeline.lake_reader import (
    CHECKER,
    Killed,
    KilledLake,
    Killer,
    ProcessReader,
    all_of,
    at_once,
    check,
    disk_full,
    gold_of,
    put_back,
    run,
    same_as,
    same_as_at_once,
    some_of_all,
)
from purgatorio_pipeline.documents import Unreadable, decoded, encoded
from purgatorio_pipeline.incremental.cached import CachedResult, assemble
from purgatorio_pipeline.incremental.check import check_lake
from purgatorio_pipeline.incremental.identity import fingerprint_of
from purgatorio_pipeline.judging import FileCounts
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.verdict import Verdict


def test_a_second_check_reads_nothing(tmp_path: Path) -> None:
    """It also writes nothing. The files have other contents by now, and are not read."""
    paths = some_of_all(tmp_path / "traces")
    lake = tmp_path / "lake"
    first, read = check(lake, paths)
    assert read == [path.name for path in paths]
    assert first.files == FileCounts(new=len(paths))
    assert first.result.verdict is Verdict.VIOLATED
    assert first.result.quarantined > 10
    before = all_of(first, lake)
    for path in paths:
        put_back(path, b"?" * path.stat().st_size, path.stat())
    reader = ProcessReader()
    second = check_lake(Lake(lake), paths, reader, CHECKER)
    assert (reader.read, reader.published) == ([], 0)
    assert second.files == FileCounts(known=len(paths))
    assert all_of(second, lake) == before
    # And a check that does read them sees what became of them.
    assert check(tmp_path / "other", paths)[0].result != second.result


@pytest.mark.parametrize("first", [0, 5])
def test_file_by_file_is_all_at_once(tmp_path: Path, first: int) -> None:
    """New files among the known ones, before and behind them, in their order: one is read at a time."""
    paths = some_of_all(tmp_path / "traces")
    lake = tmp_path / "lake"
    order = paths[first:] + paths[:first]
    for count in range(1, len(order)):
        judged, read = check(lake, sorted(order[:count]))
        assert read == [order[count - 1].name]
        assert judged.files == FileCounts(new=1, known=count - 1)
    judged, read = check(lake, paths)
    assert read == [order[-1].name]
    same_as_at_once(judged, lake, paths, tmp_path)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """Its old rows are gone, and its batch with them; a new time alone is a change, and so is another place."""
    paths = [run(tmp_path, f"{name}.jsonl", broken=True) for name in "abc"]
    lake = tmp_path / "lake"
    check(lake, paths)
    run(tmp_path, "b.jsonl")
    judged, read = check(lake, paths)
    assert read == ["b.jsonl"]
    assert judged.files == FileCounts(changed=1, known=2)
    same_as_at_once(judged, lake, paths, tmp_path)
    stat = paths[0].stat()
    os.utime(paths[0], ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert check(lake, paths)[1] == ["a.jsonl"]
    shutil.copy2(paths[2], tmp_path / "elsewhere.jsonl")
    paths[2].unlink()
    paths[2].symlink_to(tmp_path / "elsewhere.jsonl")
    assert check(lake, paths)[1] == ["c.jsonl"]
    assert len(list((lake / "batches").iterdir())) == 3
    assert check(lake, paths)[1] == []


def test_a_file_that_is_not_named_is_forgotten(tmp_path: Path) -> None:
    """Whether it vanished or not: no table speaks of it, and when it is back it is new."""
    paths = [run(tmp_path, f"{name}.jsonl", broken=name == "b") for name in "abc"]
    lake = tmp_path / "lake"
    check(lake, paths[1:2])
    check(lake, paths)
    some = [paths[0], paths[2]]
    judged, read = check(lake, some)
    assert (read, judged.files) == ([], FileCounts(known=2, gone=1))
    assert judged.result.verdict is Verdict.PASS
    assert len(list((lake / "batches").iterdir())) == 1
    same_as_at_once(judged, lake, some, tmp_path)
    judged, read = check(lake, paths)
    assert (read, judged.files) == (["b.jsonl"], FileCounts(new=1, known=2))
    same_as_at_once(judged, lake, paths, tmp_path)


def test_another_checker_judges_all_again(tmp_path: Path) -> None:
    """The output says so. The former checker would also judge all files again."""
    paths = [run(tmp_path, f"{name}.jsonl") for name in "ab"]
    check(tmp_path / "lake", paths)
    for checker in ("another one", CHECKER):
        judged, read = check(tmp_path / "lake", paths, checker)
        assert read == ["a.jsonl", "b.jsonl"]
        assert judged.files == FileCounts(again=2, other_checker=True)
        assert "2 judged again (the checker or its options changed)" in str(judged.files)
    assert check(tmp_path / "lake", paths)[1] == []


def test_what_makes_another_checker(tmp_path: Path) -> None:
    """Any byte of its code, a file more, `--full`; not where it lies."""
    for place in ("one", "two"):
        (tmp_path / place / "package" / "below").mkdir(parents=True)
        (tmp_path / place / "package" / "a.py").write_text("one = 1\n")
        (tmp_path / place / "package" / "below" / "b.py").write_text("two = 2\n")
    one, two = (tmp_path / place / "package" for place in ("one", "two"))
    before = fingerprint_of([one])
    assert fingerprint_of([two]) == before
    (two / "__pycache__").mkdir()
    (two / "__pycache__" / "a.pyc").write_text("no code")
    assert fingerprint_of([two]) == before
    (two / "below" / "b.py").write_text("two = 3\n")
    changed = fingerprint_of([two])
    (two / "below" / "clauses.txt").write_text("")
    assert len({before, changed, fingerprint_of([two]), fingerprint_of([one], "full=True")}) == 4


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """The read contents are shown, but the file does not count as known."""
    paths = [run(tmp_path, f"{name}.jsonl") for name in "ab"]
    reader = ProcessReader(meanwhile=lambda: paths[1].write_bytes(paths[1].read_bytes() + b"\n"))
    check_lake(Lake(tmp_path / "lake"), paths, reader, CHECKER)
    judged, read = check(tmp_path / "lake", paths)
    assert (read, judged.files) == (["b.jsonl"], FileCounts(new=1, known=1))
    reader = ProcessReader(meanwhile=paths[1].unlink)
    paths[0].touch()
    check_lake(Lake(tmp_path / "lake"), paths, reader, CHECKER)
    with pytest.raises(FileNotFoundError):
        check(tmp_path / "lake", paths)


@pytest.mark.parametrize("damaged", ["manifest/*.json", "batches/*/cached.json"])
@pytest.mark.parametrize("text", ["", "[{}]", '{"files": [{}]}'])
def test_damaged_files_of_the_lake_are_replaced(tmp_path: Path, damaged: str, text: str) -> None:
    """A damaged list or batch (cut off, of another shape, without its fields): the files are read again. The files of
    the user are not changed."""
    paths = [run(tmp_path, f"{name}.jsonl") for name in "ab"]
    lake = tmp_path / "lake"
    for own in (lake / "batches" / "mine", lake / "manifest" / "mine.json"):
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("kept")
    check(lake, paths)
    (place,) = (one for one in lake.glob(damaged) if one.name != "mine.json")
    place.write_text(text)
    judged, read = check(lake, paths)
    assert read == ["a.jsonl", "b.jsonl"]
    same_as_at_once(judged, lake, paths, tmp_path)
    assert check(lake, paths)[1] == []
    assert (lake / "batches" / "mine").exists()
    assert (lake / "manifest" / "mine.json").exists()


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    paths = some_of_all(tmp_path / "traces")
    held = ProcessReader().judge(paths, Lake(tmp_path / "lake"))
    assert decoded(encoded(held), list[CachedResult]) == held
    assert any(one.late for one in held)
    assert any(one.gauges for one in held)
    assert any(one.examples for one in held)
    with pytest.raises(Unreadable):
        decoded(encoded(held).replace(b'"verdict"', b'"judgement"'), list[CachedResult])


# Kills.


class LateLake(KilledLake):
    """A wrong order: a batch is written after the manifest that names it."""

    held: ClassVar[list[tuple[KilledLake, bytes]]] = []

    def write_bytes(self, name: str, data: bytes) -> None:
        if name == "cached.json":
            self.held.append((self, data))
        else:
            super().write_bytes(name, data)

    def commit(self, number: int, manifest: object) -> None:
        super().commit(number, manifest)
        while self.held:
            lake, data = self.held.pop()
            KilledLake.write_bytes(lake, "cached.json", data)


class OneGold(KilledLake):
    """Writes the gold tables of every check into one folder."""

    def below(self, folder: str) -> Lake:
        assert isinstance(self.root, Path)
        return super().below(f"gold/{gold_of(self.root).name}" if folder.startswith("gold/") else folder)


End = Callable[[str], BaseException]


def killed_at_each_step(
    kind: type[KilledLake], known: Path, during: list[Path], end: End = Killed
) -> Iterator[Path]:
    """Copies of the lake `known`, over each of which a check ended: before its first step, its second, ..."""
    at = 0
    while True:
        lake = known.with_name(f"killed-{at}")
        shutil.copytree(known, lake)
        kind.killer = Killer(at, end=end)
        LateLake.held.clear()
        try:
            check_lake(kind(lake), during, ProcessReader(kind.killer), CHECKER)
        except (Killed, OSError):
            yield lake
        else:
            break
        at += 1
    assert at > 10


def nothing_is_lost(kind: type[KilledLake], tmp_path: Path, end: End = Killed) -> None:
    """Of a new, a changed and a gone file: what was committed is not read again, and the result is the same."""
    before = [run(tmp_path, f"{name}.jsonl", broken=name in "bc") for name in "abc"]
    known = tmp_path / "known"
    check(known, before)
    run(tmp_path, "b.jsonl")
    during = [*before[:2], run(tmp_path, "d.jsonl", broken=True)]
    seen, theirs = set(), at_once(during, tmp_path)
    for lake in killed_at_each_step(kind, known, during, end):
        committed = Lake(lake).manifests()[-1] > 2
        seen.add(committed)
        judged, read = check(lake, during)
        assert read == ([] if committed else ["b.jsonl", "d.jsonl"]), lake.name
        same_as(theirs, judged, lake)
        assert check(lake, during)[1] == []
        assert len(list((lake / "manifest").iterdir())) == 1
        assert len(list((lake / "gold").iterdir())) == 1
        assert len(list((lake / "batches").iterdir())) == 2
    assert seen == {False, True}


@pytest.mark.parametrize("end", [Killed, pytest.param(disk_full, marks=pytest.mark.slow)])
def test_a_check_that_is_ended_loses_nothing(tmp_path: Path, end: End) -> None:
    nothing_is_lost(KilledLake, tmp_path, end)


def test_a_list_that_is_written_too_early_is_found(tmp_path: Path) -> None:
    """The twin: files that the list names are read again."""
    with pytest.raises(AssertionError, match="killed-"):
        nothing_is_lost(LateLake, tmp_path)


def gold_is_of_one_check(kind: type[KilledLake], tmp_path: Path) -> None:
    """A check in another order, killed while it writes gold, and then the first one again."""
    paths = [run(tmp_path, f"{name}.jsonl", broken=name == "b") for name in "ab"]
    check(tmp_path / "known", paths)
    theirs = at_once(paths, tmp_path)
    for lake in killed_at_each_step(kind, tmp_path / "known", paths[::-1]):
        judged, read = check(lake, paths)
        assert read == []
        same_as(theirs, judged, lake)


def test_gold_is_never_of_two_checks(tmp_path: Path) -> None:
    gold_is_of_one_check(KilledLake, tmp_path)


def test_a_name_that_is_used_twice_is_found(tmp_path: Path) -> None:
    """The twin: gold is half of one check and half of the other, and taken for whole."""
    with pytest.raises((AssertionError, pa.ArrowInvalid), match="gold/"):
        gold_is_of_one_check(OneGold, tmp_path)


def test_half_a_list_is_none(tmp_path: Path) -> None:
    """A half-written list, and a batch that no list names, are ignored and removed."""
    paths = [run(tmp_path, "a.jsonl")]
    lake = tmp_path / "lake"
    check(lake, paths)
    half = lake / "manifest" / ".000000002.json.x1"
    half.write_text("{")
    torn = lake / "manifest" / "000000003.json"
    torn.write_text('{"checker": "th')
    unnamed = lake / "batches" / "000000007-00000000" / "events"
    unnamed.mkdir(parents=True)
    assert check(lake, paths)[1] == []
    assert not half.exists()
    assert not unnamed.exists()
    run(tmp_path, "b.jsonl")
    assert check(lake, [*paths, tmp_path / "b.jsonl"])[1] == ["b.jsonl"]
    assert not torn.exists()


def test_what_a_bench_of_this_must_show() -> None:
    """A check that reads a known file, one that finds other than all at once, and one that nothing was added to."""

    def results(*checks: tuple[int, str]) -> list[Measured]:
        return [Measured("check", 3, read, Cost("", 0, 0, 0), found) for read, found in checks]

    good = [(2, "two"), (1, "three"), (0, "three"), (3, "three")]
    assert wrong(results(*good), 2) == []
    for at, bad in enumerate([(2, "three"), (3, "three"), (0, "two"), (3, "four")]):
        assert wrong(results(*good[:at], bad, *good[at + 1 :]), 2)


def test_an_empty_check_is_whole() -> None:
    assert assemble([]).result.runs == ()
    assert decoded(encoded([]), list[CachedResult]) == list[CachedResult]()


def test_gold_has_idle_clauses(tmp_path: Path) -> None:
    """A clause without an occasion is UNKNOWN in the tables too, unless that is meant; nothing is judged again."""
    paths = [run(tmp_path, "a.jsonl")]
    said = {}
    for idle in (True, False, True):
        reader = ProcessReader()
        judged = check_lake(Lake(tmp_path / "lake"), paths, reader, CHECKER, allow_idle=idle)
        assert len(reader.read) == (idle not in said and idle)
        assert reader.published == 1
        (row,) = pq.read_table(gold_of(tmp_path / "lake") / "runs").to_pylist()
        said[idle] = row["verdict"]
        assert judged.result.verdict == row["verdict"]
    assert said == {True: "PASS", False: "UNKNOWN"}
