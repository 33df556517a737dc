"""The executable specification of timers and purgatories: trace format, clauses, verdicts, models, proofs.

    from purgatorio_spec import check_files, Verdict
    assert check_files([Path("run.jsonl")]).verdict is Verdict.PASS

This package never imports `purgatorio`, because an oracle must not share code with the code that it judges. The names
that you can import from `purgatorio_spec` itself are public. Names in its submodules may change.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purgatorio_spec.check import check_files
    from purgatorio_spec.clause.registry import CLAUSES
    from purgatorio_spec.judge.result import CheckResult, RunResult
    from purgatorio_spec.profile import PROFILES
    from purgatorio_spec.verdict import Verdict, Violation

__all__ = ["CLAUSES", "PROFILES", "CheckResult", "RunResult", "Verdict", "Violation", "check_files"]


def __getattr__(name: str) -> object:
    """Imports a name at its first use, so that a program that only writes traces does not import the judges."""
    places = {
        "CLAUSES": "clause.registry",
        "PROFILES": "profile",
        "CheckResult": "judge.result",
        "RunResult": "judge.result",
        "Verdict": "verdict",
        "Violation": "verdict",
        "check_files": "check",
    }
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{places[name]}"), name)
