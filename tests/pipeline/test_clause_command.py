"""`purgatorio clause ID`: a rule's story in a minute, and no rule without one."""

from typing import Final

import pytest
from click.testing import CliRunner

from purgatorio_pipeline.command.clause import BROKER_IDS, ROOT, command
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_wire.clause.registry import BROKER_CLAUSES, WIRE_CLAUSES, public_clauses

WITHOUT_MUTANT: Final = {"O2", "O7"} | {name for name, one in CLAUSES.items() if one.asked_by}
"""No known bug of the reference breaks them; drawn faults do (`tests/spec/drawn_history.py`, `drawn_periodic.py`)."""

WITHOUT_REFERENCE: Final = {"T11", "T12"}
"""The reference resets nothing, and declares no turn of its own: when its tasks run is its executor's."""


@pytest.mark.parametrize("clause", CLAUSES)
def test_each_clause_has_every_leg(clause: str) -> None:
    """Sentence, formula, function, a line of the reference, mutants, twins, tests."""
    told = CliRunner().invoke(command, [clause])
    assert told.exit_code == 0
    assert told.output.startswith(f"{clause}  {CLAUSES[clause].title}\n\n")
    parts = dict(part.split("\n", 1) for part in told.output.split("\n\n")[1:])
    assert set(parts) >= {
        "rules",
        "broken",
        "occasion",
        "exact conditions",
        "judged by",
        "implemented in the reference",
        "broken by",
        "negative controls",
        "tests",
    }
    empty = {title for title, text in parts.items() if text.strip().startswith(("no ", "none", "?"))}
    expected = {"broken by"} if clause in WITHOUT_MUTANT else set()
    assert empty == expected | ({"implemented in the reference"} if clause in WITHOUT_REFERENCE else set())
    assert "spec/purgatorio_spec/clause/" in parts["judged by"]
    said = " ".join(parts["rules"].split())
    assert all(f". {rule}. {rule.formula}".strip() in said for rule in CLAUSES[clause].rules)


@pytest.mark.parametrize("clause", WIRE_CLAUSES)
def test_each_clause_of_the_wire_has_a_story(clause: str) -> None:
    """The sentence, the judging functions, the scenes, and negative controls."""
    one = WIRE_CLAUSES[clause]
    told = CliRunner().invoke(command, [clause])
    assert told.exit_code == 0
    assert " ".join(told.output.split()).startswith(f"{clause} {one.title} {one.promise}")
    parts = dict(part.split("\n", 1) for part in told.output.split("\n\n")[1:])
    assert set(parts) == {"basis", "causes", "judged by", "scenes", "broken by", "negative controls", "tests"}
    assert {title for title, text in parts.items() if text.strip() in ("none", "?", "no mutant")} == set()


def test_no_id_is_of_two_clauses() -> None:
    assert not {*WIRE_CLAUSES} & {*public_clauses()}


def test_each_clause_of_the_broker_and_of_the_code_is_tagged_where_it_is_kept_and_named_in_a_test() -> None:
    """In tests those of the broker by number or in a range of numbers, those of the code in quotes."""
    rooms = (ROOT / "reference", ROOT / "wire" / "purgatorio_broker")
    kept = "\n".join(path.read_text() for room in rooms for path in sorted(room.rglob("*.py")))
    assert [name for name in (*BROKER_CLAUSES, *CODE_CLAUSES) if f"[{name}]" not in kept] == []
    told = [*sorted((ROOT / "tests").rglob("test_*.py")), *sorted((ROOT / "tests/wire/days").glob("*.txt"))]
    tested = "\n".join(path.read_text() for path in told)
    ranges = ((int(first), int(last or first)) for first, last in BROKER_IDS.findall(tested))
    named = {f"B{number}" for first, last in ranges for number in range(first, last + 1)}
    assert set(BROKER_CLAUSES) <= named
    assert [name for name in CODE_CLAUSES if f'"{name}"' not in tested] == []


def test_a_clause_of_the_code_has_a_story_and_an_unknown_one_has_none() -> None:
    """Status 2 and what to type. A small letter is understood."""
    assert CliRunner().invoke(command, ["o8"]).output == CliRunner().invoke(command, ["O8"]).output
    wrong = CliRunner().invoke(command, ["O99"])
    assert (wrong.exit_code, "check --clauses" in wrong.output) == (2, True)
