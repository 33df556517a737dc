"""The reference and other subjects on real threads: no forbidden outcome, and the harness finds what it must find. A
seed determines the plan."""

import json
import random
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mutants.kill_matrix.raced import INSTEAD, stress_hunt
from mutants.reference import MUTANTS
from purgatorio import SystemTimer
from purgatorio_pipeline.command.stress import command
from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.batch import Batch, Series, rng_of
from purgatorio_stress.harness.campaign import StressPlan, StressResult, chosen, run_stress
from purgatorio_stress.harness.noise import YieldPlan
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.round_trace import RoundTrace
from purgatorio_stress.harness.seam import StopFlag
from purgatorio_stress.harness.settings import SWITCH_INTERVALS_S, Settings, drawn
from purgatorio_stress.harness.subject import REFERENCE_SUBJECT, subject_named
from purgatorio_stress.mutant.patch import Bug
from purgatorio_stress.printed import Grade
from purgatorio_stress.scenario.parts import Parts
from purgatorio_stress.scenario.registry import SCENARIOS

PAIRS = chosen()
RUNS = 20
"""That two threads meet in 64 rounds is only likely on a busy machine: so many runs in a row without it are not."""


def forbidden(result: StressResult, plan: StressPlan) -> list[str]:
    found = [
        f"{table.name}: {line.clause} {line.outcome}; again: {plan.command(table.name, table.first_batch)}"
        for table in result.tables
        for line in table.outcomes
        if line.grade is Grade.FORBIDDEN
    ]
    if result.stuck is not None:
        found.append(f"{result.stuck.text}\nagain: {result.stuck.again}")
    return found


@pytest.mark.parametrize(("name", "dialect"), PAIRS)
def test_the_reference_breaks_nothing(name: str, dialect: str, stress_seeds: Iterator[int]) -> None:
    """Each scenario, plain and with yields, half of it recorded and judged by the clauses too."""
    for _ in range(RUNS):
        plan = StressPlan([(name, dialect)], rounds=64, seed=next(stress_seeds), yields=True, record_every=1)
        result = run_stress(plan)
        assert not forbidden(result, plan)
        assert result.dropped == 0
        table = result.tables[0]
        assert table.rounds >= 64
        assert table.recorded_rounds == table.rounds
        assert not [line for line in table.outcomes if line.grade is Grade.UNKNOWN]
        if table.window_hit:
            return
    pytest.fail("with yields the threads never overlapped")


@pytest.mark.parametrize("number", [1, 14, 19, 24, 40, 51, 53])
def test_yields_find_known_bugs(number: int) -> None:
    """Each shows in 1 to 20 rounds of a hundred, so that 20,000 rounds miss it once in 10^87 tries."""
    kill = stress_hunt(MUTANTS[number], 20_000, seed=1, yields=True, to_first=True)
    assert kill.killed, kill
    assert kill.by in MUTANTS[number].clauses


def test_a_stuck_round_is_a_kill() -> None:
    """A deadlock ends the hunt and counts once, as P3; the switch interval is as it was before."""
    before = sys.getswitchinterval()
    kill = stress_hunt(MUTANTS[9], 20_000, seed=1, yields=True)
    assert (kill.killed, kill.by, kill.hits) == (True, "P3", 1)
    assert sys.getswitchinterval() == before


def test_a_bug_of_one_thread_is_not_raced_and_says_so() -> None:
    """No kill, no rounds, a reason: not the same as a survivor of so many rounds."""
    kill = stress_hunt(MUTANTS[33], 1_000, seed=1)
    assert (kill.killed, kill.effort, "nothing to race" in kill.reason) == (False, 0, True)


def test_what_stands_in_is_there() -> None:
    """A renamed scenario would be left out silently."""
    assert set(INSTEAD) | set(INSTEAD.values()) <= set(SCENARIOS)


def test_recorded_rounds_are_a_trace_that_the_engines_judge(tmp_path: Path) -> None:
    """One run a scenario, its rounds one behind the other: the same clauses, from the file."""
    pairs = [("two-events", "pending-flag"), ("cancel-against-flush", "pending-flag")]
    result = run_stress(StressPlan(pairs, rounds=64, record_every=1, traces=tmp_path))
    assert len(result.traces) == 2
    runs = {run.run: run for run in check_files(result.traces).runs}
    events, timers = (runs[f"stress-{name}-pending-flag-seed1"] for name, _ in pairs)
    assert events.verdict is timers.verdict is Verdict.PASS
    assert events.clauses["O4"].occasions >= 64
    assert timers.clauses["T4"].occasions >= 32
    assert events.events == result.tables[0].events


