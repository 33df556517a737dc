"""The explorer for foreign code: the bugs that it finds, programs without bugs, and UNKNOWN results."""

import gc
import itertools
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.command.explore import command
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer import endless, run
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import BrokenExecution, Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_pct
from purgatorio_stress.exploring import explore
from purgatorio_stress.foreign import explored as exploring
from purgatorio_stress.foreign.explored import (
    AdapterResult,
    _Program,
    explore_foreign,
    lines_of,
    replay_foreign,
    table,
)
from purgatorio_stress.foreign.load import CannotLoad
from purgatorio_stress.foreign.shown_containers import Reach
from purgatorio_stress.foreign.world import World

HERE = Path(__file__).parent / "foreign_code"
EXAMPLE = Path(__file__).parents[2] / "examples" / "racy_cache"
DOCS = Path(__file__).parents[2] / "docs" / "explorer.md"
LIMITS = Limits(3_000, 30, clock=time.process_time)


def _explored(
    adapter: str, package: str = "planted", *, strategy: str = "dpor", early: int = 0, races: bool = False
) -> AdapterResult:
    return explore_foreign(
        [package], adapter, LIMITS, strategy=strategy, early=early,
        path=[str(HERE)], races_count=races,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explored code also finds the packages here that the explorer is not told about."""
    monkeypatch.syspath_prepend(HERE)


PLANTED = {
    "LostUpdate": "AssertionError: 1",
    "LostGlobal": "AssertionError: 1",
    "ChangedWhileIterating": "dictionary changed size during iteration",
    "Crossed": "waits for Crossed.there",
    "LostNotice": "waits for",
    "LooksUp": "KeyError",
}


@pytest.fixture(scope="module")
def planted() -> _Program:
    """Loaded once, for that takes the longest."""
    return _Program(World(), ["planted"], "planted:LostUpdate", [str(HERE)], False)


@pytest.mark.parametrize("explore", [explore_bounded, explore_pct])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_by_other_strategies(
    name: str, explore: Callable[[Program, Limits], Exploration], planted: _Program
) -> None:
    planted._made_by = name
    (found, *_) = explore(planted, LIMITS).found
    assert any(PLANTED[name] in one.seen for one in found.broken)


@pytest.mark.parametrize(("name", "strategy"), [*((name, "dpor") for name in PLANTED), ("LostUpdate", "pct")])
def test_a_planted_fault_is_found_and_repeats(name: str, strategy: str) -> None:
    explored = _explored(f"planted:{name}", strategy=strategy)
    assert explored.verdict is Verdict.VIOLATED
    assert explored.counterexample is not None
    assert any(PLANTED[name] in one.seen for one in explored.counterexample.broken)
    assert explored.token is not None
    again, broken = replay_foreign(explored.token, [str(HERE)])
    assert broken == explored.counterexample.broken
    assert again.counterexample is not None
    assert again.counterexample.preemptions == explored.counterexample.preemptions


@pytest.mark.parametrize(
    ("adapter", "package", "outcomes"),
    [
        ("planted:KeptUpdate", "planted", None),
        ("planted:OwnVariables", "planted", None),
        ("planted:ComputesItsOrder", "planted", None),
        ("planted:PicklesItself", "planted", None),
        ("planted:GivesUpInTime", "planted", None),
        ("planted:SleepsLong", "planted", None),
        ("planted:AsksAsyncio", "planted", None),
        ("planted:HeldBeyondATimeOut", "planted", {"True", "False"}),
        ("planted:SleepsBetween", "planted", None),  # what the words on a loop advise
        ("planted:UnpacksPairsWithLock", "planted", None),
        ("planted:UsesItsDictionaryWithLock", "planted", None),
        ("ending:EndsItsThread", "ending", None),
        ("ending:OutlivesAll", "ending", None),
        ("ending:JoinsASet", "ending", None),
        ("ending:KeepsClean", "ending", None),
        ("ending:RenewsForEver", "ending", None),
        ("unsteady:GoesByASet", "unsteady", None),
        ("standard:PutAndGet", "queue", None),
        ("standard:CancelAgainstExpiry", "threading", {"[]", "['x']"}),
        ("standard:CancelAgainstRun", "sched", {"True", "False"}),
        ("standard:SubmitAndShutdown", "concurrent.futures", {"['done']", "['refused']"}),
        ("standard:SubmitAndLeave", "concurrent.futures", None),
        ("standard:KeptWeakly", "standard", None),
        ("standard:AsksWeakly", "standard", None),
        ("standard:SeesItDead", "standard", None),
        ("outside:ParsesOnly", "outside", None),
        ("outside:StartsLow", "outside", None),
        ("finalizers:EndsWithItsRun", "finalizers", None),
        ("finalizers:Collects", "finalizers", None),
        ("uses_library:AddsInTurn", "uses_library", None),
        ("uses_library:CallsBackAlone", "uses_library", None),
        ("uses_library:NumbersInTurn", "uses_library", None),
        ("uses_library:NumbersInMyTurn", "uses_library", None),
        ("uses_library:OnlyReads", "uses_library", None),
        ("uses_library:EntersAlone", "uses_library", None),
    ],
)
def test_sound_code_passes(adapter: str, package: str, outcomes: set[str] | None) -> None:
    explored = _explored(adapter, package)
    assert explored.verdict is Verdict.PASS, explored
    assert outcomes is None or set(explored.outcomes) == outcomes
    known = {"SleepsBetween.ready", "GoesByASet.steps", "Connection.open", "SeesItDead.channel"}
    assert {race.location for race in explored.races} <= known


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is too long after 2,000 steps; a user's is after 50,000."""
    monkeypatch.setattr(run, "MAX_STEPS", 2_000)
    monkeypatch.setattr(exploring, "MAX_STEPS", 2_000)


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(
    ("name", "package", "seen"),
    [
        ("UnpacksPairs", "planted", ""),
        ("LooksUpWeakly", "standard", "KeyError: 'a'"),
        ("UsesItsDictionary", "planted", "AssertionError: 1"),
        ("MakesTwice", "planted", "AssertionError"),
        ("ChangesItsClass", "planted", "AssertionError: 2"),
        ("CheckExits", "ending", "SystemExit: 0"),
        ("OutcomeFails", "ending", "ValueError: no outcome"),
        ("WaitsAgainForEver", "ending", "waits for WaitsAgainForEver.lock"),
        ("FailsBesideWhatTakesLong", "ending", "ValueError: failed"),
        ("RenewsBehindAFailure", "ending", "ValueError: 3"),
    ],
)
def test_broken_code_is_found(name: str, package: str, seen: str) -> None:
    found = _explored(f"{package}:{name}", package).counterexample
    assert found is not None
    assert seen in found.broken[-1].seen


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(
    ("name", "package", "named"),
    [
        ("FarBehind", "planted", "the contents of a filter: more than 8 levels"),
        ("UsesAsyncio", "planted", "asyncio.run"),
        ("EndsTheProcess", "ending", "os._exit"),
        ("EndsItBelow", "ending", "os._exit"),
        ("Kills", "ending", "os.kill"),
        ("SwallowsTheEnd", "ending", "os._exit"),
        ("TakesLong", "ending", "more than 2,000 steps; its threads were then: "),
        ("AsksAPackage", "outside", "urllib.request.urlopen"),
        ("AsksAModule", "outside", "urllib.request.urlopen"),
        ("AsksInside", "outside", "http.client.HTTPConnection"),
        ("AsksAClass", "outside", "socket.socket"),
        ("PoolOfProcesses", "outside", "multiprocessing.pool.Pool"),
        ("Interrupts", "outside", "_thread.interrupt_main"),
        ("Adds", "uses_library", "at uses_library.py:16, in no order: add --package library"),
        ("AddsToItself", "uses_library", "add --package library"),
        ("CallsBack", "uses_library", "add --package library"),
        ("CallsBackOnce", "uses_library", "add --package library"),
        ("Numbers", "uses_library", "library: two threads use library._last at uses_library.py:"),
        ("NumbersOfAWith", "uses_library", "use library._last at"),
        ("NumbersInATarget", "uses_library", "use library._last at"),
        ("EntersTwice", "uses_library", "add --package library"),
        ("MakesTwice", "uses_library", "add --package library"),
        ("CallsWhileEntering", "uses_library", "use one of its objects at"),
        ("Seizes", "uses_library", "operating system, perhaps for a lock that another thread holds"),
    ],
)
def test_what_cannot_be_followed_is_unknown_and_named(
    name: str, package: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends the process ends the run alone: an exit status of 0 would be read as PASS."""
    monkeypatch.setattr(endless, "WAIT_S", 1)
    explored = _explored(f"{package}:{name}", package)
    assert explored.verdict is Verdict.UNKNOWN
    assert named in "; ".join([*explored.uncontrolled, explored.exploration.limit])


@pytest.mark.parametrize(
    ("name", "packages", "verdict"),
    [
        ("Adds", ["uses_library", "library"], Verdict.VIOLATED),
        ("CallsBack", ["uses_library", "library"], Verdict.PASS),
        ("AddsAndUpdates", ["uses_library"], Verdict.VIOLATED),
        ("LearnsTwice", ["uses_library"], Verdict.VIOLATED),
        ("Seizes", ["uses_library", "library"], Verdict.PASS),
    ],
)
def test_a_library_is_explored_where_it_is_named(name: str, packages: list[str], verdict: Verdict) -> None:
    explored = explore_foreign(packages, f"uses_library:{name}", LIMITS, path=[str(HERE)])
    assert explored.verdict is verdict, explored


def test_an_early_time_out_is_tried_where_it_is_asked_for() -> None:
    """A PASS without it says so, if anything waited with a time-out."""
    found = _explored("planted:GivesUpInTime", early=1)
    assert found.verdict is Verdict.VIOLATED
    assert ": a wait ends early (--early) --" in table(found)
    for adapter, early, said in (
        ("planted:GivesUpInTime", 0, "all classes of interleavings, no time-out ended early (--early 0)"),
        ("planted:KeptUpdate", 0, "all classes of interleavings"),
        ("planted:KeptUpdate", 1, "all classes of interleavings, up to 1 early time-out a thread"),
    ):
        explored = _explored(adapter, early=early)
        assert (explored.verdict, lines_of(explored)[1]) == (Verdict.PASS, said)


def test_a_data_race_is_named_and_counts_where_that_is_asked_for() -> None:
    explored = _explored("planted:Spins", strategy="bounded")
    assert {race.location for race in explored.races} == {"Spins.ready"}
    strict = _explored("planted:Spins", strategy="bounded", races=True)
    assert strict.verdict is Verdict.VIOLATED
    assert strict.counterexample is not None
    assert strict.counterexample.clause == "RACE"


@pytest.mark.parametrize("name", ["Spins", "YieldsInVain"])
def test_a_loop_beyond_its_bound_is_no_pass_and_says_why(name: str) -> None:
    explored = _explored(f"planted:{name}")
    assert explored.exploration.beyond
    assert explored.verdict is Verdict.UNKNOWN
    assert any(line.startswith("only a part of all classes of") for line in lines_of(explored))
    assert "ran 200 times" in explored.exploration.limit
    assert "sleep longer than 0" in explored.exploration.limit


def test_an_error_of_ours_is_not_the_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the code contains every exception; without it the same program passes."""
    assert _explored("planted:SwallowsAll").verdict is Verdict.PASS

    def fails(*_: object) -> tuple[object, ...]:
        raise ValueError("of ours")

    monkeypatch.chdir(HERE)
    monkeypatch.setattr(Reach, "containers", fails)
    done = CliRunner().invoke(
        purgatorio, ["explore", "--package", "planted", "--adapter", "planted:SwallowsAll"]
    )
    assert done.exit_code == 70, done.output
    assert "ValueError: of ours" in done.stderr


def test_an_error_of_ours_loses_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> BrokenExecution:
        raise ValueError("of ours")

    monkeypatch.setattr(exploring, "minimise", fails)
    with pytest.raises(ValueError, match="of ours") as raised:
        _explored("planted:LostUpdate")
    (note,) = raised.value.__notes__
    assert "check: AssertionError: 1" in note
    assert "foreign/planted+planted:LostUpdate/0/" in note


@pytest.mark.parametrize(
    ("name", "verdict"), [("LeavesCycles", Verdict.PASS), ("LeavesCyclesAndUpdates", Verdict.VIOLATED)]
)
def test_no_finalizer_runs_in_the_middle_of_a_step(name: str, verdict: Verdict) -> None:
    before = gc.get_threshold()
    gc.set_threshold(20, 1, 1)
    try:
        explored = _explored(f"finalizers:{name}", "finalizers")
    finally:
        gc.set_threshold(*before)
    assert explored.verdict is verdict, explored


def test_warnings_of_the_code_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.chdir(HERE)
    asked = ["explore", "--package", "finalizers", "--adapter", "finalizers:WarnsOfItsEnd"]
    assert CliRunner().invoke(purgatorio, asked).exit_code == 0
    gc.collect()
    assert not recwarn.list


@pytest.mark.usefixtures("few_steps")
def test_a_loop_of_timed_waits_without_an_end_is_named() -> None:
    limits = Limits(1, clock=itertools.count(0, 1.0).__next__)
    explored = explore_foreign(["ending"], "ending:KeepsCleanForEver", limits, path=[str(HERE)])
    assert explored.verdict is Verdict.UNKNOWN
    assert re.search(r"cleaner at ending.py:\d+.* end the loop in a thread", explored.exploration.limit)


def test_the_time_of_long_runs_is_read_after_each() -> None:
    """The time starts at 0 s, before the search."""
    limits = Limits(100, 1.5, clock=itertools.count(0, 1.0).__next__)
    explored = explore_foreign(["ending"], "ending:RenewsForEver", limits, path=[str(HERE)])
    assert (explored.exploration.schedules, explored.exploration.limit) == (2, "1.5 s")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SwitchedOff", "SwitchedOff.thread_a is not callable, but None"),
        ("TakesAnArgument", "TakesAnArgument.thread_a is called without arguments: missing .* 'key'"),
        ("Awaits", "Awaits.thread_a is a coroutine"),
        ("Yields", "Yields.thread_a is a coroutine or a generator"),
        ("ListsNone", "ListsNone.thread is not callable"),
        ("ChecksAnArgument", "ChecksAnArgument.check is called without arguments"),
    ],
)
def test_a_mistake_of_the_adapter_is_wrong_usage(name: str, said: str) -> None:
    with pytest.raises(CannotLoad, match=said):
        _explored(f"wrong_adapters:{name}", "wrong_adapters")
    assert _explored("wrong_adapters:Sound", "wrong_adapters").verdict is Verdict.PASS


