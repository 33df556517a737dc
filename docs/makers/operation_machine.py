"""One delayed operation as a state machine: which events may come next, and which clause forbids the others.

`step` is a pure function on immutable values. It is total: a forbidden event is named by its clauses and the machine
continues, so one history can break several. It reads the calls and returns of one operation in the order in which
they were recorded; a test compares it, history by history, with the trace clauses O1, O2, O3 and O6. Not part of it:
O4, O5, O7 and the timer, which depend on keys, other calls and time.
"""

from enum import Enum
from typing import NamedTuple


class Phase(Enum):
    """Where the operation stands, seen from outside."""

    PENDING = "pending"
    COMPLETING = "completing"
    COMPLETED = "completed"
    EXPIRING = "expiring"
    EXPIRED = "expired"


TRY, FORCE, COMPLETE, EXPIRE, READY = (
    "try_complete",
    "force_complete",
    "on_complete",
    "on_expiration",
    "ready",
)


class Event(NamedTuple):
    """A call, a return (`out` is 0 or 1 where the function answers), or the point `ready`."""

    thread: str
    phase: str
    function: str
    out: int | None = None


class Frame(NamedTuple):
    """A call that has not returned; `completes`: this operation's on_complete started inside it. `ran`: and in no
    force_complete inside it."""

    thread: str
    function: str
    completes: bool = False
    ran: bool = False


class Operation(NamedTuple):
    """The whole state. The counters stop at 2: nothing distinguishes twice from more often."""

    open: tuple[Frame, ...] = ()
    starts: int = 0
    winners: int = 0
    expirations: int = 0
    ended_on: frozenset[str] = frozenset()
    ready: bool = False

    @property
    def phase(self) -> Phase:
        """The phase follows from the rest."""
        running = {frame.function for frame in self.open}
        if EXPIRE in running:
            return Phase.EXPIRING
        if COMPLETE in running:
            return Phase.COMPLETING
        if self.expirations:
            return Phase.EXPIRED
        return Phase.COMPLETED if self.starts else Phase.PENDING


class Transition(NamedTuple):
    """The next state, and the clauses that forbid this event here (none: it is allowed)."""

    state: Operation
    broken: tuple[str, ...] = ()


def step(state: Operation, event: Event) -> Transition:
    """What `event` does. ValueError for a return that is not of the thread's innermost open call."""
    if event.phase == "at":
        return Transition(state._replace(ready=True))
    if event.phase == "call":
        return _call(state, event)
    return _return(state, event)


def _call(state: Operation, event: Event) -> Transition:
    guard = {COMPLETE: _complete_starts, EXPIRE: _expiration_starts, TRY: _try_starts}.get(event.function)
    after, broken = guard(state, event.thread) if guard is not None else Transition(state)
    return Transition(after._replace(open=(*after.open, Frame(event.thread, event.function))), broken)


def _complete_starts(state: Operation, thread: str) -> Transition:
    """O1: never before. O2: inside a force_complete of this thread. O6: no other thread is in try_complete (locked)."""
    broken = []
    if state.starts:
        broken.append("O1")
    frames = list(state.open)
    forces = [at for at, frame in enumerate(frames) if frame.thread == thread and frame.function == FORCE]
    if not forces:
        broken.append("O2")
    if _elsewhere(state, thread, TRY):
        broken.append("O6")
    for at in forces:
        frames[at] = frames[at]._replace(completes=True, ran=frames[at].ran or at == forces[-1])
    return Transition(state._replace(open=(*frames,), starts=min(state.starts + 1, 2)), tuple(broken))


def _expiration_starts(state: Operation, thread: str) -> Transition:
    """O3: at most once, and after the on_complete that this same expiry caused, hence on this thread."""
    allowed = not state.expirations and thread in state.ended_on
    after = state._replace(expirations=min(state.expirations + 1, 2))
    return Transition(after, () if allowed else ("O3",))


def _try_starts(state: Operation, thread: str) -> Transition:
    """O6: no other thread is in try_complete or on_complete."""
    beside = any(_elsewhere(state, thread, function) for function in (TRY, COMPLETE))
    return Transition(state, ("O6",) if beside else ())


def _elsewhere(state: Operation, thread: str, function: str) -> bool:
    return any(frame.function == function and frame.thread != thread for frame in state.open)


def _return(state: Operation, event: Event) -> Transition:
    mine = [index for index, frame in enumerate(state.open) if frame.thread == event.thread]
    if not mine or state.open[mine[-1]].function != event.function:
        raise ValueError(f"{event.thread} is not inside {event.function}")
    frame = state.open[mine[-1]]
    after = state._replace(open=state.open[: mine[-1]] + state.open[mine[-1] + 1 :])
    if event.function == COMPLETE:
        return Transition(after._replace(ended_on=after.ended_on | {event.thread}))
    if event.function == FORCE:
        return _force_ends(after, frame, bool(event.out))
    if event.function == TRY and event.out and not state.ready:
        return Transition(after, ("O2",))
    return Transition(after)


def _force_ends(state: Operation, frame: Frame, won: bool) -> Transition:
    """O1: it returns true once, only if on_complete ran inside it, and always if no force_complete inside it ran it."""
    if not won:
        return Transition(state, ("O1",) if frame.ran else ())
    wrong = state.winners or not frame.completes
    return Transition(state._replace(winners=min(state.winners + 1, 2)), ("O1",) if wrong else ())


def judge(history: tuple[Event, ...]) -> frozenset[str]:
    """The clauses that a history breaks."""
    state, broken = Operation(), set[str]()
    for event in history:
        state, forbidden = step(state, event)
        broken.update(forbidden)
    return frozenset(broken)


def next_events(state: Operation, threads: tuple[str, ...], depth: int) -> list[Event]:
    """Every event that a recorder could write next, forbidden ones included; calls nest at most `depth`."""
    events = [] if state.ready else [Event(threads[0], "at", READY)]
    for thread in threads:
        mine = [frame for frame in state.open if frame.thread == thread]
        if len(mine) < depth:
            events += [Event(thread, "call", function) for function in (TRY, FORCE, COMPLETE, EXPIRE)]
        if mine:
            function = mine[-1].function
            outs: tuple[int | None, ...] = (0, 1) if function in (TRY, FORCE) else (None,)
            events += [Event(thread, "ret", function, out) for out in outs]
    return events
