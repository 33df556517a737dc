"""Searches for a bug with random programs, within a time limit: chooses programs, and explores each.

Half of the time is for small programs, one size after another, and half is for larger random programs. DPOR
(`explorer.dpor`) searches each program, for at most `SCHEDULES` schedules (for some small programs, four times as
many). If DPOR reaches this limit, PCT (`explorer.sampling`) runs `SCHEDULES` / 2 more schedules. Then the program
counts as sampled, not as completely searched. Time is CPU time of this process, so the result does not depend on other
processes.

The minimization removes or simplifies calls, threads, objects, callbacks and settings, as long as the same clause is
violated, and neither the program nor the run becomes longer. Then it minimizes the schedule.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from msgspec import convert

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.endless import NoEnd, bounded_cpu, process_kept
from purgatorio_stress.explorer.minimise import minimised
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import Replay, Token
from purgatorio_stress.explorer.result import BrokenExecution, Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_pct, explore_random
from purgatorio_stress.mutant.patch import SOUND, Bug
from purgatorio_stress.printed import DrawnSum, Enumeration, Explored
from purgatorio_stress.random_program.act import Act, Callback, Drawn, acts_of
from purgatorio_stress.random_program.draw import (
    calling_programs,
    draw,
    enumerated,
    mirrored_programs,
    pairs_of,
    plain_programs,
    raising_programs,
)
from purgatorio_stress.random_program.player import AT, Vocabulary
from purgatorio_stress.random_program.registry import VOCABULARIES, scenario_of
from purgatorio_stress.scenario.contract import ScenarioProgram

SCHEDULES: Final = 150
"""The limit of runs of DPOR for one program. PCT makes half as many."""

T = TypeVar("T")

_SECONDS: Final = 2.0
_NO_END_S: Final = 3 * _SECONDS
"""The limit of one search of a program, which reads its own limit, `_SECONDS`, only between runs."""
_SHRINKING_S: Final = 6.0
_LARGEST: Final = 6
_FAIR_TURNS: Final = 1_000
_FAIR_RUNS: Final = 3
_SIMPLE: Final = 3
"""The maximum number of values of a setting that the minimization tries."""
_PLAIN: Final = 4
"""The factor of the limit of schedules for plain programs."""


@dataclass(frozen=True, slots=True)
class DrawnFound:
    """A minimized program with a violation. `at`: the number of the program. `first`: the program before the
    minimization."""

    program: Drawn
    dialect: str
    found: BrokenExecution
    at: int
    cpu_seconds: float
    first: Drawn
    run: Replay | None = None
    bug: Bug = SOUND

    @property
    def token(self) -> Token:
        """The token of the violating run."""
        return Token(str(self.program), self.dialect, 0, self.found.schedule)

    def printed(self) -> Explored:
        """One scenario of `purgatorio explore --json`."""
        token = "" if self.run is None else str(self.token)
        return Explored(
            scenario=f"{self.program}/{self.dialect}",
            verdict=Verdict.VIOLATED,
            strategy="drawn",
            schedules=self.at,
            mutant=self.bug.name,
            outcomes=[self.found.outcome(1, token, self.bug)],
            violations=[self.found.shown(token)],
        )


@dataclass
class DrawnSearch:
    """The result of a search. `enumeration` and `met`: by subject and dialect. `met` has the number of runs for each
    label `act | place | other act`: the other act began while the act was paused before the place (a shared object)."""

    seed: int
    programs: int = 0
    enumerated: int = 0
    complete: int = 0
    sampled: int = 0
    schedules: int = 0
    cpu_seconds: float = 0.0
    refused: int = 0
    """The number of programs with a violation both with the bug and without it. These do not count as kills."""
    found: DrawnFound | None = None
    enumeration: dict[str, Enumeration] = field(default_factory=dict)
    met: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """VIOLATED, or UNKNOWN, because a sample proves nothing."""
        return Verdict.VIOLATED if self.found else Verdict.UNKNOWN

    def printed(self) -> DrawnSum:
        """The member `drawn` of `purgatorio explore --drawn --json`."""
        shape = convert(self, DrawnSum, from_attributes=True)
        shape.cpu_seconds = round(self.cpu_seconds, 3)
        shape.met = {name: dict(met.most_common()) for name, met in self.met.items()}
        return shape

    def lines(self) -> Iterator[str]:
        yield (
            f"{self.verdict!s:9} {self.programs:,} programs with seed {self.seed}, {self.enumerated:,} of them "
            f"enumerated; {self.complete:,} searched completely, {self.sampled:,} by a sample; "
            f"{self.schedules:,} schedules in {self.cpu_seconds:.1f} s of CPU"
        )
        for name, met in self.met.items():
            stage = self.enumeration.get(name, Enumeration((), "", 0))
            yield (
                f"          {name}: all programs of {', '.join(stage.complete) or 'none'}; {stage.of_the_next:,} of "
                f"{stage.next or 'none'}; {len(set(map(_pair_of, met))):,} pairs of acts met at {len(met):,} places"
            )
        if self.refused:
            yield f"          {self.refused:,} programs break the code without the bug too, and are not counted"
        if self.found is not None:
            yield f"          broken by program {self.found.at} after {self.found.cpu_seconds:.1f} s; minimized:"
            for line in self.found.program.lines():
                yield f"            {line}"
            for broken in self.found.found.broken[:3]:
                yield f"            {broken.clause}: {broken.subject}: {broken.seen}"


@process_kept()
def search_drawn(
    seconds: float,
    seed: int = 0,
    subjects: Sequence[str] = (),
    *,
    bug: Bug = SOUND,
    shrink: bool = True,
    races: bool = False,
) -> DrawnSearch:
    """Search until a violation is found, or `seconds` of CPU time are used. Raises KeyError for an unknown subject.

    `bug`: a mutant of the code under test. A violation counts only if the unchanged code passes the program. Otherwise
    the program counts as `refused`. `races`: data races are violations (see `ScenarioProgram`)."""
    of = _Asked(seed, bug, races)
    chosen = [VOCABULARIES[name] for name in subjects] or list(VOCABULARIES.values())
    result = DrawnSearch(seed)
    start = time.process_time()
    sources = [
        _Source(vocabulary, dialect, seed, result, 1 if subjects else vocabulary.weight)
        for vocabulary in chosen
        for dialect in vocabulary.dialects
    ]
    turn = 0
    while time.process_time() - start < seconds and result.found is None:
        source = min(sources, key=lambda one: one.share)
        turn += 1
        begun = time.process_time()
        drawn, schedules = source.next()
        done = of.explore(drawn, source.dialect, schedules, seed + turn)
        source.spend(time.process_time() - begun, done.labels)
        result.programs += 1
        result.schedules += done.schedules
        result.complete += done.complete
        result.sampled += not done.complete
        if done.found and not of.is_sound(drawn, source.dialect, schedules, seed + turn):
            result.refused += 1
        elif done.found:
            found_s = time.process_time() - start
            result.found = (
                _shrunk(drawn, source.dialect, done.found[0], turn, found_s, of)
                if shrink
                else DrawnFound(drawn, source.dialect, done.found[0], turn, found_s, drawn, None, bug)
            )
    result.cpu_seconds = time.process_time() - start
    return result


def _pair_of(label: str) -> tuple[str, str]:
    one, _, other = label.split(AT)
    return min(one, other), max(one, other)


class _Source:
    """The programs of one subject and dialect. Half of the time is for enumerated programs.

    `share`: the used seconds divided by the weight. The source with the smallest share is next. If the caller names the
    subjects, all weights are 1."""

    def __init__(
        self, vocabulary: Vocabulary, dialect: str, seed: int, result: DrawnSearch, weight: int
    ) -> None:
        self.dialect = dialect
        self._weight = weight
        self._vocabulary = vocabulary
        self._name = f"{vocabulary.name}/{dialect}" if len(vocabulary.dialects) > 1 else vocabulary.name
        self._rng = random.Random(f"{seed} {self._name}")
        self._result = result
        self._small = self._all_small()
        self._was_small = False
        self._ahead = 0.0
        """The CPU seconds of the enumerated programs minus those of the random programs."""
        self.share = 0.0
        self._met = result.met.setdefault(self._name, Counter())
        self._known: Counter[tuple[str, str]] = Counter()

    def spend(self, seconds: float, met: Counter[str]) -> None:
        """Record the CPU time of a program, and the labels of its concurrent acts."""
        self.share += seconds / self._weight
        self._ahead += seconds if self._was_small else -seconds
        self._known.update(_pair_of(label) for label in met if label not in self._met)
        self._met.update(met)

    def next(self) -> tuple[Drawn, int]:
        """The next program, and its limit of schedules."""
        small = next(self._small, None) if self._ahead <= 0 else None
        self._was_small = small is not None
        drawn, schedules = small or (draw(self._vocabulary, self.dialect, self._rng, self._worth), SCHEDULES)
        self._result.enumerated += self._was_small
        self._known.update(pairs_of(drawn))
        return drawn, schedules

    def _worth(self, pair: tuple[str, str]) -> float:
        """The worth of a pair of acts: highest for a pair that was never concurrent or tried, lower for each time."""
        return 1 / (1 + self._known[pair])

    def _all_small(self) -> Iterator[tuple[Drawn, int]]:
        of = self._vocabulary
        shapes = [("+".join(map(str, lengths)), lengths) for lengths in of.plain.shapes]
        plain = [(f"{name} plain", plain_programs(of, lengths)) for name, lengths in shapes]
        shifted = [
            (f"{name} shifted", plain_programs(of, lengths, of.plain.shifted))
            for name, lengths in (shapes[:2] if of.plain.shifted else ())
        ]
        every = [(f"{size} acts", enumerated(of, size)) for size in range(1, _LARGEST)]
        complete: tuple[str, ...] = ()
        for stage, programs in (
            ("mirrored", mirrored_programs(of)),
            *plain[:2],
            *shifted,
            *plain[2:3],
            ("calling", calling_programs(of)),
            ("raising", raising_programs(of, (2,))),
            ("1+1 raising", raising_programs(of, (1, 1))),
            *plain[3:],
            *every,
        ):
            schedules = _PLAIN * SCHEDULES if stage.endswith(" plain") else SCHEDULES
            legal = (drawn for drawn in programs if of.legal(drawn, self.dialect))
            for done, drawn in enumerate(legal):
                self._result.enumeration[self._name] = Enumeration(complete, stage, done)
                yield drawn, schedules
            complete = (*complete, stage)
        self._result.enumeration[self._name] = Enumeration(complete, "", 0)


def _limits(schedules: int) -> Limits:
    return Limits(schedules, _SECONDS, clock=time.process_time)


def explore_program(
    drawn: Drawn,
    dialect: str,
    seed: int = 0,
    memory: tuple[object, ...] = (),
    schedules: int = SCHEDULES,
    races: bool = False,
) -> Exploration:
    """Search one program by DPOR. If DPOR is not complete, also by PCT. An endless loop of the code violates P3."""
    program = ScenarioProgram(scenario_of(drawn), dialect, memory=memory, races=races)
    try:
        with bounded_cpu(_NO_END_S):
            done = explore_dpor(program, _limits(schedules))
        with bounded_cpu(_NO_END_S):
            if done.beyond == done.schedules > 0 and not done.found:
                # A loop that waits for another task ended every run. A random schedule lets the other task run.
                fair = ScenarioProgram(
                    replace(program.scenario, turns=_FAIR_TURNS), dialect, memory=memory, races=races
                )
                done.found = explore_random(fair, _limits(_FAIR_RUNS), seed).found
        with bounded_cpu(_NO_END_S):
            if not done.complete and not done.found:
                more = explore_pct(program, _limits(SCHEDULES // 2), seed)
                done.schedules += more.schedules
                done.found += more.found
            done.labels = Counter({label: runs for label, runs in program.labels.items() if AT in label})
            return done
    except NoEnd as error:
        return _found_outside(Broken("P3", "code", str(error)))
    except Exception as error:
        # The set-up or the final check of the program raised an exception of the code under test.
        return _found_outside(Broken("O8", "program", f"{type(error).__name__}: {error}"))


def _found_outside(broken: Broken) -> Exploration:
    return Exploration("dpor", "", schedules=1, found=[BrokenExecution((broken,), (), 0)])


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parameters of all programs of a search."""

    seed: int
    bug: Bug
    races: bool

    def explore(self, drawn: Drawn, dialect: str, schedules: int = SCHEDULES, seed: int = 0) -> Exploration:
        with self.bug.applied():
            return explore_program(drawn, dialect, seed or self.seed, self.bug.memory, schedules, self.races)

    def is_sound(self, drawn: Drawn, dialect: str, schedules: int = SCHEDULES, seed: int = 0) -> bool:
        """Whether the same search finds no violation without the bug. True if the search has no bug."""
        sound = replace(self, bug=SOUND)
        return self == sound or not sound.explore(drawn, dialect, schedules, seed).found


