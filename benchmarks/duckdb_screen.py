"""The screen: one pass of plain SQL that marks every operation that might break a clause.

It may over-mark, it must never under-mark; whatever it marks is judged by the clauses themselves. For an operation that
it does not mark it says how many occasions each clause had. An operation is *plain* if all its calls returned, none
raised, and nothing came twice; an operation that is not plain is always marked, which keeps the rules below short.

Threads are compared by a 64-bit hash of their names. Two threads of one hash would be taken for one: of a million
threads with a chance of one in thirty million.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from purgatorio_spec.trace.record import FUNCTIONS, PHASES

HASH: Final = "hash(hash({}))"
"""Twice, for DuckDB combines several arguments by XOR, which would cancel out."""
CLAUSES_OF_OPERATIONS: Final = (
    "O1", "O2", "O3", "O4", "O5", "O6", "O7", "T1", "T2", "T3", "T4",
)  # fmt: skip
NEVER: Final = (1 << 63) - 1
LIMIT: Final = 1 << 60
"""Times beyond this (36 years in nanoseconds) are cut to it, so that no sum of them overflows, and their operation is
marked; so is one with positions beyond it."""

_RET = "ph = 'ret'"
_CALL = "ph = 'call'"


def _of(f: str, condition: str = "TRUE") -> str:
    return f"f = '{f}' AND {condition}"


_REGISTERED, _FORCED, _TRIED = "try_complete_else_watch", "force_complete", "try_complete"
_WON = _of(_FORCED, "ph = 'ret' AND out = 1")
_TRUE = _of(_TRIED, "ph = 'ret' AND out = 1")
_CANCELLED = _of("timer_cancel", "ph <> 'call' AND coalesce(out, 1) <> 0")
_LOST = _of(_FORCED, "ph = 'ret' AND out = 0")

_AGGREGATES: Final[dict[str, tuple[str, str]]] = {
    "calls": ("count(*)", _CALL),
    "rets": ("count(*)", _RET),
    "unpaired": ("bit_xor(pair)", "ph <> 'at'"),
    "errors": ("count(err)", "TRUE"),
    "wild": (
        "count(*)",
        f"i >= {LIMIT} OR greatest(t, t_call, deadline_t, delay_ns) >= {LIMIT} OR "
        f"least(t, t_call, deadline_t, delay_ns) <= -{LIMIT}",
    ),
    "points": ("count(*)", f"ph = 'at' AND f IN ('{_REGISTERED}', '{_FORCED}', '{_TRIED}')"),
    "reg_n": ("count(*)", _of(_REGISTERED, _CALL)),
    "reg_call": ("min(i)", _of(_REGISTERED, _CALL)),
    "reg_t": ("min(t)", _of(_REGISTERED, _CALL)),
    "reg_delay": ("max(delay_ns)", _of(_REGISTERED, _CALL)),
    "reg_keys": ("max(n_keys)", _of(_REGISTERED, _CALL)),
    "reg_ret": ("min(i)", _of(_REGISTERED, _RET)),
    "reg_ret_t": ("max(t)", _of(_REGISTERED, _RET)),
    "reg_out": ("max(out)", _of(_REGISTERED, _RET)),
    "reg_no": ("count(*)", _of(_REGISTERED, "ph = 'ret' AND out <> 1")),
    "reg_th": ("max(thread)", _of(_REGISTERED, _CALL)),
    "force_n": ("count(*)", _of(_FORCED, _CALL)),
    "win_n": ("count(*)", _WON),
    "win_first": ("min(c)", _WON),
    "win_call": ("max(c)", _WON),
    "win_ret": ("max(i)", _WON),
    "win_t": ("max(t)", _WON),
    "win_th": ("max(thread)", _WON),
    "lost_call": ("min(c)", _LOST),
    "lost_ret": ("max(i)", _LOST),
    "try_n": ("count(*)", _of(_TRIED, _CALL)),
    "try_order": ("string_agg(ph, ' ' ORDER BY i)", f"f = '{_TRIED}'"),
    "try_answers": ("count(out)", _of(_TRIED, _RET)),
    "true_n": ("count(*)", _TRUE),
    "true_call": ("max(c)", _TRUE),
    "true_ret": ("max(i)", _TRUE),
    "true_t": ("min(t)", _TRUE),
    "true_th": ("max(thread)", _TRUE),
    "false_ret": ("max(i)", _of(_TRIED, "ph = 'ret' AND coalesce(out, 0) <> 1")),
    "done_n": ("count(*)", _of("on_complete", "ph <> 'ret'")),
    "done_call": ("max(i)", _of("on_complete", "ph <> 'ret'")),
    "done_ret": ("max(i)", _of("on_complete", "ph <> 'call'")),
    "done_th": ("max(thread)", _of("on_complete", "ph <> 'ret'")),
    "exp_n": ("count(*)", _of("on_expiration", "ph <> 'ret'")),
    "exp_call": ("max(i)", _of("on_expiration", "ph <> 'ret'")),
    "exp_ret": ("max(i)", _of("on_expiration", "ph <> 'call'")),
    "exp_th": ("max(thread)", _of("on_expiration", "ph <> 'ret'")),
    "fire_n": ("count(*)", _of("timer_fire", "ph <> 'ret'")),
    "fire_call": ("max(i)", _of("timer_fire", "ph <> 'ret'")),
    "fire_ret": ("max(i)", _of("timer_fire", "ph <> 'call'")),
    "fire_t": ("max(t)", _of("timer_fire", "ph <> 'ret'")),
    "fire_ret_t": ("max(t)", _of("timer_fire", "ph <> 'call'")),
    "fire_th": ("max(thread)", _of("timer_fire", "ph <> 'ret'")),
    "add_n": ("count(*)", _of("timer_add", "ph <> 'ret'")),
    "add_call": ("min(i)", _of("timer_add", "ph <> 'ret'")),
    "add_ret": ("max(i)", _of("timer_add", "ph <> 'call'")),
    "add_ret_t": ("max(t)", _of("timer_add", "ph <> 'call'")),
    "add_delay": ("max(delay_ns)", _of("timer_add", "ph <> 'ret'")),
    "deadline_t": ("max(deadline_t)", "f = 'timer_add'"),
    "deadline_least_t": ("min(deadline_t)", "f = 'timer_add'"),
    "cancel_n": ("count(*)", _of("timer_cancel", "ph <> 'ret'")),
    "cancel_call": ("min(i)", _of("timer_cancel", "ph <> 'ret'")),
    "stopped_call": ("min(coalesce(c, i))", _CANCELLED),
    "cancel_ret": ("max(i)", _of("timer_cancel", "ph <> 'call'")),
    "cancel_th": ("max(thread)", _of("timer_cancel", "ph <> 'ret'")),
    "stopped_n": ("count(*)", _CANCELLED),
    "stopped_t": ("min(t)", _CANCELLED),
    "ready_n": ("count(*)", "f = 'ready'"),
    "ready_i": ("min(i)", "f = 'ready'"),
    "ready_t": ("max(t_call)", "f = 'ready'"),
    "cut_n": ("count(*)", "f = 'cancelled'"),
}


_CODES: Final = {name: at for names in (PHASES, FUNCTIONS) for at, name in enumerate(names)}
_TIMES: Final = ("t", "delay_ns", "deadline_t", "t_call")


def _limited(name: str) -> str:
    return f"CASE WHEN {name} > {LIMIT} THEN {LIMIT} WHEN {name} < -{LIMIT} THEN -{LIMIT} ELSE {name} END AS {name}"


def _code(name: str, values: tuple[str, ...]) -> str:
    """A text column as numbers: sixty comparisons of each row are cheaper so."""
    cases = " ".join(f"WHEN '{value}' THEN {at}" for at, value in enumerate(values))
    return f"CASE {name} {cases} END AS {name}"


def _coded(condition: str) -> str:
    """A condition over the columns that `_code` made."""
    return re.sub(r"'(\w+)'", lambda found: str(_CODES[found[1]]), condition)


def operations_sql() -> str:
    """One row an operation or task: numbers only, so that the aggregation needs no sort."""
    columns = ",\n  ".join(
        f"{what} FILTER (WHERE {_coded(where)}) AS {name}" for name, (what, where) in _AGGREGATES.items()
    )
    return f"""
