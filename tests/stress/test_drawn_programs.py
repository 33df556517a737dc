"""Drawn programs: every public method is played, the reference breaks nothing, known bugs are found, tokens repeat."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from docs.makers.machine_changes import HOT, changes
from mutants.diffs import Diff, diffs
from mutants.reference import MUTANTS
from purgatorio import SystemTimer, TimerTask
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio.sync import Sync
from purgatorio.timer.bucket import TimerTaskList
from purgatorio.timer.undriven import Undriven
from purgatorio_stress.explorer.program import Broken, carry_out
from purgatorio_stress.explorer.replay import Token
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.step import TIME
from purgatorio_stress.exploring import replay_token
from purgatorio_stress.mutant.patch import Bug, Patch, edited, patched
from purgatorio_stress.random_program import search
from purgatorio_stress.random_program.act import BadProgram, Drawn
from purgatorio_stress.random_program.draw import draw, enumerated
from purgatorio_stress.random_program.player import Vocabulary
from purgatorio_stress.random_program.registry import VOCABULARIES, scenario_named
from purgatorio_stress.random_program.search import explore_program, search_drawn
from purgatorio_stress.scenario.contract import ScenarioProgram
from stress.broker_programs import BROKER_PROGRAMS

PROGRAMS = 250
SEARCHED = Path(__file__).parents[1] / "mutants" / "reference" / "searched.txt"
FOUND = [
    tuple(part.strip() for part in line.split(" | ", 2))
    for line in Path(__file__).with_name("found_programs.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


class _FirstThatCan:
    def choose(self, run: Execution, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        return able[0] if able else TIME


def _public(cls: type) -> list[str]:
    return [
        name
        for one in cls.__mro__
        for name, value in vars(one).items()
        if not name.startswith("_") and callable(value) and one.__module__.startswith("purgatorio.")
        # (An abstract one is the subclass's; its calls go there.)
        if not getattr(value, "__isabstractmethod__", False)
    ]


def _never_played(vocabulary: Vocabulary, programs: int = PROGRAMS) -> list[str]:
    """Public methods of its classes that so many drawn programs, each run once, do not call; it ends with the last."""
    called: set[str] = set()
    with ExitStack() as stack:
        for cls in vocabulary.classes:
            for name in dict.fromkeys(_public(cls)):
                owner = next(one for one in cls.__mro__ if name in vars(one))
                replaced = _noting(vars(owner)[name], f"{cls.__name__}.{name}", called)
                stack.enter_context(patched([Patch(owner, name, replaced)]))
        wanted = {f"{cls.__name__}.{name}" for cls in vocabulary.classes for name in _public(cls)}
        wanted -= set(vocabulary.apart)
        rng = random.Random(1)
        for _ in range(programs):
            if wanted <= called:
                break
            dialect = rng.choice(vocabulary.dialects)
            drawn = draw(vocabulary, dialect, rng, lambda pair: 1.0)
            carry_out(ScenarioProgram(scenario_named(str(drawn)), dialect), _FirstThatCan(), [])
    return sorted(wanted - called)


def _noting(method: Callable[..., Any], name: str, called: set[str]) -> Callable[..., Any]:
    def note(*args: Any, **named: Any) -> Any:
        called.add(name)
        return method(*args, **named)

    return note


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_public_method_is_in_the_vocabulary(name: str) -> None:
    assert _never_played(VOCABULARIES[name]) == []


def test_a_public_method_without_an_act_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemTimer, "postpone", lambda self: None, raising=False)
    assert _never_played(VOCABULARIES["system"], 50) == ["SystemTimer.postpone"]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_reference_breaks_nothing(name: str) -> None:
    vocabulary = VOCABULARIES[name]
    rng = random.Random(20)
    for _ in range(12):
        dialect = rng.choice(vocabulary.dialects)
        drawn = draw(vocabulary, dialect, rng, lambda pair: 1.0)
        assert explore_program(drawn, dialect, schedules=40).found == [], str(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
def test_twenty_seeds_of_a_subject_break_nothing(name: str) -> None:
    """The purgatory has the most to say, and was accused once of what its program did."""
    seconds = 4.0 if name == "purgatory" else 1.0
    for seed in range(1, 21):
        found = search_drawn(seconds, seed, [name]).found
        assert found is None, (seed, list(found.program.lines()), found.found.broken)


@pytest.fixture
def with_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in BROKER_PROGRAMS:
        monkeypatch.setitem(VOCABULARIES, one.name, one)


@pytest.mark.usefixtures("with_broker")
@pytest.mark.parametrize("name", [one.name for one in BROKER_PROGRAMS])
def test_random_programs_of_the_broker_break_nothing(name: str, request: pytest.FixtureRequest) -> None:
    seeds = range(20 if request.config.getoption("--slow") else 1)
    assert [search_drawn(1.0, seed, [name]).found for seed in seeds] == [None] * len(seeds)


@pytest.mark.usefixtures("with_broker")
@pytest.mark.parametrize("bug", diffs(SEARCHED), ids=lambda bug: f"{bug.name}: {bug.what}")
def test_a_bug_for_which_a_subject_was_made_is_found(bug: Diff) -> None:
    subject, seed = bug.name.split()
    patches = tuple(change.patch("purgatorio") for change in bug.changes)
    done = search_drawn(60, int(seed), [subject], bug=Bug(patches=patches), shrink=False)
    assert done.found is not None
    assert done.refused == 0


def test_what_breaks_the_sound_code_too_is_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the end that always complains: every program is refused, with a bug that is none."""
    monkeypatch.setattr(
        "purgatorio_stress.random_program.parts.QueuePlayer.final",
        lambda self: iter([Broken("T3", "queue", "nothing is right")]),
    )
    with_bug = search_drawn(1, 1, ["queue"], bug=Bug("that is none"))
    assert with_bug.found is None
    assert with_bug.refused == with_bug.programs > 0
    assert "without the bug too" in "\n".join(with_bug.lines())
    assert search_drawn(1, 1, ["queue"], shrink=False).found is not None


