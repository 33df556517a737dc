"""The long runs of the suite: drives an adapter or a program in virtual time, as `purgatorio verify --command` does.

docs/conformance-suite.md has the runs. Each test reads the verdict on one clause from one of these runs. To show a
violation, the suite starts a new subject and repeats the execution that broke the clause, or it minimizes the calls of
the run.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

import orjson

from purgatorio_conformance.protocol.describe import Part, profile_of
from purgatorio_conformance.protocol.driver import CommandSubject, Mode
from purgatorio_conformance.protocol.failed_run import FailedRun
from purgatorio_conformance.protocol.gates import Effort, Way
from purgatorio_conformance.protocol.lines import Lines
from purgatorio_conformance.protocol.message import Description, Quiesce
from purgatorio_conformance.protocol.played_order import Account
from purgatorio_conformance.protocol.scope import scope, scope_delays
from purgatorio_conformance.protocol.script import ScriptPlayer
from purgatorio_conformance.protocol.session import OwnPeer
from purgatorio_conformance.protocol.shortest import (
    order_of_failure,
    order_of_run,
    shortest_failure,
    shortest_of_trace,
)
from purgatorio_conformance.protocol.small_program import SmallProgram
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed, silent
from purgatorio_conformance.subject.plan import HUGE_NS, Plan
from purgatorio_conformance.suite.contract import (
    CAPABILITIES,
    OFFERS,
    SAME,
    Promise,
    PurgatoryFactory,
    TimerFactory,
)
from purgatorio_conformance.suite.in_process import (
    Driven,
    DrivenPurgatory,
    DrivenTimer,
    InProcess,
    describe,
)
from purgatorio_conformance.suite.stage import Stage
from purgatorio_spec.check import check_files
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.durations import exact
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.recording import JudgedRun, judge, judge_file
from purgatorio_spec.trace.columns import EVENT_SCHEMA

_LIMITS: Final = ChildLimits(silence_s=10.0, lines=200_000)

_DRAWN: Final = 300
"""The number of random programs; they add some seconds to a test."""

_CROSSED: Final = 40
_STEPPED: Final = 12
"""The number of programs of two callers that are executed in all orders, and step by step."""

_SCOPE: Final = 800
"""The most programs of the scope that are executed, the smallest first."""

_SHORTENS_S: Final = 20.0
"""The limit for minimizing a violation, in seconds of CPU time."""

_OPERATIONS: Final = 500
"""The approximate number of tasks or operations of a plan, or of periodic tasks."""

_SEED: Final = 1

_TOO_SHORT: Final = "its delays are too short for any program of the scope"


def session_in_words(session: Iterable[str]) -> Iterator[str]:
    """The calls of a session, with their callers if there are several, and the places of paused threads."""
    said = [orjson.loads(line[2:]) for line in session]
    threads = any(one.get("lane") for one in said)
    in_lane = {one["n"]: one.get("lane", 0) for one in said if "n" in one}
    now_ns, stands = 0, dict[int, tuple[str, str]]()
    for one in said:
        match one:
            case {"m": "start", "now_ns": int(start_ns)}:
                now_ns = start_ns
            case {"m": "stop", "drain": 1}:
                yield "stop"
            case {"m": "start" | "quiesce" | "describe" | "stop"}:
                pass
            case {"m": "held", "hold": hold, "f": f}:
                who = f"lane {in_lane[one['during']]}" if one.get("during") in in_lane else one.get("th", "")
                where = f"at {one['at']}" if one.get("at") else f"in {f} of {one.get('id')}"
                stands[hold] = who, where
                if threads:
                    yield f"{who} is paused {where}"
            case {"m": "go", "holds": holds}:
                if threads:
                    yield f"{' and '.join(stands[hold][0] for hold in holds)} continues"
                if one.get("fail"):
                    yield f"{stands[holds[0]][1]}: it raises"
            case {"m": "gauge"}:
                yield "read the sizes"
            case {"m": "advance", "now_ns": int(then_ns)}:
                by_ns, now_ns = then_ns - now_ns, then_ns
                yield f"{_caller(one, stands, threads)}advance({exact(by_ns)})"
            case {"m": _}:
                yield f"{_caller(one, stands, threads)}{_call_in_words(one)}"


_NOT_TOLD: Final = frozenset({"m", "n", "lane", "hold", "step", "again"})


def _call_in_words(call: Mapping[str, object]) -> str:
    """The text of a call, from the fields of its line."""
    told: list[str] = []
    for name, value in call.items():
        if isinstance(value, int) and name.endswith("_ns"):
            told.append("never" if value >= HUGE_NS and "keys" in call else exact(value))
        elif name not in _NOT_TOLD:
            told.append("+".join(map(str, value)) if isinstance(value, list) else str(value))
    return f"{call['m']}({', '.join(told)})"


def _caller(call: Mapping[str, object], stands: Mapping[int, tuple[str, str]], threads: bool) -> str:
    hold = call.get("hold")
    if isinstance(hold, int):
        return f"{stands[hold][0 if threads else 1]}: "
    return f"lane {call.get('lane', 0)}: " if threads else ""


@dataclass(frozen=True)
class AdapterSubject(CommandSubject):
    """An adapter in this process. `makes`: the subject for each start."""

    makes: Callable[[Stage, int], Driven] = field(kw_only=True)

    @property
    def name(self) -> str:
        return self.label

    def peer(self) -> InProcess:
        return InProcess(self.description, self.makes)

    def player(self, limits: ChildLimits | None = None) -> ScriptPlayer:
        return ScriptPlayer(self.peer, limits or self.limits)

    @contextmanager
    def _child(self, limits: ChildLimits) -> Iterator[tuple[OwnPeer, Lines | None]]:
        with closing(self.peer()) as peer:
            yield peer, None

    def _told(self, child: OwnPeer, errors: str) -> str:
        return child.failed("raises", errors).why if errors else ""

    def _begins_ns(self, plan: Plan, later: int = 0) -> int:
        return 0

    def _proof(self, plan: Plan, trace: Path) -> FailedRun:
        # A thread of this process cannot be killed.
        return replace(super()._proof(plan, trace), killed=False)


def of_purgatory(promise: Promise, factory: PurgatoryFactory) -> AdapterSubject:
    return _adapter(promise, "purgatory", partial(DrivenPurgatory, promise, factory))


def of_timer(promise: Promise, factory: TimerFactory) -> AdapterSubject:
    return _adapter(promise, "timer", partial(DrivenTimer, promise, factory))


def _adapter(promise: Promise, part: Part, makes: Callable[[Stage, int], Driven]) -> AdapterSubject:
    return AdapterSubject(
        (),
        describe(promise, part),
        part,
        "virtual-plan",
        promise.subject,
        leaves_out=partial(_lacking, promise),
        makes=makes,
    )


def of_command(
    promise: Promise, part: Part, description: Description, command: Sequence[str]
) -> CommandSubject:
    """A program that speaks the protocol. It is started again for each run, and if it misbehaves."""
    lacking = partial(_lacking, promise)
    return CommandSubject(
        tuple(command), description, part, "virtual-plan", promise.subject, leaves_out=lacking
    )


def play(run: str, under: CommandSubject) -> JudgedRun:
    # Each clause has its own test, so the run does not end at the first broken promise.
    effort = Effort(drawn=_DRAWN, scope=_SCOPE, crossed=_CROSSED, stepped=_STEPPED, ends=False)
    mode, ways = _MODES[run]
    subject = replace(under, mode=mode, ways=ways, limits=_LIMITS, effort=effort, account=Account())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{run}.jsonl"
        failure: SubjectFailed | None = None
        try:
            subject.run_seeded(_SEED, _OPERATIONS, path, silent)
        except SubjectFailed as failed:
            failure = failed
        if not path.exists():
            return judge_file(None, run, str(failure))
        result = check_files([path]).runs[0]
        cut = failure is not None and failure.kind == "unfinished"
        hung, stopped = ((), "") if failure is None or cut else _failing(subject, path, failure)
        # The second trace of a deadlock is in a temporary folder, so its name is left out.
        told = "" if failure is None or cut else _told(subject, failure)
        why = re.sub(r"; its trace is [^;]+", "", told)
        trace = b"" if subject.small else path.read_bytes()
    # Only the verdicts are kept: the rest has megabytes. A violation is shown by an execution of its own.
    whole = JudgedRun(why, lambda path: None, result, EVENT_SCHEMA.empty_table())
    return replace(
        whole,
        narrowed=partial(_narrowed, run, subject, whole, trace),
        hung=hung,
        stopped=stopped,
        unfinished=failure.why if failure is not None and cut else "",
    )


def _failing(subject: CommandSubject, path: Path, failure: SubjectFailed) -> tuple[tuple[str, ...], str]:
    """The calls that make the subject fail in this way: a small program, with its order of threads, or a shortest
    script; and why they may not be minimal."""
    account = subject.account
    if subject.small:
        if failure.kind not in ("deadlock", "raises", "raced", "refused"):
            return (), ""
        return _moves(order_of_failure(subject, path.with_name("again.jsonl"))), ""
    last = account.refused or (account.oldest or (0, None))[1] or Quiesce()
    kind = _ENDS_AS.get(failure.kind, failure.kind)
    found = shortest_failure(subject, path, last, kind, _SHORTENS_S)
    return ((), "") if found is None else (_moves(found.session), found.stopped)


def _told(subject: CommandSubject, failure: SubjectFailed) -> str:
    """The text of the failure. For an exception of an adapter in this process, it has no name of the subject and no
    kind."""
    plain = isinstance(subject, AdapterSubject) and failure.kind == "refused"
    return failure.why if plain else str(failure)


_ENDS_AS: Final[Mapping[FailureKind, FailureKind]] = {
    "deadlock": "hang", "endless": "hang", "raises": "refused", "raced": "refused", "crashes": "died",
}  # fmt: skip
"""For a proved kind of failure, the kind that a script must show."""


def _narrowed(
    run: str, subject: CommandSubject, whole: JudgedRun, trace: bytes, clause: str
) -> tuple[JudgedRun, tuple[str, ...]]:
    """The single execution or the shortest script that breaks the clause, with its calls. Otherwise the whole run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{run}.jsonl"
        if subject.small:
            session = order_of_run(subject, whole.result, clause, path)
            if session:
                again = judge_file(path, run)
                return replace(again, write=partial(_written, path.read_bytes())), _moves(session)
            return whole, ()
        path.write_bytes(trace)
        found = None if subject.of_units else shortest_of_trace(subject, path, clause, _SHORTENS_S)
        if found is None:
            # A shorter script may fail where the whole run continued.
            return replace(judge_file(path, run, whole.broken_off), write=partial(_written, trace)), ()
    recording = replace(found.recording, header=replace(found.recording.header, run=run))
    return replace(judge(recording), stopped=found.stopped), _moves(found.session)


