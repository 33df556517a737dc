"""Drives an adapter or a program in the way of `purgatorio verify --command`, and reads the verdicts.

The long runs in virtual time: a random plan at every moment at which a timer may fire (plan), the same with jumps of
the clock (jumps), the enumerated scope, random periodic tasks (periodic), executions with pause points (gates), and
executions with scheduling points (steps). Each test reads the verdict on one clause from one of these runs. To show a
violation, the suite repeats the execution that caused the violation with a new subject. A run without executions of its
own is minimized, call by call.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from purgatorio_conformance.protocol.conversation import Conversation
from purgatorio_conformance.protocol.describe import Part, header_of, reported
from purgatorio_conformance.protocol.gate_play import Plays
from purgatorio_conformance.protocol.gates import GatedRun, Way
from purgatorio_conformance.protocol.message import Call, Description, Quiesce
from purgatorio_conformance.protocol.periodic import drive_periodic
from purgatorio_conformance.protocol.played_order import (
    AGAIN,
    PlayedOrder,
    comes_of_order,
    from_its_start,
    to_play_again,
    unfinished,
)
from purgatorio_conformance.protocol.recorded_calls import script_of
from purgatorio_conformance.protocol.scope import longest_of_scope_ns, scope, scope_delays
from purgatorio_conformance.protocol.script import Played, Script
from purgatorio_conformance.protocol.script import play as play_script
from purgatorio_conformance.protocol.session import Drive, Listener, Session, noted
from purgatorio_conformance.protocol.shortest import ScriptSearch, breaks
from purgatorio_conformance.protocol.small_program import Inside, SmallProgram
from purgatorio_conformance.protocol.timeline import fitted, shape_of, timeline
from purgatorio_conformance.protocol.virtual_time import (
    Manner,
    VirtualClock,
    drive_virtual,
    longest_jump_ns,
)
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_conformance.suite.contract import Promise, PurgatoryFactory, TimerFactory
from purgatorio_conformance.suite.in_process import (
    Driven,
    DrivenPurgatory,
    DrivenTimer,
    InProcess,
    describe_purgatory,
    describe_timer,
)
from purgatorio_conformance.suite.program import LongRun, Scenario, call_in_words
from purgatorio_conformance.suite.stage import Stage
from purgatorio_spec.check import check_files
from purgatorio_spec.durations import exact
from purgatorio_spec.recording import Judged, Narrow, judge, judge_file
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.trace.trace_file import StreamedRecording

_LIMITS: Final = ChildLimits(silence_s=10.0, lines=200_000)

_DRAWN: Final = 300
"""The number of random programs: a test takes some seconds more."""

_CROSSED: Final = 40
_STEPPED: Final = 12
"""So many programs of two callers are played in all orders, and step by step."""

_SCOPE: Final = 800
"""So many programs of the scope are played at most, the smallest first."""

_SHORTENS_S: Final = 20.0
"""No script is tried any more after so long."""

_OPERATIONS: Final = 500
"""So many tasks or operations a plan has, or so many periodic tasks are added, about."""

Narrowing = Callable[[str], tuple[Judged, Narrow]]

_OF_PLAY: Final = re.compile(r'"(p\d+-[^"]*)"')


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """The session of one execution, `>` to the subject; also in words."""

    name: str
    session: tuple[str, ...]

    def lines(self) -> Iterable[str]:
        return session_in_words(self.session)


def session_in_words(session: Iterable[str]) -> Iterator[str]:
    """The calls of a session, with their lanes if there are several, and the places of paused threads."""
    said = [orjson.loads(line[2:]) for line in session]
    threads = any(one.get("lane") for one in said)
    in_lane = {one["n"]: one.get("lane", 0) for one in said if "n" in one}
    now_ns, stands = 0, dict[int, tuple[str, str]]()
    for one in said:
        match one:
            case {"m": "start", "now_ns": int(start_ns)}:
                now_ns = start_ns
            case {"m": "start" | "gauge" | "quiesce" | "describe" | "stop"}:
                pass
            case {"m": "held", "hold": hold, "f": f}:
                who = f"lane {in_lane[one['during']]}" if one.get("during") in in_lane else one.get("th", "")
                where = f"at {one['at']}" if one.get("at") else f"in {f} of {one.get('id')}"
                stands[hold] = who, where
                if threads:
                    yield f"{who} stands {where}"
            case {"m": "go", "holds": holds}:
                if threads:
                    yield f"{' and '.join(stands[hold][0] for hold in holds)} continues"
                if one.get("fail"):
                    yield f"{stands[holds[0]][1]}: it raises"
            case {"m": "advance", "now_ns": int(then_ns)}:
                by_ns, now_ns = then_ns - now_ns, then_ns
                yield f"{_caller(one, stands, threads)}advance({exact(by_ns)})"
            case {"m": _}:
                yield f"{_caller(one, stands, threads)}{call_in_words(one)}"


def _caller(call: Mapping[str, object], stands: Mapping[int, tuple[str, str]], threads: bool) -> str:
    hold = call.get("hold")
    if isinstance(hold, int):
        return f"{stands[hold][0 if threads else 1]}: "
    return f"lane {call.get('lane', 0)}: " if threads else ""


Tried = Callable[[Script], Played]
"""Plays a script to a fresh subject."""


@dataclass(frozen=True, slots=True)
class Under:
    """What is played to: the part, its description, and a fresh subject for each start, or for each script. `asks`: it
    is a program, which is asked first what it is."""

    promise: Promise
    part: Part
    description: Description
    peer: Callable[[], InProcess | LineChild]
    tried: Tried
    asks: bool = False


def of_purgatory(promise: Promise, factory: PurgatoryFactory) -> Under:
    return _in_process(
        promise, "purgatory", describe_purgatory(promise), partial(DrivenPurgatory, promise, factory)
    )


def of_timer(promise: Promise, factory: TimerFactory) -> Under:
    return _in_process(promise, "timer", describe_timer(promise), partial(DrivenTimer, promise, factory))


def _in_process(
    promise: Promise, part: Part, description: Description, make: Callable[[Stage, int], Driven]
) -> Under:
    hung: list[SubjectFailed] = []

    def peer() -> InProcess:
        return InProcess(promise.subject, make)

    def tried(script: Script) -> Played:
        """What the subject raises ends the run. One that is known to hang is waited for no longer than needed."""
        limits = replace(_LIMITS, silence_s=_LIMITS.silence_s / 5) if hung else _LIMITS
        one = peer()
        try:
            played, _ = play_script(one, script, description, limits, errors_end=True)
        finally:
            one.close()
        if played.failure is not None and played.failure.kind == "hang":
            hung.append(played.failure)
        return played

    return Under(promise, part, description, peer, tried)


def of_command(
    promise: Promise, part: Part, description: Description, command: Sequence[str], tried: Tried
) -> Under:
    """A program that speaks the protocol."""
    return Under(
        promise, part, description, lambda: LineChild(command[0], command, _LIMITS), tried, asks=True
    )


@dataclass(frozen=True, slots=True)
class _Played:
    """The plays; what broke them off, and what was cut short, or nothing; where it hung, that play and its calls, and
    the call that was not answered, or ended with an error."""

    plays: list[PlayedOrder]
    failure: SubjectFailed | None = None
    left_out: str = ""
    stuck: tuple[PlayedOrder, list[str]] | None = None
    open: Call | None = None


def _shortest(
    program: LongRun,
    under: Under,
    script: Script,
    shows: Callable[[Played], bool],
    operation: str,
    until_s: float,
) -> tuple[Played, PlayedSession] | None:
    """Of a shortest script that shows it: what came of it, and what was asked."""
    search = ScriptSearch(lambda tried: shows(under.tried(tried)), under.description, until_s)
    found = search.reduced(script, operation)
    if found is None:
        return None
    played = under.tried(found)
    asked = tuple(line for line in played.session if line.startswith(">"))
    return played, PlayedSession(program.name, asked)


def _shortened(
    program: LongRun, under: Under, whole: Judged, trace: bytes, clause: str
) -> tuple[Judged, PlayedSession | LongRun]:
    """The run of a shortest script that breaks the clause; else the whole."""
    example = next(iter(whole.result.clauses[clause].causes.values())).examples[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{program.name}.jsonl"
        path.write_bytes(trace)
        until_s = time.monotonic() + _SHORTENS_S
        # What comes after the violation is of no use, unless it is something that never came.
        for until in (max(example.events), None):
            script = script_of(path, under.part, until)
            found = _shortest(
                program, under, script, lambda played: breaks(played, clause), example.subject, until_s
            )
            if found is not None:
                return judge(found[0].recording(program.name)), found[1]
        # A shorter script may fail where this one went on.
        kept = judge_file(path, program.name, whole.broken_off)
        return replace(kept, write=partial(_written, trace)), program


def play(program: LongRun, under: Under) -> Judged:
    """Play all of it, and judge the trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{program.name}.jsonl"
        played = _played(program, under, path)
        result = check_files([path]).runs[0]
        why = "" if played.failure is None else str(played.failure)
        session = None if played.stuck is None else _deadlock(program, under, path, *played.stuck)
        if session is not None:
            why = f"P3 is broken: deadlock: {why}; {AGAIN}"
        elif played.failure is not None and program.name in _DRIVEN:
            session = _failing(program, under, path, played.failure.kind, played.open)
        trace = path.read_bytes() if program.name in _DRIVEN else b""
        # All but the verdicts would be megabytes; what is shown of a violation is a play of its own.
        whole = Judged(why, _kept_nowhere, result, EVENT_SCHEMA.empty_table())
    if program.name in _DRIVEN:
        narrowed: Narrowing = partial(_shortened, program, under, whole, trace)
    else:
        narrowed = partial(_narrowed, program, under, whole, played.plays)
    return replace(
        whole,
        narrowed=narrowed,
        hung=session,
        unfinished=played.left_out,
    )


