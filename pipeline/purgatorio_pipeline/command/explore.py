"""`purgatorio explore`: search the interleavings of the reference's own code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import click

from purgatorio_pipeline.command.line import echo_line
from purgatorio_spec.verdict import EXIT_STATUS, Verdict, worst
from purgatorio_stress.explorer.replay import BadToken, Replay, Token
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.table import chrome_trace, table
from purgatorio_stress.scenario.campaign import STRATEGIES, Explored, explore, replay_token
from purgatorio_stress.scenario.registry import SCENARIOS


@click.command("explore", epilog="Exit status: 0 all hold, 1 violated, 2 wrong usage, 3 unknown.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO[/DIALECT]]...")
@click.option("--list", "show_list", is_flag=True, help="List the scenarios.")
@click.option("--strategy", type=click.Choice(STRATEGIES), help="Default: the one that covers the scenario.")
@click.option(
    "--preemptions", type=click.IntRange(0, 10), default=2, show_default=True, help="For `bounded`."
)
@click.option(
    "--schedules", type=click.IntRange(1), default=200_000, show_default=True, help="Limit of runs."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=300.0,
    show_default=True,
    help="Limit of time, each scenario.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For `pct` and `random`.")
@click.option("--mutant", type=int, default=0, help="Put this known bug into the code first (see `mutants`).")
@click.option("--replay", "token", help="Repeat the run of a printed token.")
@click.option(
    "--chrome",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the counterexample's timeline (Perfetto).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
def command(
    scenarios: tuple[str, ...],
    show_list: bool,
    strategy: str | None,
    preemptions: int,
    schedules: int,
    seconds: float,
    seed: int,
    mutant: int,
    token: str | None,
    chrome: Path | None,
    as_json: bool,
) -> None:
    """Run the reference's own code through its interleavings, every run judged by the clauses.

    Strategies: `dpor` (one run of each class of equivalent interleavings), `states` (every reachable state),
    `bounded` (all interleavings with few preemptions), `pct` and `random` (samples: never a pass).

    \b
    purgatorio explore                         # all scenarios
    purgatorio explore two-events/pending-flag
    purgatorio explore two-events --mutant 11  # KAFKA-6653, and a token
    purgatorio explore --replay TOKEN
    """
    if show_list:
        for scenario in SCENARIOS.values():
            echo_line(f"{scenario.name:30} {scenario.threads} threads  {scenario.about}", 42)
        return
    if token is not None:
        _replay(token, chrome, as_json)
        return
    limits = Limits(schedules, seconds, preemptions)
    explored: list[Explored] = []
    for name, dialect in _chosen(scenarios):
        one = explore(name, dialect, limits, strategy=strategy, seed=seed, mutant=_known(mutant))
        explored.append(one)
        if not as_json:
            _show(one)
        if chrome is not None and one.run is not None:
            chrome.write_text(json.dumps(chrome_trace(one.run)))
    verdict = worst(one.verdict for one in explored)
    if as_json:
        parts = [one.as_json() for one in explored]
        whole = {"verdict": str(verdict), "scenarios": parts}
        click.echo(json.dumps(parts[0] if len(parts) == 1 else whole, ensure_ascii=False))
    sys.exit(EXIT_STATUS[verdict])


def _known(mutant: int) -> int:
    from purgatorio_stress.mutant.catalogue import MUTANTS

    if mutant and mutant not in MUTANTS:
        raise click.UsageError(f"no mutant {mutant}; see `purgatorio mutants --list`")
    return mutant


def _chosen(names: tuple[str, ...]) -> list[tuple[str, str]]:
    chosen: list[tuple[str, str]] = []
    for text in names or tuple(SCENARIOS):
        name, _, dialect = text.partition("/")
        if name not in SCENARIOS:
            raise click.UsageError(f"no scenario {name!r}; see `purgatorio explore --list`")
        dialects = SCENARIOS[name].dialects
        if dialect and dialect not in dialects:
            raise click.UsageError(f"{name} has the dialects {', '.join(dialects)}, not {dialect!r}")
        chosen += [(name, one) for one in ((dialect,) if dialect else dialects)]
    return chosen


_INDENT: Final = 10


def _show(one: Explored) -> None:
    done = one.exploration
    counts = f"{done.schedules:,} schedules" + (f", {done.states:,} states" if done.states else "")
    if done.redundant:
        counts += f", {done.redundant:,} cut as redundant"
    if done.beyond:
        counts += f", {done.beyond:,} cut at the bound of a loop"
    rate = done.schedules / done.seconds if done.seconds else 0
    took = f"{done.seconds:.2f} s ({rate:,.0f}/s)"
    echo_line(f"{one.verdict!s:9} {one.program.name:37} {counts}, {took}", _INDENT)
    echo_line(" " * _INDENT + done.bound + (f"; limit reached: {done.limit}" if done.limit else ""), _INDENT)
    if one.unreached:
        echo_line(" " * _INDENT + f"never reached: {', '.join(one.unreached)}", _INDENT)
    found = one.counterexample
    if found is not None and one.run is not None:
        click.echo("")
        click.echo(table(one.run, found.broken, str(one.token), found.preemptions))
        click.echo("")
    elif found is not None:
        echo_line(" " * _INDENT + f"{found.broken[0].clause}: {found.broken[0].seen}", _INDENT)


def _replay(text: str, chrome: Path | None, as_json: bool) -> None:
    try:
        token = Token.parse(text)
        run = replay_token(token)
    except BadToken as error:
        raise click.UsageError(str(error)) from None
    if chrome is not None:
        chrome.write_text(json.dumps(chrome_trace(run)))
    verdict = Verdict.VIOLATED if run.broken else Verdict.PASS
    if as_json:
        click.echo(json.dumps(_replay_json(token, run, verdict), ensure_ascii=False))
    else:
        click.echo(table(run, run.broken, str(token), _preemptions(token)))
    sys.exit(EXIT_STATUS[verdict])


def _preemptions(token: Token) -> int:
    """Counted without knowing who could have gone on: switches away from a task that goes on later."""
    schedule = token.schedule
    return sum(
        1
        for at in range(1, len(schedule))
        if schedule[at - 1] >= 0 and schedule[at] != schedule[at - 1] and schedule[at - 1] in schedule[at:]
    )


def _replay_json(token: Token, run: Replay, verdict: Verdict) -> dict[str, object]:
    return {
        "scenario": f"{token.scenario}/{token.dialect}",
        "verdict": str(verdict),
        "token": str(token),
        "steps": len(run.places),
        "violations": [
            {"clause": one.clause, "subject": one.subject, "seen": one.seen} for one in run.broken
        ],
    }
