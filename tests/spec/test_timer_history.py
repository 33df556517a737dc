"""The model of concurrent histories: what may be passes, its twin does not."""

import pytest

from purgatorio_spec.oracle.timer_history import Call, TimerRules, judge_task, possible_sizes

LOOSE, STRICT, DRIVEN = TimerRules(), TimerRules(strict=True), TimerRules(driven=True)


def _add(begin: int, end: int, due_ms: int, error: str = "") -> Call:
    return Call("add", begin, end, 0, 0, "a", due_ms=due_ms, error=error)


def _call(do: str, begin: int, end: int, at_ms: int, task: str = "", *answer: str) -> Call:
    return Call(do, begin, end, at_ms, at_ms, task, answer=answer)


def _fired(at: int, at_ms: int) -> Call:
    return Call("fired", at, at, at_ms, at_ms, "a")


@pytest.mark.parametrize(
    ("legal", "broken", "clause", "rules"),
    [
        pytest.param(
            (_add(0, 1, 3), _call("drain", 2, 3, 3), _fired(4, 3)),
            (_add(0, 1, 3), _call("drain", 2, 3, 2), _fired(4, 2)),
            "T1",
            LOOSE,
            id="early",
        ),
        pytest.param(
            (_add(0, 1, 3), _call("drain", 2, 3, 2)),
            (_add(0, 1, 3), _call("drain", 2, 3, 3)),
            "T3",
            LOOSE,
            id="left by a drain, or not run",
        ),
        pytest.param(
            (_add(0, 5, 3), _call("drain", 2, 3, 3)),
            (_add(0, 1, 3), _call("drain", 2, 3, 3)),
            "T3",
            LOOSE,
            id="an add beside the drain may be later",
        ),
        pytest.param(
            (_add(0, 1, 3), _call("cancel", 2, 5, 3, "a"), _call("drain", 3, 4, 3), _fired(6, 3)),
            (_add(0, 1, 3), _call("cancel", 2, 3, 3, "a"), _call("drain", 4, 5, 3), _fired(6, 3)),
            "T3",
            LOOSE,
            id="cancelled before the drain",
        ),
        pytest.param(
            (
                _add(0, 1, 3), _call("drain", 2, 3, 3), _fired(4, 3), _add(5, 6, 4), _call("drain", 7, 8, 4),
                _fired(9, 4),
            ),
            (_add(0, 1, 3), _call("drain", 2, 3, 3), _fired(4, 3), _fired(5, 3)),
            "T3",
            LOOSE,
            id="twice",
        ),
        pytest.param(
            (_add(0, 3, 9), _call("stop", 1, 2, 0, "", "a")),
            (_add(0, 3, 9), _call("stop", 1, 2, 0), _call("stop", 4, 5, 0, "", "a")),
            "T3",
            STRICT,
            id="an add that a stop has not seen, and did not refuse",
        ),
        pytest.param(
            (_call("close", 0, 1, 0), _add(2, 3, 9, "closed")),
            (_call("close", 0, 1, 0), _add(2, 3, 9)),
            "T3",
            STRICT,
            id="an add after the close",
        ),
        pytest.param(
            (_add(0, 1, 3), _fired(2, 3)),
            (_add(0, 1, 3), _fired(2, 4)),
            "T2",
            DRIVEN,
            id="a timer that drives itself is late",
        ),
        pytest.param(
            (_add(0, 1, 3), _call("drain", 2, 3, 3), _fired(4, 3)),
            (_add(0, 1, 3), Call("drain", 2, 3, 3, 3, refused=True), _call("drain", 4, 5, 3)),
            "T3",
            LOOSE,
            id="refused and never offered again",
        ),
    ],
)  # fmt: skip
def test_a_legal_history_passes_and_its_twin_does_not(
    legal: tuple[Call, ...], broken: tuple[Call, ...], clause: str, rules: TimerRules
) -> None:
    assert judge_task("a", legal, rules) == ""
    assert judge_task("a", broken, rules).partition(":")[0] == clause


def test_the_size_is_exact_where_only_one_order_is_possible() -> None:
    assert possible_sizes(["a"], (_add(0, 1, 3),), LOOSE, 0) == (1, 1)
    assert possible_sizes(["a"], (_add(0, 2, 3), _call("cancel", 1, 3, 0, "a")), LOOSE, 0) == (0, 1)
