"""`check`: searches every state of a model. Returns a verdict for each property, the bound and the number of states."""

import time
from collections.abc import Hashable
from typing import TypeVar

from purgatorio_spec.model.fairness import judge_graph
from purgatorio_spec.model.search import Reachable
from purgatorio_spec.model.shape import DEADLOCK, Model, ModelFinding, ModelResult, Trace
from purgatorio_spec.verdict import Verdict

S = TypeVar("S", bound=Hashable)


def check(model: Model[S], *, limit_states: int = 20_000_000) -> ModelResult:
    """Search `model`. If the search reaches its limit, the properties that it did not refute are UNKNOWN."""
    start = time.process_time()
    search = Reachable(model, limit_states)
    search.run()
    findings = [_state_finding(search, name) for name in (*model.always, DEADLOCK)]
    findings += [_step_finding(search, name) for name in model.always_step]
    findings += [_sometimes_finding(search, name) for name in model.sometimes]
    if model.possible or model.eventually:
        findings += judge_graph(search)
    seconds = time.process_time() - start
    return ModelResult(model.name, model.bound, tuple(findings), len(search.parent), seconds)


def _unrefuted(search: Reachable[S]) -> Verdict:
    return Verdict.PASS if search.complete else Verdict.UNKNOWN


def _state_finding(search: Reachable[S], name: str) -> ModelFinding:
    if name not in search.bad_state:
        return ModelFinding(name, _unrefuted(search))
    return ModelFinding(name, Verdict.VIOLATED, search.trace_to(search.bad_state[name]))


def _step_finding(search: Reachable[S], name: str) -> ModelFinding:
    if name not in search.bad_step:
        return ModelFinding(name, _unrefuted(search))
    state, _, _ = search.bad_step[name]
    steps, concrete = search.walk(search.path_to(state))
    holds = search.model.always_step[name]
    for actor, successor in search.model.steps(concrete):
        if not holds(concrete, actor, successor):
            return ModelFinding(
                name, Verdict.VIOLATED, Trace((*steps, search.model.describe(concrete, actor, successor)))
            )
    raise AssertionError(
        f"{search.model.name}: {name!r} depends on the names of actors, the symmetry does not"
    )


def _sometimes_finding(search: Reachable[S], name: str) -> ModelFinding:
    if name in search.witnessed:
        return ModelFinding(name, Verdict.PASS)
    return ModelFinding(name, Verdict.VIOLATED if search.complete else Verdict.UNKNOWN)
