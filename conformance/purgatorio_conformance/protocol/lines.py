"""Scheduling points (steps) in unmodified JVM code: pauses threads at lines, by the JVM's debugger protocol.

The module first watches a call (`watch`): each line that the call's thread reaches is a step. If the call moves the
clock, the lines of the subject's own threads are steps too. A later call of the same kind can be paused at such a step,
even if its thread holds locks. The other threads continue. When the connection ends, all threads continue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

import orjson

from purgatorio_conformance.protocol.jdwp import CodeLine, Jvm, JvmGone, Listening, Location
from purgatorio_conformance.protocol.message import STEP
from purgatorio_conformance.subject.child import LineChild, Quiet

_JDK: Final = ("java.*", "javax.*", "jdk.*", "sun.*", "com.sun.*", "scala.*", "kotlin.*")
LEFT_OUT: Final = (*_JDK, "purgatorio.kit.*")
"""Classes that are not part of the subject."""

ANY_CLASS: Final = "*"

_OWN_HOLDS: Final = 1 << 52
"""The first number of a pause that this module makes. The subject's own pauses have lower numbers."""

_LINES_MOST: Final = 20_000
_CALLS_WITHOUT_LINE: Final = 3
"""After this many watched calls without a line, the wanted names are compared with the loaded classes."""
_STILL_UNDER_WAY_S: Final = 0.005
"""The events of a JVM for lines arrive some moments later."""
_OF_THE_JVM: Final = frozenset(
    {
        "main",
        "Reference Handler",
        "Finalizer",
        "Signal Dispatcher",
        "Notification Thread",
        "Common-Cleaner",
        "Attach Listener",
        "DestroyJavaVM",
    }
)


@dataclass(frozen=True, slots=True)
class LineStep:
    """A step: a thread by its name, or empty for the calling thread; a line, and its count of visits (from 1). `at`:
    the location in this JVM."""

    thread: str
    line: CodeLine
    nth: int
    at: Location = field(compare=False)


@dataclass(slots=True)
class _Paused:
    """A paused thread, and the call for which it was paused. `name`: for a thread of the subject's own. `reported`:
    whether the pause was reported."""

    jvm: Jvm
    thread: int
    call: int
    name: str
    at: Location
    reported: bool = False

    def says(self, fields: Mapping[str, object]) -> bool:
        """Whether this thread sent the message."""
        if self.name:
            return fields.get("th") == self.name
        return fields.get("during", fields.get("n")) == self.call


