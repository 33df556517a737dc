"""Tests a program in any language with the suite: the scenarios become calls of `purgatorio-subject/1`, in virtual
time.

The description of the program determines its promises and lacks. One child process executes all test programs, each
from its own `start`. If the child misbehaves, the current run ends with a message, and the child is started again for
the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from purgatorio_conformance.protocol.describe import Part, header_of, profile_of
from purgatorio_conformance.protocol.message import Add, Call, Description, Register, Repeat, Reset
from purgatorio_conformance.protocol.script import AtGate, ScriptPlayer, ScriptStep
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite.case import Kind, Subject
from purgatorio_conformance.suite.contract import CAPABILITIES, OFFERS, Promise
from purgatorio_conformance.suite.gated import of_command, play
from purgatorio_conformance.suite.program import NEVER_NS, CallProgram, GatedProgram, Program
from purgatorio_conformance.suite.purgatory_scenarios import drawn_programs as drawn_for_purgatories
from purgatorio_conformance.suite.timer_scenarios import drawn_programs as drawn_for_timers
from purgatorio_spec.recording import Judged, Recording, judge


def command_promise(description: Description) -> Promise:
    """What a program promises by its description. ValueError where it has no profile that is known."""
    tick_ns = description.tick_ns or max(MS, description.unit_ns)
    lacks = {
        lack: f"it does not declare the capability {name}"
        for lack, name in CAPABILITIES.items()
        if name not in description.capabilities
    }
    for lack, needed in (("re-entry", {"timer_fire"}), ("callbacks", {"try_complete", "on_complete"})):
        if missing := needed.difference(description.gates):
            lacks[lack] = f"it has no gate at {' or '.join(sorted(missing))}"
    if "re-entry" in lacks and "timer" in description.capabilities:
        lacks["raising"] = lacks["re-entry"]
    if description.unit_ns > 1:
        lacks["between-ticks"] = f"its times are multiples of {description.unit_ns} ns"
    if description.least_delay_ns > 0:
        lacks["past"] = f"its smallest delay is {description.least_delay_ns} ns"
    if description.most_delay_ns < NEVER_NS:
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
        offers=tuple(offer for offer in OFFERS if offer in description.capabilities),
        catch_up=description.catch_up,
        turn=description.turn,
    )


class CommandPlayer:
    """Plays the suite's programs to the program at `command` (arguments, no shell). Close it."""

    def __init__(self, command: Sequence[str], description: Description, kind: Kind) -> None:
        self._command = tuple(command)
        self._description = description
        self._part: Part = "purgatory" if kind == "purgatory" else "timer"
        self._player: ScriptPlayer | None = None
        self._promise = command_promise(description)

    def subject(self, promise: Promise) -> Subject:
        """For the cases."""
        if self._part == "timer":
            return Subject(promise, self.carry_out, drawn_for_timers(promise))
        return Subject(promise, self.carry_out, drawn_for_purgatories(promise))

    def carry_out(self, program: Program) -> Judged:
        """Play and judge it; what the child does wrong is in `broken_off`."""
        if isinstance(program, GatedProgram):
            return play(program, of_command(self._promise, self._part, self._description, self._command))
        assert isinstance(program, CallProgram), "plans are for real time"
        script = program.script(self._part, self._description)
        script = replace(script, calls=tuple(map(self._taken, script.calls)))
        try:
            if self._player is None:
                self._player = ScriptPlayer(self._command)
            played = self._player.tried(script)
            if played.failure is not None:
                self.close()
            return judge(played.recording(program.name))
        except SubjectFailed as failure:
            self.close()
            header = header_of(
                self._description, self._part, run=program.name, virtual=True, late_slack_ns=0, params={}
            )
            return judge(Recording(header, (), str(failure)))

    def _taken(self, step: ScriptStep) -> ScriptStep:
        """With the smallest delay that the program takes in place of one below."""
        if isinstance(step, AtGate):
            return replace(step, calls=tuple(map(self._taken_call, step.calls)))
        return self._taken_call(step)

    def _taken_call(self, call: Call) -> Call:
        if isinstance(call, Add | Register | Repeat | Reset):
            return replace(call, delay_ns=max(call.delay_ns, self._description.least_delay_ns))
        return call

    def close(self) -> None:
        """End the child."""
        player, self._player = self._player, None
        if player is not None:
            player.close()
