"""The list of the files that a lake knows: of each, the state in which it was read and where its tables are.

The list is the commit. It is written last, whole, under a number of its own; what it does not name was never read. A
killed check leaves the list before it, and then tables that no list names, which the next check removes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

import orjson

from purgatorio_pipeline.incremental.identity import FileState
from purgatorio_pipeline.lake import Lake

BATCHES: Final = "batches"
_FOLDER: Final = "known"
_BATCH: Final = re.compile(r"\d{9}")
_LIST: Final = re.compile(r"\.?(\d{9})\.json(\..+)?")
"""A list, or what is left of one that a killed check did not come to the end of."""


@dataclass(frozen=True, slots=True)
class Known:
    """One file: its state when it was read, and its tables, as its batch and the run key that it has there."""

    state: FileState
    batch: str
    key: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The files by name. `batch`: the last number that was given; `checker`: whose verdicts they are."""

    checker: str = ""
    batch: int = 0
    files: Mapping[str, Known] = field(default_factory=dict)
    number: int = field(default=0, compare=False)

    def save(self, lake: Lake) -> Ledger:
        """Commit it as the one after `number`."""
        number = self.number + 1
        files = [{**asdict(one.state), "batch": one.batch, "key": one.key} for one in self.files.values()]
        held = {"checker": self.checker, "batch": self.batch, "files": files}
        lake.write_text(_place(number), orjson.dumps(held).decode())
        return Ledger(self.checker, self.batch, self.files, number)

    def sweep(self, lake: Lake) -> None:
        """Remove what no check will start from: batches without a file, and earlier lists."""
        needed = {one.batch for one in self.files.values()}
        # Only what has one of our own names: the folder is the user's.
        for name in lake.names(BATCHES):
            if _BATCH.fullmatch(name) and name not in needed:
                lake.remove(f"{BATCHES}/{name}")
        for name in lake.names(_FOLDER):
            if _LIST.fullmatch(name) and f"{_FOLDER}/{name}" != _place(self.number):
                lake.remove(f"{_FOLDER}/{name}")


def load_ledger(lake: Lake) -> Ledger:
    """The last list; an empty one where there is none, or where it cannot be read: then everything is read again."""
    lists = (_LIST.fullmatch(name) for name in lake.names(_FOLDER))
    numbers = [int(found[1]) for found in lists if found and not found[2]]
    if not numbers:
        return Ledger()
    try:
        held = orjson.loads(lake.read_bytes(_place(max(numbers))) or b"")
        files = {
            one["name"]: Known(
                FileState(one["name"], one["place"], one["size_bytes"], one["modified_ns"]),
                one["batch"],
                one["key"],
            )
            for one in held["files"]
        }
        return Ledger(held["checker"], held["batch"], files, max(numbers))
    except (ValueError, KeyError, TypeError):
        return Ledger(number=max(numbers))


def _place(number: int) -> str:
    return f"{_FOLDER}/{number:09d}.json"
