"""The command `purgatorio wire`: sends requests to a Kafka-compatible broker, and judges the responses."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import shlex
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

import click

from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.line import echo_line
from purgatorio_pipeline.command.options import argument, file, flag, number, option, refuse, shared, taking
from purgatorio_pipeline.command.output import CheckOutput, EngineAsked, GroupedCommand, show
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.judging import Engine, Focus
from purgatorio_pipeline.stopping import STOPPED
from purgatorio_spec.failure import Failure
from purgatorio_spec.show.visible import counted
from purgatorio_wire.client.connection import Address
from purgatorio_wire.scene.broker import Second
from purgatorio_wire.scene.broker_probe import NoBroker
from purgatorio_wire.scene.catalogue import SCENES, chosen
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.scene.random_scene import parsed
from purgatorio_wire.scene.run import declared_of, record
from purgatorio_wire.scene.spec import SceneSpec
from purgatorio_wire.trace.record import DRAWN

SECONDS: Final = 240.0
SECONDS_WITH_SECOND: Final = 480.0
"""Longer, because the second broker is stopped for a minute or more, until the cluster removes it from the ISR."""

EPILOG = """
`purgatorio wire` creates topics and groups, and deletes them at the end. `purgatorio check --clauses` lists the clauses
that judge the responses.

\b
  purgatorio wire localhost:9092 --declare initial-delay=3000,late=100
  purgatorio wire localhost:9092 --only fetch,groups --junit wire.xml
  purgatorio wire localhost:9092 --only drawn --drawn 60
  purgatorio wire localhost:9092 --second localhost:9093 --second-pid 4711
  purgatorio check wire.jsonl        # judge the trace again

