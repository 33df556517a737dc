"""Our Java sources, compiled without a JDK by janino, which lies among PySpark's jars.

The classes go to the user's cache, in a directory named by a hash of everything that they depend on: sources, the
compiler's and netty's jar names, the Java version. Compiling takes about a second, once.
"""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from purgatorio_stress.cache_dir import user_cache_dir
from purgatorio_stress.java_home import JavaHome
from purgatorio_stress.subject.contract import SubjectFailed

__all__ = ["Jars", "compiled_classes", "java_sources", "pyspark_jars"]

_COMPILER_MAIN = "org.codehaus.commons.compiler.samples.CompilerDemo"
_COMPILE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Jars:
    """The jars that are used, out of PySpark's package."""

    netty_common: Path
    janino: Path
    commons_compiler: Path

    @property
    def netty_version(self) -> str:
        """`4.2.13.Final` of `netty-common-4.2.13.Final.jar`."""
        return self.netty_common.stem.removeprefix("netty-common-")


def pyspark_jars() -> Jars:
    """Find the jars without importing PySpark. Raises SubjectFailed, kind `unavailable`."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SubjectFailed(
            "netty", "unavailable", "pyspark is not installed; pip install 'purgatorio[spark]'"
        )
    folder = Path(spec.origin).parent / "jars"
    return Jars(*(_only(folder, name) for name in ("netty-common", "janino", "commons-compiler")))


def _only(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"{name}-[0-9]*.jar"))
    if not found:
        raise SubjectFailed("netty", "unavailable", f"no {name} jar among PySpark's jars")
    return found[-1]


def java_sources() -> list[Path]:
    """Our sources, as shipped in this package."""
    return sorted((Path(__file__).parent / "java" / "purgatorio").glob("*.java"))


def compiled_classes(java: JavaHome, jars: Jars, cache: Path | None = None) -> Path:
    """The directory of the classes, compiled if need be; safe when several processes ask at once.

    Raises SubjectFailed with the compiler's words, kind `unavailable`.
    """
    sources = java_sources()
    cache = user_cache_dir() if cache is None else cache
    digest = hashlib.sha256(f"{java.version} {jars.janino.name} {jars.netty_common.name}".encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    target = cache / f"java-classes-{digest.hexdigest()[:16]}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=cache, prefix=".java-classes-"))
    try:
        _compile(java, jars, sources, building)
        # A rename of a whole directory: it is there complete, or not at all. Losing a race is as good as winning.
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
    command += ["-encoding", "UTF-8", "-g:source,lines", "-d", out, "-classpath", jars.netty_common, *sources]
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SubjectFailed("netty", "unavailable", f"the compiler did not run: {error}") from None
    if done.returncode != 0 or not any(out.rglob("Driver.class")):
        said = (done.stderr + done.stdout).strip()[-2000:]
        raise SubjectFailed("netty", "unavailable", f"the Java driver does not compile: {said}")
