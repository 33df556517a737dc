"""What a figure was measured on: the `machine` object of `purgatorio bench --json`."""

from __future__ import annotations

import os
import platform


def machine() -> dict[str, object]:
    """Interpreter, system and processors; nothing that names this very machine."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
