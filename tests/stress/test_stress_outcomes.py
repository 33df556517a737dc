"""Outcome tables: the grades, and the texts of a table."""

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.harness.campaign import SEVERAL, chosen, why_not_raced
from purgatorio_stress.harness.outcome import REACHABLE, SERIAL, OutcomeTable
from purgatorio_stress.printed import Grade
from purgatorio_stress.scenario.outcome import NO_LABEL, outcome_of, serial_outcomes
from purgatorio_stress.scenario.registry import SCENARIOS
from stress.explored_outcomes import explored_outcomes

LONG = {"three-events/pending-flag", "re-entrant-completion/pending-flag", "re-entrant-completion/locked",
        "reader-writer-chain/pending-flag", "reader-writer-chain/locked", "emptying-key/locked"}  # fmt: skip
"""About a second each."""


def table(serial: str = "a", reachable: str = "ab") -> OutcomeTable:
    return OutcomeTable("s/locked", frozenset(serial), frozenset(reachable))


def grades(of: OutcomeTable) -> dict[str, Grade]:
    return {line.outcome: line.grade for line in of.outcomes}


def verdict_of(of: OutcomeTable) -> Verdict:
    """As it is now: the type checker remembers what a property was before."""
    return of.verdict


def test_each_grade_has_its_reason() -> None:
    """A serial outcome is acceptable. An outcome of an interleaving is interesting. Other outcomes are unknown."""
    rounds = table()
    for label in "aab":
        rounds.add({label}, [], overlapped=True, batch=0, where="")
    assert grades(rounds) == {"a": Grade.ACCEPTABLE, "b": Grade.INTERESTING}
    assert verdict_of(rounds) is Verdict.PASS
    rounds.add({"c"}, [], overlapped=True, batch=0, where="")
    assert grades(rounds)["c"] is Grade.UNKNOWN
    assert verdict_of(rounds) is Verdict.UNKNOWN


def test_what_breaks_a_clause_is_forbidden_and_stands_first() -> None:
    """However rare it is; and the place of the first one is kept."""
    rounds = table()
    for _ in range(5):
        rounds.add({"a"}, [], overlapped=False, batch=0, where="")
    rounds.add({"a"}, [Broken("O4", "op", "left")], overlapped=False, batch=3, where="here")
    rounds.add({"a"}, [Broken("O4", "op", "left")], overlapped=False, batch=4, where="there")
    first = rounds.outcomes[0]
    assert (first.grade, first.clause, first.outcome, first.count) == (Grade.FORBIDDEN, "O4", "left", 2)
    assert (rounds.first_batch, rounds.first_forbidden) == (3, "here")
    assert verdict_of(rounds) is Verdict.VIOLATED


def test_each_forbidden_outcome_says_how_it_is_repeated() -> None:
    """By the batch in which this outcome was seen first. Allowed outcomes have no command."""
    rounds = table()
    rounds.again = "purgatorio stress --batch {}".format
    for batch, seen in ((3, "left"), (4, "twice"), (5, "left")):
        rounds.add({"a"}, [Broken("O4", "op", seen)], overlapped=True, batch=batch, where="")
    rounds.add({"a"}, [], overlapped=True, batch=6, where="")
    shapes = {line.outcome: line.again for line in rounds.outcomes}
    assert shapes == {
        "left": "purgatorio stress --batch 3",
        "twice": "purgatorio stress --batch 4",
        "a": "",
    }


def test_an_expected_clause_names_a_round_that_broke_several() -> None:
    """A mutant's own clause counts as its hit, even where a structure was found broken before."""
    rounds = OutcomeTable("s", frozenset(), None, ("O4",))
    rounds.add(set(), [Broken("CHECK", "x", "s"), Broken("O4", "op", "left")], False, 0, "")
    assert [line.clause for line in rounds.outcomes] == ["O4"]


def test_a_window_that_was_never_hit_is_no_pass() -> None:
    """Threads that never met show no more than a test without threads."""
    rounds = table()
    rounds.add({"a"}, [], overlapped=False, batch=0, where="")
    assert not rounds.window_hit
    assert verdict_of(rounds) is Verdict.UNKNOWN
    assert rounds.printed().window_hit is False
    rounds.add({"a"}, [], overlapped=True, batch=0, where="")
    assert verdict_of(rounds) is Verdict.PASS


@pytest.mark.parametrize("missing", ["dropped", "given_up"])
def test_rounds_and_records_that_are_missing_are_no_pass(missing: str) -> None:
    """Outcomes that were not seen cannot be correct."""
    rounds = table()
    rounds.add({"a"}, [], overlapped=True, batch=0, where="")
    setattr(rounds, missing, 1)
    assert verdict_of(rounds) is Verdict.UNKNOWN


def test_no_round_at_all_is_no_pass() -> None:
    assert verdict_of(table()) is Verdict.UNKNOWN


def test_a_table_stays_small() -> None:
    """A broken structure can be worded in as many ways as there are numbers in it."""
    rounds = table()
    for number in range(500):
        rounds.add(set(), [Broken("CHECK", "wheel", f"at {number}")], False, 0, "")
    assert len(rounds.outcomes) <= 41
    assert rounds.forbidden == rounds.rounds == 500


def test_an_outcome_is_the_marks_in_one_order() -> None:
    """Sets have no order; an outcome must not depend on it."""
    assert outcome_of({"b", "a"}) == "a, b"
    assert outcome_of(set()) == NO_LABEL


def test_every_scenario_of_several_threads_is_raced_or_excused() -> None:
    """A new scenario takes part automatically."""
    raced = {name for name, _ in chosen()}
    excused = {name for name in SEVERAL if why_not_raced(name) is not None}
    assert raced | excused == {name for name, scenario in SCENARIOS.items() if scenario.threads > 1}
    assert not raced & excused
    assert excused >= {"add-against-sleep", "earlier-against-sleep"}


def test_what_the_table_holds_is_raced() -> None:
    """A renamed scenario would be held against nothing."""
    assert set(REACHABLE) <= {f"{name}/{dialect}" for name, dialect in chosen()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in REACHABLE]
)
def test_the_reachable_outcomes_are_those_of_the_explorer(name: str) -> None:
    """The outcomes of all interleavings, computed again. The serial outcomes are among them."""
    assert explored_outcomes(name, Limits(seconds=300)) == REACHABLE[name]
    scenario, dialect = name.split("/")
    assert serial_outcomes(SCENARIOS[scenario], dialect) <= REACHABLE[name]


def test_the_serial_outcomes_are_those_of_a_fresh_run() -> None:
    """The harness looks them up, so that it needs no greenlet."""
    fresh = {
        f"{name}/{dialect}": tuple(sorted(serial_outcomes(scenario, dialect)))
        for name, scenario in SCENARIOS.items()
        for dialect in scenario.dialects
    }
    assert fresh == SERIAL


def test_an_exploration_that_was_cut_tells_nothing() -> None:
    """A limit reached: outcomes may be missing, so there is no table to hold others against."""
    assert explored_outcomes("two-events/pending-flag", Limits(schedules=3)) is None


def test_an_order_in_which_a_task_would_wait_is_no_serial_one() -> None:
    """The poll before the offer would wait for it: that order is an interleaving."""
    assert serial_outcomes(SCENARIOS["offer-against-poll"], "pending-flag") == {"polled"}
    assert serial_outcomes(SCENARIOS["three-events"], "locked") == {NO_LABEL}
