"""How much the driver finds: the toy subjects with one thing changed at a time, each found by a clause that it breaks.

What is not found is listed with its reason: it changes nothing, or breaks no promise that a clause states.
"""

from pathlib import Path

import pytest

from conformance.driven import EXAMPLES, PYTHON, broken, changed
from mutants.diffs import Diff, diffs
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.recording import record_runs
from purgatorio_spec.check import check_files

CHANGES = diffs(Path(__file__).parent / "toy_changes.txt")


def found(change: Diff, folder: Path) -> set[str]:
    changes = dict(change.changes[0].words)
    if any("any([self" in instead for instead in changes.values()):
        changes["[first:])"] = "[first:]]))"
    program = changed(EXAMPLES / f"{change.name}.py", changes, folder)
    subjects = command_subjects([*PYTHON, program], time="virtual")
    records = record_runs(subjects, folder, ops=200)
    assert [record.failure for record in records] == [None] * len(subjects)
    runs = check_files([record.path for record in records if record.path is not None]).runs
    return set[str]().union(*map(broken, runs))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(one, marks=() if number % 9 == 0 else pytest.mark.slow)
        for number, one in enumerate(CHANGES)
    ],
)
def test_every_change_is_found_or_has_its_reason(change: Diff, tmp_path: Path) -> None:
    """Some changes run in every test run. The changes that are not found are listed by name."""
    clauses = found(change, tmp_path)
    if " " in change.what:
        assert clauses == set(), "a limit that is none any more: say what finds it"
    else:
        assert change.what in clauses
