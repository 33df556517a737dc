"""A folder that is not ours is never touched, and two do not work in one lake at once."""

import errno
from pathlib import Path

import pytest

from pipeline.test_commands import run
from purgatorio_pipeline.lake import Lake

CLEAN = Path(__file__).resolve().parents[2] / "examples" / "traces" / "kafka-clean-1k.jsonl"


@pytest.mark.parametrize(
    "mine", ["gold/mine.parquet", "bronze/x", "batches/000000001/y", "notes.txt", ".hidden"]
)
def test_a_folder_of_another_program_is_refused(mine: str, tmp_path: Path) -> None:
    """Before Spark is started: status 2, and every file is as it was."""
    file = tmp_path / "out" / mine
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    done = run("check", str(CLEAN), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "choose an empty folder" in done.stderr
    assert file.read_text() == "mine"
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [file]


def test_an_empty_folder_becomes_ours_and_stays_so(tmp_path: Path) -> None:
    """The folder is created, used, and used again with its files."""
    lake = Lake(tmp_path / "new" / "lake")
    with lake.owned("check"):
        lake.write_bytes("gold/x", b"ours")
    with lake.owned("check"):
        assert lake.read_bytes("gold/x") == b"ours"
    with pytest.raises(OSError, match="do not belong to `purgatorio watch`"), lake.owned("watch"):
        pass


def test_the_second_of_two_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    """A lock that ends with the process: a killed process blocks no other."""
    lake = Lake(tmp_path / "lake")
    with lake.owned("check"):
        with pytest.raises(OSError, match="another purgatorio") as refused, lake.owned("check"):
            pass
        assert refused.value.errno == errno.EBUSY
    with lake.owned("check"):
        pass