SELECT run_key, id,
  {columns}
FROM (
  SELECT run_key, id, i, {_code("ph", PHASES)}, {_code("f", FUNCTIONS)}, c, out, err,
    {", ".join(_limited(name) for name in _TIMES)},
    {HASH.format("th")} AS thread, len(keys) AS n_keys,
    {HASH.format("th, f, coalesce(c, i)")} AS pair
  FROM events WHERE id IS NOT NULL
) AS e GROUP BY run_key, id"""


_CONTAINED = "win_th = done_th AND win_call < done_call AND done_ret <= win_ret"
_BY_EXPIRY = "(fire_n = 1 AND win_th = fire_th AND fire_call < win_call AND win_ret <= fire_ret)"
_IN_TIME = "deadline_t - early_ns"

RULES: Final[Mapping[str, tuple[str, str]]] = {
    "O1": (
        "force_n > 0 OR done_n > 0",
        f"win_n <> done_n OR (win_n = 1 AND NOT ({_CONTAINED})) "
        "OR coalesce(lost_call < done_call AND done_ret < lost_ret, FALSE)",
    ),
    "O2": (
        "done_n > 0 OR true_n > 0",
        "true_n > 0 AND records_ready AND (ready_i IS NULL OR coalesce(true_t < ready_t, FALSE))",
    ),
    "O3": (
        "exp_n > 0",
        f"(exp_n = 0 AND coalesce({_BY_EXPIRY}, FALSE)) OR "
        "exp_n > 0 AND NOT coalesce(done_n = 1 AND done_ret < exp_call AND done_th = exp_th AND (NOT records_fire OR "
        "(fire_n = 1 AND fire_th = exp_th AND fire_call < done_call AND exp_ret <= fire_ret)), FALSE)",
    ),
    "O4": (
        "reg_n = 1 AND ready_i IS NOT NULL AND (check_ret IS NOT NULL OR ready_i < reg_call)",
        "reg_n = 1 AND ready_i IS NOT NULL AND ("
        f"(ready_i < reg_call AND coalesce(win_call, {NEVER}) > reg_ret) OR (check_ret IS NOT NULL AND CASE WHEN "
        f"claimed_on_return THEN coalesce(win_call, {NEVER}) > greatest(check_ret, reg_ret) "
        f"ELSE win_n = 0 OR coalesce({_BY_EXPIRY}, FALSE) END))",
    ),
    "O5": (
        "reg_out = 0 AND reg_delay IS NOT NULL AND cut_n = 0 AND win_n = 1",
        "reg_out = 0 AND reg_delay IS NOT NULL AND cut_n = 0 AND win_n = 0 AND "
        "(NOT whole OR coalesce(least(deadline_t, reg_t + reg_delay) <= end_t, TRUE))",
    ),
    "O6": (
        "try_n > 1 OR (try_n > 0 AND done_n > 0 AND NOT completes_beside)",
        "coalesce(contains(try_order, 'call call'), FALSE) OR "
        "(done_n > 0 AND NOT completes_beside AND "
        "(coalesce(false_ret > done_call, FALSE) OR true_n > 1 OR (true_n = 1 AND true_th <> done_th)))",
    ),
    "O7": (
        "reg_out IS NOT NULL OR try_answers > 0",
        "(reg_out IS NOT NULL AND (reg_out = 1) <> coalesce("
        "win_th = reg_th AND reg_call < win_call AND win_ret <= reg_ret, FALSE)) OR true_n > 1 OR (true_n = 1 AND NOT "
        "coalesce(win_n = 1 AND win_th = true_th AND true_call < win_call AND win_ret <= true_ret, FALSE)) "
        "OR coalesce(false_ret > win_ret, FALSE)",
    ),
    "T1": (
        "fire_n = 1 AND add_n = 1 AND deadline_t IS NOT NULL AND add_call < fire_call",
        "fire_n = 1 AND deadline_t IS NOT NULL AND fire_t < deadline_t - early_ns",
    ),
    "T2": (
        "fire_n = 1 AND add_n = 1 AND NOT coalesce(stopped_call < fire_call, FALSE) AND deadline_t IS NOT NULL "
        "AND add_ret_t IS NOT NULL "
        "AND NOT coalesce(win_call < fire_call, FALSE)",
        "fire_n = 1 AND fire_t > greatest(deadline_t, add_ret_t, add_ret_t + coalesce(add_delay, 0)) + late_ns",
    ),
    "T3": (
        "add_n = 1 AND fire_n = 1",
        "(add_n = 0 AND fire_n > 0) OR (add_n = 1 AND (coalesce(fire_call < add_call, FALSE) OR (fire_n = 0 AND "
        "(stopped_n = 0 OR coalesce(cancel_ret < add_call, FALSE)) AND cut_n = 0 AND win_n = 0 AND "
        "deadline_t IS NOT NULL AND (NOT whole OR deadline_t <= end_t))))",
    ),
    "T4": (
        f"fire_n = 0 AND deadline_t IS NOT NULL AND (coalesce(win_t < {_IN_TIME} AND (add_ret < win_call OR "
        f"reg_ret_t < {_IN_TIME}), FALSE) OR (stopped_n = 1 AND "
        f"cancel_call > add_ret AND (barrier OR stopped_t < {_IN_TIME})))",
        "fire_n > 0 AND (stopped_n > 0 OR win_n > 0) AND NOT (win_n = 0 AND stopped_n = 0) AND NOT coalesce("
        f"(win_n = 0 OR {_BY_EXPIRY}) AND (stopped_n = 0 OR (cancel_th = fire_th AND fire_call < cancel_call "
        "AND cancel_ret <= fire_ret)), FALSE)",
    ),
}

"""By clause: when a plain operation is an occasion for it, and when it may have broken it."""

NOT_PLAIN: Final[Mapping[str, str]] = {
    "a call without its return, or a return without its call": "calls <> rets OR unpaired <> 0",
    "an exception": "errors > 0",
    "a time beyond the limit": "wild > 0",
    "a call recorded as a point": "points > 0",
    "registered twice": "reg_n > 1",
    "won twice": "win_n > 1",
    "completed without a winner": "done_n > win_n",
    "expired twice": "exp_n > 1",
    "fired twice": "fire_n > 1",
    "added twice": "add_n > 1",
    "two deadlines": "coalesce(deadline_least_t < deadline_t, FALSE)",
    "timer cancelled twice": "cancel_n > 1",
    "cancelled by key or shut down": "cut_n > 0",
}
"""When an operation is not plain."""

_SUMMARY: Final[dict[str, str]] = {
    "registered_call_i": f"coalesce(reg_call, {NEVER})",
    "registered_ret_i": f"coalesce(reg_ret, {NEVER})",
    "claim_call_i": f"coalesce(win_call, {NEVER})",
    "stopped_i": f"coalesce(win_ret, {NEVER})",
    "left_i": f"coalesce(win_ret, {NEVER})",
    "entries": "CAST(coalesce(reg_keys, 0) AS BIGINT)",
    "watches": "CAST(CASE WHEN reg_out = 0 AND cut_n = 0 AND "
    f"coalesce(win_call, {NEVER}) > reg_ret THEN 1 ELSE 0 END AS BIGINT)",
    "added_call_i": f"coalesce(add_call, {NEVER})",
    "added_ret_i": f"coalesce(add_ret, {NEVER})",
    "disarmed_first_i": f"least(coalesce(cancel_call, {NEVER}), coalesce(fire_call, {NEVER}), "
    f"coalesce(win_call, {NEVER}))",
    "disarmed_surely_i": f"least(CASE WHEN stopped_n = 1 AND cancel_call > add_ret THEN cancel_ret ELSE {NEVER} END, "
    f"CASE WHEN fire_call > add_call THEN fire_call ELSE {NEVER} END)",
    "raced": "CAST(CASE WHEN cancel_n > 0 AND cancel_ret > cancel_call + 1 THEN 1 ELSE 0 END AS BIGINT)",
    "deadline_t": f"CASE WHEN add_n = 0 THEN {NEVER} ELSE coalesce(deadline_t, {NEVER}) END",
    "out_t": f"coalesce(deadline_t, reg_t + coalesce(reg_delay, 0), {NEVER})",
    "done_t": f"coalesce(greatest(fire_ret_t, win_t), {NEVER})",
}
"""`purgatorio_spec.history.summary.Summary` of a plain operation."""


_IN_RETRY_LOOP: Final = "(NOT claimed_on_return AND ready_n > 0) OR cut_n > 0"
_INSIDE: Final = (
    "coalesce(reg_no > 0 AND reg_call < win_call "
    "AND (reg_n > 1 OR win_first < coalesce(reg_ret, win_first + 1)), FALSE)"
)
_KEPT: Final = (
    "ready_i", "add_n", "fire_n", "cancel_n", "cancel_call", "deadline_t", "add_ret_t", "win_call", "fire_call",
    "fire_t",
)  # fmt: skip
"""Columns of `operations` that later steps need: the explanation of what is marked, and the lateness."""


def marks_sql() -> str:
    """One row an operation from `operations`, `first_returns` and `runs`: `marked`, the occasions of each clause,
    its summary.

    The judgement of a marked operation may turn on what its threads did around it: if `retried` (O4's retry loop, or a
    key that gave it back), or if a check was made from within a registration that answered false and yet holds a
    completion (O7): `inside` says that such a check would lie between `inside_from` and `inside_to`, on the thread
    `inside_th` (null: any).
    """
    broken = " OR ".join(f"(judges_{name} AND ({rule}))" for name, (_, rule) in RULES.items())
    odd = " OR ".join(f"({condition})" for condition in NOT_PLAIN.values())
    occasions = ",\n  ".join(
        f"CASE WHEN judges_{name} AND ({occasion}) THEN 1 ELSE 0 END AS occ_{name}"
        for name, (occasion, _) in RULES.items()
    )
    summary = ",\n  ".join(f"{text} AS s_{name}" for name, text in _SUMMARY.items())
    return f"""
SELECT o.run_key, o.id,
  coalesce(dropped OR {odd} OR {broken}, TRUE) AS marked,
  {_IN_RETRY_LOOP} AS retried,
  {_INSIDE} AS inside,
  reg_call AS inside_from,
  CASE WHEN reg_n = 1 THEN coalesce(reg_ret, {NEVER}) ELSE {NEVER} END AS inside_to,
  CASE WHEN reg_n = 1 THEN reg_th END AS inside_th,
  {", ".join(f"o.{name}" for name in _KEPT)},
  {occasions},
  {summary}
FROM operations o
JOIN runs r ON o.run_key = r.run_key
LEFT JOIN first_returns k ON o.run_key = k.run_key AND o.id = k.id"""
