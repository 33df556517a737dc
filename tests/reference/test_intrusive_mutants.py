"""Bugs put into the wheel for use: each must be found, by a program of one thread or by the explorer.

The numbers are those of docs/measured/kill-matrix.md, where the bug is in it: the same mistakes can be made in this
structure.
"""

from functools import partial
from typing import Final

import pytest

from mutants.kill_matrix.explored import hunt
from mutants.reference.mutant import Mutant
from purgatorio import ManualClock, QueuedExecutor, TimerTask
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.intrusive import wheel
from purgatorio.timer.intrusive.node import Callback, Node
from purgatorio.timer.intrusive.timer import Alarm, TaskNode
from purgatorio.timer.intrusive.wheel import NO_CALLS, Bucket, Calls, Due, Level, Wheel
from purgatorio_stress.mutant.patch import Patch, edited, patched


def _add_exchanging_in_two_steps(self: IntrusiveTimer, task: TimerTask) -> None:
    node = TaskNode((self._now_ms() + task.delay_ms) // self.tick_ms, task, self)
    with self._lock:
        self._wheel.link(node)
    before = task._entry.get()
    task._entry.set(node)
    if before is not None:
        before.remove()


def _link_call_at_the_finest(self: Wheel, handle: int, tick: int, callback: Callback) -> None:
    """Moved to the slot of the finest level, though it may lie a round ahead."""
    level = self._levels[1]
    bucket = level.buckets[tick & level.mask]
    if not bucket.queued:
        self._offer(bucket, level, tick)
    bucket.calls = {**bucket.calls, handle: callback}


def _compact_to_nothing(self: Wheel, now_tick: int) -> None:
    for _, _, bucket in self._heap:
        bucket.calls = NO_CALLS


def _cascade_late(self: Wheel, mixed: list[tuple[list[Node], Calls]], now_tick: int) -> list[Due]:
    late = _CASCADE(self, mixed, now_tick)
    calls = {handle: call for _, _, numbered in late for handle, call in numbered.items()}
    return [(now_tick, [node for _, nodes, _ in late for node in nodes], calls)]


_CASCADE: Final = Wheel._cascade


def _sleep_without_ticket(self: Alarm, wait_ms: int, ticket: int) -> bool:
    with self._lock:
        return self._rung.wait(wait_ms)


def _one(
    number: int, name: str, scenario: str, clauses: str, *patches: Patch, threads: bool = False
) -> Mutant:
    return Mutant(number, name, "", "", scenario, tuple(clauses.split()), patches, interleaving=threads)


_LIMIT_INCLUSIVE: Final = edited(Level, "move_to", "+ self.size)", "+ self.size + 1)")
_NO_CASCADE: Final = edited(Wheel, "take_due", "rank != _FINEST", "False")

TASKS, CALLED = "drawn:intrusive:1.2.0", "drawn:intrusive-integers:1.2.0"

SEQUENTIAL: Final = (
    _one(83, "cancel-flag-only", f"{TASKS}.0:3:add.0:cancel.0:", "T5",
         Patch(Wheel, "unlink", lambda self, node: True)),
    _one(84, "cancel-double-decrement", f"{TASKS}.0:3:add.0:cancel.0:", "T5",
         edited(Wheel, "unlink", "_linked -= 1", "_linked -= 2")),
    _one(66, "interval-inclusive", "drawn:intrusive:1.4.0.0:7,2,5,0::add.0,add.1,add.2,step.4,add.3,drain.0:", "T5",
         _LIMIT_INCLUSIVE),
    _one(64, "no-cascade", f"{TASKS}.0:3::add.0:", "T1", _NO_CASCADE),
    _one(61, "no-reoffer-on-reuse", f"{TASKS}.0:8,9,9::add.0,step.4,add.1,step.4,add.2:", "T3",
         edited(Bucket, "emptied", "self.queued = False", "pass")),
    _one(0, "unsorted-drain", "drawn:intrusive:1.4.0.1:4,17,3::pass.3,add.0,add.1,add.2:", "T6",
         Patch(wheel, "_tick_of", lambda due: 0)),
    # The same in functions under integer handles.
    _one(84, "handle-pops-nothing", f"{CALLED}.0:1,3:call_later.0:call_later.1,uncall.0:", "T3",
         Patch(Wheel, "pop", lambda self, handle: None)),
    _one(61, "handle-not-offered", f"{CALLED}.0:3::call_later.0:", "T2 T3",
         edited(Wheel, "_link_call", "self._offer(bucket, level, tick)", "pass")),
    _one(64, "handle-compacted-away", f"{CALLED}.0:1,3:call_later.0:call_later.1:", "T2 T3",
         Patch(Wheel, "_compact", _compact_to_nothing)),
    _one(0, "handle-not-counted", f"{CALLED}.0:3::call_later.0:", "T5",
         Patch(Wheel, "size", lambda self: self._linked)),
    _one(0, "handle-late-unsorted", f"{CALLED}.1:9,8::call_later.0,call_later.1:", "T6",
         Patch(Wheel, "_cascade", _cascade_late)),
    _one(66, "handle-interval-inclusive", f"{CALLED}.1:5,0,3,9::call_later.0,step.4,call_later.1,drain.0,call_later.2,"
         "pass.1,call_later.3:", "T5",
         _LIMIT_INCLUSIVE),
    _one(64, "handle-no-cascade", f"{CALLED}.0:3::call_later.0:", "T1", _NO_CASCADE),
)  # fmt: skip
"""By the contract alone, without the timer's own `check()`, which reports CHECK."""

INTERLEAVED: Final = (
    _one(0, "pointed-at-before-the-lock", "drawn:intrusive:1.2.0.0:3::add.0+add.0:", "T5",
         edited(IntrusiveTimer, "add", "        before = entry.get_and_set(node)\n", "",
                "    lock = self._lock\n", "    lock = self._lock\n    before = entry.get_and_set(node)\n"),
         threads=True),
    _one(0, "entry-set-in-two-steps", "drawn:intrusive:1.2.0.0:3:add.0:add.0+add.0:", "T3 T5",
         Patch(IntrusiveTimer, "add", _add_exchanging_in_two_steps), threads=True),
    _one(88, "re-arm-no-wake", "drawn:reaper-intrusive:1.2.0.0:9,2:add.0:add.1+sleep.5:", "T2",
         Patch(Alarm, "ring", lambda self: None), threads=True),
    _one(88, "handle-no-wake", "drawn:reaper-intrusive:1.2.0.0:9,2:add.0:call_later.1+sleep.5:", "T2",
         Patch(Alarm, "ring", lambda self: None), threads=True),
    _one(58, "sleep-without-ticket", "drawn:reaper-intrusive:1.2.0.0:2::add.0+sleep.5:", "T2 P3",
         Patch(Alarm, "sleep", _sleep_without_ticket), threads=True),
)  # fmt: skip


@pytest.mark.parametrize("mutant", [*SEQUENTIAL, *INTERLEAVED], ids=lambda mutant: mutant.name)
def test_found_by_the_explorer(mutant: Mutant) -> None:
    """With its clause, by a program that the wheel itself passes."""
    assert hunt(mutant).killed


def fired(*program: tuple[int, int], until_ms: int, integer_handles: bool) -> list[int]:
    """The functions that a drain at `until_ms` fires. (moment, deadline) are calls to a wheel of 4 slots with a
    level of 16 slots above."""
    clock, executor = ManualClock(), QueuedExecutor()
    timer = IntrusiveTimer(
        "t", wheel_size=4, levels=1, integer_handles=integer_handles, clock=clock, executor=executor
    )
    ran: list[int] = []
    for start_ms, deadline_ms in program:
        clock.advance_to(start_ms)
        timer.advance_clock(0)
        timer.call_at(deadline_ms, partial(ran.append, deadline_ms))
    clock.advance_to(until_ms)
    timer.advance_clock(0)
    executor.run_all()
    return ran


@pytest.mark.parametrize("integer_handles", [True, False])
def test_the_clock_moves_after_the_buckets(*, integer_handles: bool) -> None:
    """#67, by the shortest program that shows it, which the search does not reach: 21 waits in the coarse bucket of
    16, 17 in the finest, and a drain at 18 meets both. By the new clock 21 belongs where 17 still is."""
    fired_at_18 = partial(fired, (0, 21), (14, 17), until_ms=18, integer_handles=integer_handles)
    assert fired_at_18() == [17]
    clock_first = edited(
        Wheel, "take_due", "dues: list[Due] = []", "dues = []; self._move_clock(now_tick)",
        "mixed.append((nodes, calls))", "dues += self._cascade([(nodes, calls)], now_tick)",
    )  # fmt: skip
    with patched([clock_first]):
        assert fired_at_18() == [17, 21]


def test_a_function_moves_to_the_level_of_its_distance() -> None:
    """By the shortest program, which the search finds or not by what else is imported: 29 leaves the coarse bucket at
    16, and in the finest it would lie in the slot of 17, a round ahead."""
    fired_at_17 = partial(fired, (3, 29), (16, 17), until_ms=17, integer_handles=True)
    assert fired_at_17() == [17]
    with patched([Patch(Wheel, "_link_call", _link_call_at_the_finest)]):
        assert fired_at_17() == []
