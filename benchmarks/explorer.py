"""`python -m benchmarks explorer`: schedules a second on two-thread registration."""

from __future__ import annotations

import json
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


@click.command("explorer")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=3.0,
    show_default=True,
    help="For each dialect.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(seconds: float, as_json: bool) -> None:
    """Schedules a second on two-thread registration, by dialect, and of the same code as foreign code."""
    dialects = SCENARIOS[_SCENARIO].dialects
    with progress("exploring", len(dialects) + 1, "subjects", quiet=as_json) as going:
        ours: list[Rate] = []
        for dialect in dialects:
            going.tell(len(ours), f"exploring {dialect}")
            ours.append(measure(dialect, seconds))
        going.tell(len(ours), "exploring as foreign code")
        ours.append(measure_foreign(seconds))
    if as_json:
        click.echo(json.dumps({"machine": machine(), "results": [_result(rate) for rate in ours]}))
        return
    for rate in ours:
        click.echo(
            f"{rate.subject:11} {rate.dialect:13} {rate.schedules:8,} schedules  {rate.a_second:10,.0f}/s"
            f"  {rate.a_cpu_second:10,.0f} per CPU second"
        )


def _result(rate: Rate) -> dict[str, object]:
    named = {"bench": "explorer", "workload": _SCENARIO, "dialect": rate.dialect, "operation": "schedule"}
    figures = {"ns": round(1e9 / rate.a_second, 1), "cpu_ns": round(1e9 / rate.a_cpu_second, 1)}
    return {**named, "subject": rate.subject, "size": rate.schedules, **figures}
