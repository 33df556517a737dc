"""A short program of calls in virtual time, played to a subject and recorded: for transcripts, and for making a found
violation shorter.

One child plays any number of scripts, each from a `start` of its own. A late bound is judged only as far as the script
gives the subject the chance to keep it, see `late_slack_ns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
from types import TracebackType
from typing import Final

from purgatorio_spec.trace.record import Event, Header
from purgatorio_stress.protocol.conversation import Conversation
from purgatorio_stress.protocol.describe import Part, header_of, reported
from purgatorio_stress.protocol.message import (
    Add,
    Advance,
    Call,
    Describe,
    Description,
    Quiesce,
    Register,
    Start,
)
from purgatorio_stress.protocol.talk import Talk, checked_description
from purgatorio_stress.protocol.virtual_time import VirtualClock
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.child import ChildLimits, LineChild
from purgatorio_stress.subject.plan import HUGE_NS, MS

__all__ = ["Played", "Script", "ScriptPlayer", "late_slack_ns"]

_LIMITS: Final = ChildLimits(total_s=300.0, lines=200_000)
"""For each script."""


@dataclass(frozen=True, slots=True)
class Script:
    """The calls of one run between `start` (at `start_ns`) and `stop`."""

    part: Part
    start_ns: int
    calls: tuple[Call, ...]

    def deadlines(self) -> list[tuple[int, int]]:
        """Of all tasks and operations that are waited for: the place of the call, and the deadline."""
        now_ns, found = self.start_ns, []
        for place, call in enumerate(self.calls):
            if isinstance(call, Advance):
                now_ns = call.now_ns
            elif isinstance(call, Add | Register) and call.delay_ns < HUGE_NS:
                found.append((place, now_ns + max(0, call.delay_ns)))
        return found

    def moments(self) -> list[int]:
        """The readings of the clock, in order."""
        return [self.start_ns, *(call.now_ns for call in self.calls if isinstance(call, Advance))]


def late_slack_ns(script: Script, late_ns: int) -> int:
    """What is added to a late bound: nothing where every deadline that is passed was given its last chance.

    The last chance is an `advance`, after the call, to the deadline plus the bound. A script without one for some
    deadline has its longest step as slack, since the subject was not asked in time.
    """
    moments = script.moments()
    last_place = {call.now_ns: place for place, call in enumerate(script.calls) if isinstance(call, Advance)}
    for place, due_ns in script.deadlines():
        chance_ns = due_ns + late_ns
        if chance_ns <= moments[-1] and last_place.get(chance_ns, -1) < place:
            return max((after - before for before, after in pairwise(moments)), default=0)
    return 0


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a script: the header and events of its trace, and the lines of the talk (`> ` to the subject)."""

    header: Header
    events: tuple[Event, ...]
    talk: tuple[str, ...]


class ScriptPlayer(AbstractContextManager["ScriptPlayer"]):
    """A child that plays scripts. Everything raises SubjectFailed where it misbehaves; it is of no use afterwards."""

    def __init__(self, command: Sequence[str], limits: ChildLimits | None = None) -> None:
        self._limits = limits or _LIMITS
        self._child = LineChild(command[0], command, self._limits)
        self._lines: list[str] = []
        try:
            self._conversation = Conversation(Recorder(), virtual=True)
            talk = self._talk()
            self.description: Description = checked_description(self._child, talk.call(Describe()))
        except BaseException:
            self._child.__exit__(None, None, None)
            raise
        self.opening = tuple(self._lines)
        """The lines of the describing."""

    def _talk(self) -> Talk:
        def note(way: str, line: bytes) -> None:
            self._lines.append(f"{way} {line.decode(errors='replace')}")

        return Talk(self._child, self._conversation, self._limits, note)

    def play(self, script: Script) -> Played:
        """Carry it out from a fresh start; it comes to rest if its time goes far enough."""
        description = replace(self.description, lanes=1)
        clock = VirtualClock(script.start_ns)
        recorder = Recorder(clock)
        self._conversation = Conversation(
            recorder, reported(description, script.part), virtual=True, first=self._conversation.calls
        )
        self._conversation.description = self.description
        self._lines = []
        self._child.renew()
        talk = self._talk()
        talk.call(Start(script.part, "virtual", script.start_ns))
        for call in script.calls:
            if talk.conversation.makes_sense(call):
                talk.call(call, clock.to(call.now_ns) if isinstance(call, Advance) else None)
        late_ns = description.late_ns or 0
        rest_ns = late_ns + 2 * max(description.tick_ns or MS, description.unit_ns)
        if all(due + rest_ns <= clock.now_ns for _, due in script.deadlines()):
            talk.call(Quiesce())
        header = header_of(
            description,
            script.part,
            run="script",
            virtual=True,
            late_slack_ns=late_slack_ns(script, late_ns),
            params={},
        )
        return Played(header, tuple(recorder.drain(last=True)), tuple(self._lines))

    def finish(self) -> tuple[str, ...]:
        """Stop the subject and wait for its end; the lines of that."""
        self._lines = []
        self._talk().finish()
        return tuple(self._lines)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.__exit__(kind, error, trace)
