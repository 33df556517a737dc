"""What a lake keeps, beside its gold tables, of the files that it knows: headers, counterexamples and gauges.

Gold has the verdicts; this is what the check's own report drew. It is shown only where it fits what gold says: a check
that was killed on its way to gold leaves the one newer than the other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from purgatorio_pipeline.incremental.check import load_batch
from purgatorio_pipeline.incremental.kept import Kept, assemble
from purgatorio_pipeline.incremental.ledger import load_ledger
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.selection import causes


def with_known(root: Path, result: CheckResult, late: list[Lateness]) -> Judged:
    """The check that the gold tables of the lake at `root` tell of, with what is kept to show of it. OSError."""
    known = assemble(_kept(Lake(root)))
    headers = {run.file: run for run in known.result.runs}
    runs = tuple(
        replace(run, header=headers[run.file].header)
        if run.file in headers and replace(headers[run.file], header=None) == run
        else run
        for run in result.runs
    )
    whole = replace(result, runs=runs)
    wanted = {key: violation for key, _, _, violation in causes(whole)}
    examples = {key: one for key, one in known.examples.items() if wanted.get(key) == one.violation}
    names = {run.run for run in runs}
    return Judged(whole, examples, late, [one for one in known.gauges if one.run in names])


def _kept(lake: Lake) -> list[Kept]:
    files = load_ledger(lake).files.values()
    batches = {batch: load_batch(lake, batch) for batch in {one.batch for one in files}}
    return [batches[one.batch][one.key] for one in files if one.key < len(batches[one.batch])]
