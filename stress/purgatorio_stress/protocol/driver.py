"""Any program as a subject: `command_subjects(["node", "my.js"])` gives subjects like the built-in ones.

The program is started anew for each run, without a shell. It is held to what it declares in answer to `describe`, and
is driven in every way that it declares: as a timer and as a purgatory, in virtual time in two manners, in real time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, get_args

from purgatorio_spec.check import check_files
from purgatorio_spec.show.visible import first_few
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.protocol.conversation import Conversation
from purgatorio_stress.protocol.describe import Part, header_of, parts_of, profile_of, reported
from purgatorio_stress.protocol.free_play import drive_free, free_programs
from purgatorio_stress.protocol.gate_play import Plays
from purgatorio_stress.protocol.gate_program import CLASSES, OTHER_WAYS, delays_for, gate_programs
from purgatorio_stress.protocol.gate_steps import STEPS_S
from purgatorio_stress.protocol.gates import GatedRun, Way, takes_steps
from purgatorio_stress.protocol.jdwp import AGENT, Listening
from purgatorio_stress.protocol.lines import ANY_CLASS, Lines
from purgatorio_stress.protocol.message import STEP, Add, Advance, Call, Cancel, Description, Force, Register
from purgatorio_stress.protocol.played_order import (
    AGAIN,
    BROKEN,
    RACED,
    Orders,
    PlayedOrder,
    comes_of_order,
    unfinished,
)
from purgatorio_stress.protocol.read_back import about, concerned, leaping, script_of
from purgatorio_stress.protocol.real_time import drive_real
from purgatorio_stress.protocol.script import Script, ScriptPlayer
from purgatorio_stress.protocol.session import Listener, Session
from purgatorio_stress.protocol.timeline import fitted, shape_of, timeline
from purgatorio_stress.protocol.virtual_time import (
    VirtualClock,
    drive_virtual,
    longest_jump_ns,
    start_of_clock,
)
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.child import ChildLimits, LineChild
from purgatorio_stress.subject.contract import LATE_SLACK_NS, FailureKind, Progress, SubjectFailed, silent
from purgatorio_stress.subject.plan import MS, Plan, PlanShape
from purgatorio_stress.trace_file import StreamedRecording, run_of_file

Mode = Literal[
    "virtual-steps",
    "virtual-jumps",
    "real",
    "real-free",
    "virtual-gates",
    "virtual-lines",
    "real-gates",
    "real-lines",
]
TimeChoice = Literal["virtual", "real", "all"]

_MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_TOTAL_S: Final = 600.0
"""More than a run takes where many others run: who hangs is silent long before."""
_DRAWN_MOST: Final = 1_000
"""So many programs are drawn, or half as many as operations were asked for."""
_ALONE_MOST: Final = 20
"""So many of those that waited are tried, each alone."""
_ENDLESS_S: Final = 10.0
"""Who worked so long in one call, where there is next to nothing to do, does not come to an end."""
_ENDLESS_TICKS: Final = 1_000
"""Time goes on by so many ticks at most there: some timers look at each."""
_UNFIT: Final = re.compile(r"[^a-z0-9_]+")
"""No dot either: a run is called by its file's name up to the first one."""


def describe_command(command: Sequence[str], limits: ChildLimits | None = None) -> Description:
    """What the program says of itself. Raises SubjectFailed: `unavailable` where it cannot be started."""
    limits = limits or ChildLimits()
    with LineChild(_called(command), command, limits) as child:
        return Session(child, Conversation(Recorder()), limits).describe()


def _described(
    command: Sequence[str], limits: ChildLimits | None, lines: str | None
) -> tuple[Description, str | None, str]:
    """What the program says of itself; `lines` if its threads can be stopped at those; and why not, if that is no wish
    and no matter of course."""
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
            # Its JVM may have no such agent, and then does not start.
            description = describe_command(command, limits)
            return description, None, f"with {AGENT} it does not start: {failure.why}"
        for jvm in jvms:
            jvm.close()
    return _with_steps(description) if jvms else description, lines if jvms else None, ""


