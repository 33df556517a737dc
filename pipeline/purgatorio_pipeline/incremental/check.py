"""A check over a lake, step by step. Each step is whole or not there; a check that is killed between two of them is
done again from the last that is.

1. compare the files named with the list of those that the lake knows;
2. read and judge the others into a batch, a folder of its own; what is kept of each file is written last in it;
3. write the new list: the commit;
4. write the gold tables of all files named; a mark in them says of which files they are;
5. remove batches in which no file is left.

A file that is not named any more is forgotten. `check` takes each file for a whole run, so that no file's verdict
depends on another's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from purgatorio_pipeline.hadoop import Place
from purgatorio_pipeline.incremental.identity import FileState, state_of
from purgatorio_pipeline.incremental.kept import Kept, Unreadable, assemble, dump, load
from purgatorio_pipeline.incremental.ledger import BATCHES, Known, Ledger, load_ledger
from purgatorio_pipeline.judging import FileCounts, Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.judge.result import without_silent_pass

KEPT: Final = "kept.json"
_MARK: Final = "gold/_of"


@dataclass(frozen=True, slots=True)
class Held:
    """One file of this check. `state`: in which it was read, None if it was changed meanwhile."""

    state: FileState | None
    batch: str
    key: int
    kept: Kept


class Reader(Protocol):
    """Who reads and judges files, and who writes gold."""

    def judge(self, places: Sequence[Place], lake: Lake) -> list[Kept]:
        """Read files and judge them, leaving their tables in a lake of their own."""
        ...

    def publish(self, lake: Lake, held: Sequence[Held], judged: Judged) -> None:
        """Write the gold tables of a whole check."""
        ...


def check_lake(
    lake: Lake, places: Sequence[Place], reader: Reader, checker: str, *, allow_idle: bool = True
) -> Judged:
    """Judge files, reading only those that the lake does not know from the same `checker`. Raises OSError.

    `allow_idle`: a clause without an occasion passes, else it is UNKNOWN. What is kept of the files knows neither.
    """
    lake.sweep()
    ledger = load_ledger(lake)
    ledger.sweep(lake)
    states = {str(place): state_of(place) for place in places}
    held = _known(lake, ledger, states, checker)
    read: set[str] = set()
    number = ledger.batch
    todo = [place for place in places if str(place) not in held]
    if todo:
        number += 1
        held |= _read(lake, f"{number:09d}", todo, states, reader)
        read = {str(place) for place in todo}
    ordered = [held[str(place)] for place in places]
    counts = _counts(ledger, states, read, checker)
    ledger = _commit(lake, ledger, Ledger(checker, number, _committed(ordered), ledger.number))
    judged = replace(assemble([one.kept for one in ordered]), files=counts)
    if not allow_idle:
        judged = replace(judged, result=without_silent_pass(judged.result))
    _publish(lake, ordered, judged, reader, f"{checker} allow_idle={allow_idle}")
    ledger.sweep(lake)
    return judged


def _known(lake: Lake, ledger: Ledger, states: Mapping[str, FileState], checker: str) -> dict[str, Held]:
    """The files that need not be read, with what is kept of them."""
    if ledger.checker != checker:
        return {}
    same = {name: one for name, one in ledger.files.items() if states.get(name) == one.state}
    batches = {batch: load_batch(lake, batch) for batch in sorted({one.batch for one in same.values()})}
    return {
        name: Held(one.state, one.batch, one.key, batches[one.batch][one.key])
        for name, one in same.items()
        if one.key < len(batches[one.batch])
    }


def load_batch(lake: Lake, batch: str) -> list[Kept]:
    """What is kept of the files of a batch, by run key; nothing where that cannot be read."""
    try:
        return load(lake.read_bytes(f"{BATCHES}/{batch}/{KEPT}") or b"")
    except Unreadable:
        return []


def _read(
    lake: Lake, batch: str, todo: Sequence[Place], states: Mapping[str, FileState], reader: Reader
) -> dict[str, Held]:
    folder = f"{BATCHES}/{batch}"
    kept = reader.judge(todo, Lake(lake.path(folder)))
    lake.write_text(f"{folder}/{KEPT}", dump(kept))
    return {
        str(place): Held(_unchanged(place, states[str(place)]), batch, key, one)
        for key, (place, one) in enumerate(zip(todo, kept, strict=True))
    }


def _unchanged(place: Place, before: FileState) -> FileState | None:
    """The state of a file that was the same before and after it was read. What was read of one that was not is shown,
    and read again the next time."""
    try:
        return before if state_of(place) == before else None
    except OSError:
        return None


def _committed(ordered: Sequence[Held]) -> dict[str, Known]:
    return {one.state.name: Known(one.state, one.batch, one.key) for one in ordered if one.state is not None}


def _commit(lake: Lake, before: Ledger, ledger: Ledger) -> Ledger:
    return before if ledger == before else ledger.save(lake)


def _counts(ledger: Ledger, states: Mapping[str, FileState], read: set[str], checker: str) -> FileCounts:
    same = {
        name for name, state in states.items() if name in ledger.files and ledger.files[name].state == state
    }
    return FileCounts(
        new=len(states.keys() - ledger.files.keys()),
        changed=len((states.keys() & ledger.files.keys()) - same),
        known=len(same - read),
        again=len(same & read),
        gone=len(ledger.files.keys() - states.keys()),
        other_checker=bool(ledger.files) and ledger.checker != checker,
    )


def _publish(lake: Lake, ordered: Sequence[Held], judged: Judged, reader: Reader, checker: str) -> None:
    """Gold, unless it is there: of the same files, in the same order, by the same checker."""
    places = [(one.kept.run.file, one.batch, one.key) for one in ordered]
    mark = hashlib.sha256(repr((checker, places)).encode()).hexdigest()
    if lake.read_bytes(_MARK) == mark.encode():
        return
    # First, so that tables of two checks side by side are never taken for one.
    lake.remove(_MARK)
    reader.publish(lake, ordered, judged)
    lake.write_text(_MARK, mark)
