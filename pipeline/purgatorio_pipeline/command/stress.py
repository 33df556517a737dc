"""The command `purgatorio stress`: runs scenarios on real threads, and prints a table of outcomes for each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from purgatorio_pipeline.command.bug import bug_asked, mutant_option
from purgatorio_pipeline.command.failed import status_of, wrong_usage
from purgatorio_pipeline.command.line import echo_line
from purgatorio_pipeline.command.options import argument, flag, folder, json_flag, number, option, taking
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_spec.show.visible import counted, visible
from purgatorio_stress.harness.campaign import (
    INTERRUPTED,
    RECORD_EVERY,
    SEVERAL,
    StressPlan,
    StressResult,
    chosen,
    run_stress,
    why_not_raced,
)
from purgatorio_stress.harness.outcome import OutcomeTable
from purgatorio_stress.harness.subject import subject_named
from purgatorio_stress.printed import Grade
from purgatorio_stress.scenario.registry import SCENARIOS

YIELDS = {"some": None, "always": True, "never": False}
_WIDE = 200
_SIGN = {Grade.ACCEPTABLE: "ok", Grade.INTERESTING: "!", Grade.FORBIDDEN: "X", Grade.UNKNOWN: "?"}


@dataclass(frozen=True, slots=True)
class StressOptions:
    subject: str = argument(default="reference")
    scenarios: Sequence[str] = option(
        "Run only this scenario. Default: all scenarios.",
        named="-s --scenario", multiple=True, metavar="NAME[/DIALECT]",
    )  # fmt: skip
    listing: bool = flag("List the scenarios.", named="--list")
    rounds: int = number("Rounds of each scenario.", 2_000, least=1)
    minutes: float | None = option(
        "Soak test: run for this time instead of --rounds.", type=click.FloatRange(0)
    )
    threads: int = number("Maximum number of concurrent threads.", 8, least=2, most=64)
    seed: int = number("Seed of the random choices. A seed does not repeat the scheduling of the machine.", 1)
    batch: int | None = number("Repeat only the batch with this number. A report has the number.", least=0)
    yields: str = option(
        "Short sleeps before uses of locks and atomics.",
        type=click.Choice(list(YIELDS)), default="some", show_default=True,
    )  # fmt: skip
    record_every: int = number("Record every n-th batch; 0 records none.", RECORD_EVERY, least=0)
    traces: Path | None = folder("Write recorded rounds to this folder.")
    mutant: str | None = mutant_option()
    as_json: bool = json_flag()


@taking(
    StressOptions,
    "stress",
    epilog="Exit status: 0 nothing forbidden seen, 1 violated, 2 wrong usage, 3 unknown.",
)
def command(asked: StressOptions) -> None:
    """Run the scenarios on real threads, in many rounds, and count the outcomes.

    SUBJECT is `reference` (Kafka's timer and purgatory), `intrusive-timer` (the timer for production), or
    module:attribute. The attribute is a `purgatorio_stress.scenario.parts.Parts` that makes your timers and
    purgatories.

    A scenario is a small program of one to three threads. A DIALECT is a rule for an event that comes while another
    thread evaluates the same operation. `locked`: the thread of the event waits. `pending-flag`: it sets a flag, and
    the other thread evaluates the operation again. In each round, the threads start together at a barrier. PASS holds
    only for these rounds. The table shows the number of rounds in which two threads overlapped.

    \b
      purgatorio stress                                   # all scenarios
      purgatorio stress -s two-events --rounds 100000
      purgatorio stress --minutes 60 --traces soak        # then: check soak
      purgatorio stress -s two-events --mutant my_bug.py  # with your own bug
    """
    if asked.listing:
        _list()
        return
    bug = bug_asked(asked.mutant)
    # A subject may be a module of the current folder, which is not in the path of a console script.
    sys.path.insert(0, "")
    with wrong_usage(KeyError):
        raced = subject_named(asked.subject)
        pairs = chosen(asked.scenarios, raced)
    plan = StressPlan(
        pairs, asked.rounds, asked.minutes, asked.threads, asked.seed, YIELDS[asked.yields], asked.record_every,
        asked.batch, asked.traces, bug, raced,
    )  # fmt: skip
    result = _run(plan, quiet=asked.as_json)
    if asked.as_json:
        click.echo(encoded(result.printed()))
    else:
        show_stress(result, plan)
    sys.exit(status_of(result.verdict, stopped=result.problem == INTERRUPTED))


def _list() -> None:
    for name in SEVERAL:
        why = why_not_raced(name)
        about = (
            f"{SCENARIOS[name].threads} threads  {SCENARIOS[name].about}"
            if why is None
            else f"cannot run on real threads: {why}"
        )
        echo_line(f"{name:30} {about}", 31)


def _run(plan: StressPlan, quiet: bool) -> StressResult:
    with progress(f"running {counted(len(plan.scenarios), 'scenario')}", 1.0, quiet=quiet) as going:

        def tell(name: str, rounds: int, share: float) -> None:
            going.tell(share, f"running {name}: {rounds:,} rounds")

        return run_stress(plan, tell=tell)


def show_stress(result: StressResult, plan: StressPlan) -> None:
    """Prints a run: a table for each scenario, stuck threads, and commands that repeat forbidden outcomes."""
    for table in result.tables:
        _show_table(table, plan)
    if result.stuck is not None:
        for line in result.stuck.text.splitlines():
            click.echo(visible(line, _WIDE))
        click.echo(f"  again: {result.stuck.again}")
    if result.problem:
        click.echo(f"the run ended early: {visible(result.problem, _WIDE)}")
    recorded = sum(table.recorded_rounds for table in result.tables)
    events = sum(table.events for table in result.tables)
    rate = result.rounds / result.cpu_seconds if result.cpu_seconds else 0
    echo_line(
        f"{result.verdict}: {result.rounds:,} rounds in {result.seconds:.1f} s ({rate:,.0f} a CPU second), "
        f"{recorded:,} recorded with {events:,} events, {result.dropped:,} dropped; seed {result.seed}",
        2,
    )
    for path in result.traces:
        click.echo(f"trace: {path}")
    if result.unwritten_rounds:
        click.echo(
            f"{result.unwritten_rounds:,} recorded rounds were judged but not written: trace files have a size limit"
        )


def _show_table(table: OutcomeTable, plan: StressPlan) -> None:
    share = table.overlapped / table.rounds if table.rounds else 0.0
    echo_line(
        f"{table.verdict!s:9} {table.name:44} {table.rounds:9,} rounds, threads overlapped in {share:.0%}", 10
    )
    for line in table.outcomes:
        what = f"{line.clause}: {line.outcome}" if line.clause else line.outcome
        click.echo(f"  {_SIGN[line.grade]:2} {line.count:9,}  {line.grade!s:12} {visible(what, _WIDE)}")
    if table.given_up:
        click.echo(f"     {table.given_up:9,}  rounds were abandoned")
    if not table.window_hit:
        click.echo("     no two threads overlapped: the rounds show nothing about races")
    if table.first_forbidden:
        click.echo(
            f"     first: {table.first_forbidden}; again: {plan.command(table.name, table.first_batch)}"
        )
