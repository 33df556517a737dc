"""Events as numbers: each text of a batch becomes an integer code, and whole columns are checked against the format.

The function and the phase (call, return, point) of an event together are one 8-bit code. So one radix pass finds the
rows of each kind, and a rule on function or phase is one table look-up. Threads, ids and keys have codes for one batch
only. In a batch of the class `Numbered`, each text has one number for the whole run, and rows are numbered from the
first row of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.trace.columns import EVENT_FIELDS, EVENT_SCHEMA, Column
from purgatorio_spec.trace.record import FUNCTIONS, OF_AN_OPERATION, PHASES, POINTS, WITH_KEYS, WITH_STATE

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Lists: TypeAlias = "pa.ListArray[pa.ListScalar[pa.DataType]]"

CALL, RET, AT = range(3)
UNKNOWN: Final = 255
"""The code of a row whose function or phase the format does not know."""

_FUNCTION_AT: Final = {name: at for at, name in enumerate(FUNCTIONS)}
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


def code_of(function: str, phase: int) -> int:
    return 3 * _FUNCTION_AT[function] + phase


def where(condition: Callable[[str, str], bool]) -> Flags:
    """A table over all codes: whether a condition on function and phase holds."""
    flags = np.zeros(256, bool)
    for function in FUNCTIONS:
        for phase, name in enumerate(PHASES):
            flags[code_of(function, phase)] = condition(function, name)
    return flags


IS_CALL: Final = where(lambda f, ph: ph == "call")
IS_RET: Final = where(lambda f, ph: ph == "ret")
_NEEDS_ID: Final = where(lambda f, ph: f in OF_AN_OPERATION)
_NEEDS_KEYS: Final = where(lambda f, ph: ph == "call" and f in WITH_KEYS)
_NO_POINT: Final = where(lambda f, ph: f in POINTS and ph != "at")
_NEEDS_STATE: Final = where(lambda f, ph: f in WITH_STATE and ph != "call")


@dataclass(slots=True)
class Coded:
    """A batch of events as numbers. `id` is -1 for an event without an id. Null values of `c`, `out` and similar
    columns have no meaning. `key[key_from[row]:key_from[row + 1]]` are the keys of a row."""

    rows: pa.RecordBatch
    i: Ints
    t: Ints
    c: Ints
    code: Kinds
    th: Codes
    th_texts: pa.StringArray
    id: Codes
    id_texts: pa.StringArray
    key: Codes
    key_texts: pa.StringArray
    key_from: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.i)

    @property
    def line(self) -> Ints:
        return values_of(self.rows.column("line"))

    def take(self, places: Ints) -> Coded:
        return coded(self.rows.take(places))

    def numbers(self, name: str) -> tuple[Ints, Flags | None]:
        """A column of integers, and the rows with a value (None: all rows)."""
        column = self.rows.column(name)
        return values_of(column), given(column)


def given(column: Column) -> Flags | None:
    """The rows with a value (None: all rows)."""
    return is_given(column) if column.null_count else None


def is_given(column: Column) -> Flags:
    return np.asarray(pc.is_valid(column), np.bool_)


def values_of(column: Column) -> Ints:
    """The 64-bit integers of a column without a copy. Null values are arbitrary."""
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), np.int64)
    return np.frombuffer(memoryview(data), np.int64, len(column), column.offset * 8)


def coded(rows: pa.RecordBatch) -> Coded:
    """The coded form of a batch of events. Texts may be plain or dictionaries. `i` and `t` must have no nulls."""
    f, f_texts = _codes(rows.column("f"))
    phase, phase_texts = _codes(rows.column("ph"))
    first, second = _places(f_texts, FUNCTIONS)[f], _places(phase_texts, PHASES)[phase]
    code = first * np.uint8(3) + second
    code[(first == UNKNOWN) | (second == UNKNOWN)] = UNKNOWN
    th, th_texts = _codes(rows.column("th"))
    of, id_texts = _codes(rows.column("id"))
    lists = rows.column("keys")
    assert isinstance(lists, pa.ListArray)
    key_from = np.asarray(lists.offsets)
    key, key_texts = _codes(lists.values.slice(key_from[0], key_from[-1] - key_from[0]))
    return Coded(
        rows, values_of(rows.column("i")), values_of(rows.column("t")), values_of(rows.column("c")), code,
        th, th_texts, of, id_texts, key, key_texts, key_from - key_from[0],
    )  # fmt: skip


def _codes(column: Column) -> tuple[Codes, pa.StringArray]:
    """A number for each distinct text (-1: null), and the texts."""
    array = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    assert isinstance(array, pa.DictionaryArray)
    if array.dictionary.null_count:
        return _codes(array.dictionary_decode())
    places, texts = array.indices, array.dictionary
    if places.null_count:
        places = places.fill_null(-1)
    if not isinstance(texts, pa.StringArray):
        texts = texts.cast(pa.string())
    assert isinstance(texts, pa.StringArray)
    return np.asarray(places).astype(np.int32, copy=False), texts


def _places(texts: pa.StringArray, names: tuple[str, ...]) -> Kinds:
    """By code of a text, its place among the names of the format. The last element is for null (-1)."""
    found = np.full(len(texts) + 1, UNKNOWN, np.uint8)
    for at, text in enumerate(texts.to_pylist()):
        if text in names:
            found[at] = names.index(text)
    return found


def is_usual(batch: Coded) -> bool:
    """Whether every row certainly obeys every rule of `parse_line`. Otherwise the batch is parsed row by row.

    The reader checks that `i` grows, because this rule concerns several batches.
    """
    rows, code, i = batch.rows, batch.code, batch.i
    if not len(i):
        return True
    if any(rows.column(name).null_count for name in ("i", "t", "th")) or i.min() < 0:
        return False
    if (code == UNKNOWN).any() or _NO_POINT[code].any() or (_NEEDS_ID[code] & (batch.id < 0)).any():
        return False
    returns = IS_RET[code]
    calls = given(rows.column("c"))
    if not (returns.all() if calls is None else np.array_equal(returns, calls)):
        return False
    c = batch.c[returns]
    if ((c < 0) | (c >= i[returns])).any() or not _keys_are_usual(batch):
        return False
    readings = np.flatnonzero(_NEEDS_STATE[code])
    if len(readings):
        some = rows.select(["state", "err"]).take(readings)
        if np.asarray(pc.and_(pc.is_null(some.column("state")), pc.is_null(some.column("err")))).any():
            return False
    asked = rows.column("t_call")
    if asked.null_count == len(i):
        return True
    late = values_of(asked) > batch.t
    places = given(asked)
    return not bool(late.any() if places is None else (late & places).any())


def _keys_are_usual(batch: Coded) -> bool:
    lists = batch.rows.column("keys")
    if (batch.key < 0).any():
        return False
    counts = np.diff(batch.key_from)
    places = given(lists)
    if places is not None and counts[~places].any():
        return False
    return not bool((counts[_NEEDS_KEYS[batch.code]] == 0).any())


def dictionaries(schema: pa.Schema) -> pa.Schema:
    """The schema with texts as dictionaries, except the producer's own fields."""
    return pa.schema([_as_dictionary(field) for field in schema])


