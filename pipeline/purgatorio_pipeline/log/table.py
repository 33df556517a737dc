"""The points of a log in a database on disk. DuckDB sorts them, and answers the questions of `repair`."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from purgatorio_spec.trace.convert import CannotConvert

BATCH_ROWS: Final = 20_000
LEFT_OUT: Final = "left out"
"""A request that must be left out."""
UNKNOWN: Final = "unknown "
"""Before a word that may end a request, because the mapping does not know it."""
_MEMORY: Final = "512MB"
_TYPES: Final[dict[str, pa.DataType]] = {
    "t": pa.int64(), "rank": pa.int8(), "row": pa.int64(), "what": pa.string(), "id": pa.string(),
    "keys": pa.string(), "delay_ns": pa.int64(),
}  # fmt: skip
_COLUMNS: Final = pa.schema(_TYPES)
"""One column for each field of a `Point`."""


class Point(NamedTuple):
    """One thing that a row of the log says. `rank` orders points with equal times. `keys` is a JSON list."""

    t: int
    rank: int
    row: int
    what: str
    id: str | None = None
    keys: str | None = None
    delay_ns: int | None = None


def duckdb() -> Any:
    """The module. Raises `CannotConvert` if it is not installed."""
    try:
        return import_module("duckdb")
    except ImportError:
        raise CannotConvert("reading a log needs duckdb: pip install 'purgatorio[log]'") from None


class PointTable:
    def __init__(self, database: Any) -> None:
        self._database = database
        self._with_batch("CREATE TABLE points AS SELECT * FROM batch", [])

    def cursor(self) -> Any:
        """A connection of its own, for reading a file."""
        return self._database.cursor()

    def add(self, points: Sequence[Point]) -> None:
        if points:
            self._with_batch("INSERT INTO points SELECT * FROM batch", points)

    def _with_batch(self, query: str, points: Sequence[Point]) -> None:
        columns = zip(*points, strict=True) if points else [()] * len(_COLUMNS)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, _COLUMNS.types, strict=True)]
        self._database.register("batch", pa.Table.from_arrays(arrays, schema=_COLUMNS))
        self._database.execute(query)
        self._database.unregister("batch")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that a query returns. A change returns the number of changed rows."""
        found: list[tuple[Any, ...]] = self._database.execute(query).fetchall()
        return found

    def leave_out(self, requests: Iterable[str]) -> None:
        """Removes all points of these requests."""
        self.add([Point(0, 0, 0, LEFT_OUT, request) for request in requests])
        self.rows(f"DELETE FROM points WHERE id IN (SELECT id FROM points WHERE what = '{LEFT_OUT}')")

    def in_order(self) -> Iterator[Point]:
        """All points by time."""
        found = self._database.sql("SELECT * FROM points ORDER BY t, rank, row")
        for batch in found.to_arrow_reader(BATCH_ROWS):
            yield from map(Point._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


@contextmanager
def point_table() -> Iterator[PointTable]:
    """An empty table in a temporary folder. Ctrl-C inside DuckDB is `KeyboardInterrupt`, as elsewhere."""
    with tempfile.TemporaryDirectory(prefix="purgatorio-log-") as scratch:
        database = duckdb().connect(str(Path(scratch, "points.db")))
        try:
            database.execute(f"SET memory_limit = '{_MEMORY}'")
            database.execute("SET TimeZone = 'UTC'")
            database.execute("SET preserve_insertion_order = true")
            yield PointTable(database)
        except RuntimeError as stopped:
            if str(stopped) != "Query interrupted":
                raise
            raise KeyboardInterrupt from None
        finally:
            database.close()
