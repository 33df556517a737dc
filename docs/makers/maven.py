"""Jars that the user's own Maven downloads, and adapters that are compiled with these jars.

Nothing is committed or installed. Jars and classes go to the user's cache, with a folder for each set.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.java_build import built_once, digest_of, kit_folder, run_tool

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_RESOLVE_TIMEOUT_S: Final = 600.0
_COMPILE_TIMEOUT_S: Final = 300.0


def maven_jars(coordinates: Sequence[str], cache: Path | None = None) -> Path:
    """The folder of the jars of `group:artifact:version[:classifier]` coordinates, and of all they need at run time.

    Maven is asked once for each set. Raises SubjectFailed, kind `unavailable`: no Maven, or it refused.
    """

    def resolve(out: Path) -> None:
        maven = shutil.which("mvn")
        if maven is None:
            raise SubjectFailed("Maven", "unavailable", "mvn is not on the PATH")
        with tempfile.TemporaryDirectory() as project:
            (Path(project) / "pom.xml").write_text(_project(coordinates))
            command = [maven, "-q", "-B", _PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={out}"]
            run_tool("Maven", command, Path(project), _RESOLVE_TIMEOUT_S)

    return built_once(f"maven-{digest_of(' '.join(coordinates), ())}", resolve, cache)


def compiled_adapter(sources: Sequence[Path], jars: Path, cache: Path | None = None) -> Path:
    """The folder of the classes of an adapter's sources and of the kit that they use.

    Compiled once for each state of the sources. Raises SubjectFailed, kind `unavailable`.
    """

    def compiled(out: Path) -> None:
        command = [
            jdk_program("javac"),
            "-nowarn",
            "-d",
            out,
            "-cp",
            f"{jars}/*",
            "-sourcepath",
            kit_folder(),
        ]
        run_tool("javac", [*command, *sources], out, _COMPILE_TIMEOUT_S)

    used = (*sources, *sorted(kit_folder().rglob("*.java")))
    return built_once(f"adapter-{digest_of(jars.name, used)}", compiled, cache)


def jdk_program(name: str) -> Path:
    """A program next to the `java` that is used. Raises SubjectFailed, kind `unavailable`."""
    try:
        program = find_java().java.with_name(name)
    except JavaNotFound as missing:
        raise SubjectFailed("JVM", "unavailable", str(missing)) from None
    if not program.exists():
        raise SubjectFailed("JVM", "unavailable", f"a Java runtime without {name}; install a JDK")
    return program


def _project(coordinates: Sequence[str]) -> str:
    def dependency(coordinate: str) -> str:
        names = ("groupId", "artifactId", "version", "classifier")
        parts = "".join(
            f"<{name}>{part}</{name}>" for name, part in zip(names, coordinate.split(":"), strict=False)
        )
        return f"<dependency>{parts}</dependency>"

    wanted = "".join(map(dependency, coordinates))
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>purgatorio</groupId><artifactId>wanted</artifactId>"
        f"<version>1</version><dependencies>{wanted}</dependencies></project>"
    )
