"""Runs small programs (of `gate_program` and `scope`) in many orders, on a subject that has pause points (gates).

The glossary (`docs/glossary.md`) has the terms of this package: lane, gate, step, paused call, hold, play.

At each moment, the driver either resumes a paused thread or makes the next call of a caller. It tries all orders of
these actions, depth first. Each play has new operations and keys. If the subject counts steps, the driver also pauses
each call at each of its steps (`gate_steps`). From time to time the driver judges the recorded events. It stops after
the first broken promise.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from purgatorio_conformance.protocol.boundary_plan import REAPER_NS, levels_of
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.gate_steps import Steps
from purgatorio_conformance.protocol.message import (
    MAX_TIME_NS,
    STEP,
    Description,
    Gauge,
    Quiesce,
    wait_call,
)
from purgatorio_conformance.protocol.played_order import BROKEN, TOO_MANY, Orders, PausedCall, PlayedOrder
from purgatorio_conformance.protocol.plays import Plays
from purgatorio_conformance.protocol.scope import (
    DRAWN,
    PLACES,
    SCOPE_S,
    crossed,
    crossing_named,
    drawn_program,
    longest_of_scope_ns,
    scope,
    scope_delays,
    turn_of,
)
from purgatorio_conformance.protocol.small_program import ANY, EveryOrder, SmallProgram

Way = Literal["scope", "orders", "alone", "beside", "drawn"]
"""The ways to run programs: the enumerated programs of one caller, in sequence; all orders at pause points; a call
paused at each of its steps, alone, or while another caller is paused; random programs."""

_ORDERS_MOST: Final = 5_000
"""Several times the number on an idle machine. A slow thread seems to wait, so more orders differ."""
_ASLEEP: Final = 1_100
_BUCKETS_ASLEEP: Final = 30
_OF_ONE: Final = 0.4
"""A program of one caller has few orders, so it counts as this share of another program."""
_DRAWN_BEFORE_REST: Final = 100
"""The number of random programs between two rests. At rest, the time-out of a lost operation shows the loss."""


def takes_steps(description: Description, *, virtual: bool) -> bool:
    """Whether calls are paused at their steps. In virtual time, steps need other pause points too: otherwise only one
    call can be open. In real time, each expiry takes time. So steps are used in real time only for subjects without
    virtual time, or without other pause points."""
    own = description.gates != (STEP,)
    here = own if virtual else not own or "virtual-time" not in description.capabilities
    return here and STEP in description.gates


@dataclass(slots=True)
class _Choice:
    """A choice between `among` possible actions, by the index `taken`."""

    taken: int
    among: int


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits for the parts of a run that have no natural end. `drawn`: random programs. `scope`: programs of the scope
    with one caller. `crossed`: programs with two callers, in all orders. `stepped`: programs whose calls are paused at
    each step. `ends`: whether a broken promise ends the run."""

    drawn: int = 0
    scope: int = 0
    crossed: int = 0
    stepped: int = 0
    ends: bool = True


