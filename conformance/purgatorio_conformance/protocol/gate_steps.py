"""Pauses one call of a program at each of its scheduling points (steps), while the other callers make their calls.

The subject counts the steps in its own code. On a JVM, each line is a step. In further executions, the driver pauses
two calls: the first call in a callback, and then the second call at one of its steps. Then it resumes the first call
before the second. There is one execution for every step of the second call, including steps that it reaches only while
the first call is paused. Beside a call that advances the clock, the first call is also paused at some of its own steps.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from purgatorio_conformance.protocol.lines import Lines, LineStep
from purgatorio_conformance.protocol.message import STEP, Gauge, Ready
from purgatorio_conformance.protocol.played_order import (
    BROKEN,
    NO_LINE,
    NO_LINE_OF_ITS_OWN,
    NO_NEW_LINE,
    STEPS_MOST,
    TIMES_MOST,
    TOO_MANY,
    Orders,
    PausedCall,
    PlayedOrder,
)
from purgatorio_conformance.protocol.plays import Play, Plays
from purgatorio_conformance.protocol.small_program import (
    Expiry,
    Inside,
    LaneCall,
    SmallProgram,
    Stepped,
    Until,
)

STEPS_S: Final = 1_800.0
"""The time limit in seconds. Only an endless run reaches it, and is then cut short and UNKNOWN."""

_TWICE_WITHIN: Final = 60
"""If the subject counts steps, pairs of pauses (of one call, or of two calls) use only this many first steps."""

_AHEAD_MOST: Final = 6
"""One caller's call is paused at this many of its lines, for each line of another caller's call. If steps are counted,
their number is not known: the call is paused at this many first steps, and at as many later ones."""

_WATCHING: Final = 0.3
"""On a JVM, about this share of the time passes before the first pause: the lines of each program are watched."""

_UNSTOPPED: Final = 0.2
"""In this share of the random programs, no call is paused at a step."""

_TWO_STEPS: Final = 0.3
"""In this share of the other random programs, the call is paused at two steps, if it reaches both."""

_STARTED_MOST: Final = 24
"""In real time, a program starts the subject again at most this often: each start may make threads with new names."""

_WATCHED_MOST: Final = 3
"""If no line of a call is reported, the driver watches the call at most this often."""


def _told_apart(point: LineStep, times: int = TIMES_MOST) -> bool:
    """Whether a pause here is useful: not in a constructor, not in generated code, and only `times` times at one
    line."""
    made = point.line.method.endswith(("<init>", "<clinit>"))
    return bool(point.line.written) and not made and point.nth <= times


def _plays_about(program: SmallProgram) -> int:
    """The approximate number of executions for each call, if steps are counted."""
    return _TWICE_WITHIN**2 // 2 if program.schedule is Stepped.FIRST_TWICE else 2 * _TWICE_WITHIN


def _new_places(
    programs: Sequence[SmallProgram], plans: Sequence[Iterable[PausedCall]]
) -> Iterator[list[PausedCall]]:
    """Of the enumerated programs, keep only new stops: no earlier program pauses such a call at this line together with
    calls of the same kinds."""
    seen: set[object] = set()
    for program, stops in zip(programs, plans, strict=True):
        new: list[PausedCall] = []
        for stop in stops:
            other = frozenset(
                type(call) for lane, calls in enumerate(program.lanes) if lane != stop.lane for call in calls
            )
            call = type(program.lanes[stop.lane][stop.place])
            met = {(point.at, point.thread, call, other, stop.other_at) for point in stop.points}
            if not program.enumerated or not met <= seen:
                new.append(stop)
                seen |= met
        yield new


class Steps:
    """The executions in which a call is paused at its steps. `tell` receives the approximate share done."""

    def __init__(self, plays: Plays, tell: Callable[[float], None] = lambda share: None) -> None:
        self._plays = plays
        self.tell = tell
        self._stops_made = 0
        self._known: dict[type[LaneCall], list[int]] = {}
        """On a JVM, the lines that calls reached, by the kind of call."""

    def again(self, programs: Sequence[SmallProgram], stop: PausedCall) -> None:
        """Start the subject again, and run each program with this stop."""
        gates = self._gates()
        self._plays.start(gates)
        for program in programs:
            self._stopped_at(program, self.found_again(program, stop, gates))
        self._plays.come_to_rest()

    def drive(self, programs: Sequence[SmallProgram], *, beside: bool) -> Iterator[Orders]:
        """Pause each call of the programs at each of its steps. If `beside`, another caller is paused at a pause point
        meanwhile."""
        lines, stepped = self._plays.lines, self.stepped(programs)
        pairs = [(one, "") for one in stepped]
        if beside:
            pairs = [(one, place) for one in stepped for place in one.stands_at(self._plays.description)]
        gates = (*self._gates(), *dict.fromkeys(place for _, place in pairs if place))
        plans: Sequence[Iterable[PausedCall]] = [self._counted(*pair) for pair in pairs]
        if lines is not None and pairs:
            plans = [*self._at_lines(lines, [(one, "") for one in stepped], self._gates())]
            if beside:
                # While the first lane is at its gate, a call comes to other lines as well.
                plans = self._known_beside(lines, dict(zip(stepped, plans, strict=True)), pairs, gates)
            plans = [*_new_places([program for program, _ in pairs], plans)]
        # Watched threads stay slow; a new run has new threads.
        self._plays.start(gates)
        until_s = time.monotonic() + STEPS_S
        # If steps are counted, their number is known only after all executions.
        sizes = [
            len(stops) if isinstance(stops, list) else len([*program.stepped()]) * _plays_about(program)
            for (program, _), stops in zip(pairs, plans, strict=True)
        ]
        first, done = _WATCHING if lines is not None and pairs else 0.0, 0

        def told(before: int, size: int, plays: int) -> None:
            self.tell(first + (1 - first) * (before + min(plays, size)) / max(1, sum(sizes)))

        for (program, _), stops, size in zip(pairs, plans, sizes, strict=True):
            yield self._steps_of(program, stops, until_s, partial(told, done, size))
            done += size
            told(done, 0, 0)
            if self._plays.clock is not None:
                # If a task is canceled during its add, it is counted until its deadline, and the executions are many.
                self._plays.come_to_rest()
        if self._plays.clock is None:
            self._plays.come_to_rest()

    def drawn(self, program: SmallProgram, draws: random.Random) -> PausedCall | None:
        """Choose a random call of the program, and one or two steps for its pauses: steps that such calls reached
        before, or any step."""
        if STEP not in self._plays.description.gates or draws.random() < _UNSTOPPED:
            return None
        lane = draws.randrange(len(program.lanes))
        place = draws.randrange(len(program.lanes[lane]))
        call, lines = program.lanes[lane][place], self._plays.lines
        if isinstance(call, Ready | Gauge | Inside):
            return None
        count = 2 if draws.random() < _TWO_STEPS else 1
        if lines is None:
            # A thread that makes another call inside a callback may count the steps of this call as its own.
            alone = not program.reenters
            # Short calls have few steps.
            steps = sorted({round(_TWICE_WITHIN ** draws.random()) - 1 for _ in range(count)})
            return PausedCall(lane, place, tuple(steps)) if alone else None
        known = [
            step for step in self._known.get(type(call), ()) if lines.points[step].line not in lines.adapters
        ]
        # Several programs may have come to the same place.
        chosen = {lines.points[step].at: step for step in draws.sample(known, min(count, len(known)))}
        steps = [*chosen.values()]
        return (
            PausedCall(lane, place, tuple(steps), points=tuple(lines.points[step] for step in steps))
            if steps
            else None
        )

    def _gates(self) -> tuple[str, ...]:
        if self._plays.clock is not None:
            return (STEP,)
        return tuple(place for place in (STEP, "timer_fire") if place in self._plays.description.gates)

    def _known_beside(
        self,
        lines: Lines,
        alone: Mapping[SmallProgram, Iterable[PausedCall]],
        pairs: Sequence[tuple[SmallProgram, str]],
        gates: tuple[str, ...],
    ) -> list[list[PausedCall]]:
        """The stops while the first caller is paused at a pause point: the stops of the calls `alone`, and the lines
        that calls reach during this pause."""
        found: list[list[PausedCall]] = []
        for (program, place), seen in zip(pairs, self._at_lines(lines, pairs, gates), strict=True):
            moved = [
                replace(stop, lane=lane, other_at=place)
                for stop in alone[program]
                for lane in program.beside(stop.lane)
            ]
            found.append([*{(one.lane, one.place, one.points): one for one in (*moved, *seen)}.values()])
        return found

    def stepped(self, programs: Sequence[SmallProgram]) -> list[SmallProgram]:
        """The programs that can run step by step. Of programs with the same calls for each caller, only the first."""
        found = {
            (frozenset(one.lanes), one.before, one.after, one.schedule, one.fresh): one
            for one in reversed(programs)
            if one.cannot_step(self._plays.description, virtual=self._plays.clock is not None) is None
            and (self._plays.lines is not None or not one.long)
        }
        return list(reversed(found.values()))

    def _steps_of(
        self, program: SmallProgram, stops: Iterable[PausedCall], until_s: float, told: Callable[[int], None]
    ) -> Orders:
        """Execute the program with each of these stops. `told` gets the number of executions after each one."""
        plays = 0
        if program.fresh and self._plays.clock is None:
            # A counted step is known only after the execution of the step before it.
            every = max(1, -(-len(stops) // _STARTED_MOST)) if isinstance(stops, list) else 1
            stops = itertools.islice(stops, 0, every * _STARTED_MOST, every)
        for stop in stops:
            if self._plays.broken:
                return Orders(program, plays, cut=BROKEN) if plays else Orders(program, skipped=BROKEN)
            if time.monotonic() > until_s or plays > STEPS_MOST:
                return Orders(program, plays, cut=TOO_MANY)
            if self._plays.lines is None or self._plays.lines.adapters.isdisjoint(
                point.line for point in (*stop.points, *stop.other_points)
            ):
                self._stopped_at(program, stop)
                plays += 1
                told(plays)
        why = NO_LINE_OF_ITS_OWN if program.long else NO_NEW_LINE if program.enumerated else NO_LINE
        return Orders(program, plays, skipped="" if plays else why)

    def _counted(self, program: SmallProgram, other_at: str = "") -> Iterator[PausedCall]:
        """The stops in a subject that counts its steps: each step of each call, until the call ends before the step."""
        calls = [(lane, place) for lane, place, _ in program.stepped()]
        if other_at:
            calls = [(other, place) for lane, place in calls for other in program.beside(lane)]
        few = program.schedule is Stepped.FIRST_TWICE or program.counts
        behind = program.schedule is Stepped.BEHIND_OTHER
        for lane, place in () if behind else calls:
            for first in range(_TWICE_WITHIN - 1) if few else itertools.count():
                ways: list[tuple[int, ...]] = [(first,)]
                if program.schedule is Stepped.FIRST_TWICE:
                    ways = [(first, again) for again in range(first + 1, _TWICE_WITHIN)]
                for steps in ways:
                    yield PausedCall(lane, place, steps, other_at=other_at)
                    if self._stops_made < len(steps):
                        break
                if not self._stops_made:
                    break
        ahead = (*range(_AHEAD_MOST), *range(_AHEAD_MOST, _TWICE_WITHIN, _TWICE_WITHIN // _AHEAD_MOST))
        for lane, first in itertools.product((1, 0), ahead) if behind and not other_at else ():
            for step in range(_TWICE_WITHIN):
                yield PausedCall(lane, 0, (step,), other_steps=(first,))
                if self._stops_made < 2:
                    break

    def _at_lines(
        self, lines: Lines, programs: Sequence[tuple[SmallProgram, str]], gates: tuple[str, ...]
    ) -> Iterator[list[PausedCall]]:
        """The stops of each program on a JVM, alone or while the first caller is paused: the lines that its calls
        reach. If a call advances time, the lines of other threads count too. Lines where a pause is useless do not
        count. All programs are watched first."""
        watched: list[list[tuple[PausedCall, Mapping[int, str]]]] = []
        self._plays.start(gates)
        for program, other_at in programs:
            if watched and self._plays.clock is not None and not self._plays.broken:
                # Otherwise a purge of earlier programs' operations may come to its lines in this program, by chance.
                self._plays.start_anew(gates, early=True)
            watched.append(
                [
                    (stop, self._watched(lines, program, stop))
                    for stop in self._unwatched(program, other_at)
                    if not self._plays.broken
                ]
            )
            if not other_at:
                self.tell(_WATCHING * len(watched) / len(programs))
        self._plays.come_to_rest()
        known = [
            [(stop, self._seen(lines, program, stop, seen)) for stop, seen in of if not self._plays.broken]
            for (program, _), of in zip(programs, watched, strict=True)
        ]
        if (
            "try_complete" if self._plays.part == "purgatory" else "timer_fire"
        ) in self._plays.description.gates:
            # Without this gate, only lines of the adapter allow a pause after the reads of a callback.
            lines.leave_adapter_out()
        short = [of for (program, _), of in zip(programs, known, strict=True) if not program.long]
        of_short = {lines.points[step].line for of in short for _, seen in of for step in seen}
        for (program, _), seen_of in zip(programs, known, strict=True):
            stops: list[PausedCall] = []
            leaves_out = lines.adapters | of_short if program.long else lines.adapters
            for stop, seen in seen_of:
                of_call = self._known.setdefault(type(program.lanes[stop.lane][stop.place]), [])
                of_call += [step for step in seen if _told_apart(lines.points[step])]
                times = 1 if program.long or program.counts else TIMES_MOST
                steps = [step for step in seen if _told_apart(lines.points[step], times)]
                steps = [step for step in steps if lines.points[step].line not in leaves_out]
                first, count = (
                    (steps[:_TWICE_WITHIN], 2) if program.schedule is Stepped.FIRST_TWICE else (steps, 1)
                )
                for way in itertools.combinations(first, count):
                    stops.append(replace(stop, steps=way, points=tuple(lines.points[step] for step in way)))
            yield self._led(lines, program, stops) if program.schedule is Stepped.BEHIND_OTHER else stops

    def _led(self, lines: Lines, program: SmallProgram, stops: Sequence[PausedCall]) -> list[PausedCall]:
        """Pause each caller's call at each of its lines, while the other caller's call is paused at one of some
        lines."""
        found: list[PausedCall] = []
        by_lane = [[stop for stop in stops if stop.lane == lane] for lane in (0, 1)]
        for leader in itertools.chain(*(some[:: max(1, len(some) // _AHEAD_MOST)] for some in by_lane)):
            stop = PausedCall(1 - leader.lane, 0, other_steps=leader.steps, other_points=leader.points)
            seen = self._watched(lines, program, stop)
            self._plays.come_to_rest(early=True)
            for step in lines.seen(seen):
                if _told_apart(lines.points[step]):
                    found.append(replace(stop, steps=(step,), points=(lines.points[step],)))
        return found

    def _seen(
        self, lines: Lines, program: SmallProgram, stop: PausedCall, watched: Mapping[int, str]
    ) -> Sequence[int]:
        known = lines.seen(watched)
        for _ in range(_WATCHED_MOST - 1):
            if known or stop.workers:
                break
            # On a busy machine, messages of a JVM may come too late to be seen.
            again = self._watched(lines, program, stop)
            self._plays.come_to_rest(early=True)
            known = lines.seen(again)
        return known

    def _unwatched(self, program: SmallProgram, other_at: str) -> Iterator[PausedCall]:
        """A stop for each call of the program that can be paused, without a step yet."""
        for lane, place, call in program.stepped():
            if self._plays.clock is not None or not isinstance(call, Expiry):
                for workers in (False, True) if isinstance(call, Expiry | Until) else (False,):
                    for other in program.beside(lane) if other_at else (lane,):
                        yield PausedCall(other, place, workers=workers, other_at=other_at)

    def _watched(self, lines: Lines, program: SmallProgram, stop: PausedCall) -> Mapping[int, str]:
        lines.watched = {}
        self._stopped_at(program.without_far(self._plays.delays.far_ns), replace(stop, steps=(), points=()))
        return lines.watched

    def found_again(self, program: SmallProgram, stop: PausedCall, gates: tuple[str, ...]) -> PausedCall:
        """Find the same stop after a new start of the subject. Of two watched executions, the second gives the
        lines, because some code runs only in the first."""
        if stop.other_points:
            workers = bool(stop.other_points[0].thread)
            leader = PausedCall(1 - stop.lane, 0, stop.other_steps, workers=workers, points=stop.other_points)
            stop = replace(stop, other_steps=self.found_again(program, leader, gates).steps)
        places: dict[LineStep, int] = {}
        for other_at in dict.fromkeys(("", stop.other_at)):
            self._plays.start((*gates, *([other_at] if other_at else [])))
            if self._plays.lines is not None:
                watched = [
                    self._watched(self._plays.lines, program, replace(stop, other_at=other_at))
                    for _ in range(2)
                ]
                self._plays.come_to_rest()
                places |= {
                    self._plays.lines.points[step]: step for step in self._plays.lines.seen(watched[-1])
                }
        if self._plays.lines is None:
            return stop
        return replace(stop, steps=tuple(places[point] for point in stop.points if point in places))

    def _stopped_at(self, program: SmallProgram, stop: PausedCall) -> None:
        """Run one execution: a call runs to its steps, the other callers make their calls, then all threads finish."""
        if program.fresh:
            self._plays.start_anew((STEP,))
        order = PlayedOrder(program.name, (), stop)
        play = self._plays.begun(program, order, stop.other_at)
        if stop.other_at:
            while play.kept is None and play.can_call(0):
                play.make(0)
                self._plays.settle(play)
            play.keeps = False
        if stop.other_steps:
            play.make(1 - stop.lane, stop.other_steps)
            self._plays.settle(play)
            play.kept = next(
                (hold for hold in self._plays.session.conversation.paused() if hold.f == STEP), None
            )
        if play.kept or not stop.other_steps:
            self._make_stopped(play, stop)
        if play.kept in self._plays.session.conversation.paused():
            self._plays.go([play.kept])
            self._plays.settle(play)
        self._make_others(play, stop.lane)
        play.passes = True
        self._make_rest(play)
        # Count at the end: on a busy machine, a thread may come late to its step, and its call has further steps.
        self._stops_made = len(play.stopped)
        self._plays.end(play, order)
        leaves = program.enumerated and self._plays.part == "timer"
        if self._plays.clock is not None and (program.passes_time or leaves):
            # Otherwise leftover tasks would expire in the next execution, and be paused at their lines. If a subject
            # visits all tasks, its calls would have more and more steps.
            self._plays.leap(2 * self._plays.delays.later_ns + self._plays.late_ns)
            self._plays.look_for_late(play)
        self._plays.under_way = None

    def _make_stopped(self, play: Play, stop: PausedCall) -> None:
        """Make the caller's calls until the call is paused, or until the watched call has ended."""
        watching = self._plays.lines if not stop.points else None
        conversation = self._plays.session.conversation
        for place in range(stop.place + 1):
            here = place == stop.place
            while not play.can_call(stop.lane) and conversation.running():
                if play.kept in conversation.paused():
                    # The caller may wait for this thread.
                    self._plays.go([play.kept])
                else:
                    self._plays.hear_on()
                self._plays.settle(play)
            if not play.can_call(stop.lane) and play.can_call(0):
                # The call needs a task or operation of the first lane.
                play.make(0)
                self._plays.settle(play)
            if play.can_call(stop.lane):
                if here and watching is not None:
                    watching.watch(workers=stop.workers)
                play.make(stop.lane, stop.steps if here else ())
            while here and watching is not None and conversation.running():
                paused = conversation.paused()
                passing = [hold for hold in paused if not play.keeps_paused(hold)]
                if passing:
                    self._plays.go(passing)
                elif play.kept not in paused:
                    self._plays.hear_on()
                elif self._plays.is_quiet():
                    # The caller may wait for this thread.
                    self._plays.go([play.kept])
            self._plays.settle(play)

    def _make_others(self, play: Play, lane: int) -> None:
        """Make the calls of the other callers. After the first call, a call with two pauses goes to its second step."""
        others = [other for other in range(len(play.lanes)) if other != lane]
        for other in others:
            while play.can_call(other):
                play.make(other)
                self._plays.settle(play)
            paused = [hold for hold in self._plays.session.conversation.paused() if hold.f == STEP]
            if other == others[0] and play.program.schedule is Stepped.FIRST_TWICE and paused:
                self._plays.go(paused)
                self._plays.settle(play)

    def _make_rest(self, play: Play) -> None:
        """Make all further calls that are possible, until none is under way."""
        while True:
            self._plays.settle(play)
            waiting = [lane for lane in range(len(play.lanes)) if play.can_call(lane)]
            if waiting:
                play.make(waiting[0])
            elif self._plays.session.conversation.running():
                self._plays.hear_on()
            else:
                return
