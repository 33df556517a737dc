"""The page `docs/measured/drawn-mutants.md`: how fast random programs find known bugs of two threads, over ten seeds.

PYTHONPATH=tests python -m docs.makers.drawn_seeds rows.jsonl 2

hunts two bugs at once. Each is hunted seed after seed for `BOUND_S` at most, until more than half of ten are on one
side of that bound: the median is, too. Rows are kept in the file, so it can be ended and called again; a second
argument of 0 only writes the page.
"""

import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from docs.makers.apart import apart
from mutants.kill_matrix.matrix import keep, kept_lines
from mutants.reference import MUTANTS
from purgatorio_stress.random_program.registry import scenario_named
from purgatorio_stress.random_program.search import search_drawn

PAGE: Final = Path(__file__).parents[1] / "measured" / "drawn-mutants.md"
BOUND_S: Final = 30.0
SEEDS: Final = 10
_ENOUGH: Final = SEEDS // 2 + 1

TWO: Final = tuple(one.number for one in MUTANTS.values() if scenario_named(one.scenario).threads == 2)
"""The known bugs that two threads show."""


class Row(msgspec.Struct, frozen=True):
    """One hunt; `clause`: empty where nothing was found in time."""

    number: int
    seed: int
    clause: str
    seconds: float


def hunted(number: int, kept: Path) -> None:
    """Hunt one bug until its median is decided."""
    rows = {row.seed: row for row in kept_rows(kept) if row.number == number}
    for seed in range(1, SEEDS + 1):
        if verdict(list(rows.values())):
            return
        if seed not in rows:
            clause, seconds = apart(_killed, number, seed) or ("P3", 0.0)
            rows[seed] = row = Row(number, seed, clause, round(seconds, 2))
            keep(kept, msgspec.json.encode(row).decode())


def _killed(number: int, seed: int) -> tuple[str, float]:
    """Clause and CPU seconds; in a process that may die of it."""
    mutant = MUTANTS[number]
    done = search_drawn(BOUND_S, seed, bug=mutant.bug, shrink=False)
    return "" if done.found is None else done.found.found.clause, done.cpu_seconds


def kept_rows(kept: Path) -> list[Row]:
    return [msgspec.json.decode(line, type=Row) for line in kept_lines(kept)]


def verdict(rows: Sequence[Row]) -> str:
    """`yes` or `no` where the median over ten seeds is decided, else nothing."""
    found = sum(bool(row.clause) for row in rows)
    return "yes" if found >= _ENOUGH else "no" if len(rows) - found >= _ENOUGH else ""


def seeds_page(rows: Sequence[Row]) -> str:
    by_number = {number: [row for row in rows if row.number == number] for number in TWO}
    asked = {number: of for number, of in by_number.items() if of}
    fast = sum(verdict(of) == "yes" for of in asked.values())
    lines = [
        "# Known bugs, and drawn programs",
        "",
        "Written by `PYTHONPATH=tests python -m docs.makers.drawn_seeds`. Each known bug that two threads show",
        "is hunted by drawn programs over all subjects, seed after seed,",
        f"for {BOUND_S:g} CPU seconds at most, until it is known whether the median over {SEEDS} seeds is below that.",
        "The programs know nothing of the bug. *median*: of the seeds that were tried; one that found nothing",
        "counts as the bound. A program counts only if the sound code passes it.",
        "",
        f"Of {len(TWO)} bugs {len(asked)} were hunted; of {fast} the median is below {BOUND_S:g} s.",
        "",
        f"| # | bug | seeds | found | median, s | below {BOUND_S:g} s |",
        "|---|---|---|---|---|---|",
    ]
    for number, of in asked.items():
        middle = statistics.median(row.seconds if row.clause else BOUND_S for row in of)
        found = sum(bool(row.clause) for row in of)
        cells = (number, MUTANTS[number].name, len(of), found, f"{middle:.1f}", verdict(of) or "not decided")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, ""])


def main(kept: Path, jobs: int) -> None:
    """Hunt the undecided mutants, and write the page."""
    if jobs:
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda number: hunted(number, kept), TWO))
    PAGE.write_text(seeds_page(kept_rows(kept)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
