"""Writes the output of a check. Has the output options of `check`, `verify`, `wire` and `report`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from msgspec import UNSET, UnsetType
from rich.console import Console

from purgatorio_pipeline.command.failed import told_status, wrong_usage
from purgatorio_pipeline.command.options import file, flag, json_flag, option
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.judging import (
    Choice,
    Engine,
    Focus,
    Judged,
    NoTables,
    choose_engine,
)
from purgatorio_pipeline.printed import Shortest, check_of
from purgatorio_pipeline.process_engine import Tracker, judge_in_process
from purgatorio_pipeline.report.junit import junit
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import page
from purgatorio_pipeline.report.provenance import docs_here, provenance_here
from purgatorio_pipeline.report.sarif import sarif
from purgatorio_pipeline.report.terminal import print_check
from purgatorio_spec.failure import Failure, surviving
from purgatorio_spec.whole_file import write_whole

OPTION_GROUPS: Final = {
    "Engine": ("engine", "master", "memory", "full", "out"),
    "Output": ("report", "junit", "sarif", "markdown", "json", "verbose"),
}
"""The options that commands share, by the section of `--help` that lists them."""


@dataclass(frozen=True, slots=True)
class CheckOutput:
    out: Path | str | None = None
    report: Path | None = option(
        "Write an HTML page that needs no network.", named="--report --html", type=file
    )
    junit: Path | None = option("Write JUnit XML, with a test case for each clause.", type=file)
    sarif: Path | None = option("Write SARIF 2.1.0 for code scanning.", type=file)
    markdown: Path | None = option("Write a Markdown summary for a CI job.", type=file)
    json: bool = json_flag()
    verbose: bool = flag(
        "Show every run, every cause of a violation, the reason of every SKIPPED clause, and (verify) the messages of "
        "every minimized violation."
    )


def place(value: str) -> Path | str:
    """A path, or a URI of one of Hadoop's file systems as a text."""
    return value if is_uri(value) else Path(value)


@dataclass(frozen=True, slots=True)
class TablesOutput(CheckOutput):
    """The output of a command that may judge on Spark."""

    out: Path | str | None = option(
        "Folder or Hadoop URI for Spark's tables of verdicts. The next command with this folder reads only new or "
        "changed traces.",
        type=place,
    )


@dataclass(frozen=True, slots=True)
class EngineAsked:
    engine: str | None = option(
        "Judge on Spark or in this process, with equal verdicts. Default: process for small inputs.",
        type=click.Choice([e.value for e in Engine]),
    )
    master: str | None = option(
        "Spark master, such as spark://host:7077. Default: local[*], or the master that spark-submit sets."
    )
    memory: str | None = option("Heap of the Spark driver, such as 3g.")
    full: bool = flag(
        "Judge every operation event by event, without the fast path, which skips correct operations. Slower. "
        "The verdicts are equal."
    )

    def choice(self, paths: Iterable[Path], output: CheckOutput, uris: Sequence[str] = ()) -> Choice:
        """The engine, by the options and the size of the input. Raises `click.UsageError`."""
        # Under spark-submit, the check must use its executors.
        submitted = "spark-submit" if "PYSPARK_GATEWAY_PORT" in os.environ else ""
        given = "--master" if self.master is not None else "--memory" if self.memory is not None else ""
        spark = given or ("a URI" if uris else submitted)
        with wrong_usage(NoTables):
            return choose_engine(self.engine, paths, tables=output.out is not None, spark=spark)

    def judge(
        self,
        engine: Engine,
        what: str,
        paths: Sequence[Path],
        output: CheckOutput,
        *,
        operation: str | None = None,
        uris: Sequence[str] = (),
        allow_idle: bool = True,
    ) -> Judged:
        """Judges with this engine and shows progress. Only this process takes `operation`, only Spark takes `uris`."""
        if engine is Engine.PROCESS:
            reading = Tracker()
            with progress(what, unit="bytes", quiet=output.json, poll=reading.so_far, then="judging"):
                return judge_in_process(paths, operation, full=self.full, reading=reading)
        # Imported late: the process engine must work without Spark.
        from purgatorio_pipeline.incremental.on_spark import judge_on_spark
        from purgatorio_pipeline.session import tasks_so_far

        with progress(what, unit="tasks", quiet=output.json, poll=tasks_so_far):
            return judge_on_spark(
                paths,
                uris=uris,
                out=output.out,
                master=self.master,
                full=self.full,
                memory=self.memory,
                allow_idle=allow_idle,
            )


class GroupedCommand(click.Command):
    """A command whose help lists its own options first, then those of the engine and of the output. An option with one
    value is refused if it is given twice: only the last would count."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for one, count in Counter(given).items():
            if count > 1 and isinstance(one, click.Option) and not (one.multiple or one.is_flag):
                raise click.UsageError(f"{one.opts[0]} is given {count} times: give the option once", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                group = next(
                    (title for title, names in OPTION_GROUPS.items() if param.name in names), "Options"
                )
                groups.setdefault(group, []).append(record)
        for title in ("Options", *OPTION_GROUPS):
            if title in groups:
                with formatter.section(title):
                    formatter.write_dl(groups[title])


def show(
    judged: Judged,
    focus: Focus,
    output: CheckOutput,
    *,
    shortest: list[Shortest] | UnsetType = UNSET,
    not_looked_for: list[str] | UnsetType = UNSET,
    doubts: list[str] | UnsetType = UNSET,
) -> int:
    """Prints a check or its JSON, writes the requested files, and returns the exit status.

    An error in one output is reported and does not prevent the others.
    """
    judged = focus.of(judged)
    result = judged.result
    failures = [*(failure for run in result.runs for failure in run.failures), *judged.failures]
    failures += write_files(judged, output)
    if output.json:
        shown = check_of(result, judged.examples)
        shown.files, shown.shortest = judged.files or UNSET, shortest
        shown.not_looked_for, shown.doubts = not_looked_for, doubts
        click.echo(encoded(shown))
    else:
        with surviving("printing the check", failures):
            print_check(Console(), result, judged.examples, verbose=output.verbose)
        for what, place in (
            ("report", output.report), ("JUnit", output.junit), ("SARIF", output.sarif), ("tables", output.out),
        ):  # fmt: skip
            if place is not None:
                click.echo(f"{what}: {place}")
        if judged.files is not None:
            click.echo(str(judged.files))
    return told_status(result.verdict, failures)


def write_files(judged: Judged, output: CheckOutput, findings: Sequence[Finding] = ()) -> list[Failure]:
    """Writes the requested files, with the findings of other commands; returns the errors."""
    result, examples = judged.result, judged.examples
    made: list[tuple[Path | None, Callable[[], str]]] = [
        (
            output.report,
            lambda: page(
                result, examples, judged.lateness, judged.gauges, findings, provenance_here(), docs_here()
            ),
        ),
        (
            output.markdown,
            lambda: markdown(result, examples, judged.lateness, findings, provenance_here()),
        ),
        (output.junit, lambda: junit(result, examples)),
        (output.sarif, lambda: sarif(result, examples)),
    ]
    failures: list[Failure] = []
    for place, text in made:
        if place is not None:
            with surviving(f"writing {place}", failures):
                write_whole(place, text())
    return failures
