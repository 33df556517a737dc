"""Checks the contracts of the reference's arithmetic with CrossHair, in a separate process.

The specification never imports the code that it judges. So this module reads `purgatorio.arithmetic` as a file. The
negative controls are copies of this file, each with one known bug, which CrossHair must find. "Confirmed" means that
CrossHair searched every path within the bounds of the `pre:` lines. "Not confirmed" is UNKNOWN.
"""

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from purgatorio_spec.verdict import Verdict

PACKAGE, MODULE = "purgatorio", "arithmetic"


@dataclass(frozen=True, slots=True)
class Contract:
    """A function, the name of a bug, and the bug as a pair of an old and a new text."""

    function: str
    twin: int | str
    right: str
    wrong: str


CONTRACTS = (
    Contract("floor_to_tick", "rounded up", "return time - time % tick", "return time - time % tick + tick"),
    Contract("virtual_id", "rounded up", "return deadline // tick", "return -(-deadline // tick)"),
    Contract("bucket_index", "one bucket too many",
             "return virtual_id(deadline, tick) % size", "return virtual_id(deadline, tick) % (size + 1)"),
    Contract("bucket_expiration", "end of the tick",
             "return virtual_id(deadline, tick) * tick", "return (virtual_id(deadline, tick) + 1) * tick"),
    Contract("is_expired", 65, "return deadline < clock + tick", "return deadline <= clock + tick"),
    Contract("is_within_level", 66, "return deadline < clock + interval", "return deadline <= clock + interval"),
    Contract("level_of", "levels grow by addition",
             "level, level_tick = level + 1, level_tick * size", "level, level_tick = level + 1, level_tick + size"),
    Contract("rounds_left", 72, "return (deadline_tick - cursor_tick - 1) // size", "return deadline_tick // size"),
    Contract("is_due", "strictly later", "return expiration <= now", "return expiration < now"),
    Contract("wait_time", 80, "return max(expiration - now, 0)", "return max(expiration - now, 0) // 2 * 2"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Searched:
    verdict: Verdict
    confirmed: int
    open: int
    counterexample: str
    seconds: float


def kernel_file() -> Path:
    package = PathFinder.find_spec(PACKAGE)
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        candidate = Path(folder) / f"{MODULE}.py"
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{PACKAGE}.{MODULE} is not installed")


def search_contract(contract: Contract, budget_s: float) -> Searched:
    """Search the function as it is; at most `budget_s` seconds of CPU for each condition."""
    return search_source(kernel_file().read_text(), contract.function, budget_s)


def search_twin(contract: Contract, budget_s: float) -> Searched:
    """Search a copy with the bug. Raises ValueError if the module does not contain the old text."""
    source = kernel_file().read_text()
    if source.count(contract.right) != 1:
        raise ValueError(f"{MODULE}.py does not hold exactly one {contract.right!r}: update the seeded bug")
    return search_source(source.replace(contract.right, contract.wrong), contract.function, budget_s)


def search_source(source: str, function: str, budget_s: float) -> Searched:
    """Search the contracts of a function of this text, a copy of the module, as `search_contract` does."""
    with tempfile.TemporaryDirectory(prefix="purgatorio-contract-") as folder:
        copy = "contract_copy"
        (Path(folder) / f"{copy}.py").write_text(source)
        command = [
            sys.executable, "-m", "crosshair", "check", f"{copy}.{function}", "--analysis_kind=PEP316", "--report_all",
            f"--per_condition_timeout={budget_s:g}",
        ]  # fmt: skip
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=60 + 20 * budget_s, check=False
            )
        except subprocess.TimeoutExpired:
            return Searched(Verdict.UNKNOWN, 0, 0, "", time.perf_counter() - start)
        return read_report(done.stdout, done.stderr, time.perf_counter() - start)


def read_report(stdout: str, stderr: str, seconds: float) -> Searched:
    """Judge CrossHair's output. An error is a counterexample. No output is not PASS."""
    errors = re.findall(r": error: (.*)", stdout)
    confirmed = len(re.findall(r": info: Confirmed over all paths", stdout))
    unconfirmed = len(re.findall(r": info: ", stdout)) - confirmed
    if errors:
        return Searched(Verdict.VIOLATED, confirmed, unconfirmed, errors[0], seconds)
    if confirmed and not unconfirmed:
        return Searched(Verdict.PASS, confirmed, 0, "", seconds)
    return Searched(Verdict.UNKNOWN, confirmed, unconfirmed, stderr.strip()[-200:], seconds)
