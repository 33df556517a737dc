"""Which path finds which of the reference's mutants behind its public API; writes docs/measured/which-path.md.

    python tests/which_path.py                       # an hour of a processor
    python tests/which_path.py 11 19 --path gates    # only these; the other cells stay

Nothing is asked but what a stranger has: the example of the protocol, the adapters of the pytest plugin, threads.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Final

from mutants.kill_matrix.explored import hunt
from mutants.kill_matrix.raced import stress_hunt
from mutants.reference import MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio import ActionQueue, DelayedOperation, DirectExecutor, Purgatory
from purgatorio.sync import Lock
from purgatorio_conformance.protocol.driver import Mode, command_subjects
from purgatorio_conformance.recording import record_runs
from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict

REPOSITORY: Final = Path(__file__).resolve().parents[1]
EXAMPLE: Final = REPOSITORY / "examples" / "subjects" / "reference_purgatory.py"
SEEDS: Final = (1, 2, 3)
OPERATIONS: Final = 2_000
"""As many as the default command drives."""
ROUNDS: Final = 1_000

CLASSES: Final[Sequence[tuple[str, tuple[int, ...]]]] = (
    ("lost completion: who finds the lock taken gives up", (11, 12, 14)),
    ("lost completion: no second look after watching", (1, 2)),
    ("lost completion: watched where nobody looks", (3, 4)),
    ("lost completion: an exception ends the pass", (33,)),
    ("double completion", (19, 21)),
    ("completion beside an evaluation", (24,)),
    ("expiration told though the event won", (22,)),
    ("a completed operation stays in the timer", (39, 40)),
    ("completed operations pile up", (41, 46)),
    ("lost timer", (55, 56, 61)),
    ("late timer, by its level or slot", (63, 66, 67, 69)),
    ("early timer", (64, 65, 70)),
    ("a cancelled timer stays or runs", (51, 52, 83)),
    ("wrong count of timers", (49, 84)),
    ("level above made twice", (53,)),
    ("deadlock, livelock", (6, 7, 9, 10, 13, 17, 18)),
    ("sleeps too long, or not at all", (45, 58, 60, 79, 80, 88)),
    ("the reaper dies", (34,)),
)
"""By what breaks; the numbers are those of docs/measured/kill-matrix.md."""

OF_GROUPS: Final = (9, 10, 17, 18)
"""One change in four places: actions of an `ActionQueue` run at once. It shows if keys have groups with locks, so
the reference is driven as Kafka's coordinators use it."""

BREAKS_NOTHING: Final = (41, 49, 53, 55, 58, 60)
"""Bugs of threads that break no promise that is seen from outside; the page says why of each."""


def driven(mutant: Mutant, modes: Sequence[Mode], seeds: Sequence[int]) -> str:
    """Over the protocol: the clauses, and in how many of the runs. A mode is left out where one before it convicts."""
    command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(mutant.number)]
    broken: set[str] = set()
    hits = 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            subjects = {one.mode: one for one in command_subjects(command)}
            found: set[str] = set()
            for mode in modes:
                if found:
                    break
                (run,) = record_runs([subjects[mode]], Path(folder), seed=seed, ops=OPERATIONS)
                if run.failure is not None:
                    found.add("P3" if run.failure.kind == "deadlock" else run.failure.kind)
                if run.path is not None:
                    (result,) = check_files([run.path]).runs
                    found |= {c for c, one in result.clauses.items() if one.verdict is Verdict.VIOLATED}
        hits += bool(found)
        broken |= found
    return cell(broken, hits, len(seeds))


def cell(broken: set[str], hits: int, runs: int) -> str:
    """`O4, 2 of 3`; only the clauses where there was one run, or all of them hit."""
    if not hits:
        return "-" if runs == 1 else f"- of {runs:,}"
    said = ", ".join(sorted(broken))
    return said if hits == runs == 1 else f"{said}: {hits:,} of {runs:,}"


