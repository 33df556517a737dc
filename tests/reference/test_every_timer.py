"""What an executor refuses is not lost, and two drains at once are as good as one: every timer, and twins that fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mutants.kill_matrix.explored import hunt
from mutants.reference.mutant import Mutant
from purgatorio import (
    PROPAGATE,
    ActionTask,
    DirectExecutor,
    HashedWheel,
    HeapTimer,
    ManualClock,
    Purgatory,
    QueuedExecutor,
    SystemTimer,
)
from purgatorio.timer.calls import Repeated
from purgatorio.timer.hashed_wheel import HashedEntry
from purgatorio.timer.intrusive.timer import TaskNode
from purgatorio.timer.intrusive.wheel import Wheel
from purgatorio_stress.mutant.patch import Patch, edited
from reference.waiting import TIMERS, Stepped

KINDS: dict[str, Callable[..., Stepped]] = {
    "wheel": partial(TIMERS["system"], wheel_size=4),
    "heap": TIMERS["heap"],
    "hashed": partial(TIMERS["hashed"], wheel_size=4),
    "intrusive": partial(TIMERS["intrusive"], wheel_size=4, levels=1),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


class Full(Exception):
    pass


class Refusing(QueuedExecutor):
    """Refuses the calls of `submit` with these numbers, from 0."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self.refused = numbers
        self._asked = 0

    def submit(self, action: Callable[[], None], /) -> None:
        number, self._asked = self._asked, self._asked + 1
        if number in self.refused:
            raise Full(number)
        super().submit(action)


def drain(timer: Stepped) -> int:
    """Until nothing is due; returns how often the executor refused."""
    refused = 0
    while True:
        try:
            if not timer.advance_clock(0):
                return refused
        except Full:
            refused += 1
            timer.check()


@every_kind
@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (4,), (0, 1, 2), (1, 3)])
def test_what_is_refused_runs_in_a_later_drain(kind: str, numbers: tuple[int, ...]) -> None:
    """T3, T5: wherever in a drain, and however often; nothing twice, in the order of the ticks, and a cancel counts."""
    clock, executor = ManualClock(), Refusing(*numbers)
    timer = KINDS[kind](clock=clock, executor=executor)
    ran: list[int] = []
    cancelled = ActionTask(3, lambda: ran.append(-1))
    for delay_ms in (3, 1, 3, 30, 2, 3):
        timer.add(ActionTask(delay_ms, lambda delay_ms=delay_ms: ran.append(delay_ms)))  # type: ignore[misc]  # a default
    timer.add(cancelled)
    clock.advance(3)
    for _ in range(2):
        refused = 0
        try:
            timer.advance_clock(0)
        except Full:
            refused = 1
        timer.check()
        assert timer.size() >= 1 + refused
    cancelled.cancel()
    refused = drain(timer)
    executor.run_all()
    assert sorted(ran)[-5:] == [1, 2, 3, 3, 3]
    assert (timer.size(), len([name for name in ran if name > 0])) == (1, 5)
    clock.advance(27)
    drain(timer)
    executor.run_all()
    assert ran[-1] == 30
    assert timer.size() == 0
    timer.check()


@every_kind
def test_what_was_refused_can_be_cancelled_and_moved(kind: str) -> None:
    """T4: it waits, as every other."""
    clock, executor = ManualClock(), Refusing(0, 1)
    timer = KINDS[kind](clock=clock, executor=executor)
    ran: list[str] = []
    gone, moved = ActionTask(1, lambda: ran.append("gone")), ActionTask(1, lambda: ran.append("moved"))
    timer.add(gone)
    timer.add(moved)
    clock.advance(1)
    with pytest.raises(Full):
        timer.advance_clock(0)
    assert timer.size() == 2
    executor.refused = ()
    gone.cancel()
    timer.add(moved)
    timer.check()
    assert timer.size() == 1
    assert drain(timer) == 0
    assert executor.run_all() == 0
    clock.advance(1)
    assert drain(timer) == 0
    executor.run_all()
    assert ran == ["moved"]


@every_kind
def test_a_task_that_raises_through_the_executor_was_not_refused(kind: str) -> None:
    """An executor on the caller, and a policy that raises: it ran, and runs no more; those behind it are not lost."""
    clock = ManualClock()
    timer = KINDS[kind](clock=clock, executor=DirectExecutor(), faults=PROPAGATE)
    ran: list[str] = []

    def broken() -> None:
        ran.append("broken")
        raise LookupError("the task's own bug")

    timer.add(ActionTask(1, broken))
    for name in ("one", "two"):
        timer.add(ActionTask(1, lambda name=name: ran.append(name)))  # type: ignore[misc]  # a default
    clock.advance(1)
    with pytest.raises(LookupError):
        timer.advance_clock(0)
    timer.check()
    drain(timer)
    assert sorted(ran) == ["broken", "one", "two"]
    assert timer.size() == 0


def _twin(scenario: str, clauses: str, *patches: Patch, threads: bool = False) -> Mutant:
    return Mutant(0, scenario, "", "", scenario, tuple(clauses.split()), patches, interleaving=threads)


LOCK, POLL = "    with self._gate.write:\n", "    first = bucket = self._queue.poll()\n"
TWINS = (
    _twin(
        "intrusive-again-beside-cancel",
        "T1 T3",
        Patch(TaskNode, "is_wanted", lambda self: True),
        threads=True,
    ),
    _twin(
        "hashed-again-beside-cancel",
        "T1 T3",
        Patch(HashedEntry, "cancelled", lambda self: False),
        threads=True,
    ),
    _twin(
        "two-drains",
        "T1",
        edited(SystemTimer, "advance_clock", f"{LOCK}    {POLL}", POLL + LOCK),
        threads=True,
    ),
    _twin("refused", "T3 T5", Patch(SystemTimer, "_keep", lambda self, refused, half: None)),
    _twin("hashed-refused", "T3 T5", Patch(HashedWheel, "_keep", lambda self, entry: None)),
    _twin("heap-refused", "T3 T5", edited(HeapTimer, "advance_clock", "self._offer(entry)", "pass")),
    _twin(
        "hashed-inside-a-task",
        "P3",
        edited(HashedWheel, "__init__", "sync.rlock", "sync.lock", "super()", "super(HashedWheel, self)"),
    ),
    _twin(
        "hashed-inside-a-task",
        "T4",
        edited(HashedWheel, "_fire_all", "if gone or entry.cancelled()", "if False"),
    ),
    _twin(
        "repeats-itself-away",
        "T4",
        edited(Repeated, "cancel", "set(True)", "set(False)", "super()", "super(Repeated, self)"),
    ),
    _twin("hashed-stop-beside-cancel", "P3", edited(HashedWheel, "unlink", "== 0", "!= 0"), threads=True),
    _twin("shut-down", "O5 O8", edited(Purgatory, "_arm", "if not self._complete", "if self._complete")),
    _twin("intrusive-refused", "T3 T5", Patch(Wheel, "put_back", lambda self, dues: None)),
)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_the_scenarios_find_it(twin: Mutant) -> None:
    """The twins of the scenarios that every timer passes (`purgatorio_stress.scenario.every_timer`)."""
    assert hunt(twin).killed
