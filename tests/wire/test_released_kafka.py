"""Released Kafka brokers: how they are started, what the page says of them, and one of each kind that is driven."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.makers import kafka_release, kafka_releases_wire
from docs.makers.kafka_release import Missing, Release, started
from docs.makers.kafka_releases_wire import RELEASES, explained, page

PATIENCE_S = 600
QUICK = "acks,ready-fetch,woken-fetch,timed-out,left-waiting,topics"


@pytest.mark.parametrize(
    ("version", "scala", "kraft"),
    [("1.1.1", "2.12", False), ("2.8.2", "2.13", False), ("3.3.2", "2.13", True), ("4.4.0", "2.13", True)],
)
def test_a_release_is_run_as_its_time_did(version: str, scala: str, kraft: bool) -> None:
    assert (Release(version).scala, Release(version).has_kraft) == (scala, kraft)


def test_a_missing_maven_or_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.makers.kafka_release.shutil.which", lambda tool: None)
    assert kafka_release.unavailable() == "mvn and java not installed"
    with pytest.raises(Missing, match="mvn and java not installed"), started(Release("3.9.0")):
        pass


def test_an_issue_explains_the_releases_before_its_mend_alone() -> None:
    assert explained("2.8.0", "G5 waits-for-no-leader") == "KAFKA-12890"
    assert explained("2.8.1", "G5 waits-for-no-leader") == ""
    assert explained("2.8.0", "G5 other-assignment") == ""


def test_the_page_lists_unexplained_violations() -> None:
    clauses = {
        "G5": {"verdict": "VIOLATED", "causes": ["waits-for-no-leader", "other-assignment"]},
        "F1": {"verdict": "PASS", "causes": []},
    }
    run = {
        "version": "2.3.1", "setup": "one node", "seed": 1, "seconds": 90, "verdict": "VIOLATED", "events": 9,
        "clauses": clauses, "load": 2,
    }  # fmt: skip
    made = page([run])
    assert "| 2.3.1 | VIOLATED 1 | - |" in made
    assert "| - | **not explained** | 2.3.1 | G5 other-assignment |" in made
    assert "without a bound | 2.3.1 | G5 waits-for-no-leader |" in made


def test_the_page_is_at_most_two_screens() -> None:
    made = Path(kafka_releases_wire.__file__).parents[1] / "measured" / "kafka-releases-wire.md"
    lines = made.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert {line.split("|")[1].strip() for line in lines if line.startswith("| ")} & {*RELEASES}


@pytest.mark.slow
@pytest.mark.parametrize(("version", "nodes"), [("2.8.2", 1), ("3.9.0", 1), ("4.4.0", 2)])
def test_a_released_kafka_breaks_nothing(version: str, nodes: int, tmp_path: Path) -> None:
    """With ZooKeeper, as its own controller, and two with a controller of their own."""
    if why := kafka_release.unavailable():
        pytest.skip(why)
    try:
        with started(Release(version), nodes) as running:
            command = [
                sys.executable, "-m", "purgatorio_pipeline", "wire", running[0].address, "--only", QUICK, "--json",
                "--trace", str(tmp_path / "wire.jsonl"),
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except Missing as why_not:
        pytest.skip(str(why_not))
    (run,) = json.loads(done.stdout)["runs"]
    broken = {name for name, one in run["clauses"].items() if one["verdict"] == "VIOLATED"}
    assert not broken, tmp_path
    assert run["clauses"]["M1"]["verdict"] == "PASS"
