"""A clause that is promised and recorded, and had no occasion, is no PASS in `check`, unless that is meant."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from purgatorio_pipeline.command.check import command
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import without_silent_pass
from purgatorio_spec.verdict import Verdict
from spec.figures import TRACES

IDLE = TRACES / "kafka-clean-racewatch-4k.parquet"
BUSY = TRACES / "kafka-clean-1k.parquet"


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [(IDLE, [], 3), (IDLE, ["--allow-idle"], 0), (BUSY, [], 0), (IDLE, ["--clause", "O4"], 0)],
)
def test_a_clause_without_occasion_is_unknown(path: Path, options: list[str], status: int) -> None:
    """Nothing expires in the races of registration, so three clauses were not asked anything."""
    found = CliRunner().invoke(command, ["--engine", "process", str(path), *options])
    assert found.exit_code == status, found.output
    assert ("--allow-idle" in found.output) == (status == 3)
    assert "SKIPPED" in found.output or options[:1] == ["--clause"]


def test_what_is_broken_or_invalid_stays_so() -> None:
    """Idleness is the lesser evil."""
    result = check_files([TRACES / "kafka-buggy-no-recheck.parquet", IDLE])
    strict = without_silent_pass(result)
    assert [run.verdict for run in strict.runs] == [Verdict.VIOLATED, Verdict.UNKNOWN]
    assert {name for name, one in strict.runs[1].clauses.items() if one.verdict is Verdict.UNKNOWN} == {
        "O3",
        "T1",
        "T3",
    }
