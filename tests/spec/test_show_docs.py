"""The counterexample in the documentation is the output of the code."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_documented_counterexample_is_the_golden_one() -> None:
    """An example that drifted from the tool teaches the wrong thing."""
    golden = (ROOT / "tests/spec/golden/O4-locked.txt").read_text(encoding="utf-8")
    documented = (ROOT / "docs/reading-a-report.md").read_text(encoding="utf-8")
    assert f"```text\n{golden}```\n" in documented
