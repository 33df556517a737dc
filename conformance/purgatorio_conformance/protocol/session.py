"""Exchanges lines with a child process. If the child stops answering, the error says whether the child has ended,
closed its input, or hangs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Final, Protocol

from purgatorio_conformance.protocol.conversation import Conversation, Misbehaved, VirtualClock
from purgatorio_conformance.protocol.describe import Part, check_description
from purgatorio_conformance.protocol.message import Answer, Call, Describe, Description, Incoming, Start, Stop
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.child import ChildLimits, Quiet
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_spec.show.visible import first_few

START_S: Final = 20.0
"""The limit of the first silence, while the subject starts."""
_PATIENCE: Final = 15
"""A subject that works may be silent for this multiple of the limit, because other programs may use the processor."""
_FLUSH_EVERY: Final = 5_000
"""The number of lines from the subject between two flushes."""


class Channel(Protocol):
    """The lines of a peer."""

    def say(self, line: bytes) -> None: ...

    def hear(self, within_s: float) -> bytes | Quiet:
        """The next line of the peer, if one comes in time."""

    def works(self, most_s: float) -> bool:
        """Whether the peer has worked since the last call of this method (or since its last line), and so may still
        answer. False if it has used more than `most_s` seconds of CPU time."""


class Peer(Channel, Protocol):
    """The other end of a session: a child process, or an adapter in this process."""

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """A failure of the peer, with its own error output."""

    def silent(self, seconds: float, why: str = "") -> SubjectFailed:
        """The failure of a peer that was silent for this time."""

    def threads(self) -> ProcessThreads:
        """The threads of the peer and of its present descendants."""

    def check_exit(self, why: str = "") -> None:
        """Wait for the end of the peer, after its last line. Raises SubjectFailed if its exit status is not 0."""

    def end_input(self) -> None:
        """Close the input of the peer."""


class OwnPeer(Peer, Protocol):
    """A peer that this process started and must end."""

    def errors(self) -> bytes:
        """The end of the peer's standard error."""

    def on_one_processor(self) -> AbstractContextManager[None]:
        """Inside `with`, the peer shares a processor with the driver, if this makes both faster."""

    def driven_s(self) -> float:
        """The CPU time of the peer so far, in seconds, if it is not part of this process."""

    def close(self) -> None:
        """End the peer."""


Listener = Callable[[str, bytes], None]
"""Called with `>` and each line to the subject, and with `<` and each line from it. The lines are not escaped."""


def noted(lines: list[str]) -> Listener:
    """A listener that appends each line to `lines`, in the notation of sessions."""
    return lambda way, line: lines.append(f"{way} {line.decode(errors='replace')}")


