"""A known bug of the reference, as a mutant: its patches, and where the layers of the kill matrix look for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutants.diffs import diffs
from purgatorio_spec.known_bugs import KNOWN_BUGS
from purgatorio_stress.mutant.patch import Bug, Memory, Patch


@dataclass(frozen=True)
class Mutant:
    """A known bug. `number`, `name`, `source`, `what` and `clauses` are those of `purgatorio_spec.known_bugs`.

    `scenario` and `dialect`: where the explorer looks for it. `clauses`: any of them may be the one that reports it.
    `interleaving`: it takes two threads. `memory`: where patched functions remember things, empty at first.
    """

    number: int
    name: str
    source: str
    what: str
    scenario: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    dialect: str = "pending-flag"
    interleaving: bool = False
    memory: tuple[Memory, ...] = ()

    @property
    def bug(self) -> Bug:
        """What `--mutant` takes, from a checkout."""
        return Bug(
            f"tests/mutants/reference:{self.name}",
            self.patches,
            self.memory,
            f"{self.scenario}/{self.dialect}",
        )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The reference has the bug inside."""
        with self.bug.applied():
            yield


def known(
    number: int,
    scenario: str,
    *patches: Patch,
    dialect: str = "pending-flag",
    interleaving: bool = False,
    memory: tuple[Memory, ...] = (),
) -> Mutant:
    bug = KNOWN_BUGS[number]
    return Mutant(
        number,
        bug.name,
        bug.source,
        bug.sentence,
        scenario,
        bug.clauses,
        patches,
        dialect,
        interleaving,
        memory,
    )


def told(subject: str) -> list[Mutant]:
    """The mutants that only change words: diffs in the file of this name, with the number and the scenario."""
    found = []
    for diff in diffs(Path(__file__).parent / f"{subject}.txt"):
        patches = (change.patch("purgatorio") for change in diff.changes)
        dialect = "locked" if "locked" in diff.says else "pending-flag"
        races = "interleaving" in diff.says
        found.append(known(int(diff.name), diff.what, *patches, dialect=dialect, interleaving=races))
    return found
