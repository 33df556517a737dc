"""A stress run: batches of all chosen scenarios in turn, until the number of rounds or minutes is reached."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from purgatorio_spec.verdict import Verdict, worst
from purgatorio_stress.harness.batch import PATIENCE_BEATS, Batch, Series, Wait, rng_of, waited
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.round import RoundMaker
from purgatorio_stress.harness.round_trace import RoundTrace
from purgatorio_stress.harness.seam import OwnThread, StopFlag
from purgatorio_stress.harness.settings import BATCH_ROUNDS, Settings, drawn
from purgatorio_stress.harness.subject import REFERENCE_SUBJECT, StressSubject
from purgatorio_stress.mutant.patch import SOUND, Bug
from purgatorio_stress.printed import Stress, Stuck
from purgatorio_stress.scenario.registry import SCENARIOS, dialects_named
from purgatorio_stress.scenario.world import World

SEVERAL: Final[tuple[str, ...]] = tuple(name for name, one in SCENARIOS.items() if one.threads > 1)
"""The scenarios with several threads."""

INTERRUPTED: Final = "interrupted"
"""The problem of a result after Ctrl-C."""
RECORD_EVERY: Final = 7
"""An odd number, so that the recorded batches alternate between with and without yields."""

_HISTORIES: Final = 1_000
"""The maximum number of cached distinct histories of a scenario, some kilobytes each. Most rounds repeat a few."""

Tell = Callable[[str, int, float], None]
"""Called after each batch with the scenario, its rounds so far, and the completed share of the run (0.0 to 1.0)."""


@dataclass(frozen=True, slots=True)
class StressPlan:
    """The parameters of a stress run.

    `scenarios`: pairs of name and dialect. `rounds`: the rounds of each scenario, rounded up to whole batches.
    `minutes`: the duration of a soak, which ignores `rounds`. `threads`: the maximum number of concurrent threads.
    `yields`: inject yields in all batches (True), in none (False), in every second batch (None). `record_every`: n
    records every n-th batch, 0 none. `batch`: repeat only this batch. `traces`: the folder for traces.
    """

    scenarios: Sequence[tuple[str, str]]
    rounds: int = 2_000
    minutes: float | None = None
    threads: int = 8
    seed: int = 1
    yields: bool | None = None
    record_every: int = RECORD_EVERY
    batch: int | None = None
    traces: Path | None = None
    bug: Bug = SOUND
    subject: StressSubject = REFERENCE_SUBJECT

    @property
    def batch_rounds(self) -> int:
        """The maximum number of rounds of a batch."""
        return BATCH_ROUNDS if self.minutes is not None else min(self.rounds, BATCH_ROUNDS)

    def command(self, scenario: str, batch: int) -> str:
        """The command that repeats this batch. The scheduling may differ, so several repetitions may be needed."""
        words = [
            f"purgatorio stress {self.subject.name}",
            f"--scenario {scenario}",
            f"--seed {self.seed}",
            f"--batch {batch}",
        ]
        if self.batch_rounds < BATCH_ROUNDS:
            words.append(f"--rounds {self.rounds}")
        if self.threads != 8:
            words.append(f"--threads {self.threads}")
        if self.yields is not None:
            words.append(f"--yields {'always' if self.yields else 'never'}")
        if self.record_every != RECORD_EVERY:
            words.append(f"--record-every {self.record_every}")
        return " ".join(words) + self.bug.option


@dataclass(slots=True)
class StressResult:
    """The result of a run. `problem`: why the run ended early, or "". `tables` has the rounds until the end."""

    seed: int
    tables: list[OutcomeTable] = field(default_factory=list)
    stuck: Stuck | None = None
    problem: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    traces: list[Path] = field(default_factory=list)
    unwritten_rounds: int = 0
    subject: str = REFERENCE_SUBJECT.name
    mutant: str = ""

    @property
    def rounds(self) -> int:
        """The number of completed rounds."""
        return sum(table.rounds for table in self.tables)

    @property
    def dropped(self) -> int:
        return sum(table.dropped for table in self.tables)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the scenarios. A stuck round is VIOLATED (P3). An early end is at least UNKNOWN."""
        verdicts = [table.verdict for table in self.tables]
        if self.stuck is not None:
            verdicts.append(Verdict.VIOLATED)
        if self.problem or not verdicts:
            verdicts.append(Verdict.UNKNOWN)
        return worst(verdicts)

    def printed(self) -> Stress:
        """The result in the format of `purgatorio stress --json`."""
        return Stress(
            self.verdict,
            [table.printed() for table in self.tables],
            dropped=self.dropped,
            subject=self.subject,
            seed=self.seed,
            mutant=self.mutant,
            rounds=self.rounds,
            seconds=round(self.seconds, 3),
            cpu_seconds=round(self.cpu_seconds, 3),
            stuck=self.stuck,
            problem=self.problem,
            traces=[path.name for path in self.traces],
            unwritten_rounds=self.unwritten_rounds,
        )


def _world_of(name: str, subject: StressSubject = REFERENCE_SUBJECT) -> World:
    scenario = SCENARIOS[name]
    return (
        RoundMaker(scenario, scenario.dialects[0], StopFlag(), parts=subject.parts).make(recorded=False).world
    )


@cache
def why_not_raced(name: str) -> str | None:
    """The reason why a scenario cannot run on real threads. None if it can."""
    try:
        _world_of(name)
    except OwnThread as thread:
        return f"it has {thread}"
    return None