def _moves(session: Sequence[str]) -> tuple[str, ...]:
    """The calls, and the pauses of threads, in words."""
    moves = (line for line in session if line.startswith(">") or orjson.loads(line[2:])["m"] == "held")
    return tuple(session_in_words(moves))


def _lacking(promise: Promise, program: SmallProgram) -> bool:
    return "expiry" in promise.lacks and bool(program.expiring() or program.passes_time)


def _written(trace: bytes, path: Path) -> None:
    path.write_bytes(trace)


PLAN: Final = "plan"
JUMPS: Final = "jumps"
SCOPE: Final = "scope"
PERIODIC: Final = "periodic"
UNITS: Final = "units"
PAUSES: Final = "pauses"
"""Of a timer with its own clock."""
_MODES: Final[Mapping[str, tuple[Mode, tuple[Way, ...]]]] = {
    PLAN: ("virtual-plan", ()),
    JUMPS: ("virtual-jumps", ()),
    SCOPE: ("virtual-scope", ()),
    PERIODIC: ("virtual-periodic", ()),
    UNITS: ("virtual-units", ()),
    "gates": ("virtual-gates", ("orders",)),
    "steps": ("virtual-steps", ("alone", "beside", "drawn")),
}
"""The mode of each long run, and its ways of execution."""

