"""The recorder of explored runs: stores each event as a `LogRow`. The index of the row is the event's `i`."""

from collections.abc import Iterator

from purgatorio_spec.trace.record import Event, State
from purgatorio_spec.trace.recorder import LogRow
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.recorded import NS_PER_MS


class HistoryLog:
    """A `Recording` in virtual time. Recording is no scheduling point. `unit_ns`: the unit of the run's clock."""

    __slots__ = ("_run", "_start_ms", "_unit_ns", "rows")

    def __init__(self, run: Execution, start_ms: int = 0, unit_ns: int = NS_PER_MS) -> None:
        self.rows: list[LogRow] = []
        self._run = run
        self._start_ms = start_ms
        self._unit_ns = unit_ns

    def call(
        self,
        f: str,
        id: str | None = None,
        *,
        keys: tuple[str, ...] | None = None,
        delay_ns: int | None = None,
    ) -> int:
        th, t = self._run.current.name, self.now_ns()
        self.rows.append((th, t, "call", f, id, None, keys, delay_ns, None, None, None, None, None))
        return len(self.rows) - 1

    def ret(
        self,
        f: str,
        c: int,
        id: str | None = None,
        *,
        out: int | None = None,
        err: str | None = None,
        deadline_t: int | None = None,
        state: State | None = None,
    ) -> None:
        th, t = self._run.current.name, self.now_ns()
        self.rows.append((th, t, "ret", f, id, c, None, None, deadline_t, None, out, err, state))

    def at(
        self,
        f: str,
        id: str | None = None,
        *,
        keys: tuple[str, ...] | None = None,
        t_call: int | None = None,
        out: int | None = None,
        state: State | None = None,
    ) -> None:
        th, t = self._run.current.name, self.now_ns()
        self.rows.append((th, t, "at", f, id, None, keys, None, None, t_call, out, None, state))

    def now_ns(self) -> int:
        return (self._start_ms + self._run.now_ms) * self._unit_ns

    def events(self) -> Iterator[Event]:
        """Yield the rows as events of a trace."""
        return (Event(i, *row) for i, row in enumerate(self.rows))
