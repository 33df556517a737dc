"""Where a report comes from: when it was made, by which version and command, on which machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def tool_version() -> str:
    """The version of purgatorio that is installed; `0` where it runs from a folder that was never installed."""
    try:
        return version("purgatorio")
    except PackageNotFoundError:
        return "0"


def machine() -> dict[str, object]:
    """Interpreter, system and processors: what `--json` says of the machine. Nothing that names this very one."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


@dataclass(frozen=True, slots=True)
class Provenance:
    """Four texts; `made` is in UTC, to the second. The seeds of driven runs stand beside the runs."""

    made: str
    version: str
    command: str
    machine: str

    def lines(self) -> Iterator[tuple[str, str]]:
        """Name and text of each."""
        yield "made", self.made
        yield "version", f"purgatorio {self.version}"
        yield "command", self.command
        yield "machine", self.machine


def provenance_here() -> Provenance:
    """Of this process, now."""
    program = Path(sys.argv[0]).name.removesuffix(".py")
    here = machine()
    return Provenance(
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        version=tool_version(),
        command=shlex.join([program, *sys.argv[1:]]),
        machine=f"{here['system']}, {here['processors']} processors, Python {here['python']}",
    )
