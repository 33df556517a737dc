"""Traces and tables through Hadoop's file systems: `file:///` here, which goes the same way as `hdfs://` does."""

from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.lake_reader import gold_of
from pipeline.test_watch import many
from purgatorio_pipeline.hadoop import HadoopPath, hadoop_path, is_uri
from purgatorio_pipeline.incremental.check import Manifest, check_lake
from purgatorio_pipeline.incremental.on_spark import SparkReader
from purgatorio_pipeline.incremental.spark_fold import check_files as check_on_spark
from purgatorio_pipeline.judging import FileCounts
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.report import sarif
from purgatorio_pipeline.sources import NoTraces, find_on_hadoop, find_traces
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict
from spec.broken_cases import CASES
from spec.figures import TRACES

pytestmark = pytest.mark.xdist_group("spark")


def without_files(result: CheckResult) -> list[object]:
    """The runs' answers; only the files are named otherwise."""
    return [replace(run, file="") for run in result.runs]


def test_what_is_a_uri() -> None:
    """A path of Windows is none, and neither is a glob."""
    assert is_uri("file:///a")
    assert is_uri("s3a://bucket/a")
    assert not is_uri("C:\\traces")
    assert not is_uri("traces/*.parquet")
    assert sarif._uri("hdfs://nn:8020/a b.jsonl") == "hdfs://nn:8020/a%20b.jsonl"


def test_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    """The operations of a lake on a folder, checked from outside, and the refusals of a file system."""
    root = hadoop_path(spark, tmp_path.as_uri()) / "a b"
    data = bytes(range(256)) * 20
    (root / "one" / "file").write_bytes(data)
    assert (tmp_path / "a b" / "one" / "file").read_bytes() == data
    assert (root / "one" / "file").size_bytes() == len(data)
    assert (root / "one" / "file").read_bytes() == data
    with pytest.raises(OSError, match="already exists"):
        (root / "one" / "file").write_bytes(b"other", overwrite=False)
    assert (root / "one" / "file").read_bytes() == data
    with pytest.raises(OSError, match="does not exist"):
        (root / "absent").read_bytes()
    assert [one.name for one in (root / "*").matches()] == ["one"]
    assert [one.name for one in root.files()] == ["file"]
    assert (root / "one").exists()
    root.remove()
    root.remove()
    assert not (tmp_path / "a b").exists()
    with pytest.raises(OSError, match="No FileSystem for scheme"):
        hadoop_path(spark, "nowhere://host/file")


def test_a_check_that_touches_no_local_path(spark: SparkSession, tmp_path: Path) -> None:
    """By URI, results and tables are those of local paths. A second commit at the same time is refused."""
    names = ("kafka-buggy-no-recheck.parquet", "kafka-clean-1k.parquet")
    local = [TRACES / name for name in names]
    found = find_on_hadoop(spark, [path.as_uri() for path in local])
    assert all(isinstance(path, HadoopPath) for path in found)
    lake = hadoop_path(spark, (tmp_path / "lake").as_uri())
    reader = SparkReader()
    reader._spark = spark
    result = check_lake(Lake(lake), found, reader, "this one").result
    assert without_files(result) == without_files(check_files(local))
    gold = gold_of(tmp_path / "lake")
    verdicts = pq.read_table(gold / "verdicts").to_pylist()
    assert {row["file"] for row in verdicts} == {str(path) for path in found}
    violations = pq.read_table(gold / "violations")
    assert violations.num_rows == sum(
        clause.violations for run in result.runs for clause in run.clauses.values()
    )
    with pytest.raises(OSError, match="already exists"):
        Lake(lake).commit(Lake(lake).manifests()[-1], Manifest())
    assert check_lake(Lake(lake), found, reader, "this one").files == FileCounts(known=2)


def both_ways(spark: SparkSession, folder: Path) -> tuple[CheckResult, CheckResult]:
    """The traces of a folder by path, read in this process, and by URI on Spark."""
    local = check_files(find_traces([str(folder)]))
    found = find_on_hadoop(spark, [f"file://{folder}"])
    return local, check_on_spark(spark.sparkContext, found)


def broken_lines(result: CheckResult) -> list[dict[str, object]]:
    return [{**asdict(one), "file": Path(one.file).name} for one in result.broken]


@pytest.mark.slow
def test_files_come_to_the_same_by_uri(spark: SparkSession, tmp_path: Path) -> None:
    """Plain, packed and broken in every way: as a reader of the local file says it, in quarantine too."""
    folder = tmp_path / "a b"
    folder.mkdir()
    for number, (file, _, write) in enumerate(CASES.values()):
        write(folder / f"{number}-{file}")
    many("bad", broken=True).write(folder / "whole.jsonl.gz")
    local, remote = both_ways(spark, folder)
    assert len(local.runs) == len(CASES) + 1
    assert [named(one, folder) for one in without_files(remote)] == [
        named(one, folder) for one in without_files(local)
    ]
    assert broken_lines(remote) == broken_lines(local)
    assert {run.verdict for run in remote.runs} == {Verdict.INVALID_TRACE, Verdict.UNKNOWN, Verdict.VIOLATED}


def named(run: object, folder: Path) -> str:
    return str(run).replace(folder.as_uri(), "").replace(f"file:{folder}", "").replace(str(folder), "")


def test_what_is_not_read_from_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that Spark ignores or takes for patterns, and files that are too large, are refused."""
    refused = {
        "_run.jsonl": "Spark ignores a file of this name",
        "a,b.jsonl": "the name of a file must contain none of",
    }
    (tmp_path / "refused").mkdir()
    whole = (TRACES / "kafka-clean-1k.jsonl").read_bytes()
    for name, why in refused.items():
        (tmp_path / "refused" / name).write_bytes(whole)
        with pytest.raises(NoTraces, match=why):
            find_on_hadoop(spark, [f"file://{tmp_path}/refused/{name}"])
    with pytest.raises(NoTraces, match="no trace at"):
        find_on_hadoop(spark, [(tmp_path / "absent").as_uri()])
    table = pq.read_table(TRACES / "kafka-clean-1k.parquet")
    (tmp_path / "typed").mkdir()
    pq.write_table(table.slice(0, table.num_rows // 2).take([0, 2, 1]), tmp_path / "typed" / "torn.parquet")
    pq.write_table(table.take([0, 5, 9]), tmp_path / "typed" / "gaps.parquet")
    local, remote = both_ways(spark, tmp_path / "typed")
    assert without_files(remote) != []
    assert [run.verdict for run in remote.runs] == [run.verdict for run in local.runs]
    assert remote.runs[1].verdict is Verdict.INVALID_TRACE
    monkeypatch.setattr("purgatorio_pipeline.sources.MAX_BYTES", len(whole))
    with pytest.raises(NoTraces, match="only from a local path"):
        find_on_hadoop(spark, [(TRACES / "kafka-clean-1k.jsonl").as_uri()])