def _shrunk(
    drawn: Drawn, dialect: str, found: BrokenExecution, at: int, seconds: float, of: _Asked
) -> DrawnFound:
    """Minimize a program by single changes, as long as the same clause is violated. A change must reduce the size of
    the program, or the length of the run at the same size."""
    start = time.process_time()
    small, best = drawn, found
    progress = True
    while progress and time.process_time() - start < _SHRINKING_S:
        progress = False
        for candidate in _smaller(small):
            if not VOCABULARIES[candidate.subject].legal(candidate, dialect):
                continue
            done = of.explore(candidate, dialect, _PLAIN * SCHEDULES)
            same = [one for one in done.found if one.clause == found.clause]
            if (
                same
                and _measure(candidate, same[0]) < _measure(small, best)
                and of.is_sound(candidate, dialect, _PLAIN * SCHEDULES)
            ):
                small, best, progress = candidate, same[0], True
                break
            if time.process_time() - start > _SHRINKING_S:
                break
    run = None
    if best.schedule:
        program = ScenarioProgram(scenario_of(small), dialect, memory=of.bug.memory, races=of.races)
        with of.bug.applied():
            best, run = minimised(program, best)
    return DrawnFound(small, dialect, best, at, seconds, drawn, run, of.bug)


def _measure(drawn: Drawn, found: BrokenExecution) -> tuple[int, int, int]:
    return drawn.size(), len(drawn.things), len(found.schedule)


