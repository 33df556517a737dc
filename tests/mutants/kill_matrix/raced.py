"""Stress against one mutant: the layers `stress` (plain threads) and `stress with yields` of the kill matrix."""

import time
from typing import Final

from mutants.kill_matrix.row import Kill
from mutants.reference.mutant import Mutant
from purgatorio_stress.harness.batch import Batch, Series, rng_of
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.seam import StopFlag
from purgatorio_stress.harness.settings import drawn
from purgatorio_stress.scenario.registry import SCENARIOS

INSTEAD: Final[dict[str, str]] = {
    "add-against-sleep": "offer-against-poll",
    "earlier-against-sleep": "earlier-offer-against-poll",
}
"""What stands in for a scenario whose threads sleep by the clock."""

NOT_SOUND: Final = "the code without the mutant is hit, too"

_BEAT_S: Final = 0.25
_PATIENCE_BEATS: Final = 12
_THREADS: Final = 8


def stress_hunt(
    mutant: Mutant, rounds: int, seed: int, *, yields: bool = False, to_first: bool = False
) -> Kill:
    """Race the mutant's scenario for at least `rounds` rounds with the bug inside, on real threads.

    Switch interval, spins, calls in conditions, processors and crews are swept as in `purgatorio stress`; `yields`
    also injects yields at the seam. Rounds are judged by the scenario's own look, and every fourth batch is recorded
    and judged by the clauses as well. `to_first` ends with the first hit. A round that is stuck stays behind: its
    threads are blocked for ever, or leave at the next `loop_head`.

    The seed repeats the plan, not the machine: the number of hits differs from run to run. Hits are the rounds that
    reported an expected clause; a stuck round (P3) ends the hunt and counts once.
    """
    start_s = time.monotonic()
    if mutant.scenario not in SCENARIOS:
        return Kill(False, reason="a program of one thread: there is nothing to race")
    scenario = SCENARIOS[INSTEAD.get(mutant.scenario, mutant.scenario)]
    # Who sleeps on for ever where a clock would have woken it late is stuck here.
    expected = mutant.clauses if scenario.name == mutant.scenario else (*mutant.clauses, *scenario.clauses)
    table = OutcomeTable(f"{scenario.name}/{mutant.dialect}", frozenset(), None, expected)
    series = Series(scenario, mutant.dialect, table)
    stop, stuck, number = StopFlag(), None, 0
    with mutant.applied():
        while table.rounds < rounds and stuck is None and not (to_first and _hits(table)):
            stuck = _batch(series, number, seed, stop, yields, rounds).run()
            number += 1
    seconds = time.monotonic() - start_s
    if not _hits(table):
        return _kill(table, seconds)
    # A kill counts only if the same batches of the code without the mutant hit nothing.
    series.table = sound = OutcomeTable(table.name, frozenset(), None, expected)
    for again in range(number):
        if _batch(series, again, seed, StopFlag(), yields, rounds).run() is not None:
            break
    return _kill(table, seconds) if not _hits(sound) else Kill(False, reason=NOT_SOUND)


def _batch(series: Series, number: int, seed: int, stop: StopFlag, yields: bool, rounds: int) -> Batch:
    rng = rng_of(seed, series.table.name, number)
    settings = drawn(rng, series.scenario.threads, _THREADS, number % 4 == 0, yields, rounds)
    return Batch(series, number, seed, settings, stop, lambda thread: thread.join(_BEAT_S), _PATIENCE_BEATS)


def _hits(table: OutcomeTable) -> int:
    return sum(line.count for line in table.outcomes if line.clause in table.expected)


def _kill(table: OutcomeTable, seconds: float) -> Kill:
    hits = _hits(table)
    # A broken promise says more than a broken structure.
    clauses = sorted((line.clause for line in table.outcomes if line.clause), key="CHECK".__eq__)
    clause = next((one for one in clauses if one in table.expected), "")
    return Kill(bool(hits), clause, table.rounds, "rounds", seconds, hits=hits)
