"""The figures of `python -m benchmarks timer` as tables, the same for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.figures import Figure
from benchmarks.observe import Observation
from benchmarks.suite import IDS
from benchmarks.tables import Table, look, short, span
from benchmarks.timer_bench import TimerBench

OWN_ORDER: Final[tuple[str, ...]] = ("compiled", "interpreted", "faithful")
_VARIANTS_A_TABLE: Final = 4


def tables(bench: TimerBench) -> list[Table]:
    """One table for a workload of one size, else one a workload and operation with a column a size."""
    made: list[Table] = []
    for which in IDS:
        of_id = [figure for figure in bench.figures if figure.id == which]
        for operation in dict.fromkeys(figure.operation for figure in of_id):
            found = [figure for figure in of_id if figure.operation == operation]
            variants = list(dict.fromkeys((figure.title, figure.size) for figure in found))
            if len(variants) == 1:
                made.append(single(which, operation, found))
            for first in range(0, len(variants) if len(variants) > 1 else 0, _VARIANTS_A_TABLE):
                made.append(_matrix(which, operation, found, variants[first : first + _VARIANTS_A_TABLE]))
    return made + _observed(bench.observed)


def best_own(figures: Sequence[Figure]) -> str | None:
    """Our subject that the others are set against: the compiled wheel, or the next best that took part."""
    there = {figure.subject for figure in figures if figure.ours}
    return next((name for name in OWN_ORDER if name in there), None)


def single(which: str, operation: str, figures: list[Figure]) -> Table:
    """One workload of one size: the fastest first, with the quotients by our wheels."""
    by_subject = {figure.subject: figure for figure in figures}
    own = [name for name in OWN_ORDER[:2] if name in by_subject] or [
        name for name in OWN_ORDER if name in by_subject
    ]
    rows: list[tuple[str, ...]] = []
    for figure in sorted(figures, key=lambda figure: figure.ns):
        ratios = [_ratio(by_subject[name], figure.subject) for name in own]
        spread = span(figure.ns_low, figure.ns_high)
        rows.append((figure.subject, figure.build, f"{figure.ns:,.0f}", spread, *ratios))
    head = ("candidate", "build", "ns", "least-most", *(f"x {name}" for name in own))
    title = f"{which} {_titled(figures[0], operation)}, {short(figures[0].size)}"
    return Table(title, head, rows)


def _titled(figure: Figure, operation: str) -> str:
    return f"{figure.title}, {operation}"


def _matrix(which: str, operation: str, figures: list[Figure], variants: list[tuple[str, int]]) -> Table:
    cells = {(figure.subject, figure.title, figure.size): figure for figure in figures}
    own = best_own(figures)
    rows: list[tuple[str, ...]] = []
    for subject in dict.fromkeys(figure.subject for figure in figures):
        texts: list[str] = []
        for variant in variants:
            figure = cells.get((subject, *variant))
            base = cells.get((own, *variant)) if own is not None else None
            ratio = "" if base is None else _ratio(base, subject)
            texts.append("-" if figure is None else f"{figure.ns:,.0f}" + (f" ({ratio})" if ratio else ""))
        rows.append((subject, *texts))
    titles = {title for title, _ in variants}
    head = [short(size) if len(titles) == 1 else f"{title} {short(size)}" for title, size in variants]
    titled = f" {titles.pop()}" if len(titles) == 1 else ""
    note = f"ns an operation (times that of {own})" if own is not None else "ns an operation"
    return Table(f"{which}{titled}, {operation}", ("candidate", *head), rows, note)


def _ratio(subject: Figure, peer: str) -> str:
    if peer == subject.subject:
        return "1"
    ratio = subject.ratios.get(peer)
    return "" if ratio is None else f"{ratio.median:.2f}" if ratio.median < 10 else f"{ratio.median:.0f}"


_LOOKS: Final = (
    ("X4", ("K1", "K2", "U3"), ("tick_p50_us", "tick_p999_us", "worst_tick_ms",
                                "worst_tick_apart_from_collector_ms", "most_held")),
    ("X5", ("X5",), ("collector_ns_per_timer", "worst_collection_ms", "collections")),
    ("X1", ("X1",), ("wakes_per_timer",)),
    ("U1", ("bytes",), ("bytes_per_timer",)),
)  # fmt: skip
_HEADS: Final = {
    "tick_p50_us": "p50 us",
    "tick_p999_us": "p99.9 us",
    "worst_tick_ms": "worst ms",
    "worst_tick_apart_from_collector_ms": "w/o gc ms",
    "most_held": "held",
    "collector_ns_per_timer": "gc ns a timer",
    "worst_collection_ms": "worst pause ms",
    "collections": "collections",
    "wakes_per_timer": "wake-ups a timer",
    "bytes_per_timer": "bytes a timer",
}


def _observed(seen: Sequence[Observation]) -> list[Table]:
    made: list[Table] = []
    for which, workloads, names in _LOOKS:
        for variant in dict.fromkeys((one.workload, one.size) for one in seen if one.workload in workloads):
            rows: list[tuple[str, ...]] = []
            for one in seen:
                if (one.workload, one.size) == variant and names[0] in one.values:
                    rows.append((one.subject, *(look(one.values[name]) for name in names)))
            title = f"{which} {'' if variant[0] == which else variant[0] + ' '}{short(variant[1])}"
            if rows:
                made.append(Table(title, ("candidate", *(_HEADS[name] for name in names)), rows))
    return made
