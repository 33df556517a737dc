"""Seeds for tests that race threads: each xdist worker has its own."""

import os
from collections.abc import Iterator
from itertools import count

import pytest


@pytest.fixture(scope="session")
def stress_seeds() -> Iterator[int]:
    """No two workers of one run get the same seed; PURGATORIO_STRESS_SEED, an integer, starts elsewhere."""
    first = int(os.environ.get("PURGATORIO_STRESS_SEED", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return count(first + worker, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
