"""Mutants as diffs, in text files:

    stable-offset-not-listed: ListOffsets for read_committed returns the high watermark
      R4
      in network.data_requests:_look_up
      - .end(isolation).offset
      + .high_watermark.offset

The line below the name may say what the mutant needs, or which clause finds it. Then come the places that it changes
(a single place needs no `in`). Each place has pairs of an old text, which must occur once, and a new text.
"""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from purgatorio_stress.mutant.patch import Patch, edited


@dataclass
class Change:
    """The changes at a place: pairs of an old text, which must occur once, and a new text. `mutant`: FILE: NAME."""

    place: str
    mutant: str
    words: list[tuple[str, str]] = field(default_factory=list)

    def patch(self, package: str) -> Patch:
        """The patch of the function at `MODULE:[CLASS.]FUNCTION`, the module in this package. Raises ValueError, which
        names the mutant."""
        module, _, path = self.place.partition(":")
        *inside, function = path.split(".")
        try:
            owner: object = import_module(
                module if module.startswith("purgatorio") else f"{package}.{module}"
            )
            for one in inside:
                owner = getattr(owner, one)
            return edited(owner, function, *(word for pair in self.words for word in pair))
        except Exception as error:
            raise ValueError(f"{self.mutant}: {error}") from error


@dataclass
class Diff:
    """A bug; see the module. `says`: the line below its name."""

    name: str
    what: str
    says: str = ""
    changes: list[Change] = field(default_factory=list)


def diffs(path: Path) -> list[Diff]:
    """The mutants in a file. Lines that begin with # are comments."""
    found: list[Diff] = []
    sign = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        head = line[:4].rstrip()
        if not line or line.startswith("#"):
            continue
        if not line.startswith("  "):
            name, _, what = line.partition(": ")
            found.append(Diff(name, what))
        elif head not in ("  -", "  +"):
            if line.startswith("  in "):
                found[-1].changes.append(Change(line.removeprefix("  in "), f"{path}: {found[-1].name}"))
            else:
                found[-1].says = line.strip()
        else:
            if not found[-1].changes:
                found[-1].changes.append(Change("", f"{path}: {found[-1].name}"))
            words = found[-1].changes[-1].words
            if head == "  -" and sign != "  -":
                words.append((line[4:], ""))
            elif head == "  -":
                words[-1] = (f"{words[-1][0]}\n{line[4:]}", "")
            else:
                old, new = words[-1]
                words[-1] = (old, f"{new}\n{line[4:]}" if sign == "  +" else line[4:])
        sign = head
    return found
