"""The tutorials are run: their files are written, the failure is that of the page, and the corrected code passes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from program_text import python, ran
from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", re.DOTALL)
FAILURE = re.compile(r"(<!-- failure -->\n```text\n)(.*?)(<!-- /failure -->)", re.DOTALL)
MENDED = re.compile(r"<!-- (wrong|right) -->\n```python\n(.*?)```\n", re.DOTALL)
SHOWN = re.compile(r"= FAILURES =+\n_+ [^\n]* _+\n(.*?)^replay ", re.DOTALL | re.MULTILINE)
AGAIN = re.compile(r"^again    pytest '(.*)'$", re.MULTILINE)


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pytest` in a folder, as a stranger runs it."""
    return ran(
        [sys.executable, "-m", "pytest", "--color=no", *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "80"},
    )


@pytest.mark.parametrize("name", ["tutorial-timer.md", "tutorial-purgatory.md"])
def test_a_tutorial_works(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """`--refresh-golden` writes the failure."""
    page = DOCS / name
    text = page.read_text()
    files = FILE.findall(text)
    assert len(files) == 2
    for file, code in files:
        (tmp_path / file).write_text(code)
    failed = suite(tmp_path, "-x")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    shown, again = SHOWN.search(failed.stdout), AGAIN.search(failed.stdout)
    assert shown is not None
    assert again is not None
    if request.config.getoption("--refresh-golden"):
        page.write_text(FAILURE.sub(lambda found: f"{found[1]}{shown[1]}```\n{found[3]}", text))
        text = page.read_text()
    told = FAILURE.search(text)
    assert told is not None
    assert told[2] == f"{shown[1]}```\n"
    mending = dict(MENDED.findall(text))
    subject = tmp_path / files[0][0]
    assert subject.read_text().count(mending["wrong"]) == 1
    subject.write_text(subject.read_text().replace(mending["wrong"], mending["right"]))
    passed = suite(tmp_path, again[1])
    assert passed.returncode == 0, passed.stdout
    assert " passed" in passed.stdout


def test_a_log_becomes_a_trace(tmp_path: Path) -> None:
    """The converter of docs/recording.md: one timer fires early, one though it was cancelled."""
    code = re.search(r"<!-- log -->\n```python\n(.*?)```", (DOCS / "recording.md").read_text(), re.DOTALL)
    assert code is not None
    log = "".join(
        f"2026-11-01T12:00:00.{ms:03}000 {line}\n"
        for ms, line in (
            (0, "worker-1 armed t-0 100"),
            (1, "worker-2 armed t-1 100"),
            (2, "worker-1 armed t-2 100"),
            (50, "worker-1 cancelled t-2"),
            (90, "reaper fired t-1"),
            (101, "reaper fired t-0"),
            (103, "reaper fired t-2"),
        )
    )
    made = python(code[1], input=log, check=True)
    (tmp_path / "run.jsonl").write_text(made.stdout)
    found = check_files([tmp_path / "run.jsonl"]).runs[0].clauses
    assert {name: one.violations for name, one in found.items() if one.verdict is Verdict.VIOLATED} == {
        "T1": 1,
        "T4": 1,
    }
    assert found["T2"].verdict is Verdict.PASS
    assert found["T2"].occasions == 2
