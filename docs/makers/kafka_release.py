"""Released Kafka brokers, started on this machine: one node, or several with a controller of their own.

Maven resolves a release into its own repository; the class path is kept in a cache of the user's
(`$XDG_CACHE_HOME/purgatorio/kafka`). Releases from 3.3 on run with KRaft, older ones with ZooKeeper.

    python -m docs.makers.kafka_release 3.9.0 --nodes 2 --set group.initial.rebalance.delay.ms=0

It prints one line of JSON with the addresses and process ids, and stops the nodes on Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

START_SECONDS: Final = 300.0
RESOLVE_SECONDS: Final = 600.0
STOP_SECONDS: Final = 10.0
HEAP: Final = "512m"
NICENESS: Final = 5
CONTROLLER: Final = 100
"""The id of a controller that is no broker."""

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>purgatorio</groupId><artifactId>kafka-release</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
_LOG4J_1: Final = (("org.slf4j", "slf4j-reload4j", "1.7.36"), ("ch.qos.reload4j", "reload4j", "1.2.25"))
"""Releases up to 3.9 use log4j 1, and not all of them name it as a dependency."""
_ZOOKEEPER: Final = (("org.apache.zookeeper", "zookeeper", "3.5.9"),)
"""Instead of 3.4.13 and 3.4.14, which resolve no address on Java 14 or newer (ZOOKEEPER-3779)."""
_LOG4J: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
ONE_REPLICA: Final[Mapping[str, str]] = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""What one node needs to coordinate groups and transactions. A release ignores a setting that it does not know."""


ZOOKEEPER_MS: Final[Mapping[str, str]] = {
    "zookeeper.connection.timeout.ms": "120000", "zookeeper.session.timeout.ms": "30000",
}  # fmt: skip
"""A busy machine is slower than the default of 6 s, and no session may end while a node is stopped on purpose."""


class Missing(Exception):
    """A release that cannot be started here, and why."""


@dataclass(frozen=True, slots=True)
class Release:
    """A released version of Kafka, such as 3.9.0."""

    version: str

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its parts; ValueError where it is no version."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def scala(self) -> str:
        """The Scala that its artifact is built for."""
        return "2.13" if self.numbers >= (2, 6) else "2.12"

    @property
    def has_kraft(self) -> bool:
        """Whether it runs without ZooKeeper."""
        return self.numbers >= (3, 3)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker that runs: its address, and the process that can be stopped by signal."""

    port: int
    pid: int
    log: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


def cache() -> Path:
    """Where class paths are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "purgatorio" / "kafka"


def unavailable() -> str:
    """Why no release can be started on this machine; empty where one can."""
    lacking = [tool for tool in ("mvn", "java") if shutil.which(tool) is None]
    return f"{' and '.join(lacking)} not installed" if lacking else ""


def class_path(release: Release) -> str:
    """The jars of a release and its dependencies, resolved by Maven once. Missing where that fails."""
    if why := unavailable():
        raise Missing(why)
    kept = cache() / f"{release.version}.classpath"
    if kept.exists() and all(Path(jar).exists() for jar in kept.read_text().split(os.pathsep)):
        return kept.read_text()
    kept.parent.mkdir(parents=True, exist_ok=True)
    wanted = [("org.apache.kafka", f"kafka_{release.scala}", release.version)]
    wanted += _LOG4J_1 if release.numbers < (4,) else ()
    wanted += _ZOOKEEPER if (2, 1) <= release.numbers < (2, 4) else ()
    named = (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in wanted
    )
    with tempfile.TemporaryDirectory(prefix="purgatorio-maven-") as scratch:
        pom, found = Path(scratch) / "pom.xml", Path(scratch) / "classpath"
        pom.write_text(_POM.format(dependencies="".join(named)))
        command = (
            "mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={found}",
            "-Dmdep.includeScope=runtime",
        )  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False)
        if done.returncode or not found.exists():
            raise Missing(f"Maven did not resolve Kafka {release.version}: {done.stdout[-500:].strip()}")
        kept.write_text(found.read_text().strip())
    return kept.read_text()


@contextmanager
def started(
    release: Release,
    nodes: int = 1,
    settings: Mapping[str, str] = ONE_REPLICA,
    *,
    heap: str = HEAP,
    niceness: int = NICENESS,
) -> Iterator[list[Node]]:
    """Run a release with data in a scratch folder, until the block ends. One node with KRaft is its own controller.

    `settings` are added to what the release takes by default; an empty mapping is "no configuration". Raises Missing
    where Maven or Java is not there, and where a node does not come up within START_SECONDS.
    """
    with (
        tempfile.TemporaryDirectory(prefix=f"purgatorio-kafka-{release.version}-") as scratch,
        contextlib.ExitStack() as running,
    ):
        java = _Java(release, class_path(release), Path(scratch), heap, niceness, running)
        ports, control = _free_ports(nodes), _free_ports(1)[0]
        if release.has_kraft:
            found = _with_kraft(java, ports, control, settings)
        else:
            java.run(
                "zookeeper", "org.apache.zookeeper.server.ZooKeeperServerMain", str(control), scratch + "/zk"
            )
            _until_listening(java, "zookeeper", control)
            found = [
                java.broker(at, port, {
                    "broker.id": str(at), "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                    "zookeeper.connect": f"127.0.0.1:{control}", **ZOOKEEPER_MS, **settings,
                })
                for at, port in enumerate(ports, 1)
            ]  # fmt: skip
        for at, node in enumerate(found, 1):
            _until_listening(java, f"broker-{at}", node.port)
        yield found


