"""Connects an adapter in this process to the driver of the subject protocol. (For programs, the driver uses a pipe.)

The callers are threads of this process. The suite creates the probes of the operations, so callbacks can report and
pause without code of the user. A step (scheduling point) is a line of any code except Python's own code and the code of
the suite. At the end of a run, the suite stops threads that still run. A thread that waits forever cannot be stopped,
and stays until the process ends.
"""

from __future__ import annotations

import ctypes
import gc
import os
import queue
import random
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Final, Protocol, SupportsIndex

import orjson

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import MAX_TIME_NS, REPORTABLE, SPOKEN, STEP, Description
from purgatorio_conformance.protocol.played_order import TIMES_MOST
from purgatorio_conformance.protocol.rule import written
from purgatorio_conformance.subject.at_work import AtWork, ProcessThreads
from purgatorio_conformance.subject.child import ALIVE, Quiet
from purgatorio_conformance.subject.contract import Adds, Cancels, FailureKind, SubjectFailed
from purgatorio_conformance.suite.contract import (
    CAPABILITIES,
    LACKS,
    OFFERS,
    SAME,
    BadPromise,
    Closes,
    Counts,
    Moves,
    Promise,
    PurgatoryFactory,
    RepeatsAfterDelay,
    RepeatsAtRate,
    Resets,
    Settles,
    TimerFactory,
)
from purgatorio_conformance.suite.probe import Probe
from purgatorio_conformance.suite.stage import MEANT, Call, Fields, RunEnded, Stage
from purgatorio_spec.show.visible import visible
from purgatorio_spec.trace import recorder
from purgatorio_spec.trace.record import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from _typeshed import TraceFunction

LANES: Final = 4
_ENDS_S: Final = 0.2
"""How long, in seconds, an idle thread may take to end, or a `close` after a hang."""
_CLOSES_S: Final = 10.0
"""The limit of the adapter's last `close`, in seconds."""


_LACKS_OF: Final[Mapping[Part, Sequence[str]]] = {
    "timer": ("cancel", "size", "raising"),
    "purgatory": ("cancel-for-key", "force", "gauges", "raising"),
}
"""The subject has the capabilities of these lacks, unless it declares the lack."""


def describe(promise: Promise, part: Part) -> Description:
    """The promise of a timer or purgatory, as a description of the protocol."""
    lacks, untold = _LACKS_OF[part], set[str]()
    if "timer" in promise.lacks:
        untold = {"timer_add", "timer_cancel", "timer_fire"}
    if "expiry" in promise.lacks:
        untold |= {"on_expiration"}
    reports = ("timer_fire",) if part == "timer" else tuple(f for f in REPORTABLE if f not in untold)
    has = (CAPABILITIES[lack] for lack in lacks if lack not in promise.lacks)
    capabilities = [part, "virtual-time", *has, *promise.offers]
    limited = {
        "other-keys": "cancel-key-all",
        "several-keys": "one-key",
        "callbacks": "no-re-entry",
        "re-entry": "no-re-entry",
    }
    capabilities += dict.fromkeys(limited[lack] for lack in limited if lack in promise.lacks)
    least_ns, most_ns = (MIN_INT, MAX_INT) if part == "timer" else (0, MAX_TIME_NS)
    return Description(
        n=0,
        protocol=SPOKEN[-1],
        name=promise.subject,
        capabilities=tuple(capabilities),
        reports=reports,
        unit_ns=promise.tick_ns if part == "purgatory" or "between-ticks" in promise.lacks else 1,
        least_delay_ns=promise.tick_ns if "past" in promise.lacks else least_ns,
        most_delay_ns=min(promise.longest_delay_ns or most_ns, most_ns),
        lanes=LANES if promise.has_threads else 1,
        gates=(*reports, STEP),
        **{name: getattr(promise, name) for name in SAME},
    )


