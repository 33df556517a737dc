"""Joins recorded rounds into the trace of one run.

Every round has, for example, an operation `op` and a key `k`, but the names in one trace must differ. So the number of
the round is added to each name, and each round gets its own second of time. Rounds that ran at the same time come one
after another in the trace, because they share no data.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from purgatorio_spec.trace.record import MAX_INT, Event
from purgatorio_spec.trace.trace_file import run_of_file
from purgatorio_spec.trace.writer import TraceWriter
from purgatorio_stress.harness.stage import RoundLog
from purgatorio_stress.scenario.contract import Scenario, header_of

_SPAN_NS: Final = 1_000_000_000
"""The time span of one round in the trace, longer than the virtual time of any scenario."""

MOST_EVENTS: Final = 2_000_000
"""The maximum number of events in a file (about 250 MB), so that a long soak does not fill the disk. Later rounds are
judged, but not written."""


class RoundTrace:
    """Writes the rounds of one scenario. Raises OSError if the file cannot be written.

    `left_out`: the number of rounds after MOST_EVENTS events. The file has only whole rounds.
    """

    def __init__(self, path: Path, scenario: Scenario, dialect: str, seed: int) -> None:
        header = header_of(scenario, dialect)
        run = run_of_file(path)
        self.path = path
        self.left_out = 0
        self._writer = TraceWriter(
            path, replace(header, run=run, params={"seed": seed, "rounds": "numbered"})
        )
        self._rounds = 0
        self._next_i = 0

    def write(self, log: RoundLog) -> None:
        """Add a round whose threads have ended, or were abandoned."""
        if self._writer.events >= MOST_EVENTS:
            self.left_out += 1
            return
        number, first_i = self._rounds, self._next_i
        self._rounds += 1
        self._writer.dropped += log.dropped
        for event in log.events():
            self._writer.write(_renamed(event, first_i, number))
            self._next_i = first_i + event.i + 1

    def flush(self) -> None:
        """Write the buffer to the file, so that the rounds survive a kill of the process."""
        self._writer.flush()

    def close(self, whole: bool) -> None:
        """Finish the trace. If the run was interrupted, without an end record, so that the trace does not look
        complete."""
        self._writer.close(whole=whole)


def _renamed(event: Event, first_i: int, number: int) -> Event:
    first_t = number * _SPAN_NS
    return Event(
        event.i + first_i,
        event.th,
        event.t + first_t,
        event.ph,
        event.f,
        None if event.id is None else f"{event.id}@{number}",
        None if event.c is None else event.c + first_i,
        None if event.keys is None else tuple(f"{key}@{number}" for key in event.keys),
        event.delay_ns,
        None if event.deadline_t is None else min(MAX_INT, event.deadline_t + first_t),
        None if event.t_call is None else event.t_call + first_t,
        event.out,
        event.err,
        event.state,
    )
