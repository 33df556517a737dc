"""Exhaustive depth-first search with dynamic partial-order reduction and sleep sets: one run of each class.

Flanagan and Godefroid, "Dynamic partial-order reduction for model checking software" (POPL 2005), with the source sets
of Abdulla, Aronsson, Jonsson and Sagonas, "Optimal dynamic partial order reduction" (POPL 2014). Every run is looked
through for *races*, two dependent steps of two tasks that nothing else orders; before the first of them the search
comes back to try the other order. Sleep sets keep it from trying what only swaps independent steps.

What was learnt of a prefix is kept on a stack and only the new steps of a run are looked at. "Happened before" is a bit
mask of earlier steps.

Complete for programs whose runs all end; marked loops are followed up to the program's bound of turns. Deadlocks and
what a judge sees at the end are found in full. What a judge reads from the *order* of recorded events of independent
steps is judged for one of the equivalent runs.
"""

import time
from collections.abc import Callable
from typing import Final

from purgatorio_stress.explorer.primitives import ControlledLock
from purgatorio_stress.explorer.program import Program, carry_out
from purgatorio_stress.explorer.result import Exploration, Found, Limits
from purgatorio_stress.explorer.run import CUT, END_OF_TASK, Run
from purgatorio_stress.explorer.schedule import preemptions_of
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, TIME
from purgatorio_stress.explorer.waiting import ControlledReadWriteLock

__all__ = ["Dpor", "explore_dpor"]

_WAITING_KINDS: Final = (READ, ACQUIRE)
"""Reads too: the read side of a reader-writer lock is taken by a step of this kind."""