def _with_steps(description: Description) -> Description:
    return replace(description, gates=(*(one for one in description.gates if one != STEP), STEP))


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
    """One subject for every way in which the program at `command` (arguments, no shell) can be driven.

    Starts it once, for its description. `time` leaves only virtual or real time; `label` replaces the program's own
    name in the names of runs. `lines`: of what classes of a JVM, by the debugger's patterns; None for none. Raises
    SubjectFailed, as well where nothing is left to drive.
    """
    description, lines, lost = _described(command, limits, lines)
    slug = _UNFIT.sub("-", (label or description.name).lower()).strip("-")[:40] or "subject"
    found = [
        CommandSubject(
            tuple(command),
            description,
            part,
            mode,
            slug,
            limits,
            late_slack_ns,
            listener,
            Account(lost=lost),
            lines,
        )
        for part in parts_of(description)
        for mode in _MODES
        if (whose := mode.split("-")[0]) == time or time == "all"
        if f"{whose}-time" in description.capabilities and _can_play(description, part, mode)
    ]
    if not found:
        raise SubjectFailed(_called(command), "unavailable", f"it does not know {time} time")
    return found


def _can_play(description: Description, part: Part, mode: Mode) -> bool:
    """Whether any of the small programs can be played; true of modes that play none."""
    virtual = mode.startswith("virtual")
    if mode == "real-free":
        return bool(free_programs(description, part))
    programs = gate_programs(part, delays_for(description, 0))
    if mode.endswith("-gates"):
        return any(program.ruled_out(description, virtual=virtual) is None for program in programs)
    if mode.endswith("-lines"):
        steps = takes_steps(description, virtual=virtual)
        return steps and any(program.steps(description, virtual=virtual) is None for program in programs)
    return True


TWICE: Final = "on a fresh start, after the same calls, it does not return in twice the time"
"""Why a hang in which nothing runs is a deadlock."""

ALONE: Final = "it does so too in a program started anew, with no other task or operation"
"""Why an error is no refusal: nothing is too much there, and the description takes the call. And why who works is not
slow: there is next to nothing to do."""


@dataclass
class Account:
    """What came of the last run: the orders that were played with gates, by the number of the play and by program; what
    was `left_out` of the reaching parts; what `errors` calls ended with, or nothing, the type of the first of them, and
    with gates in virtual time the order in which it came (`erred`, `erring`); the first call that did (`refused`). Of a
    run that failed: that it `broke_off`, if that was with gates, the order `under_way`, the `oldest` call without an
    answer and its number, the names of all of them, what was `late` by then, and what was `waiting`, each since when.
    `doubted`: what looks like a mistake of the adapter's. `lost`: why a JVM's threads could not be stopped at lines, or
    nothing. `only`: the one order that the next run plays."""

    plays: list[PlayedOrder] = field(default_factory=list)
    orders: list[Orders] = field(default_factory=list)
    left_out: str = ""
    errors: str = ""
    erred: Sequence[str] = ()
    erring: PlayedOrder | None = None
    refused: Call | None = None
    waiting: Sequence[tuple[int, Add | Register]] = ()
    broke_off: bool = False
    under_way: PlayedOrder | None = None
    oldest: tuple[int, Call] | None = None
    unanswered: list[str] = field(default_factory=list)
    late: Sequence[str] = ()
    doubted: Sequence[str] = ()
    lost: str = ""
    only: PlayedOrder | None = None


def _parts(subjects: Sequence[CommandSubject]) -> Iterator[tuple[str, Part, list[CommandSubject]]]:
    """The parts of programs, as they are called, and the ways in which each was driven."""
    for label, part in dict.fromkeys((subject.label, subject.part) for subject in subjects):
        yield (
            f"{label} {part}",
            part,
            [subject for subject in subjects if (subject.label, subject.part) == (label, part)],
        )