def test_an_adapter_without_a_thread_is_wrong_usage() -> None:
    with pytest.raises(CannotLoad, match=r"HasNoThread\.threads\(\) returned no function"):
        _explored("outside:HasNoThread", "outside")


@pytest.mark.parametrize("name", ["ExitsAtOnce", "FailsAtOnce"])
def test_an_adapter_that_cannot_be_made_is_wrong_usage(name: str) -> None:
    with pytest.raises(CannotLoad, match=f"ending:{name} cannot be made: .* at ending.py"):
        _explored(f"ending:{name}", "ending")


def test_the_table_of_a_deadlock_ends_with_the_lines_that_wait() -> None:
    """Each thread that waits for ever, at its own line, and with the lock."""
    lines = table(_explored("planted:Crossed")).splitlines()
    waiting = [at for at, line in enumerate(lines) if "waits for ever" in line]
    assert [(lines[at - 1].split(": ")[1], lines[at].split(maxsplit=1)[1]) for at in waiting] == [
        ("with self.there, self.here:", "acquire here, waits for ever"),
        ("with self.here, self.there:", "acquire there, waits for ever"),
    ]


def test_the_table_of_many_threads_fits_the_terminal() -> None:
    """It ends with the exception: what others did after it explains nothing."""
    text = table(_explored("ending:RenewsBehindAFailure", "ending"))
    lines = text.split("Replay it:")[0].splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2] == "    thread"
    assert "end of the program" not in text


