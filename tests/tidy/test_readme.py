"""The README's first screen is what really happens: the example project is installed and run, as a stranger would."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.makers.marked import listing, with_part
from program_text import ran

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
EXAMPLE = ROOT / "examples" / "toy-wheel"
FAILED = re.compile(r"^FAILED test_toy_wheel\.py::(\w+)::test_conformance\[(.*)\]", re.MULTILINE)


pytestmark = pytest.mark.xdist_group("readme")  # `output` is made once


def block(name: str) -> str:
    """The text of the fenced block between two markers of the README."""
    return listing(README.read_text(), name)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of the installed example. Its wheel comes from where pip put it, not from the folder."""
    folder = tmp_path_factory.mktemp("example")
    site = folder / "site"
    shutil.copytree(
        EXAMPLE, folder / "source", ignore=shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
    )
    install = "-m pip install --quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check --target"
    subprocess.run([sys.executable, *install.split(), str(site), str(folder / "source")], check=True)
    shutil.move(folder / "source" / "toy_wheel.py", folder / "toy_wheel.not_here")
    told = ran(
        [sys.executable, "-m", "pytest", "-rA", "--color=no"],
        cwd=folder / "source",
        env={**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": "", "COLUMNS": "80"},
    )
    assert told.returncode == 1, told.stdout + told.stderr
    return told.stdout


def failure(output: str) -> str:
    found = re.search(r"= FAILURES =+\n_+ [^\n]* _+\n(.*?)^_{3,} ", output, re.DOTALL | re.MULTILINE)
    assert found is not None, output
    return found[1]


def test_the_failure_is_the_one_that_the_command_prints(output: str, request: pytest.FixtureRequest) -> None:
    """`--refresh-golden` writes the failure."""
    text = failure(output)
    if request.config.getoption("--refresh-golden"):
        README.write_text(with_part(README.read_text(), "failure", f"```text\n{text}```\n"))
    assert block("failure") == text


def test_only_the_toy_fails_and_only_t1(output: str) -> None:
    """The negative control, with the right character, passes every test that is not skipped."""
    failed = FAILED.findall(output)
    assert failed
    assert {(suite, test.split("-")[3]) for suite, test in failed} == {("TestToyWheel", "T1")}
    assert output.count("PASSED test_toy_wheel.py::TestMendedWheel") == 9
    assert "UNKNOWN" not in output


def test_the_wheel_is_the_one_of_the_example() -> None:
    """The ten lines of the README stand in the file that is run, and its twin differs by one character."""
    source = (EXAMPLE / "toy_wheel.py").read_text()
    assert block("wheel") in source
    toy, mended = re.findall(r"        if deadline.*?task\)\n", source, re.DOTALL)
    assert mended == toy.replace("<=", "<")
