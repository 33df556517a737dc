"""The page of conformance: every test of Kafka's list has a row, every row a test, and every test exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<kafka>\w+\..+?)` \| (?P<shown>.*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+\.py|\w+\.txt)::((?:\w+::)?\w+)`")
LISTED = set((ROOT / "tests" / "reference" / "kafka_tests.txt").read_text().splitlines())
"""What Kafka's own tests of these parts are called. A test of many cases is listed by case."""


def rows(page: str) -> dict[str, list[tuple[str, str]]]:
    """By test of Kafka: the files and tests that its row names."""
    return {row["kafka"]: NAMED.findall(row["shown"]) for row in ROW.finditer(page)}


def forgotten(page: str) -> list[str]:
    return sorted(LISTED - rows(page).keys())


def unlisted(page: str) -> list[str]:
    """A row for something that is not in the list."""
    return sorted(rows(page).keys() - LISTED)


def unshown(page: str) -> list[str]:
    return [kafka for kafka, named in rows(page).items() if not named]


def missing(page: str) -> list[str]:
    """Tests that the page names and that are not there."""
    gone = []
    for file, name in NAMED.findall(page):
        found = [*(ROOT / "tests").glob(f"*/{file}"), *(ROOT / "tests").glob(f"*/days/{file}")]
        source = found[0].read_text() if found else ""
        if not all(
            re.search(rf"^\s*((def|class) )?{part}\b", source, re.MULTILINE) for part in name.split("::")
        ):
            gone.append(f"{file}::{name}")
    return gone


def page() -> str:
    return (ROOT / "docs" / "measured" / "conformance.md").read_text()


def test_no_row_is_forgotten() -> None:
    """A row without a test would be a claim without a proof, and a test without a row was forgotten."""
    assert len(LISTED) >= 110
    assert (forgotten(page()), unlisted(page()), unshown(page()), missing(page())) == ([], [], [], [])


def test_what_is_wrong_with_a_page_is_found() -> None:
    """The negative controls: each row is removed, one row is not listed, one names nothing, one names something
    unknown."""
    for row in ROW.finditer(page()):
        assert forgotten(page().replace(row[0], "")) == [row["kafka"]]
    assert unlisted("| `TimerTest.testNothing` | `test_timers.py::test_the_mock_timer` |") == [
        "TimerTest.testNothing"
    ]
    assert unshown("| `TimerTest.testAlreadyExpiredTask` | by hand |") == ["TimerTest.testAlreadyExpiredTask"]
    assert missing("| `X.y` | `test_timers.py::test_that_is_not_there` |")
