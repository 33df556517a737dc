"""A script: a short program of calls in virtual time, which the driver makes and records.

Scripts are used for transcripts, and to minimize a violation. One subject executes any number of scripts, each from a
new `start`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.conversation import Conversation, VirtualClock
from purgatorio_conformance.protocol.describe import Part, header_of, reported
from purgatorio_conformance.protocol.message import (
    Advance,
    Call,
    Description,
    Go,
    Held,
    Incoming,
    Quiesce,
    Repeat,
    Reset,
    Start,
    call_name,
)
from purgatorio_conformance.protocol.session import OwnPeer, Peer, Session, noted
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.plan import HUGE_NS
from purgatorio_spec.trace.record import Event, Header
from purgatorio_spec.trace.recorder import Recorder

_LIMITS: Final = ChildLimits(total_s=300.0, lines=200_000)
"""The limits for each script."""


@dataclass(frozen=True, slots=True)
class AtGate:
    """A plan for the next thread that is paused at `f` of this task or operation: it makes these calls there. If it
    `fails`, it ends that callback with an error."""

    f: str
    id: str
    calls: tuple[Call, ...] = ()
    fails: bool = False


ScriptStep = Call | AtGate


@dataclass(frozen=True, slots=True)
class Script:
    """The calls of one run between `start` (at `start_ns`) and `stop`, made one after another."""

    part: Part
    start_ns: int
    calls: tuple[ScriptStep, ...]

    def moments(self) -> list[int]:
        """The readings of the clock, in order."""
        return [self.start_ns, *(call.now_ns for call in self.calls if isinstance(call, Advance))]

    def gates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.f for step in self.calls if isinstance(step, AtGate)))


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a script: the header and events of its trace, and the lines of the session (`> ` to the subject).
    `failure`: the misbehavior that ended it, or None."""

    header: Header
    events: tuple[Event, ...]
    session: tuple[str, ...]
    failure: SubjectFailed | None = None


def play(
    peer: Peer,
    script: Script,
    description: Description,
    limits: ChildLimits,
    *,
    first: int = 0,
) -> tuple[Played, Conversation]:
    """Execute the script from a new start. The subject comes to rest if its time goes far enough. `first`: the number
    of the first call; the conversation has the next one."""
    description = replace(description, lanes=1)
    clock = VirtualClock(script.start_ns)
    recorder = Recorder(clock)
    conversation = Conversation(recorder, reported(description, script.part), clock, first=first)
    conversation.description = description
    lines: list[str] = []
    session = Session(peer, conversation, limits, noted(lines))
    failure: SubjectFailed | None = None
    try:
        Caller(session, limits.lines + 1).carry_out(script, description)
    except SubjectFailed as failed:
        failure = failed
    events = tuple(recorder.drain(last=True))
    periodic = any(isinstance(step, Repeat | Reset) for step in script.calls)
    periodic |= description.turn is not None and bool(script.gates())
    header = header_of(
        description,
        script.part,
        run="script",
        virtual=True,
        late_slack_ns=0,
        params={},
        periodic=periodic,
    )
    return Played(header, events, tuple(lines), failure), conversation


