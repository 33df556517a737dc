"""Outcomes of scenarios and the kill matrix, on the page and in Markdown: right numbers, only text, bounded."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pipeline.hostile import HOSTILE
from pipeline.made_results import (
    AGAIN,
    LONG_COMMAND,
    bug,
    explore_of,
    explored,
    kill,
    matrix_of,
    mutants_of,
    outcome,
    outcomes_of,
    raced,
    stress_of,
)
from pipeline.test_report_files import Tags
from pipeline.test_report_page import alone
from purgatorio_pipeline.documents import Unreadable
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.outcome_section import share
from purgatorio_pipeline.report.page import page
from purgatorio_pipeline.results.kills import KillMatrix, joined
from purgatorio_pipeline.results.outcomes import (
    LINES_KEPT,
    OutcomeTables,
    ScenarioOutcomes,
    merged,
)
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict
from spec.shown_trace import fired_early

NOTHING = CheckResult(())
NO_OUTCOMES = OutcomeTables()
MATRIX = matrix_of(
    mutants_of(
        bug(
            1,
            explorer=kill("O4", 1.25, effort=8, unit="schedules", preemptions=1),
            types=kill(reason="mypy is not installed"),
        ),
        bug(
            2,
            explorer=kill(effort=500, unit="schedules"),
            stress=kill("P1", effort=2048, unit="rounds", hits=3),
        ),
        bug(3, explorer=kill(effort=500, unit="schedules"), stress=kill(effort=2048, unit="rounds")),
    )
)


def tables(*shapes: dict[str, object]) -> OutcomeTables:
    """Of one run under threads."""
    return OutcomeTables(tuple(merged(outcomes_of(stress_of(*shapes)))))


def page_of(outcomes: OutcomeTables = NO_OUTCOMES, kills: KillMatrix | None = None) -> str:
    """A page without a check."""
    return page(NOTHING, {}, [], (), outcomes, kills)


def rows_of(text: str, kind: str) -> list[list[str]]:
    """The cells of the rows of the tables of this class, as text."""
    found = re.findall(rf'<table class="{kind}">(.*?)</table>', text, re.S)
    rows = [row for table in found for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)]
    return [
        [
            re.sub(r"<[^>]+>", " ", cell).strip()
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
        ]
        for row in rows
    ]


def test_outcomes_are_counted_graded_and_repeatable() -> None:
    """Each outcome with its grade, how often, and its part; a forbidden one with its clause and command."""
    text = page_of(tables(raced()))
    alone(text)
    head, *rows = rows_of(text, "outcomes")
    assert head == ["grade", "seen", "of all", "outcome"]
    assert [re.sub(r"\s+", " ", "|".join(row)) for row in rows] == [
        "✗ forbidden|10|1.0 %|O4 left at the end",
        AGAIN,
        "✓ acceptable|989|99 %|completed",
        "! interesting|1|0.1 %|twice",
    ]
    assert "threads overlapped in 40% of the rounds" in text
    assert "<title>VIOLATED" in text
    assert '<details class="scenario" open="">' in text
    assert share(1, 100_000) == "< 0.1 %"


def test_runs_of_one_scenario_are_put_together() -> None:
    """Sums of counts, the worst verdict, one line an outcome; threads, strategies and bugs stay apart."""
    found = merged(
        [
            *outcomes_of(stress_of(raced(verdict="PASS"), raced())),
            *outcomes_of(stress_of(raced(), mutant=11)),
            *outcomes_of(explore_of(explored(), explored())),
        ]
    )
    assert [(one.how, one.mutant, one.verdict, one.runs) for one in found] == [
        ("stress", 0, Verdict.VIOLATED, 2_000),
        ("stress", 11, Verdict.VIOLATED, 1_000),
        ("explore random", 0, Verdict.UNKNOWN, 100),
    ]
    assert [(line.outcome, line.count) for line in found[0].lines] == [
        ("left at the end", 10), ("completed", 999 + 989), ("twice", 2),
    ]  # fmt: skip
    assert found[2].notes == (
        "a sample (2 times)",
        "limit reached: 50 schedules (2 times)",
        "never reached: a mark (2 times)",
    )
    assert found[1].title == "two-events/locked, stress, with known bug 11"


def test_what_broke_off_or_never_met_is_no_pass() -> None:
    """A run that ended early, a window that was never hit, a campaign with jobs left: each says so."""
    (early,) = outcomes_of(stress_of(raced(verdict="PASS"), problem="interrupted"))
    assert early.verdict is Verdict.UNKNOWN
    assert "the run ended early: interrupted" in page_of(OutcomeTables((early,)))
    text = page_of(tables(raced(verdict="UNKNOWN", overlapped=0)))
    assert "the window was never hit" in text
    (good,) = outcomes_of(stress_of(raced(verdict="PASS")))
    assert "<title>PASS" in page_of(OutcomeTables((good,)))
    left = OutcomeTables((good,), ("3 jobs of the campaign are left: budget",))
    assert "<title>UNKNOWN" in page_of(left)
    assert "Not finished: 3 jobs" in page_of(left)
    assert "Not finished: 3 jobs" in markdown(NOTHING, {}, [], left)


def test_a_stuck_round_says_where_its_threads_are() -> None:
    """The innermost frame of each, with what the watchdog saw."""
    threads = [{"name": "a", "moved": False, "stack": ["outer", "sync.py:7 acquire: wait()"]}]
    stuck = {"scenario": "two-events/locked", "threads": threads}
    (one,) = outcomes_of(stress_of(raced(), stuck=stuck))
    assert "stuck: a stands still at sync.py:7 acquire: wait()" in one.notes


def test_the_matrix_says_who_found_what() -> None:
    """Sums by layer of those asked; the survivors; what is not counted, and why."""
    text = page_of(kills=MATRIX)
    read = alone(text)
    head, *rows = rows_of(text, "kills")
    assert head == ["layer", "found", "of those asked", "seconds"]
    assert rows == [["explorer", "1", "3", "2.2"], ["types", "0", "0", "0.5"], ["stress", "1", "2", "1.0"]]
    said = "".join(read.text)
    assert "2 of 3 were found by a layer; 1 survive." in said
    assert "3 bug-3 (KAFKA-3)" in said
    assert "43 no-counter: there is no counter" in said
    assert "offer a bucket twice" in said
    assert "<title>VIOLATED" in text, "a bug that nobody finds is no pass"


def test_matrices_of_layers_run_apart_are_one() -> None:
    """What a CI job a layer printed; a bug that only one of them finds does not survive."""
    one = matrix_of(mutants_of(bug(3, explorer=kill()), bug(1, explorer=kill("O4"))))
    other = matrix_of(bug(3, stress=kill("P3")))
    matrix = joined([one, other])
    assert matrix is not None
    assert [(row.number, sorted(row.layers)) for row in matrix.rows] == [
        (1, ["explorer"]),
        (3, ["explorer", "stress"]),
    ]
    assert matrix.verdict is Verdict.PASS
    assert one.verdict is Verdict.VIOLATED
    assert joined([]) is None


def test_what_is_not_there_has_no_section() -> None:
    """A check alone has neither; results alone have no table of verdicts, and say nothing of promises kept."""
    made = fired_early()
    text = page(made.result(), made.examples(), [])
    for word in ("Outcomes", "Known bugs by layer", "forbidden"):
        assert word not in text
    text = page_of(tables(raced()))
    for word in (">Verdicts<", "No promise was broken", "Known bugs by layer", "runs violated"):
        assert word not in text
    both = page(made.result(), made.examples(), [], (), tables(raced(verdict="PASS")), MATRIX)
    alone(both)
    assert all(word in both for word in (">Verdicts<", ">Outcomes<", ">Known bugs by layer<"))


def hostile_results(hostile: str) -> tuple[OutcomeTables, KillMatrix]:
    """Every text is this one."""
    line = outcome(hostile, 3, "forbidden", hostile, hostile)
    shape = raced(hostile) | {"outcomes": [line, outcome("x", 1, "forbidden", "O4", LONG_COMMAND)]}
    found = replace(outcomes_of(stress_of(shape))[0], how=hostile, notes=(hostile,))
    row = bug(1, **{hostile: kill(hostile)}) | {"name": hostile, "source": hostile, "scenario": hostile}
    matrix = mutants_of(row, row | {"number": 2, "layers": {hostile: kill(reason=hostile)}})
    matrix |= {"equivalent": [hostile], "not_applicable": [{"number": 4, "name": hostile, "reason": hostile}]}
    return OutcomeTables((found,), (hostile,)), matrix_of(matrix)


@pytest.mark.parametrize("hostile", [*HOSTILE, "`` ``` ````", "| a | b |", "@somebody #1 www.example.org"])
def test_text_of_results_stays_text(hostile: str) -> None:
    """Scenarios, outcomes, clauses, notes, bugs, layers, reasons: wherever it stands it is only text."""
    outcomes, kills = hostile_results(hostile)
    read = alone(page_of(outcomes, kills))
    assert "".join(read.text).count(visible(hostile, 400)) >= 8
    text = markdown(NOTHING, {}, [], outcomes, kills)
    said = Tags(text)
    assert said.tags <= set("h2 h3 h4 p table thead tbody tr th td code pre ul li strong".split())
    assert said.attributes <= {"class"}
    assert said.text.count(visible(hostile, 400)) >= 3
    outside = re.sub(r"(`{3,})text\n.*?\n\1\n", "", text, flags=re.S)
    assert "@somebody" not in outside
    assert "www." not in outside
    assert f"again: {hostile}" not in text


def test_text_that_is_not_escaped_would_be_caught() -> None:
    """The twin that must fail: put in as it is, the same text is an element."""
    outcomes, kills = hostile_results("SAFE")
    good = page_of(outcomes, kills)
    with pytest.raises(AssertionError):
        alone(good.replace("SAFE", HOSTILE[0], 1))
    summary = markdown(NOTHING, {}, [], outcomes, kills)
    assert "script" not in Tags(summary).tags
    assert "script" in Tags(summary.replace("SAFE", HOSTILE[0], 1)).tags


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (AGAIN, True),
        ("purgatorio explore --replay two-events/pending-flag/11/1x7-2x9-1x3-T", True),
        ("purgatorio stress; rm -rf ~", False),
        ("purgatorio stress $(rm -rf ~)", False),
        ("rm -rf ~", False),
        ("purgatorio stress " + "x" * 3_000, False),
    ],
)
def test_only_our_own_commands_are_shown(command: str, shown: bool) -> None:
    """They are there to be pasted into a shell: none of a stranger's, and none that was cut."""
    (one,) = outcomes_of(stress_of(raced() | {"outcomes": [outcome("x", 1, "forbidden", "O4", command)]}))
    assert (one.lines[0].again == command) is shown
    assert one.lines[0].again or not shown