_CLAUSES: Final[dict[Part, tuple[str, ...]]] = {
    part: tuple(
        name
        for name, one in CLAUSES.items()
        if not one.asked_by and (part == "purgatory" or one.group == "timer")
    )
    for part in get_args(Part)
}


@dataclass(frozen=True, slots=True)
class SuiteScenario:
    """Fixed runs, and the clauses that can fail in these runs. `runs`: by name, the description of each run, which is
    shown if no short run shows the failure. `needs`: the scenario is SKIPPED if one of these lacks is declared.
    `threads`: the scenario needs calls from several threads."""

    name: str
    clauses: tuple[str, ...]
    runs: Mapping[str, str]
    needs: tuple[str, ...] = ()
    threads: bool = False
    empty: str | None = None
    """The reason why no program of the scenario fits the subject."""

    def ruled_out(self, promise: Promise) -> str | None:
        """The reason why the scenario cannot be executed, as the promise gives it; or None."""
        if self.threads and not promise.has_threads:
            return "its calls come from one thread: the promise does not offer `threads`"
        lacking = [lack for lack in self.needs if lack in promise.lacks]
        if lacking:
            return f"the subject lacks {lacking[0]}: {promise.lacks[lacking[0]]}"
        return self.empty


def scenarios_of(
    part: Part, promise: Promise, description: Description | None = None
) -> tuple[SuiteScenario, ...]:
    """All long runs of a part, in the order in which they are made. `description`: that of a program."""
    description = description or describe(promise, part)
    empty = None if any(scope(part, scope_delays(description), description)) else _TOO_SHORT
    planned, needs = (_CLAUSES[part], ()) if part == "timer" else ((*_CLAUSES[part], "P4"), ("expiry",))
    raced = tuple(clause for clause in _CLAUSES[part] if clause != "T2")
    resets = ("T11",) * ("reset" in promise.offers)
    runs = {name: {name: f"the whole run {name!r} of {__name__}"} for name in _MODES}
    if PROFILES[promise.profile].hands_over:
        shown = "the calls on the key above; all smaller programs passed"
        promised = tuple(one for one in _CLAUSES[part] if one in PROFILES[promise.profile].clauses)
        return (SuiteScenario(UNITS, promised, {UNITS: shown}, needs),)
    return (
        SuiteScenario(PLAN, planned, runs[PLAN], needs),
        SuiteScenario(JUMPS, planned, runs[JUMPS], needs),
        SuiteScenario(SCOPE, (*_CLAUSES[part], *resets), runs[SCOPE], empty=empty),
        SuiteScenario(PERIODIC, periodic_clauses(promise), runs[PERIODIC]),
        *(SuiteScenario(name, (*raced, *resets), runs[name], threads=True) for name in ("gates", "steps")),
    )


