"""A subject with its own clock, driven by the driver of the protocol `purgatorio-subject/1`."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from purgatorio_conformance.protocol.driver import CommandSubject, Mode, TimeChoice, command_subjects
from purgatorio_conformance.protocol.session import Listener
from purgatorio_conformance.subject.contract import Progress, SubjectFailed
from purgatorio_conformance.subject.oversleep import Oversleep
from purgatorio_conformance.subject.plan import MS, Plan, PlannedCall, PlanShape
from purgatorio_spec.trace.columns import fields_of
from purgatorio_spec.trace.parse import Refusal, parse_line
from purgatorio_spec.trace.record import MAX_INT, End, Event, Header
from purgatorio_spec.trace.trace_file import run_of_file, write_run


@dataclass(frozen=True, kw_only=True)
class DrivenSubject(ABC):
    """One configuration of a timer or purgatory, driven by the protocol's driver in one `mode`. `refuses`: the timer
    may refuse an add by an exception. `wall_clock`: the early bound grows by any forward change of the wall clock
    during the run (0 in nearly every run)."""

    name: str
    profile: str = "timer"
    mode: Mode = "real"
    threads: int = 1
    tick_ns: int = MS
    shape: PlanShape = field(default_factory=PlanShape)
    refuses: bool = False
    wall_clock: bool = False

    @property
    @abstractmethod
    def version(self) -> str:
        """The version as its makers name it. Raises SubjectFailed, kind `unavailable`, if it is not installed."""

    @abstractmethod
    def driven(self, plan: Plan, listener: Listener) -> CommandSubject:
        """The subject of the protocol's driver that can execute this plan."""

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`. For periodic tasks, only the seed and the number of tasks of the plan are used."""
        told, control = _ToldTimes(), Oversleep()
        control.start()
        path = out_path.with_name(f"{run_of_file(out_path)}.jsonl")
        failed: SubjectFailed | None = None
        try:
            # If it is not installed, this raises the reason before the run begins.
            _ = self.version
            fit = self.shape.fit(plan)
            # Its timers are known, and the boundary plan takes half a minute.
            driven = replace(self.driven(fit, told.hear), boundaries=False)
            driven.run(fit, path, lambda _, *share: progress(self.name, *share))
        except SubjectFailed as failure:
            failed = failure
        finally:
            params = control.stop()
            ended = path.exists() and self._rewrite(path, out_path, told, params, control.shift_ns)
        if failed is not None and not (ended and self.refuses and failed.kind == "refused"):
            failed.subject, failed.trace = self.name, failed.trace and (out_path if ended else path)
            raise failed
        return out_path if ended else path

    def _rewrite(
        self, path: Path, out_path: Path, told: _ToldTimes, params: Mapping[str, object], shift_ns: int
    ) -> bool:
        """Write the trace again, with facts that are known only at the end. Returns whether the run came to its end:
        then the new trace is at `out_path`, and has the times that the program reported."""
        with path.open("rb") as lines:
            header = parse_line(lines.readline())
            assert isinstance(header, Header), "written by the driver"
            end = _end_of(path)
            early_ns = header.timer.early_ns
            if self.wall_clock and early_ns is not None:
                # In a run that broke off, it is unknown whether the wall clock was set.
                early_ns = None if end is None else early_ns + shift_ns
            timer = replace(header.timer, early_ns=early_ns)
            header = replace(header, timer=timer, params={**header.params, **params})
            # Until the second trace is complete, the first one stays: a kill loses nothing.
            place = path if end is None else out_path
            whole = place.with_name(f".{place.name}")
            if end is None:
                # Ctrl-C waits for this, so no event is read.
                with whole.open("wb") as begun:
                    begun.write(orjson.dumps(fields_of(header), option=orjson.OPT_APPEND_NEWLINE))
                    shutil.copyfileobj(lines, begun)
            else:
                events = [told.exact(one) for one in map(parse_line, lines) if isinstance(one, Event)]
                # From 0, so that the times in the text of a violation are short.
                began_t = min((one.t for one in events), default=0)
                write_run(whole, header, (_sooner(one, began_t) for one in events), end.dropped)
        whole.replace(place)
        if place != path:
            path.unlink()
        return end is not None


@dataclass(frozen=True, kw_only=True)
class ProgramSubject(DrivenSubject):
    """A timer in a program that speaks the protocol. `lost_ns`: one more task is added, with a deadline this long after
    all others. A task that has not fired when this last task fires is lost."""

    lost_ns: int = 0

    @abstractmethod
    def command(self) -> tuple[str, ...]:
        """Raises SubjectFailed, kind `unavailable`, if a part of the program is not installed."""

    def driven(self, plan: Plan, listener: Listener) -> CommandSubject:
        time: TimeChoice = "virtual" if self.mode.startswith("virtual") else "real"
        found = command_subjects(self.command(), time=time, label=self.name, lines=None, listener=listener)
        return next(one for one in found if one.mode == self.mode)

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        if self.lost_ns:
            last = PlannedCall(plan.end_ns + self.lost_ns, 0, plan.timers, 2 * self.tick_ns)
            end_ns = last.at_ns + 2 * self.tick_ns
            plan = replace(plan, timers=plan.timers + 1, calls=(*plan.calls, last), end_ns=end_ns)
        return super().run(plan, out_path, progress)


def _sooner(event: Event, by_ns: int) -> Event:
    """The event, with its times reduced. The largest time stays, because it means "never"."""
    times = {name: getattr(event, name) for name in ("t", "t_call", "deadline_t")}
    return event._replace(**{name: t - by_ns for name, t in times.items() if t not in (None, MAX_INT)})


def _end_of(path: Path) -> End | None:
    """The end record of a trace of JSON lines. A trace whose last line was cut has none."""
    with path.open("rb") as lines, suppress(Refusal):
        last = parse_line(deque(lines, 1).pop())
        return last if isinstance(last, End) else None
    return None


class _ToldTimes:
    """The times that Purgatorio's own adapters report in the field `x_t`: the start of an add or reset, and the start
    and end of a function. The clock is `CLOCK_MONOTONIC`. The times do not include the transfer of the message."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, Any]] = {}
        self._deadlines: defaultdict[str, deque[int]] = defaultdict(deque)
        """By task, the deadlines of its adds and resets that are not yet written, in order."""
        self._told: defaultdict[tuple[str, ...], deque[int]] = defaultdict(deque)

    def hear(self, way: str, line: bytes) -> None:
        """Hear a line of the session. See `Listener`."""
        if way == ">":
            call = orjson.loads(line)
            self._calls[call["n"]] = call
        elif b'"x_t"' in line:
            with suppress(orjson.JSONDecodeError, KeyError, TypeError):
                said = orjson.loads(line)
                if said["m"] == "answer":
                    call = self._calls[said["n"]]
                    if call["m"] in ("add", "reset") and "err" not in said:
                        self._due(said["x_t"], call["id"], call["delay_ns"])
                else:
                    self._told[_thread(said, self._calls), said["m"], said["f"], said["id"]].append(
                        said["x_t"]
                    )

    def _due(self, begun_t: int, name: str, delay_ns: int) -> None:
        self._deadlines[name].append(min(MAX_INT, begun_t + max(0, delay_ns)))

    def exact(self, event: Event) -> Event:
        """The event with the times that the subject reported."""
        name = event.id
        if name is None:
            return event
        told = self._told[event.th, "enter" if event.ph == "call" else "leave", event.f, name]
        if told and event.ph != "at":
            event = event._replace(t=told.popleft())
            if event.delay_ns is not None:
                self._due(event.t, name, event.delay_ns)
        if event.deadline_t is not None and self._deadlines[name]:
            return event._replace(deadline_t=self._deadlines[name].popleft())
        return event


def _thread(said: Mapping[str, Any], calls: Mapping[int, Mapping[str, Any]]) -> str:
    if "during" in said:
        return f"caller-{calls[said['during']].get('lane', 0)}"
    return f"subject/{said['th']}" if "th" in said else "subject"
