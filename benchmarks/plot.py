"""The figures of the benchmarks as one small picture: churn by size, and Kafka's test as a curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure
from benchmarks.purgatory_kafka import Achieved

_OWN: Final = ("compiled", "interpreted", "faithful")
_COLOURS: Final = {"compiled": "#b01030", "interpreted": "#e07020", "faithful": "#907050"}


def draw(figures: Sequence[Figure], achieved: Sequence[Achieved], path: Path) -> None:
    """Write SVG or PNG, by the suffix. ModuleNotFoundError where matplotlib is not installed."""
    import matplotlib  # deferred: an extra, and slow to import
    from matplotlib.figure import Figure as Picture

    # The same figures make the same file: no date, no random ids; letters stay letters.
    matplotlib.rcParams.update({"svg.hashsalt": "purgatorio", "svg.fonttype": "none", "font.size": 8})
    picture = Picture(figsize=(8, 4.6), layout="constrained")
    churn, curve = picture.subplots(1, 2)
    found = [
        figure
        for figure in figures
        if figure.id == "U2" and figure.title == "uniform" and figure.subject != "sched"
    ]
    for subject in dict.fromkeys(figure.subject for figure in found):
        points = sorted((figure.size, figure.ns) for figure in found if figure.subject == subject)
        churn.plot(*zip(*points, strict=True), label=subject, **_style(subject))
    churn.set(xscale="log", yscale="log", xlabel="timers pending", ylabel="CPU ns", title="cancel + add (U2)")
    churn.legend(fontsize=6, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    for p50_ms, p75_ms in dict.fromkeys((point.p50_ms, point.p75_ms) for point in achieved):
        for subject in dict.fromkeys(point.subject for point in achieved):
            mine = [p for p in achieved if (p.subject, p.p50_ms, p.p75_ms) == (subject, p50_ms, p75_ms)]
            asked = [point.asked_per_s for point in mine]
            reached = [point.achieved_per_s for point in mine]
            style = {**_style(subject), "linestyle": "-" if p50_ms < 100 else ":"}
            curve.plot(asked, reached, label=f"{subject}, {p50_ms}/{p75_ms} ms", **style)
    curve.set(
        xlabel="asked, operations a second", ylabel="achieved, operations a second", title="purgatory (P6)"
    )
    if achieved:
        curve.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    picture.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _style(subject: str) -> dict[str, object]:
    if subject in _OWN:
        return {"color": _COLOURS[subject], "linewidth": 2.0, "marker": "o", "markersize": 3}
    return {"linewidth": 0.9, "linestyle": "--" if subject.startswith("jvm") else "-"}
