"""A hash of the state of a run, updated at each step. Every run that reaches a state computes the same hash.

The hash is the exclusive or of one hash for each shared object. So at each step, only objects that were created, used
or set since the previous step are hashed again. Exception: a list or dictionary in a shared variable (cell) is hashed
at every step, because the program may change it between two scheduling points.
"""

from purgatorio_stress.explorer.naming import name_of
from purgatorio_stress.explorer.run import Execution


class Fingerprint:
    """Computes the states of consecutive runs of one program, all with the same set-up."""

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}
        self._at_start: dict[int, int] | None = None
        self._sum = 0
        self._sum_at_start = 0

    def begin(self) -> None:
        if self._at_start is not None:
            self._parts = dict(self._at_start)
            self._sum = self._sum_at_start

    def of(self, run: Execution) -> int:
        """A 64-bit hash of the state: for each task the data that it has read and its next step, the value of every
        object, and the time."""
        assert run.objects is not None, "a state can be compared only in a run that keeps track of it"
        for oid in run.changed | run.volatile:
            shared = run.objects.get(oid)
            if shared is None:
                continue
            part = hash((oid, name_of(run, shared.state())))
            self._sum ^= self._parts.get(oid, 0) ^ part
            self._parts[oid] = part
        run.changed.clear()
        if self._at_start is None:
            self._at_start = dict(self._parts)
            self._sum_at_start = self._sum
        tasks = tuple(
            (task.digest, task.finished, task.obj, task.kind, task.notified, task.wake_ms)
            for task in run.tasks
        )
        return hash((tasks, self._sum, run.now_ms))