class Caller:
    """Makes calls one after another, and at pause points the calls that are planned there (`at`). `lines`: the maximum
    number of lines before an answer. All methods raise SubjectFailed."""

    def __init__(self, session: Session, lines: int) -> None:
        self.session = session
        self.at: dict[tuple[str, str | None], AtGate] = {}
        self._lines = self._left = lines
        self._gone: list[tuple[Go, int]] = []

    @property
    def now_ns(self) -> int:
        clock = self.session.conversation.clock
        assert clock is not None, "only in virtual time"
        return clock.now_ns

    def make(self, call: Call, hold: int | None = None) -> None:
        """Make one call and read all lines until its answer. A call with an unknown id is left out."""
        if not self.session.conversation.makes_sense(call):
            return
        if hold is None:
            self._left = self._lines
        if isinstance(call, Advance):
            call = Advance(max(call.now_ns, self.now_ns))  # a shortened script may be behind its clock
        self._hear_answer(call, self.session.ask(call, hold=hold))

    def _hear_answer(self, call: Call, number: int) -> None:
        while self.session.conversation.is_open(number):
            self._left -= 1
            if self._left < 0:
                raise self.session.failed("flood", f"answers {call_name(call)} with more and more lines")
            self.heard(self.session.hear_on())

    def heard(self, said: Incoming | None) -> None:
        """If a thread is paused at a pause point, make the calls that are planned there, and resume the thread."""
        if not isinstance(said, Held):
            return
        planned = self.at.pop((said.f, said.id), AtGate(said.f, ""))
        self.stay(said)
        for call in planned.calls:
            self.make(call, said.hold)
        go = Go((said.hold,), int(planned.fails) or None)
        self._gone.append((go, self.session.ask(go)))
        if len(self._gone) == 1:
            # Many threads may pause before this answer: their answers are read here, not one inside another.
            for one, number in self._gone:
                self._hear_answer(one, number)
            self._gone.clear()

    def plan(self, step: AtGate) -> None:
        """Plan the calls of `step` for the next visit of its pause point, after the calls that are planned there
        already."""
        planned = self.at.get((step.f, step.id), AtGate(step.f, step.id))
        calls, fails = (*planned.calls, *step.calls), planned.fails or step.fails
        self.at[step.f, step.id] = replace(planned, calls=calls, fails=fails)

    def stay(self, said: Held) -> None:
        """Called when a thread is paused, before the calls planned there."""

    def carry_out(self, script: Script, description: Description) -> None:
        self.make(Start(script.part, "virtual", script.start_ns, script.gates()))
        for step in script.calls:
            if isinstance(step, AtGate):
                self.plan(step)
            else:
                self.make(step)
        rest_ns = (description.late_ns or 0) + 2 * description.grain_ns
        conversation = self.session.conversation
        if not conversation.halted and conversation.last_deadline_t(HUGE_NS) + rest_ns <= self.now_ns:
            self.make(Quiesce())


class ScriptPlayer:
    """Executes scripts with a program, or with an adapter that `made` makes. After a failed script, the next one gets a
    new subject. Raises SubjectFailed if the subject misbehaves before any script. Close it."""

    def __init__(
        self, made: Sequence[str] | Callable[[], OwnPeer], limits: ChildLimits | None = None
    ) -> None:
        self._made = made
        self._limits = limits or _LIMITS
        self._child: OwnPeer | None = None
        self._driven_s = 0.0
        self._begin()

    def _begin(self) -> OwnPeer:
        made = self._made
        self._child = child = made() if callable(made) else LineChild(made[0], made, self._limits)
        self._lines: list[str] = []
        self._conversation = Conversation(Recorder(), clock=VirtualClock())
        try:
            self.description: Description = self._session(child).describe()
        except BaseException:
            self.close()
            raise
        self.opening = tuple(self._lines)
        """The lines of the `describe` call and its answer."""
        return child

    def _session(self, child: OwnPeer) -> Session:
        return Session(child, self._conversation, self._limits, noted(self._lines))

    def play(self, script: Script) -> Played:
        played = self.tried(script)
        if played.failure is not None:
            raise played.failure
        return played

    def tried(self, script: Script) -> Played:
        """Execute the script. Misbehavior of the child is returned as `failure`."""
        child = self._child or self._begin()
        if isinstance(child, LineChild):
            child.renew()
        played, self._conversation = play(
            child, script, self.description, self._limits, first=self._conversation.calls
        )
        if played.failure is not None:
            self._driven_s += self._limits.silence_s * (played.failure.kind == "hang")
            self.close()
        return played

    def driven_s(self) -> float:
        """The CPU time of all programs so far, and the seconds of silence of those that hung."""
        return self._driven_s + (0.0 if self._child is None else self._child.driven_s())

    def finish(self) -> tuple[str, ...]:
        """Stop the subject and wait for its end. Returns the lines of this exchange."""
        assert self._child is not None, "nothing has failed"
        self._lines = []
        self._session(self._child).finish()
        return tuple(self._lines)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            self._driven_s += child.driven_s()
            child.close()
