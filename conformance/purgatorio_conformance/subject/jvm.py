"""Drives a timer in a JVM of its own. The same Java program drives all these timers.

The module writes the plan to the JVM as JSON lines, and reads the events as JSON lines. The Java program reads all
times with `System.nanoTime()`, because a callback from the JVM to Python may come seconds late. On Linux, this is the
clock of `time.monotonic_ns()` (CLOCK_MONOTONIC), so the trace names the clock `monotonic`. For each timer there is one
class in `java/purgatorio/` and one `JvmSubject` in Python. A task with a delay below zero is due at once. A task with a
delay beyond the range of the clock is never due.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import orjson

from purgatorio_conformance.java_home import JavaHome, JavaNotFound, find_java
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, Progress, SubjectFailed
from purgatorio_conformance.subject.java_build import Jars, compiled_classes, pyspark_jars
from purgatorio_conformance.subject.oversleep import MAX_NAPS, control_params
from purgatorio_conformance.subject.plan import Plan, PlanShape
from purgatorio_spec.trace.parse import Refusal, parse_fields
from purgatorio_spec.trace.record import MAX_INT, Event, Header, Implementation, TimerConstants, TraceClock
from purgatorio_spec.trace.trace_file import run_of_file, write_run

_RECORDED: Final = ("quiesce", "timer_add", "timer_cancel", "timer_fire")
_PROBES: Final = 2
_build_lock = threading.Lock()


def _java(name: str) -> JavaHome:
    try:
        return find_java()
    except JavaNotFound as missing:
        raise SubjectFailed(name, "unavailable", str(missing)) from None


@dataclass(frozen=True)
class JvmSubject:
    """One configuration of a timer in a JVM.

    `adapter` is its class in `java/purgatorio/`, which is created with `options`. `libraries` finds the jars that it
    needs, the timer's own jar first. `version_of` returns the version if this jar's name does not contain it.
    `constants` go into the header. With `wall_clock`, the early bound grows by any forward change of the wall clock
    during the run (0 in nearly every run). `counts`: it has a count of pending tasks. `command` replaces the JVM by
    another program that speaks the same lines, for tests of misbehavior.
    """

    name: str
    adapter: str
    implementation: str
    profile: str
    tick_ns: int
    constants: TimerConstants
    version_of: Callable[[], str] | None = None
    libraries: Callable[[Jars], list[Path]] = lambda jars: []
    options: Mapping[str, int] = field(default_factory=dict)
    shape: PlanShape = field(default_factory=PlanShape)
    threads: int = 4
    wall_clock: bool = False
    counts: bool = False
    limits: ChildLimits | None = None
    command: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The version of the library, or of Java. Raises SubjectFailed, kind `unavailable`."""
        if self.command:
            return ""
        if self.version_of is not None:
            return self.version_of()
        libraries = self.libraries(pyspark_jars())
        # `4.2.13.Final` from `netty-common-4.2.13.Final.jar`.
        return re.sub(r"^\D*-", "", libraries[0].stem) if libraries else _java("JVM").version

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        heard = _Heard()
        plan = self.shape.fit(plan)
        try:
            with LineChild(self.name, self._command(), self.limits_of(plan)) as child:
                child.send(list(self._messages(plan)))
                self._listen(child, heard, plan, progress)
        except SubjectFailed as failure:
            if heard.events:
                failure.trace = self._write(plan, out_path, heard, dropped=None)
            raise
        except KeyboardInterrupt:
            self._write(plan, out_path, heard, dropped=None)
            raise
        return self._write(plan, out_path, heard, dropped=heard.done["dropped"])

    def _command(self) -> tuple[str, ...]:
        if self.command:
            return self.command
        jars = pyspark_jars()
        java = _java(self.name)
        libraries = self.libraries(jars)
        with _build_lock:
            classes = compiled_classes(java, jars)
        # Only the first compiler and the simplest collector: the driver then starts in a third of the time.
        options = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        path = ":".join(str(entry) for entry in (classes, *libraries))
        return (str(java.java), *options, "-cp", path, "purgatorio.Driver")

    def limits_of(self, plan: Plan) -> ChildLimits:
        """The limits of its child for a plan: total time, silence, and lines."""
        if self.limits is not None:
            return self.limits
        # In addition to the plan's events, there is a gauge every 5 ms. The driver gives up long before this limit.
        # Until then it waits for lost tasks, silently if the timer has no size.
        seconds = 30.0 + give_up_ns(plan, self.tick_ns) / 1e9
        lines = 100 * len(plan.steps) + int(2_000 * seconds)
        return ChildLimits(silence_s=seconds, total_s=seconds, lines=lines)

    def _messages(self, plan: Plan) -> Iterator[bytes]:
        start: dict[str, object] = {"m": "start", "threads": plan.threads, "timers": plan.timers + _PROBES}
        start |= {"adapter": self.adapter, "tick_ns": self.tick_ns} | dict(self.options)
        yield orjson.dumps(start | {"give_up_ns": give_up_ns(plan, self.tick_ns)})
        for step in plan.steps:
            message: dict[str, object] = {"m": "cancel" if step.delay_ns is None else "add"}
            message |= {"thread": step.thread, "at_ns": step.at_ns, "slot": step.slot, "id": step.id}
            if step.delay_ns is not None:
                message["delay_ns"] = step.delay_ns
            yield orjson.dumps(message)
        yield b'{"m":"go"}'

    def _listen(self, child: LineChild, heard: "_Heard", plan: Plan, progress: Progress) -> None:
        for line in child.lines():
            problem = heard.take(line)
            if problem is not None:
                raise child.failed("rubbish", f"{problem}: {line[:80].decode(errors='replace')!r}")
            if heard.settled >= heard.next_report:
                heard.next_report = heard.settled + max(1, plan.timers // 50)
                progress(self.name, min(heard.settled, plan.timers), plan.timers)
        if not heard.done:
            raise child.failed("died", "ended without a `done` record")
        if heard.done["events"] != len(heard.events):
            raise child.failed(
                "rubbish",
                f"the `done` record says {heard.done['events']} events, {len(heard.events)} were received",
            )
        progress(self.name, plan.timers, plan.timers)

    def _write(self, plan: Plan, out_path: Path, heard: "_Heard", dropped: int | None) -> Path:
        params: dict[str, object] = {"seed": plan.seed, "timers": plan.timers, "threads": plan.threads}
        params |= {"java": heard.java, "late_slack_ns": LATE_SLACK_NS} | dict(self.options)
        if heard.done:
            params |= control_params(heard.oversleeps_ns, heard.done["oversleep_ns"], _NAP_NS)
            params |= {"skipped_cancels": heard.done["skipped"], "left_open": heard.done["open"]}
            params |= {"wall_shift_ns": heard.done["wall_shift_ns"]}
        header = Header(
            run=run_of_file(out_path),
            implementation=Implementation(self.implementation, self.version, "Java"),
            profile=self.profile,
            timer=self._constants(heard),
            clock=TraceClock("monotonic", "ns"),
            recorded=("gauge", *_RECORDED) if self.counts else _RECORDED,
            params=params,
        )
        return write_run(out_path, header, heard.events, dropped)

    def _constants(self, heard: "_Heard") -> TimerConstants:
        if not self.wall_clock or self.constants.early_ns is None:
            return self.constants
        if not heard.done:
            # It is unknown whether the wall clock was set, so no early bound is promised.
            return replace(self.constants, early_ns=None)
        return replace(self.constants, early_ns=self.constants.early_ns + heard.done["wall_shift_ns"])


def give_up_ns(plan: Plan, tick_ns: int) -> int:
    """The time by which a task that has not fired is certainly lost: well after the declared lateness."""
    return plan.end_ns + 8 * tick_ns + 2 * LATE_SLACK_NS


_NAP_NS: Final = 5_000_000
"""How long the Java driver's control thread sleeps at a time."""


class _Heard:
    def __init__(self) -> None:
        self.java = ""
        self.events: list[Event] = []
        self.done: dict[str, int] = {}
        self.oversleeps_ns: list[int] = []
        self.settled = 0
        self.next_report = 0

    def take(self, line: bytes) -> str | None:
        """Record one line. Returns the problem with it, or None."""
        try:
            fields: object = orjson.loads(line)
        except json.JSONDecodeError as bad:
            return f"not JSON ({bad.msg})"
        if not isinstance(fields, dict):
            return "not a JSON object"
        if self.done:
            return "a line after the `done` record"
        kind = fields.get("kind")
        if kind == "ready":
            self.java = str(fields.get("java", ""))
            return None
        if kind == "done":
            return self._done(fields)
        try:
            record = parse_fields(fields)
        except Refusal as refusal:
            return f"not a record ({refusal})"
        if not isinstance(record, Event):
            return f"a {kind} record, which only the parent writes"
        self.events.append(record)
        if record.ph == "ret" and (record.f == "timer_fire" or (record.f == "timer_cancel" and record.out)):
            self.settled += 1
        return None

    def _done(self, fields: dict[str, object]) -> str | None:
        done: dict[str, int] = {}
        for name in ("events", "dropped", "skipped", "open", "oversleep_ns", "wall_shift_ns"):
            value = fields.get(name)
            if not isinstance(value, int):
                return f"the `done` record has no number {name!r}"
            done[name] = value
        oversleeps = fields.get("oversleeps_ns", [])
        if not isinstance(oversleeps, list) or not all(type(one) is int for one in oversleeps[:MAX_NAPS]):
            return "the `done` record has 'oversleeps_ns' that are not integers"
        self.oversleeps_ns = [max(0, min(one, MAX_INT)) for one in oversleeps[:MAX_NAPS]]
        self.done = done
        return None
