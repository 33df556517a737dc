"""A printed token can be replayed, and the text of a failure is fixed."""

import json
import re

import pytest
from click.testing import CliRunner

from golden import Golden
from mutants.reference import MUTANTS
from purgatorio_pipeline.command.explore import command
from purgatorio_stress.explorer.replay import BadToken, Token

LOST = ("--mutant", MUTANTS[11].bug.name)
"""KAFKA-6653."""


@pytest.fixture(scope="module")
def lost() -> str:
    result = CliRunner().invoke(command, ["two-events/pending-flag", *LOST])
    assert result.exit_code == 1
    return result.stdout


def test_the_printed_token_replays(lost: str) -> None:
    """The same table comes back. On the reference itself the schedule is no violation, or not possible."""
    found = re.search(r"--replay (\S+)", lost)
    assert found is not None
    again = CliRunner().invoke(command, ["--replay", found[1], *LOST])
    assert again.exit_code == 1
    assert again.output.strip() in lost
    assert CliRunner().invoke(command, ["--replay", found[1]]).exit_code in (0, 2)


def test_the_text_of_the_failure(lost: str, golden: Golden) -> None:
    """Golden file: columns, places, clause, token. Times and the numbers of lines, which every edit moves, are out."""
    lines = [line for line in lost.splitlines() if not line.startswith("VIOLATED ")]
    golden("stress/golden/explore-two-events-11.txt", re.sub(r"\.py:\d+", ".py:N", "\n".join(lines)) + "\n")


@pytest.mark.parametrize(
    "text",
    ["", "a/b/c", "two-events/locked/x/1x1", "two-events/locked/0/1y1", "two-events/locked/0/1x999999999"],
)
def test_what_is_no_token(text: str) -> None:
    """It is refused with a word, not with a traceback."""
    with pytest.raises(BadToken):
        Token.parse(text)


@pytest.mark.parametrize(
    "text", ["nowhere/locked/0/1x1", "two-events/locked/5/1x1", "two-events/locked/0/7x1"]
)
def test_what_does_not_fit_is_wrong_usage(text: str) -> None:
    """An unknown scenario, a mutant by its number, as older versions wrote it, a step of a task that is not there."""
    assert CliRunner().invoke(command, ["--replay", text]).exit_code == 2


def test_tokens_are_read_as_they_are_written() -> None:
    """Round trip, with time passing twice."""
    token = Token("two-events", "locked", 0, (1, 1, -1, -1, 2, 1))
    assert Token.parse(str(token)) == token


def test_json_has_the_documented_shape() -> None:
    """One object, with the counts and the token."""
    result = CliRunner().invoke(command, ["two-events/pending-flag", *LOST, "--json"])
    parsed = json.loads(result.output)
    assert parsed["verdict"] == "VIOLATED"
    assert {"scenario", "complete", "bound", "schedules", "seconds"} <= parsed.keys()
    assert {"clause", "token", "preemptions", "steps"} <= parsed["violations"][0].keys()
    assert parsed["violations"][0]["clause"] == "O4"
