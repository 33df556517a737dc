"""A control thread, which only sleeps and records how late it wakes.

The control thread runs in the process of the subject. Its lateness comes from the machine and the GIL, not from the
subject. The field `params` of the trace has this lateness. No clause reads it, but a report shows it next to the
lateness of the subject. `control_params` has the fields; the bins are those of all lateness histograms.
"""

import threading
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from purgatorio_spec.lateness import lateness_of
from purgatorio_spec.trace.record import MAX_INT, MIN_INT

NAP_S: Final = 0.005
"""How long the control sleeps at a time."""

MAX_NAPS: Final = 20_000
"""The most naps that are kept, a minute and a half of them. Of later naps, only the longest counts."""


def control_params(oversleeps_ns: Sequence[int], worst_ns: int, nap_ns: int) -> dict[str, object]:
    """The two fields of `params`; without naps, only the first. `worst_ns`: the largest lateness of all naps, including
    naps that are not in the list."""
    found = lateness_of("control", np.array(oversleeps_ns, np.int64))
    params: dict[str, object] = {"control_worst_oversleep_ns": max([worst_ns, *oversleeps_ns])}
    if found is not None:
        params["control_oversleep"] = {
            "naps": found.count, "nap_ns": nap_ns, "p50_ns": found.p50_ns, "p90_ns": found.p90_ns,
            "p99_ns": found.p99_ns, "max_ns": found.max_ns, "bins": [list(one) for one in found.bins],
        }  # fmt: skip
    return params


class Oversleep(threading.Thread):
    """A thread that only sleeps, and measures how late it wakes."""

    def __init__(self) -> None:
        super().__init__(name="oversleep", daemon=True)
        self._worst_ns = 0
        self._oversleeps_ns: list[int] = []
        self._stopped = threading.Event()
        self._ahead_most_ns, self._ahead_least_ns = MIN_INT, MAX_INT
        self._look()

    @property
    def shift_ns(self) -> int:
        """By how much the wall clock was certainly set forward during the run, compared with the monotonic clock. Each
        wall time is read between two monotonic times, so a pause between the readings only widens the bounds."""
        return max(0, self._ahead_most_ns - self._ahead_least_ns)

    def _look(self) -> None:
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        self._ahead_most_ns = max(self._ahead_most_ns, wall_ns - after_ns)
        self._ahead_least_ns = min(self._ahead_least_ns, wall_ns - before_ns)

    def run(self) -> None:
        nap_ns = int(NAP_S * 1e9)
        while not self._stopped.is_set():
            self._look()
            start_ns = time.monotonic_ns()
            time.sleep(NAP_S)
            over_ns = max(0, time.monotonic_ns() - start_ns - nap_ns)
            self._worst_ns = max(self._worst_ns, over_ns)
            if len(self._oversleeps_ns) < MAX_NAPS:
                self._oversleeps_ns.append(over_ns)

    def stop(self) -> dict[str, object]:
        """Stop the thread. Returns its measurements, as fields of `params`."""
        self._stopped.set()
        self.join(timeout=10)
        return control_params(list(self._oversleeps_ns), self._worst_ns, int(NAP_S * 1e9))