def _looked(ways: Sequence[CommandSubject]) -> dict[str, int]:
    """The classes of bugs that were looked for by small programs, each with the number of its plays."""
    plays: dict[str, int] = {}
    for orders in (orders for way in ways for orders in way.account.orders if not orders.skipped):
        plays[orders.program.looks_for] = plays.get(orders.program.looks_for, 0) + orders.plays
    return plays


def looked_for(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """Of each program and part, by its name: the classes of bugs that were looked for, and how often."""
    return [
        (
            name,
            "looked for, in so many plays: " + "; ".join(f"{one} {plays:,}" for one, plays in looked.items()),
        )
        for name, _, ways in _parts(subjects)
        if (looked := _looked(ways))
    ]


def not_looked_for(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """Of each program and part, by its name: the classes of bugs that nothing was done to find, or that only luck could
    find on free lanes, by the reason, and what was left out."""
    found: list[tuple[str, str]] = []
    for name, part, ways in _parts(subjects):
        looked = _looked(ways)
        gated = [way for way in ways if way.held]
        lacks: dict[str, list[str]] = {}
        for orders in (orders for way in gated for orders in way.account.orders):
            lacks.setdefault(orders.program.looks_for, []).append(orders.skipped)
        broke_off = any(way.account.broke_off or not way.account.orders for way in gated)
        left = "left to luck" if any(way.mode == "real-free" for way in ways) else "not looked for"
        missing: dict[str, list[str]] = {}
        for looks_for in (one for one in CLASSES[part] if one not in looked):
            none = "the run with gates broke off" if broke_off else "no gates"
            # What a promise that was broken kept from being played is no lack of the subject's, and what one way cannot
            # play another may.
            why = min(lacks.get(looks_for, [none]), key=lambda one: (one != BROKEN, one in OTHER_WAYS))
            missing.setdefault(why, []).append(looks_for)
        found += [(name, f"{left} ({why}): {'; '.join(these)}") for why, these in missing.items()]
        lost = dict.fromkeys(way.account.lost for way in ways if way.account.lost)
        found += [(name, f"what lies between two lines was not looked for: {why}") for why in lost]
        found += [(way.name, f"left out: {way.account.left_out}") for way in ways if way.account.left_out]
    return found


def doubted(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """Of each program and part, by its name: what looks like a mistake of its adapter's, with the first run that does,
    and which only who wrote that can tell from one of what it drives."""
    found: list[tuple[str, str]] = []
    for name, _, ways in _parts(subjects):
        first: dict[str, str] = {}
        for way in ways:
            for doubt in way.account.doubted:
                said = f"perhaps a mistake of the adapter's ({way.mode}): {doubt}"
                first.setdefault(doubt.partition("'")[0], said)
        found += [(name, told) for told in first.values()]
    return found


@dataclass(frozen=True)
class CommandSubject:
    """A program, one part of it, driven in one manner; made by `command_subjects`. See `Subject`. `lines`: the classes
    at whose lines threads are stopped, if it runs on a JVM that can be asked for that."""

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

    @property
    def name(self) -> str:
        """`toy-wheel-timer-virtual-steps`."""
        return f"{self.label}-{self.part}-{self.mode}"

    @property
    def version(self) -> str:
        """What the program says."""
        return self.description.version

    @property
    def profile(self) -> str:
        """What the program says, or what follows for a plain timer."""
        return profile_of(self.description)

    @property
    def threads(self) -> int:
        """Its lanes in real time; in virtual time there is one."""
        return 1 if self.virtual else self.description.lanes

    @property
    def virtual(self) -> bool:
        """Whether the driver's clock counts."""
        return self.mode.startswith("virtual")

    @property
    def held(self) -> bool:
        """Whether its threads are stopped, at gates or at steps."""
        return self.mode.endswith(("-gates", "-lines"))

    @property
    def tick_ns(self) -> int:
        """Its granularity, or a millisecond where it names none."""
        return self.description.tick_ns or max(MS, self.description.unit_ns)

    @property
    def shape(self) -> PlanShape:
        """What its plans may ask for."""
        return shape_of(self.description, self.part, virtual=self.virtual)

    def run_seeded(self, seed: int, ops: int, out_path: Path, progress: Progress) -> Path:
        """Run the plan of a seed, with so many timers or operations."""
        return self.run(self.shape.make(seed, ops, self.threads, self.tick_ns), out_path, progress)

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`. What the program wrote on standard error, its last 64 KiB, is kept beside the trace as
        `<run>.stderr`."""
        try:
            self._record(plan, out_path, progress)
        except SubjectFailed as failure:
            failure.trace = out_path if out_path.exists() else None
            raise self._judged(plan, out_path, failure) from None
        if self.account.errors:
            raise self._judged(
                plan, out_path, SubjectFailed(self.name, "refused", self.account.errors, out_path)
            )
        if (cut := unfinished(self.account.orders)) and not _breaks(out_path):
            raise SubjectFailed(self.name, "unfinished", cut, out_path)
        progress(self.name, plan.timers, plan.timers)
        return out_path

    def _judged(self, plan: Plan, trace: Path, failure: SubjectFailed) -> SubjectFailed:
        """The failure, or the promise that it is proved to break."""

        def breaks(clause: str, kind: FailureKind, why: str) -> SubjectFailed:
            return SubjectFailed(self.name, kind, f"{clause} is broken: {why}", failure.trace)

        if failure.kind == "hang":
            again = trace.with_name(f"{run_of_file(trace)}-deadlock.jsonl")
            if proof := self._deadlock(plan, again, failure.stuck and not failure.idle):
                return breaks("P3", "deadlock", f"{failure.why}; its trace is {again.name}; {proof}")
            if self._is_endless(plan, failure):
                return breaks("P3", "endless", f"{failure.why}; {ALONE}")
            if late := self.account.late:
                clause, lost = ("T2", "run") if self.part == "timer" else ("O5", "end")
                why = f"{first_few(late)} did not {lost} in the lateness that is allowed; {failure.why}"
                return breaks(clause, "late", why)
        if failure.kind == "refused":
            errors = "; ".join(dict.fromkeys(filter(None, (self.account.errors, failure.why))))
            if self._is_raced(plan, trace):
                return breaks("P3", "raced", f"{errors}; {RACED}")
            if not self.account.broke_off and self._raises(plan, trace):
                return breaks("P3", "raises", f"{failure.why}; {ALONE}")
        return failure

    def _record(self, plan: Plan, out_path: Path, progress: Progress) -> None:
        run = run_of_file(out_path)
        limits = self._limits(plan)
        clock = VirtualClock(
            start_of_clock(plan.seed, self.description, later=2 * (self.mode == "virtual-jumps"))
        )
        recorder = Recorder(clock if self.virtual else time.monotonic_ns)
        talked = Conversation(recorder, reported(self.description, self.part), virtual=self.virtual)
        with self._child(limits) as (child, lines):
            try:
                header = self._header(run, plan)
                with StreamedRecording(recorder, out_path, header, every_s=None) as recording:
                    session = Session(lines or child, talked, limits, self.listener, recording.flush)
                    self._drive(
                        session, child, lines, clock, plan, progress, lambda: _breaks_so_far(recording)
                    )
                self.account.errors, self.account.erred = talked.errors(), talked.erred
                self.account.doubted = talked.doubted()
                self.account.refused = talked.refused
            except SubjectFailed as failure:
                self.account.late = self._late(talked, failure.stuck)
                self.account.errors, self.account.erred = talked.errors(), talked.erred
                self.account.doubted = talked.doubted()
                self.account.oldest, self.account.unanswered = talked.oldest(), talked.stuck()
                self.account.refused = talked.refused
                self.account.waiting = talked.waiting()
                raise
            finally:
                if errors := child.errors():
                    out_path.with_name(f"{run}.stderr").write_bytes(errors)

    def _late(self, talked: Conversation, stuck: bool) -> Sequence[str]:
        """The tasks that wait in real time for longer than T2 allows, or operations for longer than O5: whenever they
        are over, it is broken. None where an error may have taken one back; with gates, none while we hold a thread, or
        where one of the program's runs."""
        judged = not self.virtual and not talked.errors() and (not self.held or (stuck and not talked.holds))
        if not judged or self._lost_ns is None:
            return ()
        return [one for one in talked.overdue(self._lost_ns) if one not in talked.spoilt]

    @property
    def _lost_ns(self) -> int | None:
        """So long after its deadline what has not happened is too late, whenever it comes."""
        late_ns = self.description.late_ns
        return None if late_ns is None else late_ns + self.late_slack_ns

    def _deadlock(self, plan: Plan, path: Path, stuck: bool) -> str:
        """Why a call of this run that did not return never will, or nothing. With gates: in its order of threads it
        hangs again in a program started anew, and the calls return where they are made one after the other. Or the
        whole run hangs there again, and both times nothing in it runs (`stuck`): who runs may be slow, and where no
        lane has a call, the adapter lost it. The second trace is at `path`."""
        first = self.account.under_way

        def unanswered(order: PlayedOrder) -> Sequence[str] | None:
            place = path if order == first else path.with_name(f"{path.stem}-control.jsonl")
            again, failure = self._again(plan, place, order)
            hung = failure is None or (failure.kind == "hang" and again.under_way)
            return again.unanswered if hung else None

        if not self.virtual:
            return ""
        if first is not None and comes_of_order(first, self.account.unanswered, unanswered):
            return AGAIN
        if not stuck or not self.account.unanswered:
            return ""
        again, failure = self._again(plan, path, None)
        hung = failure is not None and failure.kind == "hang" and failure.stuck
        # With gates a call's number is not always the same.
        same = (
            again.unanswered == self.account.unanswered if self.held else again.oldest == self.account.oldest
        )
        return TWICE if hung and same else ""

    def _is_raced(self, plan: Plan, trace: Path) -> bool:
        """Whether a call ended with an error only by an order of threads. The second trace is beside the first."""
        path = trace.with_name(f"{run_of_file(trace)}-raced.jsonl")

        def erred(order: PlayedOrder) -> Sequence[str] | None:
            again, failure = self._again(plan, path, order)
            return again.erred if failure is None or failure.kind == "refused" else None

        order = self.account.erring
        return order is not None and comes_of_order(order, self.account.erred, erred)

    def _raises(self, plan: Plan, trace: Path) -> bool:
        """Whether the first call that ended with an error does so where next to nothing is asked: in virtual time, in a
        program started anew. First alone: with what it speaks of, or of an `advance` one of what waited. Then at the
        end of all that was asked of that one task or operation, at the same times: the others are left out."""
        call, delay_ns = self.account.refused, delays_for(self.description, 60_000 * MS).far_ns
        if call is None or "virtual-time" not in self.description.capabilities:
            return False
        begins = start_of_clock(plan.seed, self.description)
        before: list[tuple[int, Call | None]] = [(begins, None)]
        if isinstance(call, Cancel | Force):
            alone = Add(call.id, delay_ns) if self.part == "timer" else Register(call.id, ("key",), delay_ns)
            before = [(begins, alone)]
        elif isinstance(call, Advance):
            before += self._waited()
        scripts = [
            Script(self.part, since_t, (call,) if first is None else (first, call))
            for since_t, first in before
        ]
        if self.virtual and not self.held:
            whole = script_of(trace, self.part, last=call)
            scripts += [leaping(about(whole, one)) for one in self._whose(whole, call)]
            # A clock that starts there is not what one that has come there by itself is.
            scripts.append(Script(self.part, whole.moments()[-1], (call,)))
        return any(self._tried(script, self._limits(plan)) == "refused" for script in scripts)

    def _is_endless(self, plan: Plan, failure: SubjectFailed) -> bool:
        """Whether a call that works and works, of calls made one at a time, does so too at the end of all that was
        asked of a task or operation that it speaks of, at the same times, in a program started anew. Not an `advance`
        by many ticks."""
        if (
            not self.virtual
            or self.held
            or failure.stuck
            or self.account.oldest is None
            or self.account.errors
        ):
            return False
        _, call = self.account.oldest
        if failure.trace is None:
            return False
        whole = script_of(failure.trace, self.part, last=call)
        *_, before_t, now_t = 0, *whole.moments()
        if isinstance(call, Advance) and now_t - before_t > _ENDLESS_TICKS * self.tick_ns:
            return False
        scripts = [about(whole, one) for one in self._whose(whole, call)]
        return any(self._tried(script, self._limits(plan)) == "endless" for script in scripts)

    def _waited(self) -> Sequence[tuple[int, Add | Register]]:
        """Some of what was waiting, by its deadlines."""
        waited = sorted(self.account.waiting, key=lambda of: of[0] + of[1].delay_ns)
        return waited[:: 1 + len(waited) // _ALONE_MOST]

    def _whose(self, whole: Script, call: Call) -> Sequence[str]:
        """For which tasks or operations this last call may have failed: those that it speaks of, or, of an `advance`,
        those that wait, and those of which the calls before it speak."""
        if not isinstance(call, Advance):
            return concerned(whole, call)[-_ALONE_MOST:]
        before = [one for of in whole.calls[-_ALONE_MOST:] for one in concerned(whole, of)[-1:]]
        return [*dict.fromkeys([*(of.id for _, of in self._waited()), *before])]

    def _tried(self, script: Script, limits: ChildLimits) -> FailureKind | None:
        """What comes of it in a program started anew: `refused` where a call ends with an error, `endless` where one
        works on and on."""
        with suppress(SubjectFailed), closing(ScriptPlayer(self.command, limits)) as player:
            played = player.tried(script)
            if played.failure is not None:
                return "endless" if played.failure.busy_s >= _ENDLESS_S else played.failure.kind
            if any(event.err is not None for event in played.events):
                return "refused"
        return None

    def _again(
        self, plan: Plan, path: Path, order: PlayedOrder | None
    ) -> tuple[Account, SubjectFailed | None]:
        """What comes of this order, or of the whole plan, in a program started anew, with twice the patience. The trace
        of what fails is kept at `path`."""
        limits = self._limits(plan)
        patient = replace(limits, silence_s=2 * limits.silence_s)
        again = replace(self, account=Account(only=order), limits=patient, listener=None)
        try:
            again._record(plan, path, silent)
        except SubjectFailed as failure:
            return again.account, failure
        path.unlink()
        return again.account, None

    @contextmanager
    def _child(self, limits: ChildLimits) -> Iterator[tuple[LineChild, Lines | None]]:
        """The program, and its lines if its threads are to be stopped at them."""
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
        child: LineChild,
        lines: Lines | None,
        clock: VirtualClock,
        plan: Plan,
        progress: Progress,
        judge: Callable[[], bool],
    ) -> None:
        again = session.describe()
        if self.lines is not None:
            again = _with_steps(again)
        if replace(again, n=self.description.n) != self.description:
            raise child.failed("rubbish", "it describes itself in another way than before")
        if self.held:
            self._drive_gates(
                session,
                child,
                lines,
                clock if self.virtual else None,
                judge,
                lambda share: progress(self.name, int(share * plan.timers), plan.timers),
                plan,
            )
        elif self.mode == "real-free":
            drive_free(
                session,
                self.description,
                self.part,
                plan.seed,
                plan.timers,
                lambda done: progress(self.name, done, plan.timers),
            )
        else:
            with child.on_one_processor() if self.virtual else nullcontext():
                self._drive_plan(session, clock, plan, progress)
        session.finish()

    def _drive_gates(
        self,
        session: Session,
        child: LineChild,
        lines: Lines | None,
        clock: VirtualClock | None,
        judge: Callable[[], bool],
        tell: Callable[[float], None],
        plan: Plan,
    ) -> None:
        if lines is not None and not lines.connect():
            raise child.failed("died", "its JVM is not heard by the debugger's protocol any more")
        plays = Plays(session, self.description, self.part, clock, lines=lines, judge=judge)
        self.account.plays = plays.played
        run = GatedRun(plays, tell, plan.seed, min(_DRAWN_MOST, plan.timers // 2))
        self.account.orders = run.orders
        try:
            run.drive(self._ways(), self.account.only)
        except SubjectFailed:
            self.account.under_way, self.account.broke_off = plays.under_way, True
            if self.virtual:
                self.account.erring = plays.erred or plays.under_way
            raise
        if self.virtual:
            self.account.erring = plays.erred
        if lines is not None and lines.unknown:
            self.account.lost = lines.unknown

    def _ways(self) -> Sequence[Way]:
        if self.mode.endswith("-lines"):
            return ("alone", "drawn")
        # Shared so that both runs take about as long.
        if takes_steps(self.description, virtual=self.virtual):
            return ("orders", "beside")
        alone = self.virtual or "virtual-time" not in self.description.capabilities
        return ("orders", "drawn") if alone else ("orders",)

    def _drive_plan(self, session: Session, clock: VirtualClock, plan: Plan, progress: Progress) -> None:
        real = self.mode == "real"
        one_lane = self.description if real else replace(self.description, lanes=1)
        fit = fitted(plan, self.shape, self.part, one_lane)
        dues = timeline(fit, self.part, one_lane)

        def report(settled: int) -> None:
            # In virtual time what is beyond the plan takes about as long again.
            progress(self.name, min(settled, fit.timers), fit.timers * (1 if real else 2))

        if real:
            drive_real(
                session,
                self.description,
                self.part,
                plan.seed,
                plan.timers,
                dues,
                self._give_up_ns(fit),
                self._lost_ns,
                report,
            )
        else:
            manner: Literal["steps", "jumps"] = "steps" if self.mode == "virtual-steps" else "jumps"
            self.account.left_out = drive_virtual(
                session, clock, self.description, self.part, dues, manner, plan.seed, plan.timers, report
            )

    def _header(self, run: str, plan: Plan) -> Header:
        slack_ns = {
            "virtual-steps": 0,
            "virtual-jumps": longest_jump_ns(self.description),
            "real": self.late_slack_ns,
            "real-free": self.late_slack_ns,
        }.get(self.mode, 0)
        # A thread that is held keeps others from their deadlines: nothing is late there.
        described = replace(self.description, late_ns=None) if self.held else self.description
        return header_of(
            described,
            self.part,
            run=run,
            virtual=self.virtual,
            late_slack_ns=slack_ns,
            params={"seed": plan.seed, "timers": plan.timers, "mode": self.mode, "late_slack_ns": slack_ns},
        )

    def _give_up_ns(self, plan: Plan) -> int:
        return plan.end_ns + (self.description.late_ns or 0) + 2 * self.late_slack_ns

    def _limits(self, plan: Plan) -> ChildLimits:
        if self.limits is not None:
            return self.limits
        if self.held or self.mode == "real-free":
            return ChildLimits(total_s=2 * STEPS_S)
        real_s = 0.0 if self.virtual else 60.0 + 4 * self._give_up_ns(plan) / 1e9
        return ChildLimits(
            total_s=_TOTAL_S + real_s + 0.02 * plan.timers, lines=1_000_000 + 100 * len(plan.steps)
        )


def _called(command: Sequence[str]) -> str:
    """A short name of a command, for messages."""
    return Path(command[0]).name if command else "command"


def _breaks_so_far(recording: StreamedRecording) -> bool:
    recording.flush()
    return _breaks(recording.path)


def _breaks(trace: Path) -> bool:
    """Whether it breaks a promise, whole or not."""
    return check_files([trace]).runs[0].verdict is Verdict.VIOLATED
