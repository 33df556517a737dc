"""Each way to read each container: VIOLATED without the lock of the writer, PASS with it."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.foreign import kept_values
from purgatorio_stress.foreign.explored import _Program, explore_foreign
from purgatorio_stress.foreign.shown_containers import CONTAINERS, Reach
from purgatorio_stress.foreign.world import World

HERE = str(Path(__file__).parent / "foreign_code")


@pytest.fixture(scope="module")
def program() -> _Program:
    return _Program(World(), ["containers"], "containers:dict__for_loop", [HERE], False)


@pytest.fixture(scope="module")
def hidden() -> _Program:
    return _Program(World(), ["blind_spots"], "blind_spots:Local", [HERE], False)


def _verdict(program: _Program, name: str) -> Verdict:
    program._made_by = name
    done = explore_dpor(program, Limits(500, 60))
    for found in done.found:
        seen = found.broken[0].seen
        assert seen.startswith(("AssertionError", "RuntimeError", "ValueError")), f"{name}: {seen}"
    return done.verdict


def _pairs(program: _Program) -> list[str]:
    pairs: list[str] = program.loader.adapter().PAIRS
    return pairs


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.slow), 23], ids=["all", "a sample"])
def test_every_container_by_every_path(program: _Program, part: int) -> None:
    """A sample is every 23rd pair: the containers one after the other, each by other paths."""
    pairs = _pairs(program)[::part]
    wrong = [pair for pair in pairs if _verdict(program, pair) is not Verdict.VIOLATED]
    wrong += [pair for pair in pairs if _verdict(program, f"{pair}__locked") is not Verdict.PASS]
    assert not wrong
    assert part > 1 or len(Counter(pair.split("__")[0] for pair in pairs)) == 16


def test_a_race_is_found_where_c_code_hides_it(hidden: _Program) -> None:
    """With a lock there is no race, and an object of one thread has none."""
    names = [kind.__name__ for kind in hidden.loader.adapter().RACY]
    wrong = [name for name in names if _verdict(hidden, name) is not Verdict.VIOLATED]
    hidden.world.uncontrolled.clear()
    wrong += [name for name in names if _verdict(hidden, f"{name}__locked") is not Verdict.PASS]
    assert not hidden.world.uncontrolled
    assert not wrong
    assert len(names) > 20
    assert {_verdict(hidden, name) for name in ("Local", "OwnMethods")} == {Verdict.PASS}
    guarded = sys.version_info < (3, 12)
    assert _verdict(hidden, "CachedProperty") is (Verdict.PASS if guarded else Verdict.VIOLATED)


def test_what_other_code_reads_during_a_write_is_no_pass() -> None:
    """Not a race, because it is unknown what the code reads. The version with a lock is PASS."""
    explored = explore_foreign(["blind_spots"], "blind_spots:Printed", Limits(500, 60), path=[HERE])
    assert explored.verdict is Verdict.UNKNOWN
    assert "Point.x, which other code may read during a write: blind_spots.py:" in explored.uncontrolled[0]
    locked = explore_foreign(["blind_spots"], "blind_spots:Printed__locked", Limits(500, 60), path=[HERE])
    assert (locked.verdict, locked.uncontrolled) == (Verdict.PASS, ())


def test_a_cached_property_without_its_lock_is_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """As since Python 3.12."""
    monkeypatch.setattr(kept_values, "_WITH_LOCK", False)
    program = _Program(World(), ["blind_spots"], "blind_spots:CachedProperty", [HERE], False)
    assert _verdict(program, "CachedProperty") is Verdict.VIOLATED


def test_attributes_that_object_sets_are_seen() -> None:
    explored = explore_foreign(["planted"], "planted:SetsByObject", Limits(500, 60), path=[HERE])
    assert explored.verdict is Verdict.VIOLATED


def test_the_table_shows_objects_that_are_not_followed(
    program: _Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: a container is found only where it is given as itself."""

    def itself(self: Reach, thing: object) -> tuple[object, ...]:
        return (thing,) if isinstance(thing, CONTAINERS) else ()

    monkeypatch.setattr(Reach, "containers", itself)
    wrong = {
        pair
        for pair in _pairs(program)
        if pair.startswith(("Dict__s", "deque__s")) and _verdict(program, pair) is not Verdict.VIOLATED
    }
    assert {"Dict__super_for", "deque__stored"} <= wrong


def test_an_object_of_an_unknown_class_is_one_location() -> None:
    explored = explore_foreign(["planted"], "planted:SharesUnknown", Limits(500, 60), path=[HERE])
    assert explored.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("name", "verdict"), [("UsesNothing", Verdict.UNKNOWN), ("UsesIt", Verdict.PASS)])
def test_a_package_of_which_no_line_was_run_is_no_pass(name: str, verdict: Verdict) -> None:
    explored = explore_foreign(["not_run"], f"uses_not_run:{name}", Limits(500, 60), path=[HERE])
    assert explored.verdict is verdict
    assert ("no line of not_run was run: call it" in explored.exploration.limit) == (
        verdict is Verdict.UNKNOWN
    )
