"""The claim about the wheel: the simplest timer (a set of deadlines) allows each transition of the wheel, and the
wheel's invariants hold."""

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar

from purgatorio_spec.known_bugs import bug_name
from purgatorio_spec.model.shape import Model, Move
from purgatorio_spec.model.wheel import NEVER, Flaw, Kind, WheelCase, WheelState, initial, steps
from purgatorio_spec.oracle.timer_set import Deadlines, added, due_at, overdue, removed

S = TypeVar("S", bound=Hashable)

REFINES = "T1-T4 refines the set of deadlines"
IN_ORDER = "T6 within a drain no tick is fired after a later one"
ONE_TICK = "no bucket holds two ticks, and each is queued for the start of its tick"
FLOORS = "every overflow clock is the floor of the clock below"
MONOTONE = "no clock goes back"
CASCADES = "T7 a flush moves tasks to strictly lower levels"

_ADD, _CANCEL, _CLOCK, _DRAIN, _FLUSH = (
    kind.value for kind in (Kind.ADD, Kind.CANCEL, Kind.CLOCK, Kind.DRAIN, Kind.FLUSH)
)


def abstract(state: WheelState) -> Deadlines:
    """The abstraction function: the set of deadlines, without levels, buckets and the queue."""
    return Deadlines(state.now, tuple([task[0] for task in state.tasks]))


@lru_cache(maxsize=1 << 17)
def _less(more: tuple[S, ...], fewer: tuple[S, ...]) -> tuple[S, ...]:
    """Multiset difference. Cached, because the same few sets come again and again."""
    return tuple((Counter(more) - Counter(fewer)).elements())


def refinement(world: WheelCase) -> Model[WheelState]:
    """The model of the wheel `world`. Its properties are the refinement and the invariants."""

    def refines(before: WheelState, action: int, after: WheelState) -> bool:
        kind, index = action & 7, action >> 3
        if kind in (_CLOCK, _DRAIN):
            return after.tasks == before.tasks and after.now >= before.now
        was, now = abstract(before), abstract(after)
        if kind == _ADD:
            deadline = before.now + world.delays[index]
            return now == added(was, deadline) or (now == was and due_at(deadline, world.tick) <= was.now)
        if kind == _CANCEL:
            return now == removed(was, before.tasks[index][0])
        if kind == _FLUSH:
            fired, invented = _less(was.pending, now.pending), _less(now.pending, was.pending)
            return not invented and all(due_at(deadline, world.tick) <= was.now for deadline in fired)
        return now == was and not overdue(now, world.tick)

    def in_order(before: WheelState, action: int, after: WheelState) -> bool:
        if action & 7 != _FLUSH or before.fired_tick == NEVER:
            return True
        fired = _less(abstract(before).pending, abstract(after).pending)
        return all(deadline // world.tick >= before.fired_tick for deadline in fired)

    def monotone(before: WheelState, action: int, after: WheelState) -> bool:
        if after.clocks is before.clocks:
            return True
        return all(old <= new for old, new in zip(before.clocks, after.clocks, strict=False))

    def cascades(before: WheelState, action: int, after: WheelState) -> bool:
        if action & 7 != _FLUSH:
            return True
        _, level, slot = before.queue[action >> 3]
        if any(task[1:] == (level, slot) for task in after.tasks):
            return False
        return all(task[1] < level for task in _less(after.tasks, before.tasks))

    def one_tick(state: WheelState) -> bool:
        due = {(level, slot): expiration for expiration, level, slot in state.queue}
        return all(
            due.get((level, slot)) == deadline - deadline % (world.tick * world.size**level)
            for deadline, level, slot in state.tasks
        )

    def floors(state: WheelState) -> bool:
        tick = world.tick
        for lower, upper in zip(state.clocks, state.clocks[1:], strict=False):
            tick *= world.size
            if upper != lower - lower % tick:
                return False
        return True

    return Model(
        name="wheel" if world.flaw is Flaw.NONE else f"wheel ({bug_name(world.flaw.value)})",
        bound=world.bound,
        columns=("caller", "clock", "drain"),
        initial=(initial(world),),
        steps=lambda state: steps(world, state),
        describe=lambda before, action, after: describe(world, before, action, after),
        done=lambda state: True,
        always={ONE_TICK: one_tick, FLOORS: floors},
        always_step={REFINES: refines, IN_ORDER: in_order, MONOTONE: monotone, CASCADES: cascades},
        sometimes={
            "a task lies in the third level": lambda state: any(level == 2 for _, level, _ in state.tasks),
            "two buckets are due at once": lambda state: (
                len(state.queue) > 1 and state.queue[0][0] == state.queue[1][0] <= state.now
            ),
            "a drain has fired and its clock is still behind the time": lambda state: (
                state.draining and state.fired_tick != NEVER and state.clocks[0] + world.tick <= state.now
            ),
            "the clock lags behind the time": lambda state: state.clocks[0] + world.tick < state.now,
        },
    )


def describe(world: WheelCase, before: WheelState, action: int, after: WheelState) -> Move:
    kind, index = Kind(action & 7), action >> 3
    if kind is Kind.CLOCK:
        return Move("clock", f"the time is {after.now}")
    if kind is Kind.CANCEL:
        return Move("caller", f"cancel the task with deadline {before.tasks[index][0]}")
    if kind is Kind.DRAIN:
        return Move("drain", f"drain starts at {before.now}")
    if kind is Kind.DRAINED:
        late = overdue(abstract(after), world.tick)
        return Move("drain", "drain ends" + (f", overdue: {list(late)}" if late else ""))
    moved = Counter(after.tasks) - Counter(before.tasks)
    places = "".join(f", {d} to level {level} bucket {slot}" for d, level, slot in sorted(moved))
    if kind is Kind.ADD:
        deadline = before.now + world.delays[index]
        return Move(
            "caller", f"add delay {world.delays[index]} (deadline {deadline}){places or ', fires at once'}"
        )
    expiration, level, slot = before.queue[index]
    gone = Counter(abstract(before).pending) - Counter(abstract(after).pending)
    fired = f", fires {sorted(gone.elements())}" if gone else ""
    return Move("drain", f"flush level {level} bucket {slot} (due {expiration}){fired}{places}")