def chosen(names: Sequence[str] = (), subject: StressSubject = REFERENCE_SUBJECT) -> list[tuple[str, str]]:
    """The scenarios with these names (`NAME` or `NAME/DIALECT`). By default, all scenarios that use the subject.

    Raises KeyError, with the reason, for a scenario that cannot run on real threads.
    """
    found: list[tuple[str, str]] = []
    about = (
        name for name in SEVERAL if not why_not_raced(name) and subject.is_asked_for(_world_of(name, subject))
    )
    for text in names or about:
        name = text.partition("/")[0]
        if name not in SEVERAL:
            raise KeyError(f"no scenario {name!r} of several threads; see `purgatorio stress --list`")
        if (why := why_not_raced(name)) is not None:
            raise KeyError(f"{name} is not for threads: {why}")
        found += dialects_named(text)
    return found


def run_stress(
    plan: StressPlan,
    *,
    tell: Tell | None = None,
    clock_s: Callable[[], float] = time.monotonic,
    wait: Wait = waited,
    patience: int = PATIENCE_BEATS,
) -> StressResult:
    """Execute the plan. A stuck round, an error of a trace file or Ctrl-C ends it early. The result has the reason."""
    result = StressResult(plan.seed, subject=plan.subject.name, mutant=plan.bug.name)
    start_s, start_cpu_s = clock_s(), time.process_time()
    stop = StopFlag()
    all_series = [_series(plan, name, dialect) for name, dialect in plan.scenarios]
    result.tables = [series.table for series in all_series]
    whole = False
    try:
        with plan.bug.applied():
            for series, settings in _batches(plan, all_series, lambda: (clock_s() - start_s) / 60):
                parts = plan.subject.parts
                batch = Batch(series, series.batches, plan.seed, settings, stop, wait, patience, parts)
                series.batches += 1
                if series.histories.distinct > _HISTORIES:
                    series.forget()
                if settings.recorded:
                    _open_trace(plan, series)
                stuck = batch.run()
                if stuck is not None:
                    result.stuck = replace(stuck, again=plan.command(series.table.name, batch.number))
                    break
                if tell is not None:
                    tell(
                        series.table.name,
                        series.table.rounds,
                        _share(plan, all_series, (clock_s() - start_s) / 60),
                    )
        whole = result.stuck is None
    except KeyboardInterrupt:
        result.problem = INTERRUPTED
    except OSError as problem:
        result.problem = _unwritten(problem)
    finally:
        _close(all_series, result, whole)
    result.seconds, result.cpu_seconds = clock_s() - start_s, time.process_time() - start_cpu_s
    return result


def _unwritten(problem: OSError) -> str:
    return f"a trace could not be written: {problem.strerror or problem}"


def _series(plan: StressPlan, name: str, dialect: str) -> Series:
    scenario = SCENARIOS[name]
    table = OutcomeTable.of(scenario, dialect)
    if plan.subject.parts != REFERENCE_SUBJECT.parts:
        # Outcomes that the reference cannot reach may be reachable for another subject.
        table.reachable = None
    table.again = partial(plan.command, table.name)
    return Series(scenario, dialect, table)


def _batches(
    plan: StressPlan, all_series: list[Series], minutes: Callable[[], float]
) -> Iterator[tuple[Series, Settings]]:
    """Yield the batches, one of each scenario in turn, until all scenarios have enough rounds."""
    if plan.batch is not None:
        for series in all_series:
            series.batches = plan.batch
            yield series, _settings(plan, series)
        return
    while True:
        unfinished = [one for one in all_series if plan.minutes is not None or one.table.rounds < plan.rounds]
        if not unfinished:
            return
        for series in unfinished:
            if plan.minutes is not None and minutes() >= plan.minutes:
                return
            yield series, _settings(plan, series)


def _settings(plan: StressPlan, series: Series) -> Settings:
    recorded = plan.record_every > 0 and series.batches % plan.record_every == 0
    rng = rng_of(plan.seed, series.table.name, series.batches)
    yields = series.batches % 2 == 1 if plan.yields is None else plan.yields
    return drawn(rng, series.scenario.threads, plan.threads, recorded, yields, plan.batch_rounds)


def _share(plan: StressPlan, all_series: list[Series], minutes: float) -> float:
    if plan.minutes is not None:
        return min(1.0, minutes / plan.minutes) if plan.minutes else 1.0
    done = sum(min(series.table.rounds, plan.rounds) for series in all_series)
    return done / (plan.rounds * len(all_series))


def _open_trace(plan: StressPlan, series: Series) -> None:
    """Open the trace of a scenario, for its first recorded batch."""
    if plan.traces is not None and series.trace is None:
        plan.traces.mkdir(parents=True, exist_ok=True)
        path = plan.traces / f"stress-{series.scenario.name}-{series.dialect}-seed{plan.seed}.jsonl"
        series.trace = RoundTrace(path, series.scenario, series.dialect, plan.seed)


def _close(all_series: list[Series], result: StressResult, whole: bool) -> None:
    for series in all_series:
        if series.trace is None:
            continue
        result.traces.append(series.trace.path)
        result.unwritten_rounds += series.trace.left_out
        try:
            series.trace.close(whole)
        except OSError as problem:
            result.problem = result.problem or _unwritten(problem)
