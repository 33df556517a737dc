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
TOLD = [*(ROOT / "tests" / "wire").glob("test_*.py"), *(ROOT / "tests" / "wire" / "days").glob("*.txt")]
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


def named_clauses(text: str) -> set[str]:
    """The clauses of the broker that a text names, "B1 to B3" being three."""
    found = set(re.findall(r"\bB\d{3}\b", text))
    for first, last in re.findall(r"\bB(\d{3}) to B(\d{3})\b", text):
        found |= {f"B{number}" for number in range(int(first), int(last) + 1)}
    return found


def test_every_clause_is_named_by_a_test() -> None:
    """Each clause has a test that names it."""
    text = "\n".join(path.read_text() for path in TOLD)
    assert sorted(BROKER_CLAUSES.keys() - named_clauses(text)) == []


def test_a_clause_that_no_test_names_is_found() -> None:
    assert named_clauses("B101 to B103, and B105.") == {"B101", "B102", "B103", "B105"}
    assert BROKER_CLAUSES.keys() - named_clauses("B101")