def test_many_scenarios_and_outcomes_are_bounded() -> None:
    """10,000 scenarios with 1,000 long outcomes each: the page still opens, and says what it leaves out."""
    lines = [outcome(f"{at} {'x' * 2_000}", 1, "forbidden", "O4", AGAIN) for at in range(1_000)]
    (big,) = merged(outcomes_of(stress_of(raced() | {"outcomes": lines, "rounds": 1_000})))
    assert (len(big.lines), big.left_out) == (LINES_KEPT, 1_000 - LINES_KEPT)
    many = OutcomeTables(tuple(replace(big, name=f"{at}/{'y' * 500}") for at in range(10_000)))
    rows = tuple(replace(MATRIX.rows[2], number=at, name="z" * 2_000) for at in range(10_000))
    text = page_of(many, KillMatrix(rows))
    alone(text)
    assert len(text) < 4_000_000
    assert "9,800 more scenarios, none worse than these, are left out" in text
    assert "984 more outcomes are left out" in text
    assert "9,800 more are left out" in text
    assert text.count('open=""') == 10 + 1, "the survivors too"
    summary = markdown(NOTHING, {}, [], many, KillMatrix(rows))
    assert len(summary) < 60_000
    assert "9,970 more scenarios are left out" in summary
    assert "9,990 more violated scenarios are left out" in summary


