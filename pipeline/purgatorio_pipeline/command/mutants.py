"""`purgatorio mutants`: the kill matrix."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

import click

from purgatorio_stress.mutant.catalogue import MUTANTS, NOT_APPLICABLE
from purgatorio_stress.mutant.matrix import MatrixRow, as_json, matrix, page, survivors


@click.command("mutants", epilog="Exit status: 0 all killed, 1 a mutant survives every layer, 2 wrong usage.")
@click.argument("numbers", nargs=-1, type=int, metavar="[NUMBER]...")
@click.option("--list", "show_list", is_flag=True, help="List the mutants and what each changes.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the page (all mutants).")
@click.option(
    "--compare", type=click.Path(exists=True, path_type=Path), help="Fail if the page is another one."
)
@click.option("--json", "as_json_", is_flag=True, help="Print one JSON object instead of text.")
def command(
    numbers: tuple[int, ...], show_list: bool, write: Path | None, compare: Path | None, as_json_: bool
) -> None:
    """Put every known bug into the reference, one after the other, and see which layer finds it.

    \b
    purgatorio mutants                 # all: some seconds
    purgatorio mutants 11 53           # these
    purgatorio explore two-events --mutant 11
    """
    if show_list:
        for mutant in MUTANTS.values():
            targets = ", ".join(patch.target for patch in mutant.patches)
            click.echo(f"{mutant.number:3} {mutant.name:36} {mutant.what} [{targets}]")
        return
    unknown = [number for number in numbers if number not in MUTANTS]
    if unknown:
        reason = NOT_APPLICABLE.get(unknown[0])
        raise click.UsageError(f"no mutant {unknown[0]}" + (f": {reason[1]}" if reason else ""))
    # A reaper that a mutant ends says so in the log: that is the bug, not news.
    logging.getLogger("purgatorio").disabled = True
    start = time.perf_counter()
    rows = matrix(numbers or tuple(MUTANTS), None if as_json_ else _tell)
    if as_json_:
        click.echo(json.dumps(as_json(rows), ensure_ascii=False))
    else:
        _sum_up(rows, time.perf_counter() - start)
    text = page(rows)
    if write is not None:
        write.write_text(text, encoding="utf-8")
    differs = compare is not None and compare.read_text(encoding="utf-8") != text
    if differs:
        click.echo(f"{compare} is not what this run says; write it anew with --write", err=True)
    sys.exit(1 if differs or survivors(rows) else 0)


def _tell(row: MatrixRow) -> None:
    explorer = row.layers["explorer"]
    found = f"{explorer.by} in {explorer.schedules} schedules, {explorer.seconds:.2f} s"
    others = ", ".join(layer for layer, kill in row.layers.items() if kill.killed and layer != "explorer")
    name = f"{row.mutant.number:3} {row.mutant.name:36}"
    click.echo(f"{name} {found if explorer.killed else 'SURVIVES the explorer':38} {others}")


def _sum_up(rows: list[MatrixRow], seconds: float) -> None:
    killed = sum(row.layers["explorer"].killed for row in rows)
    hunting = sum(row.layers["explorer"].seconds for row in rows)
    click.echo(
        f"{killed} of {len(rows)} killed by the explorer in {hunting:.1f} s; all layers {seconds:.1f} s; "
        f"{len(NOT_APPLICABLE)} rows not applicable (see the page)"
    )
