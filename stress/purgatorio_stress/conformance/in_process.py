"""An adapter as a peer of the conversation that drives programs over a pipe: the same calls, events, gates and steps.

Lanes are threads of this process. The operation that the purgatory gets is made here, so its callbacks report and stop
without anything from the user. A step is a line of any code that is neither Python's own nor the suite's.

A thread that turns for ever ends at its next callback. One that waits for ever cannot be ended: it is a daemon, and
stays until the process ends.
"""

from __future__ import annotations

import itertools
import queue
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import orjson

from purgatorio_spec.profile import PROFILES
from purgatorio_stress.conformance.contract import (
    Cancels,
    Counts,
    Promise,
    PurgatoryFactory,
    TimerFactory,
)
from purgatorio_stress.conformance.probe import Probe
from purgatorio_stress.protocol.message import MAX_TIME_NS, REPORTABLE, SPOKEN, STEP, Description
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.child import Quiet
from purgatorio_stress.subject.contract import FailureKind, SubjectFailed

if TYPE_CHECKING:
    from _typeshed import TraceFunction

__all__ = ["DrivenPurgatory", "DrivenTimer", "InProcess", "describe_purgatory", "describe_timer"]

LANES: Final = 4

Fields = dict[str, object]
T = TypeVar("T")
Call = Mapping[str, object]


def describe_purgatory(promise: Promise) -> Description:
    """What a purgatory's promise says, as a description of the protocol."""
    has = {"cancel-key": "cancel-for-key", "force": "force", "gauge": "gauges", "failing": "raising"}
    untold = {"timer_add", "timer_cancel", "timer_fire"} if "timer" in promise.lacks else set()
    untold |= {"on_expiration"} if "expiry" in promise.lacks else set()
    reports = tuple(f for f in REPORTABLE if f not in untold)
    return _described(promise, "purgatory", has, reports)


def describe_timer(promise: Promise) -> Description:
    """What a timer's promise says, as a description of the protocol."""
    return _described(promise, "timer", {"cancel": "cancel", "gauge": "size"}, ("timer_fire",))


def _described(promise: Promise, part: str, has: Mapping[str, str], reports: tuple[str, ...]) -> Description:
    capabilities = [part, "virtual-time", *(name for name, lack in has.items() if lack not in promise.lacks)]
    if "cancel" in capabilities and PROFILES[promise.profile].cancel_is_barrier:
        capabilities.append("cancel-barrier")
    return Description(
        n=0,
        protocol=SPOKEN[-1],
        name=promise.subject,
        version=promise.version,
        language=promise.language,
        capabilities=tuple(capabilities),
        reports=reports,
        profile=promise.profile,
        tick_ns=promise.tick_ns,
        wheel_size=promise.wheel_size,
        early_ns=promise.early_ns,
        late_ns=promise.late_ns,
        purge_interval=promise.purge_interval,
        unit_ns=promise.tick_ns if "between-ticks" in promise.lacks else 1,
        most_delay_ns=min(promise.longest_delay_ns or MAX_TIME_NS, MAX_TIME_NS),
        lanes=LANES if promise.has_threads else 1,
        gates=(*reports, STEP),
    )


class Driven(Protocol):
    """One run's subject."""

    def made(self, call: Call) -> Fields:
        """Make the call; its answer."""


class InProcess:
    """A peer for `Talk`; `make` makes a fresh subject for each `start`."""

    def __init__(self, name: str, make: Callable[[Stage, int], Driven]) -> None:
        self._name = name
        self._make = make
        self._stage = Stage(self._answer)
        self._run: Driven | None = None
        self._lanes: dict[int, queue.SimpleQueue[Call | None]] = {}
        self._error = ""

    def say(self, line: bytes) -> None:
        """One call of the driver."""
        call: Call = orjson.loads(line)
        name, number = call["m"], call["n"]
        if name == "start":
            gates, now_ns = call.get("gates", []), call["now_ns"]
            assert isinstance(gates, list), "as the driver writes it"
            assert isinstance(now_ns, int), "time is virtual"
            self._stage.close()
            self._stage = Stage(self._answer, self._stage, frozenset(gates))
            self._run = self._make(self._stage, now_ns)
            self._stage.say("answer", n=number)
        elif name == "go":
            self._stage.go(call)
            self._stage.say("answer", n=number)
        elif "hold" in call:
            self._stage.hand(call)
        else:
            lane = call.get("lane", 0)
            assert isinstance(lane, int), "as the driver writes it"
            if lane not in self._lanes:
                calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
                self._lanes[lane] = calls
                threading.Thread(target=self._work, args=(calls,), name=f"lane-{lane}", daemon=True).start()
            self._lanes[lane].put(call)

    def _work(self, calls: queue.SimpleQueue[Call | None]) -> None:
        with suppress(_Over):
            while (call := calls.get()) is not None:
                self._answer(call)

    def _answer(self, call: Call) -> None:
        """Make the call on this thread, and answer it."""
        run, stage = self._run, self._stage
        assert run is not None, "start comes first"
        with stage.inside(call):
            try:
                with Steps(stage, call):
                    result = run.made(call)
            except Exception as error:
                self._error = "".join(traceback.format_exception_only(error)).strip()
                result = {"err": type(error).__name__}
            stage.say("answer", n=call["n"], **result)

    def hear(self, within_s: float) -> bytes | Quiet:
        """The next line of the subject."""
        try:
            return self._stage.said.get(timeout=max(0.0, within_s))
        except queue.Empty:
            return Quiet.SILENT

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """The failure; with what the subject raised last."""
        return SubjectFailed(self._name, kind, f"{why}; it raised {self._error}" if self._error else why)

    def silent(self, seconds: float, why: str = "") -> SubjectFailed:
        """The failure of a subject that was silent for so long."""
        return self.failed("hang", f"silent for {seconds:g} s{why}")

    def check_exit(self, why: str = "") -> None:
        """It is in this process, and does not exit."""

    def end_input(self) -> None:
        """Nothing more comes."""
        self.close()

    def close(self) -> None:
        """Let all threads go that can."""
        self._stage.close()
        for calls in self._lanes.values():
            calls.put(None)
        self._lanes = {}


