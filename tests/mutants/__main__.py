"""`python -m mutants`, from a checkout with `PYTHONPATH=tests`, or `make mutants`: the kill matrix."""

import logging
import sys
import time
from pathlib import Path

import click

from mutants.kill_matrix.layers import LAYERS, QUICK
from mutants.kill_matrix.matrix import matrix, printed
from mutants.kill_matrix.row import MatrixRow
from mutants.reference import MUTANTS, NOT_APPLICABLE
from purgatorio_pipeline.command.line import echo_line
from purgatorio_pipeline.command.options import file
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded


@click.command("mutants", epilog="Exit status: 0 all killed, 1 a mutant survives every layer, 2 wrong usage.")
@click.argument("numbers", nargs=-1, type=int, metavar="[NUMBER]...")
@click.option("--list", "show_list", is_flag=True, help="List the mutants and what each changes.")
@click.option(
    "--layer",
    "chosen",
    type=click.Choice(LAYERS),
    metavar="LAYER",
    multiple=True,
    help=f"These layers only: {', '.join(LAYERS)}.",
)
@click.option("--all", "every", is_flag=True, help="Every layer: some minutes. Without: the quick ones.")
@click.option(
    "--kept",
    type=file,
    help="Write each row to this file when it is done, and do not run again what is there.",
)
@click.option("--json", "as_json_", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    numbers: tuple[int, ...],
    show_list: bool,
    chosen: tuple[str, ...],
    every: bool,
    kept: Path | None,
    as_json_: bool,
) -> None:
    """Apply each known bug to the reference and show which layer of tests finds it.

    \b
      python -m mutants                 # all, in the quick layers
      python -m mutants 11 53 --all     # these, in every layer
      python -m mutants --layer stress --layer stateful
      purgatorio explore --mutant tests/mutants/reference:trylock-give-up
    """
    if show_list:
        for mutant in MUTANTS.values():
            targets = ", ".join(patch.target for patch in mutant.patches)
            echo_line(f"{mutant.number:3} {mutant.name:36} {mutant.what} [{targets}]", 41)
        return
    unknown = [number for number in numbers if number not in MUTANTS]
    if unknown:
        reason = NOT_APPLICABLE.get(unknown[0])
        more = reason[1] if reason else "see `python -m mutants --list`"
        raise click.UsageError(f"no mutant {unknown[0]}: {more}")
    # A mutant may end the reaper thread, which would log that each time.
    logging.getLogger("purgatorio").disabled = True
    start = time.perf_counter()
    layers = LAYERS if every else chosen or QUICK
    asked = numbers or tuple(MUTANTS)
    with progress(
        f"hunting {len(asked)} bugs in {', '.join(layers)}", len(asked), "bugs", quiet=as_json_
    ) as going:
        done = 0

        def tell(row: MatrixRow) -> None:
            nonlocal done
            done += 1
            going.tell(done, f"hunting: {row.number} {row.name} done")
            if not as_json_:
                with going.aside():
                    _tell(row)

        try:
            rows = matrix(asked, layers, tell, kept)
        except OSError as error:
            raise click.UsageError(f"{error.filename or kept}: {error.strerror or error}") from None
    if as_json_:
        click.echo(encoded(printed(rows)))
    else:
        _sum_up(rows, time.perf_counter() - start)
    sys.exit(0 if all(row.killed for row in rows) else 1)


def _tell(row: MatrixRow) -> None:
    said = [
        f"{layer} {kill.by}" + (f" ({kill.effort:,} {kill.unit}, {kill.seconds:.2f} s)" if kill.unit else "")
        for layer, kill in row.layers.items()
        if kill.killed
    ]
    echo_line(f"{row.number:3} {row.name:36} {'; '.join(said) or 'SURVIVES'}", 41)


def _sum_up(rows: list[MatrixRow], seconds: float) -> None:
    for layer in LAYERS:
        of = [row.layers[layer] for row in rows if layer in row.layers]
        if of:
            told = (
                f"{sum(kill.killed for kill in of)} of {len(of)} in {sum(kill.seconds for kill in of):.1f} s"
            )
            idle = sum(bool(kill.reason) for kill in of)
            click.echo(f"{layer:10} {told}" + (f", {idle} not asked" if idle else ""))
    click.echo(f"{seconds:.1f} s; {len(NOT_APPLICABLE)} rows not applicable (see the page)")


if __name__ == "__main__":
    command(prog_name="python -m mutants")
