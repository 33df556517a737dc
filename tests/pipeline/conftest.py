"""The one Spark session that the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses Spark runs on one worker: a JVM each would cost more than it saves.

    First of all: xdist reads the mark in the same hook.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from purgatorio_pipeline.session import start_session

    session = start_session("local[2]", quick=True, memory="1g")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
