"""Finds events at which the time of a thread goes backwards. Between batches, it keeps the last time of each thread."""

from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.fast_path.columns import grown
from purgatorio_spec.trace.coded import Ints, Numbered

_LOWEST = np.iinfo(np.int64).min


@dataclass(slots=True)
class LastTimes:
    last_t: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def feed(self, some: Numbered, threads: int) -> Ints:
        """Add a batch. Return the `i` of the events whose time is before that of the previous event of their thread.
        `threads`: one more than the highest number of a thread."""
        self.last_t = grown(self.last_t, threads, _LOWEST)
        t = some.batch.t
        if t[0] >= self.last_t.max() and (t[1:] >= t[:-1]).all():
            # numpy keeps the last value of repeated places.
            self.last_t[some.thread] = t
            return np.zeros(0, np.int64)
        narrow = some.thread.astype(np.int16) if threads < 1 << 15 else some.thread
        order = np.argsort(narrow, kind="stable")
        thread, t = some.thread[order], t[order]
        before = np.empty(len(t), np.int64)
        before[1:] = t[:-1]
        starts = np.flatnonzero(np.concatenate(([True], thread[1:] != thread[:-1])))
        before[starts] = self.last_t[thread[starts]]
        back = order[t < before]
        self.last_t[thread] = t
        return np.sort(some.batch.i[back])
