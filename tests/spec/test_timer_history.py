"""The model of concurrent histories: what may be passes, its twin does not."""

from dataclasses import replace

import pytest

from purgatorio_spec.oracle.timer_history import TimerCall, TimerRules, judge_task, possible_sizes

LOOSE, STRICT, DRIVEN = TimerRules(), TimerRules(strict=True), TimerRules(driven=True)
RECALLS = TimerRules(recalls=True)


def calls(text: str) -> tuple[TimerCall, ...]:
    """`DO BEGIN-END TIME`, and the answer. The time of an `add` is the deadline of its task, and the add may fail."""
    found = []
    for one in text.split(", "):
        do, span, ms, *more = one.split()
        begin, end = (int(at) for at in (span.split("-") * 2)[:2])
        at_ms = 0 if do == "add" else int(ms)
        call = TimerCall(do, begin, end, at_ms, at_ms, "a" if do in ("add", "cancel", "fired") else "")
        if do == "add":
            call = replace(call, due_ms=int(ms), error=" ".join(more))
        elif more == ["refused"]:
            call = replace(call, refused=True)
        else:
            call = replace(call, answer=tuple(more))
        found.append(call)
    return tuple(found)


CASES = {
    "early": (LOOSE, "add 0-1 3, drain 2-3 3, fired 4 3", "T1: add 0-1 3, drain 2-3 2, fired 4 2"),
    "left by a drain, or not run": (LOOSE, "add 0-1 3, drain 2-3 2", "T3: add 0-1 3, drain 2-3 3"),
    "an add beside the drain may be later": (
        LOOSE, "add 0-5 3, drain 2-3 3", "T3: add 0-1 3, drain 2-3 3",
    ),
    "cancelled before the drain": (
        LOOSE,
        "add 0-1 3, cancel 2-5 3, drain 3-4 3, fired 6 3",
        "T3: add 0-1 3, cancel 2-3 3, drain 4-5 3, fired 6 3",
    ),
    "twice": (
        LOOSE,
        "add 0-1 3, drain 2-3 3, fired 4 3, add 5-6 4, drain 7-8 4, fired 9 4",
        "T3: add 0-1 3, drain 2-3 3, fired 4 3, fired 5 3",
    ),
    "an add that a stop has not seen, and did not refuse": (
        STRICT, "add 0-3 9, stop 1-2 0 a", "T3: add 0-3 9, stop 1-2 0, stop 4-5 0 a",
    ),
    "an add after the close": (STRICT, "close 0-1 0, add 2-3 9 closed", "T3: close 0-1 0, add 2-3 9"),
    "a timer that drives itself is late": (DRIVEN, "add 0-1 3, fired 2 3", "T2: add 0-1 3, fired 2 4"),
    "a loop does not run what was cancelled after the drain": (
        RECALLS,
        "add 0-1 3, drain 2-3 3, cancel 4-5 3",
        "T3: add 0-1 3, drain 2-3 3, cancel 4-5 3, fired 6 3",
    ),
    "a loop runs a task once that was moved after the drain": (
        RECALLS,
        "add 0-1 3, drain 2-3 3, add 4-5 9, drain 6-7 9, fired 8 9",
        "T1: add 0-1 3, drain 2-3 3, add 4-5 9, fired 6 3",
    ),
    "refused and never offered again": (
        LOOSE, "add 0-1 3, drain 2-3 3, fired 4 3", "T3: add 0-1 3, drain 2-3 3 refused, drain 4-5 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_legal_history_passes_and_its_twin_does_not(case: str) -> None:
    rules, legal, twin = CASES[case]
    clause, broken = twin.split(": ")
    assert judge_task("a", calls(legal), rules) == ""
    assert judge_task("a", calls(broken), rules).partition(":")[0] == clause


def test_the_size_is_exact_where_only_one_order_is_possible() -> None:
    assert possible_sizes(["a"], calls("add 0-1 3"), LOOSE, 0) == (1, 1)
    assert possible_sizes(["a"], calls("add 0-2 3, cancel 1-3 0"), LOOSE, 0) == (0, 1)
