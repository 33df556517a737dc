"""`PurgatoryModel`: a purgatory made of dictionaries, for one thread. The model gives the result and the effect of
every call.

The model is exact for results, completions, the tasks of the timer, the watch entries and the purge. An entry leaves
the model when its key is checked, cancelled or purged, not earlier.

Callbacks may make calls. `Act` describes the calls of an operation's `on_complete`, and the model makes the same calls
on itself. With one thread, the two dialects have no visible difference, so tests compare both dialects with this
model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from purgatorio_spec.oracle.timer_set import due_at

Act = Callable[["PurgatoryModel"], None]
"""The effect of `on_complete` on the model."""


@dataclass(eq=False)
class ModelOperation:
    """One operation. `deadline` is None if the timer does not contain it."""

    id: str
    act: Act
    ready: bool = False
    raises: bool = False
    """`try_complete` raises, so no event completes it; its time-out and `force_complete` do."""
    ready_on_first_try: bool = False
    """Its condition becomes true just after its first, vain, `try_complete` (the window of KAFKA-1952)."""
    completed_after: int | None = None
    """Another caller completes the operation when it is watched under this number of keys (the window of
    KAFKA-18027)."""
    completed: bool = False
    expired: bool = False
    deadline: int | None = None


@dataclass
class PurgatoryModel:
    """Times in the unit of `tick`. `purge_interval` in operations."""

    tick: int
    purge_interval: int
    operations: dict[str, ModelOperation] = field(default_factory=dict)
    lists: dict[str, list[ModelOperation]] = field(default_factory=dict)
    estimate: int = 0

    def register(self, operation: ModelOperation, keys: Sequence[str], deadline: int) -> bool:
        self.operations[operation.id] = operation
        if operation.ready:
            return self.complete(operation)
        operation.ready = operation.ready_on_first_try
        self.estimate += 1
        for position, key in enumerate(keys, 1):
            self.lists.setdefault(key, []).append(operation)
            if position == operation.completed_after:
                self.complete(operation)
                return False
        if operation.ready:
            return self.complete(operation)
        operation.deadline = deadline
        return False

    def complete(self, operation: ModelOperation) -> bool:
        if operation.completed:
            return False
        operation.completed = True
        operation.deadline = None
        operation.act(self)
        return True

    def check(self, key: str) -> int:
        """The result of `check_and_complete`."""
        completed = 0
        for operation in list(self.lists.get(key, ())):
            if operation.completed:
                self._drop(key, operation)
            elif operation.ready and not operation.raises and self.complete(operation):
                self._drop(key, operation)
                completed += 1
        return completed

    def cancel_for_key(self, key: str) -> list[str]:
        """The ids that `cancel_for_key` gives back, in order."""
        operations = self.lists.pop(key, [])
        for operation in operations:
            operation.deadline = None
        return [operation.id for operation in operations]

    def take_due(self, now: int) -> list[str]:
        """The ids that a drain at `now` hands over; the timer holds them no more."""
        waiting = (op for op in self.operations.values() if op.deadline is not None)
        due = [op for op in waiting if due_at(op.deadline or 0, self.tick) <= now]
        for operation in due:
            operation.deadline = None
        return [operation.id for operation in due]

    def expire(self, operation_id: str) -> None:
        """The expiry of an operation that was handed over: `on_expiration` only if this expiry completes it."""
        operation = self.operations[operation_id]
        operation.expired = self.complete(operation) or operation.expired

    def purge_if_needed(self) -> None:
        """The purge test after each drain."""
        if self.estimate - self.delayed() <= self.purge_interval:
            return
        self.estimate = self.delayed()
        for key, operations in list(self.lists.items()):
            for operation in list(operations):
                if operation.completed:
                    self._drop(key, operation)

    def waiting(self) -> list[ModelOperation]:
        """Operations that a key can still complete."""
        found = {one.id: one for operations in self.lists.values() for one in operations}
        return [operation for operation in found.values() if not operation.completed]

    def watched(self) -> int:
        """The gauge PurgatorySize."""
        return sum(map(len, self.lists.values()))

    def delayed(self) -> int:
        return sum(operation.deadline is not None for operation in self.operations.values())

    def _drop(self, key: str, operation: ModelOperation) -> None:
        operations = self.lists.get(key, [])
        if operation in operations:
            operations.remove(operation)
        if not operations:
            self.lists.pop(key, None)
