"""`python -m benchmarks`: one command a benchmark, each imported when it runs."""

from __future__ import annotations

import importlib
from typing import Final

import click

BENCHES: Final[dict[str, tuple[str, str]]] = {
    "check": (
        "benchmarks.check",
        "The check on Spark beside the process engine.",
    ),
    "explorer": (
        "benchmarks.explorer",
        "Schedules a second of the explorer.",
    ),
    "incremental": (
        "benchmarks.incremental",
        "A check over a lake that knows all files, or all but one.",
    ),
    "purgatory": (
        "benchmarks.purgatory",
        "What an operation costs, by threads, at a rate.",
    ),
    "stress": (
        "benchmarks.stress",
        "What recording costs the threaded harness.",
    ),
    "timer": (
        "benchmarks.timer",
        "Timers: the wheels beside heaps, event loops, packages and the JVM.",
    ),
}
"""Module and summary by name; a module exposes `command`."""


class LazyBenches(click.Group):
    """The benchmarks, imported on first use: none needs what only another one needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(BENCHES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in BENCHES:
            return None
        loaded: click.Command = importlib.import_module(BENCHES[cmd_name][0]).command
        return loaded

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in BENCHES.items()])


@click.group(cls=LazyBenches)
def command() -> None:
    """Benchmarks, peers side by side in the same run.

    Every figure comes from the run that prints it. On a shared machine trust CPU seconds and ratios, not wall time.
    """


if __name__ == "__main__":
    command(prog_name="python -m benchmarks")
