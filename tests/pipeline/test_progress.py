"""Progress: a bar in a terminal, lines in a log, and nothing of it on standard output."""

import io
import threading
from collections.abc import Callable, Iterator

from rich.console import Console

from purgatorio_pipeline.command.progress import Progress, progress


def ticks(*seconds: float) -> Callable[[], float]:
    left: Iterator[float] = iter(seconds)
    return lambda: next(left)


def log() -> tuple[io.StringIO, Console]:
    out = io.StringIO()
    return out, Console(file=out, width=80, force_terminal=False)


def test_the_remaining_time_is_estimated_from_the_finished_share() -> None:
    """A quarter took 30 seconds, so 90 are left."""
    shown = Progress("recording", 20, "runs", clock_s=ticks(100, 130))
    shown.tell(5)
    assert shown.counted() == "5 of 20 runs, 0:30, about 1:30 left"


def test_nothing_is_said_of_the_rest_before_the_first_step_and_after_the_last() -> None:
    shown = Progress("recording", 20, "runs", clock_s=ticks(0, 4_000, 4_001))
    assert shown.counted() == "0 of 20 runs, 1:06:40"
    shown.tell(21)
    assert shown.counted() == "20 of 20 runs, 1:06:41"


def test_the_slowest_of_concurrent_parts_is_named() -> None:
    """Without an estimate: a part of a run takes a time of its own."""
    shown = Progress("recording", 2, "runs", clock_s=ticks(0, 20))
    shown.share("fast", 9, 10)
    shown.share("slow", 2, 10)
    assert shown.counted() == "1 of 2 runs, 0:20"
    assert shown.slowest() == "; slow 20%"


def test_units() -> None:
    assert Progress("", 3e9, "bytes", poll=lambda: (1.5e9, 3e9), clock_s=ticks(0, 1)).counted() == (
        "1,500.0 of 3,000.0 MB, 0:01, about 0:01 left"
    )
    assert Progress("", 1.0, "", poll=lambda: (0.5, 1.0), clock_s=ticks(0, 1)).counted().startswith("50%, ")
    assert (
        Progress("", None, "events", poll=lambda: (7, None), clock_s=ticks(0, 1)).counted()
        == "7 events, 0:01"
    )
    assert Progress("", None, "tasks", poll=lambda: (0, None), clock_s=ticks(0, 1)).counted() == "0:01"


def test_a_log_gets_a_line_at_once_and_one_a_while() -> None:
    """A log has no moving bar. A later reader sees the progress at each time."""
    out, console = log()
    next_line, waiting = threading.Semaphore(0), threading.Semaphore(0)

    def wait(over: threading.Event) -> bool:
        waiting.release()
        next_line.acquire()
        return over.is_set()

    with progress("recording 20 runs", 20, "runs", console=console, wait=wait) as going:
        waiting.acquire()
        going.tell(5, "recording [red]more[/red]")
        next_line.release()
        waiting.acquire()
        lines = out.getvalue().splitlines()
        next_line.release(1_000)  # it may write some more before it sees that it is over
    assert lines[0] == "recording 20 runs"
    assert lines[1].startswith("recording [red]more[/red]: 5 of 20 runs, 0:0")


def test_quiet_says_nothing_in_a_log() -> None:
    out, console = log()
    with progress("recording", 20, "runs", quiet=True, console=console) as going:
        going.tell(3)
        going.say("a line of its own")
    assert out.getvalue() == ""


def test_a_terminal_gets_a_bar_that_is_gone_afterwards() -> None:
    """Other output is not captured: it goes to standard output."""
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with progress("recording", 20, "runs", console=console, quiet=True) as going:
        going.tell(5)
        with going.aside():
            before = out.getvalue()
            print("a line")
        going.say("[b]said[/b] at once")
    assert "[b]said[/b] at once" in out.getvalue()
    assert "recording" in before
    assert "5 of 20 runs" in before
    assert "a line" not in out.getvalue()


def test_what_comes_after_reading_is_said() -> None:
    """A bar at its end for a minute would look stuck."""
    done = 1e6
    shown = Progress("checking", None, "bytes", poll=lambda: (done, 2e6), then="judging", clock_s=lambda: 0.0)
    assert "judging" not in shown.counted()
    done = 2e6
    assert shown.counted() == "2.0 of 2.0 MB, judging, 0:00"
