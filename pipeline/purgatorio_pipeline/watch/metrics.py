"""The state of a watch as Prometheus text, for a scraper that reads files (the node exporter's textfile collector)."""

from __future__ import annotations

from collections import Counter

from purgatorio_pipeline.watch.state import WatchState
from purgatorio_spec.verdict import Verdict


def metrics_text(state: WatchState) -> str:
    """Counters and gauges in the text exposition format 0.0.4. Labels: verdict, run, clause."""
    runs = state.printed().runs
    verdicts = Counter((run.verdict, run.open) for run in runs)
    lines = [
        "# HELP purgatorio_runs Runs by verdict and whether they are still open.",
        "# TYPE purgatorio_runs gauge",
    ]
    for verdict in Verdict:
        for is_open in (False, True):
            count = verdicts[verdict, is_open]
            lines.append(f'purgatorio_runs{{verdict="{verdict}",open="{str(is_open).lower()}"}} {count}')
    lines += [
        "# HELP purgatorio_violations Operations, tasks, checks or readings that broke a clause, by run.",
        "# TYPE purgatorio_violations gauge",
    ]
    for run in runs:
        for clause, result in run.clauses.items():
            if result.violations:
                named = f'run="{_escaped(run.run)}",clause="{clause}"'
                lines.append(f"purgatorio_violations{{{named}}} {result.violations}")
    events = sum(run.events for run in runs)
    lines += [
        "# HELP purgatorio_events_total Events read.",
        "# TYPE purgatorio_events_total counter",
        f"purgatorio_events_total {events}",
        "# HELP purgatorio_batch The last batch that was committed.",
        "# TYPE purgatorio_batch gauge",
        f"purgatorio_batch {state.batch}",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
