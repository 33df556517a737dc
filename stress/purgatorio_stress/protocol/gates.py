"""Races by control: every order of the small programs of `gate_program`, played to a subject that has gates.

The driver knows three things of a thread of the subject: its call *returned*, it stands *at a gate*, or it is *quiet*:
it runs, or waits for what another thread has. As long as some thread is quiet it listens for a moment more. What it
does next is one of few things: let a thread go on, or make a lane's next call; all their orders are played, depth
first, each play from operations and keys of its own. Then, where the subject counts the steps of its own code, each
call of each lane is stopped at each of its steps while the other lanes make theirs: one preemption, at every place.
At last two: the first lane's call stands at a gate, another's goes as far as one of its steps, and then the first goes
on before it, at every step of the other, also at those to which it comes only because the first stands there. So
does a call that moves time, which stands at some of its own steps.

What was recorded is judged now and then. Once a promise is broken the rest is not played.

No verdict hangs on how long it listened. A thread that was taken for waiting and was only slow makes one order another,
which the clauses judge as well; the moment is made longer then. Once no thread is held, all must return: a subject
that does not has hung.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.show.visible import first_few
from purgatorio_stress.protocol.conversation import Hold
from purgatorio_stress.protocol.describe import Part
from purgatorio_stress.protocol.gate_program import (
    Expiry,
    GateProgram,
    Inside,
    LaneCall,
    Until,
    delays_for,
    gate_programs,
    late_for,
    named_in,
)
from purgatorio_stress.protocol.lines import Lines, Point
from purgatorio_stress.protocol.message import (
    STEP,
    Add,
    Advance,
    Call,
    Cancel,
    Description,
    Force,
    Gauge,
    Go,
    Quiesce,
    Register,
    Said,
    Start,
)
from purgatorio_stress.protocol.reach import REAPER_NS, levels_of
from purgatorio_stress.protocol.session import Session
from purgatorio_stress.protocol.virtual_time import VirtualClock
from purgatorio_stress.subject.contract import LATE_SLACK_NS
from purgatorio_stress.subject.plan import MS

_FAR_NS: Final = 3_600_000 * MS
_FAR_REAL_NS: Final = 5_000 * MS
_QUIET_LEAST_S: Final = 0.003
_QUIET_MOST_S: Final = 0.1
_GLANCE_S: Final = 0.001
_GIVES_UP_S: Final = 0.5
_WAITS_MOST: Final = 10
_LATE_S: Final = 5.0
_EXPIRY_LATE_S: Final = 1.0
_EXPIRY_LEAST_S: Final = 0.1
_TAKES_NOTE_S: Final = 1.0
_SAID_MOST: Final = 20_000
_ORDERS_MOST: Final = 1_000
_ASLEEP: Final = 1_100
_BUCKETS_ASLEEP: Final = 30
_STEPS_MOST: Final = 5_000
STEPS_S: Final = 900.0
"""So long that it ends none but what is endless: cut short is UNKNOWN."""

_TWICE_WITHIN: Final = 60
"""A call is held twice at these of its steps, the first, and so are two calls at once, where steps are counted."""

_AHEAD_MOST: Final = 6
"""At so many of its steps the first lane's call stands while another's comes to one of its own."""

_TIMES_MOST: Final = 3
"""A call that comes to a line again and again is stopped there so often."""

_AGAIN_MOST: Final = 5
"""An order is played again so often that hung, or should break a clause again."""

_WATCHED_MOST: Final = 3
"""A call of which no line is seen is watched so often."""

_JUDGED_FIRST: Final = 50
_JUDGED_AGAIN: Final = 1.5
"""It is judged after so many plays, and whenever they are so many times as many."""

_BEFORE_STEPS: Final = 0.1
"""Of the whole, so much are the orders, where steps come after them."""

_BROKEN: Final = "a promise was found broken before"
_TOO_MANY: Final = "the time was up, as where the machine is busy, or too many"
"""Why something is not played."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What came of one program: how many plays, and why these were not all orders (`cut`), or why there were none
    (`skipped`)."""

    program: GateProgram
    plays: int = 0
    cut: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A lane, the place of a call in it, and the steps of that call at which a thread is stopped; or none, and the call
    is watched for its steps: for those of the subject's own threads (`workers`), or of its own. `points`: what steps
    they are, where they are lines of a JVM's. `beside`: the first lane stands at this gate until then, and goes on
    first; `ahead`: so it does, at these of its steps, which are at these lines (`led`)."""

    lane: int
    place: int
    steps: tuple[int, ...] = ()
    workers: bool = False
    points: tuple[Point, ...] = ()
    beside: str = ""
    ahead: tuple[int, ...] = ()
    led: tuple[Point, ...] = ()


def _told_apart(point: Point) -> bool:
    """Whether it is worth a stop: nobody knows yet what is being made, nor what the compiler put in."""
    made = point.line.method.endswith(("<init>", "<clinit>"))
    return bool(point.line.written) and not made and point.nth <= _TIMES_MOST


@dataclass(frozen=True, slots=True)
class PlayedOrder:
    """One play: the program, and which of the things that could be done was done each time; or where one call was
    stopped."""

    program: str
    choices: tuple[int, ...]
    stop: Stop | None = None


