"""How much of a campaign is left: the rows of its jobs do not say it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson

from purgatorio_pipeline.whole_file import write_whole

STATE: Final = "campaign.json"


def write_state(out: Path, left: int, why: str) -> None:
    """Say how many jobs are left, and why; in the campaign's folder."""
    write_whole(out / STATE, orjson.dumps({"left": left, "why": why}).decode())


def read_state(out: Path) -> str:
    """In words what is left of the campaign in this folder; nothing if nothing is."""
    try:
        found = orjson.loads((out / STATE).read_bytes())
        left, why = int(found["left"]), str(found["why"])
    except FileNotFoundError:
        return f"{out} does not say whether its campaign came to its end"
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return f"{out / STATE} cannot be read: whether its campaign came to its end is not known"
    return f"{left:,} jobs of the campaign in {out} are left: {why}" if left else ""
