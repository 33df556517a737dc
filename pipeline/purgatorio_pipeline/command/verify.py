"""The command `purgatorio verify`: drives timers and purgatories, and judges the recorded calls."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from purgatorio_conformance.protocol.coverage import doubted, looked_for, not_looked_for
from purgatorio_conformance.protocol.driver import CommandSubject, TimeChoice
from purgatorio_conformance.protocol.lines import ANY_CLASS
from purgatorio_conformance.recording import RunRecord, record_runs
from purgatorio_conformance.subjects import MAIN, SUBJECTS, subjects_named
from purgatorio_pipeline.command.driving import (
    Minimal,
    bad_end,
    by_shortest,
    judge_records,
    print_shortest,
    shortest_sessions,
    subjects_of_commands,
    to_show,
)
from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.options import argument, flag, folder, number, option, shared, taking
from purgatorio_pipeline.command.output import CheckOutput, EngineAsked, GroupedCommand, TablesOutput, show
from purgatorio_pipeline.command.progress import Progress, progress
from purgatorio_pipeline.judging import Engine, Focus, Judged, together
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.failure import surviving
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

RECORDERS = 8
"""Runs recorded at a time: they mostly sleep."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    subjects: Sequence[str] = argument(nargs=-1)
    seed: int = number("Seed of the random calls.", 1)
    operations: int = number("Number of tasks or operations in each run.", 2_000, least=1)
    seconds: float | None = option(
        "Time limit for the runs. Then the recorded calls are judged. Each run that was ended or did not begin is "
        "UNKNOWN. Minimizing takes further time.",
        type=click.FloatRange(min=1),
    )
    traces: Path | None = folder("Keep the recorded traces in this folder.")
    listing: bool = flag("List the subjects.", named="--list")
    commands: Sequence[str] = option(
        "Program with the protocol purgatorio-subject/1, such as 'node my.js'. `verify` uses no shell. May be "
        "repeated.",
        named="--command", multiple=True,
    )  # fmt: skip
    time: TimeChoice = option(
        "For --command: test the program in virtual time, in real time, or in both if the program offers both.",
        type=click.Choice(["virtual", "real", "all"]), default="all", show_default=True,
    )  # fmt: skip
    lines: str = option(
        "For a --command that runs a JVM: pause threads at source lines of these classes, such as 'org.acme.*'. "
        "'none': at no line. Default: all classes except the JDK's.",
        default=ANY_CLASS, metavar="CLASSES",
    )  # fmt: skip
    engine: EngineAsked = shared(EngineAsked)
    output: TablesOutput = shared(TablesOutput)


@taking(
    VerifyOptions,
    cls=GroupedCommand,
    epilog="Exit status: 0 pass, 1 violated, 2 wrong usage or an invalid trace, 3 unknown.",
)
def command(asked: VerifyOptions) -> None:
    """Drive a timer or purgatory, record its calls and judge them.

    \b
      purgatorio verify --command 'node my.js'

    SUBJECTS are timers and purgatories that this package can drive (see --list). Default: reference, netty and
    asyncio. With --command, the default is that program alone. In real time, SUBJECTS get random calls only. Not tested
    then: many tasks in one bucket, every level of a wheel, and idle times.
    """
    engine, output, seed, operations = asked.engine, asked.output, asked.seed, asked.operations
    if asked.listing:
        for name in SUBJECTS:
            click.echo(name)
        return
    engine.choice((), output)  # refuse impossible options before driving anything
    names = list(asked.subjects) or ([] if asked.commands else list(MAIN))
    with wrong_usage(KeyError):
        chosen = [subject for name in names for subject in subjects_named(name)]
    driven, failed = subjects_of_commands(
        asked.commands, asked.time, None if asked.lines == "none" else asked.lines
    )
    chosen += driven
    with _traces_folder(asked.traces, quiet=output.json) as place:
        named = [*names, *(subject.label for subject in driven)]
        recording = f"recording {', '.join(dict.fromkeys(named))}"
        with progress(recording, len(chosen), "runs", quiet=output.json or not chosen) as going:
            early: dict[Path, Judged] = {}
            ended = _told_early(going, early, full=engine.full) if driven and not output.json else None
            records = [
                *failed,
                *record_runs(
                    chosen,
                    place,
                    seed,
                    operations,
                    going.share,
                    RECORDERS,
                    ended=ended,
                    seconds=asked.seconds,
                ),
            ]

        def judge(paths: Sequence[Path]) -> Judged:
            choice = engine.choice(paths, output).engine
            if choice is Engine.PROCESS and ended is not None:
                # A run whose early judgement failed is judged now.
                late = (path for path in paths if path not in early)
                early.update({path: judge_in_process([path], full=engine.full) for path in late})
                return together([early[path] for path in paths])
            return engine.judge(choice, f"checking {counted(len(records), 'recorded run')}", paths, output)

        judged = judge_records(records, judge)
        shown = []
        notes: list[str] = []
        failures = [record.ours for record in records if record.ours is not None]
        if wanted := to_show(judged.result, driven, seed):
            with progress("minimizing the counterexamples", quiet=output.json) as going:
                # The runs are judged. A signal ends only the search for shorter programs.
                try:
                    shown = shortest_sessions(wanted, seed, operations, place, going.tell, failures, notes)
                    with surviving("showing the shortest programs", failures):
                        judged = by_shortest(judged, shown)
                except KeyboardInterrupt:
                    notes.append("not minimized: stopped by a signal")
        judged = replace(judged, failures=[*judged.failures, *failures])
        status = _show(judged, driven, shown, notes, output)
        if names and not output.json:
            click.echo("left out in real time: crowds, levels of a wheel, idle gaps (a --command has them)")
        sys.exit(status)