@dataclass(eq=False)
class Session:
    """Calls to one peer: one at a time with `call`, or several open calls with `ask` and `listen`.

    All methods raise SubjectFailed if the child misbehaves. `flush` is called after some thousand lines, to write the
    recorded events: a long run must not be held in memory. `channel`: what passes the lines on, if not the child.
    """

    _child: Peer
    conversation: Conversation
    _limits: ChildLimits
    _listener: Listener | None = None
    _flush: Callable[[], None] | None = None
    channel: InitVar[Channel | None] = None
    heard: int = 0
    """Lines from the subject so far."""
    _stopped: bool = False
    _slowest_s: float = 0.0
    _quiet_since_s: float = field(default_factory=time.monotonic)
    _granted: int = 1

    def __post_init__(self, channel: Channel | None) -> None:
        self._channel = channel or self._child

    def ask(
        self,
        call: Call,
        lane: int = 0,
        *,
        hold: int | None = None,
        steps: Sequence[int] = (),
    ) -> int:
        """Make a call without waiting; returns its number. The caller (`lane`) must have no open call. A paused thread
        must make no other call."""
        number = self.conversation.calls
        line = self._line(call, lane, hold, steps)
        self._channel.say(line)
        self._stopped |= isinstance(call, Stop)
        return number

    def ask_at_once(self, calls: Sequence[Call]) -> list[int]:
        """Make the calls in one write, each by a caller of its own; returns their numbers."""
        first = self.conversation.calls
        self._channel.say(b"\n".join(self._line(call, lane) for lane, call in enumerate(calls)))
        return [*range(first, self.conversation.calls)]

    def _line(self, call: Call, lane: int, hold: int | None = None, steps: Sequence[int] = ()) -> bytes:
        if not self.conversation.owed:
            self._not_quiet()
        try:
            line = self.conversation.ask(call, lane, hold=hold, steps=steps)
        except Misbehaved as misbehaved:
            raise self.failed(misbehaved.kind, misbehaved.why) from None
        self._note(">", line)
        return line

    def start(self, part: Part, gates: tuple[str, ...] = ()) -> None:
        """Begin a run, at the present time of the virtual clock if there is one."""
        clock = self.conversation.clock
        self.call(
            Start(part, "real", None, gates) if clock is None else Start(part, "virtual", clock.now_ns, gates)
        )

    def call(self, call: Call) -> Answer | Description:
        """Make a call and wait for its answer. Lines that come before the answer are read, too."""
        asked_s = time.monotonic()
        number = self.ask(call)
        said: Incoming | None = None
        try:
            while self.conversation.is_open(number):
                said = self._hear(self._patience_s())
        except SubjectFailed as failure:
            if failure.kind == "hang" and isinstance(call, Describe):
                failure.why += "; the program must flush its output after each line"
            elif failure.kind == "died" and isinstance(call, Describe):
                failure.why += "; the program must answer each line until its standard input closes"
            elif failure.kind == "hang":
                failure.why += f"; no answer before took longer than {self._slowest_s:.2g} s"
            raise
        assert isinstance(said, (Answer, Description)), "nothing else closes it"
        if not isinstance(call, (Describe, Start)):
            self._slowest_s = max(self._slowest_s, time.monotonic() - asked_s)
        return said

    def describe(self) -> Description:
        """The description of the subject. Raises SubjectFailed if it cannot be driven."""
        said = self.call(Describe())
        assert isinstance(said, Description), "any other answer is refused by the conversation"
        try:
            check_description(said)
        except Misbehaved as misbehaved:
            raise self.failed(misbehaved.kind, misbehaved.why) from None
        return said

    def wait_for_lane(self, lane: int) -> None:
        """Read messages until the caller has no open call."""
        while not self.conversation.free(lane):
            self._hear(self._patience_s())

    @cached_property
    def threads(self) -> ProcessThreads:
        """The threads of the peer, and of the descendants that it has when they are first read."""
        return self._child.threads()

    def listen(self, until_s: float) -> None:
        """Listen until this time of `time.monotonic`. Silence is no failure unless an answer is owed."""
        while (left_s := until_s - time.monotonic()) > 0:
            if self.conversation.owed:
                left_s = min(left_s, self._patience_s())
            self._hear(left_s)

    def hear(self, within_s: float) -> Incoming | None:
        """The next message, or None after this time. Silence is a failure if an answer is owed."""
        if self.conversation.owed:
            within_s = min(within_s, self._patience_s())
        return self._hear(within_s)

    def hear_on(self) -> Incoming:
        """The next message. Raises SubjectFailed if none comes."""
        while (said := self.hear(self._limits.silence_s)) is None:
            if not self._goes_on():
                why = ", in a function that it entered and has not left"
                raise self._child.silent(self._limit_s(), why)
        return said

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        return self._child.failed(kind, why)

    def finish(self) -> None:
        """Stop the subject, unless it was stopped before, and wait for its end. Lines after its last answer are read,
        too."""
        if not self._stopped:
            self.call(Stop())
        self._child.end_input()
        while True:
            said = self._channel.hear(self._limits.silence_s)
            if said is Quiet.SILENT:
                raise self._child.failed(
                    "hang", f"is still alive {self._limits.silence_s:g} s after it was stopped"
                )
            if said is Quiet.ENDED:
                self._child.check_exit(" after it was stopped")
                return
            self._take(said)

    def _limit_s(self) -> float:
        # The first call waits for the subject's start as well.
        first = self.conversation.description is None
        return self._granted * (START_S if first else self._limits.silence_s)

    def _goes_on(self) -> bool:
        """Whether to wait longer for a subject that reached its limit of silence, because it works."""
        if self._granted >= _PATIENCE or self.conversation.description is None:
            return False
        if not self._channel.works(self._limits.silence_s):
            return False
        self._granted += 1
        return True

    def _patience_s(self) -> float:
        return max(0.0, self._quiet_since_s + self._limit_s() - time.monotonic())

    def _hear(self, within_s: float) -> Incoming | None:
        """The next message, or None if none comes in time and no answer is owed."""
        said = self._channel.hear(within_s)
        if said is Quiet.SILENT:
            if self.conversation.owed and self._patience_s() <= 0 and not self._goes_on():
                late = self.conversation.overdue()
                lost = f"; overdue: {first_few(late)}" if late else ""
                why = f", with {self.conversation.under_way()} not answered{self.conversation.where()}{lost}"
                raise self._child.silent(self._limit_s(), why)
            return None
        if said is Quiet.ENDED:
            waiting = self.conversation.under_way()
            owed = f" with {waiting} not answered" if waiting else " before it was stopped"
            self._child.check_exit(owed)
            raise self._child.failed("died", f"ended with exit status 0{owed}")
        return self._take(said)

    def _take(self, line: bytes) -> Incoming:
        self._not_quiet()
        self._note("<", line)
        self.heard += 1
        if self._flush is not None and self.heard % _FLUSH_EVERY == 0:
            self._flush()
        try:
            return self.conversation.hear(line)
        except Misbehaved as misbehaved:
            said = f"; it sent {line[:80].decode(errors='replace')!r}" if misbehaved.kind != "refused" else ""
            raise self._child.failed(misbehaved.kind, misbehaved.why + said) from None

    def _not_quiet(self) -> None:
        self._quiet_since_s, self._granted = time.monotonic(), 1

    def _note(self, way: str, line: bytes) -> None:
        if self._listener is not None:
            self._listener(way, line)


@dataclass(frozen=True, slots=True)
class Drive:
    """The arguments of each driver of a part: a seed, and the number of tasks or operations to add. `tell`: called with
    the number of those that have ended."""

    session: Session
    description: Description
    part: Part
    seed: int
    operations: int
    tell: Callable[[int], None]

    @property
    def virtual(self) -> bool:
        return self.session.conversation.clock is not None

    @property
    def clock(self) -> VirtualClock:
        clock = self.session.conversation.clock
        assert clock is not None, "only in virtual time"
        return clock