def plugged(mutant: Mutant) -> str:
    """The plugin's cases, by the adapters of its tests; those of one thread only where the races do not convict."""
    from conformance.test_conformance_kills import RACES, outcomes

    of_timer = any(
        ".timer." in getattr(patch.owner, "__module__", str(patch.owner)) for patch in mutant.patches
    )
    names = ("wheel", "fine-wheel") if of_timer else (mutant.dialect,)
    with mutant.applied():
        # Tasks move in the timer of a purgatory too, and its calls are what a stranger has.
        name = f"{mutant.dialect}, groups" if mutant.number in OF_GROUPS else mutant.dialect
        races = outcomes(name, races=RACES)
        found = {case.split("/")[0] for case, one in races.items() if one.verdict is Verdict.VIOLATED}
        broken_off = [one.text for one in races.values() if one.verdict is Verdict.INVALID_TRACE]
        found |= {"P3" if "P3 is broken" in text else "hang" for text in broken_off if "hang" in text}
        for plain in names:
            if not found:
                alone = outcomes(plain).items()
                found = {case.split("/")[0] for case, one in alone if one.verdict is Verdict.VIOLATED}
    return cell(found, int(bool(found)), 1)


def raced(mutant: Mutant) -> str:
    """Threads of this process, with yields at the seam, recorded and judged: `purgatorio stress --yields always`."""
    told = stress_hunt(mutant, ROUNDS, 1, yields=True)
    if told.reason:
        return "not raced"
    return cell({told.by}, told.hits or 0, told.effort)


def explored(mutant: Mutant) -> str:
    """The explorer's search of the mutant's scenario."""
    found = hunt(mutant)
    return f"{found.clause} in {found.schedules:,}" if found.killed else "-"


MEASURES: Final[Mapping[str, Callable[[Mutant], str]]] = {
    "plugin": plugged,
    "protocol, virtual": partial(driven, modes=("virtual-plan", "virtual-jumps"), seeds=(1,)),
    "protocol, real": partial(driven, modes=("real", "real-free"), seeds=SEEDS),
    "gates": partial(driven, modes=("virtual-gates", "virtual-steps", "real-gates"), seeds=(1,)),
    "races": raced,
    "explorer": explored,
}


def serve(number: int) -> None:
    """The example with the mutant inside."""
    mutant = MUTANTS[number]
    sys.argv = [str(EXAMPLE), mutant.dialect]
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    if number in OF_GROUPS:
        put_under_groups(example)
    if number == 34:
        # What expires runs on the reaper's thread: there its exception would end it.
        vars(example)["SystemTimer"] = partial(_inline, example.SystemTimer)
    with mutant.applied(), suppress(KeyboardInterrupt):
        example.main()


def _inline(make: Callable[..., object], *args: object, executor: object, **more: object) -> object:
    return make(*args, executor=executor or DirectExecutor(), **more)


def put_under_groups(example: ModuleType) -> None:
    """Give every key of the example a group with a lock, as `reference_adapters.GroupedPurgatory` has it."""
    locks = defaultdict[Hashable, Lock](threading.RLock)
    keys_of: dict[DelayedOperation, Sequence[Hashable]] = {}
    made, on_complete = example.Subject.made, example.Operation.on_complete

    def grouped(self: object, call: dict[str, object]) -> object:
        if call["m"] != "check":
            return made(self, call)
        actions, answers = ActionQueue(), list[object]()
        with locks[call["key"]]:
            actions.add(lambda: answers.append(made(self, call)))
        actions.run_all()
        return answers[0]

    class Grouped(Purgatory[DelayedOperation]):
        def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
            keys_of[operation] = keys
            return super().try_complete_else_watch(operation, keys)

    def completing(self: DelayedOperation) -> None:
        for key in keys_of[self]:
            with locks[key]:
                pass
        on_complete(self)

    for place, name, instead in (
        (example.Subject, "made", grouped),
        (example.Operation, "on_complete", completing),
        (example, "Purgatory", Grouped),
    ):
        setattr(place, name, instead)


