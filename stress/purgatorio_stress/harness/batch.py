"""A batch: rounds of one scenario with the same settings. Crews (groups of threads) run the rounds. Afterwards the
rounds are judged."""

import gc
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from purgatorio_stress.explorer.history_judge import HistoryJudge
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.harness.crew import Crew
from purgatorio_stress.harness.noise import Noise
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.round import Round, RoundMaker
from purgatorio_stress.harness.round_trace import RoundTrace
from purgatorio_stress.harness.seam import StopFlag
from purgatorio_stress.harness.settings import Settings, applied
from purgatorio_stress.harness.watchdog import Watchdog
from purgatorio_stress.printed import Stuck
from purgatorio_stress.scenario.contract import Scenario, ScenarioProgram
from purgatorio_stress.scenario.parts import REFERENCE, Parts

BEAT_S: Final = 1.0
PATIENCE_BEATS: Final = 15

Wait = Callable[[threading.Thread], None]
"""Waits for the end of a thread for a limited time. Each return with the thread alive is a beat of the watchdog."""


def waited(thread: threading.Thread) -> None:
    """Wait at most BEAT_S for the end of the thread."""
    thread.join(BEAT_S)


@dataclass(slots=True)
class Series:
    """The batches of one scenario in a run, and their results."""

    scenario: Scenario
    dialect: str
    table: OutcomeTable
    trace: RoundTrace | None = None
    batches: int = 0
    histories: HistoryJudge = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop the histories that are known."""
        self.histories = ScenarioProgram(self.scenario, self.dialect).histories


@dataclass(slots=True)
class Batch:
    """Batch number `number` of a run with the seed `seed`. Both determine all random choices of the batch."""

    series: Series
    number: int
    seed: int
    settings: Settings
    stop: StopFlag
    wait: Wait = waited
    patience: int = PATIENCE_BEATS
    parts: Parts = REFERENCE

    def run(self) -> Stuck | None:
        """Run, judge, count and write the rounds. Returns the stuck round, or None. Raises OSError of the trace.

        A KeyboardInterrupt ends the batch. The rounds that have ended are counted and written first.
        """
        collecting = gc.isenabled()
        # A garbage collection during a race would stop the race, and would visit all rounds without finding garbage.
        gc.disable()
        try:
            return self._run()
        finally:
            # The rounds are cycles in the youngest generation, so this collection is fast in any process.
            gc.collect(0)
            if collecting:
                gc.enable()

    @property
    def _name(self) -> str:
        return f"{self.series.scenario.name}/{self.series.dialect}"

    def _run(self) -> Stuck | None:
        settings, series, table = self.settings, self.series, self.series.table
        noise = Noise() if settings.yields else None
        maker = RoundMaker(series.scenario, series.dialect, self.stop, settings.calls, noise, self.parts)
        # The seed text of the random choices.
        key = f"{self.seed}/{self._name}/{self.number}"
        crews = [
            Crew(
                number,
                [maker.make(settings.recorded) for _ in range(settings.rounds)],
                key,
                settings.spin,
                self.stop,
                noise,
                settings.yields,
            )
            for number in range(settings.crews)
        ]
        stuck: Stuck | None = None
        try:
            with applied(settings):
                stuck = self._race(crews)
        except KeyboardInterrupt:
            self.stop.asked = True
            for thread in (thread for crew in crews for thread in crew.threads if thread.is_alive()):
                thread.join(BEAT_S)
            raise
        finally:
            self._judge(crews)
        if stuck is not None:
            table.add(set(), [Broken("P3", "round", "stuck: no progress")], True, self.number, stuck.where)
            table.given_up -= 1
        return stuck

    def _race(self, crews: list[Crew]) -> Stuck | None:
        for crew in crews:
            crew.start()
        threads = [thread for crew in crews for thread in crew.threads]
        dog = Watchdog(lambda: sum(crew.progress() for crew in crews), self.patience)
        for thread in threads:
            while thread.is_alive():
                self.wait(thread)
                if thread.is_alive() and dog.beat():
                    return self._stuck(crews, dog)
        return None

    def _stuck(self, crews: list[Crew], dog: Watchdog) -> Stuck:
        """Report the crew with the least progress. Other crews may be stuck too. No crew is waited for."""
        crew = min(crews, key=lambda one: one.ended)
        number = crew.ended
        seen = dog.threads(crew.threads)
        self.stop.asked = True
        held = crew.rounds[number].sync.held() if number < len(crew.rounds) else []
        where = self.where(crew.number, number)
        return Stuck(self._name, seen, f"{where}; {self.settings.text}", dog.beats, tuple(held))

    def where(self, crew: int, number: int) -> str:
        """The text that names a round in reports."""
        return f"seed {self.seed}, batch {self.number}, crew {crew}, round {number}"

    def _judge(self, crews: list[Crew]) -> None:
        table = self.series.table
        for crew in crews:
            ended = crew.ended
            for number, one in enumerate(crew.rounds[:ended]):
                broken = one.judged(self.series.histories)
                where = self.where(crew.number, number)
                table.add(one.world.labels, broken, number in crew.overlapped, self.number, where)
                self._keep(one)
            table.given_up += len(crew.rounds) - ended
            if ended < len(crew.rounds):
                # The round did not end, so it has only the events so far.
                self._keep(crew.rounds[ended])
        if self.series.trace is not None:
            self.series.trace.flush()

    def _keep(self, one: Round) -> None:
        if one.log is None:
            return
        table, trace = self.series.table, self.series.trace
        table.recorded_rounds += 1
        table.dropped += one.log.dropped
        table.events += one.log.recorded
        if trace is not None:
            trace.write(one.log)


def rng_of(seed: int, scenario: str, number: int) -> random.Random:
    """The random generator of the settings of a batch."""
    return random.Random(f"{seed}/{scenario}/{number}/settings")
