"""The fold beside the clauses, over drawn histories in drawn batches: the same tallies, and each rule is needed.

Runs are played by threads that take turns, then spoilt by a few small changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from pipeline.broken_run import spoil
from pipeline.screened import Expected, differences, event_table, expect
from pipeline.test_screen_soundness import CUT, DROPPED, NOTHING_LOST, Generated, sampled
from purgatorio_spec.fold.fold import Fold, Outer
from purgatorio_spec.fold.rules import NOT_PLAIN, RULES, Condition, Rule, marks, summaries
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.trace.coded import Coded, coded

SEEDS: Final = (*range(1_200), 7_594)
"""The last one has a time beyond the limit that makes a difference, which is rare."""
ENDINGS: Final = (NOTHING_LOST, NOTHING_LOST, NOTHING_LOST, CUT, DROPPED)


def batches(table: pa.Table, cuts: int, random: Random) -> list[Coded]:
    """The events in batches, cut at drawn places."""
    count = table.num_rows
    places = sorted({0, count, *(random.randrange(count + 1) for _ in range(cuts))})
    parts = [table.slice(low, high - low) for low, high in zip(places, places[1:], strict=False)]
    return [coded(batch) for part in parts for batch in part.combine_chunks().to_batches()]


@dataclass(slots=True)
class Played:
    """One run, and a fold that was fed with it in several batches."""

    run: Run
    table: pa.Table
    fold: Fold
    parts: list[Coded]

    @classmethod
    def of(cls, generated: Generated, seed: int) -> Played:
        """Play, spoil and feed."""
        random = Random(seed)
        events = spoil(generated.spoilt)
        table, run = event_table(events), generated.run(events)
        # Half of them read their events again for the second look, as runs that are too large to be held do.
        fold = Fold(generated.header(), held_bytes=random.choice((None, 0)))
        parts = batches(table, random.choice((0, 1, 2, 5, 40)), random)
        for part in parts:
            fold.feed(part)
        return cls(run, table, fold, parts)

    def concluded(self) -> RunTally:
        """What the fold says."""
        return self.fold.conclude(Outer(self.run.whole, self.run.dropped), lambda: self.parts)


def comparable(tally: RunTally) -> dict[str, object]:
    """All that a tally says, without clauses that were not judged."""
    found: dict[str, object] = {
        name: (one.occasions, one.unknown, {cause: (c.count, c.examples) for cause, c in one.causes.items()})
        for name, one in tally.clauses.items()
        if one.occasions or one.unknown or one.causes
    }
    return found | {"orphans": (tally.orphans, tally.first_orphan_i)}


def assert_equal(seeds: Sequence[int]) -> int:
    """The property; the violations that were met."""
    met = 0
    for seed in seeds:
        played = Played.of(sampled(seed, ENDINGS[seed % len(ENDINGS)]), seed)
        expected = judge_run(played.run, played.table)
        assert comparable(played.concluded()) == comparable(expected), f"seed {seed}"
        met += sum(one.violations for one in expected.clauses.values())
    return met


def test_the_fold_says_what_the_clauses_say() -> None:
    """Occasions, causes, examples and orphans, whatever the batches."""
    assert assert_equal(SEEDS[:600]) > 50


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_the_fold_says_what_the_clauses_say_of_twenty_thousand_runs(block: int) -> None:
    """The rare crossings of three changes need many runs."""
    assert_equal(range(10_000 + block * 1_000, 11_000 + block * 1_000))


@pytest.fixture(scope="module")
def many() -> list[tuple[Played, Mapping[str, Expected]]]:
    """Runs that are the same each time, and what the clauses say of each operation."""
    played = [Played.of(sampled(seed), seed) for seed in SEEDS]
    for one in played:
        one.concluded()  # which closes what is open
    return [(one, expect(one.run, one.table).operations) for one in played]


def missed(
    many: Sequence[tuple[Played, Mapping[str, Expected]]],
    rules: Mapping[str, Rule] = RULES,
    not_plain: Mapping[str, Condition] = NOT_PLAIN,
) -> list[str]:
    """Every operation of which the rules say less than the clauses."""
    found: list[str] = []
    for at, (played, expected) in enumerate(many):
        if played.table.num_rows:
            block = played.fold.block(played.run, slice(0, None))
            told = marks(block, rules, not_plain)
            matrix = summaries(block)
            for name, one in expected.items():
                number = played.fold.number(name)
                row: dict[str, object] = {"marked": bool(told.marked[number])}
                row |= {f"occ_{c}": int(told.occasions[c][number]) if c in told.occasions else 0 for c in RULES}
                row |= {f"s_{n}": int(v) for n, v in zip(Summary._fields, matrix[number], strict=True)}
                found += [f"run {at}, {name}: {what}" for what in differences(row, in_rows(one, played.table))]
    return found


def in_rows(one: Expected, table: pa.Table) -> Expected:
    """The same with rows for positions in its summary."""
    places = {i: row for row, i in enumerate(table.column("i").to_pylist())}
    kept = ("entries", "watches", "deadline_t")
    summary = {n: v if n in kept else places.get(v, v) for n, v in one.summary.items()}
    return Expected(one.marked_for, one.occasions, one.orphans, summary)



def test_the_rules_never_say_less_than_the_clauses(many: list[tuple[Played, Mapping[str, Expected]]]) -> None:
    """An operation that the rules pass over is never judged: a miss would be a false PASS."""
    assert not missed(many)
    assert sum(len(expected) for _, expected in many) > 2_000


@pytest.mark.parametrize("clause", RULES)
def test_without_the_rule_of_a_clause_something_is_missed(
    many: list[tuple[Played, Mapping[str, Expected]]], clause: str
) -> None:
    """The twins: each rule is needed, and its loss is seen."""
    weakened = {**RULES, clause: Rule(RULES[clause].occasion, lambda b: b.always(False))}
    assert any(what.endswith(f"{clause}: not marked") for what in missed(many, rules=weakened))


@pytest.mark.parametrize("condition", NOT_PLAIN)
def test_an_odd_operation_taken_for_plain_is_missed(
    many: list[tuple[Played, Mapping[str, Expected]]], condition: str
) -> None:
    """Each reason to mark an operation whatever the clauses say is needed, too."""
    weakened = {name: one for name, one in NOT_PLAIN.items() if name != condition}
    assert missed(many, not_plain=weakened)


def test_a_fold_that_carries_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the carry: open calls, waiting operations and threads' counts that end with their batch."""
    seeds = range(300)
    for name in ("_open", "_first_checks", "_thread_checks"):
        differ = 0
        feed = Fold.feed
        fresh = {"_open": "OpenCalls", "_first_checks": "FirstChecks", "_thread_checks": "ThreadChecks"}

        def forgetful(self: Fold, batch: Coded, name: str = name) -> None:
            feed(self, batch)  # noqa: B023  # called within this turn of the loop
            import purgatorio_spec.fold.fold as module

            new = getattr(module, fresh[name])()  # noqa: B023
            if name == "_thread_checks":
                old = self._thread_checks
                new.sure, new.doubtful = old.sure, old.doubtful
            setattr(self, name, new)

        with monkeypatch.context() as patched:
            patched.setattr(Fold, "feed", forgetful)
            for seed in seeds:
                played = Played.of(sampled(seed), seed)
                differ += comparable(played.concluded()) != comparable(judge_run(played.run, played.table))
        assert differ, name


def test_checks_are_mostly_counted_by_columns(many: list[tuple[Played, Mapping[str, Expected]]]) -> None:
    """The counting half has plenty that it is sure of, and some that it is not."""
    sure = sum(played.fold._thread_checks.sure for played, _ in many)
    doubtful = sum(len(part.c) for played, _ in many for part in played.fold._thread_checks.doubtful)
    assert sure > 500
    assert doubtful > 50


def test_flags_are_not_shared() -> None:
    """Numbers of a run that has more rows than 32 bits hold are the same in 64."""
    played = Played.of(sampled(3), 3)
    before = {name: played.fold.operations.numbers(name, slice(None)) for name in ("reg_call", "win_first")}
    played.fold.operations.widen()
    for name, numbers in before.items():
        after = played.fold.operations.numbers(name, slice(None))
        assert np.array_equal(numbers.ok, after.ok)
        assert np.array_equal(numbers.v[numbers.ok], after.v[after.ok])
