"""Summaries of a run's operations and tasks: columns of numbers, computed from the events so far.

A column has one number for each operation or task: a first, last, smallest or largest value, or a count. So one vector
operation for each column adds a batch. A position is a row number of the run. It has 32 bits if all positions fit.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from purgatorio_spec.fast_path.paged import Pages
from purgatorio_spec.history.block import LIMIT, Numbers
from purgatorio_spec.trace.coded import AT, CALL, RET, Codes, Flags, Ints, Numbered, code_of, given, values_of
from purgatorio_spec.trace.record import SINCE_2

_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
MAX_ROWS: Final = np.iinfo(np.int32).max
"""From this number of rows on, row numbers have 64 bits."""

_REGISTER, _FORCE, _TRY = "try_complete_else_watch", "force_complete", "try_complete"
_COUNTS: Final = (
    "reg_n", "reg_no", "force_n", "win_n", "try_n", "try_answers", "true_n", "done_n", "exp_n", "fire_n", "add_n",
    "cancel_n", "stopped_n", "cut_n", "reg_keys",
)  # fmt: skip
_ROWS: Final = (
    "reg_call", "reg_ret", "win_call", "win_ret", "lost_ret", "true_call", "true_ret", "false_ret", "done_call",
    "done_ret", "exp_call", "exp_ret", "fire_call", "fire_ret", "add_call", "add_ret", "cancel_call", "cancel_ret",
    "ready", "check_ret", "last",
)  # fmt: skip
"""Columns of rows. A missing row is -1."""
_LEAST_ROWS: Final = (
    "stopped_call", "win_first", "lost_call", "lost_first", "stop_first", "fire_first", "won_first",
)  # fmt: skip
"""Columns of rows. A missing row is the highest number."""
_TIMES: Final = (
    "reg_t", "reg_delay", "reg_ret_t", "reg_out", "win_t", "fire_t", "add_ret_t", "add_delay", "deadline_t",
    "stopped_t", "ready_t", "added_t", "fire_ret_t",
)  # fmt: skip
_LEAST_TIMES: Final = ("true_t", "deadline_least_t", "fire_least_t")
_THREADS: Final = ("reg_th", "win_th", "true_th", "done_th", "exp_th", "fire_th", "cancel_th")
FLAGS: Final = ("unpaired", "errors", "wild", "points", "raced", "trying", "tried_within", "repeats")
"""The first four are reasons why an operation is irregular. `raced`: another event was recorded during its cancel.
`trying`: its last try is open. `tried_within`: a try began inside a try. `repeats`: a periodic or a reset task."""

_BESIDE: Final = dict.fromkeys((*_ROWS[:-1], *_LEAST_ROWS), "last") | dict.fromkeys(
    {*_TIMES, *_LEAST_TIMES} - {"reg_t", "reg_delay", "reg_out", "add_delay"}, "reg_t"
)
"""For each column, a column with near values: rows are near the last row, times near the time of the registration."""


class Operations(Pages):
    """The columns by operation number. Number 0 is no operation, and its values have no meaning. The list of
    each operation has the keys of its first registration, including duplicates."""

    def __init__(self) -> None:
        empty: dict[str, np.generic] = {name: np.int32(0) for name in (*_COUNTS, *_THREADS)}
        empty |= {name: np.int32(-1) for name in _ROWS}
        empty |= {name: np.int32(MAX_ROWS) for name in _LEAST_ROWS}
        empty |= {name: np.int64(_LOWEST) for name in _TIMES}
        empty |= {name: np.int64(_HIGHEST) for name in _LEAST_TIMES}
        empty |= {name: np.bool_(False) for name in FLAGS}
        super().__init__(empty, _BESIDE)
        self.make_room(1)

    def widen(self) -> None:
        for name in (*_ROWS, *_LEAST_ROWS):
            if self._empty[name].dtype == np.int64:
                return
            column = self._columns[name].astype(np.int64)
            if name in _LEAST_ROWS:
                column[column == MAX_ROWS] = _HIGHEST
                self._empty[name] = np.int64(_HIGHEST)
            else:
                self._empty[name] = np.int64(-1)
            self._columns[name] = column

    def column(self, name: str) -> Ints:
        """The column `name`, indexed by slot (see `Pages`), with 32 bits if this is enough."""
        return cast("Ints", self._columns[name])

    def numbers(self, name: str, of: slice | Ints) -> Numbers:
        column = self._columns[name][of]
        ok = np.ones(len(column), bool) if name in _COUNTS else column != self._empty[name]
        return Numbers(column.astype(np.int64), ok)

    def flags(self, name: str, of: slice | Ints) -> Flags:
        return self._columns[name][of].astype(bool)

    def set_flag(self, name: str, slots: Ints) -> None:
        self._columns[name][slots] = True

    def _count(self, name: str, slots: Ints) -> None:
        np.add.at(self._columns[name], slots, np.int32(1))

    def last(self, name: str, slots: Ints, values: Ints | Codes) -> None:
        """Store the value of the last row for each slot. Rows are in order, and numpy keeps the last repeated value."""
        self._columns[name][slots] = values

    def first(self, name: str, slots: Ints, values: Ints) -> None:
        column = self._columns[name]
        new = column[slots] == self._empty[name]
        column[slots[new][::-1]] = values[new][::-1]

    def most(self, name: str, slots: Ints, values: Ints | Codes) -> None:
        column = self._columns[name]
        np.maximum.at(column, slots, values.astype(column.dtype, copy=False))

    def least(self, name: str, slots: Ints, values: Ints) -> None:
        column = self._columns[name]
        np.minimum.at(column, slots, values.astype(column.dtype, copy=False))

    def add(self, some: Numbered, of: Ints, call_row: Ints) -> None:
        """Add a batch. For each row, `of` is the slot of its operation, and `call_row` is the run's row of its call
        (see `OpenCalls.pair`)."""
        if some.first + len(some) >= MAX_ROWS:
            self.widen()
        row = np.arange(some.first, some.first + len(some))
        self.last("last", of, row)
        self._add_flags(some, of)
        self._add_registrations(some, of, row)
        self._add_forces(some, of, row, call_row)
        self._add_tries(some, of, row, call_row)
        self._add_callbacks(some, of, row)
        self._add_timer(some, of, row, call_row)
        self._add_points(some, of, row)

    def _add_flags(self, some: Numbered, of: Ints) -> None:
        t = some.batch.t
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
        for function in SINCE_2:
            self.set_flag("repeats", of[some.rows.of(function, CALL, AT)])
        for function in (_REGISTER, _FORCE, _TRY):
            self.set_flag("points", of[some.rows.of(function, AT)])

    def _add_registrations(self, some: Numbered, of: Ints, row: Ints) -> None:
        t = some.batch.t
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

    def _add_forces(self, some: Numbered, of: Ints, row: Ints, call_row: Ints) -> None:
        t = some.batch.t
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
        self.least("lost_first", of[w], row[w])

    def _add_tries(self, some: Numbered, of: Ints, row: Ints, call_row: Ints) -> None:
        t = some.batch.t
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
        r = some.rows.of(_TRY, CALL, RET)
        r = r[np.argsort(of[r], kind="stable")]
        begins = some.batch.code[r] == code_of(_TRY, CALL)
        follows = np.diff(of[r], prepend=-1) == 0
        within = np.where(follows, np.roll(begins, 1), self.flags("trying", of[r]))
        self.set_flag("tried_within", of[r][begins & within])
        self.last("trying", of[r], begins)

    def _add_callbacks(self, some: Numbered, of: Ints, row: Ints) -> None:
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

    def _add_timer(self, some: Numbered, of: Ints, row: Ints, call_row: Ints) -> None:
        t = some.batch.t
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

    def _add_points(self, some: Numbered, of: Ints, row: Ints) -> None:
        r = some.rows.of("ready", AT)
        self.first("ready", of[r], row[r])
        kept, values = some.some("t_call", r)
        self.most("ready_t", of[kept], values)
        self._count("cut_n", of[some.rows.of("cancelled", AT)])
