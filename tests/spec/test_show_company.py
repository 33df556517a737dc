"""The other events of a counterexample: the calls that may have caused the violation, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatorio_pipeline.judging import judge_in_process
from purgatorio_spec.show.company import CALLS_SHOWN
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.text import render
from spec.trace_builder import MS, Trace


def _shown(made: Trace, clause: str, path: Path) -> Counterexample:
    """The same from the whole table and from a fold of the file."""
    (example,) = (
        one for key, one in judge_in_process([made.write(path)]).examples.items() if key.clause == clause
    )
    in_memory = made.example(clause)
    assert [row.i for row in in_memory.rows] == [row.i for row in example.rows]
    return example


def _lost(*, beside: bool) -> Trace:
    """A check comes while another thread evaluates under another key (KAFKA-6653), or, the control, under a key that
    the operation does not have; a third check is over long before."""
    made = Trace("pending-flag")
    made.check("k")
    made.register("a", delay_ns=10 * MS)
    other = made.start("check_and_complete", keys=["k" if beside else "other"], th="busy")
    made.ready("a")
    made.both("check_and_complete", keys=["k"], th="c", out=0)
    made.end(other, 0)
    made.wait(20 * MS)
    made.expire("a")
    return made


@pytest.mark.parametrize("beside", [True, False])
def test_an_open_check_of_another_thread_is_shown(beside: bool, tmp_path: Path) -> None:
    """It is what held the lock; a check of another key, and one that was over before, are not."""
    example = _shown(_lost(beside=beside), "O4", tmp_path / "a.jsonl")
    others = [(row.th, row.ph) for row in example.rows if row.th == "busy"]
    assert others == ([("busy", "call"), ("busy", "ret")] if beside else [])
    checks = [row.f for row in example.rows if row.f == "check_and_complete" and row.ph == "call"]
    assert len(checks) == 1 + beside


def test_a_cancel_of_the_key_is_shown(tmp_path: Path) -> None:
    """A cancel that raised while the operation was watched: its effect is unknown."""
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    fire = made.start("timer_fire", "a", th="exec")
    made.end(made.start("cancel_for_key", keys=["k"], th="other"), err="IllegalStateException")
    made.complete("a", th="exec")
    made.complete("a", th="other")
    made.end(fire)
    example = _shown(made, "O1", tmp_path / "a.jsonl")
    assert ("cancel_for_key", "IllegalStateException") in {(row.f, row.err) for row in example.rows}


def test_the_adds_that_met_are_shown(tmp_path: Path) -> None:
    """Of a lost task those of others whose adds were under way with its own, or whose runs ended with an error; a task
    that came later is not, nor more than a few."""
    made = Trace("timer")
    calls = [
        made.start("timer_add", f"t{n}", th=f"caller-{n}", delay_ns=10 * MS) for n in range(CALLS_SHOWN + 3)
    ]
    lost = made.start("timer_add", "lost", th="caller", delay_ns=10 * MS)
    for call in (*calls, lost):
        made.end(call)
        made.events[-1] = made.events[-1]._replace(deadline_t=10 * MS)
    made.add("later", delay_ns=10 * MS)
    made.wait(1_000 * MS)
    for n in range(CALLS_SHOWN + 3):
        made.fire(f"t{n}")
    made.fire("later")
    made.gauge(None, None)
    example = _shown(made, "T3", tmp_path / "a.jsonl")
    others = {row.id for row in example.rows} - {"lost"}
    assert len(others) == CALLS_SHOWN
    assert "later" not in others


@pytest.mark.parametrize("told", [True, False])
def test_what_the_program_wrote_to_standard_error_is_shown(told: bool, tmp_path: Path) -> None:
    """Beside the trace of a driven run lies what the program said; frames of stacks are left out."""
    made = _lost(beside=True)
    path = made.write(tmp_path / "a.jsonl")
    if told:
        stack = "\tat org.acme.Reaper.run(Reaper.java:7)\n" * 50
        text = f'Exception in thread "reaper" java.lang.IllegalStateException: injected\n{stack}'
        path.with_name(f"{made.header.run}.stderr").write_text(text, encoding="utf-8")
    shown = [render(one) for one in judge_in_process([path]).examples.values()]
    assert shown
    assert all(
        ("IllegalStateException: injected" in one.replace("\n         ", " ")) == told for one in shown
    )
    assert not any("Reaper.java" in one for one in shown)
