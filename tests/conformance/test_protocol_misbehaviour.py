"""A subject that misbehaves is a reported failure of its kind: never a crash, and what was recorded is kept."""

import gc
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from conformance.driven import PYTHON, subject_in
from purgatorio_conformance import recording
from purgatorio_conformance.protocol import failed_run
from purgatorio_conformance.protocol.driver import CommandSubject, Mode, command_subjects, describe_command
from purgatorio_conformance.protocol.message import Add, Advance, Cancel
from purgatorio_conformance.protocol.played_order import Account, PausedCall, PlayedOrder
from purgatorio_conformance.protocol.script import ScriptPlayer
from purgatorio_conformance.protocol.shortest import shortest_failed
from purgatorio_conformance.recording import RunRecord, record_runs
from purgatorio_conformance.subject.child import STDERR_KEPT_BYTES, ChildLimits
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed, silent
from purgatorio_conformance.subject.plan import MS, make_plan
from purgatorio_conformance.suite.gated import command_promise, of_command, play
from purgatorio_pipeline.command.driving import judge_records
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.check import check_files
from purgatorio_spec.trace.record import End
from stress.trace_structure import ReadRun, check_intervals, read_run

BAD = Path(__file__).with_name("bad_subject.py")
PLAN = make_plan(1, 20, 1, 1_000_000)
QUICK = ChildLimits(silence_s=1.5, total_s=60.0, lines=5_000)
"""So short a silence is a failure of subjects that are meant to fall silent, and only of those."""
PATIENT = ChildLimits(silence_s=30.0, total_s=60.0, lines=5_000)
WAYS = re.findall(r"^(\S+): .* => (\S+): (.*)$", BAD.with_name("misbehaviours.txt").read_text(), re.MULTILINE)
GATED = ("gate-stuck", "gate-goes-on", "gate-dies")


def command(how: str = "") -> list[str]:
    return [*PYTHON, str(BAD), *([how] if how else [])]


def subject(how: str, limits: ChildLimits, mode: Mode = "virtual-plan") -> CommandSubject:
    return subject_in(mode, command(how), limits=limits, late_slack_ns=MS)


def record(
    how: str, folder: Path, limits: ChildLimits = PATIENT, mode: Mode = "virtual-plan"
) -> tuple[SubjectFailed, ReadRun]:
    with pytest.raises(SubjectFailed) as caught:
        subject(how, limits, mode).run(PLAN, folder / "run.jsonl", silent)
    assert caught.value.trace == folder / "run.jsonl"
    return caught.value, read_run(folder / "run.jsonl")


def test_the_twin_that_behaves_is_recorded_to_its_end(tmp_path: Path) -> None:
    path = subject("", PATIENT).run(PLAN, tmp_path / "run.jsonl", silent)
    run = read_run(path)
    check_intervals(run.events)
    assert run.end == End(len(run.events), 0)
    assert str(check_files([path]).verdict) == "PASS"
    assert not (tmp_path / "run.stderr").exists()


@pytest.mark.parametrize(("how", "limits"), [("work-slowly", QUICK), ("detach-after-stop", PATIENT)])
def test_who_works_slowly_is_waited_for_and_who_detaches_is_not(
    how: str, limits: ChildLimits, tmp_path: Path
) -> None:
    """The one is silent for too long, but uses the processor. The other has ended, though a process holds its pipes."""
    path = subject(how, limits).run(PLAN, tmp_path / "run.jsonl", silent)
    assert str(check_files([path]).verdict) == "PASS"


