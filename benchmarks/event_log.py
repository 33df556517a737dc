"""What the tasks of a Spark application did, from the event log that Spark itself writes (JSON lines)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SLOTS: Final = 2
"""Tasks that run at a time in the benchmarks; a stage of one task is a hot one."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: what it was part of, and of each task how long it ran and how many rows it read."""

    part_of: str
    task_ms: Sequence[int]
    task_rows: Sequence[int]

    @property
    def longest_s(self) -> float:
        """How long the longest task ran."""
        return max(self.task_ms) / 1000

    @property
    def longest_share(self) -> float:
        """The longest task's share of the time of all."""
        return max(self.task_ms) / max(1, sum(self.task_ms))

    @property
    def rows_share(self) -> float:
        """The share of the rows that the task with the most of them read."""
        return max(self.task_rows) / max(1, sum(self.task_rows))

    @property
    def beyond_s(self) -> float:
        """How much longer the longest task ran than it would have if all had run the same time."""
        return (max(self.task_ms) - sum(self.task_ms) / max(SLOTS, len(self.task_ms))) / 1000


def settings(folder: Path) -> dict[str, str]:
    """The environment that makes a PySpark process write its event log into a folder."""
    told = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.resolve().as_uri(),
    }
    options = " ".join(f"--conf {name}={value}" for name, value in told.items())
    return {"PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell"}


def read_stages(folder: Path) -> list[Stage]:
    """The stages of the applications whose logs are in a folder, in the order of their numbers."""
    part_of: dict[int, str] = {}
    tasks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for path in sorted(folder.rglob("events_*")):
        with path.open() as lines:
            for line in lines:
                _take(json.loads(line), part_of, tasks)
    return [
        Stage(part_of.get(number, ""), [ms for ms, _ in some], [rows for _, rows in some])
        for number, some in sorted(tasks.items())
    ]


def _take(event: dict[str, object], part_of: dict[int, str], tasks: dict[int, list[tuple[int, int]]]) -> None:
    stages, metrics, properties = event.get("Stage IDs"), event.get("Task Metrics"), event.get("Properties")
    if (
        event["Event"] == "SparkListenerJobStart"
        and isinstance(stages, list)
        and isinstance(properties, dict)
    ):
        for stage in stages:
            part_of.setdefault(
                stage, str(properties.get("spark.job.description") or "the driver's questions")
            )
    if event["Event"] == "SparkListenerTaskEnd" and isinstance(metrics, dict):
        rows = (
            metrics["Input Metrics"]["Records Read"] + metrics["Shuffle Read Metrics"]["Total Records Read"]
        )
        tasks[int(str(event["Stage ID"]))].append((metrics["Executor Run Time"], rows))
