"""Compiles Purgatorio's Java sources without a JDK. The compiler is janino, one of PySpark's jars.

The classes go to a directory in the user's cache. Its name is a hash of the sources, the names of the jars, and the
Java version. If the library of an adapter is missing, the adapter is left out.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import JavaHome
from purgatorio_conformance.subject.contract import SubjectFailed

_COMPILER_MAIN = "org.codehaus.commons.compiler.samples.CompilerDemo"
_COMPILE_TIMEOUT_S = 120.0
_DEBIAN_JARS: Final = Path("/usr/share/java")

_NEEDS: Final[Mapping[str, str]] = {
    "CaffeineExpiry.java": "caffeine",
    "JettyScheduler.java": "spark-core",
    "VertxTimer.java": "vertx-core",
}
"""The library that a source of ours needs for compilation; netty is always there."""

_COMPILED_AGAINST: Final = ("spark-core", "vertx-core", "netty-transport")


@dataclass(frozen=True)
class Jars:
    """The jars of PySpark's package that are used; `caffeine` is Debian's, if it is installed."""

    netty_common: Path
    janino: Path
    commons_compiler: Path
    libraries: Mapping[str, Path] = field(default_factory=dict)
    """The libraries that some adapters need, by the name without the version: `vertx-core`."""

    @property
    def compile_path(self) -> list[Path]:
        return [self.netty_common, *self.libraries.values()]

    def library(self, name: str) -> Path:
        """The jar of this name, from the same folder. Raises SubjectFailed, kind `unavailable`."""
        return self.libraries.get(name) or _only(self.netty_common.parent, name)


def pyspark_jars() -> Jars:
    """Find the jars without importing PySpark. Raises SubjectFailed, kind `unavailable`."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SubjectFailed("JVM", "unavailable", "pyspark is not installed; pip install 'purgatorio[spark]'")
    folder = Path(spec.origin).parent / "jars"
    libraries = {name: found[-1] for name in _COMPILED_AGAINST if (found := _found(folder, name))}
    caffeine = debian_jar("caffeine")
    if caffeine is not None:
        libraries["caffeine"] = caffeine
    return Jars(
        _only(folder, "netty-common"), _only(folder, "janino"), _only(folder, "commons-compiler"), libraries
    )


def debian_jar(name: str) -> Path | None:
    """The jar with a version in its name that a Debian package installs: `netty-common-4.1.48.Final.jar`."""
    found = _found(_DEBIAN_JARS, name)
    return found[-1] if found else None


def installed_jar(subject: str, name: str, package: str) -> Path:
    """As `debian_jar`, for a jar that `subject` needs. Raises SubjectFailed, kind `unavailable`."""
    jar = debian_jar(name)
    if jar is None:
        why = f"Debian's package {package} is not installed; apt-get install {package}"
        raise SubjectFailed(subject, "unavailable", why)
    return jar


def _found(folder: Path, name: str) -> list[Path]:
    """Jars of this name, with a version: `spark-core_2.13-4.3.0.jar` too."""
    return sorted([*folder.glob(f"{name}-[0-9]*.jar"), *folder.glob(f"{name}_[0-9]*.jar")])


def _only(folder: Path, name: str) -> Path:
    found = _found(folder, name)
    if not found:
        raise SubjectFailed("JVM", "unavailable", f"no {name} jar among PySpark's jars")
    return found[-1]


def java_sources() -> list[Path]:
    """Our sources, as shipped in this package: the adapters of `subject`, and the kit that they are written with."""
    adapters = Path(__file__).parent / "java" / "purgatorio"
    return sorted([*adapters.glob("*.java"), *(kit_folder() / "purgatorio" / "kit").glob("*.java")])


def kit_folder() -> Path:
    """The kit for the JVM (`docs/jvm-kit.md`): a folder of sources that need nothing but Java 11."""
    return Path(__file__).parent.parent / "kits" / "jvm"


def compiled_classes(java: JavaHome, jars: Jars, more: Sequence[Path] = ()) -> Path:
    """The directory of the classes, including those of `more` sources, compiled if necessary. Several processes may
    call this at once.

    Raises SubjectFailed with the compiler's output, kind `unavailable`.
    """
    ours = [*java_sources(), *more]
    sources = [path for path in ours if _NEEDS.get(path.name) in (None, *jars.libraries)]
    used = " ".join(path.name for path in (jars.janino, *jars.compile_path))
    name = f"java-classes-{digest_of(f'{java.version} {used}', sources)}"
    return built_once(name, lambda out: _compile(java, jars, sources, out))


def digest_of(first: str, sources: Iterable[Path]) -> str:
    """A folder name: a hash of the text `first`, and of the names and contents of these sources."""
    digest = hashlib.sha256(first.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def built_once(name: str, build: Callable[[Path], None], cache: Path | None = None) -> Path:
    """The folder of this name in the cache; `build` makes it if needed. Several processes may call this at once."""
    cache = user_cache_dir() if cache is None else cache
    target = cache / name
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=cache, prefix=f".{name}-"))
    try:
        build(building)
        # The rename is atomic. If another process was faster, its directory is equally good.
        try:
            building.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _compile(java: JavaHome, jars: Jars, sources: list[Path], out: Path) -> None:
    command = [java.java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-cp", f"{jars.janino}:{jars.commons_compiler}", _COMPILER_MAIN]
    command += ["-encoding", "UTF-8", "-g:source,lines", "-d", out]
    command += ["-classpath", ":".join(str(path) for path in jars.compile_path), *sources]
    run_tool("the Java compiler", command, out, _COMPILE_TIMEOUT_S)
    if not any(out.rglob("Timers.class")):
        raise SubjectFailed("JVM", "unavailable", "our Java programs do not compile")


def run_tool(what: str, command: Sequence[object], folder: Path, timeout_s: float) -> str:
    """Run a program to its end, and return its output. Raises SubjectFailed, kind `unavailable`, with the output."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
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
        said = (done.stderr + done.stdout).strip()[-2000:]
        raise SubjectFailed(what, "unavailable", f"{what} ended with status {done.returncode}: {said}")
    return done.stdout
