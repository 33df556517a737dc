"""DPOR (dynamic partial-order reduction) with sleep sets: a complete search that runs only one of several equivalent
interleavings.

Sources: Flanagan and Godefroid, "Dynamic partial-order reduction for model checking software" (POPL 2005), and the
source sets of Abdulla, Aronsson, Jonsson and Sagonas, "Optimal dynamic partial order reduction" (POPL 2014).

Two steps of different tasks (threads) are a *race* if the result may depend on their order, and no other steps force
this order. For each race of a run, the search returns to the state before the earlier step, and tries the other order.
Sleep sets avoid runs that only swap independent steps.

Two consecutive runs share a prefix, whose races are known. So in each run the search looks only for races whose later
step comes after the prefix. For each step, a bit mask has the earlier steps that happen before it.

The search is complete if every run ends. If a loop waits for another thread, the program must call `loop_head` in each
iteration, and a run ends after `Program.turns` iterations. The search finds all deadlocks, and all violations that are
visible at the end of a run. It may miss a violation that is visible only in the order of the recorded events:
equivalent runs may differ in this order, and only one of them is judged.
"""

from heapq import heappop, heappush
from typing import Final

from purgatorio_stress.explorer.primitives import ControlledLock
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.run import CUT, Execution
from purgatorio_stress.explorer.schedule import preemptions_of
from purgatorio_stress.explorer.search import explore_by
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, TIME
from purgatorio_stress.explorer.waiting import ControlledReadWriteLock

_WAITING_KINDS: Final = (READ, ACQUIRE)
"""READ is included, because a READ step acquires the read side of a reader-writer lock."""

_IN_VAIN: Final = 5
"""The kind of a failed TRY, until the search has found its races."""


