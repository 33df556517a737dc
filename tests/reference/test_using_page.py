"""The page about use says what the code does."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from pathlib import Path

import pytest

import purgatorio
import purgatorio.timer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "using.md"


@pytest.mark.parametrize("example", ["timeouts.py", "asyncio_timeouts.py"])
def test_the_output_on_the_page_is_the_example_s(example: str) -> None:
    """What a reader sees is what the program prints."""
    command = [sys.executable, str(ROOT / "examples" / example)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert f"```text\n{printed}```" in PAGE.read_text()


def test_every_class_on_the_page_is_there() -> None:
    """By its name."""
    named = set(re.findall(r"`([A-Z][A-Za-z]+[a-z][A-Za-z]*)[`(]", PAGE.read_text()))
    assert len(named) > 8
    assert not [
        name
        for name in named
        if not any(hasattr(place, name) for place in (purgatorio, purgatorio.timer, builtins))
    ]
