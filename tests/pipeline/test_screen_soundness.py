"""The screen must mark whatever the spec finds broken or cannot decide, and count like the spec where it does not mark.

Runs are played by threads that take turns, then spoilt by a few small changes; the screen's SQL runs in DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipeline.broken_run import HUGE, Mutation, Spoilt, spoil
from pipeline.generated_run import Plan
from pipeline.screened import ExpectedRun, Row, Screen, differences, event_table, expect
from purgatorio_pipeline import stretches
from purgatorio_pipeline.screen import CLAUSES_OF_OPERATIONS, NOT_PLAIN, RULES, Rules
from purgatorio_spec.history.run import Run, run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.record import FUNCTIONS, Event, Header, Implementation, TimerConstants

WHOLE: Final = 1 << 40
"""Positions of a stretch that every run fits into."""
NOTHING_LOST, DROPPED, CUT = "whole", "dropped", "cut"
SEEDS: Final = (*range(2_400), 7_594)
"""The last one has a time beyond the limit that makes a difference, which is rare."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A run to be: what is played and spoilt, and what its header and its end say."""

    spoilt: Spoilt
    early_ns: int | None = 0
    late_ns: int | None = 5_000
    unrecorded: frozenset[str] = frozenset()
    ending: str = NOTHING_LOST

    def header(self) -> Header:
        """The header that its trace has."""
        return Header(
            run="generated",
            implementation=Implementation("played", "1", "Python"),
            profile=self.spoilt.plan.profile,
            timer=TimerConstants(tick_ns=100, wheel_size=20, early_ns=self.early_ns, late_ns=self.late_ns),
            purge_interval=10,
            recorded=tuple(f for f in FUNCTIONS if f not in self.unrecorded),
        )

    def run(self, events: Sequence[Event]) -> Run:
        """The run, with the outer facts that reading its events would give."""
        facts = run_facts(event_table(events), self.header().recorded)
        return run_of(self.header(), facts, whole=self.ending == NOTHING_LOST, dropped=self.ending == DROPPED)


SHAPES: Final = tuple(
    {
        (one.clauses, one.claimed_on_return, one.cancel_is_barrier, one.counts_cancelled): name
        for name, one in sorted(PROFILES.items(), reverse=True)
    }.values()
)
"""One profile of each kind: what is judged and how depends on nothing else of it."""

PLANS: Final = st.builds(
    Plan,
    seed=st.integers(0, 1 << 32),
    profile=st.sampled_from(SHAPES),
    operations=st.integers(1, 4),
    actions=st.integers(1, 6),
    nesting=st.booleans(),
)
MUTATIONS: Final = st.builds(Mutation, st.integers(0, 200), st.integers(0, 500), st.integers(0, 1 << 16))
RUNS: Final = st.builds(
    Generated,
    st.builds(Spoilt, PLANS, st.lists(MUTATIONS, max_size=4).map(tuple)),
    early_ns=st.sampled_from((0, None, 99, HUGE)),
    late_ns=st.sampled_from((5_000, None, 0, HUGE)),
    unrecorded=st.one_of(st.just(frozenset[str]()), st.frozensets(st.sampled_from(FUNCTIONS), max_size=2)),
    ending=st.sampled_from((NOTHING_LOST, NOTHING_LOST, NOTHING_LOST, DROPPED, CUT)),
)


def sampled(seed: int, ending: str | None = None) -> Generated:
    """A run of a seed alone, for the tests that need the same thousands of runs every time."""
    random = Random(seed)
    return Generated(
        Spoilt(
            Plan(
                seed,
                random.choice(("locked", "locked", *SHAPES)),
                random.randrange(1, 5),
                random.randrange(1, 7),
                seed % 3 == 0,
            ),
            tuple(
                Mutation(random.randrange(200), random.randrange(500), random.randrange(1 << 16))
                for _ in range(random.choice((0, 1, 1, 2, 3)))
            ),
        ),
        early_ns=random.choice((0, 0, 99)),
        late_ns=random.choice((5_000, None, 0)),
        unrecorded=frozenset(random.sample(FUNCTIONS, random.choice((0, 0, 1)))),
        ending=ending or random.choice((NOTHING_LOST, NOTHING_LOST, NOTHING_LOST, CUT)),
    )