Exit status: 0 pass, 1 violated, 2 wrong usage or no broker at the address, 3 unknown.
"""


class _Unreachable(click.ClickException):
    exit_code = 2


@dataclass(frozen=True, slots=True)
class WireOptions:
    broker: str | None = argument(required=False, metavar="HOST:PORT")
    declare: str = option(
        "Constants of the broker in ms, such as late=100,late-topics=2000. initial-delay: duration of a group's "
        "first rebalance (default: read from the broker). late: allowed lateness of a response (default: 100). "
        "late-topics: allowed lateness of a response after a topic or its replicas changed, or a transaction ended "
        "(default: 2000).",
        default="",
    )
    only: tuple[str, ...] = option(
        "Run only these scenes, areas or clauses (such as F3), separated by commas. An area is a set of scenes, "
        "such as fetch. --scenes lists all.",
        multiple=True,
    )
    seconds: float | None = option(
        f"Time limit. Default: {SECONDS:g}, or {SECONDS_WITH_SECOND:g} with two brokers.",
        type=click.FloatRange(min=1),
    )
    seed: int | None = option(
        "Seed of the random programs (scenes of random requests). Default: a new seed for each run.",
        type=click.IntRange(0),
    )
    drawn: float = option(
        "Seconds for random programs. With --only, random programs run only if the list of --only contains 'drawn'.",
        type=click.FloatRange(min=0, max=3600), default=5.0, show_default=True, metavar="SECONDS",
    )  # fmt: skip
    program: str | None = option(
        "Run only this random program. Copy its text from a counterexample.", metavar="TEXT"
    )
    name: str | None = option("Name of the run, for `purgatorio compare`.")
    trace: Path | None = option("File for the trace, such as x.jsonl, x.jsonl.gz or x.jsonl.zst.", type=file)
    second: str | None = option(
        "Second broker of the cluster. The clauses M4, M5, M6 and F9 need two brokers, and so do some scenes of E1, "
        "F3 and F8.",
        metavar="HOST:PORT",
    )
    second_pid: int | None = number(
        "Process id of the second broker. `purgatorio wire` stops and resumes this process.", least=1
    )
    stop_command: str | None = option("Command line that stops the second broker, instead of --second-pid.")
    continue_command: str | None = option("Command line that resumes the second broker.")
    pid: int | None = number(
        "Process id of the broker. With this id, `purgatorio wire` counts open files of the broker, for clause C1.",
        least=1,
    )
    allow_remote: bool = flag("Allow a broker on another machine.")
    tls: bool = flag("Connect with TLS.")
    tls_ca: Path | None = option(
        "Connect with TLS, and trust the CA certificates of this .pem file.",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
    )
    scenes: bool = flag("List the scenes. With --verbose, describe them in full.")
    output: CheckOutput = shared(CheckOutput)


@taking(WireOptions, cls=GroupedCommand, epilog=EPILOG)
def command(asked: WireOptions) -> None:
    """Send requests to the Kafka-compatible broker at HOST:PORT and judge the responses.

    \b
      purgatorio wire localhost:9092

    The requests form scenes. A scene is a sequence of requests, such as a Fetch that waits and an append that completes
    the Fetch.
    """
    if asked.scenes:
        for one in sorted(SCENES.values(), key=lambda one: one.area):
            text = one.promise if asked.output.verbose else f"{one.promise.partition('. ')[0].rstrip('.')}."
            echo_line(f"{one.area:13}{one.name:20}{', '.join(one.clauses):16} {text}", 50)
        return
    if asked.broker is None:
        raise click.UsageError("no broker named: give HOST:PORT, such as localhost:9092")
    with wrong_usage(ValueError):
        wanted, draws = _wanted(asked.only, asked.program)
        program = None if asked.program is None else parsed(asked.program)
        declared = declared_of(asked.declare)
    trace, output = asked.trace, asked.output
    if trace is not None and trace.suffix == ".parquet":
        raise click.UsageError(
            f"{trace}: a trace is recorded as JSON lines: choose a name such as x.jsonl.zst "
            "(`purgatorio convert` writes Parquet)"
        )
    context = _tls(asked.tls, asked.tls_ca)
    run = RunOptions(
        address=_address(asked.broker, asked.allow_remote, context),
        shown=asked.broker,
        scenes=wanted,
        declared=declared,
        seconds=asked.seconds or (SECONDS if asked.second is None else SECONDS_WITH_SECOND),
        seed=time.time_ns() % 1_000_000 if asked.seed is None else asked.seed,
        second=_second(asked, context),
        pid=asked.pid,
        drawn_seconds=asked.drawn if draws else 0.0,
        program=program,
        name=asked.name,
    )
    path = trace or Path(tempfile.mkdtemp(prefix="purgatorio-wire-")) / "wire.jsonl"
    try:
        failures, stopped = _record(run, path, output)
    except _Unreachable:
        if trace is None:
            path.parent.rmdir()
        raise
    with _verdicts_first():
        judged = EngineAsked().judge(Engine.PROCESS, "judging", [path], output)
        judged = replace(judged, failures=[*judged.failures, *failures])
        status = show(judged, Focus(), output)
    if not output.json:
        click.echo(f"trace: {path}")
    sys.exit(STOPPED if stopped else status)


@contextlib.contextmanager
def _verdicts_first() -> Iterator[None]:
    """In the body, which judges a trace, the first SIGTERM is only recorded, so that a time limit loses no verdict. The
    second SIGTERM ends the process."""

    def told(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, before)
        click.echo("judging; the command ends when the verdicts are printed", err=True)

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wanted(only: Sequence[str], program: str | None) -> tuple[tuple[SceneSpec, ...], bool]:
    """The scenes to run, and whether to run random programs. By default, all of both. With `--program`, only this
    program."""
    words = [word for part in only for word in part.split(",") if word]
    of_scenes = [word for word in words if word != DRAWN]
    whole = not only and program is None
    try:
        scenes = chosen(of_scenes) if of_scenes or whole else []
    except KeyError as unknown:
        raise click.UsageError(
            f"no area, scene or clause {unknown}: see `purgatorio wire --scenes`"
        ) from None
    return tuple(scenes), program is None and (not words or DRAWN in words)


def _record(asked: RunOptions, path: Path, output: CheckOutput) -> tuple[list[Failure], bool]:
    """Runs the scenes and writes the trace to `path`, also after an interrupt. Returns internal errors of the run, and
    whether Ctrl-C stopped it. Exits with status 2 if no broker answers."""
    if not output.json:
        click.echo(f"trace: {path}", err=True)
    what = f"driving {asked.shown}{_drawn_words(asked)}"
    failures: list[Failure] = []
    try:
        with progress(what, len(asked.scenes), "scenes", quiet=output.json) as going:
            played = itertools.count(1)

            def told(line: str) -> None:
                if output.verbose:
                    with going.aside():
                        click.echo(line, err=True)

            run = record(asked, path, failures, told, lambda: going.tell(next(played)), going.say)
            asyncio.run(_stoppable(run))
    except NoBroker as nobody:
        tls = (
            "The listener at this address may have no TLS"
            if asked.address.tls
            else "For a TLS listener use --tls"
        )
        raise _Unreachable(f"no broker: {nobody}\nCheck the address. {tls}; SASL is not supported.") from None
    except (KeyboardInterrupt, asyncio.CancelledError) as ended:
        made, delete = asked.made, f"--bootstrap-server {asked.shown} --delete"
        for tool, kind, names in (
            ("topics", "topic", made.topics), ("consumer-groups", "group", made.groups),
        ):  # fmt: skip
            if names:
                each = " ".join(f"--{kind} {one}" for one in sorted(names))
                click.echo(
                    f"{counted(len(names), kind)} not deleted in time: kafka-{tool}.sh {delete} {each}",
                    err=True,
                )
        left = "the other topics and groups" if made.topics or made.groups else "its topics and groups"
        click.echo(f"stopped: {left} are deleted, the recording is judged", err=True)
        if not path.exists():
            raise KeyboardInterrupt from None
        return failures, isinstance(ended, KeyboardInterrupt)
    return failures, False


async def _stoppable(run: Coroutine[None, None, None]) -> None:
    """Run the coroutine. SIGTERM (from `timeout`, or at the stop of a container) ends it like Ctrl-C."""
    task = asyncio.create_task(run)
    with contextlib.suppress(NotImplementedError):  # Windows has no signal that a program can handle
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task


def _drawn_words(asked: RunOptions) -> str:
    if asked.program is not None:
        return " and a program three times"
    return f" and {asked.drawn_seconds:g} s of random programs" if asked.drawn_seconds else ""


def _address(text: str, allow_remote: bool, context: ssl.SSLContext | None) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.UsageError(f"{text!r} is not HOST:PORT, such as localhost:9092")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as unknown:
        raise click.UsageError(f"{host}: {unknown}") from None
    # Connect to the address that was checked, because the name may have another address a moment later.
    numbers = [str(one[4][0]).partition("%")[0] for one in found]
    if not allow_remote and not all(ipaddress.ip_address(number).is_loopback for number in numbers):
        raise click.UsageError(
            f"{host} ({numbers[0]}) is another machine: scenes create and delete topics and close up to 400 "
            "connections; if you may test this broker, add --allow-remote"
        )
    reachable = next((number for number in numbers if _listens(number, int(port))), numbers[0])
    return Address(reachable, int(port), context, host if context is not None else None)


def _listens(number: str, port: int) -> bool:
    """Whether this address of a name accepts connections. `localhost` has two addresses, and a broker may listen on
    one."""
    try:
        socket.create_connection((number, port), timeout=3).close()
    except OSError:
        return False
    return True


def _tls(tls: bool, ca: Path | None) -> ssl.SSLContext | None:
    if not tls and ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError:
        raise click.UsageError(f"--tls-ca {ca}: no certificate in this file; give the CA's .pem") from None


def _second(asked: WireOptions, context: ssl.SSLContext | None) -> Second | None:
    pid, stop, go_on = asked.second_pid, asked.stop_command, asked.continue_command
    if asked.second is None:
        if pid is not None or stop is not None or go_on is not None:
            raise click.UsageError("give the address of the broker to stop: --second HOST:PORT")
        return None
    where = _address(asked.second, asked.allow_remote, context)
    if pid is not None:
        refuse("with --second-pid", "stop_command", "continue_command")
        return Second(where, pid, pid)
    if stop is None or go_on is None:
        raise click.UsageError("--second needs --second-pid, or --stop-command with --continue-command")
    return Second(where, shlex.split(stop), shlex.split(go_on))
