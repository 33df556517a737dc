"""Drives any program as a subject: `command_subjects(["node", "my.js"])` returns one subject for each of its modes.

The driver starts the program again for each run, without a shell. The program answers the call `describe` with its
promises and its modes. A mode is a part (timer or purgatory), in virtual time or in real time (see `Mode`). The clauses
judge the program by its promises.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from purgatorio_conformance.protocol.boundary_plan import REACHES_FROM
from purgatorio_conformance.protocol.conversation import Conversation, VirtualClock
from purgatorio_conformance.protocol.crowd import drive_crowds
from purgatorio_conformance.protocol.describe import (
    Part,
    hands_over,
    header_of,
    parts_of,
    plays_periodic,
    profile_of,
    reported,
)
from purgatorio_conformance.protocol.failed_run import FailedRun
from purgatorio_conformance.protocol.free_play import drive_free, free_programs
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.gate_steps import STEPS_S
from purgatorio_conformance.protocol.gates import Effort, GatedRun, Way, takes_steps
from purgatorio_conformance.protocol.halt import halt
from purgatorio_conformance.protocol.hand_over import drive_hand_over
from purgatorio_conformance.protocol.jdwp import AGENT, Listening
from purgatorio_conformance.protocol.lines import ANY_CLASS, Lines
from purgatorio_conformance.protocol.message import STEP, Description
from purgatorio_conformance.protocol.missed_deadline import past_deadlines
from purgatorio_conformance.protocol.periodic import drive_periodic
from purgatorio_conformance.protocol.played_order import Account, PlayedOrder, unfinished
from purgatorio_conformance.protocol.plays import Plays
from purgatorio_conformance.protocol.real_time import drive_real
from purgatorio_conformance.protocol.scope import crossed_pairs, scope, scope_delays
from purgatorio_conformance.protocol.script import ScriptPlayer
from purgatorio_conformance.protocol.session import Drive, Listener, OwnPeer, Session
from purgatorio_conformance.protocol.small_program import SmallProgram, delays_for
from purgatorio_conformance.protocol.timeline import fitted, shape_of, timeline
from purgatorio_conformance.protocol.virtual_time import Manner, drive_virtual, start_of_clock
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, Progress, SubjectFailed, silent
from purgatorio_conformance.subject.plan import Plan, PlanShape
from purgatorio_spec.check import check_files
from purgatorio_spec.failure import surviving
from purgatorio_spec.trace.record import Header
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.trace.trace_file import StreamedRecording, run_of_file
from purgatorio_spec.verdict import Verdict

Mode = Literal[
    "virtual-plan",
    "virtual-jumps",
    "virtual-scope",
    "real",
    "real-free",
    "virtual-gates",
    "virtual-steps",
    "real-gates",
    "real-steps",
    "virtual-periodic",
    "real-periodic",
    "virtual-units",
    "real-units",
]
TimeChoice = Literal["virtual", "real", "all"]

_MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_TOTAL_S: Final = 600.0
"""Enough for a run on a busy machine. A subject that hangs exceeds its limit of silence long before."""
_LINES_MOST: Final = 5_000_000
"""For a gated run: before each execution near a purge come enough operations to cause the purge."""
_DRAWN_MOST: Final = 800
"""The most random programs of a run, and at most half of `--operations`."""
_CROSSED_MOST: Final = 60
"""The most programs of two callers that run in all orders, and at most a thirtieth of `--operations`."""
_STEPPED_MOST: Final = 24
"""The most of these programs in which each call is paused at each of its steps."""
_PLACES_LATER: Final[dict[str, int]] = {"virtual-jumps": 2, "virtual-scope": 1}
"""By how many places the start of the clock is shifted: see `start_of_clock`."""
_UNFIT: Final = re.compile(r"[^a-z0-9_]+")
"""A dot is unfit, too: the name of a run is its file's name up to the first dot."""


def describe_command(command: Sequence[str], limits: ChildLimits | None = None) -> Description:
    """Start the program; return its description. Raises SubjectFailed: `unavailable` if no start is possible."""
    limits = limits or ChildLimits()
    with LineChild(_called(command), command, limits) as child:
        return Session(child, Conversation(Recorder()), limits).describe()


