"""What the screen must see in order, a key's checks and a thread's calls, in stretches of a run.

A window over a whole key or thread would be one task, however much of a trace is one key or one thread. So a run is cut
into stretches of `STRETCH` positions: a window looks at a key or a thread within one stretch, and what a stretch must
know of the others comes from one row each of them.
"""

from __future__ import annotations

from typing import Final

from benchmarks.duckdb_screen import HASH

STRETCH: Final = 1 << 16
"""Positions of a run that one group of a window holds at most: of a billion events in a run, 15 thousand rows are left
for a key or a thread."""

_BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
"""The rows, or stretches, before this one in the order of the window, which it carries on from."""
_SO_FAR: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def key_events_sql() -> str:
    """The few events that O4's join by key looks at, and few columns of them: read once, used several times."""
    return """
SELECT run_key, id, i, c, f, ph, keys, err FROM events
WHERE f IN ('ready', 'check_and_complete') OR (f = 'try_complete_else_watch' AND ph = 'call')"""


def ready_sql() -> str:
    """When each operation became ready. (run_key, id, ready_i)."""
    return "SELECT run_key, id, min(i) AS ready_i FROM key_events WHERE f = 'ready' GROUP BY run_key, id"


def first_checks_sql() -> str:
    """O4's join by key: for each operation that became ready and each of its keys, the earliest return among the checks
    of that key that started after that. (run_key, id, key, ret_i), from `key_events` and `readies`.

    Along a key it is the least return from the end of the run on: that of the operation's stretch from a window, that
    of all later stretches (`later`) from one row a stretch.
    """
    place = f"(from_i // {STRETCH})"
    return f"""
WITH moments AS (
  SELECT run_key, key, {place} AS stretch, id, from_i, CAST(NULL AS BIGINT) AS ret_i FROM (
    SELECT g.run_key, g.id, g.keys, o.ready_i AS from_i FROM key_events g
    JOIN readies o ON g.run_key = o.run_key AND g.id = o.id
    WHERE g.f = 'try_complete_else_watch' AND g.ph = 'call' AND o.ready_i IS NOT NULL
  ) AS w CROSS JOIN unnest(list_distinct(w.keys)) AS u(key)
  UNION ALL
  SELECT run_key, key, {place} AS stretch, CAST(NULL AS STRING) AS id, from_i, ret_i FROM (
    SELECT a.run_key, a.keys, a.i AS from_i, b.i AS ret_i FROM key_events a
    JOIN key_events b ON a.run_key = b.run_key AND a.i = b.c
    WHERE a.f = 'check_and_complete' AND a.ph = 'call' AND b.f = 'check_and_complete' AND b.ph = 'ret' AND b.err IS NULL
  ) AS k CROSS JOIN unnest(list_distinct(k.keys)) AS u(key)
), near AS (
  SELECT run_key, key, stretch, id,
    min(ret_i) OVER (PARTITION BY run_key, key, stretch ORDER BY from_i DESC {_SO_FAR}) AS ret_i
  FROM moments
), later AS (
  SELECT run_key, key, stretch,
    min(ret_i) OVER (PARTITION BY run_key, key ORDER BY stretch DESC {_BEFORE}) AS ret_i
  FROM (SELECT run_key, key, stretch, min(ret_i) AS ret_i FROM moments GROUP BY run_key, key, stretch) AS m
)
SELECT run_key, id, key, ret_i FROM (
  SELECT n.run_key, n.id, n.key, least(n.ret_i, l.ret_i) AS ret_i FROM near n
  JOIN later l ON n.run_key = l.run_key AND n.key = l.key AND n.stretch = l.stretch WHERE n.id IS NOT NULL
) AS f WHERE ret_i IS NOT NULL"""


def first_return_sql() -> str:
    """The earliest of those returns of all keys of an operation: (run_key, id, check_ret), from `first_checks`."""
    return "SELECT run_key, id, min(ret_i) AS check_ret FROM first_checks GROUP BY run_key, id"


