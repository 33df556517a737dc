"""The search `explore_bounded` limits the number of preemptions (iterative context bounding).

A *preemption* is a switch away from a task that could continue. Most bugs need one or two preemptions (Musuvathi and
Qadeer, "Iterative context bounding", PLDI 2007). The search runs schedules without preemptions first, then schedules
with one preemption, and so on. So the first counterexample has the smallest number of preemptions.

A preemption before a step on an object is useless if no other task uses the object: a preemption before the next step
has the same effect. A preemption before the release of a lock is useless if no thread uses `try_lock` on this lock.
Such preemptions are postponed until another task uses the object.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from purgatorio_spec.show.visible import counted
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.search import explore_by
from purgatorio_stress.explorer.step import RELEASE, TIME, TRY
from purgatorio_stress.explorer.task import Task


@dataclass(slots=True)
class _Todo:
    """An untried schedule: the first `depth` steps of `chosen`, then task `index`. `cost` counts its preemptions.

    All alternatives of one run share `chosen`. Copies would need memory quadratic in the length of the run: a livelock
    of 20,000 steps would exhaust the memory.
    """

    chosen: list[int]
    depth: int
    index: int
    cost: int


@dataclass(slots=True)
class BoundedSearch:
    """The chooser and the state of the search. `chosen` is the whole schedule. The columns `enabled`, `oids` and
    `kinds` start at its step `prefix`. `todo` has the untried schedules with at most `level` preemptions. `later` has
    the other schedules, by number of preemptions.
    """

    bound: int
    level: int = 0
    cost: int = 0
    todo: list[_Todo] = field(default_factory=list)
    later: dict[int, list[_Todo]] = field(default_factory=lambda: defaultdict(list))
    chosen: list[int] = field(default_factory=list)
    enabled: list[int] = field(default_factory=list)
    oids: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    prefix: int = 0
    planned: int = TIME
    users: dict[int, int] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    put_off: dict[int, list[_Todo]] = field(default_factory=lambda: defaultdict(list))
    put_off_release: dict[int, list[_Todo]] = field(default_factory=lambda: defaultdict(list))

    def after(self, run: Execution, /) -> None:
        for other in self._alternatives():
            # A postponed schedule may belong to a finished level. It is then run at the present level.
            (self.todo if other.cost <= self.level else self.later[other.cost]).append(other)

    def preemptions(self) -> int:
        return self.cost

    def next_schedule(self) -> list[int] | None:
        """The known schedule without its last step: `choose` makes the last step. See `Search`."""
        if not self.todo:
            if not self.later:
                return None
            self.level = min(self.later)
            self.todo = self.later.pop(self.level)
        one = self.todo.pop()
        self.cost, self.planned = one.cost, one.index
        known = one.chosen[: one.depth]
        self.chosen = [*known, one.index]
        self.prefix = len(self.chosen)
        for column in (self.enabled, self.oids, self.kinds):
            column.clear()
        return known

    def choose(self, run: Execution, /) -> int:
        """Continue the current task if it is enabled, else the enabled task with the lowest number."""
        if self.planned >= 0:
            index, self.planned = self.planned, TIME
            self._note_use(run.tasks[index])
            return index
        enabled = 0
        for task in run.tasks:
            if not task.finished:
                awaited = task.awaited
                if awaited is None or awaited.is_open(task):
                    enabled |= task.bit
        current = run.current
        index = TIME
        # Whether a preemption is useful here depends on the next step of the preempted task.
        deciding = current
        if enabled & current.bit:
            index = current.index
        elif enabled:
            index = (enabled & -enabled).bit_length() - 1
            deciding = run.tasks[index]
        else:
            deciding = run.tasks[0]
        self.chosen.append(index)
        self.enabled.append(enabled)
        self.oids.append(deciding.obj)
        self.kinds.append(deciding.kind)
        if index >= 0:
            self._note_use(run.tasks[index])
        return index

    def _note_use(self, task: Task) -> None:
        users = self.users.get(task.obj, 0)
        if not users & task.bit:
            self.users[task.obj] = users | task.bit
        if task.kind == TRY:
            self.tried.add(task.obj)

    def _alternatives(self) -> list[_Todo]:
        """The other choices of the last run, after its prefix and within the bound. Useless preemptions are
        postponed. Postponed choices that have become useful are included."""
        found: list[_Todo] = []
        known = self.prefix
        for depth in range(known, len(self.chosen)):
            index, enabled = self.chosen[depth], self.enabled[depth - known]
            others = enabled & ~(1 << index) if index >= 0 else 0
            if not others:
                continue
            last = self.chosen[depth - 1] if depth else 0
            price = 1 if last > 0 and enabled >> last & 1 else 0
            if self.cost + price > self.bound:
                continue
            target = found
            if price:
                oid = self.oids[depth - known]
                if self.kinds[depth - known] == RELEASE and oid not in self.tried:
                    target = self.put_off_release[oid]
                elif not _several(self.users.get(oid, 0)):
                    target = self.put_off[oid]
            while others:
                bit = others & -others
                others ^= bit
                target.append(_Todo(self.chosen, depth, bit.bit_length() - 1, self.cost + price))
        for oid in [oid for oid in self.put_off if _several(self.users.get(oid, 0))]:
            found += self.put_off.pop(oid)
        for oid in [oid for oid in self.put_off_release if oid in self.tried]:
            found += self.put_off_release.pop(oid)
        return found


def _several(users: int) -> bool:
    return users & (users - 1) != 0


def explore_bounded(program: Program, limits: Limits) -> Exploration:
    """Explore all schedules with at most `limits.preemptions` preemptions, fewest first."""
    most = counted(limits.preemptions, "preemption")
    text = f"all interleavings with at most {most}, bounded loops up to {program.turns} turns"
    return explore_by(BoundedSearch(limits.preemptions), program, limits, Exploration("bounded", text))