def unfinished(orders: Sequence[Orders]) -> str:
    """What of the programs was cut short, or nothing."""
    cut = {one.program.name: one.cut or one.skipped for one in orders if one.cut or one.skipped == _BROKEN}
    return f"orders or steps of {', '.join(cut)}: {', '.join(dict.fromkeys(cut.values()))}" if cut else ""


AGAIN: Final = (
    "the same order of threads hangs again on a fresh start, and each call returns where they come one by one"
)
"""Why a hang is a deadlock."""

RACED: Final = (
    "the same order of threads does so again on a fresh start, and no call does where they come one by one"
)
"""Why an error is the subject's own."""


def comes_of_order(
    order: PlayedOrder, seen: Sequence[str], alone: Callable[[PlayedOrder], Sequence[str] | None]
) -> bool:
    """Whether calls that never returned while nobody was held (by name), or an error that one ended with, break P3.

    `alone` plays one order to a subject made anew: what is `seen` of that there, or None where something else happens.
    It must be the same by the same order, and nothing where the calls are made one after the other: then each returns
    by itself, and no slow machine is to blame, but only their order. Threads that were let go run freely, so an order
    in which nothing is seen is played again.
    """
    one_by_one = replace(order, choices=(), stop=order.stop and Stop(0, 0, (_STEPS_MOST * 1_000,)))
    again = bool(seen) and any(alone(order) == seen for _ in range(_AGAIN_MOST))
    return again and alone(one_by_one) == []


def play_of(operation: str) -> int | None:
    """The number of the play that an operation, task or key belongs to, by its name."""
    number = operation.partition("-")[0].removeprefix("p")
    return int(number) if operation.startswith("p") and number.isdigit() else None


def to_play_again(broken: ClauseResult, plays: Sequence[PlayedOrder]) -> Sequence[PlayedOrder]:
    """The plays that broke the clause, each several times: on a busy machine a thread may come too late for its place
    in the order."""
    numbers = [play_of(cause.examples[0].subject) for cause in broken.causes.values()]
    return _AGAIN_MOST * [
        plays[number - 1] for number in numbers if number is not None and number <= len(plays)
    ]


def from_its_start(session: Sequence[str], operation: str) -> tuple[str, ...]:
    """The play of this operation, after the `start` before it: a call may have been watched before it is stopped."""
    first = next((at for at, line in enumerate(session) if f'"p{play_of(operation)}-' in line), 0)
    starts = [at for at, line in enumerate(session[: first + 1]) if '"m":"start"' in line]
    return (
        (*session[starts[-1] : starts[-1] + 2], *session[max(first, starts[-1] + 2) :])
        if starts
        else tuple(session)
    )


@dataclass(slots=True)
class _Choice:
    """One of the things that could be done next; `taken` of `among`."""

    taken: int
    among: int


Act = Callable[[], None]


