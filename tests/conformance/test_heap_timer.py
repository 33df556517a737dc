"""A heap in seconds passes the suite; bugs that only a crowd or an exception shows are found, in a short program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mutants.diffs import diffs
from program_text import program
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import PERIODIC, PLAN, SCOPE, of_timer, play
from purgatorio_spec.recording import JudgedRun

SLIPS: Final = {one.name: one for one in diffs(Path(__file__).with_name("heap_slips.txt"))}
PROMISE: Final = Promise(
    "timer-cancel-barrier",
    tick_ns=1_000_000,
    early_ns=1_000,
    late_ns=1_000,
    offers=("fixed-rate", "period-first"),
    catch_up="once",
)


def judged(run: str, changes: Mapping[str, str], promise: Promise = PROMISE) -> JudgedRun:
    source = program("heap_timer")
    for old, new in changes.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    made: dict[str, Any] = {"__name__": "heap_timer"}
    exec(compile(source, "heap_timer.py", "exec"), made)
    return play(run, of_timer(promise, lambda promise: made["Adapter"]()))


@pytest.mark.parametrize("run", [PLAN, PERIODIC])
@pytest.mark.parametrize(
    ("seed", "tasks"), [(1, 200), *(pytest.param(seed, 500, marks=pytest.mark.slow) for seed in range(2, 11))]
)
def test_a_sound_heap_passes(run: str, seed: int, tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated, "_SEED", seed)
    monkeypatch.setattr(gated, "_OPERATIONS", tasks)
    found = judged(run, {})
    assert not found.broken_off
    assert not [name for name in found.result.clauses if found.result.breaks(name)]


@pytest.mark.parametrize(("ends", "broken"), [("handle.cancel()", set()), ("False", {"T3"})])
def test_a_timer_with_periodic_tasks_alone_needs_no_add(
    ends: str, broken: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that runs once is a periodic one that its first run cancels; the twin forgets that it is cancelled."""
    monkeypatch.setattr(gated, "_OPERATIONS", 20)
    alone = replace(PROMISE, lacks={"past": "no period of 0"})
    changes = {"    def add(self": "    def _add(self", "return handle.cancel()": f"return {ends}"}
    found = judged(PLAN, changes, alone)
    assert {name for name in found.result.clauses if found.result.breaks(name)} >= broken
    assert bool(broken) == any(map(found.result.breaks, found.result.clauses))


@pytest.mark.parametrize(
    "slip", [pytest.param(slip, marks=[pytest.mark.slow] * (slip == "not-a-heap")) for slip in SLIPS]
)
def test_a_slip_is_found_in_a_short_program(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the smallest run that finds it; 500 tasks are what a user has."""
    run, clause, most = SLIPS[slip].says.split()

    def judged_with(tasks: int) -> JudgedRun:
        monkeypatch.setattr(gated, "_OPERATIONS", tasks)
        return judged(run, dict(SLIPS[slip].changes[0].words))

    if clause == "-":
        found = judged_with(200)
        assert not any(map(found.result.breaks, found.result.clauses))
        return
    found = next(one for one in map(judged_with, (60, 200, 500)) if one.result.breaks(clause))
    assert found.narrowed is not None
    shown, calls = found.narrowed(clause)
    assert not shown.stopped
    assert 0 < len(calls) <= int(most), calls


def test_an_adapter_that_raises_is_shown_by_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of the driver that only reads fails in the whole plan: the program is as short as any other."""
    monkeypatch.setattr(gated, "_OPERATIONS", 120)
    slip = {"return self.live\n": "return [None][self.live // 4]\n"}
    found = judged(PLAN, slip)
    assert "your adapter's size() raised IndexError" in found.broken_off
    assert len(found.hung) <= 6
    assert found.hung[-1] == "read the sizes"
    assert "size() raised" in judged(SCOPE, slip | {"// 4": "// 2"}).broken_off
