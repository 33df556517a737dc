"""The option `--mutant FILE[:NAME]`, which puts a known bug into the code under test."""

from __future__ import annotations

from typing import Any

from purgatorio_pipeline.command.failed import wrong_usage
from purgatorio_pipeline.command.options import option
from purgatorio_stress.mutant.own_patches import BadPatches, bug_of
from purgatorio_stress.mutant.patch import Bug


def mutant_option() -> Any:
    said = "Patch the code with a bug before the run. FILE has patches; NAME selects one patch."
    return option(said, metavar="FILE[:NAME]")


def bug_asked(text: str | None) -> Bug:
    """The bug that the option names, or none without the option. A usage error if the file has no bug."""
    with wrong_usage(BadPatches):
        return bug_of(text)