class _Over(BaseException):
    """Ends a thread of the suite that turns for ever, once its run is over: no `except Exception` keeps it."""


class Stage:
    """Where the threads of one run speak and stand. After `close` nobody is heard any more, and nobody stands; a thread
    of the suite that comes to a callback then ends."""

    def __init__(
        self,
        answer: Callable[[Call], None],
        before: Stage | None = None,
        places: frozenset[str] = frozenset(),
    ) -> None:
        self.said: queue.SimpleQueue[bytes] = queue.SimpleQueue() if before is None else before.said
        self._answer = answer
        self._numbers: Iterator[int] = itertools.count() if before is None else before._numbers
        self._places = places
        self._held: dict[int, queue.SimpleQueue[Call]] = {}
        self._here = threading.local()
        self._closed = False

    def say(self, m: str, **fields: object) -> None:
        """One message."""
        if not self._closed:
            self.said.put(orjson.dumps({"m": m, **fields}))

    def event(self, m: str, **fields: object) -> None:
        """One message, with where it was made."""
        call = getattr(self._here, "call", None)
        place = {"th": threading.current_thread().name} if call is None else {"during": call}
        self.say(m, **place, **fields)

    @contextmanager
    def inside(self, call: Call) -> Iterator[None]:
        """What this thread says is said from within the call."""
        before = getattr(self._here, "call", None)
        self._here.call = call["n"]
        try:
            yield
        finally:
            self._here.call = before

    def stop(self, f: str, operation: str | None = None) -> None:
        """At the place `f`: make the calls that are asked for here, until the thread may go on."""
        if f not in self._places or self._closed:
            return
        hold, calls = next(self._numbers), queue.SimpleQueue[Call]()
        self._held[hold] = calls
        self.event("held", hold=hold, f=f, id=operation)
        while (call := calls.get())["m"] != "go":
            self._answer(call)
        if call.get("fail"):
            raise ValueError(f"{operation} raises, as the suite meant it to")

    def go(self, call: Call) -> None:
        """Let the threads go on that the call names."""
        holds = call["holds"]
        assert isinstance(holds, list), "as the driver writes it"
        for hold in holds:
            self._held.pop(hold).put(call)

    def hand(self, call: Call) -> None:
        """A call for a thread that stands."""
        hold = call["hold"]
        assert isinstance(hold, int), "as the driver writes it"
        self._held[hold].put(call)

    def close(self) -> None:
        """See the class."""
        self._closed = True
        for calls in list(self._held.values()):
            calls.put({"m": "go"})
        self._held.clear()

    def around(self, f: str, operation: str, act: Callable[[], object]) -> None:
        """A function of an operation without a result, told, and stopped in at its beginning."""
        self._told(f, operation, partial(self._stopped, f, operation, act), lambda result: {})

    def asked(self, f: str, operation: str, act: Callable[[], bool]) -> bool:
        """A function of an operation that answers, told."""
        return self._told(f, operation, act, lambda result: {"out": int(result)})

    def _told(self, f: str, operation: str, act: Callable[[], T], says: Callable[[T], Fields]) -> T:
        if self._closed and getattr(self._here, "call", None) is not None:
            raise _Over
        self.event("enter", f=f, id=operation)
        try:
            result = act()
        except BaseException as error:
            self.event("leave", f=f, id=operation, err=type(error).__name__)
            raise
        self.event("leave", f=f, id=operation, **says(result))
        return result

    def _stopped(self, f: str, operation: str, act: Callable[[], object]) -> None:
        self.stop(f, operation)
        act()


_OURS: Final = str(Path(__file__).resolve().parents[1])
_PYTHONS: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})


@cache
def _is_subjects(file: str) -> bool:
    """Whether the lines of this file are the subject's."""
    pythons = file.startswith(_PYTHONS) and not file.startswith(_INSTALLED)
    ours = any(file.startswith(f"{_OURS}/{part}/") for part in ("conformance", "protocol"))
    return not (pythons or ours or file.startswith("<") or file == f"{_OURS}/recorder.py")


