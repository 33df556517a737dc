"""The table of conformance names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(test_\w+\.py)::((?:\w+::)?test_\w+)`")


def missing(page: str) -> list[str]:
    """Tests that the page names and that are not there."""
    gone = []
    for file, name in NAMED.findall(page):
        path = ROOT / "tests" / "reference" / file
        source = path.read_text() if path.exists() else ""
        if not all(re.search(rf"(def|class) {part}\b", source) for part in name.split("::")):
            gone.append(f"{file}::{name}")
    return gone


def test_every_row_has_its_test() -> None:
    """A row without a test would be a claim without a proof."""
    page = (ROOT / "docs" / "conformance.md").read_text()
    assert len(NAMED.findall(page)) >= 28
    assert not missing(page)


def test_a_missing_test_is_found() -> None:
    """The twin."""
    assert missing("| `X.y` | `test_timers.py::test_that_is_not_there` |")
