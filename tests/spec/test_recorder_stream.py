"""A recording that is written as it goes: a kill, a Ctrl-C and a full disk leave a readable trace."""

import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from purgatorio_spec.trace.lines import Cut, lines
from purgatorio_spec.trace.parse import parse_line
from purgatorio_spec.trace.record import End, Event, Header, Implementation, Record
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.trace.trace_file import StreamedRecording
from purgatorio_spec.trace.writer import TraceWriter
from stress.trace_structure import check_intervals, read_run

HEADER = Header("r", Implementation("x", "1", "Python"), "asyncio", recorded=("timer_fire",))


def fire(recorder: Recorder, number: int) -> None:
    recorder.ret("timer_fire", recorder.call("timer_fire", f"t-{number}"), f"t-{number}")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_normal_end_has_everything_and_an_end_record(tmp_path: Path, suffix: str) -> None:
    """Flushed events and remaining events together, in order, once."""
    recorder = Recorder()
    path = tmp_path / f"r{suffix}"
    with StreamedRecording(recorder, path, HEADER, every_s=None) as recording:
        for number in range(10):
            fire(recorder, number)
            if number % 3 == 0:
                recording.flush()
    run = read_run(path)
    check_intervals(run.events)
    assert run.end == End(20, 0)


def test_dropped_events_are_counted_in_the_end_record(tmp_path: Path) -> None:
    """Without the count a checker would take a gap for something that did not happen."""
    recorder = Recorder(capacity=1)
    with StreamedRecording(recorder, tmp_path / "r.jsonl", HEADER, every_s=None):
        fire(recorder, 0)
    assert read_run(tmp_path / "r.jsonl").end == End(1, 1)


def test_interrupt_leaves_all_that_was_recorded_and_no_end(tmp_path: Path) -> None:
    """After Ctrl-C the trace is readable, but must not pass for a whole run."""
    recorder = Recorder()

    def interrupted() -> None:
        with StreamedRecording(recorder, tmp_path / "r.jsonl", HEADER):
            fire(recorder, 0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    run = read_run(tmp_path / "r.jsonl")
    assert (len(run.events), run.end) == (2, None)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_kill_leaves_flushed_events(tmp_path: Path, suffix: str) -> None:
    """kill -9 leaves no time to close a file: flushed events must be in the file."""
    path = tmp_path / f"r{suffix}"
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from purgatorio_spec.trace.record import Header, Implementation\n"
        "from purgatorio_spec.trace.recorder import Recorder\n"
        "from purgatorio_spec.trace.trace_file import StreamedRecording\n"
        "recorder = Recorder()\n"
        "header = Header('r', Implementation('x', '1', 'Python'), 'asyncio', recorded=('timer_fire',))\n"
        f"with StreamedRecording(recorder, Path({str(path)!r}), header, every_s=None) as recording:\n"
        "    for number in range(100):\n"
        "        c = recorder.call('timer_fire', f't-{number}')\n"
        "        recorder.ret('timer_fire', c, f't-{number}')\n"
        "    recording.flush()\n"
        "    print('flushed', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"flushed\n"
        process.send_signal(signal.SIGKILL)
    records: list[Record] = []
    with nullcontext() if suffix == ".jsonl" else pytest.raises(Cut):
        for line in lines(path):
            records.append(parse_line(line.text))
    assert [type(record) for record in records] == [Header] + [Event] * 200


def test_failing_writer_thread_is_reported_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writing thread has no caller, so its error must be raised at the end of the block."""
    tried = threading.Event()

    def full(writer: TraceWriter) -> None:
        tried.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TraceWriter, "flush", full)

    def recorded() -> None:
        with StreamedRecording(Recorder(), tmp_path / "r.jsonl", HEADER, every_s=0.001):
            assert tried.wait(60)

    with pytest.raises(OSError, match="No space left"):
        recorded()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_an_error_and_not_a_silent_loss() -> None:
    """The run must not look recorded when it was not."""
    recorder = Recorder()

    def recorded() -> None:
        with StreamedRecording(recorder, Path("/dev/full"), HEADER, every_s=None) as recording:
            fire(recorder, 0)
            recording.flush()

    with pytest.raises(OSError, match="No space left"):
        recorded()
