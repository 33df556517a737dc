"""The recorder of explored runs: the same events as a trace has, as plain rows, in the one order that the run has."""

from collections.abc import Iterator
from typing import Final

from purgatorio_spec.trace.record import Event, Phase, State
from purgatorio_stress.explorer.run import Run

__all__ = ["HistoryLog", "LogRow"]

LogRow = tuple[
    str,  # th
    int,  # t
    Phase,
    str,  # f
    str | None,  # id
    int | None,  # c
    tuple[str, ...] | None,  # keys
    int | None,  # delay_ns
    int | None,  # deadline_t
    int | None,  # t_call
    int | None,  # out
    str | None,  # err
    State | None,
]
"""An event without its `i`, which is its place."""

_NS_PER_MS: Final = 1_000_000


class HistoryLog:
    """A `Recording`. Time is virtual; recording is no step."""

    __slots__ = ("_digests", "_run", "_start_ms", "rows")

    def __init__(self, run: Run, start_ms: int = 0) -> None:
        self.rows: list[LogRow] = []
        self._run = run
        self._start_ms = start_ms
        self._digests: dict[str | None, int] = {}
        if run.objects is not None:
            run.extra_state = self.digest

    def call(
        self,
        f: str,
        id: str | None = None,  # noqa: A002 - the trace format's name of the field
        *,
        keys: tuple[str, ...] | None = None,
        delay_ns: int | None = None,
    ) -> int:
        """See `Recording`."""
        return self._add(
            (
                self._run.current.name,
                self._t(),
                "call",
                f,
                id,
                None,
                keys,
                delay_ns,
                None,
                None,
                None,
                None,
                None,
            )
        )

    def ret(
        self,
        f: str,
        c: int,
        id: str | None = None,  # noqa: A002 - the trace format's name of the field
        *,
        out: int | None = None,
        err: str | None = None,
        deadline_t: int | None = None,
        state: State | None = None,
    ) -> None:
        """See `Recording`."""
        self._add(
            (
                self._run.current.name,
                self._t(),
                "ret",
                f,
                id,
                c,
                None,
                None,
                deadline_t,
                None,
                out,
                err,
                state,
            )
        )

    def at(
        self,
        f: str,
        id: str | None = None,  # noqa: A002 - the trace format's name of the field
        *,
        keys: tuple[str, ...] | None = None,
        t_call: int | None = None,
        out: int | None = None,
        state: State | None = None,
    ) -> None:
        """See `Recording`."""
        self._add(
            (self._run.current.name, self._t(), "at", f, id, None, keys, None, None, t_call, out, None, state)
        )

    def now_ns(self) -> int:
        """The present time in the clock of the events."""
        return self._t()

    def events(self) -> Iterator[Event]:
        """The rows as events of a trace."""
        for i, (th, t, ph, f, id_, c, keys, delay, deadline, t_call, out, err, state) in enumerate(self.rows):
            yield Event(i, th, t, ph, f, id_, c, keys, delay, deadline, t_call, out, err, state)

    def digest(self) -> object:
        """What has been recorded of each operation, for the comparison of states. An event without an operation (a
        check of a key) belongs to all of them."""
        shared = self._digests.get(None, 0)
        return frozenset((id_, digest) for id_, digest in self._digests.items() if id_ is not None), shared

    def _t(self) -> int:
        return (self._start_ms + self._run.now_ms) * _NS_PER_MS

    def _add(self, row: LogRow) -> int:
        self.rows.append(row)
        if self._run.objects is not None:
            about = (*row[:5], *row[6:12])
            if row[4] is None:
                for id_ in self._digests:
                    self._digests[id_] = hash((self._digests[id_], about))
            self._digests[row[4]] = hash((self._digests.get(row[4], self._digests.get(None, 0)), about))
        return len(self.rows) - 1
