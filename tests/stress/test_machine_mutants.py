"""Mutants that a program makes: each is another function, is put in and taken out, and some are surely killed."""

import os
from pathlib import Path

import pytest

from docs.makers.apart import apart
from docs.makers.machine_changes import (
    HOT,
    LAYERS,
    Change,
    Fate,
    changes,
    fates_of,
    sampled,
    searches_of_module,
)
from docs.makers.machine_mutants import machine_page, summary, survivors, survivors_of
from purgatorio.timer.bucket import TimerTaskList

pytestmark = pytest.mark.xdist_group("machine-mutants")  # all changes are made once

BUCKET = "purgatorio.timer.bucket"


def _named(module: str, function: str, what: str) -> Change:
    return next(one for one in changes(module) if (one.function, one.what) == (function, what))


def test_every_hot_module_has_changes_and_each_has_a_name_of_its_own() -> None:
    names = [one.name for module in HOT for one in changes(module)]
    assert len(set(names)) == len(names) > 1_500
    assert all(searches_of_module(module) for module in HOT)


def test_a_change_is_in_and_out_again() -> None:
    before = TimerTaskList.flush.__code__
    change = next(one for one in changes(BUCKET) if one.function == "TimerTaskList.flush")
    with change.applied():
        assert TimerTaskList.flush.__code__ is change.code is not before
    assert TimerTaskList.flush.__code__ is before


def test_a_smaller_sample_begins_a_larger_one_and_every_module_is_in_it() -> None:
    names = [one.name for one in sampled(100, 1)]
    assert names[:30] == [one.name for one in sampled(30, 1)]
    assert {one.module for one in sampled(len(HOT), 2)} == set(HOT)


def test_a_change_that_loses_an_operation_is_killed_and_its_row_is_kept(tmp_path: Path) -> None:
    lost = "without: self._operations.append(operation)"
    change = _named("purgatorio.delayed.watchers", "Watchers.watch", lost)
    (fate,) = fates_of([change], 5, 1, kept=tmp_path / "rows")
    assert fate.layer == "scenarios"
    assert fate.clause
    with (tmp_path / "rows").open("a") as torn:
        torn.write('{"module": "purgatorio.ti')
    assert fates_of([change], 5, 1, kept=tmp_path / "rows") == [fate]
    assert (tmp_path / "rows").read_text().count("\n") == 1


def test_a_process_that_dies_ends_no_other() -> None:
    assert apart(os._exit, 3) is None
    assert apart(abs, -3) == 3


@pytest.mark.slow
def test_a_change_that_never_ends_is_reported_and_blocks_no_other() -> None:
    change = _named(
        "purgatorio.timer.heap_timer", "HeapTimer.advance_clock", "without: entry = self._queue.poll()"
    )
    assert fates_of([change], 2, 1)[0].clause


def test_the_page_explains_every_survivor() -> None:
    named = next(iter(survivors().values()))
    fates = [
        Fate(BUCKET, named.name, "", "", "", 9.0),
        Fate(BUCKET, "nobody", "", "", "", 1.0),
        Fate(BUCKET, "killed", "drawn", "T3", "drawn:", 1.0),
    ]
    assert {one.kind for one in survivors_of(fates).values()} == {named.kind, "not judged"}
    page = machine_page(fates, 1, 10)
    assert named.name.removeprefix("purgatorio.") in page
    assert "`nobody`" in page
    assert "11 CPU seconds" in summary(fates)[1]


def test_what_is_said_of_survivors_is_of_changes_that_there_are() -> None:
    assert set(survivors()) <= {one.name for module in HOT for one in changes(module)}


@pytest.mark.slow
def test_a_sample_of_a_hundred_is_mostly_killed() -> None:
    """A surviving mutant that is not judged yet may be equivalent, so the figure is not exact."""
    fates = fates_of(sampled(100, 1), 10, 1, jobs=2)
    assert {fate.layer for fate in fates} <= {"", "process", *LAYERS}
    assert sum(bool(fate.layer) for fate in fates) >= 65, "\n".join(summary(fates))