class Driven(Protocol):
    @property
    def under(self) -> object:
        """The adapter."""

    def made(self, call: Call) -> Fields:
        """Make the call. Returns its answer."""


class InProcess:
    """A peer for `Session` with this description. `make` makes a new subject for each `start`. Close it.

    From its first call until its close, Python's garbage collector runs only on the driver's thread. On a caller's
    thread, it would run finalizers of other objects. The lines of finalizers are no steps of a call. A pause would hold
    the locks of finalizers, and their time (perhaps seconds) would count as time of the subject.
    """

    def __init__(self, description: Description, make: Callable[[Stage, int], Driven]) -> None:
        self._description = description
        self._make = make
        self._closed = False
        self._stage = Stage(self._answer)
        self._run: Driven | None = None
        self._halted: Driven | None = None
        self._lanes: dict[int, queue.SimpleQueue[Call | None]] = {}
        self._threads: list[threading.Thread] = []
        self._error = self._unclosed = ""
        # Those of the subject, and all that begin after it.
        self._running = ProcessThreads([os.getpid()], [thread.native_id for thread in threading.enumerate()])
        self._at_work = AtWork(self._running.used_s, self._looks)
        self._collects: bool | None = None
        ALIVE.add(self)

    def kill(self) -> None:
        """See `Killable`. Its threads run on until the driver has closed this peer."""
        self._stage.said.put(SubjectFailed(self._description.name, "unfinished", "the run was ended"))

    def say(self, line: bytes) -> None:
        self._collect()
        call: Call = orjson.loads(line)
        name = call["m"]
        if name == "start":
            gates = call.get("gates", [])
            assert isinstance(gates, list), "as the driver writes it"
            self._stage.close()
            self._stage = Stage(self._answer, self._stage, frozenset(gates))
        if name == "describe":
            self._stage.say("description", **(written(self._description) | {"n": call["n"]}))
        elif name == "go":
            self._stage.go(call)
            self._stage.say("answer", n=call["n"])
        elif "hold" in call:
            self._stage.hand(call)
        else:
            lane = call.get("lane", 0)
            assert isinstance(lane, int), "as the driver writes it"
            if lane not in self._lanes:
                calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
                self._lanes[lane] = calls
                thread = threading.Thread(target=self._work, args=(calls,), name=f"lane-{lane}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._lanes[lane].put(call)

    def _collect(self) -> None:
        if self._collects is None:
            self._collects = gc.isenabled()
        if self._collects:
            gc.enable()
            for _ in range(2):
                # The allocation of an object without a free list runs the collector, if it is due.
                set().copy()
            gc.disable()

    def _work(self, calls: queue.SimpleQueue[Call | None]) -> None:
        with suppress(RunEnded):
            while (call := calls.get()) is not None:
                if call["m"] == "start":
                    self._start(call)
                else:
                    self._answer(call)

    def _start(self, call: Call) -> None:
        """Make the subject, on the thread that makes its first calls."""
        now_ns = call.get("now_ns", 0)
        assert isinstance(now_ns, int), "as the driver writes it"
        self._stage.real = call.get("time") == "real"
        self._end_run()
        self._error = ""
        try:
            self._run = self._make(self._stage, now_ns)
        except RunEnded:
            raise
        except BaseException as error:  # a factory's, perhaps of `pytest.skip`, is raised on pytest's thread
            self._stage.said.put(error)
        else:
            self._stage.say("answer", n=call["n"])

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is not None and run is not self._halted:
            try:
                self._halt(run)
            except RunEnded:
                pass
            except BaseException as error:  # SystemExit would end pytest
                # If callbacks of the run ended in the middle, this is no fault of the adapter.
                self._unclosed = self._unclosed or ("" if self._stage.cut else _in_words("close", error))

    def _halt(self, run: Driven) -> Fields:
        """Close the adapter. The driver may call `advance` after that."""
        self._halted = run
        if isinstance(run.under, Closes):
            run.under.close()
        return {}

    def _answer(self, call: Call) -> None:
        run, stage = self._run, self._stage
        assert run is not None, "start comes first"
        begun = stage.now()
        with stage.inside(call):
            try:
                with StepCounter(stage, call):
                    result = self._halt(run) if call.get("drain") else run.made(call)
            except RunEnded:
                raise
            except BadPromise as wrong:
                # The type of a result is wrong. It is raised on pytest's thread, because it breaks no clause.
                self._stage.said.put(BadPromise(f"{named(self._method(call))} {wrong}"))
                return
            except (
                BaseException
            ) as error:  # a thread that ended by SystemExit would leave its call unanswered
                if not self._error or MEANT in self._error:
                    self._error = _in_words(self._method(call), error)
                result = {"err": type(error).__name__}
            stage.say("answer", n=call["n"], **result, **begun)

    def _method(self, call: Call) -> str:
        """The method of the adapter that a call of the driver makes."""
        name = str(call["kind"] if call["m"] == "repeat" else call["m"])
        sizes = "gauges" if "purgatory" in self._description.capabilities else "size"
        asked = {"gauge": sizes, "quiesce": sizes, "cancel_key": "cancel_for_key"}
        return asked.get(name, name).replace("-", "_")

    def hear(self, within_s: float) -> bytes | Quiet:
        try:
            # After `close`, no thread of the subject sends a message.
            said = self._stage.said.get(timeout=0.0 if self._closed else max(0.0, within_s))
        except queue.Empty:
            return Quiet.ENDED if self._closed else Quiet.SILENT
        self._at_work.look_anew()
        if isinstance(said, BaseException):
            raise said
        return said

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """The failure, with the subject's first exception in this run. If an exception ends the run, the text has only
        the exception, because the author of an adapter does not know the driver's calls."""
        said = self._error
        if MEANT in said and kind != "refused":
            said = ""
        elif MEANT in said:
            said += '. If an exception of a callback may leave the call, declare it: lacks={"raising": "..."}'
        told = said if kind == "refused" and said else "; ".join(filter(None, (why, said)))
        return SubjectFailed(self._description.name, kind, told)

    def works(self, most_s: float) -> bool:
        return self._at_work.works(most_s)

    def _looks(self) -> Callable[[float], bool]:
        def rests(within_s: float) -> bool:
            time.sleep(within_s)
            return self._stage.said.empty() and self._running.wait()

        return rests

    def silent(self, seconds: float, why: str = "") -> SubjectFailed:
        """The failure of a subject that was silent for this time, with the line of each caller in the subject's
        code."""
        failure = self.failed("hang", f"silent for {seconds:g} s{why}{''.join(self._standing())}")
        failure.slow = not self._at_work.still() and not self._at_work.spent
        return failure

    def _standing(self) -> Iterator[str]:
        """The place of each caller in the subject's code (or in the suite's code, or the end of its thread)."""
        frames = sys._current_frames()
        for thread in self._threads:
            if thread.ident not in frames:
                yield f"; {thread.name} has ended"
                continue
            stack = [(frame.f_code, line) for frame, line in traceback.walk_stack(frames[thread.ident])]
            subjects = (at for at in stack if _is_subjects(at[0].co_filename))
            code, line = next(subjects, stack[0])
            yield f"; {thread.name} is at {_position(code, line)}"

    def check_exit(self, why: str = "") -> None:
        """Does nothing: the subject is in this process, and does not exit."""

    def errors(self) -> bytes:
        """Empty: the subject has no standard error of its own."""
        return b""

    def driven_s(self) -> float:
        """Zero: its CPU time is that of this process."""
        return 0.0

    on_one_processor = nullcontext[None]

    def threads(self) -> ProcessThreads:
        return self._running

    def end_input(self) -> None:
        self.close()

    def close(self) -> None:
        """Resume all paused threads, and end those that can be ended."""
        self._closed = True
        ALIVE.discard(self)
        if self._collects:
            gc.enable()
        self._stage.close()
        for calls in self._lanes.values():
            calls.put(None)
        self._lanes = {}
        for thread in self._threads:
            thread.join(_ENDS_S)
        alive = [thread for thread in self._threads if thread.is_alive()]
        for thread in alive:
            # A thread that waits in C gets the exception only when it returns, if ever.
            _end(thread.ident)
        self._stage.cut |= bool(alive)
        if alive:
            taking_note = threading.Thread(target=_take_note)
            taking_note.start()
            taking_note.join()
        self._threads = []
        # On a thread of its own, because it may wait for a lock of a thread that cannot be ended.
        closing = threading.Thread(target=self._end_run, daemon=True)
        closing.start()
        closing.join(_ENDS_S if alive else _CLOSES_S)
        if closing.is_alive() and not alive:
            self._unclosed = f"your adapter's close() did not return within {_CLOSES_S:g} s"
        if self._unclosed:
            # The verdicts hold, because the run is over. pytest prints warnings at its end.
            warnings.warn(self._unclosed, stacklevel=2)


COMPLETED: Final = "True if this call completed the operation, or else False"


def _number(result: object, right: str) -> int:
    if isinstance(result, SupportsIndex):
        return int(result)
    raise BadPromise(f"returned {visible(repr(result), 60)}; it must return {right}")


def _in_words(method: str, error: BaseException) -> str:
    said = "".join(traceback.format_exception_only(error)).strip()
    if method == "add" and isinstance(error, TypeError):
        said += " (the suite calls add(delay_ns, task))"
    return f"{named(method)} raised {said}{_raised_at(error)}"


def named(method: str) -> str:
    """The beginning of the text about a fault of the adapter."""
    return f"your adapter's {method}()"


def _end(thread: int | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), ctypes.py_object(RunEnded))


