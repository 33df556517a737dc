"""The known bugs of real timers and purgatories, as listed in `known_bugs.txt`.

Models, proofs, mutants and pages name a known bug by its public number. Some numbers are not used. The list of mutants
names the bugs that the reference cannot have.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownBug:
    """`source`: the number of the bug in its project. `clauses`: the clauses that the bug may break; `CHECK` is an
    invariant of a data structure."""

    number: int
    name: str
    source: str
    sentence: str
    clauses: tuple[str, ...]


def bug_name(twin: int | str) -> str:
    """The name of a known bug, by its number. Another negative control is named by its own text."""
    return twin if isinstance(twin, str) else KNOWN_BUGS[twin].name


def bug_number(twin: int | str) -> int | None:
    return twin if isinstance(twin, int) else None


def _read(line: str) -> KnownBug:
    number, name, source, clauses, sentence = (part.strip() for part in line.split(" | "))
    return KnownBug(int(number), name, source, sentence, tuple(clauses.split()))


_LINES: Final = files(__package__).joinpath("known_bugs.txt").read_text("utf-8").splitlines()[1:]
KNOWN_BUGS: Final[dict[int, KnownBug]] = {bug.number: bug for bug in map(_read, _LINES)}
"""By number."""
