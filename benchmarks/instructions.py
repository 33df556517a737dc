"""Instructions a request, counted by valgrind: repeatable to a few in a thousand, whatever else the machine does.

A child process plays U1, U2 and U4 on 500 timers (as many adds as cancels), once and three times over, under
`valgrind --tool=cachegrind` without the simulation of caches; the difference is what two plays executed. A child
takes some five seconds, nearly all of it the start of the interpreter.
"""

import gc
import os
import re
import shutil
import subprocess
import sys
from typing import Final

_SIZE: Final = 500
_CHURNS: Final = 2_500
_TIMEOUT_S: Final = 300
_TOTAL: Final = re.compile(r"I\s+refs:\s+([\d,]+)")


def no_valgrind() -> str | None:
    """Why instructions cannot be counted here, or None."""
    return None if shutil.which("valgrind") else "there is no valgrind"


def count_instructions(name: str) -> float:
    """Instructions of a cancel and an add, for a candidate of the registry by name. RuntimeError where it fails."""
    return (_count(name, 3) - _count(name, 1)) / (2 * (_SIZE + _CHURNS))


def _count(name: str, plays: int) -> int:
    child = [sys.executable, "-m", "benchmarks.instructions", name, str(plays)]
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *child],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        # Addresses and hashes decide how dictionaries collide, and a first import compiles: the same in every run.
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    found = _TOTAL.search(done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"valgrind failed for {name}: {done.stderr.strip()[-300:]}")
    return int(found[1].replace(",", ""))


def _play(name: str, plays: int) -> None:
    from benchmarks.grid import GridWorkload  # in the child only: imports cost instructions too
    from benchmarks.registry import ENTRIES
    from benchmarks.workload import Stopwatch

    entry = next(entry for entry in ENTRIES if entry.name == name)
    workload = GridWorkload("uniform", _SIZE, _CHURNS, least_ops=1)
    # As in the timed rounds: what was there before is none of the collector's business.
    gc.freeze()
    for _ in range(plays):
        workload.play(entry.make, Stopwatch())


if __name__ == "__main__":
    _play(sys.argv[1], int(sys.argv[2]))
