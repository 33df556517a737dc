"""The exit status of a command, and the message of an unexpected error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from purgatorio_pipeline.stopping import STOPPED
from purgatorio_spec.failure import Failure
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

UNEXPECTED: Final = 70
"""EX_SOFTWARE of sysexits."""
OURS: Final = "purgatorio: this is an internal error. Please report it with the lines above and the command."


@contextmanager
def wrong_usage(*errors: type[BaseException]) -> Iterator[None]:
    """Inside `with`, these exceptions are usage errors with the same text."""
    try:
        yield
    except errors as wrong:
        # The text of a KeyError would be quoted.
        raise click.UsageError(str(wrong.args[0] if isinstance(wrong, KeyError) else wrong)) from None


def status_of(verdict: Verdict, *, stopped: bool) -> int:
    """The exit status. `stopped`: by Ctrl-C, which changes the status of any verdict but VIOLATED."""
    return STOPPED if stopped and verdict is not Verdict.VIOLATED else EXIT_STATUS[verdict]


def told_status(verdict: Verdict, failures: Sequence[Failure]) -> int:
    """Prints the failures on standard error and returns the exit status.

    A violation or an invalid trace keeps its status, even if something else failed. Otherwise an internal error is 70,
    and an error of the operating system is 2.
    """
    for failure in failures:
        if not failure.refused:
            click.echo(failure.traceback.rstrip(), err=True)
        click.echo(
            f"Error: {visible(failure.error if failure.refused else str(failure), TEXT_LIMIT)}", err=True
        )
    ours = any(not failure.refused for failure in failures)
    if ours:
        click.echo(OURS, err=True)
    if not failures or verdict in (Verdict.VIOLATED, Verdict.INVALID_TRACE):
        return EXIT_STATUS[verdict]
    return UNEXPECTED if ours else EXIT_STATUS[Verdict.INVALID_TRACE]
