"""A file that is there whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write it, text as UTF-8, in place of whatever is at `path`; folders are made. A killed writer leaves the old one.

    What is there and is neither file nor folder (a terminal, a pipe) is written to instead. Raises OSError.
    """
    try:
        _write(path, text.encode() if isinstance(text, str) else text, mode)
    except OSError as refused:
        # The user named this file, and not the one that is written next to it; a full disk names none.
        raise OSError(refused.errno, refused.strerror, str(path)) from None


def _write(path: Path, data: bytes, mode: int) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
