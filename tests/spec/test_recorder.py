"""The recorder: one order over all threads, no event twice, no unreported loss, no waiting thread; and its stream."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stress_cost import measure_cost
from program_text import program
from purgatorio_spec.trace.lines import Cut, lines
from purgatorio_spec.trace.parse import parse_line
from purgatorio_spec.trace.record import End, Event, Header, Implementation, Record, State
from purgatorio_spec.trace.recorder import DROPPED, Recorder, around, monotonic_ticket
from purgatorio_spec.trace.trace_file import StreamedRecording, write_run
from purgatorio_spec.trace.writer import TraceWriter
from stress.trace_structure import check_intervals, read_run


def ticking() -> Callable[[], int]:
    return count(100).__next__


def test_fields_reach_the_event() -> None:
    """Each field of the trace format that a recorder writes comes through, booleans as numbers."""
    recorder = Recorder(ticking())
    c = recorder.call("try_complete_else_watch", "op-0", keys=("a", "b"), delay_ns=7)
    recorder.at("ready", "op-0", t_call=99)
    recorder.ret("try_complete_else_watch", c, "op-0", out=True)
    recorder.at("gauge", state=State(3, 2))
    name = threading.current_thread().name
    assert recorder.drain() == [
        Event(
            0, name, 100, "call", "try_complete_else_watch", "op-0", None, ("a", "b"), delay_ns=7
        ),
        Event(1, name, 101, "at", "ready", "op-0", t_call=99),
        Event(2, name, 102, "ret", "try_complete_else_watch", "op-0", 0, out=1),
        Event(3, name, 103, "at", "gauge", state=State(3, 2)),
    ]  # fmt: skip
    assert type(recorder) is Recorder
    assert recorder.drain() == []


@pytest.mark.parametrize(
    ("id", "keys"),
    [
        ("\udcff", None),
        ("a", ("\udcff",)),
        (7, None),
        (None, (7,)),
        ("a", "key"),
        ("a", (("t", 0),)),
        ("a", (None,)),
        ("a", iter(["k"])),
    ],
)
def test_what_is_no_text_is_refused_by_the_call_that_records_it(id: Any, keys: Any) -> None:
    """And not by the check of the trace, when the run is over; nothing is recorded."""
    recorder = Recorder()
    for record in (recorder.call, recorder.at):
        with pytest.raises(TypeError, match=r"string|valid Unicode"):
            record("cancelled", id, keys=keys)
    assert not list(recorder.drain())


def test_a_wrong_result_takes_no_ticket() -> None:
    """Otherwise `drain` would wait for the ticket forever."""
    recorder = Recorder()
    c = recorder.call("timer_cancel", "a")
    with pytest.raises(ValueError, match="invalid literal"):
        recorder.ret("timer_cancel", c, "a", out="yes")  # type: ignore[arg-type]  # the question
    recorder.at("ready", "a")
    assert [event.i for event in recorder.drain()] == [0, 1]


def test_no_two_lanes_have_one_name() -> None:
    """Even if a name looks like the second one of another name."""
    recorder = Recorder()
    names = [recorder.lane(name).name for name in ("w", "w", "w#2", "w", "w#2")]
    assert len(set(names)) == len(names)


def test_around_records_the_value_and_passes_it_on() -> None:
    """The wrapper must not change what the subject's caller sees."""
    recorder = Recorder(ticking())
    assert around(recorder, "try_complete", "op-0", lambda: "seven", len) == "seven"
    assert [(e.ph, e.id, e.out) for e in recorder.drain()] == [("call", "op-0", None), ("ret", "op-0", 5)]


def test_around_records_and_raises_the_exception() -> None:
    """An exception is a result (`err`): the interval is closed, and the exception goes on."""
    recorder = Recorder(ticking())

    def explode() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        around(recorder, "on_complete", "op-0", explode, lambda _: None)
    assert [(e.ph, e.err) for e in recorder.drain()] == [("call", None), ("ret", "LookupError")]


def test_threads_share_one_order_during_a_drain() -> None:
    """Eight threads and a concurrent drain: every event once, in order, with its own thread, and no open call."""
    recorder = Recorder()
    threads, pairs = 8, 400
    go = threading.Barrier(threads + 1)

    def work(own: int) -> None:
        go.wait()
        for number in range(pairs):
            c = recorder.call("force_complete", f"{own}-{number}")
            recorder.ret("force_complete", c, f"{own}-{number}", out=1)

    running = [threading.Thread(target=work, args=(own,), name="same-name") for own in range(threads)]
    for thread in running:
        thread.start()
    go.wait()
    events: list[Event] = []
    while any(thread.is_alive() for thread in running):
        events += recorder.drain()
    events += recorder.drain()
    assert [event.i for event in events] == list(range(2 * threads * pairs))
    check_intervals(events)
    # Threads of one name keep lanes of their own, or their calls would seem to overlap.
    assert {event.th for event in events} == {
        "same-name", *(f"same-name#{n}" for n in range(2, threads + 1))
    }  # fmt: skip
    assert recorder.dropped == 0


