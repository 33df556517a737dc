"""What other commands found, on the page and in Markdown: the right words, only text, bounded."""

from __future__ import annotations

import re

import pytest

from pipeline.made_results import (
    AGAIN,
    bug,
    explore_of,
    explored,
    findings_of,
    kill,
    mutants_of,
    outcome,
    raced,
    stress_of,
)
from pipeline.test_report_files import Tags
from pipeline.test_report_page import alone
from purgatorio_pipeline.documents import Unreadable
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import page
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict
from spec.shown_trace import fired_early

NOTHING = CheckResult(())


def page_of(*findings: Finding) -> str:
    return page(NOTHING, {}, [], (), findings)


def test_a_scenario_shows_its_result() -> None:
    """The number of runs, forbidden outcomes with clause and count, the reason why it is no pass, and the command
    that repeats it."""
    threads, other, searched = findings_of(
        stress_of(raced(), raced("b/c", "UNKNOWN", overlapped=0), mutant="bug.py"), explore_of(explored())
    )
    assert threads == Finding(
        "two-events/locked, stress, with the bug bug.py",
        Verdict.VIOLATED,
        "10 times O4: left at the end; 1,000 rounds, threads overlapped in 400",
        AGAIN,
    )
    assert (other.verdict, other.said) == (Verdict.UNKNOWN, "1,000 rounds, threads overlapped in 0")
    assert searched == Finding(
        "two-events/locked, explore random",
        Verdict.UNKNOWN,
        "50 schedules; a sample; limit reached: 50 schedules; never reached: a label",
    )


def test_what_broke_off_or_is_stuck_says_so() -> None:
    """A run that ended early is no pass; of a stuck round the innermost frame of each thread."""
    (early,) = findings_of(stress_of(raced(verdict="PASS"), problem="interrupted"))
    assert early.verdict is Verdict.UNKNOWN
    assert "the run ended early: interrupted" in early.said
    threads = [{"name": "a", "moved": False, "stack": ["outer", "sync.py:7 acquire: wait()"]}]
    (stuck,) = findings_of(
        stress_of(raced(), stuck={"scenario": "two-events/locked", "threads": threads}, given_up=3)
    )
    assert "stuck: a is blocked at sync.py:7 acquire: wait()" in stuck.said


def test_layers_of_the_matrix_are_put_together() -> None:
    """The output of one CI job for each layer. A bug that one layer finds does not survive."""
    one = mutants_of(bug(3, explorer=kill()), bug(1, explorer=kill("O4")))
    whole, alive = findings_of(one)
    assert (whole.verdict, whole.said) == (Verdict.VIOLATED, "1 of 2 were found by at least one layer")
    assert (alive.what, alive.said) == ("known bug 3 bug-3 (KAFKA-3)", "survives explorer")
    (whole,) = findings_of(one, bug(3, stress=kill("P3")))
    assert (whole.verdict, whole.said) == (Verdict.PASS, "2 of 2 were found by at least one layer")
    assert findings_of() == []


def test_what_is_not_there_has_no_section() -> None:
    """A check alone has no such section. Findings alone have no table of verdicts, and no promises."""
    made = fired_early()
    assert "Found by other commands" not in page(made.result(), made.examples(), [])
    found = findings_of(stress_of(raced()))
    text = page_of(*found)
    alone(text)
    for word in (">Verdicts<", "No promise was broken", "runs violated"):
        assert word not in text
    assert "<title>VIOLATED" in text
    both = page(made.result(), made.examples(), [], (), found)
    assert all(word in both for word in (">Verdicts<", ">Found by other commands<"))
    summary = markdown(NOTHING, {}, [], found)
    assert summary.startswith("## Purgatorio: VIOLATED\n")
    assert "no runs" not in summary
    assert AGAIN in Tags(summary).text


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (AGAIN, True),
        ("purgatorio explore --replay two-events/pending-flag/0/1x8-2x9-1x4-T", True),
        ("purgatorio stress; rm -rf ~", False),
        ("purgatorio stress $(rm -rf ~)", False),
        ("rm -rf ~", False),
        ("purgatorio stress " + "x" * 3_000, False),
    ],
)
def test_only_our_own_commands_are_shown(command: str, shown: bool) -> None:
    """The commands are there to be pasted into a shell: no command from a file of another program, and no command
    that is cut."""
    (one,) = findings_of(stress_of(raced() | {"outcomes": [outcome("x", 1, "forbidden", "O4", command)]}))
    assert one.again == (command if shown else "")


def test_many_findings_and_outcomes_are_bounded() -> None:
    """10,000 scenarios with 1,000 long outcomes each: the page opens, and lists what is left out."""
    lines = [outcome(f"{at} {'x' * 2_000}", 1, "forbidden", "O4", AGAIN) for at in range(1_000)]
    (big,) = findings_of(stress_of(raced() | {"outcomes": lines, "rounds": 1_000}))
    assert "997 more outcomes that are forbidden" in big.said
    text = page_of(*[big] * 10_000)
    alone(text)
    assert len(text) < 1_000_000
    assert "9,800 more findings, none worse than these, are left out" in text
    summary = markdown(NOTHING, {}, [], [big] * 10_000)
    assert len(summary) < 60_000
    assert "9,970 more findings are left out" in summary


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
        (bug(1, explorer={"killed": "yes"}), "Expected `bool`, got `str` - at `$.layers[...].killed`"),
        (bug(-1, explorer=kill()), "Expected `int` >= 0 - at `$.number`"),
        ({"kind": "mutant", "number": 1, "name": "x"}, "missing required field `layers`"),
    ],
)
def test_documents_that_are_none_are_refused(shape: object, said: str) -> None:
    """With the field that is wrong: what says nothing clear must not read as a pass."""
    with pytest.raises(Unreadable, match=re.escape(said)):
        findings_of(shape)