class Steps:
    """Counts the lines that this thread comes to inside a call, and stops it at the one that was asked for."""

    def __init__(self, stage: Stage, call: Call) -> None:
        self._stage = stage
        step = call.get("step")
        self._left: int | None = step if isinstance(step, int) else None
        self._stops = self._left is not None
        self._before = sys.gettrace()

    def __enter__(self) -> None:
        if self._stops:
            sys.settrace(self._function)

    def __exit__(self, *_: object) -> None:
        if self._stops:
            sys.settrace(self._before)

    def _function(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        return self._line if self._left is not None and _is_subjects(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if event == "line" and self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left = None
                self._stage.stop(STEP)
        return self._line


class _ToldProbe(Probe):
    """The operation as the conversation sees it."""

    def __init__(
        self, stage: Stage, name: str, keys: tuple[str, ...], delay_ns: int, ready: threading.Event
    ) -> None:
        super().__init__(Recorder(), name, keys, delay_ns)
        self._stage = stage
        self._flag = ready

    def try_complete(self, force: Callable[[], bool]) -> bool:
        return self._stage.asked("try_complete", self.id, partial(self._try, force))

    def _try(self, force: Callable[[], bool]) -> bool:
        ready = self._flag.is_set()
        self._stage.stop("try_complete", self.id)
        return ready and bool(force())

    def force_complete(self, inherited: Callable[[], bool]) -> bool:
        return self._stage.asked("force_complete", self.id, partial(self._force, inherited))

    def _force(self, inherited: Callable[[], bool]) -> bool:
        self._stage.stop("force_complete", self.id)
        return bool(inherited())

    def on_complete(self) -> None:
        self._stage.around("on_complete", self.id, _nothing)

    def on_expiration(self) -> None:
        self._stage.around("on_expiration", self.id, _nothing)

    def timer_add(self, add: Callable[[], None]) -> None:
        self._stage.around("timer_add", self.id, add)

    def timer_cancel(self, cancel: Callable[[], None]) -> None:
        self._stage.around("timer_cancel", self.id, cancel)

    def timer_fire(self, expire: Callable[[], None]) -> None:
        self._stage.around("timer_fire", self.id, expire)


def _nothing() -> None:
    """What the suite's callbacks do."""


class DrivenPurgatory:
    """A purgatory under test, by the calls of the protocol."""

    def __init__(self, promise: Promise, factory: PurgatoryFactory, stage: Stage, now_ns: int) -> None:
        self._purgatory = factory(promise)
        self._stage = stage
        self._gauged = "gauges" not in promise.lacks
        self._now_ns = now_ns
        self._probes: dict[str, Probe] = {}
        self._ready: dict[str, threading.Event] = {}

    def made(self, call: Call) -> Fields:
        """See `Driven`."""
        match call:
            case {"m": "register", "id": str(name), "keys": list(keys), "delay_ns": int(delay_ns)}:
                probe = _ToldProbe(self._stage, name, tuple(keys), delay_ns, self._flag(name))
                self._probes[name] = probe
                return {"out": int(self._purgatory.register(probe))}
            case {"m": "ready", "id": str(name)}:
                self._flag(name).set()
            case {"m": "check", "key": str(key)}:
                return {"out": int(self._purgatory.check(key))}
            case {"m": "force", "id": str(name)}:
                return {"out": int(self._purgatory.force(self._probes[name]))}
            case {"m": "cancel_key", "key": str(key)}:
                return {"ids": [probe.id for probe in self._purgatory.cancel_for_key(key)]}
            case {"m": "advance", "now_ns": int(now_ns)}:
                by_ns, self._now_ns = now_ns - self._now_ns, now_ns
                self._purgatory.advance(by_ns)
            case {"m": "gauge" | "quiesce"} if self._gauged:
                watched, delayed = self._purgatory.gauges()
                return {"watched": watched, "delayed": delayed}
        return {}

    def _flag(self, name: str) -> threading.Event:
        return self._ready.setdefault(name, threading.Event())


class DrivenTimer:
    """A timer under test, by the calls of the protocol."""

    def __init__(self, promise: Promise, factory: TimerFactory, stage: Stage, now_ns: int) -> None:
        self._timer = factory(promise)
        self._stage = stage
        self._counts = "size" not in promise.lacks
        self._now_ns = now_ns
        self._handles: dict[str, object] = {}

    def made(self, call: Call) -> Fields:
        """See `Driven`."""
        timer = self._timer
        match call:
            case {"m": "add", "id": str(name), "delay_ns": int(delay_ns)}:
                task = partial(self._stage.around, "timer_fire", name, _nothing)
                self._handles[name] = timer.add(delay_ns, task)
            case {"m": "cancel", "id": str(name)} if isinstance(timer, Cancels):
                won = timer.cancel(self._handles[name])
                return {} if won is None else {"out": int(won)}
            case {"m": "advance", "now_ns": int(now_ns)}:
                by_ns, self._now_ns = now_ns - self._now_ns, now_ns
                timer.advance(by_ns)
            case {"m": "gauge" | "quiesce"} if self._counts and isinstance(timer, Counts):
                return {"delayed": timer.size()}
        return {}