class Dpor:
    """The stack of the search; a `Chooser`."""

    def __init__(self) -> None:
        self.chosen: list[int] = []
        self.enabled: list[int] = []
        self._sleep: list[int] = []
        self._backtrack: list[int] = []
        self._done: list[int] = []
        self._oid: list[int] = []
        self._kind: list[int] = []
        self._mask: list[int] = []
        self._before: list[dict[int, int] | int | None] = []
        self._access: dict[int, list[int]] = {}
        self._after_task: dict[int, int] = {}
        self._planned = -1

    def choose(self, run: Run, /) -> int:
        """See `Chooser`. The node at the end of the known schedule has been planned by `next_schedule`."""
        if run.in_vain >= 0:
            self._settle_try(run)
        depth = run.depth
        tasks = run.tasks
        if self._planned >= 0:
            index, self._planned = self._planned, -1
            self._commit(run, depth, index)
            return index
        enabled = 0
        for task in tasks:
            if not task.finished:
                gate = task.gate
                if gate is None or gate.is_open(task):
                    enabled |= 1 << task.index
        if not enabled:
            self._look_at_blocked(run, depth)
            self._push(0, 0)
            self._commit_time(depth)
            return TIME
        before = depth - 1
        maybe = self._sleep[before] | self._done[before] if depth else 0
        # Nobody is asleep, and nobody but the one who went was tried, nearly always.
        sleep = self._asleep(run, depth) if maybe & (maybe - 1) else 0
        awake = enabled & ~sleep
        if not awake:
            return CUT
        current = run.current.index
        index = current if awake >> current & 1 else (awake & -awake).bit_length() - 1
        self.enabled.append(enabled)
        self._sleep.append(sleep)
        self._backtrack.append(1 << index)
        self._done.append(1 << index)
        self._commit(run, depth, index)
        return index

    def after(self, run: Run) -> None:
        """A run has ended; where it was cut at a loop, what its tasks were about to do counts for races too."""
        if run.in_vain >= 0:
            self._settle_try(run)
        if run.stop.kind in ("turns", "livelock", "deadlock"):
            self._look_at_blocked(run, len(self.chosen))

    def next_schedule(self) -> list[int] | None:
        """Come back to the deepest node with something left to try; None where the search is complete."""
        for depth in range(len(self.chosen) - 1, -1, -1):
            left = self._backtrack[depth] & ~self._done[depth] & ~self._sleep[depth]
            if left:
                self._pop_to(depth)
                index = (left & -left).bit_length() - 1
                self._done[depth] |= 1 << index
                self._planned = index
                return self.chosen[:depth]
        return None

    def _settle_try(self, run: Run) -> None:
        """A `try_lock` that failed has only read."""
        self._kind[run.in_vain] = READ
        run.in_vain = -1

    def _asleep(self, run: Run, depth: int) -> int:
        """Of those asleep at the step before, and those tried there before it: who does not depend on that step."""
        before = depth - 1
        last = self.chosen[before]
        if last < 0:
            return 0
        asleep = (self._sleep[before] | self._done[before]) & ~(1 << last)
        if not asleep:
            return 0
        oid, kind = self._oid[before], self._kind[before]
        tasks = run.tasks
        kept = 0
        while asleep:
            bit = asleep & -asleep
            task = tasks[bit.bit_length() - 1]
            if task.obj != oid or (task.kind == READ and kind == READ):
                kept |= bit
            asleep ^= bit
        return kept

    def _push(self, enabled: int, sleep: int) -> None:
        self.enabled.append(enabled)
        self._sleep.append(sleep)
        self._backtrack.append(0)
        self._done.append(0)

    def _commit(self, run: Run, depth: int, index: int) -> None:
        """The step of task `index` at `depth`: its races, and what happened before it."""
        task = run.tasks[index]
        oid, kind = task.obj, task.kind
        known = self._after_task.get(index)
        mask = self._born(task.born) if known is None else known
        accesses = self._access.get(oid)
        if accesses is None:
            self._access[oid] = [depth]
        else:
            mask = self._races(run, index, depth, accesses, kind, mask, oid)
            accesses.append(depth)
        mask |= 1 << depth
        self.chosen.append(index)
        self._oid.append(oid)
        self._kind.append(kind)
        self._mask.append(mask)
        self._before.append(known)
        self._after_task[index] = mask

    def _born(self, at: int) -> int:
        return self._mask[at] if 0 <= at < len(self._mask) else 0

    def _races(
        self, run: Run, index: int, depth: int, accesses: list[int], kind: int, mask: int, oid: int
    ) -> int:
        """Note the races of this step with earlier ones; returns the mask with what it depends on."""
        kinds, chosen = self._kind, self.chosen
        if kind in _WAITING_KINDS:
            # Neither is enabled before a RELEASE that it waits for: the race is with what that one gives back.
            own = mask
            if oid <= END_OF_TASK:
                mask |= self._after_task.get(END_OF_TASK - oid, 0)
            joined = False
            for at in reversed(accesses):
                other = kinds[at]
                if other == READ:
                    if kind == ACQUIRE and not joined:
                        mask |= self._mask[at]
                    continue
                if not joined:
                    mask |= self._mask[at]
                    joined = True
                if other == RELEASE or (kind == READ and other == ACQUIRE):
                    # (A reader is kept out by the writer's arrival, not by its entry.)
                    continue
                if not own >> at & 1 and chosen[at] != index:
                    self._race(run, at, index, depth, own)
                break
            return mask
        for at in reversed(accesses):
            if not mask >> at & 1:
                if chosen[at] != index:
                    self._race(run, at, index, depth, mask)
                mask |= self._mask[at]
            if kinds[at] != READ:
                break
        return mask

    def _race(self, run: Run, at: int, index: int, depth: int, mask: int) -> None:
        """Before step `at`, somebody who starts the other order must be tried: an initial of the steps that did not
        happen after it, followed by this one."""
        initials = 1 << index
        if len(run.tasks) > 3:
            masks, chosen = self._mask, self.chosen
            initials = seen = behind = 0
            for step in range(at + 1, depth):
                if masks[step] >> at & 1 or chosen[step] < 0:
                    continue
                bit = 1 << chosen[step]
                if not seen & bit:
                    seen |= bit
                    if not masks[step] & behind:
                        initials |= bit
                behind |= 1 << step
            if not seen >> index & 1 and not mask & behind:
                initials |= 1 << index
        if initials & self._backtrack[at]:
            return
        usable = initials & self.enabled[at]
        if usable:
            self._backtrack[at] |= 1 << index if usable >> index & 1 else usable & -usable
        else:
            self._backtrack[at] |= self.enabled[at]

    def _look_at_blocked(self, run: Run, depth: int) -> None:
        """Tasks that will not make their next step in this run may make it in another: its races count too."""
        for task in run.tasks:
            waits_for_lock = isinstance(task.gate, ControlledLock | ControlledReadWriteLock)
            if task.finished or not (waits_for_lock or task.gate is None):
                continue
            accesses = self._access.get(task.obj)
            if accesses is not None:
                mask = self._after_task.get(task.index, 0)
                self._races(run, task.index, depth, accesses, task.kind, mask, task.obj)

    def _commit_time(self, depth: int) -> None:
        """Time passes: after all that was, before all that comes."""
        mask = (1 << (depth + 1)) - 1
        self.chosen.append(TIME)
        self._oid.append(-1)
        self._kind.append(READ)
        self._mask.append(mask)
        self._before.append(dict(self._after_task))
        for index in self._after_task:
            self._after_task[index] = mask

    def _pop_to(self, depth: int) -> None:
        """Forget the steps from `depth` on, but keep the node there."""
        for at in range(len(self.chosen) - 1, depth - 1, -1):
            index, before = self.chosen[at], self._before[at]
            if isinstance(before, dict):
                self._after_task = before
                continue
            if before is None:
                del self._after_task[index]
            else:
                self._after_task[index] = before
            self._access[self._oid[at]].pop()
        for column in (self.chosen, self._oid, self._kind, self._mask):
            del column[depth:]
        del self._before[depth:]
        for column in (self.enabled, self._sleep, self._backtrack, self._done):
            del column[depth + 1 :]


def explore_dpor(
    program: Program, limits: Limits, on_run: Callable[[Exploration], None] | None = None
) -> Exploration:
    """Explore completely, or up to the limits."""
    result = Exploration("dpor", f"all classes of interleavings, marked loops up to {program.turns} turns")
    search = Dpor()
    start, start_cpu = time.perf_counter(), time.process_time()
    schedule: list[int] | None = []
    while schedule is not None:
        if result.schedules >= limits.schedules:
            result.limit = f"{limits.schedules} schedules"
            break
        if result.schedules & 63 == 63 and time.perf_counter() - start > limits.seconds:
            result.limit = f"{limits.seconds:g} s"
            break
        run, broken = carry_out(program, search, schedule, orders=result.orders)
        search.after(run)
        result.schedules += 1
        result.steps += run.depth
        if run.stop.kind == "cut":
            result.redundant += 1
        elif run.stop.kind == "turns":
            result.beyond += 1
        if broken:
            whole = tuple(search.chosen)
            result.found.append(
                Found(tuple(broken), whole, preemptions_of(whole, search.enabled), result.schedules)
            )
            if limits.violations and len(result.found) >= limits.violations:
                result.limit = "stopped at a violation"
                break
        if on_run is not None:
            on_run(result)
        schedule = search.next_schedule()
    result.complete = schedule is None
    result.seconds = time.perf_counter() - start
    result.cpu_seconds = time.process_time() - start_cpu
    return result
