"""The command `purgatorio explore`: searches the interleavings of Python code."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

import click
from msgspec.structs import replace

from purgatorio_pipeline.command.bug import bug_asked, mutant_option
from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.line import echo_line, wrapped
from purgatorio_pipeline.command.options import argument, flag, json_flag, number, option, refuse, taking
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_spec.show.visible import WIDTH
from purgatorio_spec.verdict import EXIT_STATUS, Verdict, worst
from purgatorio_stress import printed
from purgatorio_stress.explorer.endless import NoEnd
from purgatorio_stress.explorer.replay import BadToken, Replay, Token
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.strategy import STRATEGIES
from purgatorio_stress.explorer.table import table
from purgatorio_stress.exploring import ScenarioResult, explore, replay_token
from purgatorio_stress.foreign.explored import FOREIGN, explore_foreign, lines_of, quiet, replay_foreign
from purgatorio_stress.foreign.explored import table as package_table
from purgatorio_stress.foreign.load import CannotLoad
from purgatorio_stress.mutant.patch import Bug
from purgatorio_stress.random_program.act import BadProgram
from purgatorio_stress.random_program.registry import VOCABULARIES, scenario_named
from purgatorio_stress.random_program.search import DrawnSearch, search_drawn
from purgatorio_stress.scenario.registry import SCENARIOS, dialects_named


@dataclass(frozen=True, slots=True)
class ExploreOptions:
    scenarios: tuple[str, ...] = argument(nargs=-1, metavar="[SCENARIO[/DIALECT]]...")
    show_list: bool = flag("List the scenarios.", named="--list")
    strategy: str | None = option(
        "Search strategy. Default: dpor.",
        type=click.Choice([*STRATEGIES]),
    )
    preemptions: int = number(
        "Largest number of preemptions in a schedule, for `bounded`.", 2, least=0, most=10
    )
    schedules: int = number("Largest number of schedules.", 200_000, least=1)
    seconds: float = number(
        "Time limit in CPU seconds for each scenario. With --drawn: CPU seconds for all programs. With --package: "
        "elapsed seconds.",
        300.0,
        least=0,
    )
    seed: int = number("Random seed, for `pct`, `random` and --drawn.", 0)
    mutant: str | None = mutant_option()
    drawn: bool = flag(
        "Run random programs. With --drawn, SCENARIO names the class to test, such as `hashed`."
    )
    packages: tuple[str, ...] = option(
        "Explore this Python package. The package is not modified.",
        named="--package", multiple=True, metavar="NAME",
    )  # fmt: skip
    adapter: str | None = option(
        "For --package: your class, with methods thread_... and check(), or add() of a timer.",
        metavar="MODULE:CLASS",
    )
    early: int = option(
        "For --package: how many sleeps and timed waits of each thread may end while other threads can still run. "
        "Default: none.",
        type=click.IntRange(0, 9), default=0,
    )  # fmt: skip
    races: bool = flag("Count data races of plain variables as violations.")
    token: str | None = option(
        "Repeat one execution. A counterexample prints the TOKEN.", named="--replay", metavar="TOKEN"
    )
    verbose: bool = flag("For --package: show every step, also inside calls of `threading` and `queue`.")
    as_json: bool = json_flag()

    def limits(self, clock: Callable[[], float] = time.perf_counter) -> Limits:
        return Limits(self.schedules, self.seconds, self.preemptions, clock=clock)


@taking(ExploreOptions, "explore", epilog="Exit status: 0 all hold, 1 violated, 2 wrong usage, 3 unknown.")
def command(asked: ExploreOptions) -> None:
    """Run Python code under many interleavings of its threads, and judge each run by the clauses.

    The code is the reference (Purgatorio's own timers and purgatories), or your package (--package).

    \b
    Strategies:
      dpor     one run for each class of equivalent interleavings
      bounded  all interleavings with few preemptions
      pct      a random sample, with random priorities of the threads
      random   a random sample

    A sample never has the verdict PASS.

    A SCENARIO is a small program of one to three threads. A DIALECT is a rule for an event that comes while another
    thread evaluates the same operation. `locked`: the thread of the event waits. `pending-flag`: it sets a flag, and
    the other thread evaluates the operation again.

    \b
      purgatorio explore                         # all scenarios
      purgatorio explore two-events/pending-flag
      purgatorio explore --mutant my_bug.py      # with a bug in the code
      purgatorio explore --drawn --seconds 60    # random programs
      purgatorio explore --package my_timer --adapter my_adapter:MyTimer
      purgatorio explore --replay TOKEN
    """
    if asked.show_list:
        for scenario in SCENARIOS.values():
            echo_line(f"{scenario.name:30} {scenario.threads} threads  {scenario.about}", 42)
        return
    if asked.packages or asked.adapter or asked.token is not None:
        # As with `python -m`: an adapter may import another module of this directory.
        sys.path.append("")
    if asked.packages or asked.adapter:
        refuse("with --package", "scenarios", "mutant", "drawn", "token")
        _explore_package(asked)
    refuse("without --package", "early")
    bug = bug_asked(asked.mutant)
    if asked.token is not None:
        refuse(
            "with --replay", "scenarios", "strategy", "preemptions", "schedules", "seconds", "seed", "drawn"
        )
        _replay(asked.token, bug, asked)
        return
    if asked.drawn:
        refuse("with --drawn", "strategy", "preemptions", "schedules")
        _draw(asked, bug)
        return
    limits = asked.limits(clock=time.process_time)
    explored: list[ScenarioResult] = []
    pairs = _chosen(asked.scenarios)
    with progress("exploring", len(pairs), "scenarios", quiet=asked.as_json) as going:
        for name, dialect in pairs:
            going.tell(len(explored), f"exploring {name}/{dialect}")
            strategy = asked.strategy or "dpor"
            one = explore(
                name, dialect, limits, strategy=strategy, seed=asked.seed, bug=bug, races=asked.races
            )
            explored.append(one)
            if not asked.as_json:
                with going.aside():
                    _show(one)
    verdict = worst(one.verdict for one in explored)
    if asked.as_json:
        _echo_json(verdict, [one.printed() for one in explored])
    sys.exit(EXIT_STATUS[verdict])


def _explore_package(asked: ExploreOptions) -> NoReturn:
    adapter, strategy = asked.adapter, asked.strategy
    if adapter is None or not asked.packages:
        raise click.UsageError("give both options: --package PACKAGE --adapter MODULE:CLASS")
    with wrong_usage(CannotLoad):
        explored = explore_foreign(
            asked.packages, adapter, asked.limits(), strategy=strategy or "dpor", seed=asked.seed, early=asked.early,
            races_count=asked.races,
            progress=partial(progress, f"exploring {adapter}, for {asked.seconds:g} s at most", quiet=asked.as_json),
        )  # fmt: skip
    with quiet():
        gc.collect()  # the objects of the last run, which would warn at the end of the process
    if asked.as_json:
        click.echo(encoded(printed.ExplorePackage(explored.verdict, [explored.printed()])))
    else:
        for line in lines_of(explored):
            click.echo(wrapped(line, 10, WIDTH))
        if explored.rows:
            click.echo("\n" + package_table(explored, verbose=asked.verbose))
    sys.exit(EXIT_STATUS[explored.verdict])


def _replay_package(token: Token, asked: ExploreOptions) -> NoReturn:
    with wrong_usage(BadToken, CannotLoad, NoEnd):
        explored, broken = replay_foreign(token)
    verdict = Verdict.VIOLATED if broken else Verdict.PASS
    if asked.as_json:
        shape = explored.printed()
        shape.verdict = verdict
        click.echo(encoded(printed.ExplorePackage(verdict, [shape])))
    else:
        click.echo(package_table(explored, verbose=asked.verbose))
    sys.exit(EXIT_STATUS[verdict])


def _echo_json(verdict: Verdict, scenarios: list[printed.Explored], drawn: DrawnSearch | None = None) -> None:
    """Print the `--json` document: a summary of all scenarios, and the list of scenarios. Its form does not depend on
    their number."""
    whole = printed.Explore(
        verdict,
        scenarios,
        scenario=", ".join(one.scenario for one in scenarios),
        complete=bool(scenarios) and all(one.complete for one in scenarios),
        bound="; ".join(dict.fromkeys(one.bound for one in scenarios if one.bound)),
        schedules=sum(one.schedules for one in scenarios),
        seconds=round(sum(one.seconds for one in scenarios), 3),
        violations=[replace(shown, scenario=one.scenario) for one in scenarios for shown in one.violations],
    )
    if drawn is not None:
        whole.drawn = drawn.printed()
    click.echo(encoded(whole))


def _draw(asked: ExploreOptions, bug: Bug) -> None:
    unknown = [name for name in asked.scenarios if name not in VOCABULARIES]
    if unknown:
        raise click.UsageError(
            f"no subject {unknown[0]!r} for random programs; there are {', '.join(VOCABULARIES)}"
        )
    start_s = time.process_time()

    def so_far() -> tuple[float, float]:
        return time.process_time() - start_s, asked.seconds

    with progress("exploring random programs", unit="CPU seconds", quiet=asked.as_json, poll=so_far):
        done = search_drawn(asked.seconds, asked.seed, asked.scenarios, bug=bug, races=asked.races)
    if asked.as_json:
        found = [] if done.found is None else [done.found.printed()]
        _echo_json(done.verdict, found, done)
    else:
        for line in done.lines():
            echo_line(line, _INDENT)
        found_one = done.found
        if found_one is not None and found_one.run is not None:
            click.echo("")
            click.echo(table(found_one.run, found_one.found.broken, str(found_one.token), bug.option))
    sys.exit(EXIT_STATUS[done.verdict])


def _chosen(names: tuple[str, ...]) -> list[tuple[str, str]]:
    with wrong_usage(BadProgram, KeyError):
        return [pair for text in names or SCENARIOS for pair in dialects_named(text, scenario_named)]


_INDENT: Final = 10


def _show(one: ScenarioResult) -> None:
    done = one.exploration
    counts = f"{done.schedules:,} schedules"
    if done.redundant:
        counts += f", {done.redundant:,} cut as redundant"
    if done.beyond:
        counts += f", {done.beyond:,} cut at a loop bound"
    rate = done.schedules / done.seconds if done.seconds else 0
    took = f"{done.seconds:.2f} s ({rate:,.0f}/s)"
    echo_line(f"{one.verdict!s:9} {one.program.name:37} {counts}, {took}", _INDENT)
    echo_line(" " * _INDENT + done.covered(one.verdict), _INDENT)
    if one.unreached:
        echo_line(" " * _INDENT + f"never reached: {', '.join(one.unreached)}", _INDENT)
    found = one.counterexample
    if found is not None and one.run is not None:
        click.echo("")
        click.echo(table(one.run, found.broken, str(one.token), one.bug.option))
        click.echo("")
    elif found is not None:
        echo_line(" " * _INDENT + f"{found.broken[0].clause}: {found.broken[0].seen}", _INDENT)


def _replay(text: str, bug: Bug, asked: ExploreOptions) -> None:
    with wrong_usage(BadToken, NoEnd):
        token = Token.parse(text)
        if token.scenario == FOREIGN:
            _replay_package(token, asked)
        run = replay_token(token, bug, races=asked.races)
    verdict = Verdict.VIOLATED if run.broken else Verdict.PASS
    if asked.as_json:
        _echo_json(verdict, [_replayed(token, run, verdict)])
    else:
        click.echo(table(run, run.broken, str(token), bug.option))
    sys.exit(EXIT_STATUS[verdict])


def _replayed(token: Token, run: Replay, verdict: Verdict) -> printed.Explored:
    return printed.Explored(
        scenario=f"{token.scenario}/{token.dialect}",
        verdict=verdict,
        token=str(token),
        steps=len(run.places),
        violations=[printed.Shown(one.clause, one.seen, subject=one.subject) for one in run.broken],
    )
