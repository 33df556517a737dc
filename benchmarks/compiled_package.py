"""The reference compiled by mypyc: the second build of the one source.

`python -m benchmarks.compiled_package` compiles it into the user's cache, unless it is there, and prints the
directory; with that on PYTHONPATH, `import purgatorio` is the compiled one. It needs mypy, setuptools and a C
compiler, and takes about half a minute. The build hook of the wheel (`hatch_build.py`) uses the same lines.

The directory is a copy of the package with an extension module beside each compiled source, and one shared library.
Its name has a hash of all that it depends on: the sources, the Python, mypy.

Only the standard library is imported here: the build hook loads this file by its path.
"""

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

COMPILED_MODULES: Final = (
    "delayed/dialect.py",
    "delayed/locked.py",
    "delayed/operation.py",
    "delayed/pending_flag.py",
    "delayed/purgatory.py",
    "delayed/watchers.py",
    "librt_mutex.py",
    "lock.py",
    "owned.py",
    "process.py",
    "reaper.py",
    "threads.py",
    "threads_queue.py",
    "timer/intrusive/node.py",
    "timer/intrusive/timer.py",
    "timer/intrusive/wheel.py",
    "timer/task.py",
)
"""The hot path of a timer and of a purgatory over it; the rest of the package stays as it is."""

_SETUP: Final = """
import sys
from mypyc.build import mypycify
from setuptools import setup

level, *paths = sys.argv[2:]
del sys.argv[2:]
setup(
    name="purgatorio",
    packages=[],
    ext_modules=mypycify(
        [*paths, "--config-file", "mypy.ini"], opt_level=level, debug_level="0", group_name="purgatorio"
    ),
)
"""

_MYPY_INI: Final = "[mypy]\nexplicit_package_bases = True\nnamespace_packages = True\nmypy_path = .\n"
_TIMEOUT_S: Final = 900.0
_TOOLS: Final = ("mypy", "setuptools")


class NoCompiler(RuntimeError):
    """A tool for compiling is missing. The message names it."""


def missing_tools() -> str:
    """The missing tools for a compiled build, as a text. Empty if nothing is missing."""
    missing = []
    for name in _TOOLS:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if os.name != "nt" and shutil.which(compiler) is None:
        missing.append(f"a C compiler ({compiler})")
    return ", ".join(missing)


def compiler_environment() -> dict[str, str]:
    """The environment for a child process that compiles. It has no PYTHONPATH, which may contain a compiled package,
    but the places of mypy and setuptools. In the isolated environment in which pip builds, they are nowhere else."""
    places = dict.fromkeys(str(importlib.metadata.distribution(name).locate_file("")) for name in _TOOLS)
    kept = {key: value for key, value in os.environ.items() if key != "MYPYPATH"}
    return kept | {"PYTHONPATH": os.pathsep.join(places)}


def compile_package(source: Path, target: Path, *, optimised: bool = True) -> None:
    """Copy the package in the directory `source` into `target` and compile it there. `target` must not exist. Without
    `optimised` the compiler takes half the time; for tests, which ask what it does and not how fast.

    Raises NoCompiler with the tools that are missing, or with the end of what the compiler said.
    """
    missing = missing_tools()
    if missing:
        raise NoCompiler(f"not here: {missing}")
    package = target / source.name
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(source, package, ignore=ignored)
    with tempfile.TemporaryDirectory(prefix="purgatorio-mypyc-") as scratch:
        work = Path(scratch)
        shutil.copytree(source, work / source.name, ignore=ignored)
        (work / "setup.py").write_text(_SETUP)
        (work / "mypy.ini").write_text(_MYPY_INI)
        paths = [f"{source.name}/{module}" for module in COMPILED_MODULES]
        done = subprocess.run(
            [sys.executable, "setup.py", "build_ext", "3" if optimised else "0", *paths],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=compiler_environment(),
        )
        if done.returncode != 0:
            raise NoCompiler((done.stdout + done.stderr)[-2_000:])
        (built,) = (work / "build").glob("lib.*")
        shutil.copytree(built, target, dirs_exist_ok=True)


def compiled_place(source: Path, *, optimised: bool = True) -> Path:
    """Where the compiled package of `source` is kept, whether it has been made or not."""
    from purgatorio_conformance.cache_dir import user_cache_dir

    return user_cache_dir() / f"compiled{'' if optimised else '-quickly'}-{_fingerprint(source)}"


def compiled_package(*, optimised: bool = True) -> Path:
    """The directory with the compiled package, made if need be; raises NoCompiler."""
    import purgatorio

    source = Path(purgatorio.__file__).parent
    target = compiled_place(source, optimised=optimised)
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as scratch:
            made = Path(scratch) / "made"
            compile_package(source, made, optimised=optimised)
            try:
                made.rename(target)
            except OSError:
                # Somebody else was faster; theirs is the same.
                if not target.exists():
                    raise
    return target


@contextmanager
def imported_from(directory: Path) -> Iterator[None]:
    """Inside, `import purgatorio` imports it anew, from this directory; outside, it is what it was.

    So both builds can be in one process. Each is complete in itself and knows nothing of the other.
    """
    before = _modules()
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        for name in _modules():
            del sys.modules[name]
        sys.modules.update(before)


def _modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "purgatorio"}


def _fingerprint(source: Path) -> str:
    """Names all that a build depends on."""
    found = hashlib.sha256(f"{sys.version}\n{sysconfig.get_platform()}\n".encode())
    for name in ("mypy", "setuptools"):
        try:
            found.update(f"{name} {importlib.metadata.version(name)}\n".encode())
        except importlib.metadata.PackageNotFoundError:
            found.update(f"{name} is not here\n".encode())
    found.update(f"{COMPILED_MODULES}\n{_SETUP}".encode())
    for path in sorted(source.rglob("*.py")):
        found.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:20]


if __name__ == "__main__":
    try:
        print(compiled_package())
    except NoCompiler as error:
        sys.exit(f"no compiled build: {error}")
