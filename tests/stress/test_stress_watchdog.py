"""A round that is stuck is found by its progress; the test beats, no clock does."""

import threading
from pathlib import Path

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.batch import Batch, Series
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.round_trace import RoundTrace
from purgatorio_stress.harness.seam import StopFlag
from purgatorio_stress.harness.settings import Settings
from purgatorio_stress.harness.watchdog import Watchdog, stuck_threads
from purgatorio_stress.printed import Stuck
from purgatorio_stress.scenario.contract import Final_, Scenario
from purgatorio_stress.scenario.world import World

BOUND_S = 60
"""Longer than anything takes; a wait that ends by it is a failure of the test."""


def settings(rounds: int, yields: int = 0) -> Settings:
    return Settings(1, rounds, 0.005, 0, 0, yields, False, True)


class Gate:
    """The stuck threads say where they are; the test beats only then."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties + 1)
        self._met = False

    def wait(self, thread: threading.Thread) -> None:
        if not self._met:
            self.barrier.wait(BOUND_S)
            self._met = True


def deadlocked(gate: Gate) -> Scenario:
    """Two threads take two locks in either order, each waiting until the other has its first one."""
    both = threading.Barrier(2)

    def build(world: World) -> Final_ | None:
        purgatory = world.purgatory()
        locks = [world.sync.rlock(name) for name in ("left", "right")]
        operation = world.operation("op", "k")
        purgatory.register(operation)

        def take(first: int) -> None:
            with locks[first]:
                both.wait(BOUND_S)
                gate.barrier.wait(BOUND_S)
                with locks[1 - first]:
                    pass

        world.task("one", lambda: take(0))
        world.task("two", lambda: take(1))
        return None

    return Scenario("deadlocked", "", 2, ("P3",), build)


def endless(gate: Gate) -> Scenario:
    """A thread that goes round for ever, by way of a marked loop."""

    def build(world: World) -> Final_ | None:
        def turn() -> None:
            gate.barrier.wait(BOUND_S)
            while True:
                world.sync.loop_head()

        world.task("turning", turn)
        world.task("done", lambda: None)
        return None

    return Scenario("endless", "", 2, ("P3",), build)


def run(
    scenario: Scenario, gate: Gate, yields: int = 0, trace: RoundTrace | None = None
) -> tuple[Stuck, Batch]:
    series = Series(scenario, "pending-flag", OutcomeTable(scenario.name, frozenset(), None), trace)
    batch = Batch(series, 4, 9, settings(2, yields), StopFlag(), gate.wait, patience=3)
    stuck = batch.run()
    assert stuck is not None
    return stuck, batch


@pytest.mark.parametrize("yields", [0, 1], ids=["plain", "yields"])
def test_a_deadlock_is_reported_with_stacks_and_locks(yields: int) -> None:
    """Both threads stand, each in the body of its task, and each lock has its holder."""
    gate = Gate(2)
    stuck, batch = run(deadlocked(gate), gate, yields)
    assert batch.stop.asked
    assert stuck.where.startswith("seed 9, batch 4, crew 0, round 0")
    assert {thread.name for thread in stuck.threads} == {"one", "two"}
    for thread in stuck.threads:
        assert any(" take: " in line for line in thread.stack), thread.stack
    assert {(held.lock, held.holder) for held in stuck.held} == {("left", "one"), ("right", "two")}
    assert stuck.text.startswith("P3  deadlocked/pending-flag: no progress in 3 beats")
    assert "held: left by one, right by two" in stuck.text
    assert not any(line.startswith("/") for thread in stuck.threads for line in thread.stack)


def test_the_trace_so_far_is_kept_without_an_end(tmp_path: Path) -> None:
    """The events of the stuck round are written, and no engine takes the trace for a whole run."""
    gate = Gate(2)
    scenario = deadlocked(gate)
    path = tmp_path / "stuck.jsonl"
    trace = RoundTrace(path, scenario, "pending-flag", 9)
    run(scenario, gate, trace=trace)
    trace.close(whole=False)
    result = check_files([path]).runs[0]
    assert result.events > 0
    assert result.clauses["O5"].verdict is Verdict.UNKNOWN
    assert "no end record" in " ".join(result.problems)


def test_a_livelock_ends_at_its_next_turn() -> None:
    """Giving the run up frees the thread, and its processor."""
    gate = Gate(1)
    stuck, _ = run(endless(gate), gate)
    assert "turning" in {thread.name for thread in stuck.threads}
    for thread in threading.enumerate():
        if thread.name == "turning":
            thread.join(BOUND_S)
            assert not thread.is_alive()


def test_progress_restarts_the_count() -> None:
    """Slow is not stuck: the beats in a row count, not the beats."""
    progress = [0]
    dog = Watchdog(lambda: progress[0], patience=3)
    beats = [dog.beat(), dog.beat()]
    progress[0] += 1
    beats += [dog.beat(), dog.beat(), dog.beat()]
    assert beats == [False] * 5
    assert dog.beats == 2
    assert dog.beat()


def test_patience_is_two_beats_at_least() -> None:
    """With one there is no beat before to compare with."""
    with pytest.raises(ValueError, match="two beats"):
        Watchdog(lambda: 0, patience=1)


def test_threads_that_have_ended_are_not_stuck() -> None:
    """Only the living have a stack."""
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    assert stuck_threads([ended], {}) == ()
