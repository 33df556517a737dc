"""The kit for the JVM, compiled once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.kit_classes import kit_classes


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """`java`, and the classes of the kit, the example and the test cases. Tests that use it are in the group
    `jvm-kit`."""
    return kit_classes(tmp_path_factory)