@dataclass(slots=True)
class Sample:
    """Some runs, what the spec says of each, and the screen over all of them."""

    expected: dict[int, ExpectedRun]
    screen: Screen

    @classmethod
    def of(cls, generated: Sequence[Generated]) -> Sample:
        """Play, judge and screen."""
        tables: dict[int, pa.Table] = {}
        runs: dict[int, Run] = {}
        for key, one in enumerate(generated):
            events = spoil(one.spoilt)
            tables[key], runs[key] = event_table(events), one.run(events)
        return cls({key: expect(runs[key], tables[key]) for key in runs}, Screen(runs, tables))

    def missed(self, marks: Mapping[tuple[int, str], Row]) -> list[str]:
        """Every operation of which the screen says less than the spec."""
        return [
            f"run {key}, {name}: {what}"
            for key, run in self.expected.items()
            for name, one in run.operations.items()
            for what in differences(marks.get((key, name)), one)
        ]

    def missed_checks(self) -> list[str]:
        """Runs with more checks that count wrong than doubtful ones, or without doubt and another number of checks."""
        by_run = self.screen.checks()
        found: list[str] = []
        for key, run in self.expected.items():
            checks, doubtful = by_run.get(key, (0, 0))
            wrong = sum(run.checks.values())
            if doubtful < wrong:
                found.append(f"run {key}: {wrong} checks count wrong, {doubtful} are doubtful")
            if not doubtful and checks != len(run.checks):
                found.append(f"run {key}: {checks} checks without a doubt, not {len(run.checks)}")
        return found


def assert_sound(generated: Sequence[Generated]) -> None:
    """The property."""
    sample = Sample.of(generated)
    try:
        assert not sample.missed(sample.screen.marks())
        assert not sample.missed_checks()
    finally:
        sample.screen.close()


QUIET: Final = (HealthCheck.too_slow, HealthCheck.data_too_large)
PHASES: Final = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking a batch of runs takes minutes: a failure names the run, and `spoil` shows it."""


@settings(max_examples=12, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(st.lists(RUNS, min_size=1, max_size=12))
def test_the_screen_never_says_less_than_the_spec(generated: list[Generated]) -> None:
    """An operation that the screen passes over is never judged: a miss would be a false PASS."""
    assert_sound(generated)


@pytest.fixture(scope="module")
def many() -> Iterator[Sample]:
    """Runs that are the same each time, judged and screened once for the tests below."""
    sample = Sample.of([sampled(seed) for seed in SEEDS])
    yield sample
    sample.screen.close()


def test_the_screen_never_says_less_than_the_spec_on_many_runs(many: Sample) -> None:
    """The same over fixed runs, so that the weakened screens below are measured against a sound one."""
    assert not many.missed(many.screen.marks())
    assert not many.missed_checks()


@pytest.mark.parametrize("clause", CLAUSES_OF_OPERATIONS)
def test_a_screen_without_the_rule_of_a_clause_is_caught(many: Sample, clause: str) -> None:
    """A property that no broken screen can fail would say nothing: each rule is needed, and its loss is seen."""
    weakened: Rules = {**RULES, clause: (RULES[clause][0], "FALSE")}
    missed = many.missed(many.screen.marks(rules=weakened))
    assert any(what.endswith(f"{clause}: not marked") for what in missed)


@pytest.mark.parametrize("condition", NOT_PLAIN)
def test_a_screen_that_takes_an_odd_operation_for_plain_is_caught(many: Sample, condition: str) -> None:
    """Each reason to mark an operation whatever the clauses say is needed too."""
    weakened = {name: text for name, text in NOT_PLAIN.items() if name != condition}
    assert many.missed(many.screen.marks(not_plain=weakened))


def test_there_are_checks_that_count_wrong(many: Sample) -> None:
    """The counting half is measured on checks that do count wrong, and on plenty that the screen is sure of."""
    wrong = sum(sum(run.checks.values()) for run in many.expected.values())
    sure = sum(checks - doubtful for checks, doubtful in many.screen.checks().values())
    assert wrong > 10
    assert sure > 1_000


@pytest.mark.parametrize("stretch", [1, 2, 3, 7])
def test_where_a_run_is_cut_into_stretches_makes_no_difference(many: Sample, stretch: int) -> None:
    """What is carried from stretch to stretch is what a window over the whole run would have seen."""
    assert many.screen.checks(stretch) == many.screen.checks(WHOLE)
    found = many.screen.first_checks(WHOLE)
    assert many.screen.first_checks(stretch) == found
    assert len(found) > 1_000


def test_a_stretch_that_knows_nothing_of_the_others_is_caught(
    many: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: with nothing carried over, both say something else."""
    monkeypatch.setattr(stretches, "_EARLIER", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1000000 PRECEDING")
    assert many.screen.checks(7) != many.screen.checks(WHOLE)
    assert many.screen.first_checks(7) != many.screen.first_checks(WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_the_screen_never_says_less_than_the_spec_on_twenty_thousand_runs(block: int) -> None:
    """The rare crossings of three changes need many runs."""
    assert_sound([sampled(seed) for seed in range(10_000 + block * 1_000, 11_000 + block * 1_000)])
