"""Searching drawn programs until the time is over: what is enumerated, what is drawn, how each is explored.

Small programs come first, size after size, each searched by DPOR; between them larger ones are drawn. A program that is
too large for DPOR within `SCHEDULES` is searched by PCT for as many runs more, and counts as sampled. What is found is
shrunk: acts, threads, things and callbacks are left out as long as the same clause is still broken, and then the
schedule is made small.

Time is CPU time of this process, so that a busy machine does not change what is found.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.drawn.act import Act, Drawn
from purgatorio_stress.drawn.draw import draw, enumerated, pairs_of
from purgatorio_stress.drawn.player import AT, Vocabulary
from purgatorio_stress.drawn.registry import VOCABULARIES, scenario_of
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.endless import NoEnd, bounded_cpu
from purgatorio_stress.explorer.minimise import minimise
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import BadToken, Replay, Token, replay
from purgatorio_stress.explorer.result import Exploration, Found, Limits
from purgatorio_stress.explorer.sampling import explore_pct
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.grade import Grade
from purgatorio_stress.scenario.outcome import Outcome

SCHEDULES: Final = 150
"""Runs of DPOR for one program, and of PCT for one that has more."""

T = TypeVar("T")

_SECONDS: Final = 2.0
_NO_END_S: Final = 4.0
_SHRINKING_S: Final = 6.0
_LARGEST: Final = 6


@dataclass(frozen=True, slots=True)
class DrawnFound:
    """A program that broke something, made small; `at`: the number of the program; `first`: as it was drawn."""

    program: Drawn
    dialect: str
    found: Found
    at: int
    cpu_seconds: float
    first: Drawn
    run: Replay | None = None
    mutant: int = 0

    @property
    def token(self) -> Token:
        """What repeats it."""
        return Token(str(self.program), self.dialect, self.mutant, self.found.schedule)

    def as_json(self) -> dict[str, object]:
        """As one scenario of `purgatorio explore --json`."""
        first = self.found.broken[0]
        violation: dict[str, object] = {
            "clause": first.clause,
            "seen": first.seen,
            "steps": len(self.found.schedule),
        }
        violation["preemptions"] = self.found.preemptions
        again = ""
        if self.run is not None:
            violation["token"] = str(self.token)
            again = f"purgatorio explore --replay {self.token}"
        line = Outcome(first.seen, 1, None, Grade.FORBIDDEN, first.clause, again)
        return {
            "scenario": f"{self.program}/{self.dialect}",
            "verdict": str(Verdict.VIOLATED),
            "strategy": "drawn",
            "schedules": self.at,
            "mutant": self.mutant,
            "outcomes": [line.as_json()],
            "violations": [violation],
        }


@dataclass
class DrawnSearch:
    """What a search came to. `sizes`: for each subject and dialect the size up to which all programs were searched, and
    how many of the next one. `met`: for each subject which acts have met at which
    places, and in how many runs: one was before a place (a shared object) when the other began."""

    seed: int
    programs: int = 0
    enumerated: int = 0
    complete: int = 0
    sampled: int = 0
    schedules: int = 0
    cpu_seconds: float = 0.0
    found: DrawnFound | None = None
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    met: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """VIOLATED, else UNKNOWN: a sample is never a pass."""
        return Verdict.VIOLATED if self.found else Verdict.UNKNOWN

    def as_json(self) -> dict[str, object]:
        """The member `drawn` of `purgatorio explore --drawn --json`."""
        return {
            "seed": self.seed,
            "programs": self.programs,
            "enumerated": self.enumerated,
            "complete": self.complete,
            "sampled": self.sampled,
            "schedules": self.schedules,
            "cpu_seconds": round(self.cpu_seconds, 3),
            "sizes": {
                name: {"complete": size, "of_the_next": more} for name, (size, more) in self.sizes.items()
            },
            "met": {name: dict(met.most_common()) for name, met in self.met.items()},
        }

    def lines(self) -> Iterator[str]:
        """The same for people."""
        yield (
            f"{self.verdict!s:9} {self.programs:,} programs with seed {self.seed}, {self.enumerated:,} of them "
            f"enumerated; {self.complete:,} searched completely, {self.sampled:,} by a sample; "
            f"{self.schedules:,} schedules in {self.cpu_seconds:.1f} s of CPU"
        )
        for name, met in self.met.items():
            size, more = self.sizes.get(name, (0, 0))
            yield (
                f"          {name}: all programs of up to {size} acts, {more:,} of {size + 1}; "
                f"{len(set(map(_pair_of, met))):,} pairs of acts met at {len(met):,} places"
            )
        if self.found is not None:
            yield f"          broken by program {self.found.at} after {self.found.cpu_seconds:.1f} s; made small:"
            for line in self.found.program.lines():
                yield f"            {line}"
            for broken in self.found.found.broken[:3]:
                yield f"            {broken.clause}: {broken.subject}: {broken.seen}"


def search_drawn(
    seconds: float,
    seed: int = 0,
    subjects: Sequence[str] = (),
    *,
    mutant: int = 0,
    memory: tuple[object, ...] = (),
    shrink: bool = True,
) -> DrawnSearch:
    """Search until something is broken, or so many CPU seconds are over. KeyError for an unknown subject.

    `memory`: containers outside of the programs that the code under test uses (see `ScenarioProgram`)."""
    chosen = [VOCABULARIES[name] for name in subjects] or list(VOCABULARIES.values())
    result = DrawnSearch(seed)
    start = time.process_time()
    sources = [
        _Source(vocabulary, dialect, seed, result) for vocabulary in chosen for dialect in vocabulary.dialects
    ]
    turn = 0
    while time.process_time() - start < seconds and result.found is None:
        source = min(sources, key=lambda one: one.share)
        turn += 1
        drawn = source.next()
        begun = time.process_time()
        done = explore_program(drawn, source.dialect, seed + turn, memory)
        source.spend(time.process_time() - begun, done.marks)
        result.programs += 1
        result.schedules += done.schedules
        result.complete += done.complete
        result.sampled += not done.complete
        if done.found:
            found_s = time.process_time() - start
            result.found = (
                _shrunk(drawn, source.dialect, done.found[0], turn, found_s, seed, mutant, memory)
                if shrink
                else DrawnFound(drawn, source.dialect, done.found[0], turn, found_s, drawn, None, mutant)
            )
    result.cpu_seconds = time.process_time() - start
    return result


def _pair_of(mark: str) -> tuple[str, str]:
    one, _, other = mark.split(AT)
    return min(one, other), max(one, other)


class _Source:
    """The programs of one subject and dialect: two drawn for each enumerated one.

    `share`: the seconds that it has had, by its weight; whoever has had least is next."""

    def __init__(self, vocabulary: Vocabulary, dialect: str, seed: int, result: DrawnSearch) -> None:
        self.dialect = dialect
        self._vocabulary = vocabulary
        self._name = f"{vocabulary.name}/{dialect}" if len(vocabulary.dialects) > 1 else vocabulary.name
        self._dice = random.Random(f"{seed} {self._name}")
        self._result = result
        self._small = self._all_small()
        self._turn = 0
        self.share = 0.0
        self._met = result.met.setdefault(self._name, Counter())
        self._known: Counter[tuple[str, str]] = Counter()

    def spend(self, seconds: float, met: Counter[str]) -> None:
        """A program of it has taken so long, and its acts have met so."""
        self.share += seconds / self._vocabulary.weight
        self._known.update(_pair_of(mark) for mark in met if mark not in self._met)
        self._met.update(met)

    def next(self) -> Drawn:
        """One more."""
        self._turn += 1
        drawn = next(self._small, None) if self._turn % 3 == 0 else None
        if drawn is None:
            drawn = draw(self._vocabulary, self.dialect, self._dice, self._worth)
        else:
            self._result.enumerated += 1
        self._known.update(pairs_of(drawn))
        return drawn

    def _worth(self, pair: tuple[str, str]) -> float:
        """What has never met first, then what has met at few places, or was seldom tried."""
        return 1 / (1 + self._known[pair])

    def _all_small(self) -> Iterator[Drawn]:
        for size in range(1, _LARGEST):
            for done, drawn in enumerate(enumerated(self._vocabulary, self.dialect, size), 1):
                self._result.sizes[self._name] = (size - 1, done)
                yield drawn
            self._result.sizes[self._name] = (size, 0)


def explore_program(
    drawn: Drawn, dialect: str, seed: int = 0, memory: tuple[object, ...] = (), schedules: int = SCHEDULES
) -> Exploration:
    """One program: by DPOR, and by PCT where that does not come to its end. Code that turns for ever is P3."""
    program = ScenarioProgram(scenario_of(drawn), dialect, memory=memory)
    try:
        with bounded_cpu(_NO_END_S):
            done = explore_dpor(program, Limits(schedules, _SECONDS))
            if not done.complete and not done.found:
                more = explore_pct(program, Limits(schedules // 2, _SECONDS), seed)
                done.schedules += more.schedules
                done.found += more.found
            done.marks = Counter({mark: runs for mark, runs in program.marks.items() if AT in mark})
            return done
    except NoEnd as error:
        return _found_outside(Broken("P3", "code", str(error)))
    except Exception as error:
        # The set-up, or the end, of a program whose code is broken.
        return _found_outside(Broken("O8", "program", f"{type(error).__name__}: {error}"))


def _found_outside(broken: Broken) -> Exploration:
    return Exploration("dpor", "", schedules=1, found=[Found((broken,), (), 0, 1)])


def _shrunk(
    drawn: Drawn,
    dialect: str,
    found: Found,
    at: int,
    seconds: float,
    seed: int,
    mutant: int,
    memory: tuple[object, ...],
) -> DrawnFound:
    """The smallest program that still breaks the clause, as far as leaving out one thing after the other leads."""
    start = time.process_time()
    small, best = drawn, found
    progress = True
    while progress and time.process_time() - start < _SHRINKING_S:
        progress = False
        for candidate in _smaller(small):
            vocabulary = VOCABULARIES[candidate.subject]
            if not vocabulary.legal(candidate, dialect):
                continue
            done = explore_program(candidate, dialect, seed, memory)
            same = [one for one in done.found if one.clause == found.clause]
            if same:
                small, best, progress = candidate, same[0], True
                break
            if time.process_time() - start > _SHRINKING_S:
                break
    run = None
    if best.schedule:
        program = ScenarioProgram(scenario_of(small), dialect, memory=memory)
        try:
            with bounded_cpu(_NO_END_S):
                best = minimise(program, best)
                run = replay(program, best.schedule)
        except (BadToken, NoEnd):
            run = None
    return DrawnFound(small, dialect, best, at, seconds, drawn, run, mutant)


def _smaller(drawn: Drawn) -> Iterator[Drawn]:
    """Each with one thing less."""
    for at in range(len(drawn.threads)):
        if len(drawn.threads) > 1:
            yield replace(drawn, threads=_without(drawn.threads, at))
    for at in range(len(drawn.callbacks)):
        yield replace(drawn, callbacks=_without(drawn.callbacks, at))
    for at in range(len(drawn.before)):
        yield replace(drawn, before=_without(drawn.before, at))
    for number, acts in enumerate(drawn.threads):
        for at in range(len(acts)):
            rest = _without(acts, at)
            threads = (*drawn.threads[:number], *([rest] if rest else []), *drawn.threads[number + 1 :])
            if threads:
                yield replace(drawn, threads=threads)
    last = len(drawn.things) - 1
    vocabulary = VOCABULARIES[drawn.subject]
    if last > 0 and not any(last in _things_of(vocabulary, act) for act in drawn.acts()):
        yield replace(
            drawn,
            things=drawn.things[:last],
            callbacks=tuple(one for one in drawn.callbacks if one.thing != last),
        )
    for at, choices in enumerate(vocabulary.settings):
        if drawn.settings[at] != choices[0]:
            yield replace(drawn, settings=(*drawn.settings[:at], choices[0], *drawn.settings[at + 1 :]))


def _things_of(vocabulary: Vocabulary, act: Act) -> list[int]:
    verb = vocabulary.verb(act.do)
    return (
        []
        if verb is None
        else [n for domain, n in zip(verb.args, act.args, strict=True) if domain == "thing"]
    )


def _without(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return items[:at] + items[at + 1 :]
