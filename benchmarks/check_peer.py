"""One way of checking the traces of a folder, in a process of its own: `python -m ... spark|process FOLDER`.

Prints violations by clause as JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.judge.result import CheckResult

MEMORY: Final = "1800m"
"""The driver's heap: with the rest of the JVM and the Python workers the tree stays below 3 GiB."""

Counts = dict[str, int]


def check_with_spark(paths: list[Path]) -> Counts:
    """The pipeline."""

    from purgatorio_pipeline.incremental.spark_fold import check_files
    from purgatorio_pipeline.session import start_context

    spark = start_context("local[2]", memory=MEMORY, quick=True)
    counts = _counts(check_files(spark, paths))
    spark.stop()
    return counts


def check_in_process(paths: list[Path]) -> Counts:
    """The process engine."""
    from purgatorio_spec.check import check_files

    return _counts(check_files(paths))


def _counts(result: CheckResult) -> Counts:
    found: Counter[str] = Counter()
    for run in result.runs:
        found.update({name: clause.violations for name, clause in run.clauses.items() if clause.violations})
    return dict(sorted(found.items()))


ENGINES: Final[dict[str, Callable[[list[Path]], Counts]]] = {
    "spark": check_with_spark,
    "process": check_in_process,
}

if __name__ == "__main__":
    print(json.dumps(ENGINES[sys.argv[1]](find_traces(sys.argv[2:]))))