def test_what_is_written_of_any_scenario_breaks_nothing(tmp_path: Path) -> None:
    """The trace contains the set-up, or does not claim to. So the run is not VIOLATED."""
    result = run_stress(StressPlan(PAIRS, rounds=8, record_every=1, traces=tmp_path))
    runs = check_files(result.traces).runs
    broken = {
        run.run: [name for name, clause in run.clauses.items() if clause.violations]
        for run in runs
        if run.verdict is Verdict.VIOLATED
    }
    assert len(runs) == len(PAIRS)
    assert not broken


def test_a_trace_of_a_bug_says_so_too(tmp_path: Path) -> None:
    """The twin: the file of a run with the bug inside breaks the clause."""
    plan = StressPlan(
        [("event-against-expiry", "pending-flag")],
        rounds=64,
        record_every=1,
        traces=tmp_path,
        bug=MUTANTS[22].bug,
    )
    result = run_stress(plan)
    assert result.verdict is Verdict.VIOLATED
    assert check_files(result.traces).runs[0].clauses["O3"].violations > 0


def test_a_file_has_a_bound_and_is_whole_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soak must not fill the disk. The left-out rounds are counted."""
    scenario = SCENARIOS["force-against-force"]
    monkeypatch.setattr("purgatorio_stress.harness.round_trace.MOST_EVENTS", 100)
    trace = RoundTrace(tmp_path / "r.jsonl", scenario, "locked", 1)
    table = OutcomeTable(scenario.name, frozenset(), None)
    settings = Settings(1, 64, 0.005, 0, 0, 0, False, True)
    assert Batch(Series(scenario, "locked", table, trace), 0, 1, settings, StopFlag()).run() is None
    trace.close(whole=True)
    run = check_files([trace.path]).runs[0]
    assert run.verdict is Verdict.PASS
    assert 100 <= run.events < 150
    assert trace.left_out + run.clauses["O1"].occasions == table.recorded_rounds == 64


def test_the_printed_command_reproduces() -> None:
    plan = StressPlan(
        [("event-against-expiry", "pending-flag")],
        rounds=64,
        seed=5,
        yields=True,
        record_every=1,
        bug=MUTANTS[22].bug,
    )
    (found,) = forbidden(run_stress(plan), plan)
    assert found.startswith("event-against-expiry/pending-flag: O3 ")
    words = shlex.split(found.partition("again: purgatorio stress ")[2])
    done = CliRunner().invoke(command, [*words, "--json"])
    assert done.exit_code == 1
    (outcome, *_) = json.loads(done.stdout)["scenarios"][0]["outcomes"]
    assert (outcome["clause"], outcome["grade"]) == ("O3", "forbidden")


def test_a_batch_can_be_run_alone() -> None:
    whole = run_stress(StressPlan([("two-events", "locked")], rounds=128))
    again = run_stress(StressPlan([("two-events", "locked")], rounds=128, batch=0))
    assert whole.tables[0].rounds == again.tables[0].rounds == 128


def test_a_soak_ends_by_its_minutes() -> None:
    """The clock is the test's: a minute a look."""
    now_s = [0.0]

    def clock_s() -> float:
        now_s[0] += 60.0
        return now_s[0]

    result = run_stress(StressPlan(PAIRS[:2], minutes=3.0, threads=2), clock_s=clock_s)
    assert 0 < result.rounds <= 4 * 256
    assert not result.problem


def test_what_cannot_be_raced_is_refused_with_its_reason() -> None:
    for name, why in (
        ("add-against-sleep", "not for threads"),
        ("two-groups/x", "has"),
    ):
        with pytest.raises(KeyError, match=why):
            chosen([name])