def test_a_pool_whose_work_never_ends_is_a_deadlock() -> None:
    """It names what waits for a notice by the user's line, and no lock that has no name."""
    found = _explored("standard:SubmitAndHang", "concurrent.futures").counterexample
    assert found is not None
    assert "waits for an Event at standard.py:" in found.broken[0].seen
    assert "lock?" not in found.broken[0].seen


ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"


@pytest.mark.parametrize(
    ("package", "name", "verdict"),
    [
        ("cachetools", "CachedWithLock", Verdict.VIOLATED),
        ("cachetools", "CachedWithCondition", Verdict.PASS),
        ("expiringdict", "GetAgainstSet", Verdict.PASS),
        ("ratelimit", "TwoCallsIn10Seconds", Verdict.PASS),
        ("schedule", "CancelAgainstRun", Verdict.PASS),
        ("schedule", "TwoRunners", Verdict.VIOLATED),
        ("cacheout", "GetWithDefault", Verdict.PASS),
        ("cacheout", "Memoized", Verdict.VIOLATED),
        ("simple_ttl_cache", "EvictAgainstExpiry", Verdict.PASS),
        ("pyrate_limiter", "TwoIn10Seconds", Verdict.UNKNOWN),
    ],
)
def test_public_packages(package: str, name: str, verdict: Verdict) -> None:
    """The violations were reproduced with plain threads; see docs/explorer.md."""
    pytest.importorskip(package)
    explored = explore_foreign([package], f"{package}_adapter:{name}", LIMITS, path=[str(ADAPTERS)])
    assert explored.verdict is verdict, explored


