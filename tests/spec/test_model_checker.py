"""The checker itself: each kind of property on models whose answer is known by hand."""

import pytest

from purgatorio_spec.model.checker import check
from purgatorio_spec.model.fairness import components
from purgatorio_spec.model.packed import Bits, Layout, sorted_records
from purgatorio_spec.model.shape import DEADLOCK, Model, Move, Trace, render
from purgatorio_spec.verdict import Verdict

State = tuple[int, int]


def counter(limit: int, **properties: object) -> Model[int]:
    """0, 1, ... limit; one actor."""
    model: Model[int] = Model(
        name="counter",
        bound=f"up to {limit}",
        columns=("up",),
        initial=(0,),
        steps=lambda n: [(0, n + 1)] if n < limit else [],
        describe=lambda before, actor, after: Move("up", f"{before} to {after}"),
        done=lambda n: n == limit,
    )
    for name, value in properties.items():
        object.__setattr__(model, name, value)
    return model


def two_bits(first_moves: bool, fair: bool, **properties: object) -> Model[State]:
    """Actor a toggles its bit for ever; actor b may set its bit once (or only while a's bit is set)."""

    def steps(state: State) -> list[tuple[int, State]]:
        a, b = state
        found = [(0, (1 - a, b))]
        if not b and (first_moves or a):
            found.append((1, (a, 1)))
        return found

    model: Model[State] = Model(
        name="bits",
        bound="2 bits",
        columns=("a", "b"),
        initial=((0, 0),),
        steps=steps,
        describe=lambda before, actor, after: Move("ab"[actor], f"{before} to {after}"),
        done=lambda state: False,
        fair=fair,
    )
    for name, value in properties.items():
        object.__setattr__(model, name, value)
    return model


def test_a_broken_invariant_is_shown_by_the_shortest_path() -> None:
    """Breadth first means that no shorter path exists; the path is the product."""
    answer = check(counter(9, always={"below 3": lambda n: n < 3}))
    finding = answer.finding("below 3")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert [step.text for step in finding.trace.steps] == ["0 to 1", "1 to 2", "2 to 3"]
    assert answer.states == 10


def test_a_limit_that_is_reached_is_unknown_and_never_pass() -> None:
    """A truncated search proves nothing about the claims that it did not refute."""
    answer = check(counter(1000, always={"below 2000": lambda n: n < 2000}), limit_states=10)
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.finding(DEADLOCK).verdict is Verdict.UNKNOWN


def test_a_stopped_search_leaves_the_rest_unknown() -> None:
    """Claims that were refuted before the limit stay refuted. The others are open."""
    properties = {"below 3": lambda n: n < 3, "below 7": lambda n: n < 7}
    answer = check(counter(9, always=properties), limit_states=5)
    assert answer.finding("below 3").verdict is Verdict.VIOLATED
    assert answer.finding("below 7").verdict is Verdict.UNKNOWN


def test_a_state_without_steps_that_is_not_done_is_a_deadlock() -> None:
    """The end of a program is none."""
    assert check(counter(3)).finding(DEADLOCK).verdict is Verdict.PASS
    stuck = check(counter(3, done=lambda n: False)).finding(DEADLOCK)
    assert stuck.verdict is Verdict.VIOLATED
    assert stuck.trace is not None
    assert len(stuck.trace.steps) == 3


def test_sometimes_fails_when_nothing_is_seen() -> None:
    """It is what makes a vacuous claim visible."""
    seen = {"is 2": lambda n: n == 2, "is 20": lambda n: n == 20}
    answer = check(counter(3, sometimes=seen))
    assert answer.finding("is 2").verdict is Verdict.PASS
    assert answer.finding("is 20").verdict is Verdict.VIOLATED


def test_a_step_property_ends_with_the_step_that_breaks_it() -> None:
    """Refinement is a property of steps, so its path ends with one."""
    finding = check(counter(5, always_step={"not from 2": lambda b, a, n: b != 2})).finding("not from 2")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert finding.trace.steps[-1].text == "2 to 3"


def test_weak_fairness_moves_an_actor_that_can_always_move() -> None:
    """b can move in every state: with fairness it must, without it need not."""
    eventually = {"b is set": lambda state: state[1] == 1}
    assert check(two_bits(True, True, eventually=eventually)).verdict is Verdict.PASS
    unfair = check(two_bits(True, False, eventually=eventually)).finding("b is set")
    assert unfair.verdict is Verdict.VIOLATED
    assert unfair.trace is not None
    assert unfair.trace.loop
    assert {step.column for step in unfair.trace.loop} == {"a"}


def test_weak_fairness_does_not_move_an_actor_that_is_blocked_now_and_then() -> None:
    """b can move only while a's bit is set: weak fairness is not strong fairness."""
    eventually = {"b is set": lambda state: state[1] == 1}
    finding = check(two_bits(False, True, eventually=eventually)).finding("b is set")
    assert finding.verdict is Verdict.VIOLATED


def test_possible_finds_the_trap() -> None:
    """AG EF: once b is set, (0, 0) is out of reach."""
    answer = check(two_bits(True, True, possible={"back": lambda s: s == (0, 0), "b": lambda s: s[1] == 1}))
    assert answer.finding("back").verdict is Verdict.VIOLATED
    assert answer.finding("b").verdict is Verdict.PASS


def test_symmetry_and_fairness_are_refused_together() -> None:
    """Symmetry renames actors; a fairness verdict on renamed actors would be wrong."""
    model = two_bits(True, True, eventually={"b": lambda s: s[1] == 1}, canonical=lambda s: s)
    with pytest.raises(ValueError, match="symmetry renames actors"):
        check(model)


def test_components_of_a_known_graph() -> None:
    """Tarjan on two cycles with a bridge."""
    edges = {1: [(0, 2)], 2: [(0, 1), (0, 3)], 3: [(0, 4)], 4: [(0, 3)], 5: [(0, 5)]}
    found = {frozenset(component) for component in components(edges)}
    assert found == {frozenset({1, 2}), frozenset({3, 4}), frozenset({5})}


def test_the_table_has_a_column_a_thread_and_marks_the_loop() -> None:
    """The text is the product; columns without a step are left out."""
    trace = Trace((Move("a", "lock"), Move("c", "look")), (Move("a", "spin"),))
    assert render(trace, ("a", "b", "c")).splitlines() == [
        "    a     c",
        "    ----  ----",
        "  1 lock",
        "  2       look",
        "    and then for ever:",
        "  3 spin",
    ]


def test_fields_do_not_overlap_and_refuse_large_values() -> None:
    """A packed state is only as good as its layout."""
    layout = Layout()
    low, high = layout.add("low", 3), layout.add("high", 2)
    state = high.put(low.put(0, 5), 2)
    assert (low.get(state), high.get(state)) == (5, 2)
    with pytest.raises(ValueError, match="does not fit"):
        Bits("small", 0, 2).put(0, 4)


def test_the_symmetry_sorts_records_and_keeps_the_rest() -> None:
    """Equal records in any order have one representative."""
    canonical = sorted_records(2, 3, 3)

    def packed(a: int, b: int, c: int) -> int:
        return 0b11 | a << 2 | b << 5 | c << 8 | 1 << 11

    assert canonical(packed(5, 1, 3)) == canonical(packed(3, 5, 1)) == packed(1, 3, 5)