def test_a_seed_repeats_the_settings_of_every_batch() -> None:
    """A report names seed and batch; both must lead to the same settings, whatever ran before."""
    first = [drawn(rng_of(3, "two-events/locked", n), 2, 8, False, True) for n in range(30)]
    again = [drawn(rng_of(3, "two-events/locked", n), 2, 8, False, True) for n in reversed(range(30))]
    assert first == again[::-1]
    assert first != [drawn(rng_of(4, "two-events/locked", n), 2, 8, False, True) for n in range(30)]


def test_settings_sweep_through_everything() -> None:
    """Every switch interval, one processor and all, one crew and many; never more threads than allowed."""
    batches = [drawn(random.Random(n), 2, 8, False, True) for n in range(200)]
    assert {one.switch_interval_s for one in batches} == set(SWITCH_INTERVALS_S)
    assert {one.one_processor for one in batches} == {False, True}
    assert {one.crews for one in batches} == {1, 2, 4}
    assert {drawn(random.Random(n), 4, 2, False, False).crews for n in range(50)} == {1}


def test_a_seed_repeats_the_yields_of_every_round() -> None:
    """The calls at which a thread yields come from its seed alone."""

    def yields(seed: str) -> list[int]:
        plan, taken = YieldPlan(seed, most=2), []
        for _ in range(50):
            plan.begin()
            for call in range(20):
                before = plan.yields
                plan.pass_by()
                if plan.yields > before:
                    taken.append(call)
        return taken

    assert yields("7/a") == yields("7/a")
    assert yields("7/a") != yields("8/a")


def test_the_printed_command_has_every_option_that_is_not_default() -> None:
    """Pasted, it runs the same batch: everything that its settings were drawn from is in it."""
    plan = StressPlan([], rounds=64, threads=4, seed=9, yields=True, record_every=1, bug=Bug("my bug.py"))
    assert plan.command("two-events/pending-flag", 3) == (
        "purgatorio stress reference --scenario two-events/pending-flag --seed 9 --batch 3 --rounds 64 --threads 4 "
        "--yields always --record-every 1 --mutant 'my bug.py'"
    )
    assert StressPlan([], seed=2).command("a/locked", 0) == (
        "purgatorio stress reference --scenario a/locked --seed 2 --batch 0"
    )


class Miscounting(SystemTimer):
    """Counts one task more than there is."""

    def size(self) -> int:
        return super().size() + 1


MISCOUNTING = Parts(timer=Miscounting)
HERE = "stress.test_stress_rounds"


def test_the_production_wheel_breaks_nothing() -> None:
    """Every scenario with a timer, under the clauses of the wheel that it stands in for."""
    subject = subject_named("intrusive-timer")
    pairs = chosen(subject=subject)
    result = run_stress(StressPlan(pairs, rounds=64, record_every=1, subject=subject))
    assert not result.problem
    assert [table.name for table in result.tables if table.forbidden] == []
    assert {name for name, _ in pairs} >= {"cancel-against-flush", "overflow-twice", "completed-before-timer"}


def test_only_scenarios_about_the_subject_are_raced() -> None:
    """The rest would race the reference, and call it the subject."""
    pairs = {name for name, _ in chosen(subject=subject_named("intrusive-timer"))}
    assert not pairs & {"two-events", "remove-against-move", "offer-against-poll"}
    assert pairs < {name for name, _ in chosen(subject=REFERENCE_SUBJECT)}


def test_a_third_party_timer_is_raced_and_judged() -> None:
    """By module and attribute. Its violation is found, and the command names it."""
    subject = subject_named(f"{HERE}:MISCOUNTING")
    plan = StressPlan([("cancel-against-flush", "pending-flag")], rounds=32, subject=subject)
    result = run_stress(plan)
    assert result.verdict is Verdict.VIOLATED
    assert result.printed().subject == f"{HERE}:MISCOUNTING"
    assert plan.command("cancel-against-flush/pending-flag", 0).startswith(
        f"purgatorio stress {HERE}:MISCOUNTING "
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("netty", "MODULE:ATTRIBUTE"),
        ("no.such.module:PARTS", "no"),
        (f"{HERE}:NOTHING", "NOTHING"),
        (f"{HERE}:HERE", "is no"),
    ],
)
def test_what_is_no_subject_is_refused_with_its_reason(name: str, why: str) -> None:
    with pytest.raises(KeyError, match=why):
        subject_named(name)
