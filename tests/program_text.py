"""Programs that tests change and run. They are text, since each has its bug, or a place for one."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def program(name: str) -> str:
    return (Path(__file__).parent / "programs" / f"{name}.txt").read_text(encoding="utf-8")


def ran(command: Sequence[str | Path] | str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The status, the output and the errors of a command that has ended. `options`: see `subprocess.run`."""
    return subprocess.run(
        command, capture_output=True, text=True, check=options.pop("check", False), **options
    )


def python(
    code: str, *arguments: str, without: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    """`ran` for a program of Python, for which the packages `without` are not installed."""
    blocked = f"import sys; sys.modules |= dict.fromkeys({[*without]})\n" if without else ""
    return ran([sys.executable, "-c", blocked + code, *arguments], **options)
