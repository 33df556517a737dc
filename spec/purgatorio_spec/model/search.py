"""Breadth-first search of a model: the reachable states, and for each property the first state that breaks it."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from purgatorio_spec.model.shape import DEADLOCK, Model, Move, Trace

S = TypeVar("S", bound=Hashable)


class Reachable(Generic[S]):
    """The reachable states of a model. For each state: the canonical state from which the search first reached it."""

    def __init__(self, model: Model[S], limit_states: int) -> None:
        if model.canonical is not None and model.eventually:
            raise ValueError(
                f"{model.name}: symmetry renames actors, fairness names them; use one of the two"
            )
        self.model = model
        self.limit_states = limit_states
        self.parent: dict[S, S | None] = {}
        self.bad_state: dict[str, S] = {}
        self.bad_step: dict[str, tuple[S, int, S]] = {}
        self.witnessed: set[str] = set()
        self.complete = False

    def run(self) -> None:
        """Search breadth first until the frontier is empty, or the limit is reached."""
        canonical = self.model.canonical
        frontier = []
        for state in self.model.initial:
            first = state if canonical is None else canonical(state)
            if first not in self.parent:
                self.parent[first] = None
                frontier.append(first)
        self._judge(frontier)
        while frontier:
            if len(self.parent) >= self.limit_states:
                return
            frontier = self._expand(frontier)
            self._judge(frontier)
        self.complete = True

    def _expand(self, frontier: list[S]) -> list[S]:
        """Search one layer. The loop makes no calls, because only the speed of this loop matters."""
        parent, steps, canonical = self.parent, self.model.steps, self.model.canonical
        done, watches_steps = self.model.done, bool(self.model.always_step)
        reached: list[S] = []
        for state in frontier:
            successors = steps(state)
            if not successors and not done(state):
                self.bad_state.setdefault(DEADLOCK, state)
            if watches_steps:
                self._judge_steps(state, successors)
            for _, successor in successors:
                if canonical is not None:
                    successor = canonical(successor)
                if successor not in parent:
                    parent[successor] = state
                    reached.append(successor)
        return reached

    def _judge(self, states: list[S]) -> None:
        for name, holds in self.model.always.items():
            if name not in self.bad_state:
                bad = next((state for state in states if not holds(state)), None)
                if bad is not None:
                    self.bad_state[name] = bad
        for name, holds in self.model.sometimes.items():
            if name not in self.witnessed and any(holds(state) for state in states):
                self.witnessed.add(name)

    def _judge_steps(self, state: S, successors: list[tuple[int, S]]) -> None:
        for name, holds in self.model.always_step.items():
            if name in self.bad_step:
                continue
            for actor, successor in successors:
                if not holds(state, actor, successor):
                    self.bad_step[name] = (state, actor, successor)
                    break

    def path_to(self, state: S) -> list[S]:
        """The canonical states from an initial one to `state`, both included."""
        path = [state]
        before = self.parent[state]
        while before is not None:
            path.append(before)
            before = self.parent[before]
        return path[::-1]

    def trace_to(self, state: S) -> Trace:
        """The shortest path to `state`, in concrete states: in canonical states, symmetry may rename the threads."""
        steps, _ = self.walk(self.path_to(state))
        return Trace(tuple(steps))

    def walk(self, path: list[S]) -> tuple[list[Move], S]:
        """Follow canonical states concretely. Returns the transitions and the last concrete state."""
        canonical = self.model.canonical
        concrete = path[0]
        taken: list[Move] = []
        for target in path[1:]:
            for actor, successor in self.model.steps(concrete):
                if (successor if canonical is None else canonical(successor)) == target:
                    taken.append(self.model.describe(concrete, actor, successor))
                    concrete = successor
                    break
            else:
                raise AssertionError(
                    f"{self.model.name}: invalid symmetry: no transition leads to {target!r}"
                )
        return taken, concrete
