"""Seeds for tests that race threads: each xdist worker has its own."""

from __future__ import annotations

import os

import pytest

from stress.worker_seeds import SeedShare, share_of_worker


@pytest.fixture(scope="session")
def stress_seeds() -> SeedShare:
    """No two workers of one run get the same seed; PURGATORIO_STRESS_SEED, an integer, starts elsewhere."""
    return share_of_worker(os.environ, int(os.environ.get("PURGATORIO_STRESS_SEED", "1")))
