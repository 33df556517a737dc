"""The command `purgatorio broker`: serves the project's own broker on a socket."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

import click

from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_pipeline.command.bug import bug_asked, mutant_option
from purgatorio_pipeline.command.options import flag, number

_DEFAULT = Settings()


@click.command("broker", epilog="Exit status: 0 stopped by a signal, 2 wrong usage, or the address is taken.")
@number("--port", "Port to listen on; 0 chooses a free port.", _DEFAULT.port, least=0, most=65535)
@click.option("--host", default=_DEFAULT.host, show_default=True, help="Address to listen on.")
@click.option(
    "--follow",
    metavar="HOST:PORT",
    help="Run as a second broker that replicates from the broker at this address.",
)
@number(
    "--replica-lag-ms",
    "A follower without a fetch for this time is out of sync.",
    _DEFAULT.replica_lag_ms,
    least=100,
)
@number("--share-lock-ms", "Acquisition lock duration of share groups.", _DEFAULT.share_lock_ms, least=1)
@flag("--allow-remote", "Allow an address that other machines can reach.")
@number(
    "--initial-delay-ms", "Initial rebalance delay of an empty group.", _DEFAULT.initial_delay_ms, least=0
)
@click.option(
    "--session-bounds-ms", type=click.IntRange(1), nargs=2, default=_DEFAULT.session_bounds_ms,
    show_default=True, help="Minimum and maximum session timeout of a member.",
)  # fmt: skip
@number("--min-in-sync", "Default of min.insync.replicas.", _DEFAULT.min_in_sync, least=1)
@number("--partitions", "Default number of partitions of a new topic.", 1, least=1, most=1000)
@click.option(
    "--auto-create/--no-auto-create",
    default=True,
    show_default=True,
    help="Create a topic when a client requests its metadata.",
)
@mutant_option
def command(
    port: int,
    host: str,
    follow: str | None,
    replica_lag_ms: int,
    share_lock_ms: int,
    allow_remote: bool,
    initial_delay_ms: int,
    session_bounds_ms: tuple[int, int],
    min_in_sync: int,
    partitions: int,
    auto_create: bool,
    mutant: str | None,
) -> None:
    """Run a small broker that serves clients of Kafka's protocol.

    The broker is for tests of clients. NOTHING IS STORED ON DISK. There is no TLS and no access control. Ctrl-C ends
    the broker.

    \b
      purgatorio broker                                      # 127.0.0.1:9092
      purgatorio broker --port 0 --initial-delay-ms 0        # any port, no delay
      purgatorio broker --port 9093 --follow 127.0.0.1:9092  # a second broker
      purgatorio broker --mutant my_bug.py                   # with a bug
    """
    bug = bug_asked(mutant)
    if not allow_remote and host not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError(
            f"{host} can be reached from other machines: if you want that, add --allow-remote"
        )
    settings = Settings(
        host=host, port=port, initial_delay_ms=initial_delay_ms, session_bounds_ms=session_bounds_ms,
        min_in_sync=min_in_sync, default_partitions=partitions, auto_create=auto_create, replica_lag_ms=replica_lag_ms,
        share_lock_ms=share_lock_ms, node_id=int(follow is not None),
    )  # fmt: skip
    with bug.applied():
        _serve(settings, None if follow is None else _address(follow), mutant)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.UsageError(f"--follow {text}: not an address: write HOST:PORT")
    return host, int(port)


def _serve(settings: Settings, follow: tuple[str, int] | None, mutant: str | None) -> None:
    stop = threading.Event()

    def stopped(number: int, frame: FrameType | None) -> None:
        stop.set()

    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, stopped)
    try:
        running = Running(settings, follow)
    except OSError as error:
        about = f"{settings.host}:{settings.port}" + (
            f", following {follow[0]}:{follow[1]}" if follow else ""
        )
        raise click.UsageError(f"{about}: {error.strerror or error}") from error
    has = f"; it runs with the bug {mutant}" if mutant is not None else ""
    with running:
        click.echo(
            f"broker {settings.node_id} listens on {settings.host}:{running.port}; nothing is kept on disk{has}"
        )
        sys.stdout.flush()
        stop.wait()
        click.echo("stopping", err=True)
