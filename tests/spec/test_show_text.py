"""A violation as text. Every kind of text is a file, so that a diff shows each change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from golden import Golden
from purgatorio_spec.durations import milliseconds
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import WIDTH
from spec.shown_trace import (
    completed_twice,
    fired_after_completion,
    fired_early,
    garbage_kept,
    lost_when_locked,
    lost_with_a_flag,
    miscounted,
)
from spec.trace_builder import Trace

CASES: dict[str, tuple[Callable[[], Trace], str]] = {
    "O1": (completed_twice, "O1"),
    "O4-locked": (lost_when_locked, "O4"),
    "O4-pending-flag": (lost_with_a_flag, "O4"),
    "O7-check": (miscounted, "O7"),
    "P1": (garbage_kept, "P1"),
    "T1": (fired_early, "T1"),
    "T4": (fired_after_completion, "T4"),
}


@pytest.mark.parametrize("name", CASES)
def test_text_is_the_golden_one(name: str, golden: Golden) -> None:
    """The words, the lanes and the marks of each kind of counterexample change only on purpose."""
    make, clause = CASES[name]
    golden(f"spec/golden/{name}.txt", render(make().example(clause)))


@pytest.mark.parametrize("name", CASES)
def test_text_fits_eighty_columns(name: str) -> None:
    """A CI log and a small terminal cut or wrap wider lines. Only the command to paste may be wider."""
    make, clause = CASES[name]
    wide = [line for line in render(make().example(clause)).splitlines() if len(line) > WIDTH]
    assert all("purgatorio check" in line for line in wide), wide


def test_many_threads_take_a_column_of_names() -> None:
    """Eight columns of ten characters show nothing, so the thread's name is at the start of its line."""
    made = Trace()
    made.register("op-1", ["k1"], th="worker-0")
    made.ready("op-1", th="worker-0")
    for number in range(1, 7):
        made.both("check_and_complete", out=0, keys=["k1"], th=f"worker-{number}")
        made.attempt("op-1", 0, th=f"worker-{number}")
    example = made.example("O4")
    text = render(example)
    assert "thread" not in text, "few threads have a lane each"
    made = Trace()
    made.register("op-1", ["k1"], th="worker-0")
    made.both("force_complete", "op-1", out=1, th="worker-0")
    for number in range(1, 7):
        made.both("force_complete", "op-1", out=1, th=f"worker-{number}")
    text = render(made.example("O1"))
    assert "\n  line     ms  thread\n" in text
    assert all(f"worker-{number}" in text for number in range(7))


def test_times_below_a_microsecond_are_not_all_zeros() -> None:
    assert [milliseconds(ns) for ns in (0, 5, -60, 999, 1_000, 1_999, 2_500_000)] == [
        "0.000", "0.000005", "-0.000060", "0.000999", "0.001", "0.001", "2.500",
    ]  # fmt: skip
