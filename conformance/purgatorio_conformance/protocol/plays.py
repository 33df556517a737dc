"""One execution of a program in a gated run (a run in which the driver pauses and resumes the subject's threads).

A thread is in one of three states. It has *returned* from its call, it is *paused* at a pause point (gate), or it is
*quiet*: it runs, or waits for another thread. While a thread is quiet, the driver waits for messages before it makes
the next call or resumes a thread. It waits several times as long as the slowest answer so far. No verdict depends on
this time: if the driver mistakes a slow thread for a waiting thread, the calls come in a different order, which the
clauses judge too. If no thread is paused and a thread does not return, the subject hangs.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_conformance.protocol.conversation import Hold
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.lines import Lines
from purgatorio_conformance.protocol.message import (
    STEP,
    Add,
    Advance,
    Call,
    Cancel,
    Description,
    Force,
    Go,
    Incoming,
    Quiesce,
    Register,
    Reset,
    Stop,
    wait_call,
)
from purgatorio_conformance.protocol.played_order import PlayedOrder
from purgatorio_conformance.protocol.session import Session
from purgatorio_conformance.protocol.small_program import (
    ANY,
    FIRE,
    Barrier,
    Expiry,
    Inside,
    InTurn,
    LaneCall,
    SmallProgram,
    Until,
    delays_for,
    late_for,
)
from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.show.visible import first_few

_FAR_NS: Final = 3_600_000 * MS
_FAR_REAL_NS: Final = 5_000 * MS
_PURGE_REAL_NS: Final = 250 * MS
"""In real time, a purge comes after this delay. By then, the thread that must be concurrent with it is paused."""
_QUIET_LEAST_S: Final = 0.003
_QUIET_MOST_S: Final = 0.1
_GLANCE_S: Final = 0.001
_CIRCLES_S: Final = 0.1
_CIRCLES_MOST: Final = 50
"""If threads polled without a message this often, the driver no longer checks whether the threads wait."""
_GIVES_UP_S: Final = 0.5
_EXPIRY_GIVES_UP_S: Final = 1.2
"""A call may try for half a second to get a lock. An expiry that blocks all other expiries may try for a second."""
_WAITS_MOST: Final = 10
_LATE_S: Final = 5.0
_ANSWERED_EARLY_S: Final = 0.1
_EXPIRY_LATE_S: Final = 1.0
_EXPIRY_LEAST_S: Final = 0.1
_TAKES_NOTE_S: Final = 1.0
_STOPPED: Final = 3
"""The number of tasks that are due when the driver stops a subject that `drains`."""
_STOPS_S: Final = 2.0
"""The longest stop that is judged."""
_SAID_MOST: Final = 20_000
_PENDING_MOST: Final = 32
"""In virtual time, a rest ends the tasks that executions have left, when there are this many. If each of more than 64
runs on a thread of its own, too many threads are paused at once."""

_JUDGED_FIRST: Final = 50
_JUDGED_AGAIN: Final = 2
"""The trace is judged after `_JUDGED_FIRST` executions, and whenever their number has grown by `_JUDGED_AGAIN`."""


@dataclass(frozen=True, slots=True)
class NextAction:
    """A possible next action, and the thread that it lets run. `within`: the thread continues an open call."""

    do: Callable[[], None]
    thread: str = ""
    within: bool = False


@dataclass(eq=False)
class Plays:
    """Runs the executions of one run, in sequence. `lines`: the subject's lines, if its steps are lines. `judge`
    returns whether the events so far break a promise."""

    session: Session
    description: Description
    part: Part
    lines: Lines | None = None
    judge: Callable[[], bool] | None = None
    played: list[PlayedOrder] = field(default_factory=list)
    """The executions so far. The first has the number 1."""
    rested: int = 0
    """The number of executions until the last moment at which nothing was pending."""
    under_way: PlayedOrder | None = None
    """The execution that has not ended. None for a barrier release, because a second run cannot repeat it."""
    in_turn_now: PlayedOrder | None = None
    """The execution of `in_turn` that has not ended."""
    erred: PlayedOrder | None = None
    """The first execution in which a call ended with an unrequested error."""
    broken: bool = False
    """Whether a promise was found broken: then no new execution begins."""
    _judged_at: float = field(default_factory=lambda: _JUDGED_FIRST)
    _slowest_s: float = 0.0
    _latest_s: float = _EXPIRY_LATE_S / 5
    _waited: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _circles: int = 0
    _said: int = 0
    _begun_ns: int = 0
    _asked_ns: dict[str, int] = field(default_factory=dict)
    """In virtual time, the time of the last request for each task or operation of an execution."""

    def __post_init__(self) -> None:
        self.clock = self.session.conversation.clock
        fars = (_FAR_REAL_NS, _PURGE_REAL_NS) if self.clock is None else (_FAR_NS,)
        self.delays = delays_for(self.description, *fars)
        self.late_ns = late_for(self.description)

    def start(self, gates: tuple[str, ...]) -> None:
        self.session.start(self.part, gates)

    def start_anew(self, gates: tuple[str, ...], *, early: bool = False) -> None:
        """Wait until all operations have ended, then start the subject again."""
        if self.clock is None:
            self.much_is_said()
            self._wait_until_over(0.0)
        else:
            self.come_to_rest(early=early)
        self.start(gates)

    def leap(self, by_ns: int) -> None:
        """Advance virtual time by at least this much, in whole units."""
        assert self.clock is not None, "it is called in virtual time"
        self.make_all([Advance(self.clock.now_ns + self.description.rounded(by_ns))])

    def begun(self, program: SmallProgram, order: PlayedOrder | None, keeps_at: str = "") -> Play:
        """Begin the next execution with the calls before the callers. `order`: its order, if it can be executed again.
        The first thread that comes to the pause point `keeps_at` stays paused there."""
        # A requested error of an earlier program does not excuse an error in this one.
        self.session.conversation.fails = False
        self._said = 0
        self._begun_ns = 0 if self.clock is None else self.clock.now_ns
        self._asked_ns = {}
        play = Play(self, program, len(self.played) + 1, keeps_at)
        self.under_way = order
        self.make_all(play.named.before, play)
        return play

    def end(self, play: Play, order: PlayedOrder) -> None:
        """Make the last calls of the program. Then check for late events, errors and broken promises."""
        self.played.append(order)
        play.over = True
        other = play.program.fault is not None and self.description.lanes > 1
        self.make_all(play.named.after, play, int(other))
        if self.session.conversation.erred:
            self.erred = self.erred or order
        if self.clock is not None and play.program.fault is None:
            self._to_first_deadline(play)
            self.look_for_late(play)
            if len(self.session.conversation.pending) > _PENDING_MOST:
                self.come_to_rest()
        elif self.clock is None and play.program.fault is None:
            self._wait_for_late(play)
        self._look_for_broken()

    def _look_for_broken(self) -> None:
        if self.judge is not None and not self.broken and len(self.played) >= self._judged_at:
            self._judged_at *= _JUDGED_AGAIN
            self.broken = self.judge()

    def in_turn(self, program: SmallProgram, leap_ns: int) -> None:
        """Run one caller's calls in a subject that is started again. Then let time pass until all operations have
        ended. If an event is overdue after an advance, time jumps by more than `leap_ns` at once. No correct event is
        late by more than `leap_ns`, so an event after this jump violates its clause."""
        assert self.clock is not None, "it is for virtual time"
        self.start(program.places)
        order = self.in_turn_now = PlayedOrder(program.name, ())
        play = self.begun(program, None)
        before_ns = self.clock.now_ns
        # After a loss, the execution makes no more calls: a late event would hide the loss.
        while not self.broken and (acts := self.acts(play)):
            next(iter(acts.values())).do()
            self.settle(play)
            at_rest = not self.session.conversation.unanswered()
            if self.clock.now_ns > before_ns and at_rest:
                before_ns = self._past_overdue(leap_ns)
        play.over = True
        interval = self.description.purge_interval
        if self.part == "timer" or interval is None or len(play.delays) <= interval:
            # For a timer, or if no purge is due, read the sizes now: later, time hides a task that an error left in the
            # timer.
            self.make_all([Quiesce()])
        self.leap(self.delays.far_ns + self.late_ns)
        self._past_overdue(leap_ns)
        self.make_all([Quiesce()])
        self.in_turn_now = None
        self.played.append(order)
        if self.session.conversation.erred:
            self.erred = self.erred or order
        self._look_for_broken()

    def _past_overdue(self, leap_ns: int) -> int:
        assert self.clock is not None, "it is for virtual time"
        late_ns, conversation = self.description.late_ns, self.session.conversation

        def overdue() -> bool:
            # If a callback was made to fail, no promise requires its expiry.
            waits = () if late_ns is None else conversation.overdue(late_ns, before_now=True)
            return bool({*waits} - conversation.spoilt)

        if overdue():
            # If the subject answered before its own threads were done, their events are refused here.
            self._hear(_ANSWERED_EARLY_S)
            self.leap(leap_ns + self.late_ns)
            if overdue():
                # The event is lost; the clauses report it for the whole run. Further programs would wait in vain.
                self.broken = True
        return self.clock.now_ns

    def _to_first_deadline(self, play: Play) -> None:
        """Advance to the first deadline of a waiting operation, unless it is far: a thread that was paused may have set
        the timer for a later deadline."""
        assert self.clock is not None, "it is for virtual time"
        left = [
            begun_t + one.delay_ns
            for begun_t, one in self.session.conversation.waiting()
            if one.id in play.delays and one.delay_ns < self.delays.far_ns
        ]
        if left and (by_ns := min(left) + self.late_ns - self.clock.now_ns) > 0:
            self.leap(by_ns)

    def look_for_late(self, play: Play) -> None:
        """In virtual time without paused threads, all due events must come within two advances: the first may only move
        a task to a finer level. Raises SubjectFailed if an event is late, but not lost."""

        def overdue() -> set[str]:
            return {*self.session.conversation.overdue(self.late_ns)} & {*play.delays}

        late = overdue()
        for patience_s in (_GIVES_UP_S, _LATE_S):
            if not late or self.description.late_ns is None or self.session.conversation.errors():
                return
            self.leap(self.late_ns)
            while (late := late & overdue()) and self._hear(patience_s) is not None:
                # The subject may answer before its own threads are done: that is not lateness.
                self.let_go()
        if not late:
            return
        self.come_to_rest()
        if late & overdue():
            # The event is lost, not late: the clauses report it for the whole run.
            self.broken = True
            return
        lost = ("T2", "run") if self.part == "timer" else ("O5", "end")
        raise self.session.failed(
            "late",
            f"{lost[0]} is broken: {first_few(sorted(late))} did not {lost[1]} when no thread was paused any more",
        )

    def _wait_for_late(self, play: Play) -> None:
        """In real time without paused threads, wait for the due events before any other call. A later call may wake a
        thread that finds a lost task."""
        if self.description.late_ns is None or self.session.conversation.errors():
            return
        until_s = time.monotonic() + LATE_SLACK_NS / 1e9
        while (late := {*self.session.conversation.overdue(self.late_ns)} & {*play.delays}) and (
            left_s := until_s - time.monotonic()
        ) > 0:
            self._hear(min(0.05, left_s))
            self.let_go()
        if late:
            self.come_to_rest()
            self.broken = self.broken or (self.judge is not None and self.judge())

    def make_all(self, calls: Sequence[LaneCall], play: Play | None = None, lane: int = 0) -> None:
        """Resume all threads. Then make the calls in sequence by this caller. No thread stays paused, except before an
        expiry that must come later in this execution."""
        self.let_go()
        for call in calls:
            assert not isinstance(call, Expiry | Inside), "those are the lanes'"
            self._said = min(self._said, 0)
            if isinstance(call, Until):
                assert play is not None, "it is the program's"
                self.wait_until(call, lane, play.delays[call.id], ())
            elif self.session.conversation.makes_sense(call):
                self.ask(call, lane)
            if play is not None:
                play.begun_s = time.monotonic()
            self.let_go(play)
            if not self.session.conversation.free(lane):
                self.let_go()  # its own call waits for an expiry that came too early

    def let_go(self, play: Play | None = None) -> None:
        """Resume all threads until they have returned, except for an expiry that must come later in this execution."""
        while True:
            paused = self.session.conversation.paused()
            if passing := [hold for hold in paused if play is None or not play.early(hold)]:
                self.go(passing)
            elif not self.session.conversation.running():
                return
            elif not paused:
                self.hear_on()
            elif self.is_quiet():
                # The open calls need the thread that is paused at this expiry.
                self.go(paused)

    def _hear(self, within_s: float) -> Incoming | None:
        self._count_what_is_said()
        return self.session.hear(within_s)

    def hear_on(self) -> None:
        self._count_what_is_said()
        self.session.hear_on()

    def comes(self) -> bool:
        """Wait for a message, because a thread may be slow on a busy machine. Returns whether one came."""
        return self._hear(_GIVES_UP_S) is not None

    def _count_what_is_said(self) -> None:
        """Count messages, and raise SubjectFailed above a limit: an endless call may send messages forever. While a
        thread is paused, the limit is twice as high, because the call may wait for this thread."""
        self._said += 1
        if self._said > _SAID_MOST * (1 if self.session.conversation.owed else 2):
            raise self.session.failed("hang", f"sent {_SAID_MOST:,} lines in one execution: it loops")

    def settle(self, play: Play) -> None:
        """Receive messages until all threads have returned or are at the execution's pause points, or no message
        comes."""
        conversation = self.session.conversation
        while True:
            passing = [hold for hold in conversation.paused() if not play.keeps_paused(hold)]
            for hold in passing:
                if hold in conversation.paused():
                    self.go([hold])
            if passing:
                # During `go`, another thread may have been paused, and its message comes only once.
                continue
            if not conversation.running():
                return
            asked_s = time.monotonic()
            if self._hear(_GLANCE_S) is None and self.is_quiet():
                if play.program.targets != ANY and self._gives_up():
                    continue
                return
            self._slowest_s = max(time.monotonic() - asked_s, 0.95 * self._slowest_s)

    def acts(self, play: Play, wanted: str | None = None) -> Mapping[str, NextAction]:
        """Wait until an action is possible, and return the possible actions. If `wanted` is set, wait for this action
        while messages come."""
        while True:
            acts = play.acts()
            if not self.session.conversation.running():
                return acts
            if acts and (wanted is None or wanted in acts or not self.comes()):
                return acts
            if not acts:
                # No thread is paused, so each running thread returns or comes to a pause point.
                self.hear_on()
            self.settle(play)

    def _gives_up(self) -> bool:
        """Whether a message comes within the time for which a call may try to get a lock. A call that waits for a
        paused thread may give up then. This applies only in virtual time, where nothing else runs meanwhile. For each
        set of calls and pauses, the driver waits until no message comes, or `_WAITS_MOST` times: on a busy machine, the
        message may be from a slow thread. The driver does not wait if a thread of the subject's own is paused: all
        calls wait for it."""
        paused = self.session.conversation.paused()
        situation = (*self.session.conversation.unanswered(), *(hold.f for hold in paused))
        of_lanes = paused and all(hold.thread.startswith("caller-") for hold in paused)
        if self.clock is None or not of_lanes or self._waited[situation] >= _WAITS_MOST:
            return False
        heard = self._hear(_EXPIRY_GIVES_UP_S if "advance" in situation else _GIVES_UP_S) is not None
        self._waited[situation] += 1 if heard else _WAITS_MOST
        return heard

    def is_quiet(self) -> bool:
        """Whether no message comes, and all threads of the subject wait (including the thread that reads the calls). A
        thread that uses `_CIRCLES_S` of CPU time without a message counts as waiting. Without the lines of a JVM, a
        thread may poll. So no message must come for some time: several times as long as the slowest recent answer."""
        until_s = time.monotonic() + min(_QUIET_MOST_S, max(_QUIET_LEAST_S, 5 * self._slowest_s))
        looks = self._circles < _CIRCLES_MOST
        if not (self.lines and looks) and self._hear(until_s - time.monotonic()) is not None:
            return False
        threads = self.session.threads
        began_s: float | None = None
        while looks and not threads.wait():
            if self._hear(_GLANCE_S) is not None:
                return False
            if time.monotonic() > until_s:
                used_s = threads.used_s()
                began_s = used_s if began_s is None else began_s
                if not used_s or used_s - began_s >= _CIRCLES_S:
                    self._circles += 1
                    break
        return self._hear(0.0) is None

    def ask(self, call: Call, lane: int = 0, hold: int | None = None, steps: tuple[int, ...] = ()) -> None:
        if self.clock is not None and isinstance(call, Add | Register | Reset):
            self._asked_ns[call.id] = self.clock.now_ns
        self.session.ask(call, lane, hold=hold, steps=steps)

    def go(self, holds: Sequence[Hold], *, fail: bool = False) -> None:
        """Resume the threads together; with `fail`, their callbacks fail. Returns when the subject has answered."""
        conversation = self.session.conversation
        number = self.session.ask(Go(tuple(hold.number for hold in holds), int(fail) or None))
        while conversation.is_open(number):
            at_lines = [hold.number for hold in conversation.paused() if hold.f == STEP]
            if self.lines is None or not at_lines:
                self.hear_on()
            elif self._hear(_TAKES_NOTE_S) is None:
                # A thread that is paused at a line may have a lock that the adapter needs for its answer.
                self.session.ask(Go(tuple(at_lines)))
                if self.under_way is not None and self.under_way.stop is not None:
                    self.lines.adapters.update(point.line for point in self.under_way.stop.points)

    def wait_until(self, call: Until, lane: int, delay_ns: int, steps: tuple[int, ...]) -> None:
        """Advance virtual time to shortly before the deadline of an operation or task."""
        assert self.clock is not None, "a program for virtual time"
        due_ns = self._asked_ns.get(call.id, self._begun_ns) + delay_ns
        self.ask(Advance(max(self.clock.now_ns, due_ns - call.before_ns)), lane, steps=steps)

    def expire(
        self, operation: str, lane: int, delay_ns: int, begun_s: float, steps: tuple[int, ...]
    ) -> None:
        if self.clock is not None:
            self.ask(Advance(self.clock.now_ns + delay_ns + self.late_ns), lane, steps=steps)
            return
        # Wait several times as long as recent expiries were late. If a paused thread prevents the expiry, a long wait
        # is useless. If the expiry is only slow, the order is a different one.
        due_s = begun_s + (delay_ns + self.late_ns) / 1e9
        until_s = due_s + min(_EXPIRY_LATE_S, max(_EXPIRY_LEAST_S, 5 * self._latest_s))
        conversation = self.session.conversation

        def to_come() -> bool:
            there = any(
                hold.f == "timer_fire" and hold.id == operation for hold in conversation.holds.values()
            )
            return operation in conversation.pending and not there

        waited = False
        while to_come() and time.monotonic() < until_s:
            waited = True
            self._hear(min(0.05, until_s - time.monotonic()))
        if waited and not to_come():
            self._latest_s = max(time.monotonic() - due_s, 0.9 * self._latest_s)

    def come_to_rest(self, *, early: bool = False) -> None:
        """Let the last time-out pass: a pending time-out would hide a lost event. `early`: no longer than until nothing
        is pending. (A thread that was watched is slow.)"""
        self.much_is_said()
        if self.clock is not None:
            if early:
                last_t = self.session.conversation.last_deadline_t(self.delays.far_ns)
                self.leap(max(0, last_t - self.clock.now_ns) + self.late_ns)
            for _ in range(3):
                if early and not self.session.conversation.pending:
                    break
                self.leap(self.delays.far_ns + self.late_ns)
            # A thread of the subject may be between two gates. It has ended when an advance by zero brings only its
            # answer.
            for _ in range(len(self.session.conversation.known)):
                heard = self.session.heard
                self.leap(0)
                if self.session.heard == heard + 1:
                    break
        else:
            # If a task was canceled during its add, the timer may count it until its deadline.
            last_t = self.session.conversation.last_deadline_t(self.delays.far_ns + 1)
            self._wait_until_over(last_t / 1e9 + _EXPIRY_LATE_S)
        self.make_all([Quiesce()])
        self.rested = len(self.played)

    def _wait_until_over(self, least_s: float) -> None:
        """In real time, wait at least `least_s`, and until nothing is pending. Do not wait for a lost event."""
        until_s = time.monotonic() + (self.delays.far_ns + self.late_ns) / 1e9 + _EXPIRY_LATE_S
        while time.monotonic() < until_s and (
            self.session.conversation.pending or time.monotonic() < least_s
        ):
            if self._hear(min(0.05, until_s - time.monotonic())) is not None:
                # While messages come, the rest may come, too: a slow machine has lost nothing.
                until_s = max(until_s, time.monotonic() + LATE_SLACK_NS / 1e9)
            self.let_go()

    def stop_while_due(self) -> None:
        """Stop a subject that `drains` or `halts` while tasks that are due wait for a paused thread. If it drains, all
        of them have run by the answer; if the answer takes long, this is not judged, because a subject may wait for its
        threads for some seconds. If it halts, none of them starts after the answer."""
        assert self.clock is not None, "it is called in virtual time"
        knows = {*self.description.capabilities, *self.description.gates}
        if self.description.lanes < 2 or FIRE not in knows or knows.isdisjoint({"drains", "halts"}):
            return
        self.start((FIRE,))
        names, delay_ns = [f"stopped-{number}" for number in range(_STOPPED)], self.delays.soon_ns
        self.make_all([wait_call(self.part, one, delay_ns) for one in names])
        drains = "drains" in knows
        # A subject that only halts may drop what has just become due.
        passes_ns = self.description.rounded(2 * delay_ns + self.late_ns) if drains else delay_ns
        self.ask(Advance(self.clock.now_ns + passes_ns))
        conversation = self.session.conversation
        while not conversation.paused() and conversation.running():
            self.hear_on()
        # The advance may wait for the paused thread, and so does the stop.
        while self.comes():
            pass
        began_s = time.monotonic()
        stop = self.session.ask(Stop(drain=1), lane=int(not conversation.free(0)))
        while self.comes():
            pass
        # A stopped subject need not answer the advance. If it only halts, its threads may go on after its answer.
        while conversation.is_open(stop) or conversation.paused() or (not drains and self.comes()):
            if paused := conversation.paused():
                self.go(paused)
            elif conversation.is_open(stop):
                self.hear_on()
        if drains and time.monotonic() - began_s < _STOPS_S:
            conversation.rests()

    def much_is_said(self) -> None:
        """Allow more messages than in an execution, until the next execution begins."""
        self._said = -_SAID_MOST * 10


class Play:
    """One execution of a program. `keeps_at`: of the threads that come to this pause point while `keeps` is set,
    only the first one stays paused (`kept`). Without it, a thread pauses at each pause point of the program."""

    def __init__(self, plays: Plays, program: SmallProgram, number: int, keeps_at: str = "") -> None:
        self.plays = plays
        self.program = program
        self.number = number
        self.named = program.named(number)
        self.lanes: list[list[LaneCall]] = [[*lane] for lane in self.named.lanes]
        """The calls that the callers have not made yet."""
        self.held_back = {*self.named.expiring()}
        """The tasks and operations whose expiry must come later."""
        calls = itertools.chain(self.named.before, *self.named.lanes)
        made = [call.call if isinstance(call, Inside) else call for call in calls]
        # A task that is reset while it expires expires as it was added.
        self.delays = {
            call.id: call.delay_ns
            for call in made
            if isinstance(call, Register | Add) or (isinstance(call, Reset) and call.id not in self.held_back)
        }
        self.over = False
        self.begun_s = time.monotonic()
        """The time of the last call that may have begun an operation or task with an expiry."""
        self.stopped: set[int] = set()
        """The numbers of the pauses at steps."""
        self.passes = False
        """Whether threads at steps are resumed."""
        self.keeps_at, self.keeps = keeps_at, bool(keeps_at)
        self.kept: Hold | None = None
        self.steps: dict[tuple[int, int], tuple[int, ...]] = {}
        """The steps at which calls pause, by caller and place among the caller's calls."""
        self.came: dict[int, int] = {}
        """For each pause, the number of threads that had come to this pause point before."""
        self._came_to: Counter[tuple[str, str | None]] = Counter()

    def keeps_paused(self, hold: Hold) -> bool:
        """Whether the thread stays paused here: at a place of the program, or before an expiry that must come later."""
        if self.over:
            return False
        if hold.f == STEP:
            self.stopped.add(hold.number)
            return not self.passes
        if hold.number not in self.came:
            self.came[hold.number] = self._came_to[hold.f, hold.id]
            self._came_to[hold.f, hold.id] += 1
        mine = hold.id is None or hold.id.startswith(f"p{self.number}-")
        if not mine or not (self.program.pauses_at(*self._where(hold)) or self.early(hold)):
            return False
        if self.keeps and hold.f == self.keeps_at:
            self.kept = self.kept or hold
        return not self.keeps_at or hold is self.kept or self.early(hold)

    def early(self, hold: Hold) -> bool:
        """Whether the thread is about to run an expiry that must come later."""
        return hold.f == "timer_fire" and hold.id in self.held_back

    def acts(self) -> Mapping[str, NextAction]:
        """The possible next actions, by names that are the same in each execution of the program. Empty if the
        execution has ended, or if all remaining calls wait forever."""
        conversation = self.plays.session.conversation
        paused = [hold for hold in conversation.paused() if not self.early(hold)]
        calls = {f"lane {lane}": self._call(lane) for lane in range(len(self.lanes)) if self.can_call(lane)}
        if isinstance(self.program.schedule, Barrier | InTurn):
            if calls:
                # The call that led to a callback may have returned already: the call inside the callback comes first.
                lane = min(calls, key=lambda one: not calls[one].within)
                return {lane: calls[lane]}
            # A callback that fails is resumed alone.
            if paused and self.program.fault:
                return {"all": self._go(paused[0])}
            return {"all": NextAction(lambda: self.plays.go(paused))} if paused else {}
        places = [" ".join(self._where(hold)) for hold in paused]
        goes = {
            f"{place} {places[:number].count(place)}": self._go(hold)
            for number, (hold, place) in enumerate(zip(paused, places, strict=True))
        }
        return goes | calls

    def _go(self, hold: Hold) -> NextAction:
        return NextAction(lambda: self.plays.go([hold], fail=self._fails(hold)), hold.thread, within=True)

    def _where(self, hold: Hold) -> tuple[str, str]:
        """The pause point of the thread, and the id without the prefix of this execution."""
        return hold.f, (hold.id or "").removeprefix(f"p{self.number}-")

    def _fails(self, hold: Hold) -> bool:
        fault = self.program.fault
        if fault is None or self._where(hold) != (fault.place, fault.id):
            return False
        return fault.nth in (None, self.came[hold.number])

    def can_call(self, lane: int) -> bool:
        if not self.lanes[lane]:
            return False
        conversation = self.plays.session.conversation
        call = self.lanes[lane][0]
        if isinstance(call, Cancel | Reset) and not conversation.makes_sense(call):
            # A task may be cancelled while it is added.
            added = isinstance(call, Cancel) and conversation.under_add(call.id)
            return added and conversation.free(lane)
        if isinstance(call, Force) and not conversation.makes_sense(call):
            # The registration has not returned. The operation exists if one of its threads is paused.
            begun = any(hold.id == call.id for hold in conversation.holds.values())
            if not begun:
                return False
        if isinstance(call, Inside):
            return self._place(call) is not None
        return conversation.free(lane)

    def _place(self, call: Inside) -> Hold | None:
        """The innermost pause of a thread in the operation's callback, if the call can be made there."""
        paused = self.plays.session.conversation.paused()
        there = (one for one in reversed(paused) if one.id == call.id and call.at in ("", one.f))
        return next((one for one in there if call.nth in (None, self.came.get(one.number))), None)

    def _call(self, lane: int) -> NextAction:
        call = self.lanes[lane][0]
        gate = self._place(call) if isinstance(call, Inside) else None
        return NextAction(
            lambda: self.make(lane), gate.thread if gate else f"caller-{lane}", within=gate is not None
        )

    def make(self, lane: int, steps: tuple[int, ...] = ()) -> None:
        """Make the caller's next call, with a pause at each of these steps of the call."""
        place = len(self.program.lanes[lane]) - len(self.lanes[lane])
        steps = steps or self.steps.get((lane, place), ())
        call = self.lanes[lane].pop(0)
        if isinstance(call, Expiry):
            self.plays.expire(call.id, lane, self.delays[call.id], self.begun_s, steps)
            self.held_back.discard(call.id)
        elif isinstance(call, Until):
            self.plays.wait_until(call, lane, self.delays[call.id], steps)
        elif isinstance(call, Inside):
            gate = self._place(call)
            assert gate is not None, "it could be made"
            self.plays.ask(call.call, hold=gate.number)
        else:
            self.begun_s = time.monotonic()
            self.plays.ask(call, lane, steps=steps)
