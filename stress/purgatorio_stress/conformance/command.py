"""A program in any language under the suite: the scenarios as calls of `purgatorio-subject/1`, in virtual time.

What it promises and lacks follows from its own description. One child plays all programs, each from a `start` of its
own; one that misbehaves ends that run, says so, and is started anew for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from purgatorio_spec.trace.record import MAX_INT
from purgatorio_stress.conformance import purgatory_program, timer_program
from purgatorio_stress.conformance.case import Kind, Program, Subject
from purgatorio_stress.conformance.contract import Promise
from purgatorio_stress.conformance.gated import GatedProgram
from purgatorio_stress.conformance.purgatory_scenarios import drawn_programs as drawn_for_purgatories
from purgatorio_stress.conformance.real_time import PlanProgram
from purgatorio_stress.conformance.timer_scenarios import drawn_programs as drawn_for_timers
from purgatorio_stress.protocol.describe import Part, header_of, profile_of
from purgatorio_stress.protocol.message import (
    Add,
    Advance,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
)
from purgatorio_stress.protocol.script import Script, ScriptPlayer
from purgatorio_stress.recording import Judged, Recording, judge
from purgatorio_stress.subject.contract import SubjectFailed

__all__ = ["CommandPlayer", "command_promise"]

_BY_CAPABILITY: Final = {
    "cancel": "cancel",
    "size": "gauge",
    "gauges": "gauge",
    "cancel-for-key": "cancel-key",
    "force": "force",
}
"""Lacks, by the capability that is not declared."""


def command_promise(description: Description) -> Promise:
    """What a program promises by its description. ValueError where it has no profile that is known."""
    tick_ns = description.tick_ns or max(1_000_000, description.unit_ns)
    lacks = {
        lack: f"it does not declare the capability {name}"
        for lack, name in _BY_CAPABILITY.items()
        if name not in description.capabilities
    }
    acts = "in the protocol a task or callback does nothing but report itself"
    lacks |= {"re-entry": acts, "raising": acts, "callbacks": acts}
    if description.unit_ns > 1:
        lacks["between-ticks"] = f"its times are multiples of {description.unit_ns} ns"
    if description.least_delay_ns > -10_000 * tick_ns:
        lacks["past"] = f"its smallest delay is {description.least_delay_ns} ns"
    if description.most_delay_ns < timer_program.NEVER_NS:
        lacks["far"] = f"its largest delay is {description.most_delay_ns} ns"
    if not {"timer_add", "timer_fire"} & set(description.reports):
        lacks["timer"] = "it reports neither timer_add nor timer_fire"
    return Promise(
        profile_of(description),
        tick_ns=tick_ns,
        early_ns=description.early_ns,
        late_ns=description.late_ns,
        wheel_size=description.wheel_size,
        longest_delay_ns=description.most_delay_ns,
        purge_interval=description.purge_interval,
        lacks=lacks,
        subject=description.name,
        version=description.version,
        language=description.language,
    )


class CommandPlayer:
    """Plays the suite's programs to the program at `command` (arguments, no shell). Close it."""

    def __init__(self, command: Sequence[str], description: Description, kind: Kind) -> None:
        self._command = tuple(command)
        self._description = description
        self._part: Part = "purgatory" if kind == "purgatory" else "timer"
        self._player: ScriptPlayer | None = None

    def subject(self, promise: Promise) -> Subject:
        """For the cases."""
        if self._part == "timer":
            return Subject(promise, self.carry_out, drawn_for_timers(promise))
        return Subject(promise, self.carry_out, drawn_for_purgatories(promise))

    def carry_out(self, program: Program) -> Judged:
        """Play and judge it."""
        return judge(self._played(program))

    def _played(self, program: Program) -> Recording:
        """Play it; what the child does wrong is in `broken_off`."""
        script = Script(self._part, 0, tuple(self._calls(program)))
        try:
            if self._player is None:
                self._player = ScriptPlayer(self._command)
            played = self._player.play(script)
        except SubjectFailed as failure:
            self.close()
            header = header_of(
                self._description, self._part, run=program.name, virtual=True, late_slack_ns=0, params={}
            )
            return Recording(header, (), str(failure))
        return Recording(replace(played.header, run=program.name), played.events)

    def close(self) -> None:
        """End the child."""
        player, self._player = self._player, None
        if player is not None:
            player.__exit__(None, None, None)

    def _calls(self, program: Program) -> Iterator[Call]:
        """The program as calls; then time goes on, tick by tick, until all that is waited for must have run, and two
        ticks at least, for a purgatory may purge when time passes."""
        gauged = "gauge" in self._description.capabilities
        tick_ns = max(self._description.tick_ns or 1_000_000, self._description.unit_ns)
        now_ns = last_ns = 0
        added: set[str] = set()
        assert not isinstance(program, PlanProgram | GatedProgram), "a command gets programs"
        for step in program.steps:
            if isinstance(step, timer_program.Pass | purgatory_program.Pass):
                for _ in range(step.times):
                    now_ns += step.by_ns
                    yield Advance(now_ns)
                if gauged:
                    yield Gauge()
                continue
            if isinstance(step, purgatory_program.Register) and step.ready == "before":
                yield Ready(step.operation)
            call = _call_of(step)
            if isinstance(call, Add | Register):
                added.add(call.id)
                if call.delay_ns < timer_program.NEVER_NS:
                    last_ns = max(last_ns, now_ns + call.delay_ns)
                yield call
            elif not isinstance(call, Cancel | Ready | Force) or call.id in added:
                yield call
        end_ns = max(now_ns, last_ns + (self._description.late_ns or 0)) + 2 * tick_ns
        while now_ns < end_ns:
            now_ns += tick_ns
            yield Advance(now_ns)


def _call_of(step: timer_program.TimerStep | purgatory_program.PurgatoryStep) -> Call:
    match step:
        case timer_program.Add():
            return Add(step.task, step.delay_ns)
        case timer_program.Cancel():
            return Cancel(step.task)
        case purgatory_program.Register():
            return Register(step.operation, tuple(dict.fromkeys(step.keys)), min(step.delay_ns, MAX_INT))
        case purgatory_program.Ready():
            return Ready(step.operation)
        case purgatory_program.Check():
            return Check(step.key)
        case purgatory_program.Force():
            return Force(step.operation)
        case purgatory_program.CancelKey():
            return CancelKey(step.key)
        case _:
            raise AssertionError(f"the protocol has no call for {step}: the scenario needs a lack")
