"""Functions of the command `verify`: make subjects from programs, judge programs that misbehave, and minimize
violations."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import click

from purgatorio_conformance.protocol.driver import CommandSubject, TimeChoice, command_subjects
from purgatorio_conformance.protocol.played_order import first_in_trace
from purgatorio_conformance.protocol.shortest import (
    order_of_failure,
    order_of_run,
    shortest_failed,
    shortest_of_run,
    shortest_of_trace,
)
from purgatorio_conformance.recording import RunRecord
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.printed import Shortest
from purgatorio_spec.check import check_files
from purgatorio_spec.failure import Failure, surviving
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult, broken_off
from purgatorio_spec.recording import judge_file
from purgatorio_spec.show.selection import wording_of
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.verdict import Verdict

Judge = Callable[[Sequence[Path]], Judged]

MINIMIZED_CLAUSES = 5
"""The limit of violated clauses that are minimized: each takes some seconds."""
MINIMIZING_LIMIT_S = 60.0
"""No minimization starts later than this after the first."""
SESSION_SHOWN = 40
SESSION_KEPT = 400
_FOLDED = 3
"""Limits of session lines in the terminal and in JSON; the trace contains all calls. The terminal folds at least this
number of repetitions of two lines."""


def subjects_of_commands(
    commands: Sequence[str], time: TimeChoice, lines: str | None
) -> tuple[list[CommandSubject], list[RunRecord]]:
    """The subjects of each command, and a record of each command that misbehaved before a run. `lines`: see
    `CommandSubject`.

    Raises click.UsageError for a command that cannot be started, or that does not speak this version of the protocol.
    """
    subjects: list[CommandSubject] = []
    failed: list[RunRecord] = []
    for number, text in enumerate(commands):
        try:
            arguments = shlex.split(text)
        except ValueError as bad:
            raise click.UsageError(f"--command {text!r}: {bad}") from None
        if not arguments:
            raise click.UsageError("--command is empty: give a program and its arguments")
        try:
            found = command_subjects(arguments, time=time, lines=lines)
        except SubjectFailed as failure:
            if failure.kind in ("unavailable", "wrong-version"):
                raise click.UsageError(visible(str(failure), TEXT_LIMIT)) from None
            failed.append(RunRecord(f"command-{number + 1}", failure.subject, None, failure))
            continue
        taken = {subject.label for subject in subjects}
        # Two commands may have one name, but their runs need different names.
        subjects += [
            replace(one, label=f"{one.label}-{number + 1}") if one.label in taken else one for one in found
        ]
    return subjects, failed


def judge_records(records: Sequence[RunRecord], judge: Judge) -> Judged:
    """Judges every recorded run, an interrupted one up to its end. A run without a trace is in the result too."""
    traces = {record.run: record.trace for record in records}
    paths = [path for path in traces.values() if path is not None]
    judged = judge(paths) if paths else Judged(CheckResult(()), {}, [])
    by_path = dict(zip(paths, judged.result.runs, strict=True))
    runs = [_run(record, by_path, traces[record.run]) for record in records]
    return replace(judged, result=replace(judged.result, runs=tuple(runs)))


def bad_end(run: RunResult) -> str:
    """Describes a run that is VIOLATED or whose program misbehaved: the run in one line, then each broken
    promise and its first violation. Empty for other runs."""
    broken = [clause for clause in run.clauses.values() if clause.verdict is Verdict.VIOLATED]
    if not run.failure and not broken:
        return ""
    told = [f"{one.clause}  {wording_of(one.clause, run.profile).title}; {_seen(one)}" for one in broken]
    told += run.problems[:1] if run.failure else ()
    named = ", ".join(one.clause for one in broken) or run.failure
    lines = (
        textwrap.fill(visible(one, 4 * TEXT_LIMIT), 80, initial_indent="  ", subsequent_indent="      ")
        for one in told
    )
    return "\n".join((f"{run.run}: {run.verdict}: {named}", *lines))


def _seen(clause: ClauseResult) -> str:
    first = next(iter(clause.causes.values())).examples[0]
    return f"seen at {first.subject}: {first.seen}"


def _run(record: RunRecord, by_path: dict[Path, RunResult], path: Path | None) -> RunResult:
    judged = None if path is None else by_path[path]
    if judged is None:
        judged = RunResult(record.run, record.run, record.subject, "", Verdict.UNKNOWN, 0, {})
    if record.failure is None:
        return judged
    return broken_off(judged, record.failure.kind, record.failure.why)


@dataclass(frozen=True, slots=True)
class Minimal:
    """The minimized calls, or the schedule of threads, that violate a clause of a run, and the path of their trace.
    `stopped`: why the calls may not be minimal."""

    run: str
    clause: str
    path: Path
    calls: int
    session: tuple[str, ...]
    stopped: str = ""

    def printed(self) -> Shortest:
        """The record for `verify --json`: the session, cut to its beginning if it could not be minimized."""
        return Shortest(self.run, self.clause, self.calls, self.session[:SESSION_KEPT])


def print_shortest(shown: Sequence[Minimal], notes: Sequence[str], *, verbose: bool = False) -> None:
    """Prints the sessions, the shortest first and each once, limited in length, with control characters escaped. Then
    the notes. Unless `verbose`, only the first has its messages: the tables say the same."""
    for number, (path, of_path) in enumerate(groupby(shown, key=lambda one: one.path)):
        first, *more = of_path
        clauses = ", ".join(one.clause for one in (first, *more))
        click.echo(f"\n{clauses} in {counted(first.calls, 'call')}: {path}")
        if first.stopped:
            click.echo(first.stopped)
        if number and not verbose:
            continue
        # The beginning of a long session shows nothing of the violation.
        session = _folded(first.session) if first.calls <= SESSION_SHOWN else []
        for line in session[:SESSION_SHOWN]:
            click.echo(visible(line, TEXT_LIMIT))
        if len(session) > SESSION_SHOWN:
            click.echo(f"... {len(session) - SESSION_SHOWN:,} more lines")
    for note in notes:
        click.echo(textwrap.fill(visible(note, 4 * TEXT_LIMIT), 80, subsequent_indent="  "))
    if shown or notes:
        click.echo()


def _folded(session: Sequence[str]) -> list[str]:
    """The session. Many repetitions of a pair of lines (a task that runs without end) become one line."""
    lines: list[str] = []
    at = 0
    while at < len(session):
        pair, again = session[at : at + 2], 0
        while session[at + 2 * again + 2 : at + 2 * again + 4] == pair:
            again += 1
        few = again < _FOLDED
        lines += pair[:1] if few else (*pair, *pair, f"... {counted(again - 1, 'more time')} these two lines")
        at += 1 if few else 2 * again + 2
    return lines


@dataclass(frozen=True, slots=True)
class ToShow:
    """A clause that a run broke, or its failure (`fails`), and how the program was driven in it."""

    subject: CommandSubject
    run: RunResult
    clause: str
    fails: FailureKind | None = None

    @property
    def at(self) -> int:
        """The event at which the run breaks the clause."""
        causes = self.run.clauses[self.clause].causes.values() if self.clause in self.run.clauses else ()
        return min((cause.examples[0].events[-1] for cause in causes), default=0)

    @property
    def unfit(self) -> str:
        """Why the calls of this run are not minimized; empty if they can be."""
        if self.subject.of_units:
            return "the programs with units run by size, so the first one that shows it is small"
        repeats = self.subject.held or self.subject.virtual
        return "" if repeats else "a program in real time does not repeat its calls"

    def shown(self, seed: int, operations: int, folder: Path) -> Minimal | str:
        """Returns the minimized session, or why there is none. Writes its trace to `folder`; deletes a trace that does
        not violate the clause, and after an interrupt."""
        path = folder / f"{self.run.run}-shortest-{self.clause}.jsonl"
        try:
            found = self.unfit or self._found(path, seed, operations, folder)
        except KeyboardInterrupt:
            path.unlink(missing_ok=True)
            raise
        if path.exists() and (isinstance(found, str) or not (self.fails or _breaks(path, self.clause))):
            path.unlink()
            return found if isinstance(found, str) else _NOT_AGAIN
        return found

    def _found(self, path: Path, seed: int, operations: int, folder: Path) -> Minimal | str:
        trace = Path(self.run.file)
        order: Minimal | str | None = None
        if self.fails:
            found = shortest_failed(self.subject, trace, self.fails, seed, operations, folder)
            if found is None and self.subject.small:
                # A script has no calls inside callbacks.
                order = self._order(path, order_of_failure(self.subject, path))
        elif self.subject.small:
            order = self._order(path, order_of_run(self.subject, self.run, self.clause, path))
            # Without threads, the program is a script, and some of its calls may not be needed.
            source = path if order else trace
            alone = self.subject.virtual and self.subject.description.lanes == 1 and source.is_file()
            found = shortest_of_trace(self.subject, source, self.clause) if alone else None
        else:
            found = shortest_of_run(self.subject, trace, self.clause, seed, operations, folder)
        if found is None:
            return order or _NOT_AGAIN
        if len(found.session) > SESSION_KEPT:
            return order or _too_long(found.session)
        header = replace(found.recording.header, run=path.stem)
        replace(found.recording, header=header).write(path)
        return Minimal(self.run.run, self.clause, path, len(found.script.calls), found.session, found.stopped)

    def _order(self, path: Path, session: tuple[str, ...]) -> Minimal | str | None:
        if len(session) > SESSION_KEPT:
            return _too_long(session)
        calls = sum(line.startswith(">") for line in session)
        return Minimal(self.run.run, self.clause, path, calls, session) if session else None


def _too_long(session: Sequence[str]) -> str:
    """A longer session was not minimized; it adds nothing to the counterexample."""
    return f"the fewest calls that were found have {len(session):,} messages, too many to read; there may be fewer"


_NOT_AGAIN = "no shorter list of calls shows it again in a new process"


def to_show(result: CheckResult, driven: Sequence[CommandSubject], seed: int) -> list[ToShow]:
    """For each driven program, part and violated clause: the first run that can be replayed, else the first run. Of
    gated runs, the one whose violation comes first, because that one is shown if it cannot be minimized."""
    runs = {run.run: run for run in result.runs}
    chosen: dict[tuple[str, str, str], ToShow] = {}
    for subject in driven:
        run = runs.get(f"{subject.name}-seed{seed}")
        if run is None:
            continue
        broken = [
            ToShow(subject, run, clause)
            for clause, judged in run.clauses.items()
            if judged.verdict is Verdict.VIOLATED
        ]
        fails = _FAILS.get(run.failure)
        if fails is not None and not subject.held:
            broken.insert(0, ToShow(subject, run, *fails))
        for one in broken:
            key = subject.label, subject.part, one.clause
            before = chosen.get(key)
            sooner = before is not None and before.subject.held and subject.held and one.at < before.at
            if before is None or sooner or (before.unfit and not one.unfit):
                chosen[key] = one
    return sorted(chosen.values(), key=lambda one: bool(one.unfit))


_FAILS: Mapping[str, tuple[str, FailureKind]] = {
    "deadlock": ("P3", "hang"),
    "endless": ("P3", "hang"),
    "hang": ("hang", "hang"),
    "crashes": ("P3", "died"),
    "died": ("died", "died"),
    "raises": ("P3", "refused"),
}
"""For a failure of a run: the name of a script that shows it, and how the script fails."""


def shortest_sessions(
    wanted: Sequence[ToShow],
    seed: int,
    operations: int,
    folder: Path,
    tell: Callable[[float, str], None],
    failures: list[Failure],
    notes: list[str],
) -> list[Minimal]:
    """Minimizes each violation within the limits, and returns those that succeeded, the shortest first. `notes` gets a
    sentence for each of the others.

    `tell` gets the number of minimized violations and the next one. `failures` collects errors: an error in one
    minimization, such as a full disk, changes neither the others nor the verdicts.
    """
    shown: list[tuple[ToShow, Minimal]] = []
    until_s = time.monotonic() + MINIMIZING_LIMIT_S
    for number, one in enumerate(wanted):
        found: Minimal | str = "an error of Purgatorio"
        if number >= MINIMIZED_CLAUSES or time.monotonic() > until_s:
            found = f"the limit is {MINIMIZED_CLAUSES} clauses in {MINIMIZING_LIMIT_S:g} s"
        else:
            tell(number, f"minimizing the calls that violate {one.clause}")
            with surviving(f"minimizing {one.clause} of {one.run.run}", failures):
                found = one.shown(seed, operations, folder)
        if isinstance(found, str):
            notes.append(f"{one.clause} of {one.run.run} was not minimized: {found}")
        else:
            shown.append((one, found))
    shown.sort(key=lambda each: (each[1].calls, _seen_at(each[1])))
    paths = [each.path for _, each in shown]
    for at, (one, mine) in enumerate(shown):
        # The program found for another clause of the same subject may be as short, and break this clause too.
        with surviving(f"minimizing {one.clause} of {one.run.run}", failures):
            shorter = [other for its, other in shown[:at] if _is_same(its, one) and other.calls <= mine.calls]
            for other in shorter:
                if not one.fails and other.path.exists() and _breaks(other.path, one.clause):
                    mine.path.unlink(missing_ok=True)
                    shown[at] = one, replace(other, run=mine.run, clause=mine.clause)
                    break
    return sorted((each for _, each in shown), key=lambda each: paths.index(each.path))


def by_shortest(judged: Judged, shown: Sequence[Minimal]) -> Judged:
    """The examples, with the events of the minimized program instead of the events of the long run."""
    examples = dict(judged.examples)
    for one in shown:
        short = judge_file(one.path if one.path.exists() else None, one.run)
        if short.result.breaks(one.clause):
            since_i = first_in_trace(one.session, short.table)
            whole = one.calls <= SESSION_SHOWN
            example = short.example(one.clause, str(one.path), whole=whole, since_i=since_i)
            place = (one.run, one.clause, example.violation.cause)
            examples.update({key: example for key in judged.examples if key[1:] == place})
    return replace(judged, examples=examples)


def _is_same(one: ToShow, other: ToShow) -> bool:
    """Whether both show the same program and the same part of it."""
    return (one.subject.label, one.subject.part) == (other.subject.label, other.subject.part)


def _seen_at(one: Minimal) -> int:
    """The event at which its trace breaks the clause. Of programs with equally many calls, the earliest leads."""
    (run,) = check_files([one.path]).runs if one.path.exists() else (None,)
    causes = run.clauses[one.clause].causes.values() if run is not None and one.clause in run.clauses else ()
    return min((cause.examples[0].events[-1] for cause in causes), default=0)


def _breaks(trace: Path, clause: str) -> bool:
    (run,) = check_files([trace]).runs
    return run.breaks(clause)
