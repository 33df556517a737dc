"""Makes a trace from a user's log: JSON lines, CSV or Parquet. A `LogMapping` says what its columns mean.

The log has the times at which requests were enqueued, completed by an event, or timed out. It may also record the
events that requests wait for (such as an append), each with a time and a key. The trace has the profile `request-log`:

- A completion becomes a `force_complete` with its `on_complete`.
- A time-out becomes a `timer_fire` that contains a `force_complete` with its `on_complete`.
- If a client gave its request up, the request is `cancelled` then.
- If the log records events, the completion is inside a `try_complete` that returns 1.
- An event of a key becomes a `check_and_complete` that starts at the event and returns `answer_ms` later (the promise).
  Each request that waits on the key is `ready` from the time of the event.

So the clause O1 finds requests that were answered twice. O2 finds answers without an event of the key, and O4 finds
requests that an event did not answer in time. O5 finds requests that were never answered, T1 finds early time-outs, and
T2 finds late time-outs or answers. If the log lacks data for a clause, the clause is SKIPPED, and the result names the
missing data.

`rows` reads the file as rows, and `points` makes points of a row. `table` holds the points in DuckDB. `repair` refuses
or corrects what is wrong with them, and `events` makes the events of the trace. `conversion` does all of this in turn.

Memory: DuckDB reads the file in batches, sorts the events by time (on disk if there are many), and checks the file.
Besides the batches, memory holds only the requests that wait at the current place of the log.
"""
