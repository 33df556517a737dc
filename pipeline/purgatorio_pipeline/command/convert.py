"""The command `purgatorio convert`: converts a trace between formats, or makes a trace of a log."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.line import echo_line, wrapped
from purgatorio_pipeline.command.options import argument, flag, json_flag, option, taking
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_pipeline.log.conversion import convert_log
from purgatorio_pipeline.log.mapping import read_mapping
from purgatorio_pipeline.printed import BROKEN_SHOWN
from purgatorio_spec.show.visible import TEXT_LIMIT, WIDTH, visible
from purgatorio_spec.trace.convert import CannotConvert, Conversion, convert
from purgatorio_spec.trace.log import LOG_CLAUSES
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from purgatorio_wire.trace.file import convert_wire, is_wire_trace


class _Refused(click.ClickException):
    exit_code = 2


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    traces: tuple[Path, ...] = argument(
        nargs=-1,
        required=True,
        metavar="TRACE...",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
    )
    out: Path = argument(type=click.Path(dir_okay=False, path_type=Path))
    force: bool = flag("Overwrite OUT if it exists.")
    keep_going: bool = flag(
        "Leave out broken lines, or each request of a log with a bad row. The end record counts them as dropped."
    )
    mapping: Path | None = option(
        "Read TRACE as your own log (JSON lines, CSV, Parquet; several files are one log). MAPPING.toml explains the "
        "columns of the log. If --map sets all entries, leave out this option.",
        named="--from-log", metavar="MAPPING.toml", is_flag=False, flag_value="-",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    )  # fmt: skip
    assigned: tuple[str, ...] = option(
        "Set one entry of the mapping, such as id=request_id, instead of the entry in MAPPING.toml.",
        named="--map", metavar="NAME=VALUE", multiple=True,
    )  # fmt: skip
    as_json: bool = json_flag()


@taking(
    ConvertOptions,
    "convert",
    epilog="Exit status: 0 converted, 2 broken lines, an incomplete file, or wrong usage.",
)
def command(asked: ConvertOptions) -> None:
    """Convert the file TRACE to the file OUT.

    The suffix of OUT determines the new form: .jsonl, .ndjson, .jsonl.gz, .jsonl.zst or .parquet. The first bytes of
    TRACE determine the old form. Every line is validated. OUT appears only when OUT is complete.

    \b
      purgatorio convert run.jsonl run.parquet
      purgatorio convert run.parquet run.jsonl.gz --force
      purgatorio convert requests.csv run.jsonl --from-log mapping.toml
      purgatorio convert requests.csv events.csv run.jsonl --from-log mapping.toml
    """
    if asked.mapping is not None or asked.assigned:
        _from_log(asked)
        return
    trace, *more = asked.traces
    if more:
        raise click.UsageError(
            "more than one TRACE: only a log of your own (--from-log) may be several files"
        )
    out, force, keep_going = asked.out, asked.force, asked.keep_going
    what = f"converting {_shown(trace)}"
    with wrong_usage(CannotConvert, OSError), progress(what, unit="events", quiet=asked.as_json) as going:
        if is_wire_trace(trace):
            result = convert_wire(trace, out, force=force, keep_going=keep_going)
        else:
            result = convert(trace, out, force=force, keep_going=keep_going, progress=going.tell)
    if asked.as_json:
        click.echo(encoded(_json(result, trace, out)))
    else:
        _report(result, trace, out)
    sys.exit(EXIT_STATUS[Verdict.PASS if result.valid else Verdict.INVALID_TRACE])


def _from_log(asked: ConvertOptions) -> None:
    log, out = " and ".join(map(str, asked.traces)), asked.out
    try:
        with progress(f"reading {visible(log, TEXT_LIMIT)}", unit="rows", quiet=asked.as_json) as going:
            mapping = read_mapping(None if str(asked.mapping) == "-" else asked.mapping, asked.assigned)
            made = convert_log(
                asked.traces,
                out,
                mapping,
                force=asked.force,
                keep_going=asked.keep_going,
                progress=going.tell,
            )
    except (CannotConvert, OSError) as bad:
        # The data are wrong, not the command, so the usage text would not help.
        raise _Refused(wrapped(f"Error: {bad}", 0, WIDTH).removeprefix("Error: ")) from None
    if asked.as_json:
        said = {
            "kind": "convert", "verdict": str(Verdict.PASS), "trace": log, "out": str(out), "run": made.run,
            "rows": made.rows, "requests": made.requests, "events": made.events, "ends": dict(made.ends),
            "lacking": dict(made.lacking), "notes": list(made.notes),
        }  # fmt: skip
        click.echo(encoded(said))
        return
    for note in made.notes:
        click.echo(wrapped(visible(f"{log}: {note}", TEXT_LIMIT), 2, WIDTH), err=True)
    click.echo(f"{_shown(out)}: {made.requests:,} requests of {made.rows:,} rows, {made.events:,} events")
    echo_line(f"  {', '.join(f'{count:,} {words}' for words, count in made.ends.items())}", 2)
    for clause, promise in LOG_CLAUSES.items():
        why = "can be judged"
        if lack := made.lacking.get(clause):
            why = f"cannot be judged: the mapping does not name {', '.join(lack)}"
        elif clause == "T1" and not made.ends["timed out"]:
            why = "has no occasion, because no request timed out"
        elif clause == "O4" and made.beyond_events:
            why = f"cannot pass: {made.beyond_events:,} requests are from a time without events of keys"
        echo_line(f"  {clause}  {promise}: {why}", 6)
    if "timed_out" in made.lacking.get("O5", ()):
        echo_line(
            "  If no request can time out, let timed_out name a word that does not occur, or an empty column.",
            2,
        )


def _json(result: Conversion, trace: Path, out: Path) -> dict[str, object]:
    return {
        "kind": "convert",
        "verdict": str(Verdict.PASS if result.valid else Verdict.INVALID_TRACE),
        "trace": str(trace),
        "out": str(out) if result.written else None,
        "run": result.run,
        "events": result.events,
        "dropped": None if result.end is None else result.end.dropped,
        "has_end": result.end is not None,
        "cut": result.cut,
        "quarantined": result.broken_count,
        "broken": result.broken[:BROKEN_SHOWN],
    }


def _report(result: Conversion, trace: Path, out: Path) -> None:
    # Without a header the file is no trace, and every line of it is broken.
    shown = result.broken[: BROKEN_SHOWN if result.run else 1]
    for broken in shown:
        click.echo(visible(str(broken), TEXT_LIMIT), err=True)
    if result.broken_count > len(shown):
        click.echo(f"... and {result.broken_count - len(shown)} more broken lines", err=True)
    if result.cut is not None:
        click.echo(visible(f"{trace}: {result.cut}", TEXT_LIMIT), err=True)
    if not result.written:
        mend = (
            "correct the trace, or use --keep-going to write only the valid lines"
            if result.run
            else "the file is damaged: copy it again, or record again"
            if result.cut is not None
            else "no header: line 1 of a trace is its header; for a log of your own, use --from-log or --map"
        )
        click.echo(f"{_shown(out)} was not written: {mend}", err=True)
        return
    if result.end is None:
        click.echo(f"{_shown(trace)}: no end record, so {_shown(out)} has none either", err=True)
    size = f"{out.stat().st_size:,} bytes"
    click.echo(f"{_shown(out)}: {result.events:,} events of run {visible(str(result.run))}, {size}")


def _shown(place: Path) -> str:
    return visible(str(place), TEXT_LIMIT)