def _smaller(drawn: Drawn) -> Iterator[Drawn]:
    """Yield the programs with one part removed, then the programs with one part simplified."""
    vocabulary, threads = VOCABULARIES[drawn.subject], drawn.threads
    for at in range(len(threads) if len(threads) > 1 else 0):
        yield replace(drawn, threads=_with(threads, at))
    for at in range(len(drawn.callbacks)):
        yield replace(drawn, callbacks=_with(drawn.callbacks, at))
    for at in range(len(drawn.before)):
        yield replace(drawn, before=_with(drawn.before, at))
    for number, acts in enumerate(threads):
        for at in range(len(acts)):
            rest = _with(acts, at)
            if rest or len(threads) > 1:
                yield replace(drawn, threads=_with(threads, number, *filter(None, (rest,))))
    used = {thing for act in drawn.acts() for thing in vocabulary.things_of(act)}
    for thing in range(len(drawn.things)):
        if thing not in used and len(drawn.things) > 1:
            yield _without_thing(drawn, thing)
    plain = acts_of(f"{vocabulary.plain.acts},{vocabulary.plain.before}")
    for number, acts in enumerate(threads):
        for at, act in enumerate(acts):
            for other in plain:
                if other != act and vocabulary.things_of(other) == vocabulary.things_of(act):
                    yield replace(drawn, threads=_with(threads, number, _with(acts, at, other)))
    for at, choices in enumerate(vocabulary.settings):
        for choice in [*dict.fromkeys(choices)][:_SIMPLE]:
            if drawn.settings[at] != choice:
                yield replace(drawn, settings=_with(drawn.settings, at, choice))
    for thing, numbers in enumerate(drawn.things):
        for at, choices in enumerate(vocabulary.thing):
            if numbers[at] != choices[0]:
                yield replace(drawn, things=_with(drawn.things, thing, _with(numbers, at, choices[0])))


def _without_thing(drawn: Drawn, thing: int) -> Drawn:
    """Remove a thing that no act uses. The numbers of later things decrease by 1."""

    def moved(act: Act) -> Act:
        return VOCABULARIES[drawn.subject].renumbered(
            act, lambda domain, n: n - (domain == "thing" and n > thing)
        )

    return replace(
        drawn,
        things=_with(drawn.things, thing),
        before=tuple(map(moved, drawn.before)),
        threads=tuple(tuple(map(moved, acts)) for acts in drawn.threads),
        callbacks=tuple(
            Callback(one.slot, one.thing - (one.thing > thing), moved(one.act))
            for one in drawn.callbacks
            if one.thing != thing
        ),
    )


def _with(items: tuple[T, ...], at: int, *new: T) -> tuple[T, ...]:
    """The items with `new` instead of the item `at`."""
    return (*items[:at], *new, *items[at + 1 :])
