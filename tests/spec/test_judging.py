"""The cost of judging a long history of one task, and times near the limits of 64 bits."""

import sys
from pathlib import Path

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import MS, Trace


def _calls_to_judge(rounds: int) -> int:
    """The number of Python calls to judge a task that is added so many times, and fires or is cancelled in turn."""
    made = Trace("asyncio")
    for turn in range(rounds):
        made.add("a", delay_ns=1000)
        made.wait(1000)
        (made.fire if turn % 2 else made.cancel)("a")
    calls = 0

    def count(_frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert made.judge().verdict == Verdict.PASS
    finally:
        sys.setprofile(None)
    return calls


def test_a_task_that_is_added_again_and_again_costs_at_most_the_square() -> None:
    """(The cost was cubic: minutes for a heartbeat of 800 rounds.)"""
    few, many = map(_calls_to_judge, (50, 150))
    assert many < 10 * few


@pytest.mark.parametrize("profile", ["locked", "pending-flag"])
def test_both_paths_agree_on_times_that_are_far_apart(profile: str, tmp_path: Path) -> None:
    """The difference of these times needs more than 64 bits."""
    made = Trace(profile)
    made.t = -6 * 10**18
    made.register("a", delay_ns=MS)
    made.t = 6 * 10**18
    made.gauge(9, 9, "gauge")
    path = made.write(tmp_path / "a.jsonl")
    fast, plain = (check_files([path], full=full).runs[0].clauses for full in (False, True))
    assert fast == plain
    assert fast["P1"].verdict == Verdict.VIOLATED
