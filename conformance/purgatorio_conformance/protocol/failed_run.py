"""Runs a program again after it was silent, died or sent an error, to find out whether it broke a promise.

Silence or an error alone proves nothing. docs/subject-protocol.md lists the proofs, under "Misbehavior".
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.fewest import fewest
from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Call,
    Cancel,
    Description,
    Force,
    Register,
    Start,
    wait_call,
)
from purgatorio_conformance.protocol.played_order import (
    AGAIN_MOST,
    STEPS_MOST,
    Account,
    PausedCall,
    PlayedOrder,
)
from purgatorio_conformance.protocol.recorded_calls import (
    about,
    concerned,
    everything,
    leaping,
    script_of,
    waiting_before,
)
from purgatorio_conformance.protocol.script import Script, ScriptPlayer
from purgatorio_conformance.protocol.small_program import delays_for
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.show.visible import first_few
from purgatorio_spec.trace.trace_file import run_of_file

_ALONE_MOST: Final = 20
"""The most waiting tasks or operations that are tried, each alone."""
_FEW_MOST: Final = 100
"""More than one revolution of a wheel: time may have to pass a whole level in short advances, with a task for each."""
_ENDLESS_S: Final = 10.0
"""Seconds of CPU time. A call that has almost nothing to do, and uses so much, never ends."""
_HASTY_S: Final = 1.0
_TRIES: Final = 100
"""While tasks are left out, a call that works for `_HASTY_S` counts as endless. At most `_TRIES` attempts are made."""
_PATIENCE: Final = 15
"""The limit of silence is multiplied by this number, because many other programs may use the processor."""
_SUSPECTS_S: Final = 300.0
"""The time limit, in seconds, for trying the orders that may have caused an endless call."""
_ENDLESS_TICKS: Final = 1_000
_ENDLESS_STEPS: Final = 1_000
"""The ticks of one advance (some timers check each tick), and the most advances."""

AGAIN: Final = (
    "the same order of threads hangs again in a new process; made one after another, all calls return"
)
"""The proof that a hang is a deadlock."""

ON_AND_ON: Final = (
    "by the same order of threads it uses the CPU without end again, in a new process; made one after another, all "
    "calls return"
)
"""The proof that a call that uses the CPU without end in such an order is not slow."""

RACED: Final = "the same order of threads fails again in a new process; made one after another, no call fails"
"""The proof that the subject causes an error."""

TWICE: Final = "on a fresh start, after the same calls, it does not return in twice the time"
"""The proof that a hang in which no thread runs is a deadlock."""

ALONE: Final = "the same error comes in a new process with no other task or operation"
"""The proof that an error is no refusal: the subject has no other load, and the description accepts the call."""

NOT_DECLARED: Final = (
    "; if it refuses delays of 0 or below, declare `past` (a Promise's `lacks`) or `least_delay_ns`"
)
"""The remedy, if the smallest delay of a description is too small."""

CROWD: Final = (
    "the same error comes in a new process with only the {:,} tasks or operations that waited: a subject may refuse an "
    "add, but not that time passes"
)
"""The proof that an error of an `advance` is no refusal: a subject that accepts no more tasks refuses their adds."""

_CROWD_S: Final = 2.0
"""An error after a longer silence may be a time limit of the adapter, which a busy machine exceeds again."""

_CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT})
"""Signals that a program causes itself. Another process may send SIGKILL or SIGTERM."""

CRASH: Final = (
    "in a new process with the calls of only {} tasks or operations, it ends by such a signal again: nothing that a "
    "caller does may crash the program"
)
"""The proof that no lack of memory or place ended the program."""

FEW: Final = (
    f"in a new process with at most {_FEW_MOST} tasks or operations, the call uses {_ENDLESS_S:g} s of CPU time and "
    "does not return"
)
"""The proof that a working call is not slow: it has almost nothing to do."""


def comes_of_order(
    order: PlayedOrder,
    seen: Sequence[str],
    alone: Callable[[PlayedOrder], Sequence[str] | None],
    tries: int = AGAIN_MOST,
) -> bool:
    """Whether the order of threads causes `seen`, and so breaks P3: an error, or calls (by name) that never returned
    although no thread was paused.

    `alone` executes one order with a new subject. It returns such an error or such calls, or None if something else
    happens. There are two conditions. The same order must give the same result again. The same calls, made one after
    another and without errors in callbacks, must give an empty result. Then the cause is the order of the calls, or the
    state after an error. Resumed threads run freely, so an order without a result is executed again, up to `tries`
    times.
    """
    one_by_one = replace(
        order, acts=(), stop=order.stop and PausedCall(0, 0, (STEPS_MOST * 1_000,)), errors=False
    )
    again = bool(seen) and any(alone(order) == seen for _ in range(tries))
    return again and alone(one_by_one) == []


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run, with its record (`account`) and its `trace`.

    `again`: executes one order, or the whole run, in a new process, with a doubled limit of silence (a shorter limit
    after the given number of CPU seconds). If the execution fails, its trace is kept at the path. `begins_t`: the start
    of virtual time. `player`: starts a new program. `killed`: whether a program can be killed during a call.
    """

    player: Callable[[ChildLimits], ScriptPlayer]
    description: Description
    part: Part
    virtual: bool
    held: bool
    limits: ChildLimits
    account: Account
    trace: Path
    begins_t: int
    again: Callable[[Path, PlayedOrder | None, float | None], tuple[Account, SubjectFailed | None]]
    killed: bool = True

    def of(self, failure: SubjectFailed) -> SubjectFailed:
        """The failure; or, if it is proved to break a promise, the failure that names the promise."""

        def breaks(clause: str, kind: FailureKind, why: str) -> SubjectFailed:
            return SubjectFailed(failure.subject, kind, f"{clause} is broken: {why}", failure.trace)

        oldest = self.account.oldest
        inside = any(words in failure.why for words in (", from within ", " (go) "))
        lack = "re-entry" if self.part == "timer" else "callbacks"
        flat = f"; if callbacks cannot make calls, declare no-re-entry (pytest: {lack})" * inside
        # No promise applies before the answer to `start`.
        if failure.kind == "hang" and not (oldest is not None and isinstance(oldest[1], Start)):
            again = self.trace.with_name(f"{run_of_file(self.trace)}-deadlock.jsonl")
            if not failure.slow and (proof := self._deadlock(again, failure.stuck and not failure.idle)):
                return breaks("P3", "deadlock", f"{failure.why}; its trace is {again.name}; {proof}{flat}")
            if self.killed and not failure.stuck and (why := self._works_without_end()):
                return breaks("P3", "endless", f"{failure.why}; {why}")
            if late := self.account.late:
                clause, lost = ("T2", "run") if self.part == "timer" else ("O5", "end")
                why = f"{first_few(late)} did not {lost} within the late bound; {failure.why}"
                return breaks(clause, "late", why)
        if failure.signal in _CRASHES and (why := self._crashes()):
            return breaks("P3", "crashes", f"{failure.why}; {why}{flat}")
        errors = "; ".join(dict.fromkeys(filter(None, (self.account.errors, failure.why))))
        if failure.kind == "refused" and self._is_raced():
            return breaks("P3", "raced", f"{errors}; {RACED}")
        # A later hang may come from the state that an error left behind.
        if failure.kind in ("refused", "hang") and not self.account.broke_off and (why := self._raises()):
            return breaks("P3", "raises", f"{errors}; {why}")
        return failure

    def _deadlock(self, path: Path, stuck: bool) -> str:
        """The proof that an open call of this run never returns, or an empty text. There are two proofs. In a gated
        run: the same order hangs again in a new process, the same calls return in sequence, and slowness explains none
        of the hangs. In any run: the whole run hangs again, and both times no thread runs (`stuck`), because a running
        thread may only be slow. (If no caller has a call, the adapter lost the call.) The second trace is at `path`."""
        first = self.account.under_way

        def unanswered(order: PlayedOrder) -> Sequence[str] | None:
            place = path if order == first else path.with_name(f"{path.stem}-control.jsonl")
            again, failure = self.again(place, order, None)
            hung = failure is None or (failure.kind == "hang" and again.under_way and not failure.slow)
            return again.unanswered if hung else None

        if not self.virtual:
            return ""
        if first is not None and comes_of_order(first, self.account.unanswered, unanswered):
            return AGAIN
        if not stuck or not self.account.unanswered:
            return ""
        again, failure = self.again(path, None, None)
        hung = failure is not None and failure.kind == "hang" and failure.stuck
        # With gates, the number of a call may differ between runs.
        same = (
            again.unanswered == self.account.unanswered if self.held else again.oldest == self.account.oldest
        )
        return TWICE if hung and same else ""

    def _is_raced(self) -> bool:
        """Whether a call ends with an error only in some order of threads. The second trace is next to the first."""
        path = self.trace.with_name(f"{run_of_file(self.trace)}-raced.jsonl")

        def erred(order: PlayedOrder) -> Sequence[str] | None:
            again, failure = self.again(path, order, None)
            return again.erred if failure is None or failure.kind == "refused" else None

        order = self.account.erring
        return order is not None and comes_of_order(order, self.account.erred, erred)

    def _raises(self) -> str:
        """The proof that the first call that ended with an error fails again in a new process in virtual time, or an
        empty text. First, the call is made alone: with the task or operation that it names, or for an `advance` with
        one that waited. Then it is made after all calls about this one task or operation, at the same times. An
        `advance` is then made after the adds of everything that waited, at the same times."""
        call, delay_ns = self.account.refused, delays_for(self.description, 60_000 * MS).far_ns
        if call is None:
            return ""
        before: list[tuple[int, Call | None]] = [(self.begins_t, None)]
        if isinstance(call, Cancel | Force):
            before = [(self.begins_t, wait_call(self.part, call.id, delay_ns))]
        elif isinstance(call, Advance):
            before += self._waited()
        scripts = [
            Script(self.part, since_t, (call,) if first is None else (first, call))
            for since_t, first in before
        ]
        if self.virtual and not self.held:
            whole = script_of(self.trace, self.part, last=call)
            scripts += [leaping(about(whole, one)) for one in self._whose(whole, call)]
            # A clock that starts at this time may behave differently from a clock that was advanced to it.
            scripts.append(Script(self.part, whole.moments()[-1], (call,)))
        if any(self._tried(script, self.limits) == "refused" for script in scripts):
            return ALONE + NOT_DECLARED * (isinstance(call, Add) and call.delay_ns <= 0)
        if not self.virtual or not isinstance(call, Advance):
            return ""
        crowd = waiting_before(self.trace, self.part, call)
        hasty = replace(self.limits, silence_s=min(_CROWD_S, self.limits.silence_s))
        many = sum(isinstance(one, Add | Register) for one in crowd.calls)
        seen = self._tried(crowd, hasty, refused_adds=False)
        return CROWD.format(many) if seen == "refused" else ""

    def _works_without_end(self) -> str:
        return FEW if self._is_endless() else ON_AND_ON if self._works_on() else ""

    def _is_endless(self) -> bool:
        """For calls made one at a time: whether the call that uses the CPU without end does so again in a new process,
        after all calls about a few tasks or operations, at the same times. An `advance` by many ticks is divided."""
        oldest = self.account.oldest
        if not self.virtual or self.held or oldest is None or self.account.errors:
            return False
        _, call = oldest
        whole = script_of(self.trace, self.part, last=call)
        if isinstance(call, Advance):
            step_ns = _ENDLESS_TICKS * self.description.grain_ns
            *_, before_t, now_t = 0, *whole.moments()
            between = range(before_t + step_ns, now_t, step_ns)
            if len(between) > _ENDLESS_STEPS:
                return False
            whole = replace(whole, calls=(*whole.calls[:-1], *map(Advance, between), call))
        hasty, patient = (
            replace(self.limits, silence_s=_PATIENCE * self.limits.silence_s, work_s=work_s)
            for work_s in (_HASTY_S, _ENDLESS_S)
        )
        few = self._fewest(whole, hasty, "endless", _FEW_MOST)
        few = everything(whole) if few is None else few
        return len(few) <= _FEW_MOST and self._tried(about(whole, *few), patient) == "endless"

    def _crashes(self) -> str:
        """The proof that the program crashes again after all calls about a few tasks or operations, at the same times.
        An empty text if it does not, or with pauses or in real time."""
        if not self.virtual or self.held or self.account.oldest is None:
            return ""
        few = self._fewest(
            script_of(self.trace, self.part, last=self.account.oldest[1]), self.limits, "crashes", 1
        )
        return CRASH.format(len(few)) if few and len(few) <= _ALONE_MOST else ""

    def _fewest(
        self, whole: Script, limits: ChildLimits, kind: FailureKind, enough: int
    ) -> tuple[str, ...] | None:
        """A few tasks or operations of the script, until they are `enough`, that fail with `kind`; None if all do
        not."""
        tries = itertools.count()

        def fails(some: tuple[str, ...]) -> bool:
            return next(tries) < _TRIES and self._tried(about(whole, *some), limits) == kind

        asked = everything(whole)
        return fewest(asked, fails, lambda kept: len(kept) <= enough) if fails(asked) else None

    def _works_on(self) -> bool:
        """Whether a call that uses the CPU without end does so again in a new process, after one of the orders since
        the subject was last idle. If the calls of this order are made one after another, the call must end."""
        path = self.trace.with_name(f"{run_of_file(self.trace)}-endless.jsonl")
        until_s = time.monotonic() + _SUSPECTS_S

        def unanswered(order: PlayedOrder) -> Sequence[str] | None:
            again, failure = self.again(path, order, _ENDLESS_S)
            works = failure is None or (failure.kind == "hang" and failure.busy_s >= _ENDLESS_S)
            return again.unanswered if works else None

        suspects = self.account.suspects if self.virtual and self.held else ()
        seen = self.account.unanswered
        return any(
            time.monotonic() < until_s and comes_of_order(order, seen, unanswered, tries=1)
            for order in suspects
        )

    def _waited(self) -> Sequence[tuple[int, Add | Register]]:
        """A sample of the waiting tasks or operations, in the order of their deadlines."""
        waited = sorted(self.account.waiting, key=lambda of: of[0] + of[1].delay_ns)
        return waited[:: 1 + len(waited) // _ALONE_MOST]

    def _whose(self, whole: Script, call: Call) -> Sequence[str]:
        """The tasks or operations that may have made this last call fail: those that it names. For an `advance`: the
        waiting ones, and those that the calls before the `advance` name."""
        if not isinstance(call, Advance):
            return concerned(whole, call)[-_ALONE_MOST:]
        before = [one for of in whole.calls[-_ALONE_MOST:] for one in concerned(whole, of)[-1:]]
        return [*dict.fromkeys([*(of.id for _, of in self._waited()), *before])]

    def _tried(self, script: Script, limits: ChildLimits, *, refused_adds: bool = True) -> FailureKind | None:
        """The result of the script in a new program: `refused` if a call ends with an error, or with `refused_adds`
        unset only for one that ends the run; `endless` if a call works too long, another kind of failure, or None."""
        with suppress(SubjectFailed), closing(self.player(limits)) as player:
            if "virtual-time" not in player.description.capabilities:
                return None
            played = player.tried(script)
            if played.failure is not None and played.failure.signal in _CRASHES:
                return "crashes"
            if played.failure is not None:
                works = limits.work_s is not None and played.failure.busy_s >= limits.work_s
                return "endless" if works else played.failure.kind
            if refused_adds and any(event.err is not None for event in played.events):
                return "refused"
        return None
