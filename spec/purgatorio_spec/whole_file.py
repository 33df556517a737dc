"""Writes a file atomically: a reader finds the complete file, or no file."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write `text` to `path` (as UTF-8), and replace an existing file. Missing folders are created. If the writer is
    killed, the old file remains. If `path` is a terminal or a pipe, the text is written to it. Raises OSError."""
    try:
        _write(path, text.encode() if isinstance(text, str) else text, mode)
    except OSError as refused:
        # Name the file of the user, not the temporary file. (The error of a full disk names no file.)
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
