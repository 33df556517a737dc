"""The result of a correct check for each recorded run under `examples/traces`, for every test that checks them."""

from pathlib import Path
from typing import Final

TRACES: Final = Path(__file__).parents[2] / "examples" / "traces"

FIGURES: Final[dict[str, dict[str, int]]] = {
    "kafka-clean-1k": {},
    "kafka-clean-10k": {},
    "kafka-clean-cancelkey-10k": {},
    "kafka-clean-race-4k": {},
    "kafka-clean-racewatch-4k": {},
    "kafka-clean-tick10-wheel3-10k": {},
    "kafka-clean-pending-flag-4k": {},
    "kafka-buggy-trylock-give-up": {"O4": 1278},
    "kafka-buggy-no-recheck": {"O4": 1367},
    "kafka-buggy-nonatomic-force": {"O1": 47},
    "kafka-buggy-no-cancel": {"T4": 6759},
    "kafka-buggy-early-fire": {"T1": 1710, "T4": 8},
}
"""Run to clause to violations; a clause that is not there has none."""

EVENTS: Final[dict[str, int]] = {
    "kafka-clean-1k": 22_326,
    "kafka-clean-10k": 256_189,
    "kafka-clean-cancelkey-10k": 261_031,
    "kafka-clean-race-4k": 90_178,
    "kafka-clean-racewatch-4k": 63_058,
    "kafka-clean-tick10-wheel3-10k": 277_654,
    "kafka-clean-pending-flag-4k": 87_080,
    "kafka-buggy-trylock-give-up": 88_508,
    "kafka-buggy-no-recheck": 67_010,
    "kafka-buggy-nonatomic-force": 96_229,
    "kafka-buggy-no-cancel": 258_242,
    "kafka-buggy-early-fire": 284_177,
}
"""Run to events: a copy that lost lines would still give some of the figures above."""


def files() -> list[Path]:
    """Every recorded run in every form that the repository holds."""
    return sorted(path for path in TRACES.iterdir() if path.name.endswith((".parquet", ".jsonl", ".gz")))


def run_of(path: Path) -> str:
    """The run that a file holds: its name without the suffixes of its form."""
    return path.name.partition(".")[0]
