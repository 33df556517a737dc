"""The state of one run with a subject (the driven program). The state determines which messages are allowed next, and
which events each message adds to the trace.

The module does no input or output. `ask` records a call, and returns its line. `hear` takes one line from the subject,
and records the event. If the line violates the protocol, `hear` raises `Misbehaved` with the kind of violation. A call
is recorded before its line is written, and its return after the answer is read. So the recorded interval contains the
real one.

An event is on the thread of the call that it names (`during`, such as `caller-0`), or on the thread `th`. With neither,
it is on the thread of the only open call (in virtual time) or on `subject` (in real time). Calls that a paused thread
makes (`hold`) are recorded on this thread, inside the callback.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.adapter_hints import AdapterHints
from purgatorio_conformance.protocol.message import (
    SPOKEN,
    STEP,
    Add,
    Advance,
    Answer,
    Armed,
    Call,
    Cancel,
    CancelKey,
    Check,
    Completed,
    Describe,
    Description,
    Disarmed,
    Enter,
    Expired,
    Fired,
    Force,
    Gauge,
    Go,
    Happening,
    Held,
    Incoming,
    Leave,
    Quiesce,
    Ready,
    Register,
    Repeat,
    Reset,
    Start,
    Stop,
    call_line,
    call_name,
    parse_incoming,
    recorded_as,
)
from purgatorio_conformance.subject.contract import FailureKind
from purgatorio_spec.trace.parse import Refusal
from purgatorio_spec.trace.record import MAX_INT, MIN_INT, State
from purgatorio_spec.trace.recorder import Recorder, ThreadLog

_MAX_THREADS: Final = 256
_MAX_HOLDS: Final = 64
_MAX_DEPTH: Final = 64
_PAUSES_UNSAID: Final = 32
"""The most pauses at steps that wait for an event that names them. A thread may have no event after its pause."""
_MAX_RUNS: Final = 64
"""The driver ends the run if a task runs more often after one add, because its lines could be millions."""
NOTE: Final = "note, no call"
"""The thread, in traces and pictures, of what the driver notes about free units."""

_FUNCTION_OF: Final[dict[type[Happening], str]] = {
    Fired: "timer_fire",
    Completed: "on_complete",
    Expired: "on_expiration",
    Armed: "timer_add",
    Disarmed: "timer_cancel",
}


_WHOSE: Final = " (or `during` or `th` names another thread, or a callback was not awaited)"
"""The hint for an adapter that keeps one last call for all threads, instead of one for each thread."""


# Not frozen: Python assigns a traceback and a context to a raised exception.
@dataclass(eq=False)
class Misbehaved(Exception):
    """A violation of the protocol by the subject: its kind and its description."""

    kind: FailureKind
    why: str


@dataclass(slots=True)
class _OpenCall:
    """A call without an answer yet: its ticket, and the data for the record of its end. `lane` is None if a paused
    thread makes the call, or if the call is a `go`."""

    call: Call
    lane: int | None
    log: ThreadLog
    ticket: int
    asked_t: int
    pauses: int = 0
    """The number of further steps at which the call must pause."""
    depth: int = 0
    """The number of functions that the thread had entered before the call."""
    early: bool = False
    """Whether the add or registration of the named task or operation has not returned yet."""
    overlaps: bool = False
    """For an add or reset: whether another one of the task was open at the same time."""


@dataclass(slots=True)
class _Entered:
    """A function that the subject entered. `ticket` is None if a driver's call (`force`) is the record of this
    function. `claim`: the ticket of a `force_complete` that the trace adds around an `on_complete`, if the subject
    reported none. `owes`: whether this `try_complete` of a ready operation has not tried to complete it yet."""

    f: str
    id: str
    ticket: int | None
    claim: int | None = None
    owes: bool = False


@dataclass(slots=True)
class Hold:
    """A pause of a thread at a pause point. `thread`: its name in the trace. `f`, `id`: the function and operation in
    which it is paused. `making`: the number of the call that the paused thread makes there, if any."""

    number: int
    thread: str
    f: str
    id: str | None
    making: int | None = None


@dataclass(eq=False, slots=True)
class _Pause:
    """The pause or the resumption of a thread at a step, after the event `since_i`. `said_by`: the thread whose next
    event has named it."""

    since_i: int
    thread: str
    text: str
    said_by: str | None = None


@dataclass(slots=True)
class _Operation:
    """The state of a task or operation. `begun_t`: when the subject last reported that it is in the timer."""

    asked_t: int = 0
    delay_ns: int | None = None
    keys: tuple[str, ...] = ()
    begun_t: int = 0
    runs: int = 0
    """The number of runs since the last add, registration or reset."""
    anew: bool = False
    """Whether the task was added again, or reset."""
    former_t: int | None = None
    """If the task waited when it was added again: its earliest deadline before."""


@dataclass
class VirtualClock:
    """The driver's clock: a number that only `advance` moves."""

    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


