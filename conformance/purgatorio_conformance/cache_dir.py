"""The directory for generated files: the launcher of a Java runtime (`java_home`), and compiled Java classes
(`subject.java_build`).

The directory is in the user's cache. Two processes may write one file at the same time, so files are written atomically
(`whole_file`).
"""

import os
import stat
import tempfile
from pathlib import Path


def user_cache_dir() -> Path:
    """The directory for generated files, which belongs to the user and is writable. Created if necessary.

    `$XDG_CACHE_HOME/purgatorio`, or `~/.cache/purgatorio` without this variable. If this directory cannot be created or
    written (no home, a read-only file system): a directory of this user in the temporary directory.
    """
    for candidate in _candidates():
        if _usable(candidate):
            return candidate
    return Path(tempfile.mkdtemp(prefix="purgatorio-"))


def _candidates() -> list[Path]:
    found: list[Path] = []
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification tells programs to ignore a relative path.
    if cache_home and Path(cache_home).is_absolute():
        found.append(Path(cache_home) / "purgatorio")
    home = os.environ.get("HOME", "")
    if home and Path(home).is_absolute():
        found.append(Path(home) / ".cache" / "purgatorio")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    found.append(Path(tempfile.gettempdir()) / f"purgatorio-{user}")
    return found


def _usable(directory: Path) -> bool:
    """Whether the directory exists or can be created, belongs to this user and is writable.

    Files of the directory are executed, so its owner is checked: in a shared temporary directory, another user may have
    created it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or not os.access(directory, os.W_OK | os.X_OK):
        return False
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
