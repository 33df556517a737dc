"""Outcome tables like those of jcstress: each outcome with its count and its grade (see `purgatorio_stress.printed`).

An outcome has the grade *unknown* in two cases: the explorer ran all interleavings without this outcome, or the round
was aborted.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from msgspec import convert

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.printed import Grade, Outcome, Raced
from purgatorio_stress.scenario.contract import Scenario
from purgatorio_stress.scenario.outcome import outcome_of, serial_outcomes

_KNOWN: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(
    files(__package__).joinpath("outcomes.toml").read_text("utf-8")
)
SERIAL: Final = {name: tuple(of["serial"]) for name, of in _KNOWN.items()}
"""The outcomes of a scenario whose tasks run one after the other, in every order."""
REACHABLE: Final = {name: frozenset(of["reachable"]) for name, of in _KNOWN.items() if "reachable" in of}
"""For each scenario that the explorer searched completely, all outcomes that it reached."""

_DIFFERENT: Final = 40
"""The maximum number of distinct outcomes in a table. The texts of a broken structure may vary much."""
_OTHERS: Final = "other forbidden outcomes"


@dataclass(slots=True)
class OutcomeTable:
    """The outcomes of the rounds of one scenario.

    `serial`: the outcomes without an interleaving. `reachable`: all possible outcomes, or None if unknown. `expected`:
    if a round violates several clauses, a clause in `expected` names the outcome, else the first violated clause.
    `again`: the command that repeats a batch.
    """

    name: str
    serial: frozenset[str]
    reachable: frozenset[str] | None
    expected: tuple[str, ...] = ()
    again: Callable[[int], str] | None = None
    rounds: int = 0
    overlapped: int = 0
    recorded_rounds: int = 0
    events: int = 0
    dropped: int = 0
    given_up: int = 0
    first_forbidden: str = ""
    first_batch: int = -1
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _overlaps: Counter[tuple[str, str]] = field(default_factory=Counter)
    _batches: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, scenario: Scenario, dialect: str) -> "OutcomeTable":
        name = f"{scenario.name}/{dialect}"
        known = SERIAL.get(name)
        # A file has the known outcomes. Computing them imports greenlet, which enables the GIL on free-threaded Python.
        serial = serial_outcomes(scenario, dialect) if known is None else frozenset(known)
        return cls(name, serial, REACHABLE.get(name))

    def add(self, labels: set[str], broken: list[Broken], overlapped: bool, batch: int, where: str) -> None:
        """Count a completed round of batch `batch`. `where` names the round."""
        self.rounds += 1
        self.overlapped += overlapped
        if broken:
            named = next((one for one in broken if one.clause in self.expected), broken[0])
            clause, text = named.clause, named.seen
            if self.first_batch < 0:
                self.first_batch, self.first_forbidden = batch, where
        else:
            clause, text = "", outcome_of(labels)
        key = (clause, text)
        if key not in self._counts and len(self._counts) >= _DIFFERENT:
            key = (clause, _OTHERS) if clause else ("", "other outcomes")
        self._counts[key] += 1
        self._batches.setdefault(key, batch)
        self._overlaps[key] += overlapped

    @property
    def outcomes(self) -> list[Outcome]:
        """The lines of the table: forbidden outcomes first, then by count."""
        lines = [
            Outcome(
                text,
                count,
                self._grade(clause, text),
                self._overlaps[clause, text],
                clause,
                self.again(self._batches[clause, text]) if clause and self.again is not None else "",
            )
            for (clause, text), count in self._counts.most_common()
        ]
        return sorted(lines, key=lambda line: (line.grade is not Grade.FORBIDDEN, -line.count))

    @property
    def forbidden(self) -> int:
        return sum(count for (clause, _), count in self._counts.items() if clause)

    @property
    def window_hit(self) -> bool:
        """Whether two threads ran at the same time in some round. Otherwise the rounds test no interleaving."""
        return self.overlapped > 0

    @property
    def verdict(self) -> Verdict:
        """The verdict on these rounds only."""
        if self.forbidden:
            return Verdict.VIOLATED
        if not self.rounds or not self.window_hit or self.given_up or self.dropped:
            return Verdict.UNKNOWN
        grades = {line.grade for line in self.outcomes}
        return Verdict.UNKNOWN if Grade.UNKNOWN in grades else Verdict.PASS

    def printed(self) -> Raced:
        """One element of `scenarios` of `purgatorio stress --json`."""
        return convert(self, Raced, from_attributes=True)

    def _grade(self, clause: str, text: str) -> Grade:
        if clause:
            return Grade.FORBIDDEN
        if text in self.serial:
            return Grade.ACCEPTABLE
        if self.reachable is not None and text not in self.reachable:
            return Grade.UNKNOWN
        return Grade.INTERESTING
