"""Which of two things that are due at one instant comes first is a choice: the reduction loses none of the outcomes.

DPOR is compared with a search that leaves a thread at every step, fewest times first, and with random schedules. What
they see and DPOR does not is a false PASS. (What DPOR sees are runs, so there are no outcomes too many.)
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer import run as run_module
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_random
from purgatorio_stress.explorer.step import ACQUIRE
from purgatorio_stress.foreign.explored import _Program, explore_foreign
from purgatorio_stress.foreign.world import World
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.outcome import outcome_of
from purgatorio_stress.scenario.registry import SCENARIOS
from stress import timed_programs
from stress.timed_programs import ThroughTheSeam, random_program

HERE = Path(__file__).parent / "foreign_code"
EXAMPLES = Path(__file__).parents[2] / "examples"

WHOLE = Limits(schedules=1_000_000, seconds=120, violations=0)
NO_BOUND = 1_000


def _some(schedules: int) -> Limits:
    return Limits(schedules, 120, preemptions=NO_BOUND, violations=0)


@pytest.fixture(scope="module")
def at_one_instant() -> _Program:
    """Loaded once, for that takes the longest."""
    return _Program(World(), ["queue"], "same_instant:TimerAgainstCancel", [str(HERE)], False)


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("TimerAgainstCancel", {"True", "False"}),
        ("TimerCancelledAndJoined", {"True", "False"}),
        ("TimerStartedByTheThread", {"True", "False"}),
        ("TimerCancelledLater", {"True"}),
        ("EventAgainstWait", {"True", "False"}),
        ("EventAgainstShorterWait", {"False"}),
        ("LockAgainstRelease", {"True", "False"}),
        ("SemaphoreAgainstRelease", {"True", "False"}),
        ("GetAgainstPut", {"True", "False"}),
        ("WaitForAgainstNotify", {"True", "False"}),
        ("JoinAgainstEnd", {"True", "False"}),
        ("AliveAgainstEnd", {"True", "False"}),
        ("LockedAgainstRelease", {"True", "False"}),
        ("NoTimeAgainstSleep", {"True", "False"}),
    ],
)
@pytest.mark.parametrize("explore", [explore_dpor, explore_bounded])
def test_what_is_due_together_comes_in_both_orders(
    name: str, outcomes: set[str], explore: Callable[[Program, Limits], Exploration], at_one_instant: _Program
) -> None:
    at_one_instant._made_by = name
    at_one_instant.outcomes.clear()
    assert explore(at_one_instant, Limits(3_000, 60)).complete
    assert set(at_one_instant.outcomes) == outcomes


def test_a_timer_that_may_fire_at_the_instant_of_its_cancel_is_a_violation() -> None:
    explored = explore_foreign(["threading"], "same_instant:TimerMustNotFire", Limits(), path=[str(HERE)])
    assert explored.verdict is Verdict.VIOLATED


def _missed_through_the_seam(seed: int, schedules: int) -> set[str]:
    """The outcomes of a random program that DPOR does not see."""
    acts = random_program(seed)
    reduced, all_orders, sampled = ThroughTheSeam(acts), ThroughTheSeam(acts), ThroughTheSeam(acts)
    assert explore_dpor(reduced, WHOLE).complete
    explore_bounded(all_orders, _some(schedules))
    explore_random(sampled, _some(schedules // 4))
    return (all_orders.outcomes | sampled.outcomes) - reduced.outcomes


class _Foreign:
    """The random programs with `threading` and `queue`; loaded once, for that takes the longest."""

    def __init__(self) -> None:
        self._program = _Program(World(), ["queue"], "timed:Player", [str(HERE)], False)

    def missed(self, seed: int, schedules: int) -> set[str]:
        timed_programs.CURRENT = random_program(seed)
        return _missed(self._program, schedules)


def _missed(program: _Program, schedules: int) -> set[str]:
    def outcomes(search: str, limits: Limits) -> set[str]:
        program.outcomes.clear()
        explore = {"dpor": explore_dpor, "bounded": explore_bounded, "random": explore_random}[search]
        done = explore(program, limits)
        assert not program.world.diverged
        assert done.complete or search != "dpor"
        return set(program.outcomes) | {one.seen for found in done.found for one in found.broken}

    reduced = outcomes("dpor", WHOLE)
    return (outcomes("bounded", _some(schedules)) | outcomes("random", _some(schedules // 4))) - reduced


def test_no_outcome_of_random_programs_is_missed() -> None:
    for seed in range(24):
        assert not _missed_through_the_seam(seed, 300), random_program(seed)
    foreign = _Foreign()
    for seed in range(12):
        assert not foreign.missed(seed, 120), timed_programs.CURRENT


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2_000, 100))
def test_no_outcome_of_2000_random_programs_is_missed(first: int) -> None:
    foreign = _Foreign()
    for seed in range(first, first + 100):
        assert not _missed_through_the_seam(seed, 1_200), random_program(seed)
        assert not foreign.missed(seed, 200), timed_programs.CURRENT


def test_the_comparison_sees_the_relation_that_was_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a wait that is due is taken for an acquire again, which never meets its release."""
    monkeypatch.setattr(run_module, "TRY", ACQUIRE)
    foreign = _Foreign()
    assert any(foreign.missed(seed, 120) for seed in range(12))


