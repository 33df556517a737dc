"""A check with a result folder (`lake`), in five atomic steps. A check that was killed continues after the last
complete step:

1. compare the named files with those of the folder's manifest;
2. judge new and changed files, and store the result of each in a new folder, the batch;
3. commit a manifest that lists each file and the batch with its result;
4. write the result tables of all named files to a new folder, and commit a manifest that names it;
5. remove files that the manifest does not name.

If a file is no longer named, its result is removed. Each file is a whole run, so no verdict depends on another file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from purgatorio_pipeline.documents import Unreadable, decoded, encoded
from purgatorio_pipeline.hadoop import Place
from purgatorio_pipeline.incremental.cached import CachedResult, assemble
from purgatorio_pipeline.incremental.identity import FileState, state_of
from purgatorio_pipeline.judging import FileCounts, Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.judge.result import without_silent_pass

KIND: Final = "check"
BATCHES: Final = "batches"
GOLD: Final = "gold"
_CACHED: Final = "cached.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a check: its state at the read (None if it changed during the read), and its batch and run key in the
    lake."""

    state: FileState | None
    batch: str
    key: int


@dataclass(frozen=True, slots=True)
class KeptFile:
    entry: Entry
    cached: CachedResult


@dataclass(frozen=True, slots=True)
class Manifest:
    """The valid contents of a lake of checks. `files`: in the order of the check. `checker`: the fingerprint of the
    checker. `gold`: the folder of the gold tables, and their check."""

    checker: str = ""
    allow_idle: bool = True
    files: tuple[Entry, ...] = ()
    gold: str = ""
    gold_of: str = ""

    @property
    def by_name(self) -> dict[str, Entry]:
        return {one.state.name: one for one in self.files if one.state is not None}


class Reader(Protocol):
    def judge(self, places: Sequence[Place], lake: Lake) -> list[CachedResult]:
        """Read and judge files, and write their tables into the folder of a batch."""
        ...

    def publish(self, lake: Lake, gold: Lake, held: Sequence[KeptFile], judged: Judged) -> None: ...


def check_lake(
    lake: Lake, places: Sequence[Place], reader: Reader, checker: str, *, allow_idle: bool = True
) -> Judged:
    """Judge files. Only files without a stored result of the same `checker` are read. Raises OSError.

    `allow_idle`: a clause without an occasion is PASS, else UNKNOWN. Stored results do not depend on this option.
    """
    number, before = _last(lake)
    _sweep(lake, number, before)
    states = {str(place): state_of(place) for place in places}
    held = _known(lake, before, states, checker)
    todo = [place for place in places if str(place) not in held]
    if todo:
        held |= _read(lake, lake.unused(number + 1), todo, states, reader)
    ordered = [held[str(place)] for place in places]
    files = tuple(one.entry for one in ordered)
    manifest = replace(before, checker=checker, allow_idle=allow_idle, files=files)
    number, manifest = _committed(lake, number, before, manifest)
    counts = _counts(before, states, {str(place) for place in todo}, checker)
    judged = replace(_assembled(manifest, [one.cached for one in ordered]), files=counts)
    gold_of = hashlib.sha256(encoded((checker, allow_idle, files))).hexdigest()
    if manifest.gold_of != gold_of:
        gold = lake.unused(number + 1)
        reader.publish(lake, lake.below(f"{GOLD}/{gold}"), ordered, judged)
        number, manifest = _committed(lake, number, manifest, replace(manifest, gold=gold, gold_of=gold_of))
    _sweep(lake, number, manifest)
    return judged


def last_check(lake: Lake) -> Judged:
    """The last check in a lake, with all stored data for the reports. Raises `Unreadable`, OSError."""
    _, manifest = _last(lake)
    batches = _batches(lake, manifest.files)
    try:
        return _assembled(manifest, [batches[one.batch][one.key] for one in manifest.files])
    except IndexError:
        raise Unreadable(
            f"{lake.root}: a batch cannot be read; run the check with this --out again"
        ) from None


def _assembled(manifest: Manifest, cached: Sequence[CachedResult]) -> Judged:
    judged = assemble(cached)
    if manifest.allow_idle:
        return judged
    return replace(judged, result=without_silent_pass(judged.result))


def _last(lake: Lake) -> tuple[int, Manifest]:
    """The last readable manifest, and its number. If a file system does not write files atomically, a killed check may
    leave an incomplete manifest."""
    for number in reversed(lake.manifests()):
        try:
            return number, lake.manifest(number, Manifest)
        except Unreadable:
            continue
    return 0, Manifest()


def _committed(lake: Lake, number: int, before: Manifest, manifest: Manifest) -> tuple[int, Manifest]:
    if manifest != before:
        number += 1
        lake.commit(number, manifest)
    return number, manifest


def _sweep(lake: Lake, number: int, manifest: Manifest) -> None:
    lake.sweep(BATCHES, {one.batch for one in manifest.files})
    lake.sweep(GOLD, {manifest.gold})
    lake.forget_but(number)


def _known(
    lake: Lake, before: Manifest, states: Mapping[str, FileState], checker: str
) -> dict[str, KeptFile]:
    if before.checker != checker:
        return {}
    same = {name: one for name, one in before.by_name.items() if states.get(name) == one.state}
    batches = _batches(lake, same.values())
    return {
        name: KeptFile(one, batches[one.batch][one.key])
        for name, one in same.items()
        if one.key < len(batches[one.batch])
    }


def _batches(lake: Lake, entries: Iterable[Entry]) -> dict[str, list[CachedResult]]:
    """The stored results of each batch, by run key. Empty for a batch that cannot be read."""
    batches: dict[str, list[CachedResult]] = {}
    for batch in sorted({one.batch for one in entries}):
        try:
            batches[batch] = decoded(
                lake.read_bytes(f"{BATCHES}/{batch}/{_CACHED}") or b"", list[CachedResult]
            )
        except Unreadable:
            batches[batch] = []
    return batches


def _read(
    lake: Lake, batch: str, todo: Sequence[Place], states: Mapping[str, FileState], reader: Reader
) -> dict[str, KeptFile]:
    folder = lake.below(f"{BATCHES}/{batch}")
    cached = reader.judge(todo, folder)
    folder.write_bytes(_CACHED, encoded(cached))
    return {
        str(place): KeptFile(Entry(_unchanged(place, states[str(place)]), batch, key), one)
        for key, (place, one) in enumerate(zip(todo, cached, strict=True))
    }


def _unchanged(place: Place, before: FileState) -> FileState | None:
    """The state of a file if it is equal before and after the read. None for a changed file: its result is shown, and
    the next check reads the file again."""
    try:
        return before if state_of(place) == before else None
    except OSError:
        return None


def _counts(before: Manifest, states: Mapping[str, FileState], read: set[str], checker: str) -> FileCounts:
    known = before.by_name
    same = {name for name, state in states.items() if name in known and known[name].state == state}
    return FileCounts(
        new=len(states.keys() - known.keys()),
        changed=len((states.keys() & known.keys()) - same),
        known=len(same - read),
        again=len(same & read),
        gone=len(known.keys() - states.keys()),
        other_checker=bool(known) and before.checker != checker,
    )
