"""The scope. Small bugs of strangers that lay between the programs that somebody had thought of, and slips that were
thought up without the scope in hand: each is found by a program of it."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, permutations
from pathlib import Path

import pytest

from conformance.driven import EXAMPLES, PYTHON, broken, changed, needs_node, stranger, subject_in
from conformance.small_purgatory import SLIPS, Op, Small, small
from purgatorio_conformance.protocol import plays
from purgatorio_conformance.protocol.coverage import looked_for
from purgatorio_conformance.protocol.describe import Part, header_of
from purgatorio_conformance.protocol.driver import CommandSubject, command_subjects
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.scope import crossed, crossing_named, drawn_program, scope, scope_delays
from purgatorio_conformance.protocol.shortest import order_of_run
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.contract import silent
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import _STEPPED, SCOPE, of_purgatory, of_timer, play
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

HERE = Path(__file__).parent


def in_scope(command: Sequence[str], folder: Path, programs: int) -> tuple[RunResult, CommandSubject]:
    subject = subject_in("virtual-scope", command)
    trace = subject.run_seeded(1, programs, folder / "run.jsonl", silent)
    return check_files([trace]).runs[0], subject


TIMER = Description(
    0, "", "x", ("timer", "cancel", "gauge", "add-again"), (), tick_ns=MS, wheel_size=8, gates=("timer_fire",)
)
PURGATORY = replace(
    TIMER,
    capabilities=("purgatory", "cancel-key", "force", "gauge"),
    gates=("try_complete", "on_complete", "on_expiration"),
)


@pytest.mark.parametrize(
    ("part", "description", "sizes"),
    [
        ("timer", TIMER, [181, 1_945]),
        ("timer", replace(TIMER, gates=()), [89, 939]),
        ("timer", replace(TIMER, capabilities=("timer",), gates=()), [63, 322]),
        ("purgatory", PURGATORY, [385, 4_363]),
        ("purgatory", replace(PURGATORY, gates=()), [142, 1_259]),
    ],
)
def test_the_scope_is_enumerated(part: Part, description: Description, sizes: list[int]) -> None:
    """Each program once; what a subject lacks is in none of them. How many there are is a decision."""
    found = scope(part, scope_delays(description), description)
    programs = [next(found) for _ in sizes]
    assert [len(some) for some in programs] == sizes
    names = [one.name for some in programs for one in some]
    assert len({*names}) == len(names)


@pytest.mark.parametrize(("virtual", "late_ns"), [(True, MS), (False, 1_000)])
def test_the_late_bound_has_whole_units_where_the_clock_does(virtual: bool, late_ns: int) -> None:
    """A timer of floats is late by a nanosecond, and the next stop of the clock is a unit later."""
    floats = replace(TIMER, unit_ns=MS, late_ns=1_000)
    header = header_of(floats, "timer", run="r", virtual=virtual, late_slack_ns=0, params={})
    assert header.timer.late_ns == late_ns


def test_the_result_says_how_far_the_scope_was_played(tmp_path: Path) -> None:
    run, subject = in_scope((*PYTHON, str(EXAMPLES / "toy_wheel.py")), tmp_path, 100)
    assert run.verdict is Verdict.PASS
    assert run.clauses["T2"].occasions > 100
    reached = "all 71 programs up to size 1; size 2: 5 % of 513 (the limit of --operations)"
    assert ("toy-wheel timer", f"virtual-scope: {reached}") in looked_for([subject])


@pytest.mark.parametrize("ran", [True, False])
def test_a_run_without_a_program_is_no_pass(ran: bool, tmp_path: Path) -> None:
    (_, _, scoped) = command_subjects((*PYTHON, str(EXAMPLES / "toy_wheel.py")), time="virtual")
    (record,) = record_runs([replace(scoped, leaves_out=lambda program: not ran)], tmp_path, ops=30)
    assert (record.failure is None) is ran
    assert ran or "unfinished: no program ran, so nothing was tested" in str(record.failure)


def test_without_calls_in_callbacks_one_caller_has_no_gated_run(tmp_path: Path) -> None:
    """A run without a program would be UNKNOWN."""
    text = (EXAMPLES / "toy_wheel.py").read_text()
    flat = tmp_path / "toy_wheel.py"
    flat.write_text(text.replace('"gauge"]', '"gauge", "no-re-entry"]'))
    modes = [one.mode for one in command_subjects((*PYTHON, str(flat)), time="virtual")]
    assert modes == ["virtual-plan", "virtual-jumps", "virtual-scope"]


INSIDE = {
    "        self.watchers, self.timeouts": "        self.expires = False\n        self.watchers, self.timeouts",
    "        first = 1 if BUG else 0\n": "        first = 1 if BUG else 0\n"
    "        if self.expires:\n            return 0\n",
    "                if self.force_complete(op):\n                    say": "                self.expires = True\n"
    "                done = self.force_complete(op)\n                self.expires = {}\n"
    "                if done:\n                    say",
}


@pytest.mark.parametrize("forgets", [True, False])
def test_a_check_inside_an_expiry(forgets: bool, tmp_path: Path) -> None:
    """A check while something expires looks nowhere (redis#7880). Its program is among the first 700."""
    changes = {', "cancel-key", "force", "gauge"]': "]"} | (INSIDE if forgets else {})
    changes = {text: instead.replace("= {}", "= False") for text, instead in changes.items()}
    run, subject = in_scope(
        (*PYTHON, changed(EXAMPLES / "toy_purgatory.py", changes, tmp_path)), tmp_path, 700
    )
    assert broken(run) == ({"O4"} if forgets else set())
    if forgets:
        session = order_of_run(subject, run, "O4", tmp_path / "again.jsonl")
        assert any('"m":"check"' in line and '"hold"' in line for line in session)


@needs_node
@pytest.mark.parametrize("runs", [True, False])
def test_a_cancel_inside_a_task_of_the_same_batch(runs: bool, tmp_path: Path) -> None:
    """A task cancels another that is due as well, is told that it did, and it runs. The twin looks before that."""
    looks = {"if (due && this.cancel(task)) {": "if (due) {\n          this.cancel(task);"}
    command = ("node", changed(EXAMPLES / "toy_wheel.js", looks if runs else {}, tmp_path))
    run, _ = in_scope(command, tmp_path, 300)
    assert broken(run) == ({"T4"} if runs else set())


@pytest.mark.parametrize("misses", ["none", "batch", "later"])
@pytest.mark.parametrize("profile", ["timer", "timer-cancel-barrier"])
def test_a_cancel_inside_a_task_of_an_adapter(
    profile: str, misses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the plugin, without threads: a success is final, whatever the profile. 100 programs find both. And a call may
    be so slow that its thread seems to wait: the program goes on behind it all the same."""
    monkeypatch.setattr(gated, "_SCOPE", 120)
    for patience in ("_GLANCE_S", "_QUIET_MOST_S"):
        monkeypatch.setattr(plays, patience, 0.0)
    monkeypatch.setattr(ProcessThreads, "wait", lambda threads: True)
    lacks = dict.fromkeys(("size", "between-ticks", "past", "raising"), "it is small")
    promise = Promise(profile, 10 * MS, early_ns=0, late_ns=10 * MS, lacks=lacks)
    judged = play(SCOPE, of_timer(promise, lambda _: stranger("bucket_a_tick")(misses=misses)))
    assert not judged.broken_off
    assert broken(judged.result) == (set() if misses == "none" else {"T4"})


TWO_FIRST = [f"nothing | add w {one} beside add v {other}"
             for one, other in permutations(("soon", "later", "last"), 2)]  # fmt: skip


@pytest.mark.parametrize("looks", [True, False])
def test_two_adds_both_come_before_all_others(looks: bool) -> None:
    """The timer is set for the later one, and the first deadline passes without its task."""
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise("timer", MS, early_ns=0, late_ns=0, threads=True, lacks=lacks)
    subject = of_timer(promise, lambda _: stranger("cyclic")(sound=looks))
    _, programs = next(crossed("timer", scope_delays(subject.description), subject.description))
    crossing = next(one.name for one in islice(programs, _STEPPED) if one.name in TWO_FIRST)
    judged = play("steps", replace(subject, leaves_out=lambda one: one.name != crossing))
    assert ("T2 is broken" in judged.broken_off) is not looks
    assert not broken(judged.result)


@pytest.mark.parametrize(("says", "found"), [(False, set()), (None, set()), (True, {"T11"})])
def test_a_task_is_reset_while_a_thread_takes_it_out(
    says: bool | None, found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs after the reset and before its new deadline; who calls the reset must know that."""
    monkeypatch.setattr(gated, "_DRAWN", 0)
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise(
        "timer-cancel-barrier", MS, early_ns=0, late_ns=0, threads=True, lacks=lacks, offers=("reset",)
    )
    subject = of_timer(promise, lambda _: stranger("movable")(says=says))
    _, programs = next(crossed("timer", scope_delays(subject.description), subject.description))
    names = [one.name for one in islice(programs, _STEPPED)]
    (crossing,) = (one for one in names if one.endswith("expiry of t beside reset t later"))
    judged = play("steps", replace(subject, leaves_out=lambda one: one.name != crossing))
    assert not judged.broken_off
    assert broken(judged.result) == found


@pytest.fixture(scope="session")
def delay_queue(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled. Skips where there is no compiler."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed")
    made = tmp_path_factory.mktemp("rust") / "delay-queue"
    source = HERE / "strangers" / "delay_queue.rs"
    subprocess.run([compiler, "-O", "-o", str(made), str(source)], check=True, capture_output=True)
    return str(made)


@pytest.mark.parametrize("moves", ["add-again", "reset"])
@pytest.mark.parametrize("fix", [(), ("fix",)], ids=["bug", "fix"])
def test_a_task_that_is_overdue_is_moved_and_then_cancelled(
    fix: tuple[str, ...], moves: str, delay_queue: str, tmp_path: Path
) -> None:
    """It is taken from the list where it was, and not from the one where it is (tokio#3270)."""
    run, _ = in_scope((delay_queue, moves, *fix), tmp_path, 800)
    assert broken(run) == (set() if fix else {"T4"})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("fix", [False, True], ids=["bug", "fix"])
@pytest.mark.parametrize(("slots", "tick_ns"), [(16, MS), (4_096, 1_000 * MS), (4_096, 60_000 * MS)])
def test_a_jump_over_a_revolution_leaves_nothing_overdue(
    slots: int, tick_ns: int, fix: bool, tmp_path: Path
) -> None:
    """It visits the buckets between where it was and where it is, without the revolution (nats-server#7070)."""
    made, source = tmp_path / "wheel", HERE / "strangers" / "hash_wheel.c"
    defined = [f"-DSLOTS={slots}", f"-DTICK={tick_ns}LL", *(["-DFIX"] if fix else [])]
    subprocess.run(["gcc", "-O1", *defined, "-o", str(made), str(source)], check=True, capture_output=True)
    run, _ = in_scope((str(made),), tmp_path, 100)
    assert broken(run) == (set() if fix else {"T2"})


@pytest.mark.slow
@pytest.mark.xdist_group("jvm-kit")
@pytest.mark.parametrize("fix", [False, True], ids=["bug", "fix"])
def test_two_adds_make_one_bucket(fix: bool, built: tuple[Path, Path], tmp_path: Path) -> None:
    """In real time: one of the two lists is lost (hutool#2712)."""
    java, classes = built
    command = (str(java), f"-Dfix={str(fix).lower()}", "-cp", str(classes), "LazyWheelAdapter")
    subject = subject_in("real-steps", command)
    trace = subject.run_seeded(1, 100, tmp_path / "run.jsonl", silent)
    assert broken(check_files([trace]).runs[0]) == (set() if fix else {"T3"})


@pytest.mark.parametrize(
    ("slip", "purges", "programs"),
    [
        ("", False, 450),
        ("", True, 450),
        *((name, one.purges, one.programs) for name, one in SLIPS.items() if one.programs),
    ],
)
def test_a_slip_on_one_thread_is_found(
    slip: str, purges: bool, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By calls from inside callbacks, by callbacks that raise, and by time that comes before any event."""
    monkeypatch.setattr(gated, "_SCOPE", programs)
    promise = Promise("locked", MS, early_ns=0, late_ns=0, purge_interval=10 * purges, threads=False)
    judged = play(SCOPE, of_purgatory(promise, partial(small, slip)))
    assert not judged.broken_off
    found = broken(judged.result)
    assert SLIPS[slip].clause in found if slip else not found


TIMER_OF_TWO = replace(
    TIMER, capabilities=(*TIMER.capabilities, "failing"), lanes=2, gates=("timer_fire", "step")
)
PURGATORY_OF_TWO = replace(
    PURGATORY,
    capabilities=(*PURGATORY.capabilities, "failing"),
    wheel_size=None,
    lanes=2,
    gates=("try_complete", "force_complete", "on_complete", "on_expiration", "timer_fire"),
)


@pytest.mark.parametrize(
    ("part", "description", "counts"),
    [("timer", TIMER_OF_TWO, [492, 7_435]), ("purgatory", PURGATORY_OF_TWO, [1_877, 24_975])],
)
def test_the_programs_of_two_callers_are_enumerated(
    part: Part, description: Description, counts: list[int]
) -> None:
    """Each once, first those in which calls of new kinds meet; each is found again by its name."""
    sizes = [
        (count, [*islice(some, 60)]) for count, some in crossed(part, scope_delays(description), description)
    ]
    assert [count for count, _ in sizes] == counts
    for _, programs in sizes:
        assert len({one.name for one in programs}) == len(programs)
        again = crossing_named(programs[-1].name, part, scope_delays(description), description)
        assert again == programs[-1]
    pairs = [frozenset(type(call) for lane in one.lanes for call in lane) for one in sizes[0][1]]
    assert len({*pairs[:20]}) > 5


def test_the_first_programs_find_work() -> None:
    """A check finds a ready operation and empties the list of its key, beside a registration that waits under this key:
    known bug 4 (KAFKA-2253)."""
    _, programs = next(crossed("purgatory", scope_delays(PURGATORY_OF_TWO), PURGATORY_OF_TWO))
    able = (one for one in programs if one.cannot_step(PURGATORY_OF_TWO, virtual=True) is None)
    names = [one.name for one in islice(able, _STEPPED)]
    assert any(name.startswith("op a ready, alone | check a beside register next a") for name in names)


@pytest.mark.parametrize(
    ("part", "description"),
    [
        ("timer", TIMER_OF_TWO),
        ("timer", replace(TIMER_OF_TWO, capabilities=("timer",), lanes=3)),
        ("purgatory", PURGATORY_OF_TWO),
    ],
)
def test_a_random_program_can_be_played(part: Part, description: Description) -> None:
    """What it adds has a name of its own, where the subject takes none twice; and the same name is the same program."""
    able = replace(
        description, capabilities=tuple(one for one in description.capabilities if one != "add-again")
    )
    for number in range(200):
        drawn = [
            drawn_program(f"drawn-1-{number}", part, scope_delays(able), able, virtual=True) for _ in range(2)
        ]
        assert drawn[0] == drawn[1]
        assert drawn[0].ruled_out(able, virtual=True) is None
        assert len(drawn[0].lanes) > 1


class _OneKey(Small):
    """A request waits under one key. While a condition is evaluated, no call may come."""

    def __init__(self) -> None:
        super().__init__()
        self._evaluating = False

    def _watch(self, op: Op, key: str) -> None:
        if key == op.probe.keys[0]:
            super()._watch(op, key)

    def _tried(self, op: Op) -> bool:
        assert not self._evaluating
        self._evaluating = True
        try:
            return super()._tried(op)
        finally:
            self._evaluating = False


@pytest.mark.parametrize("lack", ["", "several-keys", "callbacks"])
def test_a_purgatory_declares_what_its_operations_cannot_do(
    lack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it is blamed for a key that it does not know, or for a call from inside a callback."""
    monkeypatch.setattr(gated, "_SCOPE", 700)
    names = {"cancel-for-key", "gauges", "raising", "several-keys", "callbacks"}
    lacks = dict.fromkeys(names - {lack}, "it is small")
    promise = Promise("locked", MS, early_ns=0, late_ns=0, threads=False, lacks=lacks)
    judged = play(SCOPE, of_purgatory(promise, lambda _: _OneKey()))
    assert broken(judged.result) == ({"O4"} if lack == "several-keys" else set())
    assert ("AssertionError" in judged.broken_off) is (lack == "callbacks")
