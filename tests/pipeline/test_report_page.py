"""The page stands alone, cannot be injected into, says verdicts without colour, and stays small."""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from pipeline.hostile import hostile_check, many_violations
from pipeline.test_pictures import drawn
from purgatorio_conformance.subject.oversleep import control_params
from purgatorio_pipeline.pictures import POINTS_SHOWN, GaugePoint, GaugeSeries
from purgatorio_pipeline.report.gauge_chart import gauge_chart
from purgatorio_pipeline.report.grouped import ExampleOf
from purgatorio_pipeline.report.histogram import control_of
from purgatorio_pipeline.report.page import page
from purgatorio_pipeline.report.timeline import timeline
from purgatorio_pipeline.report.verdict_table import compact
from purgatorio_spec.durations import duration, exact
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.lateness import lateness_of
from purgatorio_spec.show.event_words import broken_here
from purgatorio_spec.verdict import Verdict
from purgatorio_spec.whole_file import write_whole
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from spec.shown_trace import (
    completed_twice,
    fired_early,
    garbage_kept,
    lost_with_a_flag,
    miscounted,
)
from spec.trace_builder import MS, Trace

ELEMENTS = set(
    "html head meta title style body main header section article h1 h2 h3 p dl dt dd div span table thead tbody tr th "
    "td a b ul li code pre details summary figure figcaption svg line polyline rect text circle output footer "
    "script".split()
)
"""All that the page is made of: nothing that loads, and one script."""