@pytest.mark.parametrize(
    ("slow", "slow_again", "kind"),
    [(False, False, "deadlock"), (True, False, "hang"), (False, True, "hang")],
)
def test_a_hang_that_may_be_slowness_proves_no_deadlock(
    slow: bool, slow_again: bool, kind: FailureKind, tmp_path: Path
) -> None:
    """Neither the first nor the second time, though the calls return one by one: that way nothing slows them."""
    order = PlayedOrder("program", ("lane 0", "lane 1"), None)

    def again(_: Path, played: PlayedOrder | None, __: float | None) -> tuple[Account, SubjectFailed | None]:
        if played != order:
            return Account(), None
        failure = SubjectFailed("bad", "hang", "silent", slow=slow_again)
        return Account(under_way=order, unanswered=["check"]), failure

    account = Account(under_way=order, unanswered=["check"])
    proved = _proof(account, again, tmp_path).of(SubjectFailed("bad", "hang", "silent", slow=slow))
    assert proved.kind == kind, proved.why


_Again = Callable[[Path, PlayedOrder | None, float | None], tuple[Account, SubjectFailed | None]]


def _proof(account: Account, again: _Again, tmp_path: Path) -> failed_run.FailedRun:
    return failed_run.FailedRun(
        partial(ScriptPlayer, command()),
        describe_command(command()),
        "timer",
        virtual=True,
        held=True,
        limits=QUICK,
        account=account,
        trace=tmp_path / "run.jsonl",
        begins_t=0,
        again=again,
    )


@pytest.mark.parametrize(
    ("busy_s", "by_itself", "kind"), [(10.0, [], "endless"), (9.0, [], "hang"), (10.0, ["advance"], "hang")]
)
def test_who_works_on_by_an_order_of_threads_is_endless(
    busy_s: float, by_itself: list[str], kind: FailureKind, tmp_path: Path
) -> None:
    """One of the orders since all was at rest tears a list, in which a later advance goes round."""
    sound, tears = (
        PlayedOrder("program", (), PausedCall(0, 0, (1,))),
        PlayedOrder("program", (), PausedCall(0, 0, (2,))),
    )

    def again(
        _: Path, played: PlayedOrder | None, work_s: float | None
    ) -> tuple[Account, SubjectFailed | None]:
        unanswered = ["advance"] if played == tears else [] if played == sound else by_itself
        failure = SubjectFailed("bad", "hang", "silent", busy_s=busy_s) if unanswered and work_s else None
        return Account(unanswered=unanswered), failure

    account = Account(suspects=(sound, tears), unanswered=["advance"])
    assert _proof(account, again, tmp_path).of(SubjectFailed("bad", "hang", "silent")).kind == kind


@pytest.mark.parametrize(("how", "violations"), [("fire-early-and-die", 1), ("die", 0)])
def test_in_the_suite_what_was_broken_before_a_program_died_is_told(how: str, violations: int) -> None:
    """A task that starts a second too early, and then no more; the twin only dies."""
    description = describe_command(command(how))
    judged = play("plan", of_command(command_promise(description), "timer", description, command(how)))
    assert "ended with exit status 7" in judged.broken_off
    assert judged.result.clauses["T1"].violations == violations


