"""The README's first screen is what really happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from purgatorio_spec.judge.process import check_files
from purgatorio_spec.show.counterexample import explain_files
from purgatorio_spec.show.text import render

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TOY = ROOT / "examples" / "toy_wheel.py"


def block(name: str) -> str:
    """The text of the fenced block between two markers of the README."""
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```\n<!-- /{name} -->", README.read_text(), re.DOTALL)
    assert found is not None, f"the README has no block {name!r}"
    return found[1]


def failure(toy: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a stranger sees who runs the example and checks its trace."""
    monkeypatch.chdir(folder)
    subprocess.run([sys.executable, str(toy), "toy.jsonl"], check=True)
    examples = explain_files(check_files([Path("toy.jsonl")]))
    return "\n".join(render(example) for example in examples.values())


def test_the_failure_is_the_one_that_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """`--refresh-golden` writes it anew."""
    text = failure(TOY, tmp_path, monkeypatch)
    if request.config.getoption("--refresh-golden"):
        new = README.read_text().replace(f"```text\n{block('failure')}```", f"```text\n{text}```", 1)
        README.write_text(new)
    assert block("failure") == text


def test_the_wheel_is_the_one_of_the_example() -> None:
    """The ten lines of the README stand in the file that is run."""
    assert block("wheel") in TOY.read_text()


def test_the_wheel_with_the_right_character_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: with `<` nothing is found."""
    mended = tmp_path / "mended.py"
    mended.write_text(TOY.read_text().replace("deadline <= self.now + 1", "deadline < self.now + 1"))
    assert failure(mended, tmp_path, monkeypatch) == ""