def test_markdown_has_the_same_sections_short() -> None:
    """Sums, a row a scenario, the command that repeats, a row a layer, the survivors."""
    text = markdown(NOTHING, {}, [], tables(raced(), raced("other/locked", "PASS")), MATRIX)
    read = Tags(text)
    assert text.startswith("## Purgatorio: VIOLATED\n")
    assert "no runs" not in text
    assert "Scenarios: 1 VIOLATED, 1 PASS; 2,000 rounds of threads" in read.text
    assert f"again: {AGAIN}" in read.text
    assert "10 (1.0 %)  O4: left at the end" in read.text
    assert "| <code>stress</code> | 1 | 2 | 1.0 |" in text
    assert "survives: 3" in read.text


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([], "Expected `object`, got `array`"),
        (stress_of(raced() | {"verdict": "FINE"}), "Invalid enum value 'FINE' - at `$.scenarios[0].verdict`"),
        (stress_of(raced() | {"rounds": -1}), "Expected `int` >= 0 - at `$.scenarios[0].rounds`"),
        (stress_of(raced() | {"rounds": True}), "Expected `int`, got `bool`"),
        (
            stress_of(raced() | {"outcomes": {}}),
            "Expected `array`, got `object` - at `$.scenarios[0].outcomes`",
        ),
        (stress_of(raced() | {"outcomes": [outcome("a", 1, "fine")]}), "Invalid enum value 'fine'"),
        (stress_of(raced() | {"name": 7}), "Expected `str`, got `int` - at `$.scenarios[0].name`"),
    ],
)
def test_results_that_are_none_are_refused(shape: object, said: str) -> None:
    """With the field that is wrong."""
    with pytest.raises(Unreadable, match=re.escape(said)):
        outcomes_of(shape)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (bug(1, explorer={"killed": "yes"}), "Expected `bool`, got `str` - at `$.layers[...].killed`"),
        (bug(-1, explorer=kill()), "Expected `int` >= 0 - at `$.number`"),
        ({"kind": "mutant", "number": 1, "name": "x"}, "missing required field `layers`"),
    ],
)
def test_kills_that_are_none_are_refused(row: object, said: str) -> None:
    """A matrix that says nothing clear must not read as killed."""
    with pytest.raises(Unreadable, match=re.escape(said)):
        matrix_of(row)


def test_a_scenario_without_outcomes_is_shown() -> None:
    """A job of a campaign that failed: its reason, and no table."""
    failed = ScenarioOutcomes(
        "a/b", "stress", Verdict.UNKNOWN, 0, notes=("a job failed: killed by signal 11",)
    )
    text = page_of(OutcomeTables((failed,)))
    alone(text)
    assert "a job failed: killed by signal 11" in text
    assert "<table" not in text
