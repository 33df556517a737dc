"""The origin of a report: its time, version and command, and the machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata, version
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


def provenance_here() -> dict[str, str]:
    """Of this process, now, by name; the time to the second. The seeds of driven runs are next to the runs."""
    program = Path(sys.argv[0]).name.removesuffix(".py")
    here = machine()
    return {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "version": f"purgatorio {tool_version()}",
        "command": shlex.join([program, *sys.argv[1:]]),
        "machine": f"{here['system']}, {here['processors']} processors, Python {here['python']}",
    }


def docs_here() -> str:
    """Where the pages of this release are; nothing for a checkout, which has no address."""
    try:
        urls = metadata("purgatorio").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(str(url).split(", ", 1) for url in urls)
    return named.get("Documentation", "").replace("/tree/", "/blob/")
