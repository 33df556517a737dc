"""A model of the hierarchical timing wheel: levels, buckets, a delay queue, and a clock with few values.

A task is (deadline, level, slot). Equal tasks are interchangeable, so a state has a sorted list of tasks. The clock
moves by whole ticks only. This covers all times, because the wheel uses only the current tick and the deadlines: a
delay x at the time (start of the tick + r) acts like a delay (x + r) at the start of the tick.

Cancels and other drains may come between two flushes of a drain. Adds and drains exclude each other (the timer's
read-write lock). The module `race` models races inside a flush.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

Task = tuple[int, int, int]  # deadline, level, slot
Queued = tuple[int, int, int]  # expiration, level, slot; expiration NEVER: used before, not queued
NEVER = -1


class Flaw(Enum):
    """Known bugs, by their numbers in `purgatorio_spec.known_bugs`. `NONE` is the correct wheel."""

    NONE = 0
    FIRST_ONLY = 56
    NO_REOFFER = 61
    NO_OVERFLOW_ADVANCE = 63
    FIRE_ON_FLUSH = 64
    CURRENT_TICK_OFF_BY_ONE = 65
    INTERVAL_INCLUSIVE = 66
    ADVANCE_TO_NOW = 67
    RELATIVE_SLOT = 69
    DEADLINE_FROM_CURSOR = 70
    CANCEL_KEEPS_ENTRY = 83


class Kind(Enum):
    """The kind of an action; an action is the pair (kind, index) packed as index * 8 + kind."""

    ADD = 0
    CANCEL = 1
    CLOCK = 2
    DRAIN = 3
    FLUSH = 4
    DRAINED = 5


# Plain integers, because to read an enum's value costs more than an action.
_ADD, _CANCEL, _CLOCK, _DRAIN, _FLUSH, _DRAINED = (kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class WheelCase:
    """The bound of the model: tick, size and start of the wheel, the delays, the number of tasks, and the number of
    ticks."""

    tick: int
    size: int
    start: int
    delays: tuple[int, ...]
    tasks: int
    ticks: int
    cancels: bool = True
    flaw: Flaw = Flaw.NONE

    @property
    def bound(self) -> str:
        delays = ",".join(str(delay) for delay in self.delays)
        return (
            f"tick {self.tick}, size {self.size}, start {self.start}, {self.tasks} tasks, delays {delays}, "
            f"{self.ticks} ticks{', cancels' * self.cancels}"
        )


class WheelState(NamedTuple):
    """`clocks` has one entry a level; `fired_tick`: the tick of the last task that this drain fired (NEVER: none)."""

    now: int
    draining: bool
    left: int
    clocks: tuple[int, ...]
    tasks: tuple[Task, ...]
    queue: tuple[Queued, ...]
    fired_tick: int


def initial(world: WheelCase) -> WheelState:
    """An empty wheel of one level. Its clock is the start time, rounded down to the tick."""
    floor = world.start - world.start % world.tick
    return WheelState(world.start, False, world.tasks, (floor,), (), (), NEVER)


def steps(world: WheelCase, state: WheelState) -> list[tuple[int, WheelState]]:
    found: list[tuple[int, WheelState]] = []
    if state.draining:
        found += _flushes(world, state)
    else:
        found.append((_DRAIN, state._replace(draining=True, fired_tick=NEVER)))
        if state.now < world.start + world.ticks * world.tick:
            found.append((_CLOCK, state._replace(now=state.now + world.tick)))
        if state.left:
            for index, delay in enumerate(world.delays):
                found.append((index * 8 + _ADD, _add(world, state, delay)))
    if world.cancels:
        found += _cancels(world, state)
    return found


def _add(world: WheelCase, state: WheelState, delay: int) -> WheelState:
    base = state.clocks[0] if world.flaw is Flaw.DEADLINE_FROM_CURSOR else state.now
    wheel = ModelWheel(world, state)
    wheel.insert(base + delay)
    return wheel.state(state.now, False, state.left - 1, NEVER)


def _cancels(world: WheelCase, state: WheelState) -> list[tuple[int, WheelState]]:
    found = []
    previous = None
    for index, task in enumerate(state.tasks):
        if task == previous:
            continue
        previous = task
        rest = state.tasks[:index] + state.tasks[index + 1 :]
        kept = state.tasks if world.flaw is Flaw.CANCEL_KEEPS_ENTRY else rest
        found.append((index * 8 + _CANCEL, state._replace(tasks=kept)))
    return found


def _flushes(world: WheelCase, state: WheelState) -> list[tuple[int, WheelState]]:
    """Poll one of the buckets with the earliest due expiration. If no bucket is due, the drain ends."""
    first = min((expiration for expiration, _, _ in state.queue if expiration != NEVER), default=None)
    if first is None or first > state.now:
        return [(_DRAINED, state._replace(draining=False, fired_tick=NEVER))]
    found = []
    for index, (expiration, level, slot) in enumerate(state.queue):
        if expiration == first:
            wheel = ModelWheel(world, state)
            fired_tick = wheel.flush(expiration, level, slot, state)
            found.append((index * 8 + _FLUSH, wheel.state(state.now, True, state.left, fired_tick)))
    return found


class ModelWheel:
    def __init__(self, world: WheelCase, state: WheelState) -> None:
        self.world = world
        self.clocks = list(state.clocks)
        self.tasks = list(state.tasks)
        self.queue = list(state.queue)
        self.fired: list[int] = []

    def state(self, now: int, draining: bool, left: int, fired_tick: int) -> WheelState:
        tasks, queue = tuple(sorted(self.tasks)), tuple(sorted(self.queue))
        return WheelState(now, draining, left, tuple(self.clocks), tasks, queue, fired_tick)

    def insert(self, deadline: int) -> None:
        """Insert the task into the lowest level that can hold its deadline, or fire it. Creates levels if necessary."""
        world, tick = self.world, self.world.tick
        late = tick if world.flaw is Flaw.CURRENT_TICK_OFF_BY_ONE else 0
        if deadline < self.clocks[0] + tick + late:
            self.fired.append(deadline)
            return
        level = 0
        while not self._reaches(level, tick, deadline):
            level += 1
            tick *= world.size
            if level == len(self.clocks):
                self.clocks.append(self.clocks[-1] - self.clocks[-1] % tick)
        virtual = deadline // tick
        if world.flaw is Flaw.RELATIVE_SLOT:
            virtual = (deadline - self.clocks[level]) // tick
        slot = virtual % world.size
        self.tasks.append((deadline, level, slot))
        self._offer(deadline - deadline % tick, level, slot)

    def _reaches(self, level: int, tick: int, deadline: int) -> bool:
        end = self.clocks[level] + tick * self.world.size
        return deadline <= end if self.world.flaw is Flaw.INTERVAL_INCLUSIVE else deadline < end

    def _offer(self, expiration: int, level: int, slot: int) -> None:
        for index, (_, queued_level, queued_slot) in enumerate(self.queue):
            if (queued_level, queued_slot) == (level, slot):
                if self.queue[index][0] != NEVER:
                    self.queue[index] = (expiration, level, slot)
                return
        self.queue.append((expiration, level, slot))

    def flush(self, expiration: int, level: int, slot: int, before: WheelState) -> int:
        """Advance the clocks, empty the bucket, and insert its tasks again. Returns the last fired tick."""
        world = self.world
        self._advance(before.now if world.flaw is Flaw.ADVANCE_TO_NOW else expiration)
        self.queue.remove((expiration, level, slot))
        if world.flaw is Flaw.NO_REOFFER:
            self.queue.append((NEVER, level, slot))
        moved = [task for task in self.tasks if task[1:] == (level, slot)]
        self.tasks = [task for task in self.tasks if task[1:] != (level, slot)]
        if world.flaw is Flaw.FIRST_ONLY:
            self.tasks += moved[1:]
            moved = moved[:1]
        for deadline, _, _ in moved:
            if world.flaw is Flaw.FIRE_ON_FLUSH:
                self.fired.append(deadline)
            else:
                self.insert(deadline)
        return max((deadline // world.tick for deadline in self.fired), default=before.fired_tick)

    def _advance(self, time: int) -> None:
        tick = self.world.tick
        for level, clock in enumerate(self.clocks):
            if time < clock + tick or (level and self.world.flaw is Flaw.NO_OVERFLOW_ADVANCE):
                return
            self.clocks[level] = time - time % tick
            tick *= self.world.size
