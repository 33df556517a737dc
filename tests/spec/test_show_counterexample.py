"""A counterexample holds what shows the violation, no more, in bounded size, wherever its rows come from. Its text:
every kind of text is a file, so that a diff shows each change."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from golden import Golden
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.durations import milliseconds
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.show.counterexample import SHOWN_ROWS, Counterexample, counterexample
from purgatorio_spec.show.lanes import Lanes
from purgatorio_spec.show.related_calls import CALLS_SHOWN, related_calls
from purgatorio_spec.show.selection import noun, select, selection, tasks_of
from purgatorio_spec.show.text import render
from purgatorio_spec.show.visible import WIDTH, shell_word, visible
from purgatorio_spec.trace.reader import TraceReader
from spec.shown_trace import (
    completed_twice,
    fired_after_completion,
    fired_early,
    garbage_kept,
    lost_when_locked,
    lost_with_a_flag,
    miscounted,
    size_wrong,
)
from spec.trace_builder import MS, Trace

Make = Callable[[], Trace]
ALL: list[Make] = [
    completed_twice, fired_after_completion, fired_early, garbage_kept, lost_when_locked, lost_with_a_flag,
    miscounted, size_wrong,
]  # fmt: skip


@pytest.mark.parametrize("make", ALL)
def test_prefix_ends_where_the_promise_breaks(make: Make) -> None:
    """The last row is the largest witness: a longer prefix is not the shortest one; every witness is there."""
    made = make()
    examples = made.examples()
    assert examples
    for example in examples.values():
        witnesses = example.violation.events
        assert example.rows[-1].i == max(witnesses)
        assert example.illegal_row == len(example.rows) - 1
        assert {row.i for row in example.rows if row.witness} == set(witnesses)
        assert [row.i for row in example.rows] == sorted(row.i for row in example.rows)


@pytest.mark.parametrize("make", ALL)
def test_a_selection_is_all_that_it_needs(make: Make) -> None:
    """An engine that fetched only the selected rows shows the same as one that has the whole run."""
    made = make()
    table = made.table()
    for whole in made.examples().values():
        violation = whole.violation
        part = select(table, selection(violation, tasks_of(table, violation)))
        shown = {*part.column("i").to_pylist(), *related_calls(part, violation, [table])}
        part = table.filter(pa.array([i in shown for i in table.column("i").to_pylist()]))
        assert part.num_rows < table.num_rows
        assert counterexample(whole.file, whole.run, violation, part, whole.count) == whole
        assert selection(violation).last_i == max(violation.events)


def test_rows_of_others_stay_out() -> None:
    """Operations that have no part in it do not crowd the picture, though they share the thread and the key."""
    made = Trace()
    made.register("other-1", ["k35"], delay_ns=17 * MS, th="worker-4")
    made.register("op-13", ["k35"], delay_ns=17 * MS, th="worker-4")
    made.register("other-2", ["k35"], delay_ns=17 * MS, th="worker-4")
    made.start("timer_fire", "op-13")
    assert {row.id for row in made.example("T1").rows} == {"op-13"}
    assert {row.th for row in miscounted().example("O7").rows} == {"worker-0"}


def test_a_wrong_size_names_the_tasks_that_it_counts() -> None:
    """Those pending and, in the table, those taken out last; of many the last, and that there are more."""
    example = size_wrong().example("T5")
    assert example.pending == "task-2"
    assert {row.id for row in example.rows} == {"task-0", "task-1", "task-2", None}
    assert {row.f for row in example.rows} == {"timer_add", "timer_cancel", "timer_fire", "quiesce"}
    assert "\npending  task-2\n" in render(example)
    many = size_wrong(100).example("T5")
    assert many.pending == "..., " + ", ".join(f"task-{number}" for number in range(92, 100))
    assert len(many.rows) < SHOWN_ROWS


def test_a_task_counts_from_its_last_add_until_it_fired_as_often_as_added() -> None:
    """Whatever calls were open when the size was read."""
    made = Trace()
    made.add("twice", delay_ns=5 * MS)
    made.add("twice", delay_ns=6 * MS)
    made.add("back", delay_ns=5 * MS)
    made.cancel("back", 1)
    made.add("back", delay_ns=7 * MS)
    made.add("over", delay_ns=5 * MS)
    for task in ("twice", "over"):
        made.fire(task, th="e")
    made.start("timer_add", "begun", delay_ns=MS)
    going = made.start("timer_cancel", "back", th="w2")
    made.gauge(0, 9)
    made.end(going, 1)
    assert made.example("T5").pending == "twice, back, begun"


@pytest.mark.parametrize("held_bytes", [None, 0])
def test_the_file_names_the_same_tasks(tmp_path: Path, held_bytes: int | None) -> None:
    made = size_wrong(100)
    made.write(tmp_path / "run.jsonl")
    reader = TraceReader(tmp_path / "run.jsonl")
    fold: Fold | None = None
    for batch in reader.coded():
        assert reader.header is not None
        fold = fold or Fold(reader.header, held_bytes)
        fold.feed(batch)
    assert fold is not None
    whole = made.example("T5")
    (part,) = fold.rows(lambda: TraceReader(tmp_path / "run.jsonl").coded(), [whole.violation])
    assert counterexample(whole.file, whole.run, whole.violation, part, whole.count) == whole


def test_left_out_rows_are_counted_and_their_place_is_kept() -> None:
    """A reader must know that there was more, and where."""
    example = fired_early().example("T1")
    assert example.left_out == 6
    assert [row.gap for row in example.rows] == [0, 4, 0, 0, 2]


def test_ten_thousand_rows_stay_sixty() -> None:
    """One operation tried ten thousand times is still one screen: the witnesses, the start, the nearest to the end."""
    made = Trace()
    made.register("op-1", ["k1"])
    made.ready("op-1", th="worker-0")
    for _ in range(10_000):
        made.attempt("op-1", 0, th="worker-1")
    made.both("check_and_complete", out=0, keys=["k1"], th="worker-0")
    example = made.example("O4")
    assert len(example.rows) == SHOWN_ROWS
    assert {row.i for row in example.rows if row.witness} == set(example.violation.events)
    assert example.left_out + len(example.rows) == 20_011
    assert max(row.gap for row in example.rows) > 1_000


@pytest.mark.parametrize(("threads", "shown"), [(1, 3), (200, SHOWN_ROWS // 2 + 1)])
def test_of_very_many_witnesses_the_first_ones_and_the_last_are_shown(threads: int, shown: int) -> None:
    """Two hundred completions of one operation: on one thread, they repeat the same event."""
    made = Trace()
    made.register("op-1", ["k1"])
    for number in range(200):
        made.both("on_complete", "op-1", th=f"worker-{number % threads}")
    example = made.example("O1")
    assert len(example.rows) <= SHOWN_ROWS
    assert sum(row.witness for row in example.rows) == shown
    assert example.rows[-1].i == max(example.violation.events)
    assert min(row.i for row in example.rows if row.witness) == min(example.violation.events)


def test_count_is_of_the_cause_and_the_example_is_the_first() -> None:
    """A thousand violations of one cause are one counterexample with a count."""
    made = Trace()
    for number in range(40):
        made.register(f"op-{number}", ["k1"], delay_ns=20 * MS, th="worker-0")
        made.fire(f"op-{number}")
    (key,) = [key for key in made.examples() if key.clause == "T1"]
    example = made.examples()[key]
    assert example.count == 40
    assert example.violation.subject == "op-0"
    assert noun("T1", key.cause, example.count) == "40 tasks"


@pytest.mark.parametrize("name", ["it's", "a b", "$(rm -rf x)", "a;b", "`x`", "a\nb", "\x1b[2J", "\u202e"])
def test_the_replay_line_is_safe_to_paste(name: str) -> None:
    """A trace must not get to run commands through the line that replays it, and the id must arrive whole."""
    line = " ".join(fired_early(name).example("T1").replay)
    assert line.isprintable()
    if name.isprintable():
        assert shlex.split(line)[-1] == name
    else:
        assert line.endswith(f"--operation {shell_word(name)}")
        assert shell_word(name).startswith("$'")


def test_visible_changes_nothing_that_is_harmless() -> None:
    """Names in any script stay as they are; a lone surrogate, which no file can hold, is escaped."""
    assert visible("Größe-操作-1") == "Größe-操作-1"
    assert visible("a\ud800b") == "a\\ud800b"
    assert visible("x" * 100, 10) == "xxxxxxx..."


def test_both_parts_of_a_late_bound_are_shown() -> None:
    made = Trace("timer", late_ns=9 * MS)
    made.header = replace(made.header, params={"late_slack_ns": 8 * MS})
    made.add("a", delay_ns=MS)
    made.t += 20 * MS
    with made.call("timer_fire", "a"):
        pass
    allowed = made.example("T2").violation.allowed
    assert allowed.endswith("declared late bound 1 ms + 8 ms, for a busy machine)")


def test_a_late_task_is_shown_with_the_jumps_of_time() -> None:
    """The task may run in the first jump that ends after the deadline and the late bound, and not in a later one."""
    made = Trace("timer", late_ns=MS)
    made.declare(clock="manual", recorded=(*made.header.recorded, "advance_clock"))
    made.add("a", delay_ns=100 * MS)
    made.due_t = made.t + 100 * MS
    made.advance(2 * MS)
    made.advance(20 * MS, runs=1)
    example = made.example("T2")
    assert example.violation.seen.endswith("18 ms beyond the bound")
    assert [row.f for row in example.rows].count("advance_clock") == 3
    part = select(made.table(), selection(example.violation))
    beside = related_calls(part, example.violation, [made.table()])
    assert {row.i for row in example.rows if row.f == "advance_clock"} == beside


@pytest.mark.parametrize(
    ("profile", "out", "said"),
    [
        ("timer-cancel-barrier", None, "had no result, which this profile"),
        ("timer-cancel-barrier", 1, "succeeded at t = 0.004 ms: the"),
        ("timer", 1, ", and there is only one thread: the"),
    ],
)
def test_a_fire_after_a_barrier_says_why_the_cancel_was_one(profile: str, out: int | None, said: str) -> None:
    """An adapter that returned None would look for its True, and the profile `timer` has no barriers."""
    made = Trace(profile)
    made.add("a", delay_ns=0)
    made.cancel("a", out)
    made.fire("a", "w")
    assert said in made.example("T4").violation.allowed


@pytest.mark.parametrize(("late_ns", "said"), [(None, "once: without a late bound, when"), (0, "once")])
def test_a_task_is_due_at_rest_without_a_late_bound(late_ns: int | None, said: str) -> None:
    made = Trace("timer", late_ns=late_ns)
    made.add("a", delay_ns=0)
    made.wait(10**9)
    made.gauge(None, None)
    example = made.example("T3")
    assert said in example.violation.allowed
    assert "^ T3 is broken: no run follows" in render(example), "no event breaks it"


@pytest.mark.parametrize(
    ("by_ms", "lasts_ns", "shown"), [(4, 0, "60.001 to 64.001"), (0, 0, "64.001"), (4, 1, "60.001")]
)
def test_the_deadline_of_an_add_inside_an_advance_has_two_bounds(
    by_ms: int, lasts_ns: int, shown: str
) -> None:
    """The clock of the timer shows the time before the `advance`, or after it. In real time, the deadline is exact."""
    made = Trace("timer")
    made.add("a", delay_ns=64 * MS)
    call, ret = made.events
    made.events[1] = ret._replace(t=call.t + lasts_ns, deadline_t=call.t + (64 - by_ms) * MS)
    made.fire("a")
    assert f"}} timer_add, deadline {shown}\n" in render(made.example("T1"))


def _shown(made: Trace, clause: str, path: Path) -> Counterexample:
    """The same from the whole table and from a fold of the file."""
    (example,) = (
        one for key, one in judge_in_process([made.write(path)]).examples.items() if key.clause == clause
    )
    in_memory = made.example(clause)
    assert [row.i for row in in_memory.rows] == [row.i for row in example.rows]
    return example


def _lost(*, beside: bool) -> Trace:
    """A check comes while another thread evaluates under another key (KAFKA-6653), or, the control, under a key that
    the operation does not have; a third check is over long before."""
    made = Trace("pending-flag")
    made.check("k")
    made.register("a", delay_ns=10 * MS)
    other = made.start("check_and_complete", keys=["k" if beside else "other"], th="busy")
    made.ready("a")
    made.both("check_and_complete", keys=["k"], th="c", out=0)
    made.end(other, 0)
    made.wait(20 * MS)
    made.expire("a")
    return made


@pytest.mark.parametrize("beside", [True, False])
def test_an_open_check_of_another_thread_is_shown(beside: bool, tmp_path: Path) -> None:
    """It is what held the lock; a check of another key, and one that was over before, are not."""
    example = _shown(_lost(beside=beside), "O4", tmp_path / "a.jsonl")
    others = [(row.th, row.ph) for row in example.rows if row.th == "busy"]
    assert others == ([("busy", "call"), ("busy", "ret")] if beside else [])
    checks = [row.f for row in example.rows if row.f == "check_and_complete" and row.ph == "call"]
    assert len(checks) == 1 + beside


def test_a_cancel_of_the_key_is_shown(tmp_path: Path) -> None:
    """A cancel that raised while the operation was watched: its effect is unknown."""
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    fire = made.start("timer_fire", "a", th="exec")
    made.end(made.start("cancel_for_key", keys=["k"], th="other"), err="IllegalStateException")
    made.complete("a", th="exec")
    made.complete("a", th="other")
    made.end(fire)
    example = _shown(made, "O1", tmp_path / "a.jsonl")
    assert ("cancel_for_key", "IllegalStateException") in {(row.f, row.err) for row in example.rows}


def test_the_adds_that_met_are_shown(tmp_path: Path) -> None:
    """Of a lost task the adds that were under way with its own, or whose runs ended with an error; a few."""
    made = Trace("timer")
    calls = [
        made.start("timer_add", f"t{n}", th=f"caller-{n}", delay_ns=10 * MS) for n in range(CALLS_SHOWN + 3)
    ]
    lost = made.start("timer_add", "lost", th="caller", delay_ns=10 * MS)
    for call in (*calls, lost):
        made.end(call)
        made.events[-1] = made.events[-1]._replace(deadline_t=10 * MS)
    made.add("later", delay_ns=10 * MS)
    made.wait(1_000 * MS)
    for n in range(CALLS_SHOWN + 3):
        made.fire(f"t{n}")
    made.fire("later")
    made.gauge(None, None)
    example = _shown(made, "T3", tmp_path / "a.jsonl")
    others = {row.id for row in example.rows} - {"lost"}
    assert len(others) == CALLS_SHOWN
    assert "later" not in others


@pytest.mark.parametrize("told", [True, False])
def test_what_the_program_wrote_to_standard_error_is_shown(told: bool, tmp_path: Path) -> None:
    """Beside the trace of a driven run lies what the program said; frames of stacks are left out."""
    made = _lost(beside=True)
    path = made.write(tmp_path / "a.jsonl")
    if told:
        stack = "\tat org.acme.Reaper.run(Reaper.java:7)\n" * 50
        text = f'Exception in thread "reaper" java.lang.IllegalStateException: injected\n{stack}'
        path.with_name(f"{made.header.run}.stderr").write_text(text, encoding="utf-8")
    shown = [render(one) for one in judge_in_process([path]).examples.values()]
    assert shown
    assert all(
        ("IllegalStateException: injected" in one.replace("\n         ", " ")) == told for one in shown
    )
    assert not any("Reaper.java" in one for one in shown)


CASES: dict[str, tuple[Callable[[], Trace], str]] = {
    "O1": (completed_twice, "O1"),
    "O4-locked": (lost_when_locked, "O4"),
    "O4-pending-flag": (lost_with_a_flag, "O4"),
    "O7-check": (miscounted, "O7"),
    "P1": (garbage_kept, "P1"),
    "T1": (fired_early, "T1"),
    "T4": (fired_after_completion, "T4"),
}


@pytest.mark.parametrize("name", CASES)
def test_text_is_the_golden_one(name: str, golden: Golden) -> None:
    """The words, the lanes and the marks change only on purpose; only the command to paste may be wide."""
    make, clause = CASES[name]
    made = make()
    text = render(replace(made.example(clause), profile=made.header.profile))
    golden(f"spec/golden/{name}.txt", text)
    wide = [line for line in text.splitlines() if len(line) > WIDTH]
    assert all("purgatorio check" in line for line in wide), wide


def test_many_threads_take_a_column_of_names() -> None:
    """Eight columns of ten characters show nothing, so the thread's name is at the start of its line."""
    made = Trace()
    made.register("op-1", ["k1"], th="worker-0")
    made.ready("op-1", th="worker-0")
    for number in range(1, 7):
        made.both("check_and_complete", out=0, keys=["k1"], th=f"worker-{number}")
        made.attempt("op-1", 0, th=f"worker-{number}")
    example = made.example("O4")
    text = render(example)
    assert "thread" not in text, "few threads have a lane each"
    made = Trace()
    made.register("op-1", ["k1"], th="worker-0")
    made.both("force_complete", "op-1", out=1, th="worker-0")
    for number in range(1, 7):
        made.both("force_complete", "op-1", out=1, th=f"worker-{number}")
    text = render(made.example("O1"))
    assert "\n  line     ms  thread\n" in text
    assert all(f"worker-{number}" in text for number in range(7))


def test_times_below_a_millisecond_are_exact() -> None:
    assert [milliseconds(ns) for ns in (0, 5, -60, 999, 1_000, 1_999, 2_501_999)] == [
        "0.000", "0.000005", "-0.000060", "0.000999", "0.001", "0.001999", "2.501",
    ]  # fmt: skip


ROOT = Path(__file__).parents[2]


def test_the_documented_counterexample_is_the_golden_one() -> None:
    """An example that drifted from the tool teaches the wrong thing."""
    golden = (ROOT / "tests/spec/golden/O4-locked.txt").read_text(encoding="utf-8")
    documented = (ROOT / "docs/reading-a-report.md").read_text(encoding="utf-8")
    assert f"```text\n{golden}```\n" in documented


def test_a_word_that_is_too_long_is_broken_at_its_parts() -> None:
    text = "read self.reserved_quantities_of_all"
    lanes = Lanes.of({"a": [text], "b": ["read Inventory.available_now"]}, 54)
    assert [*lanes.cells("a", text)] == ["read", "  self.reserved_quantities_", "  of_all"]
