"""Mutants that a program makes: each is another function, is put in and taken out, and some are surely killed."""

import pytest

from purgatorio.timer.bucket import TimerTaskList
from purgatorio_stress.kill_matrix.by_machine import HOT, Change, changes, fate_of, sampled

BUCKET = changes("purgatorio.timer.bucket")


def _named(function: str, what: str) -> Change:
    return next(one for one in BUCKET if one.function == function and one.what == what)


def test_every_hot_module_has_changes_and_each_has_a_name_of_its_own() -> None:
    assert all(changes(module) for module in HOT)
    assert len({one.name for one in BUCKET}) == len(BUCKET) > 50


def test_a_change_is_in_and_out_again() -> None:
    before = TimerTaskList.flush.__code__
    change = next(one for one in BUCKET if one.function == "TimerTaskList.flush")
    with change.applied():
        assert TimerTaskList.flush.__code__ is change.code is not before
    assert TimerTaskList.flush.__code__ is before


def test_a_sample_is_the_same_for_a_seed() -> None:
    modules = ["purgatorio.timer.bucket", "purgatorio.timer.wheel"]
    assert [one.name for one in sampled(5, 1, modules)] == [one.name for one in sampled(5, 1, modules)]


def test_a_change_that_loses_a_task_is_killed_by_a_drawn_program() -> None:
    fate = fate_of(_named("TimerTaskList._append", "without: entry.bucket.set(self)"), 30, 1)
    assert fate.clause
    assert fate.program.startswith("drawn:")


@pytest.mark.slow
def test_a_sample_of_a_hundred_is_mostly_killed() -> None:
    """Those that no promise can tell from the reference are among the alive, so this is no exact figure."""
    fates = [fate_of(change, 5, 1) for change in sampled(100, 1)]
    assert sum(bool(fate.clause) for fate in fates) >= 60
