"""docs/conformance-suite.md can be followed to its end: its files run as they stand, its tables name what there is."""

from pathlib import Path

import pytest

import purgatorio_conformance.suite.items  # noqa: F401 - numpy cannot be loaded twice, as pytester would have it
from docs.makers.marked import listing
from purgatorio_conformance.builtin import python_timer
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import LACKS, BadPromise, Promise
from purgatorio_conformance.suite.gated import scenarios_of

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "conformance-suite.md").read_text()
LINKED = {
    "event_loop": ROOT / "examples" / "event-loop" / "test_event_loop.py",
    "real_time": ROOT / "examples" / "own-clock" / "test_own_clock.py",
}


def block(name: str) -> str:
    """The file between two markers of the page, or the file that the page links. A pool replaces a part of a file."""
    if name == "pool":
        whole = listing(PAGE, "purgatory")
        before, after = whole.index("class Adapter"), whole.index("@pytest.fixture")
        return f"{whole[:before]}{listing(PAGE, name)}\n\n{whole[after:]}"
    return LINKED[name].read_text() if name in LINKED else listing(PAGE, name)


@pytest.mark.parametrize(
    "name",
    [
        "purgatory",
        "pool",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("event_loop", "real_time")),
    ],
)
def test_the_files_of_the_page_run(
    name: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a stranger would paste them: nothing fails, nothing is UNKNOWN, and a third is not skipped."""
    monkeypatch.setattr(gated, "_OPERATIONS", 120)
    monkeypatch.setattr(gated, "_SCOPE", 150)
    monkeypatch.setattr(gated, "_DRAWN", 60)
    pytester.makepyfile(**{LINKED[name].stem if name in LINKED else f"test_my_{name}": block(name)})
    unknown = "skip" if name in ("real_time", "event_loop") else "fail"
    result = pytester.runpytest_inprocess("-q", f"--purgatorio-unknown={unknown}", "-rs")
    found = result.parseoutcomes()
    assert result.ret == 0, result.outlines
    # An event loop lacks threads, a size and the rest of a nanosecond.
    assert 2 * found["passed"] > found.get("skipped", 0)


@pytest.mark.parametrize(
    ("cancel", "broken"),
    [("return None", {}), ("return True", {"failed": 1})],
    ids=["sound", "says-cancelled"],
)
def test_the_races_of_the_example(cancel: str, broken: dict[str, int], pytester: pytest.Pytester) -> None:
    """A cancel that says that the task will not run, and is too late: only an order of threads shows it."""
    pytest.importorskip("greenlet")
    text = LINKED["real_time"].read_text()
    pytester.makepyfile(test_own_clock=text.replace("handle.cancel()", f"handle.cancel()\n        {cancel}"))
    found = pytester.runpytest_subprocess("-q", "-k", "test_races").parseoutcomes()
    assert found == {"deselected": found["deselected"], **(broken or {"passed": 1})}


def test_the_file_fails_where_it_should(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without the second try, as before KAFKA-1952, the window is seen."""
    broken = block("purgatory").replace(
        "        if operation.try_complete():  # once more", "        if False:  # once more"
    )
    assert broken != block("purgatory")
    pytester.makepyfile(test_my_purgatory=broken)
    monkeypatch.setattr(gated, "_SCOPE", 500)
    result = pytester.runpytest_inprocess("-q", "--purgatorio-clause", "O4", "-k", "scope")
    assert result.parseoutcomes()["failed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("cancel", ["getattr(handle, 'now', handle).cancel()", "pass"])
def test_a_timer_with_its_own_clock_may_offer_a_reset(cancel: str, pytester: pytest.Pytester) -> None:
    """The twin leaves the former deadline in force. One program is played: no second passes."""
    source = (
        block("real_time")
        .replace(
            "    def stop(self):",
            "    def reset(self, handle, delay_ns):\n"
            f"        {cancel}\n"
            "        handle.now = self.add(delay_ns, handle.function)\n\n"
            "    def stop(self):",
        )
        .replace("tick_ns=MS, lacks", "tick_ns=MS, offers=('reset',), lacks")
        .replace("seeds=(1, 2), timers=200", "timers=8")
    )
    pytester.makepyfile(test_my_timer=source)
    found = pytester.runpytest_inprocess("-q", "-k", "T11-periodic").parseoutcomes()
    assert found == {"deselected": 13, "failed" if cancel == "pass" else "passed": 1}


SIZED = """
    def __init__(self):
        self.timers = []

    def size(self):
        return SIZE

    def add(self, delay_ns, task):
        timer = threading.Timer(max(0, delay_ns) / 1e9, task)
        timer.daemon = True
        self.timers.append(timer)
        timer.start()
        return timer

    def cancel"""


@pytest.mark.parametrize(
    ("size", "outcome"),
    [
        ("sum(not one.finished.is_set() for one in self.timers)", "passed"),
        ("-5", "failed"),
        (None, "skipped"),
    ],
)
def test_a_timer_with_its_own_clock_may_have_a_size(
    size: str | None, outcome: str, pytester: pytest.Pytester
) -> None:
    """It is read between calls and at the end. Without one, T5 is SKIPPED, and never UNKNOWN."""
    source = (
        block("real_time")
        .replace(", lacks={", ")  # ")
        .replace("most_ns=3_600_000 * MS", "most_ns=3_600_000 * MS, span_ns=90 * MS, longest_ns=80 * MS")
    )
    if size is not None:
        source = source.replace("\n    def cancel", SIZED.replace("SIZE", size))
    pytester.makepyfile(test_my_timer=source)
    result = pytester.runpytest_inprocess("-q", "-k", "T5-plan", "--purgatorio-unknown=fail", "-rs")
    assert result.parseoutcomes()[outcome] == 1, result.outlines
    if size is None:
        result.stdout.fnmatch_lines(["*the subject lacks size: the adapter has no method size*"])


def test_a_timer_with_its_own_clock_may_lack_a_cancel(pytester: pytest.Pytester) -> None:
    source = block("real_time").replace("    def cancel(", "    def stops(")
    pytester.makepyfile(
        test_my_timer=source.replace("timers=200", "timers=8").replace("seeds=(1, 2)", "seeds=(1,)")
    )
    result = pytester.runpytest_inprocess("-q", "-k", "T1-plan or T3-pauses")
    assert result.parseoutcomes()["passed"] == 2, result.outlines


NOT_ATOMIC = """
        handle.seen = not handle.finished.is_set()
        handle.seen = handle.seen is True
        handle.seen = handle.seen is True
        handle.seen = handle.seen is True
        handle.cancel()
        return handle.seen
"""


def test_threads_of_a_timer_with_its_own_clock_pause_at_lines(pytester: pytest.Pytester) -> None:
    """A cancel that looks first, and then cancels, is caught between its lines. A PASS points to the explorer, and says
    how late the latest task was. `offers` without a comma, and a missing method, are errors of the user."""
    source = block("real_time").replace("        handle.cancel()\n", NOT_ATOMIC)
    source = source.replace('Promise("timer"', 'Promise("timer-cancel-barrier"').replace(
        "most_ns=3_600_000 * MS", "most_ns=3_600_000 * MS, span_ns=300 * MS, longest_ns=200 * MS"
    )
    pytester.makepyfile(test_my_timer=source)
    result = pytester.runpytest_inprocess("-q", "-k", "T4-pauses or T2")
    assert result.parseoutcomes() == {"failed": 1, "passed": 1, "deselected": 8}, result.outlines
    result.stdout.fnmatch_lines(
        ["purgatorio: my threads: the latest task started * late, of 2 s that late_ns*"]
    )
    pytester.makepyfile(
        test_my_timer=source.replace("tick_ns=MS, lacks", "tick_ns=MS, offers=('reset',), lacks")
    )
    result = pytester.runpytest_inprocess("-q", "-k", "T1-plan")
    result.stdout.fnmatch_lines(["*UsageError: the timer has no reset(handle, delay_ns)*"])
    with pytest.raises(BadPromise, match=r"write offers=\('reset',\)"):
        Promise("timer", tick_ns=1, offers="reset")  # type: ignore[arg-type]  # the mistake that is refused


def test_a_task_that_is_lost_in_a_pause_is_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late bound of these runs is ten seconds longer, here less. The driver waits for lost tasks only."""
    monkeypatch.setattr(python_timer, "LATE_SLACK_NS", 100_000_000)
    source = (
        block("real_time")
        .replace("        timer.start()", "        next(STARTS) % 5 and timer.start()")
        .replace("class Adapter", "STARTS = __import__('itertools').count()\n\n\nclass Adapter")
        .replace("late_ns=2_000 * MS", "late_ns=100 * MS")
        .replace("most_ns=3_600_000 * MS", "most_ns=3_600_000 * MS, span_ns=90 * MS, longest_ns=80 * MS")
        .replace("seeds=(1, 2), timers=200", "timers=30")
    )
    pytester.makepyfile(test_my_timer=source)
    result = pytester.runpytest_inprocess("-q", "-k", "T3-pauses")
    assert result.parseoutcomes()["failed"] == 1, result.outlines
    result.stdout.fnmatch_lines(["*never-fired: *", "*^ T3 is broken: no run follows"])


def test_the_tables_name_existing_tests() -> None:
    promise = Promise("timer", tick_ns=1)
    names = [*LACKS, *(one.name for one in scenarios_of("timer", promise))]
    assert not [name for name in names if f"`{name}`" not in PAGE]
