"""Netty's `HashedWheelTimer`, out of the jar inside PySpark's package, in a JVM of its own.

The plan goes in and the events come out as JSON lines. Every time is taken in the JVM, by `System.nanoTime()`: a call
from Python into a JVM costs up to half a millisecond, and a callback from it may come seconds late. On Linux that
clock is the one of `time.monotonic_ns()` (CLOCK_MONOTONIC), so the trace's clock is `monotonic`; nothing here compares
the two. The driver's side is in `java/purgatorio/`.

What it is held to (profile `netty-hashed-wheel`): never early; at most a tick late, and what the machine adds to that.
A delay below zero is due at once, a delay beyond the clock's range never.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from purgatorio_spec.trace.parse import Refusal, parse_fields
from purgatorio_spec.trace.record import Event, Header, Implementation, TimerConstants, TraceClock
from purgatorio_stress.java_home import JavaHome, JavaNotFound, find_java
from purgatorio_stress.subject.child import ChildLimits, LineChild
from purgatorio_stress.subject.contract import Progress, SubjectFailed
from purgatorio_stress.subject.java_build import Jars, compiled_classes, pyspark_jars
from purgatorio_stress.subject.plan import Plan
from purgatorio_stress.trace_file import write_run

__all__ = ["LATE_SLACK_NS", "NettyWheelSubject"]

LATE_SLACK_NS: Final = 2_000_000_000
"""Added to the tick for the lateness that is the machine's (scheduler, JVM pauses); declared in the header."""

_RECORDED: Final = ("gauge", "quiesce", "timer_add", "timer_cancel", "timer_fire")
_PROBES: Final = 2
_build_lock = threading.Lock()


@dataclass(frozen=True)
class NettyWheelSubject:
    """One configuration of the wheel. `max_pending` above 0 makes netty refuse adds beyond it (recorded as `err`).

    `command` replaces the JVM by another program that speaks the same lines; the tests of misbehaviour use it.
    """

    tick_ns: int
    wheel_size: int
    threads: int = 4
    max_pending: int = 0
    limits: ChildLimits | None = None
    command: tuple[str, ...] = ()
    profile: str = "netty-hashed-wheel"

    @property
    def name(self) -> str:
        """`netty-tick10-wheel8`, the tick in milliseconds."""
        limited = f"-max{self.max_pending}" if self.max_pending else ""
        return f"netty-tick{self.tick_ns // 1_000_000}-wheel{self.wheel_size}{limited}"

    @property
    def version(self) -> str:
        """Netty's version, by the name of its jar."""
        return pyspark_jars().netty_version

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`."""
        heard = _Heard()
        try:
            with LineChild(self.name, self._command(), self._limits(plan)) as child:
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
        java, jars, classes = self._build()
        # The first compiler only and the simplest collector: the driver starts in a third of the time.
        options = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return (str(java.java), *options, "-cp", f"{classes}:{jars.netty_common}", "purgatorio.Driver")

    def _build(self) -> tuple[JavaHome, Jars, Path]:
        jars = pyspark_jars()
        try:
            java = find_java()
        except JavaNotFound as missing:
            raise SubjectFailed(self.name, "unavailable", str(missing)) from None
        with _build_lock:
            return java, jars, compiled_classes(java, jars)

    def _limits(self, plan: Plan) -> ChildLimits:
        if self.limits is not None:
            return self.limits
        # A gauge every 5 ms beside the plan's own events; the driver gives up by itself, long before this.
        seconds = 30.0 + _give_up_ns(plan, self.tick_ns) / 1e9
        return ChildLimits(total_s=seconds, lines=100 * len(plan.steps) + int(2_000 * seconds))

    def _messages(self, plan: Plan) -> Iterator[bytes]:
        start = {"m": "start", "threads": plan.threads, "timers": plan.timers + _PROBES}
        start |= {"tick_ns": self.tick_ns, "wheel_size": self.wheel_size, "max_pending": self.max_pending}
        yield orjson.dumps(start | {"give_up_ns": _give_up_ns(plan, self.tick_ns)})
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
            raise child.failed("died", "ended without saying that it was done")
        if heard.done["events"] != len(heard.events):
            raise child.failed(
                "rubbish", f"{heard.done['events']} events announced, {len(heard.events)} came"
            )
        progress(self.name, plan.timers, plan.timers)

    def _write(self, plan: Plan, out_path: Path, heard: "_Heard", dropped: int | None) -> Path:
        params: dict[str, object] = {"seed": plan.seed, "timers": plan.timers, "threads": plan.threads}
        params |= {"java": heard.java, "late_slack_ns": LATE_SLACK_NS, "max_pending": self.max_pending}
        if heard.done:
            params |= {"control_worst_oversleep_ns": heard.done["oversleep_ns"]}
            params |= {"skipped_cancels": heard.done["skipped"], "left_open": heard.done["open"]}
        header = Header(
            run=out_path.name.split(".", 1)[0],
            implementation=Implementation(
                "io.netty.util.HashedWheelTimer", "" if self.command else self.version, "Java"
            ),
            profile=self.profile,
            timer=TimerConstants(
                tick_ns=self.tick_ns,
                wheel_size=self.wheel_size,
                early_ns=0,
                late_ns=self.tick_ns + LATE_SLACK_NS,
            ),
            clock=TraceClock("monotonic", "ns"),
            recorded=_RECORDED,
            params=params,
        )
        return write_run(out_path, header, heard.events, dropped)


def _give_up_ns(plan: Plan, tick_ns: int) -> int:
    """When a timer that has not fired by then is lost for certain: well after the declared lateness."""
    return plan.end_ns + 8 * tick_ns + 2 * LATE_SLACK_NS


class _Heard:
    """What a child has said so far."""

    def __init__(self) -> None:
        self.java = ""
        self.events: list[Event] = []
        self.done: dict[str, int] = {}
        self.settled = 0
        self.next_report = 0

    def take(self, line: bytes) -> str | None:
        """Account for one line; the answer is what is wrong with it, if anything."""
        try:
            fields: object = orjson.loads(line)
        except json.JSONDecodeError as bad:
            return f"no JSON ({bad.msg})"
        if not isinstance(fields, dict):
            return "no JSON object"
        if self.done:
            return "it said that it was done before"
        kind = fields.get("kind")
        if kind == "ready":
            self.java = str(fields.get("java", ""))
            return None
        if kind == "done":
            return self._done(fields)
        try:
            record = parse_fields(fields)
        except Refusal as refusal:
            return f"no record ({refusal})"
        if not isinstance(record, Event):
            return f"a {kind} record, which only the parent writes"
        self.events.append(record)
        if record.ph == "ret" and (record.f == "timer_fire" or (record.f == "timer_cancel" and record.out)):
            self.settled += 1
        return None

    def _done(self, fields: dict[str, object]) -> str | None:
        done: dict[str, int] = {}
        for name in ("events", "dropped", "skipped", "open", "oversleep_ns"):
            value = fields.get(name)
            if not isinstance(value, int):
                return f"done without the number {name!r}"
            done[name] = value
        self.done = done
        return None
