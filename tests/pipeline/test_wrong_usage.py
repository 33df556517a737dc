"""Wrong usage of every command: status 2, before any work, and a sentence that says what to type."""

import shlex
import sys
from pathlib import Path

import pytest

from pipeline.test_commands import CLEAN, one_task, run

TESTS = Path(__file__).resolve().parents[1]
CASES = [
    line.split(" -> ")
    for line in Path(__file__).with_name("wrong_usage.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("command", "words"), CASES)
def test_wrong_usage_is_said(command: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    places = {
        "tmp": tmp_path / "new",
        "one": one_task(tmp_path / "one"),
        "clean": CLEAN,
        "empty": tmp_path / "empty.jsonl",
        "csv": tmp_path / "log.csv",
        "bad": f"{sys.executable} {TESTS / 'conformance' / 'bad_subject.py'}",
    }
    (tmp_path / "new").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "log.csv").write_text("id;in;out\n" + "a;1;2\n" * 9)
    done = run(*shlex.split(command.format(**places)))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    said = " ".join(done.stderr.replace("│", " ").split())
    assert words.format(**places) in said
    assert "checking" not in said or "nosuch" in said
    if "Nearest: " in said:
        assert len(said.split("Nearest: ")[1].split(".")[0].split(", ")) <= 3, "not all sixty"
    assert said.count("not JSON") == command.startswith("convert {csv}"), "said once"
    assert ("Did you mean" in said) == ("Did you mean" in words)
    assert not list((tmp_path / "new").iterdir())