def _as_dictionary(field: pa.Field[pa.DataType]) -> pa.Field[pa.DataType]:
    if field.name == "x":
        return field
    if pa.types.is_string(field.type):
        return pa.field(field.name, _TEXT)
    return pa.field(field.name, pa.list_(_TEXT)) if pa.types.is_list(field.type) else field


CODED_FIELDS: Final = tuple(dictionaries(pa.schema(list(EVENT_FIELDS))))
"""The fields of an event with texts as dictionaries."""
CODED_SCHEMA: Final = dictionaries(EVENT_SCHEMA)


def plain(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_plain(rows.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(column: Column, kind: pa.DataType) -> Column:
    if column.type == kind:
        return column
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary_decode()
    if isinstance(column, pa.ListArray) and isinstance(column.values, pa.DictionaryArray):
        return with_values(column, lambda values: _plain(values, pa.string()))
    return column.cast(kind)


def with_values(lists: Lists, made: Callable[[Column], Column]) -> Lists:
    """The lists with `made(values)` instead of their values."""
    first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    offsets = pc.subtract(lists.offsets, pa.scalar(first, pa.int32()))
    return pa.ListArray.from_arrays(
        offsets, made(lists.values.slice(first, last - first)), mask=pc.is_null(lists)
    )


_OF_AN_OPERATION: Final = where(lambda f, ph: f in OF_AN_OPERATION)


class Rows:
    """The rows of each kind of event of a batch, in order."""

    def __init__(self, code: Kinds) -> None:
        self._order = np.argsort(code, kind="stable")  # of 8-bit numbers: one radix pass
        self._ends = np.concatenate(([0], np.cumsum(np.bincount(code, minlength=256))))

    def of(self, function: str, *phases: int) -> Ints:
        parts = [self._of(code_of(function, phase)) for phase in phases]
        some = [part for part in parts if len(part)]
        if len(some) == 1:
            return some[0]
        return np.sort(np.concatenate(some)) if some else parts[0]

    def _of(self, code: int) -> Ints:
        return self._order[self._ends[code] : self._ends[code + 1]]


@dataclass(slots=True)
class Numbered:
    """A batch. `operation`: 0 for events of no operation. `first`: the number of its first row in the run."""

    batch: Coded
    first: int
    operation: Codes
    thread: Codes
    rows: Rows

    @classmethod
    def of(cls, batch: Coded, first: int, operations: Codes, threads: Codes) -> Numbered:
        operation = operations[batch.id]
        operation[~_OF_AN_OPERATION[batch.code]] = 0
        return cls(batch, first, operation, threads[batch.th], Rows(batch.code))

    def __len__(self) -> int:
        return len(self.batch)

    def some(self, name: str, rows: Ints) -> tuple[Ints, Ints]:
        values, ok = self.batch.numbers(name)
        kept = rows if ok is None else rows[ok[rows]]
        return kept, values[kept]

    def keys(self, rows: Ints) -> tuple[Ints, Ints]:
        """Two arrays, with an element for each key of these rows: its index in `rows`, and its index in the batch's
        keys."""
        start = self.batch.key_from[rows].astype(np.int64)
        count = self.batch.key_from[rows + 1] - start
        place = np.repeat(np.arange(len(rows)), count)
        before = np.cumsum(count) - count
        return place, np.arange(len(place)) - before[place] + start[place]


def codes(column: pa.ChunkedArray[pa.StringScalar]) -> Ints:
    return pc.index_in(column, value_set=pc.unique(column)).to_numpy().astype(np.int64)


def among(table: pa.Table, name: str, *wanted: str) -> Flags:
    """By row, whether the value of a column is one of these."""
    return np.asarray(pc.is_in(table.column(name), value_set=pa.array(wanted)))


def values(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    columns = ([value for chunk in table.column(name).chunks for value in _listed(chunk)] for name in names)
    return zip(*columns, strict=True)


_SHORT: Final = 256
"""With at most this number of values, a dictionary costs more than it saves."""


def _listed(column: Column) -> list[Any]:
    """As `to_pylist`, but without an Arrow object for each value."""
    if isinstance(column, pa.DictionaryArray):
        texts = np.array([*column.dictionary.to_pylist(), None], object)
        found: list[Any] = texts[np.asarray(column.indices.fill_null(len(texts) - 1))].tolist()
        return found
    if isinstance(column, pa.ListArray):
        values, ends = _listed(column.values), np.asarray(column.offsets).tolist()
        found = [values[first:end] for first, end in pairwise(ends)]
    elif pa.types.is_int64(column.type):
        found = values_of(column).tolist()
    elif len(column) > _SHORT:
        return _listed(column.dictionary_encode())
    else:
        # The stubs of pyarrow have this method only for arrays of one type.
        plain: Any = column
        return [*plain.to_pylist()]
    for at in np.flatnonzero(np.asarray(column.is_null())).tolist() if column.null_count else ():
        found[at] = None
    return found
