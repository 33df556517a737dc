"""The state of a watch after a batch: the open runs, their violations so far, and the verdicts of closed runs.

Each batch writes the state as a manifest of the watch's folder, and the runs that it closed as a file, which the
manifests name from then on. If a batch is killed, the previous manifest is still valid. A repeated batch writes an
equal state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Clause, Run, Watch
from purgatorio_pipeline.watch.follow import Followed
from purgatorio_pipeline.watch.segments import Segment
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import subject_of
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Verdict, Violation, worst

KIND: Final = "watch"
CLOSED: Final = "closed"
LAST: Final = 1 << 40
MAX_SUBJECTS: Final = 100_000
"""The maximum number of distinguished violating operations of an open run. Further ones are counted at its close."""


@dataclass(slots=True)
class OpenRun:
    """A run whose end or some of whose events have not arrived yet.

    `found`: by clause and cause, the violating operations so far, each with its batch. `shown`: for each cause, the
    first operation, and its allowed and seen behavior.
    """

    run: str
    header: Header
    file: str
    first_batch: int
    events: int = 0
    broken: int = 0
    first_broken: str = ""
    dropped: int = 0
    declared: int | None = None
    odd: str = ""
    last_i: dict[str, int] = field(default_factory=dict)
    """By Kafka partition, the `i` of the last event. Later events have a higher `i`."""
    found: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    shown: dict[str, list[str]] = field(default_factory=dict)
    followed: Followed = field(default_factory=Followed)

    def take(self, segment: Segment) -> None:
        self.events += segment.events
        self.broken += segment.broken
        self.first_broken = self.first_broken or segment.first_broken
        self.dropped += segment.dropped
        if segment.partition:
            self.last_i[segment.partition] = segment.last_i
        if segment.declared is not None:
            self.declared = segment.declared
        if segment.header is not None and segment.header != self.header:
            self.odd = self.odd or f"{segment.file} has another header than {self.file}"
        if segment.cut:
            self.odd = self.odd or f"{segment.file}: {segment.cut}"

    @property
    def closed(self) -> bool:
        return self.declared is not None and self.events + self.broken >= self.declared

    def add(self, violation: Violation, batch: int) -> bool:
        """Record a violating operation. False if it was known."""
        causes = self.found.setdefault(violation.clause, {})
        subjects = causes.setdefault(violation.cause, {})
        if violation.subject in subjects or sum(map(len, causes.values())) >= MAX_SUBJECTS:
            return False
        if not subjects:
            self.shown[f"{violation.clause} {violation.cause}"] = [
                violation.subject, violation.allowed, violation.seen,
            ]  # fmt: skip
        subjects[violation.subject] = batch
        return True

    def printed(self) -> Run:
        """The run in the public format of `check`, marked as open."""
        clauses = {
            name: Clause(
                _open_verdict(name in self.found), sum(map(len, self.found.get(name, {}).values())), 0
            )
            for name, clause in CLAUSES.items()
            if clause.is_asked(self.header) or name in self.found
        }
        waits = (
            "no end record yet" if self.declared is None else f"{self.declared - self.events} events to come"
        )
        return Run(
            self.run,
            self.file,
            subject_of(self.header),
            self.header.profile,
            _open_verdict(bool(self.found)),
            self.events,
            clauses,
            (f"open: {waits}", *([self.odd] if self.odd else [])),
            open=True,
        )


def _open_verdict(broken: bool) -> Verdict:
    return Verdict.VIOLATED if broken else Verdict.UNKNOWN


@dataclass(slots=True)
class WatchState:
    """The state after batch `batch` (-1: before the first): open runs by name, and results of closed runs in order."""

    batch: int = -1
    runs: dict[str, OpenRun] = field(default_factory=dict)
    closed: list[Run] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    """By Kafka partition, the first offset that is not processed yet."""
    closed_in: dict[str, int] = field(default_factory=dict, compare=False)
    """The files of the closed runs, each with their number. A closed run does not change, so it is written once."""

    def save(self, lake: Lake) -> None:
        """Commit the state. Raises OSError."""
        if fresh := self.closed[sum(self.closed_in.values()) :]:
            name = lake.unused(self.batch)
            lake.write_bytes(f"{CLOSED}/{name}.json", encoded(fresh))
            self.closed_in[name] = len(fresh)
        lake.commit(self.batch, replace(self, closed=[]))

    def printed(self) -> Watch:
        runs = [*self.closed, *(run.printed() for run in self.runs.values())]
        return Watch(worst(run.verdict for run in runs), self.batch, runs)


def load_before(lake: Lake, batch: int = LAST, read: dict[str, list[Run]] | None = None) -> WatchState:
    """The state before batch `batch`, which is the state after the last earlier batch. `read`: the files of closed runs
    that were read before. Raises `Unreadable`, OSError."""
    earlier = [number for number in lake.manifests() if number < batch]
    state = lake.manifest(earlier[-1], WatchState) if earlier else WatchState()
    read = {} if read is None else read
    for name in state.closed_in:
        if name not in read:
            read[name] = decoded(lake.read_bytes(f"{CLOSED}/{name}.json") or b"", list[Run])
        state.closed += read[name]
    return state
