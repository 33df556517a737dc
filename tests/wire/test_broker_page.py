"""The page about the broker says what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_wire.clause.registry import BROKER_CLAUSES, public_clauses

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "broker.md"
NAMED = re.compile(r"`(test_broker_\w+\.py)::(test_\w+)`")


@pytest.mark.parametrize("example", ["broker_requests.py", "share_fetch.py"])
def test_the_output_on_the_page_is_the_example_s(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / example)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed in PAGE.read_text()


def test_the_clauses_of_the_broker_are_public() -> None:
    """Beside those of traces and of the code, with one sentence each and no id twice."""
    everything = public_clauses()
    assert len(everything) == len(CLAUSES) + len(CODE_CLAUSES) + len(BROKER_CLAUSES)
    assert everything["B105"].promise == BROKER_CLAUSES["B105"] != ""


def test_the_tests_on_the_page_exist() -> None:
    named = NAMED.findall(PAGE.read_text())
    assert named
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / "tests" / "wire" / file).read_text()
    ]
    assert not missing
