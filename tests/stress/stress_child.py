"""A stress run in a process of its own, for tests that break it off. Not a test.

    python stress_child.py FOLDER [LIMIT]

Races one scenario, every batch recorded, prints `batch` after each and waits for a line on its input. LIMIT: no file
may grow beyond so many bytes, as on a disk that is full.
"""

import resource
import signal
import sys
from pathlib import Path

from purgatorio_pipeline.documents import encoded
from purgatorio_stress.harness.campaign import StressPlan, run_stress


def tell(name: str, rounds: int, share: float) -> None:
    print("batch", flush=True)
    sys.stdin.readline()


def main() -> None:
    # A suite that a shell started in the background has Ctrl-C ignored, and its children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    plan = StressPlan(
        [("two-events", "pending-flag")], rounds=10_000, record_every=1, traces=folder, yields=False
    )
    print(encoded(run_stress(plan, tell=tell).printed()).decode(), flush=True)


if __name__ == "__main__":
    main()
