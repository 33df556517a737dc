"""The command `purgatorio broker`: serves the project's own broker on a socket."""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import dataclass, fields
from types import FrameType
from typing import Final

import click

from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_pipeline.command.bug import bug_asked, mutant_option
from purgatorio_pipeline.command.options import flag, number, option, taking

_DEFAULT = Settings()


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    port: int = number("Port to listen on; 0 chooses a free port.", _DEFAULT.port, least=0, most=65535)
    host: str = option("Address to listen on.", default=_DEFAULT.host, show_default=True)
    follow: str | None = option(
        "Run as a second broker that replicates from the broker at this address.", metavar="HOST:PORT"
    )
    replica_lag_ms: int = number(
        "A follower without a fetch for this time is out of sync.", _DEFAULT.replica_lag_ms, least=100
    )
    share_lock_ms: int = number("Acquisition lock duration of share groups.", _DEFAULT.share_lock_ms, least=1)
    allow_remote: bool = flag("Allow an address that other machines can reach.")
    initial_delay_ms: int = number(
        "Initial rebalance delay of an empty group.", _DEFAULT.initial_delay_ms, least=0
    )
    session_bounds_ms: tuple[int, int] = option(
        "Minimum and maximum session timeout of a member.",
        type=click.IntRange(1), nargs=2, default=_DEFAULT.session_bounds_ms, show_default=True,
    )  # fmt: skip
    min_in_sync: int = number("Default of min.insync.replicas.", _DEFAULT.min_in_sync, least=1)
    default_partitions: int = number(
        "Default number of partitions of a new topic.", 1, named="--partitions", least=1, most=1000
    )
    auto_create: bool = option(
        "Create a topic when a client requests its metadata.",
        named="--auto-create/--no-auto-create", default=True, show_default=True,
    )  # fmt: skip
    mutant: str | None = mutant_option()


_SETTINGS: Final = {one.name for one in fields(Settings)} & {one.name for one in fields(BrokerOptions)}


@taking(
    BrokerOptions,
    "broker",
    epilog="Exit status: 0 stopped by a signal, 2 wrong usage, or the address is taken.",
)
def command(asked: BrokerOptions) -> None:
    """Run a small broker that serves clients of Kafka's protocol.

    The broker is for tests of clients. NOTHING IS STORED ON DISK. There is no TLS and no access control. Ctrl-C ends
    the broker.

    \b
      purgatorio broker                                      # 127.0.0.1:9092
      purgatorio broker --port 0 --initial-delay-ms 0        # any port, no delay
      purgatorio broker --port 9093 --follow 127.0.0.1:9092  # a second broker
      purgatorio broker --mutant my_bug.py                   # with a bug
    """
    bug = bug_asked(asked.mutant)
    if not asked.allow_remote and asked.host not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError(
            f"{asked.host} can be reached from other machines: if you want that, add --allow-remote"
        )
    given = {name: getattr(asked, name) for name in _SETTINGS}
    follow = None if asked.follow is None else _address(asked.follow)
    with bug.applied():
        _serve(Settings(**given, node_id=int(follow is not None)), follow, asked.mutant)


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
