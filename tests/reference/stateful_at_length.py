"""Every stateful test at length: `python tests/reference/stateful_at_length.py --examples 20000 --seed 1`.

The examples are shared out among the searches; each prints a line when it is done, and what it found. Ends with status
1 where something was found. `--only` names searches; `--list` shows them.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from hypothesis import settings

from purgatorio_stress.stateful.profiles import SLOW
from purgatorio_stress.stateful.purgatory_machine import LockedMachine, PendingFlagMachine
from purgatorio_stress.stateful.registry import SEARCHES
from purgatorio_stress.stateful.search import Search, of_machine

JUDGED: Final = {
    search.name: search
    for search in (
        of_machine("judged-pending-flag", "as above, and the clauses judge every trace", PendingFlagMachine),
        of_machine("judged-locked", "as above, and the clauses judge every trace", LockedMachine),
    )
}
ALL: Final = {**SEARCHES, **JUDGED}
SHARES: Final = {
    "system-timer": 4,
    "aligned-programs": 4,
    "reaper": 1,
    "action-queue": 1,
    **dict.fromkeys(JUDGED, 1),
}
"""Parts of the examples; 2 where nothing is said."""


def main(arguments: list[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, default=1, help="another one, other examples")
    parser.add_argument("--only", nargs="*", choices=[*ALL], default=[*ALL], help="these searches")
    parser.add_argument("--list", action="store_true", help="name the searches")
    told = parser.parse_args(arguments)
    if told.list:
        print("\n".join(f"{search.name:<24}{search.about}" for search in ALL.values()))
        return 0
    whole = sum(SHARES.get(name, 2) for name in ALL)
    found = [_run(ALL[name], told.examples * SHARES.get(name, 2) // whole, told.seed) for name in told.only]
    return int(any(found))


def _run(search: Search, examples: int, of_seed: int) -> bool:
    start_s = time.process_time()
    profile = settings(
        database=None,
        deadline=None,
        max_examples=examples,
        print_blob=False,
        stateful_step_count=40,
        suppress_health_check=SLOW,
    )
    found = search.run(profile, of_seed)
    spent_s = time.process_time() - start_s
    said = "nothing found" if found is None else f"{found.clause} after {found.examples}: {found.said}"
    print(f"{search.name:<24}{examples:>7,} examples {spent_s:>7.1f} s  {said}", flush=True)
    return found is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