def check_counts_sql() -> str:
    """O7's counting half: the answered checks of each run, and how many of them may have counted wrong: (run_key,
    checks, doubtful), from `events`.

    Simple is a check whose thread made nothing but tries inside it, one after the other, each returned: its count is
    the number of those that returned true. Whatever is nested or unpaired is odd, and a check with something odd
    inside is doubtful. A check that began in an earlier stretch is the first of its stretch that ends there, so it is
    told from what the stretches before came to; a try that was called last in one and returned first in the next is
    paired at their seam.
    """
    answered = "is_check AND is_ret AND out IS NOT NULL"
    wrong = (
        "NOT coalesce(check_before = {0}c AND call_before = {0}c AND {0}odd = odd_before "
        "AND {0}trues - trues_before = {0}out, FALSE)"
    )
    before = "max(check_i) OVER pre AS check_before, max(call_i) OVER pre AS call_before"
    return f"""
SELECT run_key, sum(checks + carried) AS checks,
  sum(doubtful + CASE WHEN carried > 0 AND {wrong.format("first_")} THEN 1 ELSE 0 END) AS doubtful
FROM (
  SELECT run_key, checks, carried, doubtful, first_c, first_out, {before},
    trues_sum + first_trues AS first_trues, max(trues_sum + check_trues) OVER pre AS trues_before,
    odd_sum + first_odd AS first_odd, max(odd_sum + check_odd) OVER pre AS odd_before
  FROM (
    SELECT *, coalesce(sum(trues) OVER pre, 0) AS trues_sum,
      coalesce(sum(odd) OVER pre, 0) + seam + coalesce(sum(seam) OVER pre, 0) AS odd_sum
    FROM (
      SELECT *, CASE WHEN began_c = lag(ended_i) OVER w THEN 0 ELSE began + coalesce(lag(ended) OVER w, 0) END AS seam
      FROM ({_stretches_sql(answered, wrong.format(""), before)}) AS a
      WINDOW w AS (PARTITION BY run_key, thread ORDER BY stretch)
    ) AS b WINDOW pre AS (PARTITION BY run_key, thread ORDER BY stretch {_BEFORE})
  ) AS d WINDOW pre AS (PARTITION BY run_key, thread ORDER BY stretch {_BEFORE})
) AS g GROUP BY run_key"""


def _stretches_sql(answered: str, wrong: str, before: str) -> str:
    """One row a thread and stretch that it has rows in: the checks that lie in it and how many are doubtful, how many
    rows are odd and how many tries returned true, both in all and at its last check, and what its seams need."""
    group = "PARTITION BY run_key, thread, stretch ORDER BY i"
    open_first = "is_try AND is_ret AND i_before IS NULL"
    open_last = "is_try AND is_call AND i_after IS NULL"
    paired = "coalesce(is_try AND ((is_ret AND try_before = c) OR (is_call AND try_after = i)), FALSE)"
    in_it = f"({answered}) AND check_before IS NOT NULL"
    carried = f"({answered}) AND check_before IS NULL"
    return f"""
SELECT run_key, thread, stretch,
  count(*) FILTER (WHERE {in_it}) AS checks, count(*) FILTER (WHERE {in_it} AND {wrong}) AS doubtful,
  max(trues) AS trues, max(odd) AS odd, max(check_i) AS check_i, max(call_i) AS call_i,
  max(trues) FILTER (WHERE is_check) AS check_trues, max(odd) FILTER (WHERE is_check) AS check_odd,
  count(*) FILTER (WHERE {carried}) AS carried, max(c) FILTER (WHERE {carried}) AS first_c,
  max(out) FILTER (WHERE {carried}) AS first_out, max(trues) FILTER (WHERE {carried}) AS first_trues,
  max(odd) FILTER (WHERE {carried}) AS first_odd,
  count(*) FILTER (WHERE {open_first}) AS began, max(c) FILTER (WHERE {open_first}) AS began_c,
  count(*) FILTER (WHERE {open_last}) AS ended, max(i) FILTER (WHERE {open_last}) AS ended_i
FROM (
  SELECT *, {before},
    max(CASE WHEN is_check THEN trues END) OVER pre AS trues_before,
    max(CASE WHEN is_check THEN odd END) OVER pre AS odd_before
  FROM (
    SELECT *, CASE WHEN is_check THEN i END AS check_i, CASE WHEN is_check AND is_call THEN i END AS call_i,
      sum(CASE WHEN is_try AND is_ret AND out = 1 THEN 1 ELSE 0 END) OVER ({group} {_SO_FAR}) AS trues,
      sum(CASE WHEN is_check OR {paired} OR ({open_first}) OR ({open_last}) THEN 0 ELSE 1 END)
        OVER ({group} {_SO_FAR}) AS odd
    FROM (
      SELECT *, lag(i) OVER w AS i_before, lead(i) OVER w AS i_after,
        lag(CASE WHEN is_try AND is_call THEN i END) OVER w AS try_before,
        lead(CASE WHEN is_try AND is_ret THEN c END) OVER w AS try_after
      FROM (
        SELECT run_key, {HASH.format("th")} AS thread, (i // {STRETCH}) AS stretch, i, c,
          out, f = 'check_and_complete' AS is_check, f = 'try_complete' AS is_try, ph = 'call' AS is_call,
          ph = 'ret' AS is_ret
        FROM events WHERE f IN ('try_complete', 'check_and_complete', 'try_complete_else_watch')
      ) AS e WINDOW w AS ({group})
    ) AS l
  ) AS s WINDOW pre AS ({group} {_BEFORE})
) AS p GROUP BY run_key, thread, stretch"""
