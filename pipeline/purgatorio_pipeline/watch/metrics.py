"""The state of a watch as Prometheus text, for a scraper that reads files (the node exporter's textfile collector)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from purgatorio_pipeline.watch.state import WatchState
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.whole_file import write_whole


def metrics_text(state: WatchState) -> str:
    """Counters and gauges in the text exposition format 0.0.4. Labels: verdict, run, clause."""
    runs = list(state.all_runs())
    verdicts = Counter((str(run["verdict"]), bool(run.get("open"))) for run in runs)
    lines = [
        "# HELP purgatorio_runs Runs by verdict and whether they are still open.",
        "# TYPE purgatorio_runs gauge",
    ]
    for verdict in Verdict:
        for is_open in (False, True):
            count = verdicts[str(verdict), is_open]
            lines.append(f'purgatorio_runs{{verdict="{verdict}",open="{str(is_open).lower()}"}} {count}')
    lines += [
        "# HELP purgatorio_violations Operations, tasks, checks or readings that broke a clause, by run.",
        "# TYPE purgatorio_violations gauge",
    ]
    for run in runs:
        clauses = run["clauses"]
        assert isinstance(clauses, dict)
        for clause, result in clauses.items():
            if result["violations"]:
                lines.append(
                    f'purgatorio_violations{{run="{_escaped(str(run["run"]))}",clause="{clause}"}} '
                    f"{result['violations']}"
                )
    events = sum(int(str(run["events"])) for run in runs)
    lines += [
        "# HELP purgatorio_events_total Events read.",
        "# TYPE purgatorio_events_total counter",
        f"purgatorio_events_total {events}",
        "# HELP purgatorio_batch The last batch that was committed.",
        "# TYPE purgatorio_batch gauge",
        f"purgatorio_batch {state.batch}",
    ]
    return "\n".join(lines) + "\n"


def write_metrics(state: WatchState, place: Path) -> None:
    """Write it, whole or not at all."""
    write_whole(place, metrics_text(state))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
