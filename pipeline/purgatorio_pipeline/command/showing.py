"""What `check` and `verify` share: their options, and how a check is shown."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import click
from rich.console import Console

from purgatorio_pipeline.command.out_file import OutFile
from purgatorio_pipeline.command.progress import Progress, progress
from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.judging import Choice, Engine, Focus, Judged, NoTables, Reading, choose_engine
from purgatorio_pipeline.report.junit import junit
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import write_report
from purgatorio_pipeline.report.provenance import provenance_here
from purgatorio_pipeline.report.sarif import sarif
from purgatorio_pipeline.report.terminal import print_check
from purgatorio_spec.verdict import EXIT_STATUS
from purgatorio_stress.whole_file import write_whole

P = ParamSpec("P")
R = TypeVar("R")

_PATHS: Final = ("report", "junit", "sarif", "markdown")


@dataclass(frozen=True, slots=True)
class CheckOutput:
    """Where a check's results go."""

    json: bool
    verbose: bool
    out: Path | str | None
    report: Path | None
    junit: Path | None = None
    sarif: Path | None = None
    markdown: Path | None = None


class PlaceParam(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A path, or a URI of one of Hadoop's file systems as a text."""

    name = "place"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        return value if is_uri(value) else Path(value)


def engine_options(function: Callable[P, R]) -> Callable[P, R]:
    """The options of every command that judges by an engine; those of output arrive as one `CheckOutput`."""

    @click.option(
        "--engine",
        type=click.Choice([e.value for e in Engine]),
        help="Spark, or this process alone: the same answers. By default by the size of the input.",
    )
    @click.option(
        "--master", help="Spark master, such as spark://host:7077; default local[*] or spark-submit's."
    )
    @click.option("--memory", help="Heap of the Spark driver, such as 3g.")
    @click.option("--full", is_flag=True, help="Judge every operation by the clauses, row by row.")
    @click.option(
        "--out",
        type=PlaceParam(),
        help="Folder or Hadoop URI for the tables; files that it knows are not read again.",
    )
    @output_options
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return wrapped


def output_options(function: Callable[P, R]) -> Callable[P, R]:
    """The options of every command that shows a check; they arrive as one `CheckOutput`."""

    @click.option("--report", type=OutFile(), help="Write an HTML page.")
    @click.option("--junit", type=OutFile(), help="Write JUnit XML: a suite a run, a test case a clause.")
    @click.option("--sarif", type=OutFile(), help="Write SARIF 2.1.0, for code scanning.")
    @click.option("--markdown", type=OutFile(), help="Write a summary in Markdown, for the page of a CI job.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
    @click.option("--verbose", is_flag=True, help="Also say what was skipped, and why.")
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        paths = {name: kwargs.pop(name) for name in _PATHS}
        out = kwargs.pop("out", None)
        kwargs["output"] = CheckOutput(
            json=bool(kwargs.pop("as_json")),
            verbose=bool(kwargs.pop("verbose")),
            out=out if isinstance(out, Path | str) else None,
            **{name: path if isinstance(path, Path) else None for name, path in paths.items()},
        )
        return function(*args, **kwargs)

    return wrapped  # fmt: skip


def engine_for(
    asked: str | None,
    paths: Iterable[Path],
    output: CheckOutput,
    *,
    master: str | None,
    uris: Sequence[str] = (),
) -> Choice:
    """The engine of a check, by what was asked and how large the input is. Raises `click.UsageError`."""
    # Whoever starts this under spark-submit wants its executors.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    spark = "--master" if master is not None else "a URI" if uris else "spark-submit" if submitted else ""
    try:
        return choose_engine(asked, paths, tables=output.out is not None, spark=spark)
    except NoTables as refused:
        raise click.UsageError(str(refused)) from None


def reading_shown(what: str, reading: Reading, *, quiet: bool) -> AbstractContextManager[Progress]:
    """The progress of a check in this process."""
    return progress(what, unit="bytes", quiet=quiet, poll=reading.so_far)


def spark_shown(what: str, *, quiet: bool) -> AbstractContextManager[Progress]:
    """The progress of a check on Spark, of its job that runs at the time."""
    # Spark is imported only where it is started: the process engine must do without it.
    from purgatorio_pipeline.session import tasks_so_far

    return progress(what, unit="tasks", quiet=quiet, poll=tasks_so_far)


def show(judged: Judged, focus: Focus, output: CheckOutput, more: Mapping[str, object] | None = None) -> int:
    """Print a check (or its JSON, with `more` fields), write the files asked for, and return the exit status."""
    result = focus.of(judged.result)
    runs = {run.run for run in result.runs}
    late = [one for one in judged.lateness if one.run in runs]
    gauges = [one for one in judged.gauges if one.run in runs]
    if output.report is not None:
        write_report(result, judged.examples, late, output.report, gauges, provenance=provenance_here())
    if output.junit is not None:
        write_whole(output.junit, junit(result, judged.examples))
    if output.sarif is not None:
        write_whole(output.sarif, sarif(result, judged.examples))
    if output.markdown is not None:
        write_whole(output.markdown, markdown(result, judged.examples, late, provenance=provenance_here()))
    if output.json:
        files = {} if judged.files is None else {"files": asdict(judged.files)}
        click.echo(json.dumps({**result.as_json(), **files, **(more or {})}, ensure_ascii=False))
    else:
        print_check(Console(), result, judged.examples, verbose=output.verbose)
        if output.report is not None:
            click.echo(f"report: {output.report}")
        if output.out is not None:
            click.echo(f"tables: {output.out}")
        if judged.files is not None:
            click.echo(str(judged.files))
    return EXIT_STATUS[result.verdict]
