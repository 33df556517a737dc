"""Jars that the user's own Maven resolves, and adapters that are compiled against them.

Nothing of this is committed or installed: jars and classes go to the user's cache, a folder for each set.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.java_build import kit_folder

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_RESOLVE_TIMEOUT_S: Final = 600.0
_COMPILE_TIMEOUT_S: Final = 300.0


def maven_jars(coordinates: Sequence[str], cache: Path | None = None) -> Path:
    """The folder of the jars of `group:artifact:version[:classifier]` coordinates, and of all they need at run time.

    Maven is asked once for each set. Raises SubjectFailed, kind `unavailable`: no Maven, or it refused.
    """
    cache = user_cache_dir() if cache is None else cache
    target = cache / f"maven-{hashlib.sha256(' '.join(coordinates).encode()).hexdigest()[:16]}"
    if target.is_dir():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise SubjectFailed("Maven", "unavailable", "mvn is not on the PATH")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".maven-", dir=cache) as scratch:
        project = Path(scratch)
        (project / "pom.xml").write_text(_project(coordinates))
        jars = project / "jars"
        _run(
            "Maven",
            [maven, "-q", "-B", _PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={jars}"],
            project,
            _RESOLVE_TIMEOUT_S,
        )
        if not target.is_dir():
            jars.rename(target)
    return target


def compiled_adapter(sources: Sequence[Path], jars: Path, cache: Path | None = None) -> Path:
    """The folder of the classes of an adapter's sources and of the kit that they use.

    Compiled once for each state of the sources. Raises SubjectFailed, kind `unavailable`.
    """
    cache = user_cache_dir() if cache is None else cache
    digest = hashlib.sha256(jars.name.encode())
    for source in (*sources, *sorted(kit_folder().rglob("*.java"))):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    target = cache / f"adapter-{digest.hexdigest()[:16]}"
    if target.is_dir():
        return target
    compiler = jdk_program("javac")
    with tempfile.TemporaryDirectory(prefix=".adapter-", dir=cache) as scratch:
        out = Path(scratch) / "classes"
        command = [
            str(compiler),
            "-nowarn",
            "-d",
            str(out),
            "-cp",
            f"{jars}/*",
            "-sourcepath",
            str(kit_folder()),
        ]
        _run("javac", [*command, *map(str, sources)], Path(scratch), _COMPILE_TIMEOUT_S)
        if not target.is_dir():
            out.rename(target)
    return target


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


def _run(what: str, command: Sequence[str], folder: Path, timeout_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SubjectFailed(what, "unavailable", f"{what} did not run: {error}") from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-1500:]
        raise SubjectFailed(what, "unavailable", f"{what} ended with status {done.returncode}: {said}")
