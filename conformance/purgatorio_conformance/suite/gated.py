"""Runs programs of calls, the enumerated scope, and gated runs against an adapter.

There are three runs: the scope, the gated runs with pause points (gates), and the gated runs with scheduling points
(steps). Each test reads the verdict on one clause from one of these runs. To show a violation, the suite repeats the
execution that caused the violation with a new subject.
"""

from __future__ import annotations

import re
import tempfile
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
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.played_order import (
    AGAIN,
    PlayedOrder,
    comes_of_order,
    from_its_start,
    to_play_again,
    unfinished,
)
from purgatorio_conformance.protocol.scope import longest_of_scope_ns, scope, scope_delays
from purgatorio_conformance.protocol.script import play as play_script
from purgatorio_conformance.protocol.session import Listener, Session, noted
from purgatorio_conformance.protocol.small_program import Inside, SmallProgram
from purgatorio_conformance.protocol.virtual_time import VirtualClock
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_conformance.suite.contract import Promise, PurgatoryFactory, TimerFactory
from purgatorio_conformance.suite.in_process import (
    DrivenPurgatory,
    DrivenTimer,
    InProcess,
    describe_purgatory,
    describe_timer,
)
from purgatorio_conformance.suite.program import CallProgram, GatedProgram, Scenario, call_in_words, in_time
from purgatorio_spec.check import check_files
from purgatorio_spec.recording import Judged, judge, judge_file
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
                yield f"{_caller(one, stands, threads)}advance({in_time(by_ns)})"
            case {"m": _}:
                yield f"{_caller(one, stands, threads)}{call_in_words(one)}"


def _caller(call: Mapping[str, object], stands: Mapping[int, tuple[str, str]], threads: bool) -> str:
    hold = call.get("hold")
    if isinstance(hold, int):
        return f"{stands[hold][0 if threads else 1]}: "
    return f"lane {call.get('lane', 0)}: " if threads else ""


@dataclass(frozen=True, slots=True)
class Under:
    """What is played to: the part, its description, and a fresh subject for each start. `asks`: it is a program, which
    is asked first what it is."""

    promise: Promise
    part: Part
    description: Description
    peer: Callable[[], InProcess | LineChild]
    asks: bool = False


def of_purgatory(promise: Promise, factory: PurgatoryFactory) -> Under:
    make = partial(DrivenPurgatory, promise, factory)
    return Under(promise, "purgatory", describe_purgatory(promise), lambda: InProcess(promise.subject, make))


def of_timer(promise: Promise, factory: TimerFactory) -> Under:
    make = partial(DrivenTimer, promise, factory)
    return Under(promise, "timer", describe_timer(promise), lambda: InProcess(promise.subject, make))


def of_command(promise: Promise, part: Part, description: Description, command: Sequence[str]) -> Under:
    """A program that speaks the protocol."""
    return Under(promise, part, description, lambda: LineChild(command[0], command, _LIMITS), asks=True)


def played_through(
    program: CallProgram, under: Under, *, known_to_hang: bool = False
) -> tuple[Judged, FailureKind | None]:
    """Carry it out on a fresh subject, call by call, and judge it. What the subject raises ends the run; and how it
    ended, if not well. One that is `known_to_hang` is waited for no longer than needed."""
    limits = replace(_LIMITS, silence_s=_LIMITS.silence_s / 5) if known_to_hang else _LIMITS
    peer = under.peer()
    script = program.script(under.part, under.description, expires="expiry" not in under.promise.lacks)
    try:
        played, _ = play_script(peer, script, under.description, limits, errors_end=True)
    finally:
        peer.close()
    kind = None if played.failure is None else played.failure.kind
    return judge(played.recording(program.name)), kind


@dataclass(frozen=True, slots=True)
class _Played:
    """The plays; what broke them off, and what was cut short, or nothing; where it hung, that play and its calls."""

    plays: list[PlayedOrder]
    failure: SubjectFailed | None = None
    left_out: str = ""
    stuck: tuple[PlayedOrder, list[str]] | None = None


def play(program: GatedProgram, under: Under) -> Judged:
    """Play all of it, and judge the trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{program.name}.jsonl"
        played = _played(program, under, path)
        result = check_files([path]).runs[0]
        why = "" if played.failure is None else str(played.failure)
        session = None if played.stuck is None else _deadlock(program, under, path, *played.stuck)
        if session is not None:
            why = f"P3 is broken: deadlock: {why}; {AGAIN}"
        # All but the verdicts would be megabytes; what is shown of a violation is a play of its own.
        whole = Judged(why, _kept_nowhere, result, EVENT_SCHEMA.empty_table())
    return replace(
        whole,
        narrowed=partial(_narrowed, program, under, whole, played.plays),
        hung=session,
        unfinished=played.left_out,
    )


def _deadlock(
    program: GatedProgram, under: Under, path: Path, order: PlayedOrder, calls: list[str]
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
    program: GatedProgram,
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
    in_turn = program.name == SCOPE
    # A thread that is held keeps others from their deadlines: nothing is late there.
    header = header_of(
        description if in_turn else replace(description, late_ns=None),
        under.part,
        run=program.name,
        virtual=True,
        late_slack_ns=longest_of_scope_ns(scope_delays(description), description) if in_turn else 0,
        params={},
    )
    peer = under.peer()
    plays: Plays | None = None
    try:
        with StreamedRecording(recorder, path, header, every_s=None) as recording:
            session = Session(peer, conversation, limits or _LIMITS, listener, recording.flush)
            if under.asks:
                session.describe()
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
        )
    finally:
        peer.close()
    return _Played(plays.played, left_out=unfinished(run.orders))


def _narrowed(
    program: GatedProgram, under: Under, whole: Judged, plays: list[PlayedOrder], clause: str
) -> tuple[Judged, PlayedSession | GatedProgram]:
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


def _kept_nowhere(path: Path) -> None:
    """The trace of the whole is not kept."""


_CLAUSES: Final[dict[Part, tuple[str, ...]]] = {
    "timer": ("T1", "T2", "T3", "T4", "T5"),
    "purgatory": ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T2", "T3", "T4", "T5"),
}
SCOPE: Final = "scope"
_WAYS: Final[Mapping[str, tuple[Way, ...]]] = {
    SCOPE: ("scope",),
    "gates": ("orders",),
    "steps": ("alone", "beside", "drawn"),
}


def gated_scenarios(part: Part) -> tuple[Scenario, ...]:
    """The races of a part."""
    clauses = tuple(clause for clause in _CLAUSES[part] if clause != "T2")
    return tuple(
        Scenario(name, about, clauses, partial(_whole, name), threads=True) for name, about in _ABOUT
    )


def scope_scenario(part: Part) -> Scenario:
    """The scope of a part."""
    about = "every small program of one caller, in the order of size"
    none = partial(_none_in_scope, part)
    return Scenario(SCOPE, about, _CLAUSES[part], partial(_whole, SCOPE), ("leap",), also=none)


def _none_in_scope(part: Part, promise: Promise) -> str | None:
    description = describe_timer(promise) if part == "timer" else describe_purgatory(promise)
    found = any(scope(part, scope_delays(description), description))
    return None if found else "its delays are too short for any program of the scope"


def _whole(name: str, promise: Promise) -> Iterable[GatedProgram]:
    yield GatedProgram(name)


_ABOUT: Final = (
    ("gates", "threads stopped inside callbacks, in every order"),
    ("steps", "each call stopped at each of its lines, while other threads run"),
)
