"""Whether time runs backwards on any thread: the time of each thread's last event is carried."""

from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.fast_path.numbered import Numbered
from purgatorio_spec.trace.coded import Ints

_LOWEST = np.iinfo(np.int64).min


@dataclass(slots=True)
class Clocks:
    """By thread the time of its last event; of those before their thread's last how many, and the first."""

    backwards: int = 0
    first_i: int | None = None
    last_t: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def feed(self, some: Numbered, threads: int) -> None:
        """Add a batch; `threads`: one more than the highest number of a thread."""
        more = threads - len(self.last_t)
        if more > 0:
            self.last_t = np.concatenate((self.last_t, np.full(more, _LOWEST, np.int64)))
        t = some.batch.t
        if t[0] >= self.last_t.max() and (t[1:] >= t[:-1]).all():
            # Of repeated places the last one written stays.
            self.last_t[some.thread] = t
            return
        narrow = some.thread.astype(np.int16) if threads < 1 << 15 else some.thread
        order = np.argsort(narrow, kind="stable")
        thread, t = some.thread[order], t[order]
        before = np.empty(len(t), np.int64)
        before[1:] = t[:-1]
        starts = np.flatnonzero(np.concatenate(([True], thread[1:] != thread[:-1])))
        before[starts] = self.last_t[thread[starts]]
        back = order[t < before]
        self.last_t[thread] = t
        if len(back):
            self.backwards += len(back)
            first = int(some.batch.i[back.min()])
            self.first_i = first if self.first_i is None else self.first_i
