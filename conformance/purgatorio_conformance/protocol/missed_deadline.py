"""Tests whether a program sleeps past its deadlines in real time (docs/subject-protocol.md#sleeping-past-deadlines).

A busy machine makes any program late, so other tests in real time add ten seconds to a late bound. This test needs no
such margin: if all threads of the program sleep after the deadline of a task, the program itself is late, also if the
add of the task has not returned. The longest sleep of control threads, one on each processor, is the measure of what
counts as late. If a control thread wakes very late, the machine may be the reason for any lateness, and the result does
not count. After some attempts, the program starts anew: a thread that looks at times of its own may be late after one
start, and nearly in time after another.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final

from purgatorio_conformance.protocol.message import Add, Cancel, Reset, wait_call
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.show.visible import first_few

_ATTEMPTS, _STARTED_AFTER = 12, 3
_SLEPT_LEAST: Final = 3
"""The subject fails if it sleeps past the deadlines of this number of tasks."""
_PAUSES_NS: Final = (0, 250 * MS)
_DELAYS_NS: Final = (20 * MS, 60 * MS)
_LONGEST_NS: Final = 600 * MS
_GRACE, _SLEEPS = 1.5, 2
"""A task is late by so many of the longest nap, which is time for the subject to wake and to report. Then the subject
sleeps for so many of them."""
_GIVE_UP_S: Final = 2.0
"""How long an overdue task is waited for. A subject whose threads run until then does not sleep."""
_NAP_S: Final = 0.005
_NAPS_MOST_S: Final = 0.02
_LATE_NS: Final = 30 * MS
_MOVED: Final = "moved to an earlier deadline"

TOO_BUSY: Final = "whether a thread sleeps past its deadlines: the machine was too busy to decide"


class _Naps:
    """Control threads of the driver that sleep, one on each processor."""

    def __init__(self) -> None:
        self._woke_s = dict.fromkeys(_processors(), 0.0)
        self._longest_s = 0.0
        self._ends = False
        self._threads = [Thread(target=self._nap, args=(one,), daemon=True) for one in self._woke_s]

    def __enter__(self) -> _Naps:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        for thread in self._threads:
            thread.join()

    def _nap(self, processor: int) -> None:
        with suppress(OSError, AttributeError):
            os.sched_setaffinity(0, {processor})
        self._woke_s[processor] = time.monotonic()
        while not self._ends:
            time.sleep(_NAP_S)
            now_s = time.monotonic()
            self._longest_s = max(self._longest_s, now_s - self._woke_s[processor])
            self._woke_s[processor] = now_s

    def begin(self) -> None:
        self._longest_s = _NAP_S

    def longest_s(self) -> float:
        """The longest nap since `begin`, also of a thread that has not woken yet."""
        now_s = time.monotonic()
        return max(self._longest_s, *(now_s - woke_s for woke_s in self._woke_s.values()))


def _processors() -> list[int]:
    with suppress(AttributeError):
        return sorted(os.sched_getaffinity(0))
    return [0]


def past_deadlines(drive: Drive, threads: ProcessThreads) -> str:
    """Test whether the subject sleeps past deadlines by more than it declares. Returns why this could not be tested, or
    an empty text. `threads`: the threads of the subject. Raises SubjectFailed if it happens three times."""
    session, description, part = drive.session, drive.description, drive.part
    bound_ns, conversation = description.late_real_ns, session.conversation
    if bound_ns is None or conversation.pending:
        return ""
    rng = random.Random(f"asleep/{drive.seed}")
    slept: dict[str, float] = {}
    how: dict[str, str] = {}
    seen = 0
    can = description.capabilities if part == "timer" else ()
    move = Reset if "reset" in can else Add if "add-again" in can else None

    def begin(name: str, delay_ns: int) -> int:
        """Make the calls, and return the number of the last, which is open. A thread that sleeps may hold it up."""
        how[name] = f"added while later-{number} waited" if number % 2 else "added"
        if move is not None and number % 4 >= 2:
            session.call(wait_call(part, name, description.rounded(bound_ns + _LONGEST_NS)))
            how[name] = _MOVED
            return session.ask(move(name, delay_ns))
        if number // 4 == 1 and "cancel" in can:
            session.call(Add(f"before-{name}", description.rounded(delay_ns // 2)))
            session.call(Add(name, delay_ns))
            how[name] += f", and before-{name}, which is due earlier, cancelled"
            return session.ask(Cancel(f"before-{name}"))
        return session.ask(wait_call(part, name, delay_ns))

    if description.fit(_LONGEST_NS) != description.rounded(_LONGEST_NS):
        return ""
    with _Naps() as naps:
        for number in range(_ATTEMPTS):
            session.listen(time.monotonic() + rng.randrange(*_PAUSES_NS) / 1e9)
            if number % _STARTED_AFTER == 0:
                while session.conversation.running():
                    session.hear_on()
                session.start(part)
            if number % 2:
                session.call(wait_call(part, f"later-{number}", description.rounded(bound_ns + _LONGEST_NS)))
            for name in (f"first-{number}", f"second-{number}"):
                delay_ns = description.rounded(max(rng.randrange(*_DELAYS_NS), description.least_delay_ns))
                naps.begin()
                late = partial(_is_late, session, name, begin(name, delay_ns), time.monotonic_ns() + delay_ns)
                session.listen(time.monotonic() + (delay_ns + bound_ns) / 1e9)
                found = _slept_s(session, late, bound_ns, threads, naps)
                session.wait_for_lane(0)
                seen += found is not None
                if found:
                    slept[name] = found
                if len(slept) == _SLEPT_LEAST:
                    clause, lost = ("T2", "started") if part == "timer" else ("O5", "completed")
                    if move is Reset and {how[one] for one in slept} == {_MOVED}:
                        clause = "T11"
                    least_s = min(slept.values())
                    raise session.failed(
                        "late",
                        f"{clause} is broken: {first_few([*slept])} were not {lost} "
                        f"{bound_ns / MS + _GRACE * least_s * 1e3:.3g} ms after their deadlines, and all threads of the"
                        f" program slept for another {_SLEEPS * least_s * 1e3:.3g} ms each time"
                        f" ({name} was {how[name]})",
                    )
                if found:  # it may sleep until the next call
                    session.call(wait_call(part, f"wakes-{name}", delay_ns))
                _wait(session, name, f"wakes-{name}")
            _wait(session, f"later-{number}")
            if conversation.pending:
                break
    return "" if seen >= _ATTEMPTS else TOO_BUSY


def _is_late(session: Session, name: str, call: int, due_ns: int, by_ns: int) -> bool:
    """Whether the task or operation is overdue by this time, also if the call that began it is open."""
    conversation = session.conversation
    if conversation.is_open(call) and name not in conversation.known:
        return time.monotonic_ns() >= due_ns + by_ns
    return name in conversation.overdue(by_ns)


def _slept_s(
    session: Session, late: Callable[[int], bool], bound_ns: int, threads: ProcessThreads, naps: _Naps
) -> float | None:
    """The longest nap, if all threads sleep while the task is `late` by more than that allows. 0 if a thread ran it in
    time. None if one ran too late, or the machine was too busy."""
    now_s = since_s = time.monotonic()
    until_s = now_s + _GIVE_UP_S
    met = False
    while late(bound_ns) and now_s < until_s:
        still = threads.wait()
        # A report that was already sent is read before the subject is judged.
        session.listen(time.monotonic() + _NAP_S)
        now_s, longest_s = time.monotonic(), naps.longest_s()
        if not still or longest_s > _NAPS_MOST_S:
            since_s, met = now_s, late(bound_ns + _LATE_NS)
            naps.begin()
        elif now_s - since_s >= _SLEEPS * longest_s and late(
            bound_ns + int((_GRACE + _SLEEPS) * longest_s * 1e9)
        ):
            return longest_s
    return None if met else 0.0


def _wait(session: Session, *names: str) -> None:
    until_s = time.monotonic() + _GIVE_UP_S
    while not session.conversation.pending.isdisjoint(names) and time.monotonic() < until_s:
        session.listen(time.monotonic() + _NAP_S)
