"""Programs, programs with a change, and what a program that is driven breaks."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from purgatorio_conformance.protocol.driver import CommandSubject, command_subjects
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.contract import Subject
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "subjects"
PYTHON = (sys.executable, "-I", "-S")
"""Isolated: it starts in half the time."""
NODE = shutil.which("node") or "node"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def subject_in(mode: str, command: Sequence[str], **how: Any) -> CommandSubject:
    """The program in this mode. `how`: as of `command_subjects`."""
    return next(one for one in command_subjects(command, **how) if one.mode == mode)


def changed(program: Path, changes: Mapping[str, str], folder: Path) -> str:
    """A copy of the program in which each of these texts, which it has once, is replaced."""
    source = program.read_text(encoding="utf-8")
    for text, instead in changes.items():
        assert source.count(text) == 1, text
        source = source.replace(text, instead)
    copy = folder / f"changed{program.suffix}"
    copy.write_text(source, encoding="utf-8")
    return str(copy)


def run_of(subject: Subject, folder: Path, **how: Any) -> RunResult:
    """A run that comes to its end, judged. `how`: as of `record_runs`."""
    (record,) = record_runs([subject], folder, suffix=".jsonl", **how)
    assert record.failure is None, record.failure
    assert record.path is not None
    return check_files([record.path]).runs[0]


def broken(run: RunResult) -> set[str]:
    return {name for name, one in run.clauses.items() if one.violations}


@cache
def stranger(name: str) -> Any:
    """The class `Timer` of `strangers/NAME.txt`, made with what its bug is."""
    path = Path(__file__).parent / "strangers" / f"{name}.txt"
    made: dict[str, Any] = {"__name__": name}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), made)
    return made["Timer"]