def _with_kraft(java: _Java, ports: Sequence[int], control: int, settings: Mapping[str, str]) -> list[Node]:
    alone = len(ports) == 1
    voter = 1 if alone else CONTROLLER
    common = {
        "controller.quorum.voters": f"{voter}@127.0.0.1:{control}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **settings,
    }
    controls = f"CONTROLLER://127.0.0.1:{control}"
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    roles: list[tuple[int, int, dict[str, str]]] = []
    if not alone:
        roles.append(
            (
                CONTROLLER,
                control,
                {"process.roles": "controller", "node.id": str(CONTROLLER), "listeners": controls},
            )
        )
    for at, port in enumerate(ports, 1):
        own = {
            "process.roles": "broker,controller" if alone else "broker",
            "node.id": str(at),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}" + (f",{controls}" if alone else ""),
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        roles.append((at, port, own))
    made = []
    for number, port, own in roles:
        java.format(number, {**own, **common}, cluster)
        made.append(java.broker(number, port, {**own, **common}))
    return made if alone else made[1:]


@dataclass(frozen=True, slots=True)
class _Java:
    """Starts the programs of a release, each with its log, and stops them with `running`."""

    release: Release
    path: str
    scratch: Path
    heap: str
    niceness: int
    running: contextlib.ExitStack
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def command(self, main: str, *arguments: str) -> list[str]:
        log4j = self.scratch / "log4j.properties"
        log4j.write_text(_LOG4J)
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        return [
            "nice", "-n", str(self.niceness), str(java), f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-XX:-UsePerfData",
            f"-Dlog4j.configuration=file:{log4j}", "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.jmx.log4j.disable=true", "-cp", self.path, main,
            *arguments,
        ]  # fmt: skip

    def log(self, name: str) -> Path:
        return self.scratch / f"{name}.log"

    def run(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log(name).open("wb") as out:
            child = subprocess.Popen(
                self.command(main, *arguments), stdout=out, stderr=subprocess.STDOUT, cwd=self.scratch,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.running.callback(_stop, child)
        self.children[name] = child
        return child

    def config(self, number: int, settings: Mapping[str, str]) -> Path:
        place = self.scratch / f"server-{number}.properties"
        lines = {**settings, "log.dirs": str(self.scratch / f"data-{number}")}
        place.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return place

    def format(self, number: int, settings: Mapping[str, str], cluster: str) -> None:
        """Prepare the folder of a KRaft node."""
        place = self.config(number, settings)
        command = self.command(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(place)
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if done.returncode:
            raise Missing(
                f"Kafka {self.release.version}: format: {(done.stdout + done.stderr)[-500:].strip()}"
            )

    def broker(self, number: int, port: int, settings: Mapping[str, str]) -> Node:
        name = f"broker-{number}"
        child = self.run(name, "kafka.Kafka", str(self.config(number, settings)))
        return Node(port, child.pid, self.log(name))


def _stop(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGCONT)  # a run that broke off may have left it stopped
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


def _until_listening(java: _Java, name: str, port: int) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and java.children[name].poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
            return
        except OSError:
            time.sleep(0.2)
    said = java.log(name).read_text(errors="replace")[-800:].strip()
    raise Missing(f"Kafka {java.release.version}: {name} did not listen: {said}")


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def stop_on_sigterm() -> None:
    """End by SIGTERM as by Ctrl-C, so that no node is left behind."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def main() -> None:
    """Start a release and wait."""
    parser = argparse.ArgumentParser(prog="python -m docs.makers.kafka_release", description=__doc__)
    parser.add_argument("version", help="such as 3.9.0")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE", dest="settings"
    )
    parser.add_argument("--bare", action="store_true", help="no configuration but listeners and folders")
    asked = parser.parse_args()
    settings = {**({} if asked.bare else ONE_REPLICA), **dict(asked.settings)}
    stop_on_sigterm()
    try:
        with started(Release(asked.version), asked.nodes, settings) as nodes:
            shown = [{"address": one.address, "pid": one.pid, "log": str(one.log)} for one in nodes]
            print(json.dumps({"version": asked.version, "nodes": shown}), flush=True)
            signal.pause()
    except Missing as why:
        raise SystemExit(str(why)) from None
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