def _described(
    command: Sequence[str], limits: ChildLimits | None, lines: str | None
) -> tuple[Description, str | None, str]:
    """Return the description, the classes for pauses at lines, and a reason. The classes are None if such pauses are
    not wanted or not possible. The reason is set only if the program does not start with the debugger's agent."""
    if lines is None:
        return describe_command(command, limits), None, ""
    limits = limits or ChildLimits()
    with closing(Listening()) as listening:
        try:
            with LineChild(_called(command), command, limits, listening.environ()) as child:
                description = Session(child, Conversation(Recorder()), limits).describe()
                jvms = listening.jvms()
        except SubjectFailed as failure:
            if failure.kind != "died":
                raise
            # A JVM without this agent does not start.
            description = describe_command(command, limits)
            return description, None, f"with {AGENT} it does not start: {failure.why}"
        for jvm in jvms:
            jvm.close()
    return _with_steps(description) if jvms else description, lines if jvms else None, ""


def _with_steps(description: Description) -> Description:
    return replace(description, gates=(*(one for one in description.gates if one != STEP), STEP))


def _in_real_time(description: Description) -> Description:
    kept = (one for one in description.capabilities if one != "virtual-time")
    return replace(description, capabilities=tuple(kept))


def command_subjects(
    command: Sequence[str],
    *,
    time: TimeChoice = "all",
    limits: ChildLimits | None = None,
    label: str | None = None,
    late_slack_ns: int = LATE_SLACK_NS,
    listener: Listener | None = None,
    lines: str | None = ANY_CLASS,
) -> Sequence[CommandSubject]:
    """Return one subject for each mode of the program `command` (arguments, no shell).

    Starts the program once, for its description. `time` selects virtual or real time. `label` replaces the program's
    own name in the names of runs. `lines`: the classes of a JVM for pauses at lines, by the debugger's patterns, or
    None. Raises SubjectFailed, also if the program has no mode that can be driven.
    """
    description, lines, lost = _described(command, limits, lines)
    if time == "real":
        # No run in virtual time has the programs that otherwise only such a run has.
        description = _in_real_time(description)
    slug = _UNFIT.sub("-", (label or description.name).lower()).strip("-")[:40] or "subject"
    subjects = (
        CommandSubject(
            tuple(command), description, part, mode, slug, limits, late_slack_ns, listener, Account(lost=lost), lines
        )
        for part in parts_of(description)
        for mode in _MODES
        if (whose := mode.split("-")[0]) == time or time == "all"
        if f"{whose}-time" in description.capabilities
    )  # fmt: skip
    found = [one for one in subjects if one.can_play]
    if not found:
        raise SubjectFailed(_called(command), "unavailable", f"it has no {time} time")
    return found