class Dpor:
    """The stack of the search; a `Chooser`. A run appends its steps to the stack. After the run, the search finds the
    races of these steps."""

    def __init__(self) -> None:
        self.chosen: list[int] = []
        self.enabled: list[int] = []
        self._sleep: list[int] = []
        self._backtrack: list[int] = []
        self._done: list[int] = []
        self._oid: list[int] = []
        self._kind: list[int] = []
        self._mask: list[int] = []
        self._undo: list[tuple[int, int | None, list[int]]] = []
        self._before_wakes: dict[int, dict[int, int]] = {}
        self._access: dict[int, list[int]] = {}
        self._after_task: dict[int, int] = {}
        self._open: list[int] = []
        self._planned = -1

    def choose(self, run: Execution, /) -> int:
        """See `Chooser`. `next_schedule` has planned the choice at the end of the known schedule."""
        if run.block_oids:
            self._add_block(run)
        if run.in_vain:
            self._settle_tries(run)
        if self._planned >= 0:
            index, self._planned = self._planned, -1
        else:
            enabled = gated = 0
            for task in run.tasks:
                if not task.finished:
                    awaited = task.awaited
                    if awaited is None:
                        enabled |= task.bit
                    else:
                        gated |= task.bit
                        if awaited.is_open(task):
                            enabled |= task.bit
            if not enabled:
                return self._let_time_pass(run)
            depth = run.depth
            before = depth - 1
            maybe = self._sleep[before] | self._done[before] if depth else 0
            # Usually `maybe` has one bit, of the task that made the last step: no task sleeps, no other was tried.
            sleep = self._asleep(run, depth) if maybe & (maybe - 1) else 0
            awake = enabled & ~sleep
            if not awake:
                return CUT
            chosen = run.current
            if not awake & chosen.bit:
                chosen = run.tasks[(awake & -awake).bit_length() - 1]
            index = chosen.index
            self.enabled.append(enabled)
            self._sleep.append(sleep)
            self._backtrack.append(chosen.bit)
            self._done.append(chosen.bit)
            if sleep:
                sleeper = run.tasks[sleep.bit_length() - 1].obj if sleep & (sleep - 1) == 0 else chosen.obj
                run.wary = sleeper
                run.free = sleeper != chosen.obj and not gated & ~chosen.bit
            else:
                run.wary = 0
                run.free = not gated & ~chosen.bit
        task = run.tasks[index]
        self.chosen.append(index)
        self._oid.append(task.obj)
        self._kind.append(task.kind)
        return index

    def after(self, run: Execution, /) -> None:
        """Find the races of a run that has ended. If a bound or a deadlock ended it, the pending steps count too."""
        if run.block_oids:
            self._add_block(run)
        if run.in_vain:
            self._settle_tries(run)
        self._learn(run)
        if run.stop.kind in ("turns", "livelock", "deadlock", "steps"):
            self._look_at_blocked(run, len(self.chosen))

    def preemptions(self) -> int:
        return preemptions_of(self.chosen, self.enabled)

    def next_schedule(self) -> list[int] | None:
        """Return to the deepest node with an untried choice. See `Search`."""
        while self._open:
            depth = -self._open[0]
            if depth < len(self.chosen):
                left = self._backtrack[depth] & ~self._done[depth] & ~self._sleep[depth]
                if left:
                    self._pop_to(depth)
                    first = left & -left
                    self._done[depth] |= first
                    self._planned = first.bit_length() - 1
                    return self.chosen[:depth]
            heappop(self._open)
        return None

    def _add_block(self, run: Execution) -> None:
        """Append the steps that one task made without a choice. The enabled and the sleeping tasks stayed the same."""
        count = len(run.block_oids)
        index = self.chosen[-1]
        self.chosen += [index] * count
        self.enabled += [self.enabled[-1]] * count
        self._sleep += [self._sleep[-1]] * count
        self._backtrack += [1 << index] * count
        self._done += [1 << index] * count
        self._oid += run.block_oids
        self._kind += run.block_kinds
        run.block_oids.clear()
        run.block_kinds.clear()

    def _settle_tries(self, run: Execution) -> None:
        """Change the kind of failed TRY steps: such a step only reads, but its own races are those of a TRY."""
        for depth in run.in_vain:
            self._kind[depth] = _IN_VAIN if depth >= len(self._mask) else READ
        run.in_vain.clear()

    def _asleep(self, run: Execution, depth: int) -> int:
        """The sleep set at `depth`. It has each task that slept or was tried at the previous step, if the task's next
        step is independent of this previous step."""
        before = depth - 1
        last = self.chosen[before]
        if last < 0:
            return 0
        asleep = (self._sleep[before] | self._done[before]) & ~(1 << last)
        if not asleep:
            return 0
        oid, only_reads = self._oid[before], self._kind[before] in (READ, _IN_VAIN)
        tasks = run.tasks
        kept = 0
        while asleep:
            bit = asleep & -asleep
            task = tasks[bit.bit_length() - 1]
            if task.obj != oid or (only_reads and task.kind == READ):
                kept |= bit
            asleep ^= bit
        return kept

    def _let_time_pass(self, run: Execution) -> int:
        """Append a node at which no task can continue."""
        self._learn(run)
        self._look_at_blocked(run, run.depth)
        for column in (self.enabled, self._sleep, self._backtrack, self._done):
            column.append(0)
        self.chosen.append(TIME)
        self._oid.append(-1)
        self._kind.append(READ)
        return TIME

    def _learn(self, run: Execution) -> None:
        """Compute the races of the new steps, and the steps that happened before each."""
        chosen, masks, oids, kinds = self.chosen, self._mask, self._oid, self._kind
        after_task, undo, access = self._after_task, self._undo, self._access
        start = len(masks)
        wakers = {depth for depth, _ in run.woken}
        steps = zip(chosen[start:], oids[start:], kinds[start:], strict=True)
        for depth, (index, oid, kind) in enumerate(steps, start):
            if index == TIME:
                # The passing of time is ordered after all earlier steps and before all later steps.
                mask = (1 << (depth + 1)) - 1
                self._before_wakes[depth] = dict(after_task)
                undo.append((TIME, None, []))
                for one in after_task:
                    after_task[one] = mask
                masks.append(mask)
                continue
            known = after_task.get(index)
            mask = self._born(run.tasks[index].born) if known is None else known
            accesses = access.get(oid)
            if accesses is None:
                accesses = access[oid] = []
            elif accesses:
                last = accesses[-1]
                # A step ordered after the last use of its object has no race, unless it is a write and the last use is
                # a READ. Other reads may then be unordered.
                if not mask >> last & 1 or (kinds[last] == READ and kind != READ):
                    mask = self._races(run, index, depth, accesses, kind, mask)
            accesses.append(depth)
            if kind == _IN_VAIN:
                kinds[depth] = READ
            mask |= 1 << depth
            masks.append(mask)
            undo.append((index, known, accesses))
            if depth in wakers:
                # This step ends the waits of these tasks, so it happens before their later steps.
                self._before_wakes[depth] = dict(after_task)
                for at, woken in run.woken:
                    if at == depth:
                        after_task[woken] = after_task.get(woken, 0) | mask
            after_task[index] = mask

    def _born(self, at: int) -> int:
        return self._mask[at] if 0 <= at < len(self._mask) else 0

    def _races(
        self, run: Execution, index: int, depth: int, accesses: list[int], kind: int, mask: int
    ) -> int:
        """Record the races of this step with earlier steps. Return `mask` with the steps that this step depends on."""
        kinds, chosen = self._kind, self.chosen
        if kind in _WAITING_KINDS:
            # Neither kind is enabled before the RELEASE that it waits for. So the race is with the matching acquire.
            own = mask
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
                    # The registration of a writer (a WRITE step) blocks readers, not its later ACQUIRE.
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

    def _race(self, run: Execution, at: int, index: int, depth: int, mask: int) -> None:
        """Add a task to the choices before step `at`, so that another run has the other order. The task is an initial
        of this sequence: the later steps that step `at` did not happen before, and then this step."""
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
        heappush(self._open, -at)
        usable = initials & self.enabled[at]
        if usable:
            self._backtrack[at] |= 1 << index if usable >> index & 1 else usable & -usable
        else:
            self._backtrack[at] |= self.enabled[at]

    def _look_at_blocked(self, run: Execution, depth: int) -> None:
        """Record the races of pending steps: a task that is blocked in this run may make the step in another run."""
        for task in run.tasks:
            waits_for_lock = isinstance(task.awaited, ControlledLock | ControlledReadWriteLock)
            if task.finished or not (waits_for_lock or task.awaited is None):
                continue
            accesses = self._access.get(task.obj)
            if accesses is not None:
                mask = self._after_task.get(task.index, 0)
                self._races(run, task.index, depth, accesses, task.kind, mask)

    def _pop_to(self, depth: int) -> None:
        """Remove the steps from `depth` on, but keep the choices of the node at `depth`."""
        after_task = self._after_task
        for at in range(len(self._undo) - 1, depth - 1, -1):
            index, known, accesses = self._undo[at]
            if at in self._before_wakes:
                after_task = self._after_task = self._before_wakes.pop(at)
                if index == TIME:
                    continue
            if known is None:
                after_task.pop(index, None)
            else:
                after_task[index] = known
            accesses.pop()
        del self._undo[depth:]
        for column in (self.chosen, self._oid, self._kind, self._mask):
            del column[depth:]
        for column in (self.enabled, self._sleep, self._backtrack, self._done):
            del column[depth + 1 :]


def explore_dpor(program: Program, limits: Limits) -> Exploration:
    """Explore one interleaving of each class, up to the limits."""
    bound = f"all classes of interleavings, bounded loops up to {program.turns} turns"
    return explore_by(Dpor(), program, limits, Exploration("dpor", bound))
