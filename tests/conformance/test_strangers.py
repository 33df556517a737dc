"""Small timers of strangers (`strangers/*.txt`): each passes when it is sound, and its bug is found by one clause."""

from collections.abc import Set
from dataclasses import replace
from typing import Final

import pytest

from conformance.driven import broken, stranger
from conformance.test_protocol_gates import only
from purgatorio_conformance.protocol import periodic
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import PERIODIC, SCOPE, of_timer, play
from purgatorio_spec.recording import JudgedRun

STEPS: Final = "steps"
_LACKS: Final = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
_COUNTED: Final = Promise(
    "timer", MS, early_ns=0, wheel_size=20, threads=True, lacks={"raising": "what a task raises comes out"}
)
_UNCOUNTED: Final = replace(_COUNTED, wheel_size=None, lacks={**_COUNTED.lacks, "size": "it is not counted"})
_SMALL: Final = Promise("timer", MS, early_ns=0, late_ns=MS, wheel_size=16, lacks=_LACKS)
_LIMITED: Final = replace(
    _SMALL,
    profile="timer-cancel-barrier",
    lacks={name: _LACKS[name] for name in ("size", "between-ticks", "raising")},
    offers=("fixed-rate",),
    catch_up="restart",
)
RESETS: Final = Promise(
    "timer-cancel-barrier",
    MS,
    early_ns=0,
    late_ns=MS,
    wheel_size=8,
    lacks={"size": "it does not count", "raising": "it is a toy"},
    offers=("reset",),
)


def judged(name: str, way: str, promise: Promise, **how: object) -> JudgedRun:
    return play(way, of_timer(promise, lambda _: stranger(name)(**how)))


@pytest.mark.parametrize("sound", [True, False])
@pytest.mark.parametrize(
    ("name", "way", "promise", "clause", "programs"),
    [
        ("two_lists", STEPS, replace(_UNCOUNTED, wheel_size=20), "T3", None),
        ("pools", STEPS, _UNCOUNTED, "T3", "cancel-fire-add"),
        ("hands_over", STEPS, _COUNTED, "T5", "add-behind-move"),
        ("flushed", STEPS, replace(_UNCOUNTED, wheel_size=20, late_ns=0), "T3", "add-behind-move"),
        ("at_once", STEPS, _UNCOUNTED, "T3", "adds-that-are-due"),
        ("alarms", STEPS, replace(_UNCOUNTED, offers=("reset",)), "T11", "expire-reset"),
        ("counts", STEPS, _COUNTED, "T5", 300),
        ("behind", SCOPE, _SMALL, "T1", None),
        ("stale", SCOPE, _SMALL, "T1", None),
        ("walled", SCOPE, _SMALL, "T2", None),
        ("debouncer", PERIODIC, RESETS, "T11", None),
        ("owners", PERIODIC, RESETS, "T11", None),
        ("limiter", PERIODIC, _LIMITED, "T9", None),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_a_stranger_s_bug_is_found(
    name: str,
    way: str,
    promise: Promise,
    clause: str,
    programs: str | int | None,
    sound: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By all programs that are written by hand, by the named one, or by so many random programs alone."""
    monkeypatch.setattr(gated, "_DRAWN", 0)
    monkeypatch.setattr(gated, "_SCOPE", 60)
    monkeypatch.setattr(gated, "_OPERATIONS", 100 if name == "owners" else 250)
    monkeypatch.setattr(periodic, "REACHES_FROM", 100)
    if programs is not None:
        only(monkeypatch, str(programs))
    if isinstance(programs, int):
        monkeypatch.setattr(gated, "_DRAWN", programs)
    run = judged(name, way, promise, sound=sound)
    assert not run.broken_off
    assert way != STEPS or not run.unfinished
    found = broken(run.result)
    assert clause in found if not sound else not found


@pytest.mark.parametrize(
    ("way", "sound", "found"), [(PERIODIC, True, set()), (PERIODIC, False, {"T11"}), (SCOPE, True, set())]
)
def test_a_reset_may_have_the_delay_of_the_add(
    way: str, sound: bool, found: Set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a crowd, which waits for the deadlines that the resets set. The control does not declare it, so it gets
    resets with other delays."""
    monkeypatch.setattr(gated, "_OPERATIONS", 100)
    monkeypatch.setattr(periodic, "REACHES_FROM", 100)
    clean = judged("watchdog", way, replace(RESETS, offers=("reset", "reset-same")), sound=sound)
    assert (broken(clean.result), bool(clean.broken_off)) == (found, False)
    assert "calls ended with an error" in str(judged("watchdog", way, RESETS, sound=sound).broken_off)