class Lines:
    """A child that was started with the environment of `listening`. `within`: a pattern for the names of the watched
    classes, `*` for all. Close it."""

    def __init__(self, child: LineChild, listening: Listening, within: str) -> None:
        self.points: list[LineStep] = []
        """The known steps; a call's `step` is an index into this list."""
        self.watched: dict[int, str] = {}
        """For the call that was watched last: the request for each thread, and the thread's name as in `LineStep`."""
        self.unknown: str = ""
        """Why no step was watched; empty if some were."""
        self.adapters: set[CodeLine] = set()
        """Lines of a hand-written adapter, which are not part of the subject."""
        self._child = child
        self._listening = listening
        self._within = within
        self._jvms: list[Jvm] = []
        self._jvm: Jvm | None = None
        self._lanes: Mapping[str, int] = {}
        self._names: Mapping[int, str] = {}
        self._before: frozenset[int] = frozenset()
        self._watch: bool | None = None
        self._let_run = False
        """Whether the watched call continues unwatched."""
        self._seen: dict[int, list[Location]] = {}
        self._calls_seen = 0
        self._call: int | None = None
        self._armed: set[int] = set()
        self._paused: dict[int, _Paused] = {}
        self._at_gates: dict[int, Mapping[str, object]] = {}
        """The `held` messages of threads at the subject's own pause points."""
        self._holds = _OWN_HOLDS

    def connect(self) -> bool:
        """Whether a JVM has connected; call it once, after the first message of the child."""
        self._jvms = self._listening.jvms()
        self._listening.close()
        return bool(self._jvms)

    def close(self) -> None:
        """Close the connections. All paused threads then continue."""
        self._listening.close()
        for jvm in self._jvms:
            jvm.close()

    def watch(self, *, workers: bool) -> None:
        """Watch the next call: the lines of its own thread, or with `workers` those of the subject's own threads."""
        self._watch = workers
        self._let_run = False
        self.watched = {}

    def seen(self, watched: Mapping[int, str]) -> Sequence[int]:
        """The steps of a watched call that has ended. Line events that arrive a little later are included."""
        first, jvm = len(self.points), self._jvm
        if jvm is None:
            return range(0)
        self.read_lines(_STILL_UNDER_WAY_S)
        with suppress(JvmGone):
            for request, thread in watched.items():
                times: Counter[Location] = Counter()
                stops: dict[tuple[Location, int], None] = {}
                for come_to in self._seen.pop(request):
                    times[come_to] += 1
                    # When a getter returns, the thread reaches the middle of a line; `inside` also finds that place.
                    stops.update({(at, times[come_to]): None for at in (come_to, *jvm.inside(come_to))})
                self.points.extend(LineStep(thread, jvm.line(at), nth, at) for at, nth in stops)
            self._calls_seen += 1
            if not self.points and self._calls_seen == _CALLS_WITHOUT_LINE:
                self._check_names(jvm)
        return range(first, len(self.points))

    def _check_names(self, jvm: Jvm) -> None:
        """Raises SubjectFailed if no loaded class has a name that the user asked for."""
        names = [one for one in jvm.classes() if not any(fnmatchcase(one, left) for left in LEFT_OUT)]
        if not any(fnmatchcase(one, self._within) for one in names):
            near = get_close_matches(self._within.strip("*."), names, 3, 0.3)
            why = f"--lines {self._within!r} matches none of its loaded classes"
            raise self._child.failed("unavailable", why + f"; nearest: {', '.join(near)}" * bool(near))

    def leave_adapter_out(self) -> None:
        """Leave out the adapter (the class in which a caller's thread began, with its nested classes) if most of the
        seen lines are elsewhere. If the purgatory is in the same class, most lines are there, and the class is not left
        out."""
        lane, jvm = self._thread_of(0), self._jvm
        if jvm is None or lane is None or self._within != ANY_CLASS:
            return
        with suppress(JvmGone):
            names = [jvm.around(of) for of in jvm.frames(lane)]
            kept = [one for one in names if not one.startswith(tuple(left[:-1] for left in _JDK))]
            taker = kept[0] if kept else ""
            own = {point.line: jvm.around(point.at[0]) == taker for point in self.points}
            if 2 * sum(own.values()) < len(own):
                self.adapters.update(line for line, of_adapter in own.items() if of_adapter)

    # The methods of a `Channel`.

    def say(self, line: bytes) -> None:
        if b'"step":' in line or self._watch is not None:
            self._child.say(self._begun(line))
        elif b'"m":"start"' in line:
            self._child.say(self._started(line))
        elif b'"m":"go"' in line and (self._paused or self._at_gates):
            rest = self._gone_on(line)
            if rest is not None:
                self._child.say(rest)
        elif self._paused:
            self._child.say(_unsettled(orjson.loads(line)))
        else:
            self._child.say(line)

    def hear(self, within_s: float) -> bytes | Quiet:
        while True:
            said = self._child.hear(within_s)
            if isinstance(said, Quiet) or (self._call is None and not self._paused):
                return said
            fields = _fields(said)
            hold = fields.get("hold")
            if isinstance(hold, int) and hold in self._paused:
                paused = self._paused[hold]
                # If a thread reports a gate, and pauses at a line before it waits there, the line is in the adapter.
                if any(paused.says(gate) for gate in self._at_gates.values()):
                    with suppress(JvmGone):
                        self.adapters.add(paused.jvm.line(paused.at))
                else:
                    paused.reported = paused.call == self._call
                if paused.reported:
                    return said
                # The line is in the adapter, or was reached after the answer to the call: no pause.
                self._let_go(hold)
                continue
            if any(one.reported and one.says(fields) for one in self._paused.values()):
                # A paused thread sent this: the JVM ends, and has resumed all threads. Its end is heard next.
                continue
            if fields.get("m") == "answer" and fields.get("n") == self._call:
                self._ended()
            elif isinstance(hold, int):
                self._at_gates[hold] = fields
            return said

    def works(self, most_s: float) -> bool:
        """See `Channel.works`. A watched thread runs many times slower. So if the call was watched, it runs on
        unwatched before this is false."""
        if self._child.works(most_s):
            return True
        if self._jvm is None or self._call is None or not self.watched or self._let_run:
            return False
        self._let_run = True
        self.unknown = "a call was not watched to its end, for it took too long"
        with suppress(JvmGone):
            for request in self.watched:
                self._jvm.forget(request)
        self._child.look_anew()
        return True

    # The methods of an `Aside`.

    def fileno(self) -> int:
        assert self._jvm is not None, "connected before it is read"
        return self._jvm.fileno()

    def read_lines(self, within_s: float = 0.0) -> list[bytes] | None:
        assert self._jvm is not None, "connected before it is read"
        happened = self._jvm.read(within_s)
        if happened is None:
            return None
        said: list[bytes] = []
        for one in happened:
            if one.request in self._armed and self._call is not None:
                self._armed.discard(one.request)
                hold, self._holds = self._holds, self._holds + 1
                name = "" if one.thread in self._lanes.values() else self._names.get(one.thread, "?")[:60]
                self._paused[hold] = _Paused(self._jvm, one.thread, self._call, name, one.at)
                said.append(self._held(self._jvm, hold, name, one.at))
                continue
            if one.request in self._seen:
                if len(self._seen[one.request]) < _LINES_MOST:
                    self._seen[one.request].append(one.at)
                continue
            with suppress(JvmGone):
                self._jvm.go_on(one.thread)
        return said

    def _held(self, jvm: Jvm, hold: int, name: str, at: Location) -> bytes:
        who = {"th": name} if name else {"during": self._call}
        fields: dict[str, object] = {"m": "held", "hold": hold, "f": STEP, **who}
        with suppress(JvmGone):
            fields["at"] = str(jvm.line(at))[:200]
        return orjson.dumps(fields)

    # Calls.

    def _started(self, line: bytes) -> bytes:
        """A run begins: its threads are new, or those of the previous run. It has no steps yet."""
        for hold in list(self._paused):
            self._let_go(hold)
        self._at_gates = {}
        if self._jvm is not None:
            with suppress(JvmGone):
                self._before = frozenset(self._jvm.threads())
        self._lanes = {}
        fields = orjson.loads(line)
        gates = [place for place in fields.pop("gates", ()) if place != STEP]
        return orjson.dumps(fields | ({"gates": gates} if gates else {}))

    def _begun(self, line: bytes) -> bytes:
        fields = orjson.loads(line)
        steps = [fields.pop(stop) for stop in ("step", "again") if stop in fields]
        points = [self.points[step] for step in steps if step < len(self.points)]
        workers, self._watch = self._watch, None
        try:
            lane = self._thread_of(fields.get("lane", 0))
            if lane is not None and self._jvm is not None:
                self._call = fields["n"]
                if workers is not None:
                    self._begin_to_watch(self._jvm, {lane: ""} if not workers else self._workers())
                else:
                    self._arm(self._jvm, lane, points)
        except JvmGone:
            self.unknown = "its JVM hung up"
        of_workers = workers or any(point.thread for point in points)
        return orjson.dumps(fields) if of_workers else _unsettled(fields)

    def _begin_to_watch(self, jvm: Jvm, threads: Mapping[int, str]) -> None:
        for thread, name in threads.items():
            request = jvm.watch(thread, LEFT_OUT, self._within)
            if request is not None:
                self.watched[request] = name
                self._seen[request] = []

    def _arm(self, jvm: Jvm, lane: int, points: Sequence[LineStep]) -> None:
        for point in points:
            thread = self._worker(point.thread) if point.thread else lane
            request = None if thread is None else jvm.stop_at(thread, point.at, point.nth)
            if request is not None:
                self._armed.add(request)

    def _ended(self) -> None:
        self._call = None
        jvm = self._jvm
        if jvm is None:
            return
        with suppress(JvmGone):
            for request in (*self._armed, *self.watched):
                jvm.forget(request)
        self._armed = set()

    def _gone_on(self, line: bytes) -> bytes | None:
        """Resume this module's pauses. Returns the rest of the `go`, for the subject; None if nothing is left."""
        fields = orjson.loads(line)
        for hold in fields["holds"]:
            self._at_gates.pop(hold, None)
        holds = [hold for hold in fields["holds"] if hold < _OWN_HOLDS]
        if holds != fields["holds"]:
            if not holds:
                # The answer comes before the thread is resumed, or the thread's next message would precede it.
                self._child.put(orjson.dumps({"m": "answer", "n": fields["n"]}))
            for hold in fields["holds"]:
                if hold >= _OWN_HOLDS:
                    self._let_go(hold)
        return orjson.dumps(fields | {"holds": holds}) if holds else None

    def _let_go(self, hold: int) -> None:
        paused = self._paused.pop(hold, None)
        if paused is not None:
            with suppress(JvmGone):
                paused.jvm.go_on(paused.thread)

    # Threads.

    def _thread_of(self, lane: int) -> int | None:
        """The thread that makes the calls of a caller, by its name; the newest if there are several."""
        name = f"lane-{lane}"
        if name not in self._lanes:
            self._find_threads()
        if name not in self._lanes:
            self.unknown = (
                f"no thread of the JVM is named {name}: name the thread that makes the calls of the lane"
            )
        return self._lanes.get(name)

    def _find_threads(self) -> None:
        for jvm in self._jvms if self._jvm is None else [self._jvm]:
            with suppress(JvmGone):
                names = jvm.threads()
                lanes = [thread for thread, name in names.items() if name.startswith("lane-")]
                if lanes:
                    if self._jvm is None:
                        self._jvm = jvm
                        self._child.hear_also(self)
                    self._names = names
                    # Threads of an abandoned run may not have ended yet.
                    lanes.sort(key=lambda thread: (thread not in self._before, thread))
                    self._lanes = {names[thread]: thread for thread in lanes}

    def _workers(self) -> Mapping[int, str]:
        self._find_threads()
        return {
            thread: name
            for thread, name in self._names.items()
            if name not in _OF_THE_JVM and not name.startswith("lane-")
        }

    def _worker(self, name: str) -> int | None:
        """The newest of the subject's own threads of this name, if this run has one."""
        for look in (False, True):
            if look:
                self._find_threads()
            found = [one for one, called in self._names.items() if called == name and one not in self._before]
            if found:
                return max(found)
        return None


def _fields(line: bytes) -> Mapping[str, object]:
    """The fields of a line that may be a message. The line is validated elsewhere."""
    with suppress(orjson.JSONDecodeError):
        fields: object = orjson.loads(line)
        if isinstance(fields, dict):
            return fields
    return {}


def _unsettled(fields: dict[str, object]) -> bytes:
    """A call that is answered without waiting for the subject's own threads. They may wait for a thread that is paused,
    or that will be paused."""
    return orjson.dumps(fields | {"settle": 0})