def periodic_clauses(promise: Promise) -> tuple[str, ...]:
    """The clauses about periodic tasks, resets and turns that the promise offers or declares; may be empty."""
    repeats = bool({"fixed-rate", "fixed-delay"} & {*promise.offers})
    clauses = ("T8", "T9") * repeats + ("T10",) * (repeats and "cancel" not in promise.lacks)
    clauses += ("T4",) * (repeats and "halts" in promise.offers)
    clauses += ("T5",) * (repeats and "size" not in promise.lacks)
    clauses += ("T11",) * ("reset" in promise.offers)
    clauses += ("T4",) * ("reset" in promise.offers and "cancel" not in promise.lacks)
    return clauses + ("T12",) * (promise.turn is not None and not {"re-entry", "past"} & {*promise.lacks})


def command_promise(description: Description) -> Promise:
    """The promise of a program, from its description. Raises ValueError if the profile is missing or unknown."""
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
    if "no-re-entry" in description.capabilities:
        lacks |= dict.fromkeys(("re-entry", "callbacks"), "it declares no-re-entry")
    if description.unit_ns > 1:
        lacks["between-ticks"] = f"its times are multiples of {description.unit_ns} ns"
    if description.least_delay_ns > 0:
        lacks["past"] = f"its smallest delay is {description.least_delay_ns} ns"
    if description.most_delay_ns < HUGE_NS:
        lacks["far"] = f"its largest delay is {description.most_delay_ns} ns"
    if not {"timer_add", "timer_fire"} & set(description.reports):
        lacks["timer"] = "it reports neither timer_add nor timer_fire"
    same = {name: getattr(description, name) for name in SAME}
    same |= {"profile": profile_of(description), "tick_ns": description.grain_ns}
    return Promise(
        longest_delay_ns=description.most_delay_ns,
        lacks=lacks,
        subject=description.name,
        offers=tuple(offer for offer in OFFERS if offer in description.capabilities),
        **same,
    )
