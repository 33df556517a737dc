"""The carry of a run's operations and tasks: one number a column and operation, by what its events came to so far.

Every column is a first, last, least or most value, or a count, so a batch is added by one scatter a column, and two
carries by the same. Rows of the run stand for positions: 32 bits each, until a run has more rows than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from purgatorio_spec.fold.nullable import Numbers
from purgatorio_spec.fold.numbered import Numbered
from purgatorio_spec.trace.coded import AT, CALL, RET, Codes, Flags, Ints, given, values_of

LIMIT: Final = 1 << 60
"""Times beyond it are not added up: whatever has one is left to the clauses, which count without bound."""
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_MAX_ROWS: Final = np.iinfo(np.int32).max

_REGISTER, _FORCE, _TRY = "try_complete_else_watch", "force_complete", "try_complete"
_COUNTS: Final = (
    "reg_n", "reg_no", "force_n", "win_n", "try_n", "try_answers", "true_n", "done_n", "exp_n", "fire_n", "add_n",
    "cancel_n", "stopped_n", "ready_n", "cut_n", "reg_keys",
)  # fmt: skip
_ROWS: Final = (
    "reg_call", "reg_ret", "win_call", "win_ret", "lost_ret", "true_call", "true_ret", "false_ret", "done_call",
    "done_ret", "exp_call", "exp_ret", "fire_call", "fire_ret", "add_call", "add_ret", "cancel_call", "cancel_ret",
    "ready", "check_ret", "last",
)  # fmt: skip
"""Rows of which there is none: -1."""
_LEAST_ROWS: Final = ("stopped_call", "win_first", "lost_call", "stop_first", "fire_first", "won_first")
"""Rows of which there is none: the highest number."""
_TIMES: Final = (
    "reg_t", "reg_delay", "reg_ret_t", "reg_out", "win_t", "fire_t", "add_ret_t", "add_delay", "deadline_t",
    "stopped_t", "ready_t", "added_t", "fire_ret_t",
)  # fmt: skip
_LEAST_TIMES: Final = ("true_t", "deadline_least_t", "fire_least_t")
_THREADS: Final = ("reg_th", "win_th", "true_th", "done_th", "exp_th", "fire_th", "cancel_th")
FLAGS: Final = ("unpaired", "errors", "wild", "points", "raced")
"""Why an operation is odd whatever its numbers are; and whether another event was recorded during a cancel of it."""


class Operations:
    """The columns by operation number; number 0 stands for no operation, and what it holds means nothing."""

    def __init__(self) -> None:
        self.count = 1
        """One more than the highest number."""
        self._room = 0
        self._empty: dict[str, np.generic] = {name: np.int32(0) for name in (*_COUNTS, *_THREADS)}
        self._empty |= {name: np.int32(-1) for name in _ROWS}
        self._empty |= {name: np.int32(_MAX_ROWS) for name in _LEAST_ROWS}
        self._empty |= {name: np.int64(_LOWEST) for name in _TIMES}
        self._empty |= {name: np.int64(_HIGHEST) for name in _LEAST_TIMES}
        self._empty |= {name: np.bool_(False) for name in FLAGS}
        self._columns: dict[str, npt.NDArray[np.generic]] = {
            name: np.zeros(0, empty.dtype) for name, empty in self._empty.items()
        }
        self.make_room(1)

    def make_room(self, count: int) -> None:
        """Room for operations up to this number, excluded."""
        self.count = max(self.count, count)
        if count <= self._room:
            return
        self._room = max(count, self._room + self._room // 2, 4096)
        for name, column in self._columns.items():
            grown = np.full(self._room, self._empty[name], self._empty[name].dtype)
            grown[: len(column)] = column
            self._columns[name] = grown

    @property
    def names(self) -> Iterable[str]:
        """Of all columns."""
        return self._columns.keys()

    def restore(self, columns: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Take columns (each as `column` gave it) for its own."""
        if columns["last"].dtype == np.int64:
            self.widen()
        self._columns = dict(columns)
        self.count = self._room = len(columns["last"])

    def widen(self) -> None:
        """From 32 bits a row to 64."""
        for name in (*_ROWS, *_LEAST_ROWS):
            if self._empty[name].dtype == np.int64:
                return
            column = self._columns[name].astype(np.int64)
            if name in _LEAST_ROWS:
                column[column == _MAX_ROWS] = _HIGHEST
                self._empty[name] = np.int64(_HIGHEST)
            else:
                self._empty[name] = np.int64(-1)
            self._columns[name] = column

    @property
    def bytes_each(self) -> int:
        """What one operation takes."""
        return sum(empty.dtype.itemsize for empty in self._empty.values())

    def column(self, name: str) -> Ints:
        """A column as it is, up to the highest number; in 32 bits where that is enough."""
        return cast("Ints", self._columns[name][: self.count])

    def numbers(self, name: str, of: slice | Ints | Flags) -> Numbers:
        """A column of some operations."""
        column = self._columns[name][: self.count][of]
        empty = self._empty[name]
        ok = np.ones(len(column), bool) if name in _COUNTS else column != empty
        return Numbers(column.astype(np.int64), ok)

    def flags(self, name: str, of: slice | Ints | Flags) -> Flags:
        """A column of flags of some operations."""
        return self._columns[name][: self.count][of].astype(bool)

    def set_flag(self, name: str, operations: Codes) -> None:
        """These operations have it."""
        self._columns[name][operations] = True

    def _count(self, name: str, operations: Codes) -> None:
        np.add.at(self._columns[name], operations, np.int32(1))

    def last(self, name: str, operations: Codes, values: Ints | Codes) -> None:
        """The value of the last of some rows, given in their order: of repeated places the last one written stays."""
        self._columns[name][operations] = values

    def first(self, name: str, operations: Codes, values: Ints) -> None:
        """The value of the first."""
        column = self._columns[name]
        new = column[operations] == self._empty[name]
        column[operations[new][::-1]] = values[new][::-1]

    def most(self, name: str, operations: Codes, values: Ints | Codes) -> None:
        """The greatest value."""
        column = self._columns[name]
        np.maximum.at(column, operations, values.astype(column.dtype, copy=False))

    def least(self, name: str, operations: Codes, values: Ints) -> None:
        """The least value."""
        column = self._columns[name]
        np.minimum.at(column, operations, values.astype(column.dtype, copy=False))

    def add(self, some: Numbered, call_row: Ints) -> None:
        """Add a batch. `call_row`: by row the run's row of its call, see `OpenCalls.pair`."""
        if some.first + len(some) >= _MAX_ROWS:
            self.widen()
        row = np.arange(some.first, some.first + len(some))
        self.last("last", some.operation, row)
        self._add_flags(some)
        self._add_registrations(some, row)
        self._add_forces(some, row, call_row)
        self._add_tries(some, row, call_row)
        self._add_callbacks(some, row)
        self._add_timer(some, row, call_row)
        self._add_points(some, row)

    def _add_flags(self, some: Numbered) -> None:
        of, t = some.operation, some.batch.t
        errors = given(some.batch.rows.column("err"))
        self.set_flag("errors", of if errors is None else of[errors])
        far = [np.flatnonzero((t >= LIMIT) | (t <= -LIMIT))]
        for name in ("delay_ns", "deadline_t", "t_call"):
            column = some.batch.rows.column(name)
            if column.null_count == len(column):
                continue
            values, ok = values_of(column), given(column)
            beyond = (values >= LIMIT) | (values <= -LIMIT)
            far.append(np.flatnonzero(beyond if ok is None else beyond & ok))
        for rows in far:
            self.set_flag("wild", of[rows])
        for function in (_REGISTER, _FORCE, _TRY):
            self.set_flag("points", of[some.rows.of(function, AT)])

    def _add_registrations(self, some: Numbered, row: Ints) -> None:
        of, t = some.operation, some.batch.t
        r = some.rows.of(_REGISTER, CALL)
        self._count("reg_n", of[r])
        self.first("reg_call", of[r], row[r])
        self.first("reg_t", of[r], t[r])
        self.last("reg_th", of[r], some.thread[r])
        self.most("reg_keys", of[r], np.diff(some.batch.key_from)[r])
        kept, values = some.some("delay_ns", r)
        self.last("reg_delay", of[kept], values)
        r = some.rows.of(_REGISTER, RET)
        self.first("reg_ret", of[r], row[r])
        self.last("reg_ret_t", of[r], t[r])
        r, out = some.some("out", r)
        self.last("reg_out", of[r], out)
        self._count("reg_no", of[r[out != 1]])

    def _add_forces(self, some: Numbered, row: Ints, call_row: Ints) -> None:
        of, t = some.operation, some.batch.t
        r = some.rows.of(_FORCE, CALL)
        self._count("force_n", of[r])
        self.least("stop_first", of[r], row[r])
        r, out = some.some("out", some.rows.of(_FORCE, RET))
        w = r[out == 1]
        self._count("win_n", of[w])
        self.least("win_first", of[w], call_row[w])
        self.most("win_call", of[w], call_row[w])
        self.least("won_first", of[w], row[w])
        self.last("win_ret", of[w], row[w])
        self.last("win_t", of[w], t[w])
        self.last("win_th", of[w], some.thread[w])
        w = r[out == 0]
        self.least("lost_call", of[w], call_row[w])
        self.last("lost_ret", of[w], row[w])

    def _add_tries(self, some: Numbered, row: Ints, call_row: Ints) -> None:
        of, t = some.operation, some.batch.t
        self._count("try_n", of[some.rows.of(_TRY, CALL)])
        returns = some.rows.of(_TRY, RET)
        r, out = some.some("out", returns)
        self._count("try_answers", of[r])
        w = r[out == 1]
        self._count("true_n", of[w])
        self.most("true_call", of[w], call_row[w])
        self.last("true_ret", of[w], row[w])
        self.least("true_t", of[w], t[w])
        self.last("true_th", of[w], some.thread[w])
        no = np.setdiff1d(returns, w, assume_unique=True)
        self.last("false_ret", of[no], row[no])

    def _add_callbacks(self, some: Numbered, row: Ints) -> None:
        of = some.operation
        for name, function in (("done", "on_complete"), ("exp", "on_expiration"), ("fire", "timer_fire")):
            r = some.rows.of(function, CALL, AT)
            self._count(f"{name}_n", of[r])
            self.last(f"{name}_call", of[r], row[r])
            self.last(f"{name}_th", of[r], some.thread[r])
            if name == "fire":
                self.last("fire_t", of[r], some.batch.t[r])
                self.least("fire_first", of[r], row[r])
                self.least("fire_least_t", of[r], some.batch.t[r])
            r = some.rows.of(function, RET, AT)
            self.last(f"{name}_ret", of[r], row[r])
            if name == "fire":
                self.last("fire_ret_t", of[r], some.batch.t[r])

    def _add_timer(self, some: Numbered, row: Ints, call_row: Ints) -> None:
        of, t = some.operation, some.batch.t
        r = some.rows.of("timer_add", CALL, AT)
        self._count("add_n", of[r])
        self.first("add_call", of[r], row[r])
        kept, values = some.some("delay_ns", r)
        self.most("add_delay", of[kept], values)
        r = some.rows.of("timer_add", RET)
        self.most("added_t", of[r], t[r])
        r = some.rows.of("timer_add", RET, AT)
        self.last("add_ret", of[r], row[r])
        self.last("add_ret_t", of[r], t[r])
        kept, values = some.some("deadline_t", some.rows.of("timer_add", CALL, RET, AT))
        self.most("deadline_t", of[kept], values)
        self.least("deadline_least_t", of[kept], values)
        r = some.rows.of("timer_cancel", CALL, AT)
        self._count("cancel_n", of[r])
        self.first("cancel_call", of[r], row[r])
        self.last("cancel_th", of[r], some.thread[r])
        self.least("stop_first", of[r], row[r])
        r = some.rows.of("timer_cancel", RET, AT)
        self.last("cancel_ret", of[r], row[r])
        kept, values = some.some("out", r)
        r = np.setdiff1d(r, kept[values == 0], assume_unique=True)
        self._count("stopped_n", of[r])
        self.last("stopped_t", of[r], t[r])
        self.least("stopped_call", of[r], np.minimum(call_row[r], row[r]))
        r = some.rows.of("timer_cancel", RET)
        self.set_flag("raced", of[r[some.batch.i[r] > some.batch.c[r] + 1]])

    def _add_points(self, some: Numbered, row: Ints) -> None:
        of = some.operation
        r = some.rows.of("ready", AT)
        self._count("ready_n", of[r])
        self.first("ready", of[r], row[r])
        kept, values = some.some("t_call", r)
        self.most("ready_t", of[kept], values)
        self._count("cut_n", of[some.rows.of("cancelled", AT)])