def test_the_reference_as_foreign_code_has_the_outcomes_of_the_seam() -> None:
    explored = explore_foreign(["purgatorio"], "reference_adapter:Registration", LIMITS, path=[str(ADAPTERS)])
    assert explored.verdict is Verdict.PASS
    through_the_seam = explore("registration-against-event", "pending-flag", Limits())
    assert {text.strip("'") for text in explored.outcomes} == {
        one.outcome for one in through_the_seam.outcomes
    }
    mutant = explore_foreign(
        ["purgatorio"], "reference_adapter:WithoutSecondTry", LIMITS, path=[str(ADAPTERS)]
    )
    assert mutant.verdict is Verdict.VIOLATED
    assert mutant.counterexample is not None
    assert "the event is lost" in mutant.counterexample.broken[0].seen


def test_the_example_of_the_page() -> None:
    explored = explore_foreign(["racy_cache"], "cache_adapter:LoadsOnce", Limits(), path=[str(EXAMPLE)])
    page = DOCS.read_text(encoding="utf-8")
    for file in ("racy_cache.py", "cache_adapter.py"):
        lines = (EXAMPLE / file).read_text(encoding="utf-8").splitlines()
        assert "\n".join(f"    {line}".rstrip() for line in lines) in page
    shown = "\n".join(f"    {line}".rstrip() for line in table(explored).splitlines())
    assert shown in page