class GatedRun:
    """One gated run. `tell` receives the approximate share done. `seed` determines the random programs. `leaves_out`
    selects programs to leave out."""

    def __init__(
        self,
        plays: Plays,
        tell: Callable[[float], None] = lambda share: None,
        seed: int = 1,
        effort: Effort | None = None,
        leaves_out: Callable[[SmallProgram], bool] | None = None,
    ) -> None:
        self._plays = plays
        self._leaves_out = leaves_out or (lambda program: False)
        self._tell = tell
        self._seed = seed
        self._effort = effort or Effort()
        self._counts: list[int] = []
        self._size_of: dict[str, int] = {}
        """For the scope's programs of two callers: their number by size, and the size of each program."""
        self._gates: tuple[str, ...] = ()
        self._steps = Steps(plays, tell)
        self.orders: list[Orders] = []
        """The results so far, program by program."""
        self.reached = ""
        """The part of the scope that was run."""

    def drive(self, ways: Sequence[Way], only: PlayedOrder | None = None) -> None:
        """Run all programs that fit the subject in these ways, or `only` one order of one program. Then wait until all
        operations have ended. Raises SubjectFailed."""
        if ways == ("scope",):
            self._scope(only)
            return
        if only is not None:
            self._again(only)
            return
        by_hand = gate_programs(self._plays.part, self._plays.delays)
        by_hand = tuple(one for one in by_hand if not self._leaves_out(one))
        for place, way in enumerate(ways):
            tell = partial(self._told, place, len(ways))
            if way == "drawn":
                self._all_drawn(tell)
            elif way == "orders":
                self._all_orders((*by_hand, *self._crossed()), tell=tell)
                self.reached = self._how_far()
            elif not self._plays.broken:
                self._steps.tell = tell
                programs = (*by_hand, *self._crossed(stepped=True))
                self.orders.extend(self._steps.drive(programs, beside=way == "beside"))

    def _crossed(self, *, stepped: bool = False) -> Iterator[SmallProgram]:
        """Yield programs of two callers from the scope: the requested number of the first size, and a third as many of
        each next size. `stepped`: programs whose calls are paused at their steps."""
        plays, description, virtual = self._plays, self._plays.description, self._plays.clock is not None
        most = self._effort.stepped if stepped else self._effort.crossed
        for count, programs in crossed(plays.part, plays.delays, description):
            taken = 0.0
            if not stepped:
                self._counts.append(count)
            for program in programs if most else ():
                why = (program.cannot_step if stepped else program.ruled_out)(description, virtual=virtual)
                if why is None and not self._leaves_out(program):
                    self._size_of[program.name] = len(self._counts)
                    yield program
                    taken += 1 if program.callers > 1 else _OF_ONE
                if taken >= most:
                    break
            most //= 3

    def _how_far(self) -> str:
        """Describe the share of the scope's programs of two callers that was run, by size."""
        whole = [
            one.program.name for one in self.orders if one.program.enumerated and one.plays and not one.cut
        ]
        played = Counter(self._size_of[name] for name in whole)
        shares = [
            f"{played[place] * 100 / count:.0f} % of {count:,} with {place + 1} calls"
            for place, count in enumerate(self._counts, 1)
            if count
        ]
        calls = "concurrent calls" if self._plays.description.lanes > 1 else "calls inside callbacks"
        return f"programs of {calls}, in all orders: {', '.join(shares)}" if played else ""

    def _again(self, only: PlayedOrder) -> None:
        program = self._named(only.program)
        if not only.errors:
            program = replace(program, fault=None)
        if only.stop is None:
            self._all_orders([program], only)
        elif only.acts:
            stop = self._steps.found_again(program, only.stop, self._gates_of_drawn())
            self._play(program, [], stop=stop, wanted=only.acts)
            self._plays.come_to_rest()
        else:
            self._steps.again([program], only.stop)

    def _named(self, name: str) -> SmallProgram:
        if name.startswith(DRAWN):
            return self._drawn(name)
        plays = self._plays
        by_hand = (one for one in gate_programs(plays.part, plays.delays) if one.name == name)
        found = next(by_hand, None) or crossing_named(name, plays.part, plays.delays, plays.description)
        assert found is not None, "it was executed before"
        return found

    def _scope(self, only: PlayedOrder | None) -> None:
        """Run the enumerated programs of one caller, the smallest first, up to the limits of number and time."""
        plays, description = self._plays, self._plays.description
        assert plays.clock is not None, "it is for virtual time"
        plays.delays = scope_delays(description)
        leap_ns, turn_ns = longest_of_scope_ns(plays.delays, description), turn_of(description)
        rest_ns = 4 * (plays.delays.far_ns + plays.late_ns)
        until_s = time.monotonic() + SCOPE_S
        whole, left = 0, self._effort.scope
        flat = "no-re-entry" in description.capabilities
        for size, programs in enumerate(scope(plays.part, plays.delays, description), 1):
            fits = (one for one in programs if not (flat and one.reenters))
            fit = [one for one in fits if (one.name == only.program if only else not self._leaves_out(one))]
            done: Counter[str] = Counter()
            why = ""
            for program in fit:
                needs_ns = 2 * leap_ns + MAX_TIME_NS // 2 if program.goes_by(turn_ns) else rest_ns
                if plays.clock.now_ns + needs_ns > MAX_TIME_NS:
                    # Other programs may need less time.
                    why = "virtual time cannot go further"
                    continue
                if plays.broken or not left or time.monotonic() > until_s:
                    why = (
                        BROKEN if plays.broken else "the time limit" if left else "the limit of --operations"
                    )
                    break
                plays.in_turn(program, leap_ns)
                done[program.targets] += 1
                left -= 1
                self._tell(1 - left / self._effort.scope)
            cut = BROKEN if plays.broken else ""
            self.orders += [Orders(SmallProgram(f"size {size}", one, ()), done[one], cut=cut) for one in done]
            before = f"all {whole:,} programs up to size {size - 1}; " if whole else ""
            if why:
                share = sum(done.values()) * 100 // len(fit)
                self.reached = f"{before}size {size}: {share} % of {len(fit):,} ({why})"
                return
            whole += len(fit)
            self.reached = f"all {whole:,} programs up to size {size}"

    def _told(self, before: int, ways: int, share: float) -> None:
        self._tell((before + share) / ways)

    def _all_orders(
        self,
        programs: Sequence[SmallProgram],
        only: PlayedOrder | None = None,
        tell: Callable[[float], None] = lambda share: None,
    ) -> None:
        """Run all orders of all programs, or `only` one order of one program."""
        description, virtual = self._plays.description, self._plays.clock is not None
        if takes_steps(description, virtual=virtual):
            # Other programs run step by step.
            programs = [
                one for one in programs if one.pauses or one.cannot_step(description, virtual=virtual)
            ]
        fit = {one.name: one.ruled_out(description, virtual=virtual) for one in programs}
        played = [one for one in programs if fit[one.name] is None]
        places = {
            place for one in played for place in (*one.places, *(["timer_fire"] if one.expiring() else []))
        }
        self._gates = tuple(place for place in description.gates if place in places)
        self._plays.start(self._gates)
        # A program with a barrier has a fixed number of executions. All orders of another are some dozens.
        sizes = [len(one.calls()) * one.releases or 100 + len(one.calls()) for one in programs]
        for program, size in zip(programs, itertools.accumulate(sizes), strict=True):
            why = fit[program.name] or (BROKEN if self._plays.broken else None)
            if why is not None:
                self.orders.append(Orders(program, skipped=why))
            elif only is not None and not program.releases:
                # A subject is slow after its start: its threads would come too late for their places.
                self._play(program, [])
                self._play(program, [], wanted=only.acts)
            else:
                self.orders.append(self._orders(program))
            if why is None and "gauge" in description.capabilities:
                self._read_sizes()
            tell(size / sum(sizes))
        self._plays.come_to_rest()
        if self._plays.broken:
            self.orders.append(Orders(programs[-1], skipped=BROKEN))
        elif virtual and only is None:
            # Run this last: expired operations widen the bound on garbage.
            self._sleep()

    def _sleep(self) -> None:
        """Simulate a sleep of the machine: the tasks of every tick of a second, and of every bucket of the levels
        above, become overdue at one time. In a gated run, nothing counts as late."""
        self._plays.start(())
        self._plays.much_is_said()
        tick_ns, *wider = levels_of(self._plays.description, self._plays.delays.far_ns * 2)
        delays = [tick_ns * number for number in range(1, _ASLEEP + 1)]
        delays += [wide_ns * number for wide_ns in wider for number in range(1, _BUCKETS_ASLEEP + 1)]
        fit = [
            min(max(one, self._plays.description.least_delay_ns), self._plays.delays.far_ns) for one in delays
        ]
        part = self._plays.part
        self._plays.make_all([wait_call(part, f"asleep-{at}", delay_ns) for at, delay_ns in enumerate(fit)])
        self._plays.leap(self._plays.delays.far_ns + self._plays.late_ns)
        self._plays.come_to_rest()

    def _read_sizes(self) -> None:
        """Read the sizes: in virtual time at rest, after two turns of a reaper."""
        if self._plays.clock is None:
            self._plays.make_all([Gauge()])
            return
        for _ in range(2):
            self._plays.leap(REAPER_NS)
        self._plays.make_all([Quiesce()])

    def _drawn(self, name: str) -> SmallProgram:
        plays = self._plays
        virtual = plays.clock is not None
        return drawn_program(name, plays.part, plays.delays, plays.description, virtual=virtual)

    def _gates_of_drawn(self) -> tuple[str, ...]:
        places = PLACES if self._plays.part == "purgatory" else ("timer_fire",)
        return tuple(one for one in (*places, STEP) if one in self._plays.description.gates)

    def _all_drawn(self, tell: Callable[[float], None]) -> None:
        """Run random programs, each in one order. In most of them, a call is paused at one or two of its steps."""
        drawn = SmallProgram("drawn", ANY, (), ())
        if self._plays.part == "timer" and STEP not in self._plays.description.gates:
            self.orders.append(Orders(drawn, skipped=f"no gate at {STEP}"))
            return
        plays, virtual = 0, self._plays.clock is not None
        why: str | None = None
        self._plays.start(self._gates_of_drawn())
        most = self._effort.drawn if virtual else self._effort.drawn // 5
        for number in range(most):
            program = self._drawn(f"{DRAWN}{self._seed}-{number}")
            why = (
                BROKEN if self._plays.broken else program.ruled_out(self._plays.description, virtual=virtual)
            )
            if why == BROKEN:
                break
            if why is not None or self._leaves_out(program):
                continue
            draws = random.Random(program.name)
            self._play(program, [], draws, self._steps.drawn(program, draws))
            plays += 1
            tell((number + 1) / most)
            if virtual and plays % _DRAWN_BEFORE_REST == 0:
                self._plays.come_to_rest()
        self._plays.come_to_rest()
        cut = BROKEN if why == BROKEN else ""
        self.orders.append(Orders(drawn, plays, cut=cut) if plays else Orders(drawn, skipped=why or ""))

    def _orders(self, program: SmallProgram) -> Orders:
        if program.releases:
            for plays in range(1, program.releases + 1):
                self._play(program, [])
                if self._plays.broken:
                    return Orders(program, plays, cut=BROKEN)
            return Orders(program, program.releases)
        trail: list[_Choice] = []
        plays = 0
        while True:
            trail = self._play(program, trail)
            plays += 1
            while trail and trail[-1].taken + 1 >= trail[-1].among:
                trail.pop()
            if not trail:
                return Orders(program, plays)
            if self._plays.broken or plays >= _ORDERS_MOST:
                return Orders(program, plays, cut=BROKEN if self._plays.broken else TOO_MANY)
            trail[-1].taken += 1

    def _play(
        self,
        program: SmallProgram,
        trail: list[_Choice],
        draws: random.Random | None = None,
        stop: PausedCall | None = None,
        wanted: Sequence[str] = (),
    ) -> list[_Choice]:
        """Run the program once: with the choices of `trail`, then with the first action of each choice, or a random
        one. Return all choices. `stop`: the pause of one call at its steps. `wanted`: the actions to prefer, if
        possible."""
        if program.fresh:
            self._plays.start_anew(self._gates)
        made: list[_Choice] = []
        done: list[str] = []
        order = PlayedOrder(program.name, (), stop)
        play = self._plays.begun(program, None if program.releases else order)
        if stop is not None:
            play.steps = {(stop.lane, stop.place): stop.steps}
        following = dict(enumerate(wanted))
        left = program.schedule.switches if isinstance(program.schedule, EveryOrder) else None
        thread = ""
        while acts := self._plays.acts(play, following.get(len(done))):
            names, act = list(acts), following.get(len(done))
            goes_on = [name for name in names if acts[name].within and acts[name].thread == thread]
            if goes_on and left == 0 and draws is None and not wanted:
                names = goes_on
            if len(made) < len(trail):
                taken = trail[len(made)].taken
            elif act is not None and act in acts:
                taken = names.index(act)
            else:
                taken = 0 if draws is None else draws.randrange(len(names))
            # A non-deterministic subject may offer fewer actions than the last time.
            made.append(_Choice(min(taken, len(names) - 1), len(names)))
            done.append(names[made[-1].taken])
            order = PlayedOrder(program.name, tuple(done), stop)
            self._plays.under_way = None if program.releases else order
            if left and goes_on and done[-1] not in goes_on:
                left -= 1
            thread = acts[done[-1]].thread
            acts[done[-1]].do()
            self._plays.settle(play)
        self._plays.end(play, order)
        self._plays.under_way = None
        return made
