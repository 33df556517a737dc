"""What `verify` does around the recording: subjects from commands, misbehaviour as a verdict of its run, and the
shortest session that shows a violation."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.printed import Shortest
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult, broken_off
from purgatorio_spec.show.selection import promise_of
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.protocol.driver import CommandSubject, TimeChoice, command_subjects
from purgatorio_stress.protocol.shortest import order_of_run, shortest_hang, shortest_of_run
from purgatorio_stress.subject.contract import SubjectFailed
from purgatorio_stress.subjects import RunRecord

Judge = Callable[[Sequence[Path]], Judged]

SHORTENED = 5
"""So many violated clauses are made short: each takes some seconds."""
SHORTENING_S = 60.0
"""No search for a short one begins later than this after the first."""
SESSION_SHOWN = 40
SESSION_KEPT = 400
"""Lines of a session on the terminal, and in JSON; the trace has all of its calls."""


def subjects_of_commands(
    commands: Sequence[str], time: TimeChoice, lines: str | None
) -> tuple[list[CommandSubject], list[RunRecord]]:
    """The ways to drive each command, and what came of those that misbehave before a run can begin. `lines`: see
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
            raise click.UsageError("--command is empty: name a program and its arguments")
        try:
            found = command_subjects(arguments, time=time, lines=lines)
        except SubjectFailed as failure:
            if failure.kind in ("unavailable", "wrong-version"):
                raise click.UsageError(visible(str(failure), TEXT_LIMIT)) from None
            failed.append(RunRecord(f"command-{number + 1}", failure.subject, None, failure))
            continue
        taken = {subject.label for subject in subjects}
        # Two commands may call themselves the same; their runs must not.
        subjects += [
            replace(one, label=f"{one.label}-{number + 1}") if one.label in taken else one for one in found
        ]
    return subjects, failed


def judge_records(records: Sequence[RunRecord], judge: Judge) -> Judged:
    """Judge all that was recorded, broken-off runs as far as they go; a run without a trace is there as well."""
    traces = {record.run: record.trace for record in records}
    paths = [path for path in traces.values() if path is not None]
    judged = judge(paths) if paths else Judged(CheckResult(()), {}, [])
    by_path = dict(zip(paths, judged.result.runs, strict=True))
    runs = [_run(record, by_path, traces[record.run]) for record in records]
    return replace(judged, result=replace(judged.result, runs=tuple(runs)))


def bad_end(run: RunResult) -> str:
    """What is wrong with a run that is VIOLATED, or whose program misbehaved: the run in one line, then what is
    promised and what was seen instead. Nothing for any other."""
    broken = [clause for clause in run.clauses.values() if clause.verdict is Verdict.VIOLATED]
    if not run.failure and not broken:
        return ""
    told = [f"{one.clause}  {promise_of(one.clause, run.profile)}; {_seen(one)}" for one in broken]
    told += run.problems[:1] if run.failure else ()
    named = ", ".join(one.clause for one in broken) or run.failure
    lines = (
        textwrap.fill(visible(one, TEXT_LIMIT), 80, initial_indent="  ", subsequent_indent="      ")
        for one in told
    )
    return "\n".join((f"{run.run}: {run.verdict}: {named}", *lines))


def _seen(clause: ClauseResult) -> str:
    first = next(iter(clause.causes.values())).examples[0]
    return f"seen of {first.subject}: {first.seen}"


def _run(record: RunRecord, by_path: dict[Path, RunResult], path: Path | None) -> RunResult:
    judged = None if path is None else by_path[path]
    if judged is None:
        judged = RunResult(record.run, record.run, record.subject, "", Verdict.UNKNOWN, 0, {})
    if record.failure is None:
        return judged
    return broken_off(judged, record.failure.kind, record.failure.why)


@dataclass(frozen=True, slots=True)
class Shown:
    """The fewest calls, or the order of threads, that show a violated clause of a run, and where the trace lies."""

    run: str
    clause: str
    path: Path
    calls: int
    session: tuple[str, ...]

    def printed(self) -> Shortest:
        """For `verify --json`: the whole session stands there, or where it begins if it could not be made short."""
        return Shortest(self.run, self.clause, self.calls, self.session[:SESSION_KEPT])

    def print(self) -> None:
        """The session as it went, bounded; whatever the program wrote is made visible."""
        click.echo(f"\n{self.clause} in {counted(self.calls, 'call')}: {self.path}")
        for line in self.session[:SESSION_SHOWN]:
            click.echo(visible(line, TEXT_LIMIT))
        if len(self.session) > SESSION_SHOWN:
            click.echo(f"... {len(self.session) - SESSION_SHOWN:,} more lines")


def shortest_sessions(
    result: CheckResult,
    driven: Sequence[CommandSubject],
    seed: int,
    operations: int,
    folder: Path,
    tell: Callable[[float, str], None],
) -> list[Shown]:
    """For each driven program, part and violated clause the shortest that was found, its trace in `folder`. `tell`
    hears how many have been looked for, and which is next. Where no trace can be written, as on a full disk, those that
    were found before."""
    shown: list[Shown] = []
    with suppress(OSError):
        runs = {run.run: run for run in result.runs}
        done: set[tuple[str, str, str]] = set()
        until_s = time.monotonic() + SHORTENING_S
        for subject in driven:
            run = runs.get(f"{subject.name}-seed{seed}")
            if run is None or not (subject.held or subject.virtual):
                continue
            hung = {"deadlock": "P3", "hang": "hang"}.get(run.failure)
            broken = [clause for clause, judged in run.clauses.items() if judged.verdict is Verdict.VIOLATED]
            if hung is not None and not subject.held:
                broken.insert(0, hung)
            for clause in broken:
                key = (subject.label, subject.part, clause)
                if key in done or len(done) >= SHORTENED:
                    continue
                if time.monotonic() > until_s:
                    return shown
                tell(len(done), f"looking for the fewest calls that show {clause}")
                done.add(key)
                path = folder / f"{run.run}-shortest-{clause}.jsonl"
                if subject.held:
                    session = order_of_run(subject, Path(run.file), clause, path)
                    if session:
                        calls = sum(line.startswith(">") for line in session)
                        shown.append(Shown(run.run, clause, path, calls, session))
                    continue
                if clause == hung:
                    found = shortest_hang(subject, Path(run.file), seed, operations, folder)
                else:
                    found = shortest_of_run(subject, Path(run.file), clause, seed, operations, folder)
                if found is not None and len(found.session) <= SESSION_KEPT:
                    # A longer one was not cut down, and shows nothing that the counterexample does not.
                    header = replace(found.recording.header, run=path.stem)
                    replace(found.recording, header=header).write(path)
                    shown.append(Shown(run.run, clause, path, len(found.script.calls), found.session))
    return shown
