"""The cache directory of generated files: the launcher of a Java runtime (`java_home`), and compiled Java classes
(`subject.java_build`).

It is in the user's cache directory. Two processes may write one file at the same time, so files are written atomically
(`whole_file`).
"""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path


def user_cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The directory for generated files, made if need be; it is the user's own and writable.

    `$XDG_CACHE_HOME/purgatorio`, else `~/.cache/purgatorio`; where neither can be made or written (no home, a
    read-only file system), a directory of this user alone under the temporary directory.
    """
    environment = os.environ if environ is None else environ
    for candidate in _candidates(environment):
        if _usable(candidate):
            return candidate
    return Path(tempfile.mkdtemp(prefix="purgatorio-"))


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    found: list[Path] = []
    cache_home = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification tells programs to ignore a relative path.
    if cache_home and Path(cache_home).is_absolute():
        found.append(Path(cache_home) / "purgatorio")
    home = environ.get("HOME", "")
    if home and Path(home).is_absolute():
        found.append(Path(home) / ".cache" / "purgatorio")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    found.append(Path(tempfile.gettempdir()) / f"purgatorio-{user}")
    return found


def _usable(directory: Path) -> bool:
    """Whether the directory exists or can be created, belongs to this user and is writable.

    The owner is checked because files in it are executed: in a shared temporary directory, another user
    could have created the name first.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or not os.access(directory, os.W_OK | os.X_OK):
        return False
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
