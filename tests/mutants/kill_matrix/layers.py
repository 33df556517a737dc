"""The layers that a mutant is put through.

* `contracts`: CrossHair on the changed arithmetic (`contract_layer`).
* `proof`, `model`: a negative control with this bug in the lemmas, in the small-step models.
* `explorer`: the bounded search of its scenario, fewest preemptions first.
* `one-run`: the same scenario, run once, each thread to its end: what a test without threads would see.
* `random`: uniformly random schedules with a fixed seed, the best that stress testing can be.
* `stateful`: the Hypothesis machines; `stress`: plain threads on its scenario, whose hits differ from run to run.
* `trace`: the history of the explorer's counterexample, written as a trace is and judged by the engine that judges
  traces. Bugs that show in a structure, or as a deadlock, leave no trace of a broken clause.
"""

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Final

import pyarrow as pa
from hypothesis import settings

from hypothesis_profiles import CI, HUNT
from mutants.kill_matrix.contract_layer import contract_kill
from mutants.kill_matrix.explored import hunt
from mutants.kill_matrix.raced import stress_hunt
from mutants.kill_matrix.row import Kill
from mutants.reference.mutant import Mutant
from purgatorio_spec.campaign import kills
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.trace.recorder import LogRow
from purgatorio_stress.explorer.replay import BadToken, replay
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_random
from purgatorio_stress.random_program.registry import scenario_named
from purgatorio_stress.scenario.contract import ScenarioProgram
from reference.stateful.registry import SEARCHES, searches_for
from reference.stateful.search import Failing, MachineSearch

EXPLORED: Final = ("explorer", "one-run", "random", "trace")
"""One hunt of the explorer gives these four."""

LAYERS: Final = (
    *("contracts", "proof", "model", "explorer", "one-run", "random", "stateful", "stress", "trace"),
)

QUICK: Final = ("proof", "model", *EXPLORED)
"""Seconds for all mutants; the others take minutes."""

STRESS_ROUNDS: Final = 2_000
STRESS_SEED: Final = 1
SEEDS: Final = (None, 1, 2, 3)
"""Of the Hypothesis machines; None: the examples are the same in every run."""

_SAMPLE: Final = Limits(schedules=500, seconds=60.0)
_SEED: Final = 1


def kills_of(mutant: Mutant, layers: Collection[str]) -> dict[str, Kill]:
    by: dict[str, Kill] = {}
    if not set(EXPLORED).isdisjoint(layers):
        by.update((layer, kill) for layer, kill in _explored(mutant).items() if layer in layers)
    if "contracts" in layers:
        by["contracts"] = contract_kill(mutant)
    if "stateful" in layers:
        by["stateful"] = stateful_kill(mutant)
    if "stress" in layers:
        by["stress"] = stress_hunt(mutant, STRESS_ROUNDS, STRESS_SEED)
    for layer in ("model", "proof"):
        if layer in layers:
            claims = sorted(
                {claim for number, where, claim in _known() if (number, where) == (mutant.number, layer)}
            )
            by[layer] = Kill(bool(claims), ", ".join(claims))
    return by


def stateful_kill(mutant: Mutant) -> Kill:
    """The Hypothesis machines that run the patched code, one after the other, as the profile `ci` does. What shows
    without a second thread is looked for from several seeds."""
    hunts = product(SEEDS[: 1 if mutant.interleaving else None], searches_for(mutant.patches, mutant.dialect))
    start = time.perf_counter()
    begun = 0
    for seed, search in hunts:
        with mutant.applied():
            found = ci_hunt(search, seed)
        if found is not None and _passes_sound(search.name, seed):
            seconds = time.perf_counter() - start
            return Kill(True, found.clause, begun + found.examples, "examples", seconds)
        begun += CI.max_examples
    return Kill(False, effort=begun, unit="examples", seconds=time.perf_counter() - start)


def ci_hunt(search: MachineSearch, seed: int | None) -> Failing | None:
    """With the examples that the CI profile takes for what must pass; from a seed, other ones."""
    return search.run(settings(HUNT, max_examples=CI.max_examples, derandomize=seed is None), seed)


@cache
def _passes_sound(search: str, seed: int | None) -> bool:
    """Whether a stateful test finds nothing without a mutant; it draws the same examples every time."""
    return ci_hunt(SEARCHES[search], seed) is None


def _explored(mutant: Mutant) -> dict[str, Kill]:
    hunted = hunt(mutant)
    found = hunted.found
    preemptions = None if found is None else found.preemptions
    at_once = hunted.killed and hunted.schedules == 1
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect, memory=mutant.memory)
    with mutant.applied():
        sample = explore_random(program, _SAMPLE, _SEED)
    if sample.found and _sample_breaks_sound(mutant, sample.schedules):
        sample.found = []
    with mutant.applied():
        rows: list[LogRow] = []
        if found is not None:
            # A RecursionError comes at a depth that depends on the caller: then the run does not repeat step by step.
            with suppress(BadToken):
                replay(program, found.schedule)
            rows = list(program.world.log.rows) if program.world is not None else []
    broken = clauses_in_trace(program, rows)
    expected = sorted(broken & set(mutant.clauses)) or sorted(broken)
    return {
        "explorer": Kill(
            hunted.killed, hunted.clause, hunted.schedules, "schedules", hunted.seconds, preemptions
        ),
        "one-run": Kill(at_once, hunted.clause if at_once else "", 1, "schedules"),
        "random": _sampled(mutant, sample),
        "trace": Kill(bool(expected), ", ".join(expected)),
    }


def _sample_breaks_sound(mutant: Mutant, schedules: int) -> bool:
    """Whether the same sample of the code without the mutant breaks something."""
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect)
    return bool(explore_random(program, replace(_SAMPLE, schedules=schedules), _SEED).found)


def _sampled(mutant: Mutant, sample: Exploration) -> Kill:
    found = sample.found[0] if sample.found else None
    clauses = [] if found is None else [one.clause for one in found.broken if one.clause in mutant.clauses]
    return Kill(bool(clauses), clauses[0] if clauses else "", sample.schedules, "schedules", sample.seconds)


def clauses_in_trace(program: ScenarioProgram, rows: list[LogRow]) -> set[str]:
    """The clauses that the engine for traces finds broken in a recorded history."""
    if not rows or program.world is None:
        return set()
    table = pa.Table.from_batches([event_batch(enumerate(program.world.log.events()))], EVENT_SCHEMA)
    tally = judge_run(program.histories.run, table)
    return {clause for clause, one in tally.clauses.items() if one.violations}


@cache
def _known() -> tuple[tuple[int, str, str], ...]:
    """The mutants that models and lemmas kill. For the contracts, see `contract_layer`."""
    return tuple((kill.number, kill.layer, kill.claim) for kill in kills() if not kill.claim.startswith("X-"))