class Conversation:
    """The state of one run with a subject. `reports`: the functions that the subject declared to report. `clock`: the
    driver's clock; None in real time. `first`: the number of the first call, if the subject had an earlier
    conversation."""

    def __init__(
        self,
        recorder: Recorder,
        reports: Sequence[str] = (),
        clock: VirtualClock | None = None,
        *,
        first: int = 0,
    ) -> None:
        self.clock = clock
        self.description: Description | None = None
        self.known: set[str] = set()
        """The tasks and operations that the subject knows."""
        self.pending: set[str] = set()
        """Those of them that have not ended."""
        self.expired: set[str] = set()
        """The operations whose time-out completed them."""
        self._periodic: set[str] = set()
        self.doubts = AdapterHints()
        self._ready: set[str] = set()
        self._recorder = recorder
        self._reports = frozenset(reports)
        self._virtual = clock is not None
        self.calls = first
        self._open: dict[int, _OpenCall] = {}
        self._busy: dict[int, int] = {}
        self._operations: dict[str, _Operation] = {}
        self._logs: dict[str, ThreadLog] = {}
        self._stacks: dict[str, list[_Entered]] = {}
        self._gates: frozenset[str] = frozenset()
        self.holds: dict[int, Hold] = {}
        """The paused threads, by the numbers of their pauses, in order of arrival."""
        self._pauses: deque[_Pause] = deque(maxlen=_PAUSES_UNSAID)
        self._held_before: set[int] = set()
        self._named: bool | None = None
        """Whether any event named its call; None before the first event."""
        self._says_result: dict[str, bool] = {}
        """For each function that a thread left: whether any `leave` of it had a result."""
        self._errors = 0
        self._first_error = ""
        self.erred: list[str] = []
        """The type of the first unrequested error that ended a call."""
        self.refused: Call | None = None
        """The call that ended with this error."""
        self.fails = False
        """Whether the driver requested that a callback fails. If so, a call may end with an error, too."""
        self.halted = False
        """Whether the subject was stopped for good, while the driver lets time pass."""
        self.spoilt: set[str | None] = set()
        """The tasks and operations for which the driver requested that a callback fails."""

    def errors(self) -> str:
        """Describe the calls that ended with an error that the driver did not request. Empty if there are none."""
        if not self._errors:
            return ""
        return f"{self._errors:,} of {self.calls:,} calls ended with an error, the first of them {self._first_error}"

    def doubted(self) -> list[str]:
        return self.doubts.found(self._reports)

    def oldest(self) -> tuple[int, Call] | None:
        return next(((number, one.call) for number, one in self._open.items()), None)

    def under_way(self) -> str | None:
        """Describe the calls without an answer: the oldest call, any `go` or `stop`, and any call inside a callback."""
        made_at = {hold.making: f", from within {hold.f}" for hold in self.holds.values()}
        told = [
            f"call {number} ({call_name(one.call)}{made_at.get(number, '')})"
            for place, (number, one) in enumerate(self._open.items())
            if not place or number in made_at or isinstance(one.call, Go | Stop)
        ]
        return " and ".join(told) or None

    def where(self) -> str:
        """Describe the function that the oldest call is in, and whether a `held` for this function is missing."""
        oldest = self.oldest()
        stack = self._stacks.get(self._open[oldest[0]].log.name) if oldest is not None else None
        if not stack:
            return ""
        never = stack[-1].f in self._gates and not self._held_before
        return f", inside {stack[-1].f} of {stack[-1].id!r}" + ", a gate, without a `held`" * never

    def unanswered(self) -> list[str]:
        """The names of the calls without an answer, except `go`."""
        return sorted(call_name(one.call) for one in self._open.values() if not isinstance(one.call, Go))

    def stuck(self) -> list[str]:
        """The names of the calls that must be answered. Empty while a thread is paused. Also empty if a thread was
        resumed in a callback and has not left it: the callback is code of the adapter."""
        kept = any(
            stack and self._ends(stack[-1]) and self._innermost(thread) is None
            for thread, stack in self._stacks.items()
        )
        return self.unanswered() if self.owed and not kept else []

    def _ends(self, entered: _Entered) -> bool:
        """Whether only code of the adapter runs after the pause point of this function."""
        task = entered.f == "timer_fire" and not self._operations[entered.id].keys
        return entered.f in self._gates and (task or entered.f in ("on_complete", "on_expiration"))

    def overdue(self, by_ns: int = 0, *, before_now: bool = False) -> list[str]:
        """The pending tasks and operations whose deadline passed at least `by_ns` ago, because a subject that hangs may
        have lost them. The delay counts from the start of the add or registration, as in T2 and O5. A task or
        operation is left out if an open add, cancel, force or reset names it, if an open `cancel_for_key` may return
        it, or if a thread is in one of its functions. `before_now`: only those begun before the current time."""
        now_t = self._recorder.clock_ns() - by_ns
        calls = [one.call for one in self._open.values()]
        unsettled = {call.id for call in calls if isinstance(call, Add | Cancel | Force | Reset)}
        unsettled.update(entered.id for stack in self._stacks.values() for entered in stack)
        given_back = {call.key for call in calls if isinstance(call, CancelKey)}
        known = ((one, self._operations[one]) for one in self.pending - unsettled)
        return sorted(
            one
            for one, told in known
            if told.delay_ns is not None
            and _deadline(told.begun_t, told.delay_ns) <= now_t
            and not (before_now and told.begun_t >= now_t + by_ns)
            and given_back.isdisjoint(told.keys)
        )

    def waiting(self) -> list[tuple[int, Add | Register]]:
        """The tasks and operations that have not ended, each with the end of its call, and the call. The clock may have
        moved during the call."""
        known = ((one, self._operations[one]) for one in self.pending)
        return [
            (told.begun_t, Register(one, told.keys, told.delay_ns) if told.keys else Add(one, told.delay_ns))
            for one, told in known
            if told.delay_ns is not None
        ]

    def last_deadline_t(self, below_ns: int) -> int:
        """The last deadline of the tasks and operations with delays below `below_ns`; MIN_INT if there is none."""
        return max(
            (
                _deadline(one.asked_t, one.delay_ns)
                for one in self._operations.values()
                if one.delay_ns is not None and one.delay_ns < below_ns
            ),
            default=MIN_INT,
        )

    @property
    def owed(self) -> bool:
        """Whether a call must be answered. While a thread is paused, this is false, because a call may wait for a lock
        of the paused thread. A paused thread that makes a call does not count as paused."""
        return bool(self._open) and not self.paused()

    def is_open(self, number: int) -> bool:
        return number in self._open

    def free(self, lane: int) -> bool:
        return lane not in self._busy

    def running(self) -> frozenset[str]:
        """The threads with an open call, or inside a function, that are not paused: they run, or wait for another
        thread. If this is empty, no event comes until the next call."""
        busy = {one.log.name for one in self._open.values() if not isinstance(one.call, Go)}
        busy.update(thread for thread, stack in self._stacks.items() if stack)
        return frozenset(thread for thread in busy if not self._is_paused(thread))

    def paused(self) -> list[Hold]:
        """The paused threads that make no call, and so can be resumed."""
        return [hold for hold in self.holds.values() if hold.making is None]

    def under_add(self, task: str) -> bool:
        return any(isinstance(one.call, Add) for one in self._setting(task))

    def _setting(self, task: str) -> list[_OpenCall]:
        """The open calls that set the deadline of a task."""
        calls = self._open.values()
        return [one for one in calls if isinstance(one.call, Add | Reset) and one.call.id == task]

    def makes_sense(self, call: Call) -> bool:
        """Whether a cancel, force, reset or go names a known task, operation or pause. True for any other call."""
        if isinstance(call, Go):
            return all(hold in self.holds and self.holds[hold].making is None for hold in call.holds)
        return not isinstance(call, (Cancel, Force, Reset)) or call.id in self.known

    def ask(
        self,
        call: Call,
        lane: int = 0,
        *,
        hold: int | None = None,
        steps: Sequence[int] = (),
    ) -> bytes:
        """Record that the call begins; return its line. An `advance` moves the virtual clock, after that record.

        `hold`: the paused thread that makes the call, instead of a caller (`lane`). A `go` needs neither. `steps`:
        where the call pauses.
        """
        call = self.as_declared(call)
        number, self.calls = self.calls, self.calls + 1
        of_lane: int | None = None
        if hold is not None:
            paused = self.holds[hold]
            assert self._innermost(paused.thread) is paused, "it is paused at an inner gate"
            assert paused.making is None, "it has a call under way"
            paused.making = number
            # Another thread may have had this log before.
            log = next(log for log in self._logs.values() if log.name == paused.thread)
        else:
            log = self._log(f"caller-{lane}")
            if isinstance(call, Go):
                self._let_go(call)
            else:
                assert self.free(lane), "a lane makes one call at a time"
                self._busy[lane] = number
                of_lane = lane
                self.doubts.beside += not self.doubts.met and bool(self.paused())
        if isinstance(call, Start):
            # Until the start is answered, threads may still come to gates of the last run.
            self._gates |= {*call.gates}
        asked_t = self._earliest_t(hold) if self._open else self._recorder.clock_ns()
        ticket = self._begin(log, call, asked_t)
        # A task may run before its add has returned.
        self._say_pauses()
        early = not self.makes_sense(call) or (isinstance(call, Cancel) and self.under_add(call.id))
        depth = len(self._stacks.get(log.name, ()))
        self._open[number] = _OpenCall(call, of_lane, log, ticket, asked_t, len(steps), depth, early)
        setting = self._setting(call.id) if isinstance(call, Add | Reset) else ()
        for one in setting:
            one.overlaps |= len(setting) > 1
        if self.clock is not None and isinstance(call, Advance):
            self.clock.now_ns = call.now_ns
        return call_line(number, call, lane, hold, steps)

    def as_declared(self, call: Call) -> Call:
        """The call, with one key if the subject knows no more. A reset, or an add of a known task, gets the delay of
        the first add, if the subject knows no other delay."""
        can = () if self.description is None else self.description.capabilities
        if isinstance(call, Register) and "one-key" in can:
            return replace(call, keys=call.keys[:1])
        same = {Reset: "reset-same", Add: "add-same"}.get(type(call)) in can
        if not same or not isinstance(call, Reset | Add) or call.id in self._periodic:
            return call
        if isinstance(call, Add) and "add-again" in can:
            return call
        known = self._operations.get(call.id)
        return call if known is None or known.delay_ns is None else replace(call, delay_ns=known.delay_ns)

    def owes(self, operations: Sequence[str], key: str) -> Callable[[], None]:
        """Record that the operations are ready, and that a check of their key begins. Returns a function that records
        the end of this check. By then, each operation must be completed."""
        self.doubts.units = True
        self.are_ready(operations)
        log = self._log(NOTE)
        ticket = log.call("check_and_complete", keys=(key,))
        return lambda: log.ret("check_and_complete", ticket, out=0)

    def are_ready(self, operations: Sequence[str]) -> None:
        """Record that each of these operations is ready (profile `hand-over`: there is a unit for it)."""
        for one in operations:
            self._log(NOTE).at("ready", one, t_call=self._recorder.clock_ns())

    def rests(self) -> None:
        """Record that all that was due has run."""
        self._log("driver").at("quiesce", state=State())

    def _halts(self) -> bool:
        """Whether the subject runs nothing from now on. In real time, this is not known if a deadline has passed: a
        thread may have begun to run the task."""
        told = self.description is not None and "halts" in self.description.capabilities
        return told and (self._virtual or not self.overdue())

    def _let_go(self, call: Go) -> None:
        if call.fail:
            self.fails = True
            self.spoilt.update(self.holds[gone].id for gone in call.holds)
        for gone in call.holds:
            assert self.holds[gone].making is None, "it has a call under way"
            hold = self.holds.pop(gone)
            if hold.f == STEP:
                self._pauses.append(_Pause(self._last_i(), hold.thread, "continues"))

    def _earliest_t(self, hold: int | None = None) -> int:
        """The earliest time that the subject's clock may show: if an `advance` has no answer, the time before it. If a
        thread is paused in the run of a task that has had only one deadline: this deadline."""
        now_t = self._recorder.clock_ns()
        moving = (one.asked_t for one in self._open.values() if isinstance(one.call, Advance))
        since_t = min(now_t, next(moving, MAX_INT))
        place = None if hold is None else self.holds[hold]
        told = self._operations.get(place.id or "") if place and place.f == "timer_fire" else None
        early_ns = None if self.description is None else self.description.early_ns
        if told is None or told.delay_ns is None or told.anew or early_ns is None:
            return since_t
        return min(now_t, max(since_t, _deadline(told.asked_t, told.delay_ns) - early_ns))

    def _innermost(self, thread: str) -> Hold | None:
        """The innermost pause of a thread. A paused thread that makes a call may be paused again inside it."""
        if not self.holds:
            return None
        return next((hold for hold in reversed(self.holds.values()) if hold.thread == thread), None)

    def _is_paused(self, thread: str) -> bool:
        hold = self._innermost(thread)
        return hold is not None and hold.making is None

    def _begin(self, log: ThreadLog, call: Call, asked_t: int) -> int:
        if isinstance(call, Ready):
            self._operations.setdefault(call.id, _Operation())
        f = recorded_as(call)
        if f is None:
            return -1
        keys = getattr(call, "keys", ()) or ((call.key,) if isinstance(call, Check | CancelKey) else ())
        delay_ns = call.period_ns if isinstance(call, Repeat) else getattr(call, "delay_ns", None)
        if isinstance(call, Add | Register):
            again = call.id in self._operations
            # Two programs of the driver with one id would be recorded as a completion that comes twice.
            assert not keys or not again or not self._operations[call.id].keys, (
                f"{call.id} was registered before"
            )
            self._operations[call.id] = _Operation(
                asked_t, delay_ns, keys, anew=again, former_t=self._waits_until(call.id)
            )
            # The task is added again: forget that it has ended.
            self.known.discard(call.id)
        elif isinstance(call, Repeat):
            self._operations[call.id] = _Operation(asked_t)
            self._periodic.add(call.id)
        elif isinstance(call, Reset):
            known = self._operations[call.id]
            known.anew, known.former_t = True, None
        return log.call(f, getattr(call, "id", None), keys=keys or None, delay_ns=delay_ns)

    def hear(self, line: bytes) -> Incoming:
        """Record the message of the line, and return it. Raises Misbehaved."""
        try:
            said = parse_incoming(line)
        except Refusal as refusal:
            raise Misbehaved("rubbish", str(refusal)) from None
        if isinstance(said, Answer):
            self._answered(said)
        elif isinstance(said, Description):
            self._described(said)
        elif isinstance(said, Held):
            self._stopped(said)
        else:
            self._happened(said)
        self._say_pauses()
        return said

    def _last_i(self) -> int:
        return max((log.last_i for log in self._logs.values()), default=-1)

    def _say_pauses(self) -> None:
        """Write each pause at a step into the trace twice: with the next event, and with the next event of its thread.
        A counterexample may show only one of them."""
        if not self._pauses:
            return
        newest = max(self._logs.values(), key=lambda log: log.last_i)
        told = [one for one in self._pauses if one.since_i < newest.last_i and one.said_by != newest.name]
        told = [one for one in told if one.said_by is None or one.thread == newest.name]
        if told:
            newest.note({"x_pauses": [[one.since_i, one.thread, one.text] for one in told]})
        for one in told:
            one.said_by = newest.name
            if one.thread == newest.name:
                self._pauses.remove(one)

    def _stopped(self, said: Held) -> None:
        if said.f not in self._gates:
            raise Misbehaved("rubbish", f"it pauses a thread at {said.f!r}, where no gate was requested")
        if said.hold in self._held_before:
            raise Misbehaved("wrong-id", f"it uses the hold number {said.hold} a second time")
        if said.id is not None and said.id not in self._operations:
            raise Misbehaved(
                "wrong-id", f"held at {said.f} of {said.id!r}, which was never added or registered"
            )
        thread = self._thread(said).name
        if said.f == STEP:
            # A thread of the subject's own may pause for a call; the message then has no `during`.
            stopping = (one for one in self._open.values() if one.pauses)
            asked = next(stopping, None) if said.during is None else self._open[said.during]
            if asked is None or not asked.pauses:
                raise Misbehaved("rubbish", "it is paused at a step that its call did not request")
            asked.pauses -= 1
        if len(self.holds) >= _MAX_HOLDS:
            raise Misbehaved("flood", f"more than {_MAX_HOLDS} paused threads")
        self.doubts.met = self.doubts.met or bool(self.paused())
        self._held_before.add(said.hold)
        self.holds[said.hold] = Hold(said.hold, thread, said.f, said.id)
        if said.f == STEP:
            place = "" if said.at is None else f" at {said.at}"
            self._pauses.append(_Pause(self._last_i(), thread, f"is paused{place}"))

    def _close(self, number: int) -> _OpenCall:
        ended = self._open.pop(number, None)
        if ended is None:
            if number < self.calls:
                raise Misbehaved("answered-twice", f"call {number} was answered before")
            raise Misbehaved("wrong-id", f"an answer to call {number}, which the driver never made")
        hold = None if isinstance(ended.call, Go) else self._innermost(ended.log.name)
        if hold is not None and hold.making != number:
            raise Misbehaved(
                "rubbish",
                f"call {number} continued from hold {hold.number} at {hold.f!r}, without a release{_WHOSE}",
            )
        if hold is not None:
            hold.making = None
        if ended.lane is not None:
            del self._busy[ended.lane]
        return ended

    def _described(self, said: Description) -> None:
        ended = self._close(said.n)
        if not isinstance(ended.call, Describe):
            raise Misbehaved("rubbish", f"a description in answer to {call_name(ended.call)}")
        if said.protocol not in SPOKEN:
            raise Misbehaved(
                "wrong-version", f"it speaks {said.protocol!r}; the driver speaks {', '.join(SPOKEN)}"
            )
        self.description = said

    def _answered(self, said: Answer) -> None:
        ended = self._close(said.n)
        call = ended.call
        self.doubts.met = self.doubts.met or (ended.lane is not None and bool(self.paused()))
        if said.err is not None:
            self._refused(said.n, ended, said.err)
            return
        if isinstance(call, Stop) and call.drain and self._halts():
            self.halted = True
            self._log("driver").at("halted")
        _check_answer(call, said)
        inside = self._stacks.get(ended.log.name, [])[ended.depth :]
        if inside and not isinstance(call, Go | Start):
            entered = f"{inside[-1].f} of {inside[-1].id!r}, entered in it,"
            raise Misbehaved(
                "rubbish", f"call {said.n} ({call_name(call)}) is answered before {entered} has ended"
            )
        self._check_told(call, said)
        self._learn(call, said, ended)

    def _learn(self, call: Call, said: Answer, ended: _OpenCall) -> None:
        """Record the answer, and what it says of operations."""
        if recorded_as(call) is not None and not isinstance(call, CancelKey | Gauge):
            self._end(ended, out=said.out)
        match call:
            case Add():
                self._begun(call.id)
            case Repeat():
                self.known.add(call.id)
            case Reset():
                if said.out != 0 and call.id not in self._periodic:
                    self._moved(call, ended)
            case Register():
                if said.out == 0:
                    self._begun(call.id)
                    self.doubts.waited += call.id in self.pending
            case Check():
                self._checked(call.key, said.out or 0)
            case Cancel():
                # The add of the task may have no answer yet.
                if said.out != 0:
                    self._over(call.id)
            case CancelKey():
                self._given_back(call, said, ended)
            case Gauge():
                ended.log.ret("gauge", ended.ticket, state=State(said.watched, said.delayed, said.keys))
            case Ready():
                ended.log.at("ready", call.id, t_call=ended.asked_t)
                self._ready.add(call.id)
            case Quiesce():
                ended.log.at("quiesce", state=State(said.watched, said.delayed, said.keys))
            case Start():
                # A thread of the subject may have been paused, or in a callback, after the driver's last read.
                self._gates = frozenset(call.gates)
                self.holds.clear()
                self._stacks.clear()
            case Describe():
                raise Misbehaved("rubbish", "the answer to `describe` is not a description")

    def _check_told(self, call: Call, said: Answer) -> None:
        """Raise Misbehaved if a reported completion lacks events that the verdict needs."""
        if not said.out or isinstance(call, Cancel | Reset):
            return
        mute = [f for f in ("try_complete", "force_complete") if not self._says_result.get(f, True)]
        lack = ""
        if mute and isinstance(call, Check | Register):
            lack = f"no `leave` of {mute[0]} so far had its result (`out`)"
        elif self._named is False and not self._virtual:
            lack = "no event so far named its call (`during`): in real time it counts as an event of another thread"
        if lack:
            why = f"{call_name(call)} is answered with out = {said.out}, so the call completed an operation, but {lack}"
            raise Misbehaved("rubbish", why)

    def _refused(self, number: int, ended: _OpenCall, err: str) -> None:
        """Record the error if the trace records the call. Otherwise, and for an `advance`, raise Misbehaved. A subject
        that halted refuses every call."""
        call = ended.call
        if self.halted:
            self._end(ended, err=err)
            return
        if recorded_as(call) is None or isinstance(call, Advance):
            if not self.fails:
                self.refused = self.refused or call
                self.erred = self.erred or [err]
            told = (
                "; the driver made a callback fail: catch the error where tasks run, so that it ends no other call,"
                ' or do not declare `failing` (kit for the JVM: declare lacks("failing"))'
            )
            raise Misbehaved("refused", f"{call_name(call)} ended with {err!r}{told * self.fails}")
        if not self.fails and not ended.early:
            self._errors += 1
            self.erred = self.erred or [err]
            self.refused = self.refused or call
            self._first_error = self._first_error or f"call {number} ({call_name(call)}) with {err!r}"
        self._end(ended, err=err)

    def _end(self, ended: _OpenCall, out: int | None = None, err: str | None = None) -> None:
        call, f = ended.call, recorded_as(ended.call)
        deadline_t = None
        if err is None and isinstance(call, Add | Repeat | Reset):
            deadline_t = _deadline(ended.asked_t, call.delay_ns)
        assert f is not None, "the trace records the call"
        ended.log.ret(f, ended.ticket, getattr(call, "id", None), out=out, err=err, deadline_t=deadline_t)

    def _moved(self, call: Reset, ended: _OpenCall) -> None:
        """Count the deadline of a task from its reset, after a reset that did not return 0. If another reset or add of
        the task overlaps this one, either may have come last, so the later deadline counts."""
        known = self._operations[call.id]
        before_t = _deadline(known.asked_t, known.delay_ns or 0)
        if not ended.overlaps or before_t <= _deadline(ended.asked_t, call.delay_ns):
            known.asked_t, known.delay_ns = ended.asked_t, call.delay_ns
        known.begun_t, known.runs = self._recorder.clock_ns(), 0

    def _begun(self, operation: str) -> None:
        self._operations[operation].begun_t = self._recorder.clock_ns()
        # The operation may have ended: a task that is due at once fires before its add is answered.
        if operation not in self.known:
            self.pending.add(operation)
        self.known.add(operation)

    def _checked(self, key: str, completed: int) -> None:
        self.doubts.completed += completed
        if not self.doubts.tried:
            waits = (self._operations[one].keys for one in self.pending)
            self.doubts.checked += any(key in keys for keys in waits)

    def _over(self, operation: str) -> None:
        self.known.add(operation)
        self.pending.discard(operation)

    def _given_back(self, call: CancelKey, said: Answer, ended: _OpenCall) -> None:
        from_all = self.description is not None and "cancel-key-all" in self.description.capabilities
        for operation in said.ids:
            if operation not in self._operations:
                raise Misbehaved("wrong-id", f"it returned {operation!r}, which was never registered")
            ended.log.at(
                "cancelled", operation, keys=self._operations[operation].keys if from_all else (call.key,)
            )
            self._over(operation)
        ended.log.ret("cancel_for_key", ended.ticket, out=len(said.ids))

    def _happened(self, said: Happening) -> None:
        f = said.f if isinstance(said, (Enter, Leave)) else _FUNCTION_OF[type(said)]
        if f not in self._reports:
            raise Misbehaved(
                "rubbish", f"it reports {f}, which its description does not declare for this part"
            )
        if said.id not in self._operations:
            raise Misbehaved("wrong-id", f"{f} of {said.id!r}, which was never added or registered")
        self._named = self._named or said.during is not None
        self.doubts.told[f] += 1
        known = self._operations[said.id]
        if f == "timer_fire" and self._virtual and known.delay_ns is not None and not isinstance(said, Leave):
            self.doubts.fires(self._recorder.clock_ns(), known.begun_t, known.delay_ns)
        self.doubts.met = self.doubts.met or bool(self.paused())
        log = self._thread(said)
        if isinstance(said, Expired):
            log.at(f, said.id)
        elif isinstance(said, Leave):
            self._left(log, f, said.id, said.out, said.err)
        else:
            self._entered(log, f, said.id)
            if not isinstance(said, Enter):
                self._left(log, f, said.id)
        # It is over when it starts: at its end, its task may have been added again.
        starts = f in ("timer_fire", "on_complete") and not isinstance(said, Leave)
        if starts and said.id not in self._periodic:
            known = self._operations[said.id]
            if not self._runs_for_a_former_add(known):
                self._over(said.id)
            known.former_t = None
            known.runs += 1
            if known.runs > _MAX_RUNS:
                raise Misbehaved("flood", f"{said.id!r} ran more than {_MAX_RUNS} times")
        elif f == "on_expiration":
            self.expired.add(said.id)
        elif f == "timer_add":
            self._operations[said.id].begun_t = self._recorder.clock_ns()

    def _waits_until(self, operation: str) -> int | None:
        """The earliest deadline of a task that waits, and that no open call adds or resets."""
        if operation not in self.pending or self.under_add(operation):
            return None
        known = self._operations[operation]
        deadlines = (known.former_t, _deadline(known.asked_t, known.delay_ns or 0))
        return min(t for t in deadlines if t is not None)

    def _runs_for_a_former_add(self, known: _Operation) -> bool:
        """Whether a run that starts now is too early for the last add of its task, and not for an add before: the task
        still waits then."""
        early_ns = None if self.description is None else self.description.early_ns
        if known.former_t is None or early_ns is None or not self._virtual:
            return False
        due_t = _deadline(known.asked_t, known.delay_ns or 0)
        return known.former_t <= self._recorder.clock_ns() + early_ns < due_t

    def _thread(self, said: Happening | Held) -> ThreadLog:
        """The thread of the trace on which an event is recorded. Raises Misbehaved if this thread is paused."""
        log = self._log_of(said)
        hold = self._innermost(log.name)
        if hold is not None and hold.making is None:
            raise Misbehaved(
                "rubbish",
                f"{log.name} continued from hold {hold.number} at {hold.f!r}, without a release{_WHOSE}",
            )
        return log

    def _log_of(self, said: Happening | Held) -> ThreadLog:
        if said.during is not None:
            within = self._open.get(said.during)
            if within is None or isinstance(within.call, Go):
                raise Misbehaved(
                    "wrong-id",
                    f"an event of {said.id!r} during call {said.during}, not under way"
                    + ", which is answered: report what a call causes before its answer"
                    * (said.during < self.calls),
                )
            return within.log
        logs = {one.log.name: one.log for one in self._open.values() if not isinstance(one.call, Go)}
        # With gates, a thread of the subject may be resumed after the answer to its call.
        if self._virtual and not logs and (said.th is None or not self._gates):
            raise Misbehaved(
                "rubbish",
                (
                    f"an event of {said.id!r} came while no call was under way, in virtual time: answer a "
                    "call only when all threads that it woke have finished"
                ),
            )
        if self._virtual and said.th is None:
            if len(logs) > 1:
                why = f"an event of {said.id!r} that names no call while several calls are under way, in virtual time"
                raise Misbehaved("rubbish", why)
            return next(iter(logs.values()))
        return self._log("subject" if said.th is None else f"subject/{said.th}")

    def _log(self, name: str) -> ThreadLog:
        log = self._logs.get(name)
        if log is None:
            if len(self._logs) < _MAX_THREADS:
                log = self._recorder.lane(name)
            elif (idle := self._idle()) is not None:
                log = self._logs.pop(idle)
            else:
                raise Misbehaved(
                    "flood", f"more than {_MAX_THREADS} threads at work: let fewer run at a time"
                )
            self._logs[name] = log
        elif len(self._logs) == _MAX_THREADS:
            self._logs[name] = self._logs.pop(name)
        return log

    def _idle(self) -> str | None:
        """The subject's thread whose last event is oldest, of those in no function and not paused. A pool may use a new
        thread name for each task. So the events of a new thread are recorded on this old thread."""
        paused = {hold.thread for hold in self.holds.values()}
        own = ((name, log.name) for name, log in self._logs.items() if name.startswith("subject/"))
        return next((name for name, of in own if not self._stacks.get(of) and of not in paused), None)

    def _entered(self, log: ThreadLog, f: str, operation: str) -> None:
        stack = self._stacks.setdefault(log.name, [])
        if len(stack) >= _MAX_DEPTH:
            raise Misbehaved("flood", f"more than {_MAX_DEPTH} functions entered and not left")
        claim = self._claim(log, operation) if f == "on_complete" else None
        is_the_call = f == "force_complete" and self._forcing(log, operation)
        delay_ns = self._operations[operation].delay_ns if f == "timer_add" else None
        ticket = None if is_the_call else log.call(f, operation, delay_ns=delay_ns)
        owes = f == "try_complete" and self._tries(operation)
        if stack and f in ("force_complete", "on_complete"):
            stack[-1].owes = False
        stack.append(_Entered(f, operation, ticket, claim, owes))

    def _tries(self, operation: str) -> bool:
        """Whether the operation is ready and pending, and no other thread can run. Counts the tries during a check."""
        if not self.doubts.tried and any(isinstance(one.call, Check) for one in self._open.values()):
            self.doubts.tried += 1
        alone = self._virtual and not self._gates
        over = operation in self.known and operation not in self.pending
        return alone and operation in self._ready and not over

    def _left(
        self, log: ThreadLog, f: str, operation: str, out: int | None = None, err: str | None = None
    ) -> None:
        stack = self._stacks.get(log.name, [])
        if not stack or (stack[-1].f, stack[-1].id) != (f, operation):
            inside = f"{stack[-1].f} of {stack[-1].id!r}" if stack else "nothing"
            raise Misbehaved("rubbish", f"{log.name} leaves {f} of {operation!r} and is in {inside}{_WHOSE}")
        entered = stack.pop()
        if err is None:
            self._says_result[f] = self._says_result.get(f, False) or out is not None
            if entered.owes and not out:
                self.doubts.blind = self.doubts.blind or operation
        if entered.ticket is not None:
            known, deadline_t = self._operations[operation], None
            if f == "timer_add" and err is None and known.delay_ns is not None:
                # It counts from before the line of the registration was written.
                deadline_t = _deadline(known.asked_t, known.delay_ns)
            log.ret(f, entered.ticket, operation, out=out, err=err, deadline_t=deadline_t)
        if entered.claim is not None:
            log.ret("force_complete", entered.claim, operation, out=1)

    def _claim(self, log: ThreadLog, operation: str) -> int | None:
        """Record a `force_complete` around a callback of completion, unless the thread is in one. Return its ticket."""
        inside = any((e.f, e.id) == ("force_complete", operation) for e in self._stacks.get(log.name, []))
        if inside or self._forcing(log, operation):
            return None
        self.doubts.outside = self.doubts.outside or operation
        return log.call("force_complete", operation)

    def _forcing(self, log: ThreadLog, operation: str) -> bool:
        """Whether the driver's own `force` of this operation is under way on this thread."""
        calls = (one.call for one in self._open.values() if one.log is log)
        return any(isinstance(call, Force) and call.id == operation for call in calls)


