"""Bugs put into the wheel for use: each must be found, by a program of one thread or by the explorer.

The numbers are those of the list of bugs (docs/kill-matrix.md), where the bug is one of them: the same mistakes can be
made in this structure. The stateful hunt goes by the contract alone, without the timer's own `check()`.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import Final

import pytest

from purgatorio import ManualClock, QueuedExecutor, TimerTask
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.intrusive import wheel
from purgatorio.timer.intrusive.node import NOWHERE, Callback, Node
from purgatorio.timer.intrusive.timer import Alarm, TaskNode
from purgatorio.timer.intrusive.wheel import HANDLE_BITS, NO_CALLS, Calls, Due, Level, Wheel
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.kill_matrix.hunt import HUNT, hunt
from purgatorio_stress.mutant.patch import Mutant, Patch
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_stress.stateful.registry import SEARCHES

EXAMPLES: Final = 60
MOST: Final = 5_000
"""For bugs: a search ends at the first that it finds. Which examples are drawn depends on what else is imported, for
Hypothesis tries constants that it sees there."""


def _cancel_nothing(self: Wheel, node: Node) -> bool:
    """It stays where it is."""
    return True


def _cancel_counts_twice(self: Wheel, node: Node) -> bool:
    waited = _UNLINK(self, node)
    self._linked -= 1
    return waited


_UNLINK: Final = Wheel.unlink


def _add_pointing_before_it_locks(self: IntrusiveTimer, task: TimerTask) -> None:
    node = TaskNode((self._now_ms() + task.delay_ms) // self.tick_ms, task, self)
    task.set_entry(node)
    with self._lock:
        self._wheel.link(node)


def _add_exchanging_in_two_steps(self: IntrusiveTimer, task: TimerTask) -> None:
    node = TaskNode((self._now_ms() + task.delay_ms) // self.tick_ms, task, self)
    with self._lock:
        self._wheel.link(node)
    before = task._entry.get()
    task._entry.set(node)
    if before is not None:
        before.remove()


def _limit_inclusive(self: Level, now: int, floor: int) -> int:
    self.floor = floor
    self.limit = ((now >> self.shift) + self.size + 1) << self.shift
    return self.limit


def _take_due(
    wheel: Wheel, now_tick: int, *, cascade: bool = True, ready: bool = True, clock_first: bool = False
) -> list[Due] | None:
    """`Wheel.take_due` with one thing wrong."""
    due: list[Node] = []
    calls: Calls = {}
    mixed: list[Node] = []
    mixed_calls: Calls = {}
    heap = wheel._heap
    if now_tick < wheel._now_tick or not heap or heap[0][0] > now_tick:
        return _TAKE_DUE(wheel, now_tick)
    if clock_first:
        wheel._heap = []
        wheel._move_clock(now_tick)
        wheel._heap = heap
    while heap and heap[0][0] <= now_tick:
        _, rank, bucket = heapq.heappop(heap)
        nodes, numbered = bucket.emptied()
        wheel._linked -= len(nodes)
        (calls if rank == 1 or not cascade else mixed_calls).update(numbered)
        (due if rank == 1 or not cascade else mixed).extend(nodes)
        bucket.queued = not ready
        if clock_first:
            _sort_out(wheel, now_tick, mixed, mixed_calls, due, calls)
    wheel._move_clock(now_tick)
    _sort_out(wheel, now_tick, mixed, mixed_calls, due, calls)
    for node in due:
        node.previous = node.next = NOWHERE
    ticks = sorted({node.tick for node in due} | {handle >> HANDLE_BITS for handle in calls})
    return [
        (
            tick,
            [node for node in due if node.tick == tick],
            {handle: call for handle, call in calls.items() if handle >> HANDLE_BITS == tick},
        )
        for tick in ticks
    ]


_TAKE_DUE: Final = Wheel.take_due


def _sort_out(
    wheel: Wheel, now_tick: int, mixed: list[Node], mixed_calls: Calls, due: list[Node], calls: Calls
) -> None:
    for node in mixed:
        if node.tick <= now_tick:
            due.append(node)
        else:
            wheel.link(node)
    for handle, call in mixed_calls.items():
        if handle >> HANDLE_BITS <= now_tick:
            calls[handle] = call
        else:
            wheel._link_call(handle, handle >> HANDLE_BITS, call)
    mixed.clear()
    mixed_calls.clear()


def _without_cascade(self: Wheel, now_tick: int) -> list[Due] | None:
    return _take_due(self, now_tick, cascade=False)


def _never_offered_again(self: Wheel, now_tick: int) -> list[Due] | None:
    return _take_due(self, now_tick, ready=False)


def _clock_before_buckets(self: Wheel, now_tick: int) -> list[Due] | None:
    """What is not due goes by the new clock into a slot where an older tick still waits."""
    return _take_due(self, now_tick, clock_first=True)


def _nothing_wrong(self: Wheel, now_tick: int) -> list[Due] | None:
    return _take_due(self, now_tick)


def _found_nowhere(self: Wheel, handle: int) -> Callback | None:
    """Only the level that the timer looks at itself is looked at."""
    return None


def _link_call_at_the_finest(self: Wheel, handle: int, tick: int, callback: Callback) -> None:
    """Moved to the slot of the finest level, though it may lie a round ahead."""
    level = self._levels[1]
    bucket = level.buckets[tick & level.mask]
    if not bucket.queued:
        self._offer(bucket, level, tick)
    bucket.calls = {**bucket.calls, handle: callback}


def _link_call_unheard(self: Wheel, handle: int, tick: int, callback: Callback) -> None:
    """The bucket holds something, and the heap does not have it."""
    level = self._level_of(tick)
    bucket = level.buckets[tick >> level.shift & level.mask]
    bucket.calls = {**bucket.calls, handle: callback}


def _compact_to_nothing(self: Wheel, now_tick: int) -> None:
    """What was to be copied is dropped."""
    for _, _, bucket in self._heap:
        bucket.calls = NO_CALLS


def _calls_unseen(self: Wheel) -> int:
    return self._linked


def _cascade_late(self: Wheel, mixed: list[tuple[list[Node], Calls]], now_tick: int) -> list[Due]:
    """All that is late at one tick."""
    late = _CASCADE(self, mixed, now_tick)
    calls = {handle: call for _, _, numbered in late for handle, call in numbered.items()}
    return [(now_tick, [node for _, nodes, _ in late for node in nodes], calls)]


_CASCADE: Final = Wheel._cascade


def _ring_nobody(self: Alarm) -> None:
    """Nobody hears it."""


def _sleep_without_ticket(self: Alarm, wait_ms: int, ticket: int) -> bool:
    with self._lock:
        return self._rung.wait(wait_ms)


def _one(
    number: int, name: str, scenario: str, clauses: str, *patches: Patch, threads: bool = False
) -> Mutant:
    return Mutant(number, name, "", "", scenario, tuple(clauses.split()), patches, interleaving=threads)


SEQUENTIAL: Final = (
    _one(83, "cancel-flag-only", "", "", Patch(Wheel, "unlink", _cancel_nothing)),
    _one(84, "cancel-double-decrement", "", "", Patch(Wheel, "unlink", _cancel_counts_twice)),
    _one(66, "interval-inclusive", "", "", Patch(Level, "move_to", _limit_inclusive)),
    _one(64, "no-cascade", "", "", Patch(Wheel, "take_due", _without_cascade)),
    _one(61, "no-reoffer-on-reuse", "", "", Patch(Wheel, "take_due", _never_offered_again)),
    _one(0, "unsorted-drain", "", "", Patch(wheel, "_tick_of", lambda due: 0)),
)

CALLS: Final = (
    _one(84, "handle-pops-nothing", "", "", Patch(Wheel, "pop", _found_nowhere)),
    _one(61, "handle-not-offered", "", "", Patch(Wheel, "_link_call", _link_call_unheard)),
    _one(64, "handle-compacted-away", "", "", Patch(Wheel, "_compact", _compact_to_nothing)),
    _one(0, "handle-not-counted", "", "", Patch(Wheel, "size", _calls_unseen)),
    _one(0, "handle-late-unsorted", "", "", Patch(Wheel, "_cascade", _cascade_late)),
    _one(66, "handle-interval-inclusive", "", "", Patch(Level, "move_to", _limit_inclusive)),
    _one(64, "handle-no-cascade", "", "", Patch(Wheel, "take_due", _without_cascade)),
)
"""Of functions under integer handles."""

INTERLEAVED: Final = (
    _one(0, "pointed-at-before-the-lock", "intrusive-cancel-against-add", "T5",
         Patch(IntrusiveTimer, "add", _add_pointing_before_it_locks), threads=True),
    _one(0, "entry-set-in-two-steps", "intrusive-moved-twice", "T3 T5",
         Patch(IntrusiveTimer, "add", _add_exchanging_in_two_steps), threads=True),
    _one(88, "re-arm-no-wake", "intrusive-earlier-against-sleep", "T2",
         Patch(Alarm, "ring", _ring_nobody), threads=True),
    _one(88, "handle-no-wake", "intrusive-call-against-sleep", "T2",
         Patch(Alarm, "ring", _ring_nobody), threads=True),
    _one(58, "sleep-without-ticket", "intrusive-add-against-sleep", "T2 P3",
         Patch(Alarm, "sleep", _sleep_without_ticket), threads=True),
)  # fmt: skip


def found_by_the_stateful_test(mutant: Mutant, search: str = "intrusive-timer", examples: int = MOST) -> bool:
    """By the search of `purgatorio_stress.stateful` for this timer."""
    with mutant.applied():
        return SEARCHES[search].hunt(examples) is not None


@pytest.mark.parametrize("mutant", SEQUENTIAL, ids=lambda mutant: mutant.name)
def test_found_by_the_contract_alone(mutant: Mutant) -> None:
    """The twin of `TestIntrusiveTimer`."""
    assert found_by_the_stateful_test(mutant)


@pytest.mark.parametrize("mutant", CALLS, ids=lambda mutant: mutant.name)
def test_found_by_the_contract_alone_in_functions(mutant: Mutant) -> None:
    """The twin of `TestIntrusiveTimerCalls`."""
    assert found_by_the_stateful_test(mutant, "intrusive-calls")


@pytest.mark.parametrize("mutant", INTERLEAVED, ids=lambda mutant: mutant.name)
def test_found_by_the_explorer(mutant: Mutant) -> None:
    """With its clause, in the scenario that the wheel itself passes."""
    assert hunt(mutant).killed
    assert not explore_bounded(ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect), HUNT).found


def test_the_copy_itself_is_right() -> None:
    """What the mutants of `take_due` are made from, with nothing wrong in it."""
    nothing = _one(0, "nothing", "", "", Patch(Wheel, "take_due", _nothing_wrong))
    assert not found_by_the_stateful_test(nothing, examples=EXAMPLES)
    assert not found_by_the_stateful_test(nothing, "intrusive-calls", EXAMPLES)


def fired(*program: tuple[int, int], until_ms: int, integer_handles: bool) -> list[int]:
    """What a drain at `until_ms` fires: (moment, deadline) are calls to a wheel of 4 slots and a level of 16 above."""
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
    with _one(67, "advance-to-now", "", "", Patch(Wheel, "take_due", _clock_before_buckets)).applied():
        assert fired_at_18() == [17, 21]


def test_a_function_moves_to_the_level_of_its_distance() -> None:
    """By the shortest program, which the search finds or not by what else is imported: 29 leaves the coarse bucket at
    16, and in the finest it would lie in the slot of 17, a round ahead."""
    fired_at_17 = partial(fired, (3, 29), (16, 17), until_ms=17, integer_handles=True)
    assert fired_at_17() == [17]
    with _one(
        67, "handle-by-the-finest", "", "", Patch(Wheel, "_link_call", _link_call_at_the_finest)
    ).applied():
        assert fired_at_17() == []
