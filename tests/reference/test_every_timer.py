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
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Repeated
from purgatorio.timer.hashed_wheel import HashedEntry
from purgatorio.timer.intrusive.timer import TaskNode
from purgatorio.timer.intrusive.wheel import Wheel
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.mutant.patch import Patch, edited, patched
from reference.waiting import TIMERS, Stepped
from stress.small_programs import Small

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
REFUSED = "1.2.0.0:1,3:add.0:refuse.1,step.3:"
AGAIN_BESIDE_CANCEL = "1.3.0.0:2:add.0,pass.2:cancel.0+add.0,drain.0:"
TWINS = (
    _twin(
        f"drawn:intrusive:{AGAIN_BESIDE_CANCEL}",
        "T1 T3",
        Patch(TaskNode, "is_wanted", lambda self: True),
        threads=True,
    ),
    _twin(
        f"drawn:hashed:{AGAIN_BESIDE_CANCEL}",
        "T1 T3",
        Patch(HashedEntry, "cancelled", lambda self: False),
        threads=True,
    ),
    _twin(
        "drawn:system:1.2.0.0:2,6:add.0,add.1:step.2+step.2:",
        "T1 T5",
        edited(SystemTimer, "advance_clock", f"{LOCK}    {POLL}", POLL + LOCK),
        threads=True,
    ),
    _twin(f"drawn:system:{REFUSED}", "T3", Patch(SystemTimer, "_keep", lambda self, refused, half: None)),
    _twin(f"drawn:hashed:{REFUSED}", "T3", Patch(HashedWheel, "_keep", lambda self, entry: None)),
    _twin(f"drawn:heap:{REFUSED}", "T3", edited(HeapTimer, "advance_clock", "self._offer(entry)", "pass")),
    _twin(f"drawn:intrusive:{REFUSED}", "T3", Patch(Wheel, "put_back", lambda self, dues: None)),
    _twin(
        "drawn:hashed:1.3.2.0:2,2,2:add.0,add.1:step.2:run.0=cancel.1,run.0=add.2,run.0=drain.0",
        "P3",
        edited(HashedWheel, "__init__", "sync.rlock", "sync.lock", "super()", "super(HashedWheel, self)"),
    ),
    _twin(
        "drawn:purgatory:1.1000.1.0:0.0.0::shutdown,register.0:",
        "O5 O8",
        edited(Purgatory, "_arm", "if not self._complete", "if self._complete"),
    ),
)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_programs_find_it(twin: Mutant) -> None:
    """Two drains at once, an executor that refuses, a cancel beside an add, calls from inside a task."""
    assert hunt(twin).killed


def cancels_inside_a_drain(kind: str) -> None:
    """T4: a task that the drain runs itself cancels another that is due. (The wheel for use hands over a batch.)"""
    clock, ran = ManualClock(), list[str]()
    timer = KINDS[kind](clock=clock, executor=DirectExecutor(), faults=PROPAGATE)
    tasks = [ActionTask(2, lambda: tasks[1].cancel()), ActionTask(2, lambda: ran.append("cancelled"))]
    for task in tasks:
        timer.add(task)
    clock.advance(2)
    timer.advance_clock(0)
    assert (ran, timer.size()) == ([], 0)


def repeats_itself_away(kind: str) -> None:
    """T4: a function that runs every 2 ms cancels itself in its second run."""
    clock, ran = ManualClock(), list[int]()
    timer = KINDS[kind](clock=clock, executor=DirectExecutor(), faults=PROPAGATE)

    def act() -> None:
        ran.append(clock.now_ms())
        if len(ran) == 2:
            repeated.cancel()

    repeated = Repeated(timer, 2, act, sync=THREADS)
    timer.add(repeated)
    for _ in range(10):
        clock.advance(1)
        timer.advance_clock(0)
    assert (ran, timer.size()) == ([2, 4], 0)


@pytest.mark.parametrize("kind", ["wheel", "heap", "hashed"])
def test_a_cancel_inside_a_drain_counts(kind: str) -> None:
    cancels_inside_a_drain(kind)
    with patched([edited(HashedWheel, "_fire_all", "if gone or entry.cancelled()", "if False")]):
        if kind == "hashed":
            with pytest.raises(AssertionError):
                cancels_inside_a_drain(kind)


@every_kind
def test_what_cancels_itself_runs_no_more(kind: str) -> None:
    repeats_itself_away(kind)
    uncancelled = edited(Repeated, "cancel", "set(True)", "set(False)", "super()", "super(Repeated, self)")
    with patched([uncancelled]), pytest.raises(AssertionError):
        repeats_itself_away(kind)


def test_a_stop_waits_for_the_last_task_which_is_cancelled() -> None:
    """P3: whoever waits for the end of all tasks is told of it by the cancel, in every interleaving."""

    def build(sync: Sync) -> tuple[list[Callable[[], object]], Callable[[], bool]]:
        timer = HashedWheel(
            "t", wheel_size=4, clock=ManualClock(), executor=QueuedExecutor(sync=sync), sync=sync
        )
        task = ActionTask(5, lambda: None, sync=sync)
        timer.add(task)
        return [timer.stop_after_pending, task.cancel], lambda: timer.size() == 0

    sound = explore_dpor(Small(build), Limits())
    assert (sound.complete, sound.found) == (True, [])
    with patched([edited(HashedWheel, "unlink", "== 0", "!= 0")]):
        assert explore_dpor(Small(build), Limits()).found
