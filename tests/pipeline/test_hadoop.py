"""Traces and tables through Hadoop's file systems: `file:///` here, which goes the same way as `hdfs://` does."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from figures import TRACES
from purgatorio_pipeline.engine import check_traces
from purgatorio_pipeline.gold import write_gold
from purgatorio_pipeline.hadoop import HadoopPath, hadoop_path, is_uri
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.sources import NoTraces, find_on_hadoop
from purgatorio_spec.judge.process import check_files
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict

pytestmark = pytest.mark.xdist_group("spark")


def without_files(result: CheckResult) -> list[object]:
    """The runs' answers; only the files are named otherwise."""
    return [{name: value for name, value in run.as_json().items() if name != "file"} for run in result.runs]


def test_what_is_a_uri() -> None:
    """A path of Windows is none, and neither is a glob."""
    assert is_uri("file:///a")
    assert is_uri("s3a://bucket/a")
    assert not is_uri("C:\\traces")
    assert not is_uri("traces/*.parquet")


def test_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    """What the lake does with a folder, looked at from the other side; and what a file system refuses."""
    root = hadoop_path(spark, tmp_path.as_uri()) / "a b"
    (root / "one").make_folder()
    data = bytes(range(256)) * 20
    (root / "one" / "file").write_bytes(data)
    assert (tmp_path / "a b" / "one" / "file").read_bytes() == data
    assert (root / "one" / "file").size_bytes() == len(data)
    with (root / "one" / "file").open() as file:
        file.seek(250)
        assert file.read(10) == data[250:260]
        file.seek(len(data) - 3)
        assert file.read(10) == data[-3:]
    (root / "one").rename(root / "two")
    assert [one.name for one in (root / "*").matches()] == ["two"]
    assert [one.name for one in root.files()] == ["file"]
    assert (root / "two").exists()
    with pytest.raises(OSError, match=r"does not exist|cannot rename"):
        (root / "absent" / "below").rename(root / "three" / "below")
    root.remove()
    root.remove()
    assert not (tmp_path / "a b").exists()
    with pytest.raises(OSError, match="No FileSystem for scheme"):
        hadoop_path(spark, "nowhere://host/file")


def test_a_check_that_touches_no_local_path(spark: SparkSession, tmp_path: Path) -> None:
    """Traces and lake by URI: the answers and tables of local paths, a second time too, and nothing left beside."""
    names = ("kafka-buggy-no-recheck.parquet", "kafka-clean-1k.parquet")
    local = [TRACES / name for name in names]
    found = find_on_hadoop(spark, [path.as_uri() for path in local])
    assert all(isinstance(path, HadoopPath) for path in found)
    lake = hadoop_path(spark, (tmp_path / "lake").as_uri())
    (tmp_path / "lake" / "silver" / ".staged-found").mkdir(parents=True)
    checked = check_traces(spark, found, lake)
    assert without_files(checked.result) == without_files(check_files(local))
    for _ in range(2):
        write_gold(Lake(lake), checked.result, spark.table("violations"), [])
    verdicts = pq.read_table(tmp_path / "lake" / "gold" / "verdicts").to_pylist()
    assert {row["file"] for row in verdicts} == {str(path) for path in found}
    violations = pq.read_table(tmp_path / "lake" / "gold" / "violations")
    assert violations.num_rows == sum(
        clause.violations for run in checked.result.runs for clause in run.clauses.values()
    )
    assert not list((tmp_path / "lake").glob("*/.[so]*"))


def test_what_is_not_read_from_there(spark: SparkSession, tmp_path: Path) -> None:
    """JSON lines are refused by name; a typed trace that is not in order is invalid, never passed over."""
    with pytest.raises(NoTraces, match="only Parquet with the published columns"):
        find_on_hadoop(spark, [(TRACES / "kafka-clean-1k.jsonl").as_uri()])
    with pytest.raises(NoTraces, match="no trace at"):
        find_on_hadoop(spark, [(tmp_path / "absent").as_uri()])
    table = pq.read_table(TRACES / "kafka-clean-1k.parquet")
    pq.write_table(table.slice(0, table.num_rows // 2).take([0, 2, 1]), tmp_path / "torn.parquet")
    pq.write_table(table.take([0, 5, 9]), tmp_path / "gaps.parquet")
    found = find_on_hadoop(spark, [tmp_path.as_uri()])
    assert [path.name for path in found] == ["gaps.parquet", "torn.parquet"]
    runs = check_traces(spark, found, tmp_path / "lake").result.runs
    assert [run.verdict for run in runs if "gaps" in run.file] == [Verdict.INVALID_TRACE]
    assert any("from a copy on a local path" in problem for problem in runs[0].problems)