def _failing(
    program: LongRun, under: Under, path: Path, kind: FailureKind, last: Call | None
) -> PlayedSession | None:
    """What is asked of a subject that fails so by a shortest script."""

    def shows(played: Played) -> bool:
        return played.failure is not None and played.failure.kind == kind

    script = script_of(path, under.part, last=last or Quiesce())
    found = _shortest(program, under, script, shows, "", time.monotonic() + _SHORTENS_S)
    return None if found is None else found[1]


def _deadlock(
    program: LongRun, under: Under, path: Path, order: PlayedOrder, calls: list[str]
) -> PlayedSession | None:
    """What was asked of a subject made again, of which the same calls hang, if that is a deadlock. Its threads that
    hang stay."""
    sessions: list[list[str]] = []

    def alone(order: PlayedOrder) -> list[str] | None:
        sessions.append([])
        limits = replace(_LIMITS, silence_s=2 * _LIMITS.silence_s)
        again = _played(program, under, path, order, noted(sessions[-1]), limits)
        if again.failure is None:
            return []
        return None if again.stuck is None else again.stuck[1]

    if not comes_of_order(order, calls, alone):
        return None
    # The last is that of the calls one by one.
    hung = sessions[-2]
    return _moves(order, hung, _OF_PLAY.findall(" ".join(hung))[-1])


