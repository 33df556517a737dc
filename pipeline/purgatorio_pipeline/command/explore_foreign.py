"""The command `purgatorio explore --package ... --adapter ...`: searches the interleavings of a user's Python code."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import click

from purgatorio_pipeline.command.line import wrapped
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_spec.show.visible import WIDTH
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from purgatorio_stress.explorer.endless import NoEnd
from purgatorio_stress.explorer.replay import BadToken, Token
from purgatorio_stress.foreign.explored import STRATEGIES, explore_foreign, lines_of, replay_foreign, table
from purgatorio_stress.foreign.load import CannotLoad
from purgatorio_stress.printed import ExplorePackage

if TYPE_CHECKING:
    from purgatorio_pipeline.command.explore import ExploreOptions


def run_foreign(asked: ExploreOptions) -> NoReturn:
    adapter, strategy = asked.adapter, asked.strategy
    if adapter is None or not asked.packages:
        raise click.UsageError("give both options: --package PACKAGE --adapter MODULE:CLASS")
    if strategy not in (None, *STRATEGIES):
        raise click.UsageError(f"--package can be searched by {', '.join(STRATEGIES)}, not by {strategy}")
    try:
        explored = explore_foreign(
            asked.packages, adapter, asked.limits(), strategy=strategy or "dpor", seed=asked.seed, early=asked.early,
            races_count=asked.races,
            progress=partial(progress, f"exploring {adapter}, for {asked.seconds:g} s at most", quiet=asked.as_json),
        )  # fmt: skip
    except CannotLoad as error:
        raise click.UsageError(str(error)) from None
    if asked.as_json:
        click.echo(encoded(ExplorePackage(explored.verdict, [explored.printed()])))
    else:
        for line in lines_of(explored):
            click.echo(wrapped(line, 10, WIDTH))
        if explored.rows:
            click.echo("\n" + table(explored, verbose=asked.verbose))
    sys.exit(EXIT_STATUS[explored.verdict])


def run_foreign_token(token: Token, as_json: bool, verbose: bool) -> NoReturn:
    try:
        explored, broken = replay_foreign(token)
    except (BadToken, CannotLoad, NoEnd) as error:
        raise click.UsageError(str(error)) from None
    verdict = Verdict.VIOLATED if broken else Verdict.PASS
    if as_json:
        shape = explored.printed()
        shape.verdict = verdict
        click.echo(encoded(ExplorePackage(verdict, [shape])))
    else:
        click.echo(table(explored, verbose=verbose))
    sys.exit(EXIT_STATUS[verdict])
