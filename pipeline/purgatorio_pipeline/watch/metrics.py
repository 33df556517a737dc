"""The state of a watch as Prometheus text, for a scraper that reads files (the node exporter's textfile collector)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from purgatorio_pipeline.watch.state import WatchState
from purgatorio_spec.verdict import Verdict


def metrics_text(state: WatchState) -> str:
    """Counters and gauges in the text exposition format 0.0.4. Labels: verdict, run, clause."""
    runs = state.printed().runs
    verdicts = Counter((run.verdict, run.open) for run in runs)
    metrics: list[tuple[str, str, Mapping[str, int]]] = [
        ("runs gauge", "Runs by verdict and whether they are still open.", {
            f'{{verdict="{verdict}",open="{str(is_open).lower()}"}}': verdicts[verdict, is_open]
            for verdict in Verdict for is_open in (False, True)
        }),
        ("violations gauge", "Operations, tasks, checks or readings that broke a clause, by run.", {
            f'{{run="{_escaped(run.run)}",clause="{clause}"}}': result.violations
            for run in runs for clause, result in run.clauses.items() if result.violations
        }),
        ("events_total counter", "Events read.", {"": sum(run.events for run in runs)}),
        ("batch gauge", "The last batch that was committed.", {"": state.batch}),
    ]  # fmt: skip
    lines: list[str] = []
    for kind, what, values in metrics:
        name = f"purgatorio_{kind.split()[0]}"
        lines += [f"# HELP {name} {what}", f"# TYPE purgatorio_{kind}"]
        lines += [f"{name}{labels} {value}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