class GatedRun:
    """One run with gates. `clock`: the driver's, in virtual time; None in real time. `lines`: the subject's, if its
    steps are lines. `judge`: whether what was recorded so far breaks a promise, after which nothing new is played.
    `tell`: called with the share of the whole that was played, roughly."""

    def __init__(
        self,
        session: Session,
        description: Description,
        part: Part,
        clock: VirtualClock | None,
        *,
        lines: Lines | None = None,
        judge: Callable[[], bool] | None = None,
        tell: Callable[[float], None] = lambda share: None,
    ) -> None:
        self._lines = lines
        self._judge = judge
        self._tell = tell
        self._judged_at: float = _JUDGED_FIRST
        self._broken = False
        self._session = session
        self._description = description
        self._part = part
        self._clock = clock
        self._delays = delays_for(description, _FAR_NS if clock is not None else _FAR_REAL_NS)
        self._late_ns = late_for(description)
        self._slowest_s = 0.0
        self._latest_s = _EXPIRY_LATE_S / 5
        self._waited: Counter[tuple[str, ...]] = Counter()
        self._said = 0
        self._begun_ns = 0
        self.plays: list[PlayedOrder] = []
        """What was played so far, the first under the number 1."""
        self.erred: PlayedOrder | None = None
        """The first in which a call ended with an error that nobody asked for."""
        self._stops_made = 0
        self._making: tuple[str, Sequence[_Choice], Stop | None] | None = None
        self._played = 0

    @property
    def under_way(self) -> PlayedOrder | None:
        """The play that was not played to its end, unless it is a volley, which is not the same twice."""
        if self._making is None:
            return None
        program, made, stop = self._making
        return PlayedOrder(program, tuple(choice.taken for choice in made), stop)

    def drive(
        self,
        only: PlayedOrder | None = None,
        *,
        orders: bool = True,
        steps: bool = True,
        leaving_out: Callable[[GateProgram], bool] = lambda program: False,
    ) -> list[Orders]:
        """Play all programs that the subject can be put through, or one order of one only, then wait until all is over:
        all `orders`, and then all `steps`. Raises SubjectFailed."""
        programs = gate_programs(self._part, self._delays)
        programs = tuple(program for program in programs if not leaving_out(program))
        if only is not None:
            programs = tuple(one for one in programs if one.name == only.program)
        if not orders:
            return self._all_steps(programs, only)
        fit = {
            one.name: one.ruled_out(self._description, virtual=self._clock is not None) for one in programs
        }
        stops = {stop for one in programs if fit[one.name] is None for stop in one.stops}
        if any(one.expiring() for one in programs if fit[one.name] is None):
            stops.add("timer_fire")
        self._start(tuple(place for place in self._description.gates if place in stops))
        # In real time each expiry is waited for: steps are for those who know no other, or can be held nowhere else.
        others = "virtual-time" not in self._description.capabilities or self._description.gates == (STEP,)
        steps = steps and (self._clock is not None or others) and STEP in self._description.gates
        found: list[Orders] = []
        # A volley is as long as it is, and all orders of another are some dozens.
        sizes = [len(one.calls()) * one.volley or 100 + len(one.calls()) for one in programs]
        for program, size in zip(programs, itertools.accumulate(sizes), strict=True):
            why = fit[program.name] or (_BROKEN if self._broken else None)
            if why is not None:
                found.append(Orders(program, skipped=why))
            elif only is not None and only.stop is not None:
                continue
            elif only is not None and not program.volley:
                # One that has just started is slow: its threads would come too late for their places.
                self._play(program, [])
                self._play(program, [_Choice(taken, taken + 1) for taken in only.choices])
            else:
                found.append(self._orders(program))
            if why is None and "gauge" in self._description.capabilities:
                self._read_sizes()
            self._tell(size / sum(sizes) * (_BEFORE_STEPS if steps else 1))
        self._come_to_rest()
        if self._broken:
            return found + [Orders(one, skipped=_BROKEN) for one in self._stepped(programs) or programs[-1:]]
        if self._clock is not None and only is None:
            # Last: what has expired widens the bound on garbage.
            self._sleep()
        if steps:
            found += self._all_steps(programs, only)
        return found

    def _sleep(self) -> None:
        """The machine sleeps: when time goes on, what is due at every tick of a second, and at every bucket of the
        levels above, is overdue at once. Here, where nothing is too late."""
        self._start(())
        self._said = -_SAID_MOST * 10
        tick_ns, *wider = levels_of(self._description, self._delays.far_ns * 2)
        delays = [tick_ns * number for number in range(1, _ASLEEP + 1)]
        delays += [wide_ns * number for wide_ns in wider for number in range(1, _BUCKETS_ASLEEP + 1)]
        fit = [min(max(one, self._description.least_delay_ns), self._delays.far_ns) for one in delays]
        named = [(f"asleep-{number}", delay_ns) for number, delay_ns in enumerate(fit)]
        timer = self._part == "timer"
        self._play_to_the_end(
            [Add(name, delay_ns) if timer else Register(name, (name,), delay_ns) for name, delay_ns in named]
        )
        self._leap(self._delays.far_ns + self._late_ns)
        self._come_to_rest()

    def _read_sizes(self) -> None:
        """In virtual time at rest, when a reaper has had two turns."""
        if self._clock is None:
            self._play_to_the_end([Gauge()])
            return
        for _ in range(2):
            self._leap(REAPER_NS)
        self._play_to_the_end([Quiesce()])

    def _leap(self, by_ns: int) -> None:
        """Virtual time goes on by so much at least, in whole units."""
        assert self._clock is not None, "it is called in virtual time"
        by_ns += -by_ns % self._description.unit_ns
        self._play_to_the_end([Advance(self._clock.now_ns + by_ns)])

    def _start(self, gates: tuple[str, ...]) -> None:
        now_ns = None if self._clock is None else self._clock.now_ns
        self._session.call(Start(self._part, "real" if now_ns is None else "virtual", now_ns, gates))

    def _declared(self, places: Iterable[str]) -> tuple[str, ...]:
        return tuple(place for place in places if place in self._description.gates)

    def _all_steps(self, programs: Sequence[GateProgram], only: PlayedOrder | None) -> list[Orders]:
        """Each call of the programs without volleys stopped at each of its steps, alone and then beside another."""
        gates = (STEP,) if self._clock is not None else self._declared((STEP, "timer_fire"))
        self._start(gates)
        if only is not None:
            for program in programs:
                if only.stop is not None:
                    self._stopped_at(program, self._found_again(program, only.stop, gates))
            self._come_to_rest()
            return []
        stepped = self._stepped(programs)
        two = [(one, place) for one in stepped for place in one.stands_at(self._description)]
        gates_of_two = (*gates, *dict.fromkeys(place for _, place in two))
        if self._lines is None:
            alone: Sequence[Iterable[Stop]] = [self._counted(one) for one in stepped]
            beside: Sequence[Iterable[Stop]] = [self._counted(one, place) for one, place in two]
        else:
            lines = dict(
                zip(stepped, self._at_lines(self._lines, [(one, "") for one in stepped]), strict=True)
            )
            alone = [*lines.values()]

            def known_beside(program: GateProgram, place: str) -> Iterator[Stop]:
                for stop in lines[program]:
                    for lane in program.beside(stop.lane):
                        yield replace(stop, lane=lane, beside=place)

            # One that meets the first lane at its gate comes to other lines as well.
            self._start(gates_of_two)
            seen_beside = self._at_lines(self._lines, two)
            beside = [
                list(
                    {(one.lane, one.place, one.points): one for one in (*known_beside(*pair), *seen)}.values()
                )
                for pair, seen in zip(two, seen_beside, strict=True)
            ]
            # What was watched runs slowly from then on; a new run has new threads.
            self._start(gates)
        until_s = time.monotonic() + STEPS_S
        # Steps that are counted are known only when all were played: then one program is like another.
        sizes = [len(stops) if isinstance(stops, list) else 1 for stops in (*alone, *beside)]
        shares = [
            _BEFORE_STEPS + (1 - _BEFORE_STEPS) * part / max(1, sum(sizes))
            for part in itertools.accumulate(sizes)
        ]
        found = self._all_stops(stepped, alone, shares, until_s)
        if two:
            self._start(gates_of_two)
            found += self._all_stops([one for one, _ in two], beside, shares[len(stepped) :], until_s)
        return found

    def _all_stops(
        self,
        programs: Sequence[GateProgram],
        plans: Iterable[Iterable[Stop]],
        shares: Sequence[float],
        until_s: float,
    ) -> list[Orders]:
        found: list[Orders] = []
        for program, stops, share in zip(programs, plans, shares[: len(programs)], strict=True):
            found.append(self._steps_of(program, stops, until_s))
            self._tell(share)
            if self._clock is not None:
                # What was cancelled while it was added is counted until its time is over, and the plays are many.
                self._come_to_rest()
        if self._clock is None:
            self._come_to_rest()
        return found

    def _stepped(self, programs: Sequence[GateProgram]) -> list[GateProgram]:
        """Those that can be played step by step; of several with the same calls, in more lanes or others, one."""
        found = {
            (frozenset(one.lanes), one.before, one.after, one.twice, one.fresh): one
            for one in reversed(programs)
            if one.steps(self._description, virtual=self._clock is not None) is None
        }
        return list(reversed(found.values()))

    def _steps_of(self, program: GateProgram, stops: Iterable[Stop], until_s: float) -> Orders:
        plays = 0
        for stop in stops:
            if self._broken:
                return Orders(program, plays, cut=_BROKEN) if plays else Orders(program, skipped=_BROKEN)
            if time.monotonic() > until_s or plays > _STEPS_MOST:
                return Orders(program, plays, cut=_TOO_MANY)
            if self._lines is None or self._lines.adapters.isdisjoint(
                point.line for point in (*stop.points, *stop.led)
            ):
                self._stopped_at(program, stop)
                plays += 1
        return Orders(program, plays)

    def _counted(self, program: GateProgram, beside: str = "") -> Iterator[Stop]:
        """Where calls of a subject that counts its steps can be stopped: of each call until it does not stop."""
        calls = [(lane, place) for lane, place, _ in program.stepped()]
        if beside:
            calls = [(other, place) for lane, place in calls for other in program.beside(lane)]
        for lane, place in () if program.ahead else calls:
            for first in range(_TWICE_WITHIN - 1) if program.twice else itertools.count():
                ways: list[tuple[int, ...]] = [(first,)]
                if program.twice:
                    ways = [(first, again) for again in range(first + 1, _TWICE_WITHIN)]
                for steps in ways:
                    yield Stop(lane, place, steps, beside=beside)
                    if self._stops_made < len(steps):
                        break
                if not self._stops_made:
                    break
        for first in (
            range(0, _TWICE_WITHIN, _TWICE_WITHIN // _AHEAD_MOST) if program.ahead and not beside else ()
        ):
            for step in range(_TWICE_WITHIN):
                yield Stop(1, 0, (step,), ahead=(first,))
                if self._stops_made < 2:
                    break

    def _at_lines(self, lines: Lines, programs: Sequence[tuple[GateProgram, str]]) -> Iterator[list[Stop]]:
        """Where calls of each program, alone or beside the first lane at a gate, can be stopped on a JVM: at the lines
        to which they come, those of its other threads too where a call moves time, but for lines that nobody else can
        tell apart. All are watched first."""
        watched = [
            [
                (stop, self._watched(lines, program, stop))
                for stop in self._unwatched(program, beside)
                if not self._broken
            ]
            for program, beside in programs
        ]
        self._come_to_rest()
        known = [
            [(stop, self._seen(lines, program, stop, seen)) for stop, seen in of if not self._broken]
            for (program, _), of in zip(programs, watched, strict=True)
        ]
        if ("try_complete" if self._part == "purgatory" else "timer_fire") in self._description.gates:
            # Or only there could it be stopped behind what a callback reads.
            lines.leave_adapter_out()
        for (program, _), seen_of in zip(programs, known, strict=True):
            stops: list[Stop] = []
            for stop, seen in seen_of:
                steps = [step for step in seen if _told_apart(lines.points[step])]
                steps = [step for step in steps if lines.points[step].line not in lines.adapters]
                first, count = (steps[:_TWICE_WITHIN], 2) if program.twice else (steps, 1)
                for way in itertools.combinations(first, count):
                    stops.append(replace(stop, steps=way, points=tuple(lines.points[step] for step in way)))
            yield self._led(lines, program, stops) if program.ahead else stops

    def _led(self, lines: Lines, program: GateProgram, stops: Sequence[Stop]) -> list[Stop]:
        """The second lane's call at each of its lines while the first's stands at some of its own."""
        found: list[Stop] = []
        for leader in stops[:: max(1, len(stops) // _AHEAD_MOST)]:
            stop = Stop(1, 0, ahead=leader.steps, led=leader.points)
            seen = self._watched(lines, program, stop)
            self._come_to_rest()
            for step in lines.seen(seen):
                if _told_apart(lines.points[step]):
                    found.append(replace(stop, steps=(step,), points=(lines.points[step],)))
        return found

    def _seen(
        self, lines: Lines, program: GateProgram, stop: Stop, watched: Mapping[int, str]
    ) -> Sequence[int]:
        """The steps of a call that was watched."""
        known = lines.seen(watched)
        for _ in range(_WATCHED_MOST - 1):
            if known or stop.workers:
                break
            # On a busy machine what a JVM tells may come too late to be seen.
            again = self._watched(lines, program, stop)
            self._come_to_rest()
            known = lines.seen(again)
        return known

    def _unwatched(self, program: GateProgram, beside: str) -> Iterator[Stop]:
        """The calls of a program that can be stopped, without a step yet."""
        for lane, place, call in program.stepped():
            if self._clock is not None or not isinstance(call, Expiry):
                for workers in (False, True) if isinstance(call, Expiry | Until) else (False,):
                    for other in program.beside(lane) if beside else (lane,):
                        yield Stop(other, place, workers=workers, beside=beside)

    def _watched(self, lines: Lines, program: GateProgram, stop: Stop) -> Mapping[int, str]:
        lines.watched = {}
        self._stopped_at(program, replace(stop, steps=(), points=()))
        return lines.watched

    def _found_again(self, program: GateProgram, stop: Stop, gates: tuple[str, ...]) -> Stop:
        """The same stop in a program that was started anew: its first call comes to other lines than all later ones."""
        if stop.led:
            leader = Stop(0, 0, stop.ahead, workers=bool(stop.led[0].thread), points=stop.led)
            stop = replace(stop, ahead=self._found_again(program, leader, gates).steps)
        places: dict[Point, int] = {}
        for beside in dict.fromkeys(("", stop.beside)):
            self._start((*gates, *([beside] if beside else [])))
            if self._lines is not None:
                watched = [
                    self._watched(self._lines, program, replace(stop, beside=beside)) for _ in range(2)
                ]
                self._come_to_rest()
                places |= {self._lines.points[step]: step for step in self._lines.seen(watched[-1])}
        if self._lines is None:
            return stop
        return replace(stop, steps=tuple(places[point] for point in stop.points if point in places))

    def _stopped_at(self, program: GateProgram, stop: Stop) -> None:
        """One play: a call goes as far as its steps, the other lanes make theirs, and then all go on to their ends."""
        if program.fresh:
            self._come_to_rest()
            self._start((STEP,))
        play = self._begun(program, stop.beside)
        self._making = (program.name, (), stop)
        self._play_to_the_end(play.before, play)
        if stop.beside:
            while play.kept is None and play.can_call(0):
                play.make(0)
                self.settle(play)
            play.keeps = False
        if stop.ahead:
            play.make(0, stop.ahead)
            self.settle(play)
            play.kept = next((hold for hold in self._session.conversation.standing() if hold.f == STEP), None)
        if play.kept or not stop.ahead:
            self._make_stopped(play, stop)
        if play.kept in self._session.conversation.standing():
            self.go([play.kept])
            self.settle(play)
        self._make_others(play, stop.lane)
        play.passes = True
        self._make_rest(play)
        # On a busy machine a thread may come to its step late, and its call has more of them.
        self._stops_made = len(play.stopped)
        self._end(play, PlayedOrder(program.name, (), stop))
        if self._clock is not None and any(isinstance(call, Until) for call in program.calls()):
            # Or it would expire while time moves in the next play, and its lines be stopped at there.
            self._leap(2 * self._delays.later_ns + self._late_ns)
        self._making = None

    def _make_stopped(self, play: Play, stop: Stop) -> None:
        """The calls of the lane up to the one that is stopped, or watched to its end."""
        watching = self._lines if not stop.points else None
        conversation = self._session.conversation
        for place in range(stop.place + 1):
            here = place == stop.place
            while not play.can_call(stop.lane) and conversation.loose():
                if play.kept in conversation.standing():
                    # It may be what the lane waits for.
                    self.go([play.kept])
                else:
                    self._hear_on()
                self.settle(play)
            if not play.can_call(stop.lane) and play.can_call(0):
                # It speaks of what the first lane makes.
                play.make(0)
                self.settle(play)
            if play.can_call(stop.lane):
                if here and watching is not None:
                    watching.watch(workers=stop.workers)
                play.make(stop.lane, stop.steps if here else ())
            while here and watching is not None and conversation.loose():
                standing = conversation.standing()
                passing = [hold for hold in standing if not play.stops(hold)]
                if passing:
                    self.go(passing)
                elif play.kept not in standing:
                    self._hear_on()
                elif self._is_quiet():
                    # It may be what the lane waits for.
                    self.go([play.kept])
            self.settle(play)

    def _make_others(self, play: Play, lane: int) -> None:
        """The calls of the other lanes; in between, a call that is held twice goes on to its second step."""
        others = [other for other in range(len(play.lanes)) if other != lane]
        for other in others:
            while play.can_call(other):
                play.make(other)
                self.settle(play)
            standing = [hold for hold in self._session.conversation.standing() if hold.f == STEP]
            if other == others[0] and play.program.twice and standing:
                self.go(standing)
                self.settle(play)

    def _make_rest(self, play: Play) -> None:
        """Whatever can still be called, until nothing is under way."""
        while True:
            self.settle(play)
            waiting = [lane for lane in range(len(play.lanes)) if play.can_call(lane)]
            if waiting:
                play.make(waiting[0])
            elif self._session.conversation.loose():
                self._hear_on()
            else:
                return

    def _begun(self, program: GateProgram, beside: str = "") -> Play:
        # What a program before it was told to end with an error excuses nobody here.
        self._session.conversation.fails = False
        self._played += 1
        self._said = 0
        self._begun_ns = 0 if self._clock is None else self._clock.now_ns
        return Play(self, program, self._played, beside=beside, keeps=bool(beside))

    def _end(self, play: Play, order: PlayedOrder) -> None:
        self.plays.append(order)
        play.over = True
        self._play_to_the_end(play.after)
        if self._session.conversation.erred:
            self.erred = self.erred or order
        if self._clock is not None and self._clock.now_ns > self._begun_ns and not play.program.fails:
            self._look_for_late(play)
        if self._judge is not None and not self._broken and len(self.plays) >= self._judged_at:
            self._judged_at *= _JUDGED_AGAIN
            self._broken = self._judge()

    def _look_for_late(self, play: Play) -> None:
        """In virtual time, where nobody is held any more, all that was due is over when time has gone on twice: a wheel
        may move it to a finer level first."""

        def overdue() -> set[str]:
            return {*self._session.conversation.overdue(self._late_ns)} & {*play.delays}

        late = overdue()
        for patience_s in (_GIVES_UP_S, _LATE_S):
            if not late or self._description.late_ns is None or self._session.conversation.errors():
                return
            self._leap(self._late_ns)
            while self._hear(patience_s) is not None:
                # A subject that does not wait for its own threads is not late for that.
                self.let_go()
            late &= overdue()
        if not late:
            return
        lost = ("T2", "run") if self._part == "timer" else ("O5", "end")
        raise self._session.failed(
            "late",
            f"{lost[0]} is broken: {first_few(sorted(late))} did not {lost[1]} when nobody was held any more",
        )

    def _orders(self, program: GateProgram) -> Orders:
        if program.volley:
            for plays in range(1, program.volley + 1):
                self._play(program, [])
                if self._broken:
                    return Orders(program, plays, cut=_BROKEN)
            return Orders(program, program.volley)
        trail: list[_Choice] = []
        plays = 0
        while True:
            trail = self._play(program, trail)
            plays += 1
            while trail and trail[-1].taken + 1 >= trail[-1].among:
                trail.pop()
            if not trail:
                return Orders(program, plays)
            if self._broken or plays >= _ORDERS_MOST:
                return Orders(program, plays, cut=_BROKEN if self._broken else _TOO_MANY)
            trail[-1].taken += 1

    def _play(self, program: GateProgram, trail: list[_Choice]) -> list[_Choice]:
        """Once through: the choices of `trail` as long as there are, then the first of each; all choices made."""
        play = self._begun(program)
        made: list[_Choice] = []
        self._making = None if program.volley else (program.name, made, None)
        self._play_to_the_end(play.before, play)
        while True:
            acts = play.acts()
            if not acts and self._session.conversation.loose():
                # Nobody is held, so whatever still runs comes somewhere.
                self._hear_on()
                self.settle(play)
                continue
            if not acts:
                break
            choice = trail[len(made)] if len(made) < len(trail) else _Choice(0, len(acts))
            # A subject that does not do the same twice may offer less than the last time.
            choice = _Choice(min(choice.taken, len(acts) - 1), len(acts))
            made.append(choice)
            acts[choice.taken]()
            self.settle(play)
        self._end(play, PlayedOrder(program.name, tuple(choice.taken for choice in made)))
        self._making = None
        return made

    def _play_to_the_end(self, calls: Sequence[LaneCall], play: Play | None = None) -> None:
        """Let all threads go on; then make the calls one by one, stopping nobody but an expiry that is to come in this
        play."""
        self.let_go()
        for call in calls:
            assert not isinstance(call, Expiry | Inside | Until), "those are the lanes'"
            self._said = min(self._said, 0)
            if self._session.conversation.makes_sense(call):
                self.ask(call)
            self.let_go(play)

    def let_go(self, play: Play | None = None) -> None:
        """Let all threads go on until they have returned, but for an expiry that is to come in this play."""
        while True:
            standing = self._session.conversation.standing()
            if passing := [hold for hold in standing if play is None or not play.early(hold)]:
                self.go(passing)
            elif not self._session.conversation.loose():
                return
            elif not standing:
                self._hear_on()
            elif self._is_quiet():
                # The calls of one whose only thread stands there come after it.
                self.go(standing)

    def _hear(self, within_s: float) -> Said | None:
        """See `Session.hear`."""
        self._count_what_is_said()
        return self._session.hear(within_s)

    def _hear_on(self) -> None:
        """See `Session.hear_on`."""
        self._count_what_is_said()
        self._session.hear_on()

    def _count_what_is_said(self) -> None:
        """A call that never ends may say something all the time, and is never silent."""
        self._said += 1
        if self._said > _SAID_MOST:
            raise self._session.failed("hang", f"said {_SAID_MOST:,} lines in one play, and goes in circles")

    def settle(self, play: Play) -> None:
        """Hear until all threads have returned or are at gates that are the play's, or nothing is heard any more."""
        conversation = self._session.conversation
        while True:
            passing = [hold for hold in conversation.standing() if not play.stops(hold)]
            for hold in passing:
                if hold in conversation.standing():
                    self.go([hold])
            if passing:
                # Another may have come to a gate while the subject took note: it is heard of once only.
                continue
            if not conversation.loose():
                return
            asked_s = time.monotonic()
            if self._hear(_GLANCE_S) is None and self._is_quiet():
                if self._gives_up():
                    continue
                return
            self._slowest_s = max(time.monotonic() - asked_s, 0.95 * self._slowest_s)

    def _gives_up(self) -> bool:
        """Whether something is heard after all within a time as long as a lock is tried for: a call that waits for
        another at a gate may wait no longer than that. Only in virtual time, where nothing else goes on meanwhile, and
        for such calls and gates until nothing is, or so often: on a busy machine one is heard that was only slow. Not
        where a thread of the subject's own stands, for which all calls wait."""
        standing = self._session.conversation.standing()
        situation = (*self._session.conversation.unanswered(), *(hold.f for hold in standing))
        of_lanes = standing and all(hold.thread.startswith("caller-") for hold in standing)
        if self._clock is None or not of_lanes or self._waited[situation] >= _WAITS_MOST:
            return False
        heard = self._hear(_GIVES_UP_S) is not None
        self._waited[situation] += 1 if heard else _WAITS_MOST
        return heard

    def _is_quiet(self) -> bool:
        """Whether nothing is heard for a moment: several times what the slowest answer took of late. A JVM's threads
        can be looked at, and the moment is over when none of them runs."""
        until_s = time.monotonic() + min(_QUIET_MOST_S, max(_QUIET_LEAST_S, 5 * self._slowest_s))
        while (left_s := until_s - time.monotonic()) > 0:
            running = None if self._lines is None else self._lines.running()
            if running is None:
                return self._hear(left_s) is None
            if not running:
                return True
            if self._hear(_GLANCE_S) is not None:
                return False
        return True

    def ask(self, call: Call, lane: int = 0, hold: int | None = None, steps: tuple[int, ...] = ()) -> None:
        """Make a call and do not wait."""
        moves = self._clock.to(call.now_ns) if self._clock is not None and isinstance(call, Advance) else None
        self._session.ask(call, lane, moves, hold=hold, steps=steps)

    def go(self, holds: Sequence[Hold], *, fail: bool = False) -> None:
        """Let the threads go on, together, or `fail`; heard once the subject has taken note."""
        conversation = self._session.conversation
        number = self._session.ask(Go(tuple(hold.number for hold in holds), int(fail) or None))
        while conversation.is_open(number):
            at_lines = [hold.number for hold in conversation.standing() if hold.f == STEP]
            if self._lines is None or not at_lines:
                self._hear_on()
            elif self._hear(_TAKES_NOTE_S) is None:
                # One of them may have what its own adapter needs to answer, such as the lock of its output.
                self._session.ask(Go(tuple(at_lines)))
                if self._making is not None and self._making[2] is not None:
                    self._lines.adapters.update(point.line for point in self._making[2].points)

    def wait_until(self, call: Until, lane: int, delay_ns: int, steps: tuple[int, ...]) -> None:
        """Let virtual time come near the deadline of an operation or task."""
        assert self._clock is not None, "a program for virtual time"
        self.ask(
            Advance(max(self._clock.now_ns, self._begun_ns + delay_ns - call.before_ns)), lane, steps=steps
        )

    def expire(
        self, operation: str, lane: int, delay_ns: int, begun_s: float, steps: tuple[int, ...]
    ) -> None:
        """Let the time of an operation or task come."""
        if self._clock is not None:
            self.ask(Advance(self._clock.now_ns + delay_ns + self._late_ns), lane, steps=steps)
            return
        # Several times as late as others came of late: one that is kept from coming, by whoever was stopped, need not
        # be waited for long, and if it was only slow the order is another one.
        due_s = begun_s + (delay_ns + self._late_ns) / 1e9
        until_s = due_s + min(_EXPIRY_LATE_S, max(_EXPIRY_LEAST_S, 5 * self._latest_s))
        conversation = self._session.conversation

        def to_come() -> bool:
            there = any(
                hold.f == "timer_fire" and hold.id == operation for hold in conversation.holds.values()
            )
            return operation in conversation.settled.pending and not there

        waited = False
        while to_come() and time.monotonic() < until_s:
            waited = True
            self._hear(min(0.05, until_s - time.monotonic()))
        if waited and not to_come():
            self._latest_s = max(time.monotonic() - due_s, 0.9 * self._latest_s)

    @property
    def session(self) -> Session:
        """The session that it drives."""
        return self._session

    def _come_to_rest(self) -> None:
        """Past the last time-out, so that nothing can hide behind one that has not come."""
        self._said = -_SAID_MOST * 10
        if self._clock is not None:
            for _ in range(3):
                self._leap(self._delays.far_ns + self._late_ns)
        else:
            until_s = time.monotonic() + (self._delays.far_ns + self._late_ns) / 1e9 + _EXPIRY_LATE_S
            while time.monotonic() < until_s and self._session.conversation.settled.pending:
                if self._hear(min(0.05, until_s - time.monotonic())) is not None:
                    # As long as something comes the rest may come too: a slow machine has lost nothing.
                    until_s = max(until_s, time.monotonic() + LATE_SLACK_NS / 1e9)
                self.let_go()
        self._play_to_the_end([Quiesce()])


@dataclass(slots=True)
class Play:
    """One play under way."""

    run: GatedRun
    program: GateProgram
    number: int
    over: bool = False
    before: list[LaneCall] = field(default_factory=list)
    after: list[LaneCall] = field(default_factory=list)
    lanes: list[list[LaneCall]] = field(default_factory=list)
    held_back: set[str] = field(default_factory=set)
    delays: dict[str, int] = field(default_factory=dict)
    begun_s: float = field(default_factory=time.monotonic)
    stopped: set[int] = field(default_factory=set)
    """The stops of a thread that came to its steps."""
    passes: bool = False
    """Whether such a thread goes on."""
    beside: str = ""
    """If any, only the first that comes to this gate stays there, if it comes while the play `keeps`."""
    keeps: bool = False
    kept: Hold | None = None

    def __post_init__(self) -> None:
        self.before = named_in(self.program.before, self.number)
        self.after = named_in(self.program.after, self.number)
        self.lanes = [named_in(lane, self.number) for lane in self.program.lanes]
        calls = [*self.before, *(call for lane in self.lanes for call in lane)]
        self.held_back = {call.id for call in calls if isinstance(call, Expiry)}
        self.delays = {call.id: call.delay_ns for call in calls if isinstance(call, Register | Add)}

    def stops(self, hold: Hold) -> bool:
        """Whether a thread that stands there stays: at the program's places, and before an expiry that is to come."""
        if self.over:
            return False
        if hold.f == STEP:
            self.stopped.add(hold.number)
            return not self.passes
        mine = hold.id is None or hold.id.startswith(f"p{self.number}-")
        if not mine or (hold.f not in self.program.stops and not self.early(hold)):
            return False
        if self.keeps and hold.f == self.beside:
            self.kept = self.kept or hold
        return not self.beside or hold is self.kept or self.early(hold)

    def early(self, hold: Hold) -> bool:
        """Whether it is about to expire before that is let come."""
        return hold.f == "timer_fire" and hold.id in self.held_back

    def acts(self) -> list[Act]:
        """What can be done now; nothing when the play is over, or when all that is left waits for ever."""
        conversation = self.run.session.conversation
        standing = [hold for hold in conversation.standing() if not self.early(hold)]
        calls = [self._call(lane) for lane in range(len(self.lanes)) if self.can_call(lane)]
        if self.program.volley:
            if calls:
                return calls[:1]
            return [lambda: self.run.go(standing)] if standing else []
        goes = [self._go(hold) for hold in standing]
        return [*goes, *calls]

    def _go(self, hold: Hold) -> Act:
        place = (hold.f, (hold.id or "").removeprefix(f"p{self.number}-"))
        return lambda: self.run.go([hold], fail=place in self.program.fails)

    def can_call(self, lane: int) -> bool:
        """Whether the lane's next call can be made."""
        if not self.lanes[lane]:
            return False
        conversation = self.run.session.conversation
        call = self.lanes[lane][0]
        if isinstance(call, Cancel) and not conversation.makes_sense(call):
            # A task may be cancelled while it is added.
            return conversation.under_add(call.id) and conversation.free(lane)
        if isinstance(call, Force) and not conversation.makes_sense(call):
            # Its registration has not returned: it is there if it stands at a gate, or never will be.
            begun = any(hold.id == call.id for hold in conversation.holds.values())
            if not begun:
                return False
        if isinstance(call, Inside):
            return self._place(call) is not None
        return conversation.free(lane)

    def _place(self, call: Inside) -> Hold | None:
        """Where it can be made: at the innermost gate of a thread that stands in a callback of the operation."""
        standing = self.run.session.conversation.standing()
        return next((hold for hold in reversed(standing) if hold.id == call.id), None)

    def _call(self, lane: int) -> Act:
        return lambda: self.make(lane)

    def make(self, lane: int, steps: tuple[int, ...] = ()) -> None:
        """The lane's next call, which stops at these of its steps."""
        call = self.lanes[lane].pop(0)
        if isinstance(call, Expiry):
            self.run.expire(call.id, lane, self.delays[call.id], self.begun_s, steps)
            self.held_back.discard(call.id)
        elif isinstance(call, Until):
            self.run.wait_until(call, lane, self.delays[call.id], steps)
        elif isinstance(call, Inside):
            place = self._place(call)
            assert place is not None, "it could be made"
            self.run.ask(call.call, hold=place.number)
        else:
            self.run.ask(call, lane, steps=steps)
