"""`purgatorio clause ID`: a rule's story in a minute, and no rule without one."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from program_text import ran
from purgatorio_pipeline.command.clause import BROKER_IDS, ROOT, command
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_spec.profile import CLAUSE_ENTRIES
from purgatorio_wire.clause.registry import BROKER_CLAUSES, WIRE_CLAUSES, public_clauses

WITHOUT_MUTANT, WITHOUT_REFERENCE = (
    {name for name in CLAUSES if lacked in CLAUSE_ENTRIES[name].get("exempt", "")}
    for lacked in ("mutant", "reference")
)
"""Drawn faults break those without a mutant (`tests/spec/drawn_history.py`, `drawn_periodic.py`). The reference resets
nothing (T11), and declares no turn of its own (T12): when its tasks run is its executor's."""


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
        "implemented in",
        "broken by",
        "negative controls",
        "tests",
    }
    empty = {title for title, text in parts.items() if text.strip().startswith(("no ", "none", "?"))}
    expected = {"broken by"} if clause in WITHOUT_MUTANT else set()
    assert empty == expected | ({"implemented in"} if clause in WITHOUT_REFERENCE else set())
    assert "spec/purgatorio_spec/clause/" in parts["judged by"]
    assert (clause in WITHOUT_MUTANT) != ("  see: purgatorio explore " in parts["broken by"])
    said = " ".join(parts["rules"].split())
    assert all(f". {rule}. {rule.formula}".strip() in said for rule in CLAUSES[clause].rules)


ENTRY: Final = """
[T99]
title = "A task waits"
group = "timer"
rules = [["A task does not fire", "no fire"]]
example = "A task fires."
occasion = "a task that fires"
records = "timer_fire"
"""
MODULE: Final = """
from purgatorio_spec.clause.declaration import Broken, Clause
from purgatorio_spec.verdict import NO_OCCASION

T99 = Clause("T99")


@T99.of_operation
def waits(run, history):
    fires = [fire.call_i for fire in history.fires]
    return Broken("fired", fires, "no fire", "a fire") if fires else NO_OCCASION
"""
ASKED: Final = """
import sys
from pathlib import Path
from purgatorio_conformance.suite.gated import scenarios_of
from purgatorio_conformance.suite.contract import Promise
from purgatorio_spec.check import check_files
results = [check_files([Path(sys.argv[1])], full=full).runs[0].clauses for full in (False, True)]
assert results[0] == results[1]
print(results[0]["T99"].verdict.name, f'{results[0]["T99"].violations:,}')
print(*[one.name for one in scenarios_of("timer", Promise("timer", 1_000_000)) if "T99" in one.clauses])
"""


def test_a_clause_is_an_entry_and_a_function(tmp_path: Path) -> None:
    """CONTRIBUTING's first two steps, in a copy: the verdict of both paths, the profile, the plugin's long runs."""
    shutil.copytree(ROOT / "spec" / "purgatorio_spec", tmp_path / "purgatorio_spec")
    folder = tmp_path / "purgatorio_spec" / "clause"
    with (folder / "clauses.toml").open("a") as entries:
        entries.write(ENTRY)
    (folder / "wait.py").write_text(MODULE)
    trace = ROOT / "examples" / "traces" / "kafka-clean-1k.parquet"
    command = [sys.executable, "-c", ASKED, str(trace)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = ran(command, env=environment)
    verdict, runs = done.stdout.splitlines()
    assert verdict == "VIOLATED 672", done.stderr
    assert runs == "plan jumps scope gates steps"


@pytest.mark.parametrize("clause", WIRE_CLAUSES)
def test_each_clause_of_the_wire_has_a_story(clause: str) -> None:
    """The sentence, the judging functions, the scenes, and negative controls."""
    one = WIRE_CLAUSES[clause]
    told = CliRunner().invoke(command, [clause])
    assert told.exit_code == 0
    assert " ".join(told.output.split()).startswith(f"{clause} {one.title} {one.promise}")
    parts = dict(part.split("\n", 1) for part in told.output.split("\n\n")[1:])
    assert set(parts) == {
        "basis",
        "causes",
        "judged by",
        "exact conditions",
        "scenes",
        "broken by",
        "negative controls",
        "tests",
    }
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