class Reader(HTMLParser):
    """The view of a browser: elements, attributes and text. Fails if tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def alone(text: str) -> Reader:
    """The page as read, after the checks that hold for every page: nothing loads, nothing runs."""
    read = Reader(text)
    assert read.elements <= ELEMENTS
    for name, value in read.attributes:
        assert not name.startswith("on")
        assert name not in {"src", "srcset", "style", "xlink:href"}
        if name == "href":
            assert re.fullmatch(r"#(clause-[A-Z]\d+|[A-Z]\d+-\d+)", value)
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.S)
    assert len(scripts) == 1
    script = scripts[0]
    assert script == files("purgatorio_pipeline.report").joinpath("timeline.js").read_text(encoding="utf-8")
    hashes = [b64encode(sha256(part.encode()).digest()).decode() for part in (style[1], script)]
    policy = f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in text
    return read


def test_markup_that_is_not_escaped_would_be_caught() -> None:
    """The twin that must fail: the reader of these tests sees a script and a handler when there are some."""
    good = page(*hostile_check("x"))
    for bad in (
        "<script></script>",
        "<p onclick='x'></p>",
        "<img src=x>",
        "<!-- -->",
        "<a href='http://x'></a>",
    ):
        with pytest.raises(AssertionError):
            alone(good.replace("<main>", f"<main>{bad}"))


def test_attributes_are_escaped_too() -> None:
    odd = "\"'><b>"
    run = RunResult(
        "a",
        "a.jsonl",
        "x",
        "locked",
        Verdict.UNKNOWN,
        9,
        {"O4": ClauseResult("O4", Verdict.UNKNOWN, 1, reason=odd)},
    )
    text = page(CheckResult((replace(run, run=odd),)), {}, [])
    assert '<span class="run">&quot;&#x27;&gt;&lt;b&gt;</span>' in text
    assert 'title="O4 UNKNOWN: &quot;&#x27;&gt;&lt;b&gt;"' in text


def test_a_page_without_violations_says_so() -> None:
    """The good case is a page as well, not an empty one; a clause that nothing could break is named."""
    made = Trace()
    made.register("op-1")
    result = made.result()
    text = page(result, {}, [])
    alone(text)
    assert "No promise was broken." in text
    assert "No run had an occasion for" in text
    assert "✗" not in re.sub(r'<ul class="legend">.*?</ul>', "", text)


def test_what_no_run_was_judged_by_has_a_reason_and_no_column() -> None:
    """Of a broker there are more clauses than a page is wide: they stand below the run, each with its name."""
    assert len(WIRE_CLAUSES) > 20
    kept = {name: ClauseResult(name, Verdict.PASS, 3) for name in WIRE_CLAUSES}
    skipped = ClauseResult("P4", Verdict.SKIPPED, reason="it takes two brokers")
    run = RunResult("a", "a.jsonl", "x", "wire", Verdict.PASS, 9, {**kept, "P4": skipped})
    text = page(CheckResult((run,)), {}, [])
    alone(text)
    assert "P4 skipped: it takes two brokers" in text
    assert not re.search(r"No run had an occasion[^:]*\bP4\b", text)
    assert 'class="verdicts many"' in text
    few = replace(run, clauses={"G1": kept["G1"]})
    for shown, columns in ((text, len(WIRE_CLAUSES)), (page(CheckResult((few,)), {}, []), 1)):
        assert len(re.findall(r'<th[^>]* title="', shown)) == columns
    assert "<b>G12</b>✓ 3</td>" in text
    assert "<b>P4</b>" not in text
    assert 'class="verdicts"' in page(fired_early().result(), {}, [])


def test_no_runs_at_all_is_a_page() -> None:
    """An empty folder must not end in a traceback."""
    alone(page(CheckResult(()), {}, []))


@pytest.mark.parametrize("make", [completed_twice, lost_with_a_flag, fired_early, miscounted])
def test_each_cause_is_drawn_with_the_allowed_and_the_seen(make: Callable[[], Trace]) -> None:
    """The page is for the developer who must correct the bug: clause, drawing, sentence, command."""
    made = make()
    examples = made.examples()
    read = alone(page(made.result(), examples, []))
    texts = "".join(read.text)
    for example in examples.values():
        assert example.violation.allowed in texts
        assert example.violation.seen in texts
        assert broken_here(example.violation.clause) in texts
        assert all(word in texts for word in example.replay)


def two_runs_of_one_name() -> tuple[CheckResult, ExampleOf]:
    """One clause broken in two files whose runs have the same name, by subjects of two kinds."""
    first, second = fired_early(), fired_early()
    second.file = "other.jsonl"
    run, late = first.result().runs[0], second.result().runs[0]
    late = replace(late, subject="another")
    return CheckResult((run, late)), {**first.examples(), **second.examples()}


def test_a_broken_clause_leads_to_its_own_counterexample() -> None:
    """Two runs break one clause: each cell leads to the cause of its run, and every anchor is there once."""
    read = alone(page(*two_runs_of_one_name(), []))
    led = [value.removeprefix("#") for name, value in read.attributes if name == "href"]
    anchors = [value for name, value in read.attributes if name == "id"]
    assert len(anchors) == len(set(anchors))
    assert set(led) <= set(anchors)
    led, anchors = ([one for one in some if not one.startswith("clause-")] for some in (led, anchors))
    assert len(led) == len(set(led)) == 2
    assert sorted(led) == sorted(anchors)


def test_runs_with_one_name_are_distinguished() -> None:
    """The file is shown next to the name only if the name alone is ambiguous."""
    texts = "".join(alone(page(*two_runs_of_one_name(), [])).text)
    assert "early-fire (hand-made.jsonl)" in texts
    assert "early-fire (other.jsonl)" in texts
    one = fired_early()
    assert "early-fire (hand-made.jsonl)" not in "".join(alone(page(one.result(), one.examples(), [])).text)


def test_the_broken_place_stands_above_the_drawing() -> None:
    """On a phone the lane of the last event may lie beyond the edge: line, thread and event are text as well."""
    made = completed_twice()
    read = alone(page(made.result(), made.examples(), []))
    (example,) = made.examples().values()
    assert example.illegal_row is not None
    row = example.rows[example.illegal_row]
    assert f"{broken_here(example.violation.clause)}: line {row.line}, {row.th}: " in "".join(read.text)


def test_a_page_says_where_it_comes_from() -> None:
    """Date, version, command and machine, escaped like all texts. The seed is shown with its run."""
    made = fired_early()
    run = made.result().runs[0]
    assert run.header is not None
    seeded = CheckResult((replace(run, header=replace(run.header, params={"seed": 7})),))
    there = {
        "made": "2026-11-22 04:00:00 UTC",
        "version": "purgatorio 1.2",
        "command": "purgatorio check '<b>'",
        "machine": "a machine",
    }
    texts = "".join(alone(page(seeded, {}, [], provenance=there)).text)
    assert all(text in texts for _, text in there.items())
    assert "· seed 7" in texts
    assert "seed" not in "".join(alone(page(made.result(), {}, [])).text)


def test_the_drawing_has_a_lane_a_thread_and_one_illegal_point() -> None:
    """Threads, open and closed calls, points, the mark and the tooltips: each drawn as often as it is there."""
    example = lost_with_a_flag().example("O4")
    text = timeline(example)
    calls = [row for row in example.rows if row.ph == "call"]
    assert text.count('class="lane"') == len({row.th for row in example.rows}) == 3
    assert text.count('class="call"') == sum(row.end_row is not None for row in calls) > 0
    assert text.count('class="call open"') == sum(row.end_row is None for row in calls) == 2
    assert text.count('class="point"') == 1
    assert text.count('<circle class="illegal"') == 1
    assert text.count('class="hit"') == len(example.rows)
    assert "t_call: " in text
    assert text.count('tabindex="0"') == 1
    bars = set(re.findall(r'data-bar="(\d+)"', text))
    assert bars == set(re.findall(r'data-call="(\d+)"', text))


def test_ten_thousand_violations_of_one_cause_are_one_article() -> None:
    """A page with 10,000 articles is unreadable. One article with the count is readable."""
    text = page(many_violations(10_000), {}, [])
    assert text.count("<article") == 1
    assert "10,000 tasks" in text
    assert len(text) < 40_000


def test_ten_thousand_runs_make_a_bounded_page() -> None:
    """A campaign breaks one promise in every run: the page opens on a phone, and lists what is left out."""
    (run,) = many_violations(1).runs
    runs = tuple(
        replace(run, run=f"run-{number}", file=f"{number}.jsonl", problems=("cut",))
        for number in range(10_000)
    )
    found, _ = drawn(fired_early())
    assert found is not None
    result = CheckResult(runs, 10_000)
    text = page(result, {}, [found] * 10_000)
    alone(text)
    assert len(text) < 1_500_000
    assert text.count("<article") == 1
    assert "9,800 more runs" in text
    assert "and 9,990 more runs" in text


def test_gauges_and_bounds_are_drawn() -> None:
    """Garbage and pending operations over time, with their highest values. Lateness with the bounds from the header."""
    made = garbage_kept()
    made.gauge(5, 3)
    (run,) = made.result().runs
    _, read_of = drawn(made)
    assert read_of is not None
    timed = fired_early()
    (late_run,) = timed.result().runs
    assert late_run.header is not None
    bounded = replace(
        late_run.header, timer=replace(late_run.header.timer, early_ns=9 * MS, late_ns=2_000 * MS)
    )
    found, _ = drawn(timed)
    assert found is not None
    result = CheckResult((run, replace(late_run, header=bounded)))
    text = page(result, {}, [found], [read_of])
    said = "".join(alone(text).text)
    assert "garbage (entries of completed operations) 5" in said
    assert "tasks in the timer 3" in said
    assert text.count('class="gauge watched"') == text.count('class="gauge delayed"') == 2
    assert "early bound 9 ms · late bound 2 s" in said
    assert text.count('<line class="bound"') == 2
    without = page(CheckResult((run, late_run)), {}, [found], [])
    assert "early bound 0 · late bound not declared" in without
    assert '<line class="bound"' not in without
    assert "Garbage and pending" not in without


def test_lateness_is_shown_with_and_without_the_machine() -> None:
    """The control's outline and percentiles next to those of the tasks, and the difference."""
    timed = fired_early()
    (run,) = timed.result().runs
    found, _ = drawn(timed)
    assert run.header is not None
    assert found is not None
    params = control_params([90_000, 90_000, 90_000, 3 * MS], 3 * MS, 5 * MS)

    def shown(params: Mapping[str, object]) -> str:
        assert run.header is not None
        header = replace(run.header, params=params)
        return page(CheckResult((replace(run, header=header),)), {}, [found])

    text = shown(params)
    said = "".join(alone(text).text)
    assert "control thread, 4 naps: p50 90 us · p90 3 ms · p99 3 ms · max 3 ms" in said
    assert f"tasks less control: p50 {duration(found.p50_ns - 90_000)}" in said
    assert text.count('<polyline class="control"') == 1
    good = params["control_oversleep"]
    assert isinstance(good, dict)
    wrong: list[object] = [
        None, [], "x", {}, good | {"p50_ns": "1"}, good | {"p50_ns": 5 * MS}, good | {"max_ns": 10**30},
        good | {"bins": []}, good | {"bins": [[0, 1000, True]]}, good | {"bins": [[0, 7, 1]]},
        good | {"bins": [[50_000, 100_000, 3], [2 * MS, 5 * MS, 1]]}, good | {"bins": [[0, 1000, 0]]},
        good | {"bins": [[0, 1000, -1]]}, good | {"bins": [[0, 1000]] * 10_000},
    ]  # fmt: skip
    for one in wrong:
        assert "control thread" not in shown({"control_oversleep": one})
        assert control_of({"control_oversleep": one}) is None
    assert control_of(params) == lateness_of("control", np.array([90_000, 90_000, 90_000, 3 * MS]))
    assert "control thread" not in "".join(alone(shown({})).text)