@pytest.mark.parametrize("program", [program for said, program, _ in FOUND if said == "sound"])
def test_the_reference_is_judged_by_its_own_promises(program: str) -> None:
    drawn = Drawn.parse(program)
    for dialect in VOCABULARIES[drawn.subject].dialects:
        assert explore_program(drawn, dialect).found == [], dialect


def test_an_event_that_meets_an_evaluation_that_raises_is_seen_by_another() -> None:
    """Found by a random program: the thread with the exception left without a test of the event's flag."""
    drawn = Drawn.parse("drawn:purgatory:0.0.0.0:3.3.0::event.0+register.0:try.0=raise")
    assert explore_program(drawn, "pending-flag", schedules=2_000).found == []
    as_it_was = edited(PendingFlag, "safe_try_complete", "if not again:", "if True:")
    with patched([as_it_was]):
        (found,) = explore_program(drawn, "pending-flag", schedules=2_000).found
    assert found.clause == "O4"


@pytest.mark.parametrize(
    ("number", "subject", "seed"),
    [
        (1, "purgatory", 2), (11, "purgatory", 2), (52, "system", 1), (57, "system", 1), (73, "hashed", 1),
        (83, "system", 1),
    ],
)  # fmt: skip
def test_a_known_bug_is_found_made_small_and_repeated(number: int, subject: str, seed: int) -> None:
    """By any seed; by these soon."""
    mutant = MUTANTS[number]
    found = search_drawn(60, seed, [subject], bug=mutant.bug).found
    assert found is not None
    assert found.program.size() <= found.first.size()
    assert found.run is not None
    again = replay_token(Token.parse(str(found.token)), mutant.bug)
    assert [one.clause for one in again.broken] == [one.clause for one in found.run.broken]
    # The reference itself passes what kills the mutant.
    assert explore_program(found.program, found.dialect).found == []


@pytest.mark.parametrize(("clause", "program", "name"), [row for row in FOUND if row[0] != "sound"])
def test_a_change_that_programs_did_not_see_is_seen_now(clause: str, program: str, name: str) -> None:
    """A loop that turns where others could go on, an answer that is missing, a lock that is not taken, a wrong call."""
    module = max((one for one in HOT if f"purgatorio.{name}".startswith(f"{one}.")), key=len)
    change = next(one for one in changes(module) if one.name == f"purgatorio.{name}")
    drawn = Drawn.parse(program)
    assert explore_program(drawn, "pending-flag", races=True).found == []
    with change.applied():
        (found,) = explore_program(drawn, "pending-flag", races=True).found
    assert found.clause == clause


def test_two_drains_of_a_timer_that_says_whether_it_is_driven_have_no_race() -> None:
    drawn = Drawn.parse("drawn:system:1.2.1.0:1:add.0:step.3,drain.0:run.0=drain.0")
    assert explore_program(drawn, "pending-flag", races=True).found == []

    def with_a_cell(self: Undriven, name: str, waiting: Callable[[], int], sync: Sync) -> None:
        init(self, name, waiting, sync)
        self.driven = sync.cell(False, "undriven.driven")  # type: ignore[assignment]  # a cell, whose use without a lock is a race

    init = Undriven.__init__
    with patched([Patch(Undriven, "__init__", with_a_cell)]):
        (found,) = explore_program(drawn, "pending-flag", races=True).found
    assert found.clause == "RACE"