def measured_apart(number: int, path: str) -> str:
    """In a separate process: a stuck race leaves threads that cannot be ended."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--one", path, str(number)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=1_800,
    )
    return done.stdout.splitlines()[-1]


def rows_of(page: str) -> dict[int, dict[str, str]]:
    """The rows of the page's table."""
    rows: dict[int, dict[str, str]] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        number = cells[0].partition(" ")[0]
        if number.isdigit() and len(cells) == len(MEASURES) + 1:
            rows[int(number)] = dict(zip(MEASURES, cells[1:], strict=True))
    return rows


def table(rows: Mapping[int, Mapping[str, str]]) -> str:
    """The classes with their mutants, as Markdown."""
    lines = ["| bug | " + " | ".join(MEASURES) + " |", "|" + "---|" * (len(MEASURES) + 1)]
    for title, numbers in CLASSES:
        there = [number for number in numbers if number in rows]
        if there:
            lines.append(f"| **{title}** |" + " |" * len(MEASURES))
        for number in there:
            cells = " | ".join(rows[number].get(path, "not run") for path in MEASURES)
            lines.append(f"| {number} {MUTANTS[number].name} | {cells} |")
    left_out = [str(number) for _, numbers in CLASSES for number in numbers if number not in rows]
    lines += ["", f"Not run this time: {', '.join(left_out)}."] if left_out else []
    return "\n".join([*lines, "", *textwrap.wrap(summed(rows), 120)]) + "\n"


def _convicts(cell: str) -> bool:
    return cell.partition(" of ")[0].partition(":")[0] not in ("-", "hang", "not run")


def summed(rows: Mapping[int, Mapping[str, str]]) -> str:
    """How many of the bugs that need threads are found, over the pipe and by the plugin."""
    threads = [number for number in rows if MUTANTS[number].interleaving]
    counted = [number for number in threads if number not in BREAKS_NOTHING]
    ways = {"over the pipe": ("gates", "protocol, real"), "plugin": ("plugin",)}
    found = {
        way: [number for number in counted if any(_convicts(rows[number].get(path, "-")) for path in paths)]
        for way, paths in ways.items()
    }
    missed = {path: sorted(set(counted) - set(numbers)) for path, numbers in found.items()}
    said = [
        f"{path} {len(numbers)} of {len(counted)}"
        + (f" (not {', '.join(map(str, missed[path]))})" if missed[path] else "")
        for path, numbers in found.items()
    ]
    apart = len(threads) - len(counted)
    return (
        f"Of these {len(threads)} bugs need threads, of which {apart} break no promise that is seen from outside. "
        f"Of the others a clause finds: {'; '.join(said)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "numbers", nargs="*", type=int, help="mutants; all that are listed, where none is named"
    )
    parser.add_argument(
        "--path", action="append", choices=MEASURES, help="only this path, or these; the others' cells stay"
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=REPOSITORY / "docs" / "measured" / "which-path.md",
        help="its table, between its marks, gets what is found",
    )
    parser.add_argument("--one", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    if options.one is not None:
        print(MEASURES[options.one](MUTANTS[options.numbers[0]]), flush=True)
        # Threads of a stuck race would keep the process alive.
        os._exit(0)
    for number in options.numbers or [number for _, numbers in CLASSES for number in numbers]:
        for path in options.path or MEASURES:
            cell = measured_apart(number, path)
            print(number, MUTANTS[number].name, f"{path}: {cell}", file=sys.stderr, flush=True)
            before, _, rest = options.page.read_text(encoding="utf-8").partition("<!-- measured -->\n")
            old, _, after = rest.partition("<!-- /measured -->\n")
            rows = rows_of(old)
            rows.setdefault(number, {})[path] = cell
            options.page.write_text(
                f"{before}<!-- measured -->\n{table(rows)}<!-- /measured -->\n{after}", encoding="utf-8"
            )


if __name__ == "__main__":
    main()
