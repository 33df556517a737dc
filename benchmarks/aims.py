"""The aims of the wheel, and the figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.figures import Figure
from benchmarks.observe import Observation
from benchmarks.tables import Table

_RATIOS: Final = (
    ("compiled", "K1", "heapq", 2.5),
    ("compiled", "K1", "heapq-int", 1.8),
    ("compiled", "K1", "asyncio", 6.0),
    ("compiled", "K2", "heapq", 6.0),
    ("compiled", "K2", "heapq-int", 1.5),
    ("compiled", "K2", "asyncio", 12.0),
    ("interpreted", "K1", "heapq", 1 / 1.8),
    ("interpreted", "K2", "heapq", 3.0),
    ("interpreted", "K2", "asyncio", 5.0),
    ("compiled", "P1", "interpreted", 2.0),
    ("compiled", "P2", "interpreted", 2.0),
    ("compiled", "P3", "interpreted", 2.0),
    ("compiled", "P4", "interpreted", 2.0),
)
"""Subject, workload, peer, and the quotient peer / subject that was aimed at."""

_LOOKS: Final = (
    ("compiled", "K2", "worst_tick_apart_from_collector_ms", 1.0, "ms at most"),
    ("compiled", "bytes", "bytes_per_timer", 80.0, "bytes at most"),
)


def aims_table(figures: Sequence[Figure], observed: Sequence[Observation]) -> Table:
    """A row an aim; those whose subject is not here are left out, and said to be so by the page."""
    found = {(figure.subject, figure.id): figure for figure in figures}
    rows: list[tuple[str, ...]] = []

    def row(what: str, aim: str, reached: str, met: bool) -> None:
        rows.append((what, aim, reached, "met" if met else "not met"))

    for subject, which, peer, aim in _RATIOS:
        figure = found.get((subject, which))
        ratio = None if figure is None else figure.ratios.get(peer)
        if ratio is None:
            continue
        reached = f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"
        row(f"{which}: {subject} against {peer}", f"{aim:.2g}x", reached, ratio.median >= aim)
    for subject, which, name, most, unit in _LOOKS:
        for seen in observed:
            if (seen.subject, seen.workload) == (subject, which) and name in seen.values:
                value = seen.values[name]
                what = f"{which}: {subject}, {name.replace('_', ' ')}"
                row(what, f"{most:g} {unit}", f"{value:.3g}", value <= most)
    return Table("Aims", ("aim", "wanted", "reached", ""), rows)