def _moves(order: PlayedOrder, session: list[str], operation: str) -> PlayedSession:
    """What was asked in the play of this operation, and where threads stopped."""
    play = from_its_start(session, operation)
    return PlayedSession(
        order.program, tuple(line for line in play if line.startswith(">") or '"m":"held"' in line)
    )


def _played(
    program: LongRun,
    under: Under,
    path: Path,
    only: PlayedOrder | None = None,
    listener: Listener | None = None,
    limits: ChildLimits | None = None,
) -> _Played:
    clock = VirtualClock()
    recorder = Recorder(clock)
    description = under.description
    conversation = Conversation(recorder, reported(description, under.part), virtual=True)
    if not under.asks:
        conversation.description = description
    held = program.name in ("gates", "steps")
    slack_ns = {
        JUMPS: longest_jump_ns(description),
        SCOPE: longest_of_scope_ns(scope_delays(description), description),
    }
    # A thread that is held keeps others from their deadlines: nothing is late there.
    header = header_of(
        replace(description, late_ns=None) if held else description,
        under.part,
        run=program.name,
        virtual=True,
        late_slack_ns=slack_ns.get(program.name, 0),
        params={},
        periodic=program.name == PERIODIC,
    )
    peer = under.peer()
    plays: Plays | None = None
    try:
        with StreamedRecording(recorder, path, header, every_s=None) as recording:
            session = Session(peer, conversation, limits or _LIMITS, listener, recording.flush)
            if under.asks:
                session.describe()
            if program.name in _DRIVEN:
                inside = () if "re-entry" in under.promise.lacks else ("timer_fire",)
                alone = replace(description, gates=inside, lanes=1)
                _DRIVEN[program.name](Drive(session, alone, under.part, 1, _OPERATIONS, _untold), clock)
                if errors := conversation.errors():
                    raise peer.failed("refused", errors)
                return _Played([])
            plays = Plays(session, description, under.part, clock)
            run = GatedRun(plays, drawn=_DRAWN, scope=_SCOPE, crossed=_CROSSED, stepped=_STEPPED)
            ways = _WAYS[program.name]
            run.drive(ways, only, partial(_lacking, under.promise))
    except SubjectFailed as failure:
        hung = failure.kind == "hang" and not failure.slow
        order = plays.under_way if plays is not None and hung else None
        return _Played(
            [] if plays is None else plays.played,
            failure,
            stuck=None if order is None else (order, conversation.stuck()),
            open=conversation.refused or (conversation.oldest() or (0, None))[1],
        )
    finally:
        peer.close()
    return _Played(plays.played, left_out=unfinished(run.orders))