def test_a_call_of_threading_is_one_line_with_its_result() -> None:
    """The inside of `Condition` does not show that the notification went to a wait that had timed out."""
    explored = _explored("planted:TakesNoticeTooLate")
    text = table(explored)
    words = " ".join(line.split("  ")[-1].strip() for line in text.splitlines())
    assert {"wait (1 s)", "wait (9 s)"} == set(re.findall(r"wait \(.*?\)", words))
    assert "wakes short, already timed out" in words  # of a call in one turn behind `notify, `
    assert words.count("wait timed out") == 2
    assert "_waiters" not in text
    assert "_waiters" in table(explored, verbose=True)


def test_no_line_of_a_table_is_wider_than_80_columns() -> None:
    text = table(_explored("planted:ManyLose"))
    assert max(len(line) for line in text.splitlines() if "--replay" not in line) <= 80
    assert "    thread" in text.splitlines()


def test_a_wide_terminal_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "170")
    text = table(_explored("planted:ManyLose"))
    assert 80 < max(len(line) for line in text.splitlines() if "--replay" not in line) <= 170
    assert "    thread" not in text.splitlines()


def test_first_steps_that_only_prepare_are_one_line() -> None:
    """Only `--verbose` shows them. Never folded: a value that is read, and then changed by the other thread."""
    explored = _explored("planted:PreparesAlone")
    text, whole = (table(explored, verbose=verbose) for verbose in (False, True))
    assert "-- steps 1 to 5: first alone; --verbose shows them --" in text
    assert "alone" not in whole
    assert [one.count("write PreparesAlone.fields") for one in (text, whole)] == [3, 8]
    assert "alone" not in table(_explored("planted:LostUpdate"))


def test_what_check_reads_is_shown() -> None:
    """`--verbose` also shows what only one thread uses."""
    explored = _explored("planted:CountsAlone")
    text, whole = (table(explored, verbose=verbose) for verbose in (False, True))
    assert [one.count("self.runs += 1") for one in (text, whole)] == [1, 1]
    assert [one.count("self.tries += 1") for one in (text, whole)] == [0, 1]
    assert [one.count("Only shared data") for one in (text, whole)] == [1, 0]


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    done = CliRunner().invoke(command, ["--package", "racy_cache", "--adapter", "cache_adapter:LoadsOnce"])
    assert done.exit_code == 1
    token = done.output.split("--replay ")[1].split()[0]
    again = CliRunner().invoke(command, ["--replay", token])
    assert again.exit_code == 1
    assert "loaded 2 times" in again.output
    for package, adapter, said in (
        ("racy_cache", "cache_adapter:Nope", "cache_adapter has no Nope"),
        (
            "racy_cache",
            "cache_adapter.py:LoadsOnce",
            "write the name of a module, cache_adapter, and not its file",
        ),
        (
            "./racy_cache.py",
            "cache_adapter:LoadsOnce",
            "write the name of a module, racy_cache, and not its file",
        ),
    ):
        wrong = CliRunner().invoke(command, ["--package", package, "--adapter", adapter])
        assert wrong.exit_code == 2
        assert said in " ".join(wrong.stderr.split())
        assert "exploring" not in wrong.stderr
    wrong = CliRunner().invoke(command, ["--package", "racy_cache"])
    assert wrong.exit_code == 2


