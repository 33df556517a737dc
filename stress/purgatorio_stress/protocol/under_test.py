"""A program in any language as a timer of the conformance suite: the suite's own programs, one call after the other.

    TIMERS = CommandTimers(["node", "my.js"])

    @pytest.fixture
    def purgatorio_timer():
        return TIMERS

    @pytest.mark.purgatorio(promises=[TIMERS.promise()])
    def test_my_timer(purgatorio_case):
        purgatorio_case.check()

One child serves all programs, each from a `start` of its own; one that misbehaved is replaced. What the protocol has no
words for (a task that adds another, or raises) is a lack, so the scenarios for it are SKIPPED with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final

from purgatorio_spec.trace.record import MAX_INT
from purgatorio_stress.conformance.contract import BadPromise, Promise
from purgatorio_stress.protocol.describe import profile_of
from purgatorio_stress.protocol.driver import describe_command
from purgatorio_stress.protocol.message import (
    Add,
    Advance,
    Answer,
    Call,
    Cancel,
    Description,
    Gauge,
    Happening,
)
from purgatorio_stress.protocol.script import ScriptPlayer
from purgatorio_stress.protocol.virtual_time import VirtualClock
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.child import ChildLimits
from purgatorio_stress.subject.contract import SubjectFailed

__all__ = ["CommandTimer", "CommandTimers", "RefusedByProgram"]

_LIMITS: Final = ChildLimits(total_s=24 * 3600.0)


class RefusedByProgram(Exception):
    """The program answered a call with an error; its text is the error's type, as the program calls it."""


class CommandTimers(AbstractContextManager["CommandTimers"]):
    """A factory of timers, all in one child, that lives until this is closed or the interpreter ends."""

    def __init__(self, command: Sequence[str], limits: ChildLimits | None = None) -> None:
        self._command = tuple(command)
        self._limits = limits or _LIMITS
        self._player: ScriptPlayer | None = None

    def promise(self) -> Promise:
        """What the program declares, as a promise of the suite; starts it once. Raises SubjectFailed, BadPromise."""
        return promise_of(describe_command(self._command, self._limits))

    def __call__(self, promise: Promise) -> CommandTimer:
        """A timer with nothing pending, its clock at 0; the one before it is of no use any more."""
        if self._player is None:
            self._player = ScriptPlayer(self._command, self._limits)
        return CommandTimer(self._player, self.close)

    def close(self) -> None:
        """End the child."""
        player, self._player = self._player, None
        if player is not None:
            player.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def promise_of(description: Description) -> Promise:
    """The suite's promise for a description. Raises BadPromise where the suite has no programs for such a timer."""
    capable, lacks = set(description.capabilities), {}
    if not {"timer", "virtual-time"} <= capable:
        raise BadPromise(f"{description.name} is no timer in virtual time")
    if description.least_delay_ns > 0:
        raise BadPromise(f"{description.name} takes no delay below {description.least_delay_ns} ns")
    if "cancel" not in capable:
        lacks["cancel"] = "the program does not declare it"
    if "gauge" not in capable:
        lacks["size"] = "the program does not declare the capability gauge"
    if description.unit_ns > 1:
        lacks["between-ticks"] = f"the program counts in units of {description.unit_ns} ns"
    if description.least_delay_ns >= 0:
        lacks["past"] = f"the program takes no delay below {description.least_delay_ns} ns"
    if description.most_delay_ns < MAX_INT:
        lacks["far"] = f"the program takes no delay above {description.most_delay_ns} ns"
    lacks["re-entry"] = "a program cannot be called while it answers"
    lacks["raising"] = "the callback runs here, and not in the program"
    return Promise(
        profile_of(description),
        tick_ns=description.tick_ns or description.unit_ns,
        early_ns=description.early_ns,
        late_ns=description.late_ns,
        wheel_size=description.wheel_size,
        longest_delay_ns=description.most_delay_ns,
        lacks=lacks,
        subject=description.name,
        version=description.version,
        language=description.language,
    )


class CommandTimer:
    """A timer in a child; see `TimerUnderTest`. Its own recording is thrown away: the suite records its side.

    `given_up` is called before a SubjectFailed leaves: that child is of no use any more.
    """

    def __init__(self, player: ScriptPlayer, given_up: Callable[[], None]) -> None:
        self._given_up = given_up
        self._tasks: dict[str, Callable[[], None]] = {}
        self._clock = VirtualClock()
        with self._giving_up():
            self._talk = player.begin("timer", self._clock, Recorder(self._clock), self._happened)

    def _happened(self, said: Happening) -> None:
        self._tasks[said.id]()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except SubjectFailed:
            self._given_up()
            raise

    def _call(self, call: Call) -> Answer:
        move = self._clock.to(call.now_ns) if isinstance(call, Advance) else None
        with self._giving_up():
            said = self._talk.call(call, move)
        assert isinstance(said, Answer), "any other answer is refused by the conversation"
        if said.err is not None:
            raise RefusedByProgram(said.err)
        return said

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """See `TimerUnderTest.add`. Like all others it raises RefusedByProgram and SubjectFailed."""
        name = f"t-{len(self._tasks)}"
        self._tasks[name] = task
        self._call(Add(name, delay_ns))
        return name

    def cancel(self, handle: object) -> bool | None:
        """See `Cancels.cancel`."""
        won = self._call(Cancel(str(handle))).out
        return None if won is None else bool(won)

    def size(self) -> int:
        """See `Counts.size`. Raises RefusedByProgram as well where the program does not say."""
        count = self._call(Gauge()).delayed
        if count is None:
            raise RefusedByProgram("gauge without delayed")
        return count

    def advance(self, by_ns: int) -> None:
        """See `TimerUnderTest.advance`."""
        self._call(Advance(self._clock.now_ns + by_ns))