def _outcomes(search: str, name: str, schedules: int) -> tuple[bool, set[str]]:
    scenario, dialect = name.split("/")
    program = ScenarioProgram(SCENARIOS[scenario], dialect)
    explore = {"dpor": explore_dpor, "bounded": explore_bounded}[search]
    done = explore(program, _some(schedules))
    return done.complete, {outcome_of(one) for one in program.outcomes} | program.labels.keys()


NAMES = [
    f"{name}/{dialect}" for name, one in SCENARIOS.items() for dialect in one.dialects if one.threads > 1
]


@pytest.mark.parametrize(
    ("reducing", "all_orders"), [(1_500, 300), pytest.param(100_000, 30_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", NAMES)
def test_no_outcome_of_a_scenario_is_missed(name: str, reducing: int, all_orders: int) -> None:
    complete, reduced = _outcomes("dpor", name, reducing)
    if complete:
        assert _outcomes("bounded", name, all_orders)[1] <= reduced


@pytest.mark.parametrize(
    ("package", "adapter", "path"),
    [
        ("racy_cache", "cache_adapter:LoadsOnce", EXAMPLES / "racy_cache"),
        ("cachetools", "cachetools_adapter:CachedWithCondition", EXAMPLES / "adapters"),
        ("expiringdict", "expiringdict_adapter:GetAgainstSet", EXAMPLES / "adapters"),
        ("ratelimit", "ratelimit_adapter:TwoCallsIn10Seconds", EXAMPLES / "adapters"),
        ("schedule", "schedule_adapter:CancelAgainstRun", EXAMPLES / "adapters"),
        ("schedule", "schedule_adapter:TwoRunners", EXAMPLES / "adapters"),
        ("cacheout", "cacheout_adapter:Memoized", EXAMPLES / "adapters"),
        ("simple_ttl_cache", "simple_ttl_cache_adapter:EvictAgainstExpiry", EXAMPLES / "adapters"),
        ("queue", "standard:PutAndGet", HERE),
        ("threading", "standard:CancelAgainstExpiry", HERE),
        ("sched", "standard:CancelAgainstRun", HERE),
        ("concurrent.futures", "standard:SubmitAndShutdown", HERE),
        ("planted", "planted:HeldBeyondATimeOut", HERE),
        ("planted", "planted:GivesUpInTime", HERE),
    ],
)
def test_no_outcome_of_the_examples_is_missed(package: str, adapter: str, path: Path) -> None:
    if not package.startswith("concurrent"):
        pytest.importorskip(package) if path.name == "adapters" else None
    assert not _missed(_Program(World(), [package], adapter, [str(path)], False), 200)
