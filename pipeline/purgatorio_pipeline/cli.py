"""The command line `purgatorio`: one thin table of commands over the parts.

A command's module is imported only when that command runs or asks for help, so `purgatorio model` needs
neither PySpark nor Java, and a missing extra is reported with the line that installs it.
"""

from __future__ import annotations

import errno
import importlib
import sys
from dataclasses import dataclass
from typing import Final

import click


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, what it does in one line, and the extra that brings its libraries."""

    module: str
    summary: str
    extra: str


COMMANDS: dict[str, Command] = {
    "verify": Command(
        "purgatorio_pipeline.command.verify",
        "Drive real subjects, record them, judge them, write the report.",
        "spark",
    ),
    "subjects": Command(
        "purgatorio_pipeline.command.subjects",
        "Survey timers that nobody here wrote, by their own promises.",
        "stress",
    ),
    "check": Command("purgatorio_pipeline.command.check", "Judge recorded traces.", "spark"),
    "wire": Command(
        "purgatorio_pipeline.command.wire",
        "Drive and judge a Kafka-compatible broker from outside.",
        "wire",
    ),
    "compare": Command(
        "purgatorio_pipeline.command.compare",
        "Two sets of traces, before and after a change.",
        "spec",
    ),
    "watch": Command("purgatorio_pipeline.command.watch", "Judge traces as they arrive.", "spark"),
    "convert": Command(
        "purgatorio_pipeline.command.convert",
        "Convert a trace between JSON lines, gzip, zstd and Parquet.",
        "spec",
    ),
    "explore": Command(
        "purgatorio_pipeline.command.explore",
        "Search the interleavings of the reference's own code.",
        "stress",
    ),
    "stress": Command(
        "purgatorio_pipeline.command.stress",
        "Race real threads over the reference, with outcome tables.",
        "stress",
    ),
    "campaign": Command(
        "purgatorio_pipeline.command.campaign",
        "Many explorer and stress jobs over Spark, resumable.",
        "spark",
    ),
    "mutants": Command(
        "purgatorio_pipeline.command.mutants",
        "The kill matrix: every known bug against every layer.",
        "stress",
    ),
    "report": Command(
        "purgatorio_pipeline.command.report",
        "One page of what several commands found.",
        "spec",
    ),
    "model": Command(
        "purgatorio_pipeline.command.model",
        "Search the models of the protocols and the wheel completely.",
        "spec",
    ),
    "prove": Command(
        "purgatorio_pipeline.command.prove",
        "Prove the wheel's arithmetic (z3), search its contracts (CrossHair).",
        "prove",
    ),
    "broker": Command(
        "purgatorio_pipeline.command.broker",
        "Our own broker behind a socket, to test clients with.",
        "wire",
    ),
}


STOPPED: Final = 130
"""Exit status after Ctrl-C, where a command has nothing to show of what it did: as shells say it (128 + SIGINT)."""


class LazyCommands(click.Group):
    """A click group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = COMMANDS.get(cmd_name)
        if command is None:
            return None
        try:
            module = importlib.import_module(command.module)
        except ModuleNotFoundError as missing:
            raise click.ClickException(
                f"`purgatorio {cmd_name}` needs the module {missing.name!r}, which is not installed; "
                f"run: pip install 'purgatorio[{command.extra}]'"
            ) from missing
        loaded: click.Command = module.command
        return loaded

    def invoke(self, ctx: click.Context) -> object:
        """Ctrl-C is no verdict, and a file that cannot be read or written is wrong input, not a crash."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(STOPPED)
        except OSError as error:
            # Without a name it is about no file of the user's; a closed pipe is click's.
            if error.filename is None or error.errno == errno.EPIPE:
                raise
            raise click.UsageError(f"{error.filename}: {error.strerror}") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.summary) for name, command in COMMANDS.items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 pass, 1 violated, 2 usage or invalid input, 3 unknown.",
)
@click.version_option(package_name="purgatorio")
def purgatorio() -> None:
    """Reference, executable specification and oracle for delayed operations and timing wheels."""


def main() -> None:
    """Entry point of the console script."""
    sys.exit(purgatorio())
