"""A run in a separate interpreter: after any end of the parent, no process is left, and no event is lost."""

import errno
import os
import pickle
import secrets
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from conformance.driven import PYTHON
from program_text import program
from purgatorio_conformance import recording, subprocess_runner
from purgatorio_conformance.builtin.python_timers import sched_scheduler
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.played_order import Account
from purgatorio_conformance.recording import RunRecord, record_runs
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import Progress, Subject, SubjectFailed
from purgatorio_conformance.subject.plan import Plan
from purgatorio_spec.check import check_files

BAD = Path(__file__).with_name("bad_subject.py")
PATIENT = ChildLimits(silence_s=60.0)

HANGS = program("hanging_subject").format(bad=str(BAD))

KILLS = program("killing_subject").format(bad=str(BAD))

COMMAND = program("recording_command").format(hangs=HANGS)

TALKS = program("talking_run")


@pytest.fixture(autouse=True)
def driven_here() -> None:
    """Not here: as the command does."""


def family(mark: str) -> list[int]:
    """The processes that were started with this in their environment, as what a poll tells the end of."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(os.pidfd_open(int(process.name)))
        except OSError:
            continue
    return found


def readable(place: int) -> bool:
    """Whether there is something to read within a minute, or the process has ended."""
    poll = select.poll()
    poll.register(place, select.POLLIN)
    return bool(poll.poll(60_000))


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_command_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    """The program hangs without end: it is killed, and the recorded events are complete."""
    mark = secrets.token_hex(16)
    os.mkfifo(tmp_path / "fifo")
    fifo = os.open(tmp_path / "fifo", os.O_RDWR)
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path), str(tmp_path / "fifo")],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TEST_APART": mark},
    ) as command:
        hangs = readable(fifo)
        os.close(fifo)
        left = family(mark)
        command.send_signal(how)
        ended = [readable(one) for one in left]
        for one, has_ended in zip(left, ended, strict=True):
            if not has_ended:
                signal.pidfd_send_signal(one, signal.SIGKILL)
            os.close(one)
    assert hangs
    assert ended == [True, True, True], "the command, its run, and the program"
    (trace,) = tmp_path.glob("*.jsonl")
    (run,) = check_files([trace]).runs
    assert run.events > 0
    assert str(run.verdict) == "UNKNOWN"


def test_what_a_run_raises_is_raised_here(tmp_path: Path) -> None:
    """The error of a full disk names its file, and so does this error. The negative control is recorded."""
    subject = command_subjects([*PYTHON, str(BAD)], limits=PATIENT)[0]
    (record,) = record_runs([subject], tmp_path, ops=20, suffix=".jsonl")
    assert record.path is not None
    record.path.unlink()
    record.path.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        record_runs([subject], tmp_path, ops=20, suffix=".jsonl")
    assert caught.value.filename == str(record.path)


def test_a_message_is_whole_though_its_process_is_stopped_in_it() -> None:
    """As by Ctrl-Z: the system ends a write of the process early, and the rest must be written all the same."""
    with subprocess.Popen(
        [sys.executable, "-c", TALKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        # The message is larger than a pipe, so the process is in a write now.
        told = os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGCONT)
        told += process.stdout.read()
    assert pickle.loads(told) == (bytes(1_000_000), None)


@dataclass(frozen=True)
class _Full:
    """A subject on whose disk there is room for the name of a trace and nothing else."""

    name: str = "full"
    profile: str = "timer"
    threads: int = 1
    tick_ns: int = 1_000_000

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        out_path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_run_whose_trace_cannot_be_written_to_its_end_is_unfinished(tmp_path: Path) -> None:
    """The disk is full. The other runs continue. A trace that cannot be started is reported as above."""
    other = command_subjects([*PYTHON, str(BAD)], limits=PATIENT)[0]
    records = record_runs([_Full(), other], tmp_path, ops=20, suffix=".jsonl")
    failed = records[0].failure
    assert failed is not None
    assert (failed.kind, failed.trace) == ("unfinished", tmp_path / "full-seed1.jsonl")
    assert failed.why == "its trace could not be written: No space left on device"
    assert records[1].failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
def test_a_run_whose_process_is_killed_is_unfinished(tmp_path: Path) -> None:
    """As by the system, where memory ends; the other runs go on."""
    killed = command_subjects([*PYTHON, "-c", KILLS, "hang"], limits=PATIENT)[0]
    (record,) = record_runs([killed], tmp_path / "killed", ops=20, suffix=".jsonl")
    assert record.failure is not None
    assert (record.failure.kind, record.failure.trace) == (
        "unfinished", tmp_path / "killed" / f"{record.run}.jsonl"
    )  # fmt: skip
    other = command_subjects([*PYTHON, str(BAD)], limits=PATIENT)[0]
    both = record_runs([killed, other], tmp_path / "both", ops=20, suffix=".jsonl")
    assert [one.failure and one.failure.kind for one in both] == ["unfinished", None]


class _TwoWords(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def test_a_driving_process_that_dies_is_not_called_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor is one whose exception cannot be sent: its text comes."""
    subject = command_subjects([*PYTHON, str(BAD)], limits=PATIENT)[0]
    monkeypatch.setattr(subprocess_runner, "__name__", "no_such_module")
    (record,) = record_runs([subject], tmp_path, ops=20)
    assert record.failure is not None
    assert record.failure.why == "the driving process ended with status 1; its standard error has the reason"
    _, raised = pickle.loads(subprocess_runner.result_of(Account(), _TwoWords("full", " disk")))
    assert "_TwoWords('full disk'), which cannot be sent: " in str(raised)


