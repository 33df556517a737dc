"""The wire against our own broker: nothing is wrong with it, and each of its mutants is convicted by the right clause.

In processes of their own, as a user runs them. Slow: about ten seconds a mutant.
"""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutants.broker import MUTANTS
from mutants.broker.client_visible_mutant import VisibleMutant
from purgatorio_broker.network.follower import Follower

BROKER_MUTANTS = Path(__file__).parents[1] / "mutants" / "broker"
INITIAL_DELAY_MS = 1000
LAG_MS = 8000
LOCK_MS = 6000
PATIENCE_S = 720


@dataclass(frozen=True, slots=True)
class Process:
    address: str
    pid: int


@contextlib.contextmanager
def broker(*options: str) -> Iterator[Process]:
    """`purgatorio broker` on a port of its own."""
    run = [sys.executable, "-m", "purgatorio_pipeline", "broker", "--port", "0", *options]
    child = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout is not None
        said = child.stdout.readline()
        assert " listens on " in said, said
        yield Process(said.split(" listens on ")[1].split(";")[0], child.pid)
    finally:
        child.send_signal(signal.SIGCONT)
        child.send_signal(signal.SIGINT)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:  # A mutant may leave an operation that nothing ends.
            child.kill()
            child.wait()


def judged(brokers: int, mutant: VisibleMutant | None, folder: Path, only: str = "") -> dict[str, str]:
    """The verdict of each clause of one run of the wire, of which the folder keeps the trace."""
    options = [
        "--initial-delay-ms", str(INITIAL_DELAY_MS), "--session-bounds-ms", "100", "1800000",
        "--replica-lag-ms", str(LAG_MS), "--share-lock-ms", str(LOCK_MS),
    ]  # fmt: skip
    bug = ["--mutant", f"{BROKER_MUTANTS}:{mutant.name}"] if mutant is not None else []
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(broker(*options, *bug))
        wire = [
            "wire",
            first.address,
            "--declare",
            f"initial-delay={INITIAL_DELAY_MS}",
            "--json",
            "--pid",
            str(first.pid),
            "--trace",
            str(folder / "wire.jsonl"),
        ]
        if brokers == 2:
            followers = mutant is not None and any(patch.owner is Follower for patch in mutant.patches)
            second = stack.enter_context(
                broker(*options, *(bug if followers else ()), "--follow", first.address)
            )
            wire += ["--second", second.address, "--second-pid", str(second.pid)]
        if only:
            wire += ["--only", only]
        run = [sys.executable, "-m", "purgatorio_pipeline", *wire]
        ended = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.stdout, ended.stderr
    (judged_run,) = json.loads(ended.stdout)["runs"]
    return {name: clause["verdict"] for name, clause in judged_run["clauses"].items()}


@pytest.mark.slow
@pytest.mark.parametrize("brokers", [1, 2])
def test_nothing_is_wrong_with_our_own_broker(brokers: int, tmp_path: Path) -> None:
    found = judged(brokers, None, tmp_path)
    assert "VIOLATED" not in found.values(), (found, tmp_path)
    if brokers == 2:
        assert {*found.values()} == {"PASS"}, (found, tmp_path)
    assert {*found.values()} <= {"PASS", "SKIPPED"}, (found, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_mutant_is_convicted_by_its_clause(name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    found = judged(mutant.brokers, mutant, tmp_path, ",".join(mutant.clauses))
    guilty = {clause for clause, verdict in found.items() if verdict == "VIOLATED"}
    assert guilty & set(mutant.clauses), (
        f"convicted by {sorted(guilty)}, wanted one of {mutant.clauses}: {found}, trace in {tmp_path}"
    )
