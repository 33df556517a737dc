"""What the screen needs to know of each run, as one row of a small table beside the events."""

from __future__ import annotations

from typing import Final

from benchmarks.duckdb_screen import CLAUSES_OF_OPERATIONS, LIMIT
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.run import Run

RUN_COLUMNS: Final[dict[str, str]] = {
    "run_key": "INT",
    **dict.fromkeys(("whole", "dropped"), "BOOLEAN"),
    **dict.fromkeys(("end_t", "early_ns", "late_ns"), "BIGINT"),
    **dict.fromkeys(
        ("claimed_on_return", "completes_beside", "barrier", "records_ready", "records_fire"), "BOOLEAN"
    ),
    **{f"judges_{name}": "BOOLEAN" for name in CLAUSES_OF_OPERATIONS},
}
"""Column to SQL type, in order."""


def run_row(key: int, run: Run) -> tuple[int | bool | None, ...]:
    """The row of one run. Times beyond `LIMIT` stand for it: the screen marks whatever comes near it."""
    return (
        key,
        run.whole,
        run.dropped,
        _limited(run.facts.end_t),
        _limited(run.early_ns or 0),
        _limited(run.late_ns or 0),
        run.profile.claimed_on_return,
        run.profile.completes_beside,
        run.profile.cancel_is_barrier,
        run.records("ready"),
        run.records("timer_fire"),
        *(CLAUSES[name].skipped(run) is None for name in CLAUSES_OF_OPERATIONS),
    )


def _limited(time_ns: int) -> int:
    return max(-LIMIT, min(LIMIT, time_ns))