def _take_note() -> None:
    """Clear CPython's flag for asynchronous exceptions. One flag serves all threads, and only a thread that takes its
    own exception clears it. In CPython 3.11, while the flag is set, no traced function of any thread gets past its
    first instruction."""
    with suppress(RunEnded):
        _end(threading.get_ident())
        while True:
            pass


_NAPS: Final = 0.1
"""The share of lines with a nap."""
_NAP_S: Final = 0.000_1
_ALL_NAPS_S: Final = 9.0
"""All naps together: less than the ten seconds that a header adds to the late bound."""

_OURS: Final = str(Path(__file__).resolve().parents[1])
_PYTHONS: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})


def _raised_at(error: BaseException) -> str:
    at = [
        _position(frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_subjects(frame.f_code.co_filename)
    ]
    return f" at {at[-1]}" if at else ""


def _position(code: CodeType, line: int) -> str:
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{line})"


@cache
def _is_subjects(file: str) -> bool:
    pythons = file.startswith(_PYTHONS) and not file.startswith(_INSTALLED)
    ours = any(file.startswith(f"{_OURS}/{part}/") for part in ("suite", "protocol", "subject"))
    return not (pythons or ours or file.startswith("<") or file == recorder.__file__)


class StepCounter:
    """Counts the lines that this thread reaches inside a call, each at most TIMES_MOST times, and pauses it at the
    requested ones."""

    def __init__(self, stage: Stage, call: Call) -> None:
        self._stage = stage
        stops = [call.get("step"), call.get("again")]
        self._left = [stop for stop in stops if isinstance(stop, int)]
        self._seen = 0
        self._times: Counter[tuple[CodeType, int]] = Counter()
        self._before = sys.gettrace()

    def __enter__(self) -> None:
        if self._left:
            sys.settrace(self._function)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _function(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        return self._line if self._left and _is_subjects(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if event == "line" and self._left:
            line = frame.f_code, frame.f_lineno
            self._times[line] += 1
            self._seen += self._times[line] <= TIMES_MOST
            if self._seen > self._left[0]:
                del self._left[0]
                self._stage.stop(STEP, at=_position(frame.f_code, frame.f_lineno))
        return self._line


class Naps:
    """While entered, each new thread sleeps at some of the lines that it reaches in the subject's code, so that another
    thread runs in between. It does nothing if another tool traces threads."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"naps/{seed}")
        self._left_s = _ALL_NAPS_S

    def __enter__(self) -> None:
        self._sets = threading.gettrace() is None
        if self._sets:
            threading.settrace(self._function)

    def __exit__(self, *_: object) -> None:
        if self._sets:
            threading.settrace(None)

    def _function(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        return self._line if _is_subjects(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> TraceFunction:
        if event == "line" and self._left_s > 0 and self._rng.random() < _NAPS:
            began_s = time.monotonic()
            time.sleep(_NAP_S)
            self._left_s -= time.monotonic() - began_s
        return self._line


class DrivenPurgatory:
    """A purgatory under test, driven by the calls of the protocol."""

    def __init__(self, promise: Promise, factory: PurgatoryFactory, stage: Stage, now_ns: int) -> None:
        self.under = self._purgatory = factory(promise)
        self._stage = stage
        self._gauged = "gauges" not in promise.lacks
        self._now_ns = now_ns
        self._probes: dict[str, Probe] = {}
        self._ready: dict[str, threading.Event] = {}

    def made(self, call: Call) -> Fields:
        match call:
            case {"m": "register", "id": str(name), "keys": list(keys), "delay_ns": int(delay_ns)}:
                units = call.get("units")
                amount = units if isinstance(units, int) else 1
                probe = Probe(self._stage, name, tuple(keys), delay_ns, self._flag(name), amount)
                self._probes[name] = probe
                return {"out": _number(self._purgatory.register(probe), COMPLETED)}
            case {"m": "ready", "id": str(name)}:
                self._flag(name).set()
            case {"m": "check", "key": str(key)}:
                return {
                    "out": _number(self._purgatory.check(key), "the number of operations that it completed")
                }
            case {"m": "force", "id": str(name)}:
                return {"out": _number(self._purgatory.force(self._probes[name]), COMPLETED)}
            case {"m": "cancel_key", "key": str(key)}:
                return {"ids": [probe.id for probe in self._purgatory.cancel_for_key(key)]}
            case {"m": "advance", "now_ns": int(now_ns)}:
                by_ns, self._now_ns = now_ns - self._now_ns, now_ns
                self._purgatory.advance(by_ns)
            case {"m": "gauge" | "quiesce" as name}:
                if name == "quiesce" and isinstance(self._purgatory, Settles):
                    self._purgatory.settle()
                if self._gauged:
                    return dict(zip(("watched", "delayed", "keys"), self._purgatory.gauges(), strict=False))
        return {}

    def _flag(self, name: str) -> threading.Event:
        return self._ready.setdefault(name, threading.Event())


_METHODS: Final[Mapping[str, tuple[type, str]]] = {
    "cancel": (Cancels, "cancel(handle)"),
    "size": (Counts, "size()"),
    "fixed-rate": (RepeatsAtRate, "fixed_rate(first_ns, period_ns, task)"),
    "fixed-delay": (RepeatsAfterDelay, "fixed_delay(first_ns, period_ns, task)"),
    "reset": (Resets, "reset(handle, delay_ns)"),
    "reset-periodic": (Resets, "reset(handle, delay_ns)"),
    "lasting": (Moves, "move(by_ns)"),
    "halts": (Closes, "close()"),
}
"""The methods of a timer: required without the lack, or with the offer."""
_FAR_NS: Final = 3_600_000_000_000


class DrivenTimer:
    """A timer under test, driven by the calls of the protocol."""

    def __init__(self, promise: Promise, factory: TimerFactory, stage: Stage, now_ns: int) -> None:
        self.under = self._timer = factory(promise)
        self._stage = stage
        self._counts = "size" not in promise.lacks
        self._most_ns = promise.tick_ns if "leap" in promise.lacks else MAX_TIME_NS
        for name, (kind, method) in _METHODS.items():
            if isinstance(self._timer, kind):
                continue
            if name in OFFERS and name in promise.offers:
                raise BadPromise(f"the timer has no {method}, and the promise offers {name!r}")
            if name in LACKS and name not in promise.lacks:
                raise BadPromise(
                    f"the timer has no {method}: give it one, or a lack {name!r} with its reason"
                )
        self._now_ns = now_ns
        self._handles: dict[str, object] = {}
        self._over: set[str] = set()
        self._period_ns = min(promise.longest_delay_ns or _FAR_NS, _FAR_NS)
        self._least_ns = promise.tick_ns if "period-first" in promise.offers else None

    def _add(self, name: str, delay_ns: int) -> object:
        """Add a task. If the timer has only periodic tasks, the first run of one cancels it."""
        timer, task = self._timer, partial(self._stage.around, "timer_fire", name)
        if isinstance(timer, Adds):
            return timer.add(delay_ns, task)
        if not (isinstance(timer, Cancels) and isinstance(timer, (RepeatsAtRate, RepeatsAfterDelay))):
            raise BadPromise("the timer has no add(delay_ns, task), and no periodic tasks that it can cancel")

        def once() -> None:
            self._over.add(name)
            if name in self._handles:
                timer.cancel(self._handles[name])
            task()

        period_ns = self._period_ns if self._least_ns is None else max(delay_ns, self._least_ns)
        begin = timer.fixed_rate if isinstance(timer, RepeatsAtRate) else timer.fixed_delay
        handle = begin(delay_ns, period_ns, once)
        if name in self._over:
            timer.cancel(handle)
        return handle

    def made(self, call: Call) -> Fields:
        timer = self._timer
        match call:
            case {"m": "add", "id": str(name), "delay_ns": int(delay_ns)}:
                self._handles[name] = self._add(name, delay_ns)
            case {
                "m": "repeat",
                "id": str(name),
                "kind": kind,
                "delay_ns": int(first_ns),
                "period_ns": int(period_ns),
            }:
                task = partial(self._stage.around, "timer_fire", name)
                if kind == "fixed-rate" and isinstance(timer, RepeatsAtRate):
                    self._handles[name] = timer.fixed_rate(first_ns, period_ns, task)
                elif isinstance(timer, RepeatsAfterDelay):
                    self._handles[name] = timer.fixed_delay(first_ns, period_ns, task)
            case {"m": "reset", "id": str(name), "delay_ns": int(delay_ns)} if isinstance(timer, Resets):
                moved = timer.reset(self._handles[name], delay_ns)
                return {} if moved is None else {"out": _number(moved, "True, False or None")}
            case {"m": "cancel", "id": str(name)} if name not in self._handles or name in self._over:
                # The cancel comes before its add has returned, so the adapter has no handle yet; or it has run.
                return {"out": 0}
            case {"m": "cancel", "id": str(name)} if isinstance(timer, Cancels):
                won = timer.cancel(self._handles[name])
                return {} if won is None else {"out": _number(won, "True, False or None")}
            case {"m": "advance", "now_ns": int(now_ns), "hold": int()} if isinstance(timer, Moves):
                by_ns, self._now_ns = now_ns - self._now_ns, now_ns
                timer.move(by_ns)
            case {"m": "advance", "now_ns": int(now_ns)}:
                by_ns, self._now_ns = now_ns - self._now_ns, now_ns
                while by_ns > self._most_ns:
                    timer.advance(self._most_ns)
                    by_ns -= self._most_ns
                timer.advance(by_ns)
            case {"m": "gauge" | "quiesce"} if self._counts and isinstance(timer, Counts):
                return {"delayed": timer.size()}
        return {}
