"""Seeds for tests that race threads: each xdist worker has its own. And the kit for the JVM, compiled once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from conformance.kit_classes import kit_classes


@pytest.fixture(scope="session")
def stress_seeds() -> Iterator[int]:
    """No two workers of one run get the same seed; PURGATORIO_STRESS_SEED, an integer, starts elsewhere."""
    first = int(os.environ.get("PURGATORIO_STRESS_SEED", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return count(first + worker, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """`java`, and the classes of the kit, the example and the cases. Who asks for it is in the group `jvm-kit`."""
    return kit_classes(tmp_path_factory)