def _drive_plan(manner: Manner, drive: Drive, clock: VirtualClock) -> None:
    description, part = drive.description, drive.part
    shape = shape_of(description, part, virtual=True)
    plan = shape.make(drive.seed, drive.operations, 1, description.grain_ns)
    dues = timeline(fitted(plan, shape, part, description), part, description)
    drive_virtual(drive, clock, dues, manner)


def _narrowed(
    program: LongRun, under: Under, whole: Judged, plays: list[PlayedOrder], clause: str
) -> tuple[Judged, PlayedSession | LongRun]:
    """The run of the one play that broke the clause, if it breaks it again; else the whole."""
    for order in to_play_again(whole.result.clauses[clause], plays):
        session: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{program.name}.jsonl"
            failure = _played(program, under, path, order, noted(session)).failure
            again = judge_file(path, program.name, "" if failure is None else str(failure))
            again = replace(again, write=partial(_written, path.read_bytes()))
        if again.result.breaks(clause):
            shown = next(iter(again.result.clauses[clause].causes.values())).examples[0].subject
            return again, _moves(order, session, shown)
    return whole, program


def _lacking(promise: Promise, program: SmallProgram) -> bool:
    """Whether the promise rules the program out."""
    if "expiry" in promise.lacks and (program.expiring() or program.passes_time):
        return True
    inside = any(isinstance(call, Inside) for call in program.calls())
    return inside and bool({"callbacks", "re-entry"} & set(promise.lacks))


def _written(trace: bytes, path: Path) -> None:
    """To where a failure leaves it."""
    path.write_bytes(trace)


def _untold(done: int) -> None: ...


def _kept_nowhere(path: Path) -> None:
    """The trace of the whole is not kept."""


PLAN: Final = "plan"
JUMPS: Final = "jumps"
SCOPE: Final = "scope"
PERIODIC: Final = "periodic"
_DRIVEN: Final[Mapping[str, Callable[[Drive, VirtualClock], object]]] = {
    PLAN: partial(_drive_plan, "steps"),
    JUMPS: partial(_drive_plan, "jumps"),
    PERIODIC: drive_periodic,
}
_WAYS: Final[Mapping[str, tuple[Way, ...]]] = {
    SCOPE: ("scope",),
    "gates": ("orders",),
    "steps": ("alone", "beside", "drawn"),
}
_CLAUSES: Final[dict[Part, tuple[str, ...]]] = {
    "timer": ("T1", "T2", "T3", "T4", "T5"),
    "purgatory": ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T2", "T3", "T4", "T5"),
}


def scenarios_of(part: Part, promise: Promise) -> tuple[Scenario, ...]:
    """All long runs of a part, in the order in which they are made."""
    planned, needs = (_CLAUSES[part], ()) if part == "timer" else ((*_CLAUSES[part], "P4"), ("expiry",))
    raced = tuple(clause for clause in _CLAUSES[part] if clause != "T2")
    return (
        Scenario(PLAN, planned, (LongRun(PLAN),), needs),
        Scenario(JUMPS, planned, (LongRun(JUMPS),), needs),
        Scenario(SCOPE, _CLAUSES[part], (LongRun(SCOPE),), also=partial(_none_in_scope, part)),
        Scenario(PERIODIC, _periodic_clauses(promise), (LongRun(PERIODIC),)),
        *(Scenario(name, raced, (LongRun(name),), threads=True) for name in ("gates", "steps")),
    )


def _periodic_clauses(promise: Promise) -> tuple[str, ...]:
    """What a promise asks for by what it offers and declares; nothing for one that does neither."""
    repeats = bool({"fixed-rate", "fixed-delay"} & {*promise.offers})
    clauses = ("T8", "T9") * repeats + ("T10",) * (repeats and "cancel" not in promise.lacks)
    clauses += ("T11",) * ("reset" in promise.offers)
    return clauses + ("T12",) * (promise.turn is not None and not {"re-entry", "past"} & {*promise.lacks})


def _none_in_scope(part: Part, promise: Promise) -> str | None:
    description = describe_timer(promise) if part == "timer" else describe_purgatory(promise)
    found = any(scope(part, scope_delays(description), description))
    return None if found else "its delays are too short for any program of the scope"