@dataclass(frozen=True)
class CommandSubject:
    """One part of a program, driven in one mode; made by `command_subjects`. See `Subject`. `lines`: the classes at
    whose lines threads are paused, if a JVM with a debugger's agent runs the program. `effort`, `ways`: the number and
    the kinds of executions; by default, the number of operations and the mode determine both. `leaves_out`: selects
    small programs to leave out. `boundaries`: whether a long run in real time has the boundary plan."""

    command: tuple[str, ...]
    description: Description
    part: Part
    mode: Mode
    label: str
    limits: ChildLimits | None = None
    late_slack_ns: int = LATE_SLACK_NS
    listener: Listener | None = field(default=None, compare=False)
    account: Account = field(default_factory=Account, compare=False)
    lines: str | None = None
    effort: Effort | None = None
    ways: tuple[Way, ...] = ()
    leaves_out: Callable[[SmallProgram], bool] | None = None
    boundaries: bool = True

    @property
    def name(self) -> str:
        """A name such as `toy-wheel-timer-virtual-plan`."""
        return f"{self.label}-{self.part}-{self.mode}"

    @property
    def profile(self) -> str:
        """The declared profile, or the default profile of a timer."""
        return profile_of(self.description)

    @property
    def threads(self) -> int:
        """The number of callers. In virtual time there is one."""
        return 1 if self.virtual else self.description.lanes

    @property
    def virtual(self) -> bool:
        return self.mode.startswith("virtual")

    @property
    def kind(self) -> str:
        """The part of the mode after its clock: `gates`, `periodic`, ... The mode `real` is a `plan`."""
        return self.mode.partition("-")[2] or "plan"

    @property
    def held(self) -> bool:
        """Whether the driver pauses threads, at pause points or at steps."""
        return self.kind in ("gates", "steps")

    @property
    def small(self) -> bool:
        """Whether the run has small programs with fixed names, so that one of them can run again."""
        return self.held or self.kind == "scope"

    @property
    def of_units(self) -> bool:
        """Whether its programs test the hand-over of units. They run in order of size, so a violation is not
        minimized."""
        return self.kind == "units"

    @property
    def can_play(self) -> bool:
        """Whether the mode can run any small program. True of modes that run none."""
        description, part, kind, virtual = self.description, self.part, self.kind, self.virtual
        units = part == "purgatory" and hands_over(description)
        if units or self.of_units:
            return units and self.of_units
        if kind == "free":
            return bool(free_programs(description, part))
        if kind == "periodic":
            return part == "timer" and plays_periodic(description, virtual=virtual)
        if kind == "scope":
            return any(scope(part, scope_delays(description), description))
        delays = delays_for(description, 0)
        programs = itertools.chain(gate_programs(part, delays), crossed_pairs(part, delays, description))
        if kind == "gates":
            return any(program.ruled_out(description, virtual=virtual) is None for program in programs)
        if kind == "steps":
            steps = takes_steps(description, virtual=virtual)
            return steps and any(
                program.cannot_step(description, virtual=virtual) is None for program in programs
            )
        return True

    @property
    def tick_ns(self) -> int:
        return self.description.grain_ns

    @property
    def shape(self) -> PlanShape:
        """The delays and the number of timers that a plan may have."""
        return shape_of(self.description, self.part, virtual=self.virtual)

    def run_seeded(self, seed: int, ops: int, out_path: Path, progress: Progress) -> Path:
        return self.run(self.shape.make(seed, ops, self.threads, self.tick_ns), out_path, progress)

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`. The last 64 KiB of the program's standard error stay next to the trace: `<run>.stderr`."""
        try:
            self._record(plan, out_path, progress)
        except SubjectFailed as failure:
            failure.trace = out_path if out_path.exists() else None
            raise self._proof(plan, out_path).of(failure) from None
        if self.account.errors:
            refused = SubjectFailed(self.name, "refused", self.account.errors, out_path)
            raise self._proof(plan, out_path).of(refused)
        cut = unfinished(self.account.orders)
        if self.small and not self.account.plays:
            cut = f"no program ran, so nothing was tested: {self.account.reached or 'none fits the subject'}"
        if cut and not _breaks(out_path):
            raise SubjectFailed(self.name, "unfinished", cut, out_path)
        progress(self.name, plan.timers, plan.timers)
        return out_path

    def _record(self, plan: Plan, out_path: Path, progress: Progress) -> None:
        run = run_of_file(out_path)
        limits = self._limits(plan)
        clock = VirtualClock(self._begins_ns(plan, _PLACES_LATER.get(self.mode, 0)))
        if self.kind == "scope":
            # The programs of the scope do not test a start between two ticks; the other modes do.
            clock.now_ns -= clock.now_ns % self.tick_ns
        recorder = Recorder(clock if self.virtual else time.monotonic_ns)
        talked = Conversation(
            recorder, reported(self.description, self.part), clock if self.virtual else None
        )
        with self._child(limits) as (child, lines):
            try:
                header = self._header(run, plan)
                with StreamedRecording(recorder, out_path, header, every_s=None) as recording:
                    session = Session(child, talked, limits, self.listener, recording.flush, lines)
                    self._drive(session, child, lines, plan, progress, partial(_breaks_so_far, recording))
            except SubjectFailed as failure:
                self.account.late = self._late(talked, failure.stuck)
                self.account.oldest, self.account.unanswered = talked.oldest(), talked.stuck()
                self.account.waiting = talked.waiting()
                raise
            finally:
                self.account.errors, self.account.erred = self._told(child, talked.errors()), talked.erred
                self.account.doubted, self.account.refused = talked.doubted(), talked.refused
                if errors := child.errors():
                    out_path.with_name(f"{run}.stderr").write_bytes(errors)

    def _late(self, talked: Conversation, stuck: bool) -> Sequence[str]:
        """The tasks that wait in real time for longer than T2 allows, or operations for longer than O5. Their clause is
        broken, whenever they end. Empty if an error may have canceled a task. In a gated run, empty if the driver
        has paused a thread, or if a thread of the program runs."""
        judged = not self.virtual and not talked.errors() and (not self.held or (stuck and not talked.holds))
        if not judged or self._lost_ns is None:
            return ()
        return [one for one in talked.overdue(self._lost_ns) if one not in talked.spoilt]

    @property
    def _lost_ns(self) -> int | None:
        """The time after a deadline from which an event is too late; None without a late bound."""
        late_ns = self.description.late_ns
        return None if late_ns is None else late_ns + self.late_slack_ns

    def _told(self, child: OwnPeer, errors: str) -> str:
        """The errors of calls, with further information of a subclass."""
        return errors

    def _begins_ns(self, plan: Plan, later: int = 0) -> int:
        return start_of_clock(plan.seed, self.description, later=later)

    def player(self, limits: ChildLimits | None = None) -> ScriptPlayer:
        return ScriptPlayer(self.command, limits or self.limits)

    def _proof(self, plan: Plan, trace: Path) -> FailedRun:
        return FailedRun(
            self.player,
            self.description,
            self.part,
            self.virtual,
            self.held,
            self._limits(plan),
            self.account,
            trace,
            self._begins_ns(plan),
            partial(self._again, plan),
        )

    def _again(
        self, plan: Plan, path: Path, order: PlayedOrder | None, work_s: float | None = None
    ) -> tuple[Account, SubjectFailed | None]:
        """Run this order, or the whole plan, in a program started again. The limit of silence is doubled; `work_s`
        shortens it for a subject that works so long. The trace is kept at `path` if the run fails."""
        account, failure = self._recorded_again(plan, path, order, work_s=work_s)
        if failure is None:
            path.unlink()
        return account, failure

    def _recorded_again(
        self,
        plan: Plan,
        path: Path,
        order: PlayedOrder | None,
        listener: Listener | None = None,
        work_s: float | None = None,
    ) -> tuple[Account, SubjectFailed | None]:
        limits = self._limits(plan)
        patient = replace(limits, silence_s=2 * limits.silence_s, work_s=work_s)
        again = replace(self, account=Account(only=order), limits=patient, listener=listener)
        try:
            again._record(plan, path, silent)
        except SubjectFailed as failure:
            return again.account, failure
        return again.account, None

    def play_again(self, path: Path, order: PlayedOrder, listener: Listener) -> SubjectFailed | None:
        """Start the program again, run one order of a small program, and record it at `path`. Return the failure."""
        return self._recorded_again(self.shape.make(1, 1, 1, self.tick_ns), path, order, listener)[1]

    @contextmanager
    def _child(self, limits: ChildLimits) -> Iterator[tuple[OwnPeer, Lines | None]]:
        """The program, and its lines if threads are paused at them."""
        if self.lines is None or not self.held:
            with LineChild(self.name, self.command, limits) as child:
                yield child, None
            return
        with (
            closing(Listening()) as listening,
            LineChild(self.name, self.command, limits, listening.environ()) as child,
            closing(Lines(child, listening, self.lines)) as lines,
        ):
            yield child, lines

    def _drive(
        self,
        session: Session,
        child: OwnPeer,
        lines: Lines | None,
        plan: Plan,
        progress: Progress,
        judge: Callable[[], bool],
    ) -> None:
        again = session.describe()
        if self.lines is not None:
            again = _with_steps(again)
        if "virtual-time" not in self.description.capabilities:
            again = _in_real_time(again)
        if replace(again, n=self.description.n) != self.description:
            raise child.failed("rubbish", "its description differs from its first description")
        flat = "no-re-entry" in self.description.capabilities and not self.small
        gates = () if flat else self.description.gates
        drive = Drive(
            session,
            replace(self.description, gates=gates),
            self.part,
            plan.seed,
            plan.timers,
            lambda done: progress(self.name, done, plan.timers),
        )
        periodic = self.kind == "periodic"
        if self.small:
            alone = self.kind == "scope" and self.description.lanes == 1
            with child.on_one_processor() if alone else nullcontext():
                self._drive_small(drive, child, lines, judge)
        elif self.kind == "free":
            self.account.reached = drive_free(drive)
        elif periodic:
            drive_periodic(drive)
        elif self.of_units:
            with child.on_one_processor() if self.virtual else nullcontext():
                self.account.reached = drive_hand_over(drive)
        else:
            with child.on_one_processor() if self.virtual else nullcontext():
                self._drive_plan(drive, child, plan)
        if self.kind == "plan" or (periodic and self.part == "timer"):
            halt(drive, periodic=periodic)
        session.finish()

    def _drive_small(
        self, drive: Drive, child: OwnPeer, lines: Lines | None, judge: Callable[[], bool]
    ) -> None:
        if lines is not None and not lines.connect():
            raise child.failed("died", "its JVM no longer answers the debugger's protocol")
        # In real time, the driver waits for each expiry, so fewer programs run.
        part = 1 if self.virtual else 4
        effort = Effort(
            drawn=min(_DRAWN_MOST, drive.operations // 2),
            scope=drive.operations,
            # A small run may have no other program.
            crossed=max(1, min(_CROSSED_MOST, drive.operations // 30) // part),
            stepped=_STEPPED_MOST // (1 if self.kind == "steps" else part),
        )
        effort = self.effort or effort
        judged = judge if effort.ends else None
        plays = Plays(drive.session, self.description, self.part, lines=lines, judge=judged)
        self.account.plays = plays.played
        run = GatedRun(
            plays,
            lambda share: drive.tell(int(share * drive.operations)),
            drive.seed,
            effort,
            self.leaves_out,
        )
        self.account.orders = run.orders
        try:
            run.drive(self._ways(), self.account.only)
        except SubjectFailed:
            self.account.under_way, self.account.broke_off = plays.under_way, True
            self.account.in_turn = plays.in_turn_now
            since_rest = [*plays.played[plays.rested :], *filter(None, [plays.under_way])]
            self.account.suspects = tuple(dict.fromkeys(reversed(since_rest)))
            raise
        finally:
            if self.virtual:
                self.account.erring = plays.erred or plays.under_way
        self.account.reached = run.reached
        if lines is not None and lines.unknown:
            self.account.lost = lines.unknown
        if self.virtual and self.kind == "gates" and not plays.broken and self.account.only is None:
            plays.stop_while_due()

    def _ways(self) -> Sequence[Way]:
        if self.ways:
            return self.ways
        if self.kind == "scope":
            return ("scope",)
        if self.kind == "steps":
            return ("alone", "drawn")
        # The ways are divided so that both runs take about as long.
        if takes_steps(self.description, virtual=self.virtual):
            return ("orders", "beside")
        alone = self.virtual or "virtual-time" not in self.description.capabilities
        return ("orders", "drawn") if alone else ("orders",)

    def _drive_plan(self, drive: Drive, child: OwnPeer, plan: Plan) -> None:
        real = not self.virtual
        one_lane = self.description if real else replace(self.description, lanes=1)
        fit = fitted(plan, self.shape, self.part, one_lane)
        dues = timeline(fit, self.part, one_lane)

        reaches = self.boundaries and plan.timers >= REACHES_FROM

        def tell(done: int) -> None:
            # The phases beyond the plan take about as long as the plan.
            drive.tell(min(done, fit.timers) // (2 if reaches or not real else 1))

        told = replace(drive, tell=tell)
        if real:
            drive_real(told, dues, self._give_up_ns(fit), self._lost_ns, reaches=reaches)
            if reaches:
                self.account.left_out = past_deadlines(told, child.threads())
        else:
            manner: Manner = "plan" if self.kind == "plan" else "jumps"
            self.account.left_out = drive_virtual(told, dues, manner)
            if manner == "plan" and plan.timers >= REACHES_FROM:
                drive_crowds(told)

    def _header(self, run: str, plan: Plan) -> Header:
        of = self.description
        # A paused thread keeps others from their deadlines, so a run with pauses has no late bound.
        paused = self.held and of.late_ns is not None
        return header_of(
            replace(of, late_ns=None) if paused else of,
            self.part,
            run=run,
            virtual=self.virtual,
            late_slack_ns=0 if self.virtual or self.held else self.late_slack_ns,
            params={
                "seed": plan.seed,
                "timers": plan.timers,
                "mode": self.mode,
                **({"paused": True} if paused else {}),
            },
            periodic=self.kind == "periodic",
            resets=self._resets,
        )

    @property
    def _resets(self) -> bool:
        """Whether its programs have resets, besides those with periodic tasks."""
        resets = self.small or self.kind == "free" or (self.kind == "plan" and self.threads > 1)
        return resets and self.part == "timer" and "reset" in self.description.capabilities

    def _give_up_ns(self, plan: Plan) -> int:
        return plan.end_ns + (self.description.late_ns or 0) + 2 * self.late_slack_ns

    def _limits(self, plan: Plan) -> ChildLimits:
        if self.limits is not None:
            return self.limits
        if self.small or self.kind == "free":
            return ChildLimits(total_s=2 * STEPS_S, lines=_LINES_MOST)
        real_s = 0.0 if self.virtual else 60.0 + 4 * self._give_up_ns(plan) / 1e9
        return ChildLimits(
            total_s=_TOTAL_S + real_s + 0.02 * plan.timers, lines=1_000_000 + 100 * len(plan.calls)
        )


def _called(command: Sequence[str]) -> str:
    return Path(command[0]).name if command else "command"


def _breaks_so_far(recording: StreamedRecording) -> bool:
    recording.flush()
    # An error here does not end the run: the judgement of the whole trace reports it.
    with surviving("judging so far", []):
        return _breaks(recording.path)
    return False


def _breaks(trace: Path) -> bool:
    """Whether the trace breaks a promise. The trace may be incomplete."""
    return check_files([trace]).runs[0].verdict is Verdict.VIOLATED