@pytest.mark.parametrize(
    "program", ["drawn:system:1.2.0.0:1::misuse:", "drawn:purgatory:1.0.1.0:-1.0.0::misuse:"]
)
def test_a_coroutine_as_a_callback_must_be_refused(program: str) -> None:
    with patched([Patch(TimerTask, "__init_subclass__", classmethod(lambda cls: None))]):
        (found,) = explore_program(Drawn.parse(program), "pending-flag").found
    assert found.clause == "CHECK"


@pytest.mark.parametrize("takes", [0, 1 << 28])
def test_an_endless_loop_is_reported_and_does_not_hang(takes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it take all memory."""
    monkeypatch.setattr("purgatorio_stress.random_program.search._NO_END_S", 0.5)

    def turn(self: TimerTaskList, entry: object) -> None:
        taken: list[bytes] = []
        while len(taken) * takes < 1 << 40:
            taken.append(bytes(takes))

    with patched([Patch(TimerTaskList, "add", turn)]):
        drawn = Drawn.parse("drawn:system:1.2.0.0:3::add.0:")
        (found,) = explore_program(drawn, "pending-flag").found
    assert [one.clause for one in found.broken][:1] in (["P3"], ["O8"])
    assert ("MemoryError" in found.broken[0].seen) is (takes > 0)


def test_each_search_of_a_program_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow search that uses its whole time is no endless loop. Here DPOR is incomplete, and PCT follows."""
    limits: list[float] = []

    def bounded(seconds: float) -> AbstractContextManager[None]:
        limits.append(seconds)
        return nullcontext()

    monkeypatch.setattr(search, "bounded_cpu", bounded)
    drawn = Drawn.parse("drawn:system:1.2.0.0:3::add.0:")
    assert not explore_program(drawn, "pending-flag", schedules=0).found
    assert min(limits) > search._SECONDS
    assert len(limits) > 1


def _small() -> Iterator[Drawn]:
    for size in (1, 2):
        yield from enumerated(VOCABULARIES["heap"], size)


def test_small_programs_are_enumerated_once_each_and_read_back() -> None:
    names = [str(drawn) for drawn in _small()]
    assert len(names) == len(set(names)) > 100
    assert all(str(Drawn.parse(name)) == name for name in names)


@pytest.mark.parametrize(
    "text",
    [
        "drawn:system",
        "drawn:system:1.2.0.0:3::fly.0:",
        "drawn:system:1.2.0.0:3::add.7:",
        "drawn:system:1.2.0.0:3::add:",
        "drawn:system:1:3::add.0:",
        "drawn:nobody:1.2.0.0:3::add.0:",
        "drawn:system:1.2.0.0:3::__init__.0:",
        "drawn:system:1.2.0.0:x::add.0:",
        "drawn:system:1.2.0.38:3::add.0:",
        "drawn:system:0.2.0.0:3::add.0:",
    ],
)
def test_a_text_that_is_not_a_program_is_refused(text: str) -> None:
    with pytest.raises(BadProgram):
        scenario_named(text)


@pytest.mark.parametrize(
    ("program", "dialect", "may"),
    [
        # Kafka's `maybeTryComplete` is called by a watcher list only: no list has the operation during its first try.
        ("drawn:purgatory:0.0.0.0:0.0.0::check.0,retry.0+register.0:", "pending-flag", False),
        (
            "drawn:purgatory:0.0.0.0:0.0.0,0.0.0::register.0+ready.0,force.1:complete.1=retry.0",
            "pending-flag",
            False,
        ),
        ("drawn:purgatory:0.0.0.0:0.0.0:register.0:retry.0+retry.0:", "pending-flag", True),
        ("drawn:purgatory:0.0.0.0:0.0.0::retry.0,register.0,retry.0+event.0:", "pending-flag", True),
        ("drawn:purgatory:0.0.0.0:0.0.0::retry.0+retry.0:", "pending-flag", True),
        ("drawn:purgatory:0.0.0.0:0.0.0::check.0,retry.0+register.0:", "locked", True),
    ],
)
def test_no_thread_tries_an_operation_during_its_registration_without_a_lock(
    program: str, dialect: str, may: bool
) -> None:
    """O6 of the tries holds in every program that may be written, and breaks in the ones that may not."""
    drawn = Drawn.parse(program)
    assert VOCABULARIES["purgatory"].legal(drawn, dialect) is may
    found = explore_program(drawn, dialect, schedules=1_000).found
    assert [one.clause for one in found] == ([] if may else ["O6"])