def _deadline(asked_t: int, delay_ns: int) -> int:
    return min(MAX_INT, asked_t + max(0, delay_ns))


_HAS_RESULT: Final[dict[type[Call], tuple[int | None, ...]]] = {
    Register: (0, 1),
    Force: (0, 1),
    Cancel: (None, 0, 1),
    Reset: (None, 0, 1),
}
"""The allowed results of each call. A check may return any number."""


def _check_answer(call: Call, said: Answer) -> None:
    """Raise Misbehaved if the answer lacks a field that the call needs, or has a field too many."""
    of = type(call)
    if of is Check:
        if said.out is None:
            raise Misbehaved(
                "rubbish", "check is answered with out, the number of operations that it completed"
            )
    elif said.out not in _HAS_RESULT.get(of, (None,)):
        name = call_name(call)
        if of not in _HAS_RESULT:
            raise Misbehaved("rubbish", f"{name} has no result, but out = {said.out} was sent")
        without = ", or without" if None in _HAS_RESULT[of] else ""
        raise Misbehaved("rubbish", f"{name} is answered with out = 0 or 1{without}, not {said.out}")
    if said.ids and of is not CancelKey:
        raise Misbehaved("rubbish", f"{call_name(call)} returns no ids, but the answer has ids")
    sized = {said.watched, said.delayed, said.keys} != {None}
    if sized and of is not Gauge and of is not Quiesce:
        raise Misbehaved("rubbish", f"{call_name(call)} returns no sizes, but the answer has sizes")
