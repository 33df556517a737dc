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
    """The installed version of purgatorio. `0` if it runs from a folder without an installation."""
    try:
        return version("purgatorio")
    except PackageNotFoundError:
        return "0"


def machine() -> dict[str, object]:
    """The interpreter, the system and the processors, for `--json`. Nothing identifies the machine."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def provenance_here() -> dict[str, str]:
    """The provenance of a report by this process, with the time to the second. The runs have their own seeds."""
    program = Path(sys.argv[0]).name.removesuffix(".py")
    here = machine()
    return {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "version": f"purgatorio {tool_version()}",
        "command": shlex.join([program, *sys.argv[1:]]),
        "machine": f"{here['system']}, {here['processors']} processors, Python {here['python']}",
    }


def docs_here() -> str:
    """The address of the pages of this release. "" for a checkout, which has no address."""
    try:
        urls = metadata("purgatorio").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(str(url).split(", ", 1) for url in urls)
    return named.get("Documentation", "").replace("/tree/", "/blob/")
