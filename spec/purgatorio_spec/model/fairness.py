"""Checks two kinds of progress properties of a model: `possible` and `eventually`.

`possible P`: from every reachable state, a state with P can be reached (AG EF P). `eventually P`: every weakly fair run
reaches a state with P. A run is *weakly fair* if every actor that is always enabled moves infinitely often. A run that
never reaches P has one of two ends: it stops in a state without successors, or it stays forever in one strongly
connected component of the states without P. A component has a fair run if and only if every actor either moves inside
the component, or is blocked in one of its states.

Source: the usual emptiness check for generalized Buchi acceptance (Lichtenstein and Pnueli 1985; Tarjan 1972).
"""

from collections.abc import Hashable, Iterable
from typing import TypeVar

from purgatorio_spec.model.search import Reachable
from purgatorio_spec.model.shape import ModelFinding, Move, Predicate, Trace
from purgatorio_spec.verdict import Verdict

S = TypeVar("S", bound=Hashable)
Edges = dict[S, list[tuple[int, S]]]


def judge_graph(search: Reachable[S]) -> list[ModelFinding]:
    """The results for `possible` and `eventually`. All are UNKNOWN if the search did not end."""
    model = search.model
    if not search.complete:
        return [ModelFinding(name, Verdict.UNKNOWN) for name in (*model.possible, *model.eventually)]
    edges = _edges(search)
    findings = [_possible(search, edges, name, holds) for name, holds in model.possible.items()]
    findings += [_eventually(search, edges, name, holds) for name, holds in model.eventually.items()]
    return findings


def _edges(search: Reachable[S]) -> Edges[S]:
    canonical, steps = search.model.canonical, search.model.steps
    if canonical is None:
        return {state: steps(state) for state in search.parent}
    return {state: [(actor, canonical(to)) for actor, to in steps(state)] for state in search.parent}


def _possible(search: Reachable[S], edges: Edges[S], name: str, holds: Predicate[S]) -> ModelFinding:
    before: dict[S, list[S]] = {state: [] for state in edges}
    for state, successors in edges.items():
        for _, successor in successors:
            before[successor].append(state)
    can = {state for state in edges if holds(state)}
    work = list(can)
    while work:
        for state in before[work.pop()]:
            if state not in can:
                can.add(state)
                work.append(state)
    trap = next((state for state in edges if state not in can), None)  # breadth-first order: a nearest one
    if trap is None:
        return ModelFinding(name, Verdict.PASS)
    return ModelFinding(name, Verdict.VIOLATED, search.trace_to(trap))


def _eventually(search: Reachable[S], edges: Edges[S], name: str, holds: Predicate[S]) -> ModelFinding:
    """Search the part of the graph that a run without P can reach."""
    open_states: dict[S, None] = {}
    work = [state for state in edges if search.parent[state] is None and not holds(state)]
    while work:
        state = work.pop()
        if state in open_states:
            continue
        open_states[state] = None
        work += [to for _, to in edges[state] if to not in open_states and not holds(to)]
    for state in open_states:
        if not edges[state]:
            return ModelFinding(name, Verdict.VIOLATED, search.trace_to(state))
    inside: Edges[S] = {s: [(a, to) for a, to in edges[s] if to in open_states] for s in open_states}
    fair = [c for c in components(inside) if _carries_run(c, inside, edges, search)]
    if not fair:
        return ModelFinding(name, Verdict.PASS)
    component = min(fair, key=lambda c: min(len(search.path_to(s)) for s in c[:50]))
    return ModelFinding(name, Verdict.VIOLATED, _lasso(search, component, inside, edges))


def _carries_run(component: list[S], inside: Edges[S], edges: Edges[S], search: Reachable[S]) -> bool:
    members = set(component)
    moves = {actor for s in component for actor, to in inside[s] if to in members}
    if not moves:
        return False
    if not search.model.fair:
        return True
    for actor in range(len(search.model.columns)):
        if actor not in moves and all(any(a == actor for a, _ in edges[s]) for s in component):
            return False
    return True


def _lasso(search: Reachable[S], component: list[S], inside: Edges[S], edges: Edges[S]) -> Trace:
    """A path to the component, then a loop in it that leaves out no actor unfairly."""
    members = set(component)
    start = min(component, key=lambda s: len(search.path_to(s)))
    prefix = search.trace_to(start)
    at, loop = start, list[Move]()
    actors = range(len(search.model.columns)) if search.model.fair else range(0)
    for actor in actors:
        moves = {s for s in members if any(a == actor and to in members for a, to in inside[s])}
        blocked = {s for s in members if all(a != actor for a, _ in edges[s])}
        at = _go(search, inside, members, at, moves or blocked, loop)
        if moves:
            step = next(to for a, to in inside[at] if a == actor and to in members)
            loop.append(search.model.describe(at, actor, step))
            at = step
    if not loop:
        actor, step = next((a, to) for a, to in inside[at] if to in members)
        loop.append(search.model.describe(at, actor, step))
        at = step
    _go(search, inside, members, at, {start}, loop)
    return Trace(prefix.steps, tuple(loop))


def _go(search: Reachable[S], inside: Edges[S], members: set[S], at: S, goals: set[S], loop: list[Move]) -> S:
    """Append the shortest walk inside `members` from `at` to one of `goals`; the state reached."""
    came: dict[S, tuple[S, int] | None] = {at: None}
    layer = [at]
    while True:
        reached = next((s for s in layer if s in goals), None)
        if reached is not None:
            break
        following = []
        for s in layer:
            for actor, to in inside[s]:
                if to in members and to not in came:
                    came[to] = (s, actor)
                    following.append(to)
        if not following:
            raise AssertionError(f"{search.model.name}: a component is not strongly connected")
        layer = following
    walk = []
    end, link = reached, came[reached]
    while link is not None:
        walk.append(search.model.describe(link[0], link[1], end))
        end, link = link[0], came[link[0]]
    loop.extend(reversed(walk))
    return reached


def components(edges: Edges[S]) -> Iterable[list[S]]:
    index: dict[S, int] = {}
    low: dict[S, int] = {}
    stack: list[S] = []
    on_stack: set[S] = set()
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, successors = work[-1]
            deeper = None
            for _, to in successors:
                if to not in index:
                    deeper = to
                    break
                if to in on_stack:
                    low[state] = min(low[state], index[to])
            if deeper is not None:
                index[deeper] = low[deeper] = len(index)
                stack.append(deeper)
                on_stack.add(deeper)
                work.append((deeper, iter(edges[deeper])))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[state])
            if low[state] == index[state]:
                component: list[S] = []
                while not component or component[-1] != state:
                    component.append(stack.pop())
                    on_stack.discard(component[-1])
                yield component