MENDED = """
import threading

class Cache:
    def __init__(self, load):
        self.lock, self.load, self.items, self.loads = threading.Lock(), load, {}, 0

    def get(self, key):
        with self.lock:
            if key not in self.items:
                self.loads += 1
                self.items[key] = self.load(key)
            return self.items[key]
"""


def test_a_token_of_other_code_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["--package", "racy_cache", "--adapter", "cache_adapter:LoadsOnce"])
    (tmp_path / "racy_cache.py").write_text(MENDED)
    again = CliRunner().invoke(command, ["--replay", done.output.split("--replay ")[1].split()[0]])
    assert again.exit_code == 2
    assert "run the search again, without --replay" in " ".join(again.stderr.split())


def test_code_that_recurses_too_deep_is_unknown_and_no_internal_error() -> None:
    """The depth depends on the caller, so the run does not repeat. It is no PASS either."""
    explored = _explored("planted:RecursesTooDeep")
    assert explored.verdict is Verdict.UNKNOWN
    assert "RecursionError" in explored.exploration.limit


def test_code_that_is_not_deterministic_is_no_pass() -> None:
    explored = _explored("unsteady:GoesByRuns")
    assert explored.verdict is Verdict.UNKNOWN
    assert "the same schedule gave another run" in explored.exploration.limit


def test_ids_from_a_repeated_import_are_equal_in_every_run() -> None:
    explored = _explored("loaded_again:Numbered", "loaded_again")
    assert "loaded_again.KEPT" in explored.anew
    assert explored.exploration.schedules > 1
    assert len(explored.outcomes) == 1


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(CannotLoad, match="no_such_module"):
        explore_foreign(["no_such_module"], "planted:LostUpdate", Limits(), path=[str(HERE)])
    with pytest.raises(CannotLoad, match=r"has no LostUpdat; did you mean LostUpdate\?"):
        _explored("planted:LostUpdat")
    with pytest.raises(CannotLoad, match="give each package of 'planted,ending' on its own"):
        _explored("planted:LostUpdate", "planted,ending")
    with pytest.raises(CannotLoad, match="nothing would check the result"):
        _explored("planted:LooksAtNothing")


pytest_plugins = ["pytester"]

TEST = """
def test_cache(purgatorio_interleavings):
    purgatorio_interleavings("racy_cache", "cache_adapter:LoadsOnce"{more})
"""


def _outcome(pytester: pytest.Pytester, *args: str, more: str = "", cache: str = "") -> pytest.RunResult:
    for path in EXAMPLE.glob("*.py"):
        shutil.copy(path, pytester.path)
    if cache:
        pytester.makepyfile(racy_cache=cache)
    pytester.makepyfile(TEST.replace("{more}", more))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *args)


def test_a_violation_fails_with_the_counterexample(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay works where pytest ran, also in another folder than that of the test."""
    replay = "purgatorio explore --replay foreign/racy_cache+*"
    for place in ("", f"PYTHONPATH={pytester.path.name} "):
        result = _outcome(pytester, str(pytester.path))
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*loaded 2 times*", f"  {place}{replay}"])
        monkeypatch.chdir(pytester.path.parent)


def test_sound_code_passes_the_fixture(pytester: pytest.Pytester) -> None:
    result = _outcome(pytester, "-rP", cache=MENDED)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["PASS *LoadsOnce*", "all classes of interleavings"])


def test_a_limit_is_unknown_and_no_pass(pytester: pytest.Pytester) -> None:
    sample = ", strategy='random', schedules=1"
    _outcome(pytester, more=sample).assert_outcomes(skipped=1)


def test_unknown_may_fail(pytester: pytest.Pytester) -> None:
    sample = ", strategy='random', schedules=0"
    _outcome(pytester, "--purgatorio-unknown", "fail", more=sample).assert_outcomes(failed=1)


def test_a_list_of_packages_is_wrong_usage(pytester: pytest.Pytester) -> None:
    result = _outcome(pytester, more=", ['racy_cache']")
    result.stdout.fnmatch_lines(["*write the packages one by one, then the adapter: *"])
