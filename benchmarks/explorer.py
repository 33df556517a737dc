"""`python -m benchmarks explorer`: schedules a second on two-thread registration, beside frontrun in the same run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.report.provenance import machine
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.foreign.explored import explore_foreign
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS

_SCENARIO = "registration-against-event"
_TIMEOUT_S = 600
_ADAPTERS = Path(__file__).parent.parent / "examples" / "adapters"


@dataclass(frozen=True, slots=True)
class Rate:
    """How many schedules were run, by wall and by processor time."""

    subject: str
    dialect: str
    schedules: int
    seconds: float
    cpu_seconds: float

    @property
    def a_second(self) -> float:
        return self.schedules / self.seconds

    @property
    def a_cpu_second(self) -> float:
        """By the processor: what the wall would show on an idle machine."""
        return self.schedules / self.cpu_seconds


def measure(dialect: str, seconds: float) -> Rate:
    """Explore the scenario completely, again and again. What counts is a schedule that was run to its end, recorded
    and judged; none is cut short in this scenario, and one that was would not count.

    The judge remembers histories from one exploration to the next, so its cost is in the first only.
    """
    program = ScenarioProgram(SCENARIOS[_SCENARIO], dialect)
    schedules = 0
    start, start_cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        done = explore_dpor(program, Limits(violations=0))
        schedules += done.schedules - done.redundant - done.beyond
    return Rate(
        "purgatorio", dialect, schedules, time.perf_counter() - start, time.process_time() - start_cpu
    )


def measure_foreign(seconds: float) -> Rate:
    """The same program as foreign code, over `threading` (examples/adapters). Loading the modules does not count."""
    schedules, wall, cpu = 0, 0.0, 0.0
    while wall < seconds:
        done = explore_foreign(
            ["purgatorio"], "reference_adapter:Registration", Limits(), path=[str(_ADAPTERS)]
        ).exploration
        schedules += done.schedules - done.redundant - done.beyond
        wall += done.seconds
        cpu += done.cpu_seconds
    return Rate("as foreign", "pending-flag", schedules, wall, cpu)


def measure_frontrun(executions: int) -> Rate | None:
    """The same program under frontrun, in a process of its own; None where it is not installed."""
    if importlib.util.find_spec("frontrun") is None:
        return None
    peer = [sys.executable, "-m", "benchmarks.peer_frontrun", str(executions)]
    done = subprocess.run(
        [sys.executable, "-m", "frontrun.cli", *peer],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise click.ClickException(f"frontrun failed: {done.stderr.strip()[-300:]}")
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return Rate("frontrun", "pending-flag", told["executions"], told["seconds"], told["cpu_seconds"])


@click.command("explorer")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=3.0,
    show_default=True,
    help="For each dialect.",
)
@click.option("--executions", type=click.IntRange(1), default=200, show_default=True, help="Of the peer.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(seconds: float, executions: int, as_json: bool) -> None:
    """Schedules a second on two-thread registration, beside frontrun (PyPI) on the same code."""
    dialects = SCENARIOS[_SCENARIO].dialects
    with progress("exploring", len(dialects) + 2, "subjects", quiet=as_json) as going:
        ours: list[Rate] = []
        for dialect in dialects:
            going.tell(len(ours), f"exploring {dialect}")
            ours.append(measure(dialect, seconds))
        going.tell(len(ours), "exploring as foreign code")
        ours.append(measure_foreign(seconds))
        going.tell(len(ours), "exploring with frontrun")
        peer = measure_frontrun(executions)
    if as_json:
        click.echo(json.dumps({"machine": machine(), "results": [_result(rate, peer) for rate in ours]}))
        return
    for rate in (*ours, *([peer] if peer else [])):
        click.echo(
            f"{rate.subject:11} {rate.dialect:13} {rate.schedules:8,} schedules  {rate.a_second:10,.0f}/s"
            f"  {rate.a_cpu_second:10,.0f} per CPU second"
        )
    if peer is None:
        click.echo("frontrun is not installed: pip install frontrun")
    else:
        seam, foreign = (one.a_cpu_second / peer.a_cpu_second for one in (ours[0], ours[-1]))
        click.echo(
            f"per CPU second {seam:,.0f} times as many as frontrun; as foreign code {foreign:,.0f} times"
        )


def _result(rate: Rate, peer: Rate | None) -> dict[str, object]:
    ratio = {} if peer is None else {"frontrun": round(rate.a_cpu_second / peer.a_cpu_second, 1)}
    return {
        "bench": "explorer",
        "workload": _SCENARIO,
        "dialect": rate.dialect,
        "size": rate.schedules,
        "subject": rate.subject,
        "operation": "schedule",
        "ns": round(1e9 / rate.a_second, 1),
        "cpu_ns": round(1e9 / rate.a_cpu_second, 1),
        "ratio": ratio,
    }
