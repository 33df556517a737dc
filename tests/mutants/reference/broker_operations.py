"""Bugs of concrete delayed operations: of the broker's replicas, groups and share fetches."""

from typing import Final

from mutants.reference.mutant import Mutant, told

BROKER_MUTANTS: Final[dict[int, Mutant]] = {mutant.number: mutant for mutant in told("broker_operations")}
"""By number; instead of a scenario each has the test or the day in `tests/wire` that finds it."""