@contextmanager
def _traces_folder(traces: Path | None, *, quiet: bool) -> Iterator[Path]:
    """The folder of the traces, which is told at the end. A temporary folder is removed if it is empty or all passed:
    the replay lines name the other traces, also those that were recorded before Ctrl-C. SIGTERM (from `timeout`) ends
    the body like Ctrl-C."""
    folder = traces or Path(tempfile.mkdtemp(prefix="purgatorio-traces-"))
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield folder
    except (SystemExit, KeyboardInterrupt, OSError) as ended:
        status = ended.code if isinstance(ended, SystemExit) else None
        if traces is None and (status == EXIT_STATUS[Verdict.PASS] or not any(folder.iterdir())):
            shutil.rmtree(folder, ignore_errors=True)
        elif status is None:
            click.echo(f"To judge the recorded runs: purgatorio check {shlex.quote(str(folder))}", err=True)
        elif not quiet:
            click.echo(f"traces: {folder}")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _told_early(going: Progress, early: dict[Path, Judged], *, full: bool) -> Callable[[RunRecord], None]:
    """Judges each run when it ends, keeps the result in `early`, and reports a run that is VIOLATED or misbehaves."""

    def judge(paths: Sequence[Path]) -> Judged:
        judged = judge_in_process(paths, full=full)
        early.update(dict.fromkeys(paths, judged))
        return judged

    def ended(record: RunRecord) -> None:
        # The final report repeats early results and early errors.
        with surviving("reporting early", []):
            (run,) = judge_records([record], judge).result.runs
            if said := bad_end(run):
                going.say(said)

    return ended


def _show(
    judged: Judged,
    driven: Sequence[CommandSubject],
    shown: Sequence[Minimal],
    notes: Sequence[str],
    output: CheckOutput,
) -> int:
    """Shows the check and the minimized sessions; for driven programs also what was not tested and probable adapter
    mistakes. Returns the exit status."""
    if not driven:
        return show(judged, Focus(), output)
    failures = [*judged.failures]
    silent, doubts = [], []
    with surviving("listing what was not tested", failures):
        silent, doubts = not_looked_for(driven), doubted(driven)
    judged = replace(judged, failures=failures)
    shortest = [one.printed() for one in shown]
    if not output.json:
        # First of all: if the adapter is wrong, nothing below is about the timer or purgatory.
        _print_told(doubts)
        print_shortest(shown, notes, verbose=output.verbose)
    status = show(
        judged,
        Focus(),
        output,
        shortest=shortest,
        not_looked_for=[f"{whom}: {said}" for whom, said in silent],
        doubts=[f"{whom}: {said}" for whom, said in doubts],
    )
    if not output.json:
        verdict = judged.result.verdict
        if verdict is Verdict.VIOLATED and silent and not output.verbose:
            click.echo("not everything was tested (what and why: --verbose)")
        else:
            _print_told([*(looked_for(driven) if verdict is Verdict.PASS else ()), *silent])
    return status


def _print_told(told: Sequence[tuple[str, str]]) -> None:
    lines = defaultdict[str, list[str]](list)
    for whom, said in told:
        lines[whom].append(visible(said, 4 * TEXT_LIMIT))
    for whom, of_it in lines.items():
        click.echo(visible(whom))
        for said in of_it:
            click.echo(textwrap.fill(said, 80, initial_indent="  ", subsequent_indent="    "))
