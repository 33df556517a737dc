"""The command `purgatorio campaign`: runs many explorer and stress jobs, each in its own process."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from purgatorio_pipeline.campaign.job import Job, NoJob, plan
from purgatorio_pipeline.campaign.outcome import JobOutcome, causes
from purgatorio_pipeline.command.bug import bug_asked, mutant_option
from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.options import argument, flag, folder, json_flag, number, option, taking
from purgatorio_pipeline.command.progress import progress
from purgatorio_pipeline.documents import encoded
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.verdict import EXIT_STATUS
from purgatorio_stress.explorer.strategy import STRATEGIES
from purgatorio_stress.mutant.own_patches import file_and_name
from purgatorio_stress.scenario.registry import SCENARIOS, dialects_named

EPILOG = """
\b
  purgatorio campaign two-events --out soak --stress-rounds 20000
  purgatorio campaign --out hunt --mutant my_bug.py --first

Each job is a process with a time limit. A job that crashes or hangs is UNKNOWN. To resume an interrupted campaign, run
the command again with the same --out. Jobs that have a result of the same code are not repeated.

Exit status: 0 pass, 1 violated, 2 wrong usage, 3 unknown (samples, failures, jobs left).
"""


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    scenarios: tuple[str, ...] = argument(nargs=-1, metavar="[SCENARIO[/DIALECT]]...")
    out: Path = folder("Folder for verdicts and traces.", required=True)
    strategies: tuple[str, ...] = option(
        "Strategy of the explorer jobs. Default: random. May be repeated.",
        named="--strategy", multiple=True, type=click.Choice([*STRATEGIES]),
    )  # fmt: skip
    seeds: str = option(
        "Range of seeds, FIRST-LAST, for `pct`, `random` and stress jobs.", default="0-9", show_default=True
    )
    schedules: int = number("Largest number of schedules in an explorer job.", 1000, least=1)
    preemptions: int = number(
        "Largest number of preemptions in a schedule, for `bounded`.", 2, least=0, most=10
    )
    stress_rounds: int = option(
        "Also run stress jobs, each with this number of rounds.", type=click.IntRange(0), default=0
    )
    mutant: str | None = mutant_option()
    limit_s: float = number("Time limit of a job, in seconds.", 300.0, named="--limit", least=1)
    budget: int | None = number("End after this number of schedules and rounds in total.", least=1)
    minutes: float | None = option("End after this number of minutes.", type=click.FloatRange(min=0))
    first: bool = flag("End at the first violation.")
    workers: int | None = number(
        "Number of processes at a time. Default: the number of cores.", named="--jobs", least=1
    )
    as_json: bool = json_flag()


@taking(CampaignOptions, epilog=EPILOG)
def command(asked: CampaignOptions) -> None:
    """Run many jobs of `purgatorio explore` and `purgatorio stress`.

    A job runs one scenario with one strategy and one seed.

    \b
      purgatorio campaign --out nightly --seeds 0-99 --strategy pct
    """
    from purgatorio_pipeline.campaign.run import KIND, RunLimits, Runner, run_campaign
    from purgatorio_pipeline.incremental.identity import fingerprint_of
    from purgatorio_pipeline.lake import Lake

    jobs = _jobs(asked)
    runner = Runner(asked.out.resolve(), asked.limit_s, code=fingerprint_of(_code(asked.mutant)))
    done = sum(runner.done(job) is not None for job in jobs)
    with progress("running the campaign", len(jobs), "jobs", quiet=asked.as_json) as going:
        going.tell(done)

        def tell(outcome: JobOutcome) -> None:
            nonlocal done
            done += 1
            going.tell(done)
            if (outcome.broken or outcome.failure) and not asked.as_json:
                with going.aside():
                    click.echo(visible(_line(outcome), TEXT_LIMIT), err=True)

        with Lake(asked.out).owned(KIND):
            budget, workers = (
                RunLimits(asked.budget, asked.minutes, asked.first),
                asked.workers or os.cpu_count(),
            )
            campaign = run_campaign(jobs, runner, budget=budget, tell=tell, workers=workers or 1)
    if asked.as_json:
        click.echo(encoded(campaign.as_json()))
    else:
        for one, count in causes(campaign.outcomes):
            click.echo(f"{one.clause} {one.scenario}, {counted(count, 'time')}: {one.seen}\n  {one.repeat}")
        runs = sum(one.runs for one in campaign.outcomes)
        click.echo(
            f"{campaign.verdict}: {len(campaign.outcomes):,} jobs ({campaign.resumed:,} done before), "
            f"{runs:,} schedules and rounds, {sum(bool(one.failure) for one in campaign.outcomes):,} failed"
            + (f"; {campaign.left:,} left: {campaign.why}" if campaign.left else "")
        )
        click.echo(f"rows and traces: {asked.out}; one page: purgatorio report {asked.out}")
    sys.exit(EXIT_STATUS[campaign.verdict])


def _code(mutant: str | None) -> list[Traversable]:
    """The code that determines the results: of the reference, of the explorer, and of the mutant with its package."""
    code = [files(package) for package in ("purgatorio", "purgatorio_spec", "purgatorio_stress")]
    if mutant:
        path, _ = file_and_name(mutant)
        code.append(path.parent if (path.parent / "__init__.py").is_file() else path)
    return code


def _line(outcome: JobOutcome) -> str:
    job = outcome.job
    what = outcome.failure or ", ".join(f"{one.clause}: {one.seen}" for one in outcome.broken)
    return f"{outcome.verdict} {job.kind} {job.scenario} {job.strategy} seed {job.seed}: {what}"


def _jobs(asked: CampaignOptions) -> list[Job]:
    bug, seeds = bug_asked(asked.mutant), _range(asked.seeds)
    with wrong_usage(NoJob, KeyError):
        names = asked.scenarios or ((bug.scenario,) if bug.scenario else tuple(SCENARIOS))
        pairs = [pair for name in names for pair in dialects_named(name)]
        return plan(
            [f"{name}/{dialect}" for name, dialect in pairs], asked.strategies or ("random",), seeds, asked.schedules,
            stress_rounds=asked.stress_rounds, mutant=bug.name, preemptions=asked.preemptions,
        )  # fmt: skip


def _range(text: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise click.UsageError(f"--seeds {text!r}: write FIRST-LAST, such as 0-99")
    return range(int(first), int(last if dash else first) + 1)