@pytest.mark.parametrize(
    ("how", "kind", "why"),
    [
        ("crash", "crashes", "P3 is broken: ended by signal 11"),
        ("crash-when-full", "crashes", "the calls of only 5 tasks"),
        ("be-killed", "died", "ended by signal 9"),
    ],
)
def test_a_crash_that_comes_again_breaks_a_promise(
    how: str, kind: FailureKind, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed program broke nothing. Nor did one that crashes only with many tasks: its adapter may have no room."""
    failure, _ = record(how, tmp_path)
    assert (failure.kind, why in failure.why) == (kind, True), failure.why
    monkeypatch.setattr(failed_run, "_ALONE_MOST", 1)
    assert record(how, tmp_path)[0].kind == ("crashes" if how == "crash" else "died")


@pytest.mark.parametrize(("how", "kind", "why"), WAYS, ids=[how for how, *_ in WAYS])
def test_every_misbehaviour_has_its_kind(how: str, kind: FailureKind, why: str, tmp_path: Path) -> None:
    """The text names what was said or done, and what came before is kept, without an end record."""
    falls_silent = "1.5 s" in why or "did not exit" in why
    mode: Mode = "virtual-gates" if how in GATED else "virtual-plan"
    failure, run = record(how, tmp_path, QUICK if falls_silent else PATIENT, mode)
    assert (failure.kind, why in failure.why) == (kind, True), failure.why
    assert run.end is None
    assert run.events
    assert str(check_files([tmp_path / "run.jsonl"]).verdict) in ("UNKNOWN", "VIOLATED"), "never PASS"


@pytest.mark.parametrize(
    ("how", "works_s", "steps", "few", "kind"),
    [
        ("spin", 0.1, 1_000, 1, "endless"),
        pytest.param("spin", 60.0, 1_000, 1, "hang", marks=pytest.mark.slow),
        ("spin", 0.1, -1, 1, "hang"),
        ("spin-start", 0.1, 1_000, 1, "hang"),  # no promise applies before the answer
        pytest.param("spin-crowd", 0.1, 1_000, 2, "endless", marks=pytest.mark.slow),
        ("spin-crowd", 0.1, 1_000, 1, "hang"),
        pytest.param("spin-many", 0.1, 1_000, failed_run._FEW_MOST, "endless", marks=pytest.mark.slow),
        pytest.param("spin-many", 0.1, 1_000, 8, "hang", marks=pytest.mark.slow),
    ],
)
def test_who_works_for_long_may_be_slow(
    how: str,
    works_s: float,
    steps: int,
    few: int,
    kind: FailureKind,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that takes far longer than any before it does not end. The twins may still return."""
    monkeypatch.setattr(failed_run, "_ENDLESS_S", works_s)
    monkeypatch.setattr(failed_run, "_HASTY_S", 0.1)
    monkeypatch.setattr(failed_run, "_ENDLESS_STEPS", steps)
    monkeypatch.setattr(failed_run, "_FEW_MOST", few)
    failure, _ = record(how, tmp_path, QUICK)
    assert failure.kind == kind, failure.why
    assert failure.why.startswith("P3 is broken: ") is (kind == "endless")
    assert re.search(
        r"; it used the CPU for \d+ s of this time; no answer before took longer than 0(\.0| s)", failure.why
    )


@pytest.mark.parametrize(
    ("how", "kind", "clause"),
    [
        ("real-hang", "late", "T2"),
        ("real-hang-at-once", "hang", "T2"),
        ("real-purgatory-hang", "late", "O5"),
        ("real-purgatory-hang-at-once", "hang", "O5"),
    ],
)
def test_who_hangs_with_tasks_that_are_due_is_late(
    tmp_path: Path, how: str, kind: FailureKind, clause: str
) -> None:
    """In real time, for longer than is allowed: whenever they are over, it is too late. The twins had taken nothing."""
    (record,) = record_runs([subject(how, QUICK, "real")], tmp_path, ops=20)
    assert record.failure is not None
    assert record.failure.kind == kind, record.failure.why
    assert (f"{clause} is broken: " in record.failure.why) is (kind == "late")
    (run,) = judge_records([record], judge_in_process).result.runs
    assert str(run.verdict) == ("VIOLATED" if kind == "late" else "UNKNOWN")


def test_ctrl_c_ends_programs_that_would_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that hangs is killed; what was recorded is kept. A run that has not begun never begins."""
    monkeypatch.setattr(recording, "_GRACE_S", 0.0)
    hangs = threading.Event()

    def asked(_: str, line: bytes) -> None:
        if b"advance" in line:
            hangs.set()

    def pressed(_: str, line: bytes) -> None:
        assert hangs.wait(60)
        raise KeyboardInterrupt

    ended: list[RunRecord] = []
    collecting = gc.get_threshold()
    endless = replace(subject("hang", PATIENT), listener=asked)
    # A signal would do, but for what else in the process has a handler, or swallows the exception.
    interrupted = replace(subject("", PATIENT), label="interrupted", listener=pressed)
    # It may begin in the place of the interrupted, and hangs as well.
    takes_its_place = replace(subject("hang", PATIENT), label="takes-its-place")
    queued = replace(subject("", PATIENT), label="queued")
    with pytest.raises(KeyboardInterrupt):
        record_runs(
            [interrupted, endless, takes_its_place, queued], tmp_path, suffix=".jsonl", ended=ended.append
        )
    assert not list(tmp_path.glob("queued*")), "it waited for a worker"
    assert gc.get_threshold() == collecting, "as before"
    assert not ended, "nobody waits for its verdict"
    assert not list(tmp_path.glob("*-deadlock.jsonl")), "it was killed, and its silence not waited for"
    assert str(check_files([tmp_path / f"{endless.name}-seed1.jsonl"]).verdict) == "UNKNOWN"


def test_who_never_answers_start_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It described itself, and was asked for no promise yet: no deadlock. There is no call to leave out."""
    monkeypatch.setattr("purgatorio_conformance.protocol.shortest._PATIENT_S", 1.0)
    mute = subject("mute", QUICK)
    with pytest.raises(SubjectFailed) as caught:
        mute.run(PLAN, tmp_path / "run.jsonl", silent)
    assert (caught.value.kind, "(start) not answered" in caught.value.why) == ("hang", True)
    assert caught.value.trace is not None
    found = shortest_failed(mute, caught.value.trace, "hang", 1, 20, tmp_path)
    assert found is not None
    assert found.script.calls == ()


def test_a_hang_is_cut_down_to_the_calls_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs at the first advance after an add; the twin that behaves has nothing to cut down."""
    monkeypatch.setattr("purgatorio_conformance.protocol.shortest._PATIENT_S", 1.0)
    hanging = subject("hang", QUICK)
    with pytest.raises(SubjectFailed) as caught:
        hanging.run(PLAN, tmp_path / "run.jsonl", silent)
    assert caught.value.trace is not None
    found = shortest_failed(hanging, caught.value.trace, "hang", 1, 20, tmp_path)
    assert found is not None
    assert [type(call) for call in found.script.calls] == [Add, Advance]
    assert found.session[-1].startswith('> {"m":"advance"'), "it is not answered"
    twin = subject("", PATIENT)
    run = twin.run(PLAN, tmp_path / "twin.jsonl", silent)
    assert shortest_failed(twin, run, "hang", 1, 20, tmp_path) is None


@pytest.mark.parametrize(("how", "kind"), [("refuse-over-of-many", "refused"), ("refuse-over", "raises")])
def test_an_error_comes_again_after_what_was_asked_of_that_task_alone(
    how: str, kind: FailureKind, tmp_path: Path
) -> None:
    """A cancel of what is over ends with an error; made behind its add alone it does not. The twin needs a crowd. It is
    cut down to the calls that it needs."""
    raising = subject(how, PATIENT)
    (record,) = record_runs([raising], tmp_path, ops=100)
    assert record.failure is not None
    assert record.failure.kind == kind, record.failure.why
    assert "(cancel) with 'KeyError'" in record.failure.why
    if kind == "raises":
        assert record.failure.trace is not None
        found = shortest_failed(raising, record.failure.trace, "refused", 1, 20, tmp_path)
        assert found is not None
        assert [type(call) for call in found.script.calls] == [Add, Cancel], "of a task without a delay"


@pytest.mark.parametrize(("how", "kind"), [("refuse-some-spin", "hang"), ("refuse-all-spin", "raises")])
def test_who_circles_behind_an_error_is_asked_about_the_error(
    how: str, kind: FailureKind, tmp_path: Path
) -> None:
    """It may have left behind why it does. The twin may refuse."""
    failure, _ = record(how, tmp_path, QUICK)
    assert failure.kind == kind, failure.why
    assert failure.why.startswith("P3 is broken: ") is (kind == "raises")


@pytest.mark.parametrize(("how", "kind"), [("refuse-some", "refused"), ("refuse-all", "raises")])
def test_errors_that_nobody_asked_for_are_no_pass(how: str, kind: FailureKind, tmp_path: Path) -> None:
    """The run goes on to its end and breaks nothing; the number of the errors and the first one are said."""
    failure, run = record(how, tmp_path)
    assert failure.kind == kind
    assert re.search(
        r"\d+ of \d+ calls ended with an error, the first of them call \d+ \(add\) with 'Ind", failure.why
    )
    assert failure.why.startswith("P3 is broken: ") is (kind == "raises")
    assert run.end is not None
    assert str(check_files([tmp_path / "run.jsonl"]).verdict) == "PASS", "by its clauses alone"


def test_what_a_play_leaves_behind_may_hang_a_later_one(tmp_path: Path) -> None:
    """By itself that one does not; after all the plays before it, it does so again."""
    limits = replace(QUICK, silence_s=0.5)
    gated = subject("gate-hang-later", limits, "virtual-gates")
    with pytest.raises(SubjectFailed) as caught:
        gated.run(PLAN, tmp_path / "run.jsonl", silent)
    assert caught.value.kind == "deadlock", caught.value.why
    assert caught.value.why.endswith(failed_run.TWICE)
    assert (tmp_path / "run-deadlock.jsonl").exists()


def test_the_twin_that_behaves_at_its_gates_is_recorded_to_its_end(tmp_path: Path) -> None:
    gated = subject("gate", PATIENT, "virtual-gates")
    run = read_run(gated.run(make_plan(1, 200, 1, 1_000_000), tmp_path / "run.jsonl", silent))
    assert run.end == End(len(run.events), 0)
    assert run.count("timer_fire") > 0


def test_last_words_are_in_the_text_and_beside_the_trace(tmp_path: Path) -> None:
    """The cause stands on standard error; it is shown without its escapes."""
    failure, _ = record("die", tmp_path)
    assert r"its standard error ends: \x1b[31mout of cheese" in failure.why
    assert (tmp_path / "run.stderr").read_bytes() == b"\x1b[31mout of cheese\n"


def test_noise_on_standard_error_is_kept_and_bounded(tmp_path: Path) -> None:
    """Megabytes of warnings harm nothing: the run is whole, and the last 64 KiB of them lie beside it."""
    path = subject("noise", PATIENT).run(PLAN, tmp_path / "run.jsonl", silent)
    assert str(check_files([path]).verdict) == "PASS"
    kept = (tmp_path / "run.stderr").read_bytes()
    assert len(kept) == STDERR_KEPT_BYTES
    assert kept.endswith(b"noise\n")


@pytest.mark.parametrize(
    ("how", "kind", "why"),
    [
        ("wrong-version", "wrong-version", "it speaks 'purgatorio-subject/2'"),
        ("silent-start", "hang", "silent for 0.3 s, with call 0 (describe) not answered"),
    ],
)
def test_what_fails_before_a_run_has_no_trace(
    how: str, kind: FailureKind, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is echoed, and the start has a time limit of its own."""
    monkeypatch.setattr(
        "purgatorio_conformance.protocol.session.START_S", 0.3 if how == "silent-start" else 30.0
    )
    with pytest.raises(SubjectFailed) as caught:
        command_subjects(command(how))
    assert (caught.value.kind, why in caught.value.why) == (kind, True), caught.value.why
    assert caught.value.trace is None


@pytest.mark.parametrize(
    ("program", "kind"),
    [(["no-such-program"], "unavailable"), ([*PYTHON, "-c", "print(1)"], "rubbish")],
)
def test_what_is_no_subject_at_all(program: list[str], kind: FailureKind) -> None:
    with pytest.raises(SubjectFailed) as caught:
        command_subjects(program)
    assert caught.value.kind == kind


def test_a_time_that_the_subject_does_not_know_is_refused() -> None:
    with pytest.raises(SubjectFailed, match="it has no real time"):
        command_subjects(command(), time="real")