@dataclass(frozen=True)
class _Interrupted(_Full):
    """A subject whose run is Ctrl-C, as soon as `begun` is set."""

    begun: threading.Event = field(default_factory=threading.Event)

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        self.begun.wait(60.0)
        raise KeyboardInterrupt


def test_ctrl_c_ends_a_run_of_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It does not go on to its end. Its events so far are kept."""
    monkeypatch.setattr(recording, "_GRACE_S", 0.0)
    interrupted = _Interrupted()

    def progress(name: str, settled: int, planned: int) -> None:
        if name == "sched" and settled:
            interrupted.begun.set()

    with pytest.raises(KeyboardInterrupt):
        record_runs([interrupted, sched_scheduler()], tmp_path, ops=2_000, progress=progress, suffix=".jsonl")
    (run,) = check_files([tmp_path / "sched-seed1.jsonl"]).runs
    assert run.events > 0
    assert str(run.verdict) == "UNKNOWN"


@dataclass(frozen=True)
class _Endless(_Full):
    """A subject whose run ends when it is killed."""

    name: str = "endless"
    begun: threading.Event = field(default_factory=threading.Event)
    killed: threading.Event = field(default_factory=threading.Event)

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        self.begun.set()
        self.killed.wait(60.0)
        out_path.touch()
        raise SubjectFailed(self.name, "died", "it was killed", out_path)


class _Interrupting(ThreadPoolExecutor):
    """A pool in whose `submit` Ctrl-C comes when the task runs already."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> NoReturn:
        super().submit(fn, *args, **named)
        args[0].begun.wait(60.0)
        raise KeyboardInterrupt


def test_ctrl_c_while_a_run_begins_ends_this_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its future is known to nobody."""
    endless = _Endless()
    monkeypatch.setattr(recording, "_GRACE_S", 0.0)
    monkeypatch.setattr(recording, "ThreadPoolExecutor", _Interrupting)
    monkeypatch.setattr(recording, "kill_all", endless.killed.set)
    with pytest.raises(KeyboardInterrupt):
        record_runs([endless], tmp_path)
    assert endless.killed.is_set()


def test_after_the_time_limit_each_run_is_recorded_so_far_or_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that ended before is complete."""
    endless = _Endless()

    def in_time(futures: Sequence[Future[RunRecord]], seconds: float, *how: str) -> object:
        assert not how or endless.begun.wait(60.0)
        return wait(futures, 0 if how else seconds, *how)

    monkeypatch.setattr(recording, "_GRACE_S", 0.0)
    monkeypatch.setattr(recording, "wait", in_time)
    monkeypatch.setattr(recording, "kill_all", endless.killed.set)
    subjects: list[Subject] = [sched_scheduler(), endless, replace(endless, name="never")]
    records = record_runs(subjects, tmp_path, ops=1, workers=1, seconds=3, suffix=".jsonl")
    assert [(record.failure and record.failure.why, record.trace is not None) for record in records] == [
        (None, True), ("--seconds 3: the run was ended", True), ("--seconds 3: the run did not begin", False),
    ]  # fmt: skip
