"""Which bug is put in: a number of the catalogue, or a Python file with somebody's own patches.

Such a file is imported, so it may do whatever its author wants: it is code of yours, not input. It binds `PATCHES` to
patches, and may bind `MEMORY` to containers in which patched functions remember things:

    from purgatorio.timer.bucket import TimerTaskList
    from purgatorio_stress.mutant.patch import Patch

    PATCHES = [Patch(TimerTaskList, "set_expiration", lambda self, expiration_ms: True)]
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from purgatorio_stress.mutant.catalogue import MUTANTS
from purgatorio_stress.mutant.patch import Patch, patched


class BadPatches(ValueError):
    """A number that is not in the catalogue, or a file that gives no patches."""


@dataclass(frozen=True)
class Bug:
    """`number`: in the catalogue, 0 for none and for a file's."""

    number: int = 0
    patches: tuple[Patch, ...] = ()
    memory: tuple[object, ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The reference has it inside."""
        with MUTANTS[self.number].applied() if self.number else patched(self.patches):
            yield


def bug_of(text: str | None) -> Bug:
    """The bug of a number or of a file; none for None. BadPatches says what is wrong with it."""
    if not text or text == "0":
        return Bug()
    if text.isdigit():
        number = int(text)
        if number not in MUTANTS:
            raise BadPatches(f"no mutant {number}; see `purgatorio mutants --list`")
        return Bug(number, (), MUTANTS[number].memory)
    path = Path(text)
    if not path.is_file():
        raise BadPatches(f"--mutant takes a number or a file, and there is no file {text!r}")
    try:
        bound = runpy.run_path(str(path))
    except Exception as error:
        raise BadPatches(f"{path} fails: {type(error).__name__}: {error}") from None
    patches = bound.get("PATCHES")
    if (
        not isinstance(patches, list | tuple)
        or not patches
        or not all(isinstance(one, Patch) for one in patches)
    ):
        raise BadPatches(f"{path} does not bind PATCHES to a list of purgatorio_stress.mutant.patch.Patch")
    missing = [one.target for one in patches if not hasattr(one.owner, one.attribute)]
    if missing:
        raise BadPatches(f"{path} patches {missing[0]}, which is not there")
    return Bug(0, tuple(patches), tuple(bound.get("MEMORY", ())))
