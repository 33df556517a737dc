"""The layers that a mutant is put through, one function each.

* `explorer`: the bounded search of its scenario, fewest preemptions first.
* `one-run`: the same scenario, run once, each thread to its end: what a test without threads would see.
* `random`: uniformly random schedules with a fixed seed, the best that stress testing can be.
* `trace`: the history of the explorer's counterexample, written as a trace is and judged by the engine that judges
  traces. Bugs that show in a structure, or as a deadlock, leave no trace of a broken clause.
* `model`, `proof`: a twin with this bug in the small-step models, the lemmas or the contracts.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

from purgatorio_spec.judge.process import judge_run
from purgatorio_spec.model.kills import kills
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.history_log import LogRow
from purgatorio_stress.explorer.replay import BadToken, replay
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_random
from purgatorio_stress.mutant.hunt import HUNT, hunt
from purgatorio_stress.mutant.patch import Mutant
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS

__all__ = ["LAYERS", "Kill", "clauses_in_trace", "kills_of", "unharmed"]

LAYERS: Final = ("explorer", "one-run", "random", "trace", "model", "proof")

_SAMPLE: Final = Limits(schedules=500, seconds=60.0)
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Kill:
    """What a layer said. `by` is the clause, or the claims. `schedules` is 0 where nothing was run."""

    killed: bool
    by: str
    schedules: int = 0
    seconds: float = 0.0
    preemptions: int | None = None

    def as_json(self) -> dict[str, object]:
        """The shape of `purgatorio mutants --json`."""
        return {
            "killed": self.killed,
            "clause": self.by,
            "schedules": self.schedules,
            "seconds": round(self.seconds, 3),
            "preemptions": self.preemptions,
        }


def kills_of(mutant: Mutant) -> dict[str, Kill]:
    """One mutant against every layer."""
    by: dict[str, Kill] = {}
    hunted = hunt(mutant)
    found = hunted.found
    by["explorer"] = Kill(
        hunted.killed,
        hunted.clause,
        hunted.schedules,
        hunted.seconds,
        None if found is None else found.preemptions,
    )
    at_once = hunted.killed and hunted.schedules == 1
    by["one-run"] = Kill(at_once, hunted.clause if at_once else "", 1)
    program = ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect, memory=mutant.memory)
    with mutant.applied():
        sample = explore_random(program, _SAMPLE, _SEED)
        by["random"] = _sampled(mutant, sample)
        rows: list[LogRow] = []
        if found is not None:
            # A RecursionError comes at a depth that depends on the caller: then the run does not repeat step by step.
            with suppress(BadToken):
                replay(program, found.schedule)
            rows = program.world.log.rows if program.world is not None else []
    broken = clauses_in_trace(program, rows)
    expected = sorted(broken & set(mutant.clauses)) or sorted(broken)
    by["trace"] = Kill(bool(expected), ", ".join(expected))
    for layer in ("model", "proof"):
        claims = sorted(
            {kill.claim for kill in _known_kills() if (kill.number, kill.layer) == (mutant.number, layer)}
        )
        by[layer] = Kill(bool(claims), ", ".join(claims))
    return by


def _sampled(mutant: Mutant, sample: Exploration) -> Kill:
    found = sample.found[0] if sample.found else None
    clauses = [] if found is None else [one.clause for one in found.broken if one.clause in mutant.clauses]
    return Kill(bool(clauses), clauses[0] if clauses else "", sample.schedules, sample.seconds)


def clauses_in_trace(program: ScenarioProgram, rows: list[LogRow]) -> set[str]:
    """The clauses that the engine for traces finds broken in a recorded history."""
    if not rows or program.world is None:
        return set()
    table = pa.Table.from_batches([event_batch(enumerate(program.world.log.events()))], EVENT_SCHEMA)
    tally = judge_run(program.histories.run, table)
    return {clause for clause, one in tally.clauses.items() if one.violations}


def unharmed(mutant: Mutant) -> bool:
    """Whether the reference itself passes the search that kills the mutant: without this a kill shows nothing."""
    program = ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect)
    return not explore_bounded(program, HUNT).found


@cache
def _known_kills() -> tuple["_ModelKill", ...]:
    return tuple(_ModelKill(kill.number, kill.layer, kill.claim) for kill in kills())


@dataclass(frozen=True, slots=True)
class _ModelKill:
    number: int
    layer: str
    claim: str
