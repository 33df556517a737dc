"""The *scope*: all programs of one or two callers up to a size, the smallest first.

A program begins with up to two tasks (or operations), and one more task that no call uses. Then one or two callers make
up to three calls in total. An advance of the clock counts as a call. One of the calls may be made inside a callback, or
a callback may raise an exception. If a task cancels itself and then adds another task, this counts as one call. At the
end of the program, each waiting operation gets its event or its time-out.

The size of a program is the number of its calls after the beginning, including calls inside callbacks. If two programs
differ only in names, the scope has only one of the two.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    AGAIN,
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
    Reset,
)
from purgatorio_conformance.protocol.small_program import (
    ANY,
    ARM,
    CALLBACK,
    DISARM,
    DONE,
    ERRORS,
    EXPIRED,
    FIRE,
    FORCE,
    SEQUENCE,
    SLOW,
    TIMER,
    TRY,
    Delays,
    EveryOrder,
    Expiry,
    Fault,
    Inside,
    InTurn,
    LaneCall,
    SmallProgram,
    Until,
    class_of,
    delays_for,
    late_for,
)

SIZE_MOST: Final = 3
"""The most calls of a program after its start."""

_SWITCHES_MOST: Final = 2
"""In a program of two callers, an order leaves a thread that could continue at most this often."""

DRAWN: Final = "drawn-"
"""The prefix of the names of random programs."""

PLACES: Final = (TRY, FORCE, DONE, EXPIRED, ARM, DISARM)
"""The pause points of programs. In every program, threads pause before an expiry too."""

_TURN_MOST: Final = 64
"""If a revolution takes longer than this many programs, the far deadlines do not include a revolution."""

_TICKS_MOST: Final = 4_096
"""The longest delay of a task that a task adds, in ticks."""

_SAME: Final = ("soon", "later")
"""The delays of adds again and resets, if the subject gives each the delay of the first add in any case."""


# Steps and start states are compared by identity, so that what is asked of thousands of recipes is computed once.


@dataclass(frozen=True, eq=False)
class _Step:
    """One named step of a caller: a call, the two calls of an event, or a callback that `fails`. `needs`: the tasks
    or operations that must exist."""

    name: str
    calls: tuple[LaneCall, ...] = ()
    """If the step is inside a callback, its advances of the clock come after the other calls of the program."""
    needs: frozenset[str] = frozenset()
    adds: str = ""
    rank: int = 0
    """For an advance of the clock: a higher rank is a later moment. Time never goes back."""
    fails: bool = False
    nth: int | None = None
    """The number of the call of the callback that fails, counted from 0; None: each call."""

    @cached_property
    def kind(self) -> str:
        return " ".join(word for word in self.name.split() if word not in _NAMES)


_NAMES: Final = frozenset(
    {"op", "other", "next", "more", "inner", "live", "t", "u", "v", "w", "x", "a", "b", "ab"}
)


@dataclass(frozen=True, eq=False)
class _Start:
    """A start state: its calls, and the ids that exist after them. `inside`: the callbacks in which calls may be
    made."""

    name: str
    calls: tuple[Call | Until, ...]
    there: tuple[str, ...]
    inside: tuple[tuple[str, str], ...] = ()

    @lru_cache(maxsize=1 << 12)  # noqa: B019 - it keeps few start states
    def touched(self, step: _Step) -> tuple[frozenset[str], frozenset[str]]:
        """The tasks and operations that a step affects, by id or by key; and the keys."""
        calls = [*self.calls, *step.calls]
        ids = {call.id for call in step.calls if isinstance(call, _OF_ONE)}
        keys = {call.key for call in step.calls if isinstance(call, Check | CancelKey)}
        registered = [call for call in calls if isinstance(call, Register)]
        keys |= {key for call in registered if call.id in ids for key in call.keys}
        ids |= {call.id for call in registered if keys & {*call.keys} and call.id in self.there}
        return frozenset(ids), frozenset(keys)

    @lru_cache(maxsize=1 << 12)  # noqa: B019 - it keeps few start states
    def has_work_for(self, step: _Step) -> bool:
        """Whether a check finds a ready operation, a `cancel_for_key` finds any operation, or a registration waits."""
        waits: dict[str, tuple[str, ...]] = {}
        ready: set[str] = set()
        for call in (*self.calls, *step.calls[:-1]):
            if isinstance(call, Register):
                waits[call.id] = call.keys
            elif isinstance(call, Ready):
                ready.add(call.id)
            elif isinstance(call, Check):
                waits = {one: keys for one, keys in waits.items() if call.key not in keys or one not in ready}
        last = step.calls[-1] if step.calls else None
        if isinstance(last, Register):
            return last.delay_ns > 0 and last.id not in ready
        if isinstance(last, Check | CancelKey):
            every = isinstance(last, CancelKey)
            return any(last.key in keys and (every or one in ready) for one, keys in waits.items())
        return not isinstance(last, Gauge)


_OF_ONE: Final = Add | Cancel | Reset | Register | Ready | Force | Expiry | Until


@dataclass(frozen=True, slots=True, eq=False)
class _Inside:
    """A step that is made inside this callback (`place`) of this task or operation."""

    place: str
    whose: str
    step: _Step
    nth: int | None = 0
    """The number (from 0) of the call of the callback in which the step is made; None: any call that is paused."""

    @property
    def fault(self) -> Fault:
        return Fault(self.place, self.whose, self.step.nth)

    def calls(self) -> tuple[Inside, ...]:
        plain = (call for call in self.step.calls if not isinstance(call, Expiry | Inside | Until))
        return tuple(Inside(self.whose, call, self.place, self.nth) for call in plain)


@dataclass(frozen=True, slots=True)
class _Recipe:
    start: _Start
    lanes: tuple[tuple[_Step, ...], ...]
    inside: _Inside | None = None

    @property
    def name(self) -> str:
        told = [" beside ".join("; ".join(step.name for step in lane) for lane in self.lanes)]
        if self.inside is not None:
            again = ", the second time" if self.inside.nth else ""
            told.append(f"in {self.inside.place} of {self.inside.whose}{again}: {self.inside.step.name}")
        return f"{self.start.name or 'nothing'} | {'; '.join(one for one in told if one)}"

    def steps(self) -> list[_Step]:
        return [step for lane in self.lanes for step in lane] + ([self.inside.step] if self.inside else [])

    def _relations(self) -> tuple[int, ...]:
        """For each pair of calls: 2 if both affect one task or operation, 1 if both affect one key."""
        touched = [self.start.touched(step) for step in self.steps()]
        pairs = itertools.combinations(touched, 2)
        return tuple(2 if one[0] & other[0] else bool(one[1] & other[1]) for one, other in pairs)

    @property
    def related(self) -> bool:
        return all(self._relations())

    def work(self) -> tuple[int, int]:
        """A rank: first how many calls find or leave something; then how few keys and operations the program has. (With
        more of them, no list becomes empty, and a later event of another key may complete a lost operation.)"""
        calls = [*self.start.calls, *(call for step in self.steps() for call in step.calls)]
        size = sum(len(call.keys) for call in calls if isinstance(call, Register))
        return sum(map(self.start.has_work_for, self.steps())), -size

    def _deadlines(self) -> tuple[int, ...]:
        """If the calls only add tasks and let time pass: how the new deadlines compare with each other, and with the
        first deadline of the start state."""
        calls = [call for step in self.steps() for call in step.calls]
        new = sorted(call.delay_ns for call in calls if isinstance(call, Add))
        if not all(isinstance(call, Add | Expiry) for call in calls):
            return ()
        waits = (call.delay_ns for call in self.start.calls if isinstance(call, Add))
        pairs = itertools.combinations([min(waits, default=0), *new], 2)
        return tuple((one > other) - (one < other) for one, other in pairs)

    def _met(self, kinds: Callable[[_Step], str]) -> tuple[object, ...]:
        where = self.inside and (self.inside.place, self.inside.nth, kinds(self.inside.step))
        lanes = tuple(tuple(map(kinds, lane)) for lane in self.lanes)
        return (lanes, self._relations(), self._deadlines(), where)

    def meets(self) -> tuple[object, ...]:
        """The kinds of the calls, whether they affect one task, operation or key, and the order of the deadlines."""
        return self._met(lambda step: step.kind.split()[0])

    def meets_closely(self) -> tuple[object, ...]:
        """`meets`, and in addition the deadlines of added tasks or operations."""
        return self._met(lambda step: step.kind)

    def meets_there(self) -> tuple[object, ...]:
        return (self.start.name, *self.meets_closely())


def scope(part: Part, delays: Delays, description: Description) -> Iterator[list[SmallProgram]]:
    """The programs of one caller that the subject can execute, by size from 1 to `SIZE_MOST`. Within a size, programs
    with a new combination of calls come first. Empty if the subject accepts no delay of some ticks."""
    longest_ns = delays.far_ns if part == "purgatory" else delays.soon_ns + delays.before_ns
    if description.most_delay_ns < longest_ns:
        return
    words = _words(part, delays, description)
    seen: set[tuple[str, ...]] = set()
    for size in range(1, SIZE_MOST + 1):
        new: list[SmallProgram] = []
        known: list[SmallProgram] = []
        for recipe in words.alone(size):
            names = [step.name for step in recipe.steps()]
            pairs = {*itertools.pairwise((recipe.start.name, *names))}
            pairs |= {(recipe.start.name, name) for name in names}
            (known if seen.issuperset(pairs) else new).append(words.in_turn(recipe))
            seen.update(pairs)
        # If not all are executed, a random part represents the rest.
        random.Random(size).shuffle(known)
        yield new + known


def crossed(
    part: Part, delays: Delays, description: Description
) -> Iterator[tuple[int, Iterator[SmallProgram]]]:
    """The programs of two callers, and of one caller with a call from inside its callback. Yields, for each size from 2
    to `SIZE_MOST`, the number of programs and the programs. Each is executed in every order. Programs with a new
    combination of calls come first, then combinations that are new for their start state."""
    words = _words(part, delays, description)
    for size in range(2, SIZE_MOST + 1):
        found = _crossed(part, delays, description, size)
        yield len(found), map(words.crossing, _new_first(found))


@lru_cache(maxsize=2 * SIZE_MOST)
def _crossed(part: Part, delays: Delays, description: Description, size: int) -> tuple[_Recipe, ...]:
    """Cached, because the largest set takes a second, and several modes of execution need it."""
    return tuple(_words(part, delays, description).crossed(size))


def crossed_pairs(part: Part, delays: Delays, description: Description) -> Iterator[SmallProgram]:
    """The programs of `crossed` with two calls. They are enumerated when the first one is requested."""
    _, programs = next(crossed(part, delays, description))
    yield from programs


def crossing_named(name: str, part: Part, delays: Delays, description: Description) -> SmallProgram | None:
    """The program of this name, if it is one of `crossed`."""
    words = _words(part, delays, description)
    recipes = (
        recipe for size in range(2, SIZE_MOST + 1) for recipe in _crossed(part, delays, description, size)
    )
    return next((words.crossing(recipe) for recipe in recipes if recipe.name == name), None)


def _new_first(recipes: Sequence[_Recipe]) -> Iterator[_Recipe]:
    """The recipes in order: first those with a new value of `meets`; among these, first those whose calls affect the
    same thing. Of recipes with equal `meets`, the one with the most `work` comes first."""
    left = [*recipes]
    random.Random(len(left)).shuffle(left)
    for new in (_Recipe.meets, _Recipe.meets_closely, _Recipe.meets_there):
        seen: set[object] = set()
        for related in (True, False):
            found: dict[object, _Recipe] = {}
            for recipe in left:
                meets = new(recipe)
                if meets not in seen and recipe.related is related:
                    found[meets] = max(found.get(meets, recipe), recipe, key=_Recipe.work)
            yield from found.values()
            seen |= found.keys()
            chosen = {id(recipe) for recipe in found.values()}
            left = [recipe for recipe in left if id(recipe) not in chosen]
    yield from left


def drawn_program(
    name: str, part: Part, delays: Delays, description: Description, *, virtual: bool
) -> SmallProgram:
    """The random program of this name, with more calls and callers than the scope has. The same name gives the same
    program. Its delays are those of the scope, and those of the levels of a wheel."""
    words = _words(part, delays, description)
    return words.drawn(name, random.Random(name), virtual or FIRE in description.gates)


def _words(part: Part, delays: Delays, description: Description) -> _Words:
    return (_OfTimer if part == "timer" else _OfPurgatory)(delays, description)


class _Words:
    starts: Sequence[_Start]
    """Start states for programs of one caller."""
    of_two: Sequence[_Start]
    """Start states for programs of two callers."""
    later: Sequence[_Start]
    """Start states for programs of one caller. Time has already advanced in them, and advances again at the end."""
    places: tuple[str, ...]
    """The pause points of random programs."""

    def __init__(self, delays: Delays, description: Description) -> None:
        self.delays = delays
        self.knows = frozenset(description.capabilities)
        self.gates = frozenset(description.gates)
        self.lanes = description.lanes
        self.late_ns = late_for(description)
        self.turn_ns = turn_of(description)

    def steps(self, start: _Start) -> Sequence[_Step]:
        raise NotImplementedError

    def beside(self, start: _Start) -> Sequence[_Step]:
        raise NotImplementedError

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        raise NotImplementedError

    def at_last(self, there: Sequence[str], soon: Sequence[str]) -> tuple[LaneCall, ...]:
        """The last calls: the operations due `soon` expire. Then all others that wait get their event or time-out."""
        raise NotImplementedError

    def comes_to(self, whose: str, start: _Start, steps: Sequence[_Step]) -> bool:
        """Whether any thread reaches the callbacks of `whose`."""
        return True

    def leads_to(self, inside: _Inside, start: _Start, step: _Step) -> bool:
        """Whether this step alone brings a thread to the place of `inside`."""
        raise NotImplementedError

    def crossing(self, recipe: _Recipe) -> SmallProgram:
        raise NotImplementedError

    def times(self, whose: str) -> Iterator[_Step]:
        """Advances of the clock: to just before a deadline, to the deadline, beyond it, or by a whole revolution."""
        yield _Step("time until just before", (Until(whose, self.delays.before_ns),), rank=1)
        yield _Step("time until due", (Until(whose, 0),), rank=2)
        yield _Step("time beyond", (Until(whose, -self.late_ns),), rank=3)
        yield _Step("time over a revolution", (Until(whose, -self.turn_ns),), rank=4)

    def insides(self, start: _Start) -> Iterator[_Inside]:
        """The steps that may be made inside the callbacks of a start state, including an error."""
        for place, whose in start.inside:
            if place in self.gates:
                for step in self.steps_inside(place, whose, start):
                    yield _Inside(place, whose, step)
                    if place == TRY and whose not in start.there:
                        # A registration tries the operation a second time.
                        yield _Inside(place, whose, step, 1)
                for step in self._fails(place):
                    yield _Inside(place, whose, step)

    def far_ones(self, start: _Start) -> Iterator[_Recipe]:
        """Recipes with so long delays that they are not combined with other steps."""
        yield from ()

    def _fails(self, place: str) -> Iterator[_Step]:
        if "failing" in self.knows:
            yield _Step("raises", fails=True)
            # An operation is tried more than once.
            for number, nth in enumerate(("first", "second") if place == TRY else ()):
                yield _Step(f"raises the {nth} time", fails=True, nth=number)

    def gauge(self) -> tuple[Call, ...]:
        return (Gauge(),) if "gauge" in self.knows else ()

    def sizes(self) -> list[_Step]:
        return [_Step("gauge", self.gauge())] if self.gauge() else []

    # One caller.

    def alone(self, size: int) -> Iterator[_Recipe]:
        """Recipes of one caller: `size` calls, of which one may be made inside a callback."""
        for start in (*self.starts, *self.later):
            for steps in self._sequences(start, size):
                yield _Recipe(start, (steps,))
            if size == 1:
                yield from self.far_ones(start)
            for inside in self.insides(start):
                if inside.step.needs.issubset(start.there):
                    for steps in self._sequences(start, size - 1):
                        if self.comes_to(inside.whose, start, steps):
                            yield _Recipe(start, (steps,), inside)

    def _sequences(self, start: _Start, count: int) -> Iterator[tuple[_Step, ...]]:
        for steps in itertools.product(self.steps(start), repeat=count):
            there, rank = {*start.there}, 0
            for step in steps:
                if not step.needs <= there or (step.adds and step.adds in there):
                    break
                if step.rank and step.rank <= rank:
                    break
                rank = step.rank or rank
                there |= {step.adds} - {""}
            else:
                yield steps

    def in_turn(self, recipe: _Recipe) -> SmallProgram:
        program, there = self._made(recipe, SEQUENCE)
        inside = recipe.inside
        comes = recipe.start in self.later or (inside is not None and inside.place == EXPIRED)
        soon = ["op"] if comes else []
        soon += [step.adds for step in recipe.steps() if step.adds and step.name.endswith(" soon")]
        (first, *of_callback), last = program.lanes, self.at_last(there, soon)
        last += tuple(call for call in (inside.step.calls if inside else ()) if isinstance(call, Until))
        pauses = ((inside.place, inside.whose),) if inside else ()
        return replace(program, lanes=((*first, *last), *of_callback), pauses=pauses, schedule=InTurn())

    def _made(self, recipe: _Recipe, targets: str) -> tuple[SmallProgram, list[str]]:
        """The program without pause points and last calls; and the tasks or operations that exist at its end."""
        inside = recipe.inside
        lanes = [tuple(call for step in lane for call in step.calls) for lane in recipe.lanes]
        fault: Fault | None = None
        if inside is not None:
            targets = CALLBACK
            if inside.step.fails:
                targets, fault = ERRORS, inside.fault
            else:
                lanes.append(inside.calls())
        there = [*recipe.start.there, *(step.adds for step in recipe.steps() if step.adds)]
        order = EveryOrder(_SWITCHES_MOST)
        before = recipe.start.calls
        return SmallProgram(recipe.name, targets, tuple(lanes), (), before, (), order, fault), there

    # Two callers.

    def crossed(self, size: int) -> Iterator[_Recipe]:
        """Recipes of two callers, or of one caller with a call from inside its callback."""
        for start in self.of_two:
            steps = [*self.expiries(start), *self.beside(start)]
            pairs = [*itertools.combinations_with_replacement(steps, 2)] if self.lanes > 1 else []
            fit = [(one, other) for one, other in pairs if self._fit(start, one, other)]
            if size == 2:
                yield from (_Recipe(start, ((one,), (other,))) for one, other in fit)
                yield from self._inside(start, [((step,),) for step in steps])
                continue
            for one, other in fit:
                for third in steps:
                    if self._fit(start, one, third) and self._fit(start, other, third):
                        yield _Recipe(start, ((one,), (other, third)))
                        if one is not other:
                            yield _Recipe(start, ((other,), (one, third)))
            yield from self._inside(start, [((one,), (other,)) for one, other in pairs])

    def expiries(self, start: _Start) -> list[_Step]:
        over = {call.id for call in start.calls if isinstance(call, Until)}
        due = (
            call.id
            for call in start.calls
            if isinstance(call, Add | Register)
            and call.delay_ns == self.delays.soon_ns
            and call.id not in over
        )
        return [_Step(f"expiry of {one}", (Expiry(one),)) for one in itertools.islice(due, 1)]

    def _fit(self, start: _Start, *steps: _Step) -> bool:
        """Whether all tasks that the steps need exist, no task is added twice, and at most one step is an expiry."""
        adds = [step.adds for step in steps if step.adds]
        expire = [step for step in steps if step.calls and isinstance(step.calls[0], Expiry)]
        there = {*start.there, *adds}
        return len({*adds}) == len(adds) and len(expire) < 2 and all(step.needs <= there for step in steps)

    def _inside(self, start: _Start, lanes: Iterable[tuple[tuple[_Step, ...], ...]]) -> Iterator[_Recipe]:
        insides = [*self.insides(start)]
        leads_to = cache(partial(self.leads_to, start=start))
        for callers in lanes:
            steps = [step for lane in callers for step in lane]
            for inside in insides:
                # `try_complete` runs under the operation's lock. There, a call may wait for ever for another lock.
                locked = inside.place == TRY and len(callers) > 1 and not inside.step.fails
                leads = any(leads_to(inside, step=step) for step in steps)
                if leads and not locked and not inside.nth and self._fit(start, *steps, inside.step):
                    yield _Recipe(start, callers, replace(inside, nth=None))

    # Random programs, of several callers.

    def drawn(self, name: str, draws: random.Random, expires: bool) -> SmallProgram:
        start = draws.choice(self.of_two)
        before = (
            start.calls if expires else tuple(call for call in start.calls if not isinstance(call, Until))
        )
        steps, added = [*self.drawn_steps(start)], {*start.there}
        lanes: list[tuple[_Step, ...]] = []
        for _ in range(draws.randint(2, max(2, min(3, self.lanes)))):
            lane: list[_Step] = []
            for _ in range(draws.choice((1, 1, 2, 3))):
                # No step is left if all names are already added.
                if fit := [step for step in steps if not (step.adds and step.adds in added)]:
                    lane.append(draws.choice(fit))
                    added |= {lane[-1].adds} - {""}
            lanes += [tuple(lane)] if lane else []
        made, _ = self._made(_Recipe(start, tuple(lanes)), ANY)
        calls = [*made.lanes]
        for step in self.expiries(start) if expires and draws.random() < 0.6 else ():
            lane_number = draws.randrange(len(calls))
            place = draws.randrange(len(calls[lane_number]) + 1)
            calls[lane_number] = (*calls[lane_number][:place], *step.calls, *calls[lane_number][place:])
        insides = [one for one in self.insides(start) if one.step.needs <= added]
        insides = [one for one in insides if one.place != TRY or one.step.fails]
        fault: Fault | None = None
        for inside in draws.sample(insides, min(len(insides), draws.choice((0, 1, 2)))):
            if inside.step.fails:
                fault = inside.fault
            elif inside.step.adds not in added:
                added |= {inside.step.adds} - {""}
                calls.append(replace(inside, nth=None).calls())
        places = [place for place in self.places if place in self.gates]
        pauses = draws.sample(places, draws.randint(1, len(places))) if places else []
        # The same name is the same program in every process.
        after = self._after(sorted(added)) if draws.random() < 0.5 else ()
        return replace(
            made, name=name, lanes=tuple(calls), pauses=tuple(pauses), before=before, after=after, fault=fault
        )

    def drawn_steps(self, start: _Start) -> Sequence[_Step]:
        """The steps that the callers of a random program may make."""
        return [step for step in self.beside(start) if step.needs.issubset(start.there)]

    def _after(self, there: Sequence[str]) -> tuple[Call, ...]:
        return tuple(
            call for call in self.at_last(there, ()) if not isinstance(call, Expiry | Inside | Until)
        )


class _OfTimer(_Words):
    places = (FIRE,)

    def __init__(self, delays: Delays, description: Description) -> None:
        super().__init__(delays, description)
        self._tick_ns = delays.before_ns
        self._most_ns = description.most_delay_ns
        self._buckets = description.buckets
        self._turns = self.turn_ns <= _TURN_MOST * self._tick_ns
        self._ns: Mapping[str, int] = {
            "at once": delays.least_ns,
            "soon": delays.soon_ns,
            "next": delays.soon_ns + delays.before_ns,
        }
        # So far apart that the one is late before the other is due.
        apart = (delays.soon_ns + number * 4 * self.late_ns for number in range(3))
        self._apart_ns = dict(zip(("soon", "later", "last"), apart, strict=True))
        t = Add("t", delays.soon_ns)
        self.starts = self._starts(t, Add("live", delays.soon_ns))
        # What comes before a bystander that is far is the first of all.
        self.of_two = self._starts(t, Add("live", delays.far_ns))
        over = (t, Until("t", -self.late_ns), Add("live", delays.soon_ns))
        self.later = [_Start("t over", over, ("t",))]

    def _starts(self, t: Add, live: Add) -> Sequence[_Start]:
        soon, following = (Add("u", self._ns[name]) for name in ("soon", "next"))
        fires, either = ((FIRE, "t"),), ((FIRE, "t"), (FIRE, "u"))
        starts = [
            _Start("", (live,), ()),
            _Start("t soon", (t, live), ("t",), fires),
            _Start("t soon, u soon", (t, soon, live), ("t", "u"), either),
            _Start("t soon, u next", (t, following, live), ("t", "u"), either),
            _Start("t at once", (Add("t", self.delays.least_ns), live), ("t",), fires),
        ]
        if self._turns and self.delays.turn_ns <= self._most_ns:
            again = (Add("t", self.delays.turn_ns), Add("live", self.delays.turn_ns))
            used = (Add("before", t.delay_ns), Until("before", 0), *again)
            starts.append(_Start("t in a used bucket", used, ("t",), fires))
        return starts

    def _alone(self, start: _Start) -> bool:
        """Whether the new tasks are due before all others, so that only the order of the new tasks matters."""
        return start == self.of_two[0] and self._apart_ns["last"] <= self._most_ns

    def _adds(self, task: str, start: _Start) -> Iterator[_Step]:
        for name, delay_ns in (self._apart_ns if self._alone(start) else self._ns).items():
            yield _Step(f"add {task} {name}", (Add(task, delay_ns),), adds=task)

    def _other_adds(self, start: _Start) -> Iterator[_Step]:
        """Add a task that is due in a tick, or a task in the bucket of the tasks due soon, but a revolution later."""
        if self._alone(start):
            return
        yield _Step("add w in a tick", (Add("w", max(self._tick_ns, self.delays.least_ns)),), adds="w")
        delay_ns = self.delays.soon_ns + self.turn_ns
        if self._turns and delay_ns <= self._most_ns:
            yield _Step("add w a revolution later", (Add("w", delay_ns),), adds="w")

    def _again_steps(self) -> Iterator[_Step]:
        if not AGAIN.isdisjoint(self.knows):
            for name, delay_ns in self._ns.items():
                if "add-again" in self.knows or name in _SAME:
                    yield _Step(f"add t again {name}", (Add("t", delay_ns),), frozenset({"t"}))

    def _resets(self, delays: Mapping[str, int]) -> Iterator[_Step]:
        if "reset" in self.knows:
            for name, delay_ns in delays.items():
                if delay_ns <= self._most_ns and ("reset-same" not in self.knows or name in _SAME):
                    yield _Step(f"reset t {name}", (Reset("t", delay_ns),), frozenset({"t"}))

    def _cancels(self) -> Iterator[_Step]:
        if "cancel" in self.knows:
            for task in ("t", "u", "w"):
                yield _Step(f"cancel {task}", (Cancel(task),), frozenset({task}))

    def steps(self, start: _Start) -> Sequence[_Step]:
        return (
            *self._cancels(),
            *self._again_steps(),
            *self._resets(self._ns),
            *self._adds("w", start),
            *self._other_adds(start),
            *self.times("live"),
        )

    def beside(self, start: _Start) -> Sequence[_Step]:
        some = [step for step in self.steps(start) if not step.rank and not isinstance(step.calls[0], Reset)]
        # During an expiry, only a run before a later deadline than this is certainly early.
        some += self._resets({"later": self._apart_ns["later"]})
        # A timer need not support two concurrent adds of the same task.
        once = [replace(step, adds="again") if "again" in step.name else step for step in some]
        return (*self.sizes(), *once, *self._adds("v", start))

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        live = [_Step("cancel live", (Cancel("live"),))] if "cancel" in self.knows else []
        if live:
            # The new task may reuse the entry that the cancelled task freed.
            moved = (Cancel(whose), Add("x", self._ns["soon"]))
            live.append(_Step(f"add x soon in place of {whose}", moved, adds="x"))
        return (*self._cancels(), *live, *self._again_steps(), *self._adds("x", start), *self.sizes())

    def far_ones(self, start: _Start) -> Iterator[_Recipe]:
        """A task that runs adds another task, with a delay of (or near) whole revolutions of a level. A wheel may put
        the new task into the bucket that it is emptying, as if this bucket belonged to the next revolution. In one
        recipe, time has advanced by most of a revolution: a wheel that chooses the bucket by the clock may choose one
        that it still has to empty."""
        if FIRE not in self.gates or start.inside != ((FIRE, "t"),):
            return
        turn_ns, tick_ns = self.turn_ns, self._tick_ns
        by_ticks = _Step("time by ticks", tuple(Until("t", -ticks * tick_ns) for ticks in range(2)))
        most_ns = turn_ns * 3 // 4 // tick_ns * tick_ns
        by_most = _Step("time by most of a revolution", (Until("t", tick_ns), Until("t", -most_ns)))
        for time, name, delay_ns in (
            (by_most, "a tick before a revolution", turn_ns - tick_ns),
            (by_ticks, "a tick before a revolution", turn_ns - tick_ns),
            (by_ticks, "a revolution later", turn_ns),
            (by_ticks, "a tick after a revolution", turn_ns + tick_ns),
            (by_ticks, "two revolutions later", 2 * turn_ns),
            (by_ticks, "a revolution of the next level later", turn_ns * self._buckets),
        ):
            if self.delays.least_ns <= delay_ns <= min(self._most_ns, _TICKS_MOST * tick_ns):
                rests = (*range(delay_ns - turn_ns, 0, -turn_ns), tick_ns, -self.late_ns)
                calls: tuple[LaneCall, ...] = (
                    Add("x", delay_ns),
                    *(Until("x", rest_ns) for rest_ns in rests),
                )
                yield _Recipe(start, ((time,),), _Inside(FIRE, "t", _Step(f"add x {name}", calls, adds="x")))

    def leads_to(self, inside: _Inside, start: _Start, step: _Step) -> bool:
        return isinstance(step.calls[0], Expiry)

    def at_last(self, there: Sequence[str], soon: Sequence[str]) -> tuple[LaneCall, ...]:
        return (*self.gauge(), Until("live", -self.late_ns))

    def crossing(self, recipe: _Recipe) -> SmallProgram:
        kinds = {step.kind.split()[0] for step in recipe.steps()}
        program, there = self._made(recipe, SLOW if {"expiry", "add"} <= kinds else TIMER)
        # A task that is cancelled while it is added may be counted until its deadline.
        after = () if "cancel" in kinds and "w" in there else self._after(there)
        return replace(program, pauses=(FIRE,) if "expiry" in kinds else (), after=after)

    def drawn_steps(self, start: _Start) -> Sequence[_Step]:
        wide = [self.delays.turn_ns, self.delays.level_ns, self.delays.later_ns, self.delays.far_ns]
        adds = [
            _Step(f"add {task}", (Add(task, delay_ns),), adds=task)
            for task in ("y", "z")
            for delay_ns in wide
        ]
        return [*super().drawn_steps(start), *adds]


class _OfPurgatory(_Words):
    places = PLACES

    def __init__(self, delays: Delays, description: Description) -> None:
        super().__init__(delays, description)
        far_ns, soon_ns = delays.far_ns, delays.soon_ns

        def waits(keys: str, operation: str = "op", delay_ns: int = far_ns) -> Register:
            return Register(operation, tuple(keys), delay_ns)

        live, ready = waits("ab", "live"), Ready("op")
        op, both = waits("a"), (waits("a"), waits("a", "other"))
        self._waits = waits
        completed = (waits("ag", "done"), Ready("done"), Check("g"))
        emptied = (waits("a", "gone"), Ready("gone"), Check("a"))
        tries = ((TRY, "op"), (DONE, "op"))
        expires = (*tries, (EXPIRED, "op"))
        registers = ((TRY, "next"), (DONE, "next"))
        soon, other = waits("a", "op", soon_ns), waits("a", "other", soon_ns)
        self.starts = [
            _Start("", (), (), registers),
            _Start("op a", (op, live), ("op",), tries),
            _Start("op ab", (waits("ab"), live), ("op",), tries),
            _Start("op a soon", (soon, live), ("op",), expires),
            _Start("op a, other a", (*both, live), ("op", "other"), tries),
            _Start("op a soon, other b", (soon, waits("b", "other"), live), ("op", "other"), expires),
            _Start("op a soon, other a soon", (soon, other, live), ("op", "other"), expires),
            _Start("a completed one before op a", (*completed, op, live), ("op",), tries),
            _Start("a was emptied", emptied, (), registers),
            _Start("op a ready", (op, ready, live), ("op",), tries),
            _Start("op a ready, alone", (op, ready), ("op",), tries),
            _Start("op ab ready, other b ready", (waits("ab"), ready, waits("b", "other"), Ready("other"), live),
                   ("op", "other"), tries),
        ]  # fmt: skip
        self.of_two = self.starts
        nearly = (soon, live, Until("op", delays.before_ns))
        self.later = [_Start("op a soon, nearly over", nearly, ("op",), expires)]

    def _some(self, start: _Start, new: str) -> Iterator[_Step]:
        """The steps that are possible in every place. `new`: the id for a registration."""
        yield _Step("check a", (Check("a"),))
        yield _Step("check b", (Check("b"),))
        if "cancel-key" in self.knows:
            yield _Step("give back a", (CancelKey("a"),))
        for operation, key in (("op", "a"), ("other", "b" if "other b" in start.name else "a")):
            yield from self._completes(operation, key)
        for keys in ("a", "b"):
            yield _Step(f"register {new} {keys}", (self._waits(keys, new),), adds=new)
        soon = self._waits("a", new, self.delays.soon_ns)
        yield _Step(f"register {new} a soon", (soon,), adds=new)

    def _completes(self, operation: str, key: str) -> Iterator[_Step]:
        yield _Step(f"event {operation}", (Ready(operation), Check(key)), frozenset({operation}))
        if "force" in self.knows:
            yield _Step(f"force {operation}", (Force(operation),), frozenset({operation}))

    def _calls(self, start: _Start) -> Iterator[_Step]:
        due = self._waits("a", "next", self.delays.least_ns)
        yield from self._some(start, "next")
        yield _Step("register next a at once", (due,), adds="next")
        yield _Step("register next ab ready", (Ready("next"), self._waits("ab", "next")), adds="next")

    def steps(self, start: _Start) -> Sequence[_Step]:
        # A whole revolution of the wheel concerns the clauses of its timer only.
        times = [*self.times("op")][1:3] if "soon" in start.name else ()
        return (*self._calls(start), *times)

    def beside(self, start: _Start) -> Sequence[_Step]:
        more = _Step("register more ba", (self._waits("ba", "more"),), adds="more")
        many = _Step("register next ab", (self._waits("ab", "next"),), adds="next")
        new = (*self._completes("next", "a"), *self._completes("inner", "b"))
        return (*self.sizes(), *self._calls(start), many, more, *new)

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        back = [_Step("give back b", (CancelKey("b"),))] if "cancel-key" in self.knows else []
        some = [
            step
            for step in (*self._some(start, "inner"), *back)
            # `try_complete` of an operation does not force the operation itself.
            if not (place == TRY and step.name == f"force {whose}")
        ]
        if place == TRY and whose == "next":
            some.append(_Step("event next", (Ready("next"), Check("a"))))
        return some

    def comes_to(self, whose: str, start: _Start, steps: Sequence[_Step]) -> bool:
        return whose in start.there or any(step.adds == whose for step in steps)

    def leads_to(self, inside: _Inside, start: _Start, step: _Step) -> bool:
        if inside.place == EXPIRED or isinstance(step.calls[0], Expiry):
            return inside.place != TRY and Expiry(inside.whose) in step.calls
        if Force(inside.whose) in step.calls:
            return inside.place != TRY
        ids, _ = start.touched(step)
        tries = step.adds == inside.whose or (step.kind in ("check", "event") and inside.whose in ids)
        return tries and (inside.place == TRY or Ready(inside.whose) in (*start.calls, *step.calls))

    def at_last(self, there: Sequence[str], soon: Sequence[str]) -> tuple[LaneCall, ...]:
        waits = tuple(Until(operation, -self.late_ns) for operation in soon)
        ready = tuple(Ready(operation) for operation in (*there, "live"))
        return (*waits, *ready, Check("a"), Check("b"), *self.gauge())

    def crossing(self, recipe: _Recipe) -> SmallProgram:
        kinds = {step.kind.split()[0] for lane in recipe.lanes for step in lane}
        program, there = self._made(recipe, class_of(kinds))
        # No later call completes an expiring operation, or a missing expiry would stay hidden.
        there = [one for one in there if Expiry(one) not in {call for lane in program.lanes for call in lane}]
        places = {place for kind in kinds for place in _PAUSES[kind]}
        places |= {recipe.inside.place} if recipe.inside else set()
        return replace(
            program,
            pauses=tuple(place for place in (FIRE, *self.places) if place in places),
            after=self._after(there),
        )


_PAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "expiry": (FIRE, DONE, EXPIRED),
    "register": (TRY, ARM),
    "check": (TRY, DONE),
    "event": (TRY, DONE),
    "force": (FORCE, DONE),
    "give": (DISARM,),
    "gauge": (),
}
"""The pause points of each kind of call."""


def turn_of(description: Description) -> int:
    """The duration of one revolution of the subject's wheel, in whole units."""
    return description.rounded(description.grain_ns * description.buckets)


SCOPE_S: Final = 300.0
"""The time limit of the scope, in seconds."""


def longest_of_scope_ns(delays: Delays, description: Description) -> int:
    """The longest single advance of a program in the scope, if nothing is overdue."""
    beyond_ns = turn_of(description) + max(2 * delays.soon_ns, delays.turn_ns)
    return max(delays.far_ns, beyond_ns) + late_for(description)


def scope_delays(description: Description) -> Delays:
    """The delays of the scope. A task that does not expire in its program expires a little later."""
    delays = delays_for(description, description.most_delay_ns)
    turn_ns = turn_of(description)
    fills = turn_ns <= _TURN_MOST * delays.before_ns
    far_ns = max(16 * delays.soon_ns, 2 * delays.soon_ns + turn_ns * fills)
    return replace(delays, far_ns=far_ns - far_ns % description.unit_ns)
