"""The page about the broker says what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from purgatorio_spec.table.catalogue import page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "broker.md"
NAMED = re.compile(r"`(test_broker_\w+\.py)::(test_\w+)`")


def test_the_output_on_the_page_is_the_example_s() -> None:
    """What a reader sees is what the program prints."""
    command = [sys.executable, str(ROOT / "examples" / "broker_requests.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed in PAGE.read_text()


def test_the_tables_on_the_page_are_the_specification_s() -> None:
    """One text a clause."""
    assert page() in PAGE.read_text()


def test_the_tests_on_the_page_exist() -> None:
    """What is said to be shown is."""
    named = NAMED.findall(PAGE.read_text())
    assert named
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / "tests" / "reference" / file).read_text()
    ]
    assert not missing
