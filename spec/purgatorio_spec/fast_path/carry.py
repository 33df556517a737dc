"""Saves the state of a `Fold` between two batches. The file has arrays of numbers and texts, and nothing executable."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from purgatorio_spec.fast_path.calls import OpenCalls
from purgatorio_spec.fast_path.columns import Stretches
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.fast_path.names import Names
from purgatorio_spec.fast_path.operations import MAX_ROWS
from purgatorio_spec.fast_path.readings import Readings
from purgatorio_spec.fast_path.recheck import Checks, Waiting
from purgatorio_spec.fast_path.thread_checks import ThreadChecks
from purgatorio_spec.trace.record import Header

Arrays = dict[str, npt.NDArray[np.generic]]

_NAMES: Final = ("names", "threads", "key_names")
_PLAIN: Final = (
    "events", "last_i", "start_t", "end_t", "rest_t", "halted_i", "halted_t", "cancels", "advances", "follows",
    "broken", "stride",
)  # fmt: skip
"""The fields of a fold that are no arrays."""


def write_carry(fold: Fold, place: Path) -> None:
    """Write the state of `fold`, without its stored batches. Raises OSError."""
    arrays: Arrays = {}
    for name in _NAMES:
        _put_bytes(arrays, name, getattr(fold, name).packed())
    _put_bytes(arrays, "operations", fold.operations.packed())
    for prefix, part, columns in _groups(fold):
        arrays |= {f"{prefix}.{name}": getattr(part, name) for name in columns}
    for name in _CALLS:
        arrays[f"reading_calls.{name}"] = np.concatenate([_NONE, *getattr(fold.readings, name)])
    arrays["last_row"] = fold.readings.last_row
    arrays["last_t"] = fold.clocks.last_t
    arrays["called"], arrays["times"] = fold.called, fold.times
    arrays["registering"] = np.concatenate(fold.registering, axis=1)
    plain = {name: getattr(fold, name) for name in _PLAIN}
    plain["operations"] = fold.operations.count
    plain["sure"] = fold.thread_checks.sure
    plain["readings"] = [fold.readings.open_calls, fold.readings.last_t]
    arrays["plain"] = np.frombuffer(orjson.dumps(plain), np.uint8)
    with place.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_carry(header: Header, place: Path) -> Fold:
    """The fold of a run that `write_carry` wrote. Raises OSError."""
    with np.load(place, allow_pickle=False) as arrays:
        fold = Fold(header, held_bytes=0)
        for name in _NAMES:
            setattr(fold, name, Names.restored(_bytes(arrays, name)))
        plain = orjson.loads(arrays["plain"].tobytes())
        for name in _PLAIN:
            setattr(fold, name, plain[name])
        if plain["events"] >= MAX_ROWS:
            fold.operations.widen()
        fold.operations.restore(plain["operations"], _bytes(arrays, "operations"))
        for prefix, part, columns in _groups(fold):
            for name in columns:
                setattr(part, name, arrays[f"{prefix}.{name}"])
        fold.thread_checks.sure = plain["sure"]
        fold.readings.open_calls, fold.readings.last_t = plain["readings"]
        fold.readings.last_row = arrays["last_row"]
        fold.clocks.last_t, fold.called = arrays["last_t"], arrays["called"]
        fold.times, fold.registering = arrays["times"], [arrays["registering"]]
        fold.readings.call_i, fold.readings.call_row = ([arrays[f"reading_calls.{name}"]] for name in _CALLS)
    return fold


_NONE: Final = np.zeros(0, np.int64)
_CALLS: Final = ("call_i", "call_row")


def _groups(fold: Fold) -> tuple[tuple[str, object, tuple[str, ...]], ...]:
    """The columns of the fold: their prefix in the file, the object that has them, and their names."""
    checks, readings = fold.thread_checks, fold.readings
    checks.doubtful, readings.parts = [Stretches.joined(checks.doubtful)], [Readings.joined(readings.parts)]
    return (
        ("open_calls", fold.open_calls, OpenCalls.__slots__),
        ("open_checks", fold.first_checks.open, Checks.__slots__),
        ("waiting", fold.first_checks.waiting, Waiting.__slots__),
        ("threads_so_far", checks, ThreadChecks.CARRIED),
        ("doubtful", checks.doubtful[0], Stretches.__slots__),
        ("readings", readings.parts[0], Readings.__slots__),
    )


def _put_bytes(arrays: Arrays, name: str, parts: Sequence[bytes]) -> None:
    arrays[f"{name}.bytes"] = np.frombuffer(b"".join(parts), np.uint8)
    arrays[f"{name}.sizes"] = np.array([len(part) for part in parts], np.int64)


def _bytes(arrays: Arrays, name: str) -> list[bytes]:
    data, ends = arrays[f"{name}.bytes"].tobytes(), np.cumsum(arrays[f"{name}.sizes"]).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
