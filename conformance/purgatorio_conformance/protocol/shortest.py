"""Minimizes a violation in virtual time. The result is a list of calls that breaks the clause, and from which no call
can be removed.

The module reads the calls from the trace. It removes groups of calls as long as the clause is still broken. At the end,
the program is started again, and must break the clause again. The result has the trace, and the messages, which a
person can type into the program.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Final

from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.protocol.fewest import fewest
from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Call,
    Description,
    Register,
)
from purgatorio_conformance.protocol.played_order import Account, from_its_start, to_play_again
from purgatorio_conformance.protocol.recorded_calls import about, everything, leaping, script_of, since_rest
from purgatorio_conformance.protocol.script import AtGate, Played, Script, ScriptPlayer, ScriptStep
from purgatorio_conformance.protocol.session import noted
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed, silent
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.recording import RecordedRun, judge
from purgatorio_spec.show.visible import counted

_FEWER: Final = (20, 100)
_OF_PLAY: Final = re.compile(r'"(p\d+-[^"]*)"')
_HASTY_S: Final = 1.0
_PATIENT_S: Final = 5.0
"""How long, in seconds, a script must be silent to count as the same hang: during the search, and at the end."""

_SAMPLED_FROM: Final = 6
_SHARES: Final = (0.25,) * 40 + (0.5,) * 40 + (0.75,) * 20
"""For scripts of this number of calls or more, random parts are tried: the share of the calls of each part."""

_THINNED_FROM: Final = 20
_THINNED: Final = (0.25, 0.5, 0.25, 0.5, 0.75, 0.25, 0.5, 0.75)
"""As long as a script has more tasks, random parts of the tasks are tried first, with these shares."""

_ROUND_NS: Final = tuple(10**digits for digits in range(12, -1, -1))

MAX_PLAYS: Final = 2_000
MAX_SECONDS: Final = 30.0
"""The limits for the scripts of all causes in a trace: their number, and the seconds, see `Budget`. A script that is
found by then is short, but perhaps not the shortest."""


@dataclass
class Budget:
    """A limit in seconds of CPU time of this process and of the driven programs. So the result does not depend on other
    processes. The silence of a program that hangs counts too."""

    seconds: float = MAX_SECONDS
    driven_s: float = 0.0
    began_s: float = field(default_factory=time.process_time)

    def over(self) -> bool:
        return time.process_time() - self.began_s + self.driven_s > self.seconds


@dataclass(frozen=True, slots=True)
class Shortest:
    """A script that breaks `clause`: its recorded run and its session, from `start` on. `stopped`: why it may not be
    minimal; empty if the search came to its end."""

    clause: str
    script: Script
    recording: RecordedRun
    session: tuple[str, ...]
    stopped: str


def shortest(
    player: Callable[[], ScriptPlayer],
    script: Script,
    clause: str,
    operation: str,
    budget: Budget,
    shows: Callable[[Played], bool] | None = None,
    last: Callable[[], ScriptPlayer] | None = None,
) -> Shortest | None:
    """The shortest script found, from a script that broke `clause` for `operation` (or for a call or reading), or that
    `shows` another failure. `player`: starts the program; `last`: starts it for the proof. No execution begins after
    the `budget`.

    None if the violation does not repeat, as with a program that behaves differently each time, or if the program
    misbehaves during the search.
    """
    shows = shows or (lambda played: breaks(played, clause))
    with suppress(SubjectFailed):
        with closing(player()) as tries:
            before_s = budget.driven_s

            def is_shown(tried: Script) -> bool:
                played = tries.tried(tried)
                budget.driven_s = before_s + tries.driven_s()
                return shows(played)

            search = ScriptSearch(is_shown, tries.description, budget)
            found = search.reduced(script, operation)
        if found is not None:
            with closing((last or player)()) as fresh:
                played = fresh.tried(found)
            if shows(played):
                recording = RecordedRun(played.header, played.events)
                return Shortest(clause, found, recording, played.session, search.stopped)
    return None


def shortest_of_run(
    subject: CommandSubject, trace: Path, clause: str, seed: int, operations: int, folder: Path
) -> Shortest | None:
    """The shortest script for a clause that this recorded run in virtual time violated; see `shortest`.

    A smaller plan of the same seed is tried first, because a long script is slow to minimize. `folder` is for its
    trace.
    """
    traces = _shorter(subject, trace, seed, operations, folder)
    shown = (shortest_of_trace(subject, path, clause) for path, _ in traces)
    return next(filter(None, shown), None)


def shortest_of_trace(
    subject: CommandSubject, trace: Path, clause: str, seconds: float = MAX_SECONDS
) -> Shortest | None:
    """As `shortest_of_run`, from this trace alone."""
    budget = Budget(seconds)
    run = check_files([trace]).runs[0]
    causes = run.clauses[clause].causes.values() if clause in run.clauses else ()
    # Calls after the violation are not needed, unless the violation is a missing event.
    for until, first in product((True, False), [cause.examples[0] for cause in causes]):
        script = script_of(trace, subject.part, max(first.events) if until else None)
        found = shortest(subject.player, script, clause, first.subject, budget)
        if found is not None:
            return found
    return None


def shortest_failed(
    subject: CommandSubject, trace: Path, kind: FailureKind, seed: int, operations: int, folder: Path
) -> Shortest | None:
    """The shortest script found that fails with `kind`, from a recorded run in virtual time in which a call failed so:
    the program became silent (`hang`), ended (`died`), or ended the call with an error (`refused`)."""
    hasty = replace(subject, limits=ChildLimits(silence_s=_HASTY_S))
    for path, account in _shorter(hasty, trace, seed, operations, folder):
        last = account.refused if kind == "refused" else account.oldest and account.oldest[1]
        if last is not None and (found := shortest_failure(subject, path, last, kind)) is not None:
            return found
    return None


def shortest_failure(
    subject: CommandSubject, trace: Path, last: Call, kind: FailureKind, seconds: float = MAX_SECONDS
) -> Shortest | None:
    """The shortest script found that fails with `kind`, from a recorded run that failed so in the call `last`."""

    def shows(played: Played) -> bool:
        # A task that the driver made fail is no call that failed.
        failed = any(event.err is not None and event.f != "timer_fire" for event in played.events)
        raised = kind == "refused" and failed
        return raised or (played.failure is not None and played.failure.kind == kind)

    hasty, patient = (
        partial(subject.player, ChildLimits(silence_s=silence_s))
        for silence_s in (_HASTY_S, _patient_s(subject))
    )
    script = script_of(trace, subject.part, last=last)
    whose = last.id if isinstance(last, Add | Register) else ""
    return shortest(hasty, script, kind, whose, Budget(seconds), shows, patient)


def _shorter(
    subject: CommandSubject, trace: Path, seed: int, operations: int, folder: Path
) -> Iterator[tuple[Path, Account]]:
    """The traces of runs with smaller plans, then that of the run itself; each with its account."""
    for fewer in (few for few in _FEWER if few < operations):
        plan = subject.shape.make(seed, fewer, subject.threads, subject.tick_ns)
        # The record of the shorter run must not replace that of the whole run.
        again = replace(subject, account=Account())
        path = folder / f"{subject.name}-of-{fewer}.jsonl"
        with suppress(SubjectFailed):
            again.run(plan, path, silent)
        if path.exists():
            yield path, again.account
    yield trace, subject.account


def order_of_run(subject: CommandSubject, run: RunResult, clause: str, path: Path) -> tuple[str, ...]:
    """The session of the order that broke a clause in this run of small programs, executed again in a new process; its
    trace is at `path`. Empty if no order breaks the clause again. (After a barrier release, the threads may come in
    another order.)"""
    account = subject.account
    # The last execution may have ended the run, as with a task that runs without end.
    plays = [*account.plays, *filter(None, [account.under_way or account.in_turn])]
    broken = run.clauses.get(clause)
    for order in to_play_again(broken, plays, Path(run.file)) if broken is not None else ():
        session: list[str] = []
        subject.play_again(path, order, noted(session))
        # A program that no longer starts leaves no trace.
        judged = check_files([path]).runs[0] if path.exists() else None
        if judged is not None and judged.breaks(clause):
            causes = judged.clauses[clause].causes
            return from_its_start(session, next(iter(causes.values())).examples[0].subject)
    return ()


def order_of_failure(subject: CommandSubject, path: Path) -> tuple[str, ...]:
    """The session of the order in which a run of small programs failed, executed again in a new process. Empty if it
    does not fail again. The trace is at `path`."""
    account, session = subject.account, list[str]()
    order = account.under_way or account.in_turn
    limits = replace(subject.limits or ChildLimits(), silence_s=_patient_s(subject))
    if order is None or replace(subject, limits=limits).play_again(path, order, noted(session)) is None:
        return ()
    plays = _OF_PLAY.findall(" ".join(session)) or [""]
    return from_its_start(session, plays[-1])


def _patient_s(subject: CommandSubject) -> float:
    return min(_PATIENT_S, (subject.limits or ChildLimits()).silence_s)


def breaks(played: Played, clause: str) -> bool:
    # The clause may not apply to the remaining calls.
    return judge(RecordedRun(played.header, played.events)).result.breaks(clause)


class ScriptSearch:
    """Searches for a shorter script that `shows` the same. `stopped`: the limit that ended the search, if any."""

    def __init__(self, shows: Callable[[Script], bool], description: Description, budget: Budget) -> None:
        self.stopped = ""
        self._plays = 0
        self._shows = shows
        self._description = description
        self._budget = budget

    def reduced(self, script: Script, operation: str) -> Script | None:
        """The script without unneeded calls; None if the script does not break the clause (any more)."""
        alone, late = about(script, operation), since_rest(script, operation)
        # The whole script is last: for a long run it is slow.
        tried = (leaping(alone), alone, leaping(late), late, leaping(script), script)
        broken = next((one for one in tried if self._broken(one)), None)
        if broken is None:
            return None
        broken = self._thinned(self._leapt(broken))
        # Large parts first: whole tasks, then all moments of the clock between calls, then single calls.
        asked = everything(broken)
        shape = _shape(broken)
        few = fewest(asked, lambda some: self._broken(shape(about(broken, *some))), lambda kept: self._over())
        script = broken if few == asked else shape(about(broken, *few))
        script = self._first_broken((leaping(script), script))
        script = self._fewer(script)
        while (part := self._sampled(script)) != script:
            script = self._fewer(part)
        widths = _widths(self._description, script.moments()[-1])
        earlier = (_earlier(script, width_ns) for width_ns in widths)
        script = self._first_broken(
            (_started_later(script), *earlier, _shifted(script, script.start_ns), script)
        )
        # Rounder numbers take many executions for each call, so they come last.
        script = self._rounded(self._moved_apart(script, widths))
        if (turned := self._moved_apart(script, widths)) != script:
            script = self._rounded(turned)
        # At rounder times, a call may not be needed any more, or two advances may be one.
        script = self._fewer(self._first_broken((leaping(script), script)))
        return self._first_broken((_started_later(script), script))

    def _moved_apart(self, script: Script, widths: Sequence[int]) -> Script:
        """The script with its moments apart, and without the calls that it then does not need. At a turn of a wheel, a
        number alone cannot be rounder: a delay, and the advances after it, change together."""
        apart = (_apart(script, width_ns, self._description) for width_ns in widths)
        moved = self._first_broken((*filter(None, apart), script))
        return script if moved == script else self._fewer(self._first_broken((leaping(moved), moved)))

    def _leapt(self, script: Script) -> Script:
        """The script without intermediate advances in as much of its beginning as possible. Otherwise thousands of
        advances make each execution slow."""
        calls, low, high = script.calls, 0, len(script.calls)
        while high - low > 1 and leaping(script) != script and not self._over():
            middle = (low + high) // 2
            begins = leaping(replace(script, calls=calls[:middle])).calls
            if self._broken(leapt := replace(script, calls=(*begins, *calls[middle:]))):
                script, low = leapt, middle
            else:
                high = middle
        return script

    def _thinned(self, script: Script) -> Script:
        """The script with a random part of its tasks, and a part of these, as long as a part shows the violation. If
        any few of many tasks show it, as in a crowd, this takes fewer executions than to remove tasks in order."""
        shape = _shape(script)
        shares = iter(_THINNED)
        while len(asked := everything(script)) > _THINNED_FROM and (share := next(shares, None)):
            rng = random.Random(f"{len(asked)}/{self._plays}")
            part = about(script, *rng.sample(asked, int(len(asked) * share)))
            if self._broken(part := shape(part)):
                script, shares = part, iter(_THINNED)
        return script

    def _fewer(self, script: Script) -> Script:
        """The script without the calls that it does not need, if the others stay."""

        def shows(fewer: tuple[ScriptStep, ...]) -> bool:
            return self._broken(replace(script, calls=fewer))

        return replace(script, calls=fewest(script.calls, shows, lambda kept: self._over()))

    def _sampled(self, script: Script) -> Script:
        """A random part of the script; or the script, if no part shows the violation. Of some scripts every single call
        is needed, as in the arrangement of a heap, and still a few of the calls show the violation in another way."""
        rng = random.Random(len(script.calls))
        others = [at for at, call in enumerate(script.calls) if not isinstance(call, Advance)]
        for share in _SHARES if len(others) > _SAMPLED_FROM else ():
            left_out = {*rng.sample(others, int(len(others) * (1 - share)))}
            kept = tuple(call for at, call in enumerate(script.calls) if at not in left_out)
            if self._broken(part := replace(script, calls=kept)):
                return part
        return script

    def _first_broken(self, scripts: Sequence[Script]) -> Script:
        """The first script that breaks the clause; the last script is known to break it."""
        return next((script for script in scripts[:-1] if self._broken(script)), scripts[-1])

    def _over(self) -> bool:
        if self._plays >= MAX_PLAYS:
            self.stopped = f"not minimal: the search stopped after {counted(MAX_PLAYS, 'program')}"
        elif self._budget.over():
            self.stopped = f"not minimal: the search stopped after {self._budget.seconds:g} s of CPU time"
        return bool(self.stopped)

    def _broken(self, script: Script) -> bool:
        if self._over():
            return False
        self._plays += 1
        return self._shows(script)

    def _rounded(self, script: Script) -> Script:
        """The script with rounder numbers: each time and delay with as few digits as possible."""
        for place, call in enumerate(script.calls):
            if self._over():
                # Further candidates of a long script would take minutes, and none is executed any more.
                break
            for rounder in self._rounder(script, call):
                changed = _changed(script, place, rounder)
                if _in_order(changed) and self._broken(changed):
                    script = changed
                    break
            script = self._shortened(script, place)
        return script

    def _shortened(self, script: Script, place: int) -> Script:
        """The script with a shorter delay or an earlier time in this call, by bisection: the limit at which a program
        goes wrong (2^31 ms, a turn of a wheel) is shown as it is, and so is how late a task is."""
        call, description = script.calls[place], self._description
        value = _number(call)
        if value is None:
            return script
        moves, grain_ns = isinstance(call, Advance), description.grain_ns
        before = replace(script, calls=script.calls[:place]).moments()
        least_ns = before[-1] if moves else max(0, description.least_delay_ns)
        low, high = least_ns // grain_ns, -(-value // grain_ns)
        while high - low > 1 and not self._over():
            middle = (low + high) // 2
            if self._broken(changed := _changed(script, place, _with_number(call, middle * grain_ns))):
                script, high = changed, middle
            else:
                low = middle
        return script

    def _rounder(self, script: Script, call: ScriptStep) -> Iterator[ScriptStep]:
        """The call with other numbers that the subject accepts, the roundest first: smaller numbers, or a longer delay.
        An advance goes to a deadline first: the bound of a late task then needs no part for a jump."""
        value, description = _number(call), self._description
        if value is None:
            return
        moves = isinstance(call, Advance)
        least_ns = 0 if moves else max(0, description.least_delay_ns)
        rounded = sorted(_last_dues(script, description)) if moves else []
        for unit_ns in _ROUND_NS:
            rounded.append(value // unit_ns * unit_ns)
            if not moves and unit_ns < value and value % unit_ns:
                rounded.append(description.fit(value + unit_ns - value % unit_ns))
        for number in rounded:
            number -= number % description.unit_ns
            if least_ns <= number < value or (not moves and number > value):
                yield _with_number(call, number)


def _shape(script: Script) -> Callable[[Script], Script]:
    """`leaping`, if the script has no intermediate advances: then a part of it needs none either."""
    return leaping if leaping(script) == script else lambda part: part


def _changed(script: Script, place: int, call: ScriptStep) -> Script:
    """The script with this call in that place, and in the place of each equal add of the task."""
    old = script.calls[place]
    alike = {n for n, one in enumerate(script.calls) if isinstance(one, Add) and one == old} | {place}
    return replace(script, calls=tuple(call if n in alike else one for n, one in enumerate(script.calls)))


def _number(call: ScriptStep) -> int | None:
    if isinstance(call, Advance):
        return call.now_ns
    return call.delay_ns if isinstance(call, Add | Register) else None


def _with_number(call: ScriptStep, value: int) -> ScriptStep:
    if isinstance(call, Advance):
        return replace(call, now_ns=value)
    return replace(call, delay_ns=value) if isinstance(call, Add | Register) else call


def _in_order(script: Script) -> bool:
    return all(before <= after for before, after in pairwise(script.moments()))


def _last_dues(script: Script, description: Description) -> set[int]:
    now_ns, dues = script.start_ns, set[int]()
    for call in script.calls:
        if isinstance(call, Advance):
            now_ns = call.now_ns
        elif isinstance(call, Add | Register) and call.delay_ns is not None:
            dues.add(now_ns + call.delay_ns + (description.late_ns or 0))
    return dues


def _first(script: Script) -> int:
    return next((n for n, call in enumerate(script.calls) if not isinstance(call, Advance)), 0)


def _started_later(script: Script) -> Script:
    """The script from time 0, without the first calls if these are only advances."""
    start_ns = script.moments()[_first(script)]
    return _shifted(replace(script, calls=script.calls[_first(script) :]), start_ns)


def _earlier(script: Script, tick_ns: int) -> Script:
    """The same script, with its first call (that is no advance) moved to the earliest possible whole tick."""
    first = _first(script)
    return _shifted(script, script.moments()[first] // tick_ns * tick_ns, first - 1)


def _shifted(script: Script, by_ns: int, since: int = 0) -> Script:
    """The script from time 0, with its advances from this place on earlier."""
    calls = tuple(
        replace(call, now_ns=call.now_ns - by_ns) if isinstance(call, Advance) and at >= since else call
        for at, call in enumerate(script.calls)
    )
    return replace(script, start_ns=0, calls=calls)


def _widths(description: Description, most_ns: int) -> list[int]:
    """The tick, and the turn of each level of the wheel, up to this time."""
    widths = [description.grain_ns]
    while description.buckets > 1 and widths[-1] * description.buckets <= most_ns:
        widths.append(widths[-1] * description.buckets)
    return widths


def _apart(script: Script, width_ns: int, description: Description) -> Script | None:
    """The script from time 0, with its moments and deadlines in the same order, `width_ns` apart. Those within the late
    bound of the one before keep their distance. None if that takes longer, or does not fit the subject."""
    spans, now_ns = list[tuple[int, int]](), script.start_ns
    for call in script.calls:
        until_ns = call.now_ns if isinstance(call, Advance) else now_ns + (_number(call) or 0)
        spans.append((now_ns, until_ns))
        now_ns = until_ns if isinstance(call, Advance) else now_ns
    new, count, first_ns = {script.start_ns: 0}, 0, script.start_ns
    for until_ns in sorted(until_ns for _, until_ns in spans):
        if until_ns - first_ns > (description.late_ns or 0):
            count, first_ns = count + 1, until_ns
        new[until_ns] = count * width_ns + until_ns - first_ns
    delays = [new[until_ns] - new[since_ns] for since_ns, until_ns in spans]
    calls = tuple(
        _with_number(call, new[until_ns] if isinstance(call, Advance) else delay_ns)
        for call, delay_ns, (_, until_ns) in zip(script.calls, delays, spans, strict=True)
    )
    fits = all(delay_ns == description.fit(delay_ns) or not delay_ns for delay_ns in delays)
    longer = max(new.values()) >= max(new) - script.start_ns
    gates = any(isinstance(call, AtGate) for call in calls)
    return None if longer or gates or not fits else replace(script, start_ns=0, calls=calls)
