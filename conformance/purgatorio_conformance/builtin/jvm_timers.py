"""Timers of the JVM: netty's `HashedWheelTimer`, Vert.x's and Jetty's timers from PySpark's jars, the timers of the
JDK, and Debian's Caffeine and older netty, if they are installed.

Each timer has an adapter of the JVM kit (`subject/java`). The program `purgatorio.Timers` serves the adapters, with the
promises in `jvm_timers.toml`.
"""

import re
import threading
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from purgatorio_conformance.builtin.program import ProgramSubject
from purgatorio_conformance.java_home import JavaHome, JavaNotFound, find_java
from purgatorio_conformance.protocol.driver import Mode
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.java_build import compiled_classes, installed_jar, pyspark_jars
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, MS, PlanShape

_FAMILIES: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    files(__package__).joinpath("jvm_timers.toml").read_text("utf-8")
)
JVM_FAMILIES: Final = tuple(_FAMILIES)
_build_lock = threading.Lock()


def jvm_timers(family: str) -> list[ProgramSubject]:
    """The configurations of a family, by the names in the table."""
    base = {key: value for key, value in _FAMILIES[family].items() if key != "runs"}
    return [_jvm_timer(name, **base | own) for name, own in _FAMILIES[family]["runs"].items()]


def _jvm_timer(
    name: str, mode: Mode = "real", shape: dict[str, int] | None = None, **said: Any
) -> ProgramSubject:
    options = said.pop("promises", {}) | {key: said.pop(key) for key in [*said] if key not in _FIELDS}
    limits: dict[str, Any] = {f"{key.removesuffix('ms')}ns": ms * MS for key, ms in (shape or {}).items()}
    if "unit_ns" in limits:
        # In whole milliseconds, the smallest delay is a whole one.
        limits = {"least_ns": -(MAX_DELAY_NS // MS * MS)} | limits
    return _JvmTimer(
        name=name if mode == "real" else f"{name}-timer-{mode}",
        mode=mode,
        threads=4,
        tick_ns=int(options.get("tick_ns", int(options.get("tick_ms", 1)) * MS)),
        shape=PlanShape(**limits),
        options=options,
        **{"refuses": True} | said,
    )


def _java() -> JavaHome:
    try:
        return find_java()
    except JavaNotFound as missing:
        raise SubjectFailed("JVM", "unavailable", str(missing)) from None


@dataclass(frozen=True, kw_only=True)
class _JvmTimer(ProgramSubject):
    """A configuration of the table. `properties`: the place of the version in its jar, if the name of the jar has
    another. `dwells`: the kit lets tasks wait a little, so that they overlap."""

    adapter: str
    implementation: str
    options: dict[str, int | str] = field(hash=False)
    jars: str = ""
    debian: Sequence[str] = field(default=(), hash=False)
    properties: str = ""
    dwells: bool = False

    def _libraries(self) -> list[Path]:
        if self.debian:
            return [installed_jar(self.name, *self.debian)]
        return list(map(pyspark_jars().library, self.jars.split()))

    @property
    def version(self) -> str:
        jars = self._libraries()
        if self.properties:
            try:
                with zipfile.ZipFile(jars[0]) as jar:
                    said = jar.read(self.properties)[:4096].decode(errors="replace")
            except (KeyError, OSError, zipfile.BadZipFile):
                said = ""
            found = re.search(r"^version=(.*)$", said, re.MULTILINE)
            return found[1].strip() if found else "of unknown version"
        # `4.2.13.Final` from `netty-common-4.2.13.Final.jar`.
        return re.sub(r"^\D*-", "", jars[0].stem) if jars else _java().version

    def command(self) -> tuple[str, ...]:
        java, shape = _java(), self.shape
        with _build_lock:
            classes = compiled_classes(java, pyspark_jars())
        told: dict[str, object] = {
            "name": self.implementation, "profile": self.profile, "version": self.version,
            "unit_ns": shape.unit_ns, "least_ns": shape.least_ns, "most_ns": shape.most_ns, **self.options,
        }  # fmt: skip
        if "tick_ms" in told:
            told["tick_ns"] = self.tick_ns
        if "counts" in told:
            told["late_ns"] = self.tick_ns
        # Only the first compiler and the simplest collector: the program then starts in a third of the time.
        quick = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        still = f"-Dpurgatorio.still={str(not self.dwells).lower()}"
        path = ":".join(map(str, (classes, *self._libraries())))
        said = (f"{key}={value}" for key, value in told.items())
        return (str(java.java), *quick, still, "-cp", path, "purgatorio.Timers", self.adapter, *said)


_FIELDS: Final = frozenset(_JvmTimer.__dataclass_fields__)