def test_overflow_is_counted_and_leaves_no_dangling_return() -> None:
    """A full buffer never blocks and never grows; the number of dropped events is known."""
    recorder = Recorder(ticking(), capacity=3)
    first = recorder.call("timer_add", "a")
    second = recorder.call("timer_fire", "b")
    recorder.ret("timer_fire", second, "b")
    lost = recorder.call("timer_fire", "c")
    assert lost == DROPPED
    recorder.ret("timer_add", first, "a")  # dropped: an open interval is legal
    events = recorder.drain()
    recorder.ret("timer_fire", lost, "c")  # there is room again, but its call is not in the trace
    recorder.at("ready", "a")
    events += recorder.drain()
    assert [(e.i, e.ph, e.id) for e in events] == [
        (0, "call", "a"), (1, "call", "b"), (2, "ret", "b"), (3, "at", "a")
    ]  # fmt: skip
    assert recorder.dropped == 3


def test_drain_stops_at_a_ticket_that_is_not_written_yet() -> None:
    """A thread between its ticket and its buffer must not let later events overtake it in the file."""
    broken = False

    def clock_ns() -> int:
        if broken:
            raise TimeoutError("the thread dies here, with its ticket")
        return 0

    recorder = Recorder(clock_ns)
    c = recorder.call("timer_cancel", "a")
    broken = True
    with pytest.raises(TimeoutError):
        recorder.ret("timer_cancel", c, "a")
    broken = False
    recorder.at("ready", "b")
    assert [event.i for event in recorder.drain()] == [0]
    assert recorder.drain() == []
    # When the threads are given up, all that is there is written, and the gap stays a gap.
    assert [event.i for event in recorder.drain(last=True)] == [2]


def test_call_has_the_earlier_time_and_the_later_ticket() -> None:
    """Deadlines count from a call's time, so it must be taken first; the order must enclose the call closely."""
    order: list[str] = []

    def clock_ns() -> int:
        order.append("time")
        return 0

    recorder = Recorder(clock_ns)
    ticket = monotonic_ticket()

    def watched() -> int:
        order.append("ticket")
        return ticket()

    log = recorder.log()
    log._ticket = watched
    log.ret("timer_add", log.call("timer_add", "a"), "a")
    assert order == ["time", "ticket", "ticket", "time"]


def test_ticket_takes_a_lock_where_there_is_no_gil() -> None:
    """`itertools.count` is atomic by the GIL only; without it a lock must take its place."""
    assert type(monotonic_ticket(gil=True)).__name__ == "method-wrapper"
    ticket = monotonic_ticket(gil=False)
    assert type(ticket).__name__ == "function"
    assert [ticket(), ticket(), ticket()] == [0, 1, 2]


def test_a_buffer_holds_at_least_one_event() -> None:
    """A capacity of zero would record nothing and call it a run."""
    with pytest.raises(ValueError, match="capacity"):
        Recorder(capacity=0)


@pytest.mark.parametrize(("dropped", "ended"), [(0, True), (2, True), (None, False)])
def test_written_run_says_whether_it_is_whole(tmp_path: Path, dropped: int | None, ended: bool) -> None:
    """A run that broke off must not carry an end record, or its missing events would be taken for none."""
    recorder = Recorder()
    recorder.ret("timer_fire", recorder.call("timer_fire", "a"), "a")
    header = Header("r", Implementation("x", "1", "Python"), "asyncio", recorded=("timer_fire",))
    # In any order: the file is sorted.
    write_run(tmp_path / "r.jsonl", header, reversed(recorder.drain()), dropped)
    run = read_run(tmp_path / "r.jsonl")
    check_intervals(run.events)
    assert (run.end is not None) == ended
    assert run.end is None or run.end.dropped == dropped


def test_cost_is_measured_on_one_and_on_several_threads() -> None:
    """The figure that `bench` prints comes from real events; no bound is asserted here (machines differ)."""
    cost = measure_cost(events=2_000, threads=4)
    assert cost.threads == 4
    assert cost.one_thread_ns > 0
    assert cost.several_threads_ns > 0


HEADER = Header("r", Implementation("x", "1", "Python"), "asyncio", recorded=("timer_fire",))


def fire(recorder: Recorder, number: int) -> None:
    recorder.ret("timer_fire", recorder.call("timer_fire", f"t-{number}"), f"t-{number}")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_normal_end_has_everything_and_an_end_record(tmp_path: Path, suffix: str) -> None:
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
    script = program("recorded_and_killed").format(path=str(path))
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


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), TypeError("No space left")])
def test_failing_writer_thread_is_reported_at_the_end(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writing thread has no caller, so its error must be raised at the end of the block."""
    tried = threading.Event()

    def full(writer: TraceWriter) -> None:
        tried.set()
        raise error

    monkeypatch.setattr(TraceWriter, "flush", full)

    def recorded() -> None:
        with StreamedRecording(Recorder(), tmp_path / "r.jsonl", HEADER, every_s=0.001):
            assert tried.wait(60)

    with pytest.raises(type(error), match="No space left"):
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
