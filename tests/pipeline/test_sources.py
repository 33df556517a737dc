"""The sources that a user names, and the traces that are found there."""

import os
from pathlib import Path

import pytest

from purgatorio_pipeline.lake import MARK
from purgatorio_pipeline.sources import NoTraces, find_traces
from purgatorio_spec.trace.record import Header, Implementation
from purgatorio_spec.trace.writer import TraceWriter


def trace(path: Path) -> Path:
    with TraceWriter(path, Header("r", Implementation("x", "1", "Python"), "asyncio")):
        pass
    return path


def test_files_folders_and_globs(tmp_path: Path) -> None:
    """Each file once, whatever names it, and in a folder no other than traces by name, and bare Parquet."""
    below = tmp_path / "below"
    below.mkdir()
    first, second = trace(tmp_path / "a.jsonl"), trace(below / "b.parquet")
    (tmp_path / "README.md").write_text("no trace")
    (tmp_path / ".c.jsonl.partial").write_text("half a trace")
    (bare := below / "c").write_bytes(second.read_bytes())
    (below / "_SUCCESS").write_bytes(second.read_bytes())
    (below / "LICENSE").write_text("no trace")
    assert find_traces([str(tmp_path)]) == [first, second, bare]
    assert find_traces([str(first), str(tmp_path / "*.jsonl")]) == [first]


def test_an_empty_page_says_what_is_missing(tmp_path: Path) -> None:
    """A typing error in a path must not look like a clean check of nothing."""
    with pytest.raises(NoTraces, match=r"the folder has no file of these kinds: Parquet, \.jsonl"):
        find_traces([str(tmp_path)])


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe may never get a writer: it is not opened, and the message says what it is."""
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(NoTraces, match="is a pipe or a device: a trace is read from a file"):
        find_traces([str(pipe)])


def test_a_folder_of_our_own_is_no_folder_of_traces(tmp_path: Path) -> None:
    """The JSON of a campaign is not a broken trace. The traces of a campaign have a folder of their own."""
    (tmp_path / MARK).write_text("campaign")
    with pytest.raises(NoTraces, match="name the traces themselves"):
        find_traces([str(tmp_path)])
    made = tmp_path / "traces" / "a.jsonl"
    made.parent.mkdir()
    trace(made)
    with pytest.raises(NoTraces, match=r"its traces are in .*traces"):
        find_traces([str(tmp_path)])
    assert find_traces([str(tmp_path / "traces")]) == [made]