def test_long_series_are_drawn_whole() -> None:
    """A row of coordinates is longer than any text may be, and must not be cut like one."""
    points = tuple(GaugePoint(i, i * MS, i % 7, None) for i in range(POINTS_SHOWN))
    text = gauge_chart(GaugeSeries("run", points, 10_000))
    coordinates = re.search(r'points="([^"]+)"', text)
    assert coordinates is not None
    assert len(coordinates[1].split()) == POINTS_SHOWN
    assert len(coordinates[1]) > 2_000


def test_writing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    """A page that cannot be put in place leaves the old one and no litter."""
    made = fired_early()
    target = tmp_path / "report" / "index.html"
    write_whole(target, page(made.result(), made.examples(), []))
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    write_whole(target, page(CheckResult(()), {}, []))
    assert "op-13" not in target.read_text(encoding="utf-8")
    blocked = tmp_path / "blocked"
    (blocked / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_whole(blocked, page(made.result(), made.examples(), []))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blocked", "report"]
    assert [path.name for path in target.parent.iterdir()] == ["index.html"]


def test_the_same_check_gives_the_same_page() -> None:
    """A page in a repository or a cache must not change by itself."""
    made = fired_early()
    assert page(made.result(), made.examples(), []) == page(made.result(), made.examples(), [])


@pytest.mark.parametrize(
    ("delay_ns", "said"),
    [
        (7_999_999, "7.999999 ms"), (8_000_000, "8 ms"), (152_134_567, "152.134567 ms"), (-1, "-1 ns"),
        (-1_000_001, "-1.000001 ms"), (86_400_000_000_000, "1 d"), (86_399_999_999_999, "86399.999999999 s"),
        (86_400_000_000_001, "86400.000000001 s"),
    ],
)  # fmt: skip
def test_a_delay_is_not_rounded(delay_ns: int, said: str) -> None:
    """Beside a deadline of 7.999 a delay of 8 ms would look like a mistake of ours."""
    assert exact(delay_ns) == said


def test_a_number_of_occasions_takes_four_characters_and_is_never_rounded_up() -> None:
    counts = (999, 1_999, 9_999, 10_000, 999_999, 1_000_000, 1_999_999, 9_999_999, 10_000_000)
    assert " ".join(map(compact, counts)) == "999 1.9k 9.9k 10k 999k 1.0M 1.9M 9.9M 10M"
