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


@dataclass(eq=False)
class _Entry:
    operation: ModelOperation


@dataclass
class PurgatoryModel:
    """Times in the unit of `tick`. `purge_interval` in operations."""

    tick: int
    purge_interval: int
    operations: dict[str, ModelOperation] = field(default_factory=dict)
    lists: dict[str, list[_Entry]] = field(default_factory=dict)
    estimate: int = 0

    def register(self, operation: ModelOperation, keys: Sequence[str], deadline: int) -> bool:
        self.operations[operation.id] = operation
        if operation.ready:
            return self.complete(operation)
        operation.ready = operation.ready_on_first_try
        self.estimate += 1
        for position, key in enumerate(keys, 1):
            self.lists.setdefault(key, []).append(_Entry(operation))
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
        for entry in list(self.lists.get(key, ())):
            operation = entry.operation
            if operation.completed:
                self._drop(key, entry)
            elif operation.ready and not operation.raises and self.complete(operation):
                self._drop(key, entry)
                completed += 1
        return completed

    def cancel_for_key(self, key: str) -> list[str]:
        """The ids that `cancel_for_key` gives back, in order."""
        entries = self.lists.pop(key, [])
        for entry in entries:
            entry.operation.deadline = None
        return [entry.operation.id for entry in entries]

    def take_due(self, now: int) -> list[str]:
        """The ids that a drain at `now` hands over; the timer holds them no more."""
        due = [
            op
            for op in self.operations.values()
            if op.deadline is not None and self._due_at(op.deadline) <= now
        ]
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
        for key, entries in list(self.lists.items()):
            for entry in list(entries):
                if entry.operation.completed:
                    self._drop(key, entry)

    def waiting(self) -> list[ModelOperation]:
        """Operations that a key can still complete."""
        found = {e.operation.id: e.operation for entries in self.lists.values() for e in entries}
        return [operation for operation in found.values() if not operation.completed]

    def watched(self) -> int:
        """The gauge PurgatorySize."""
        return sum(len(entries) for entries in self.lists.values())

    def delayed(self) -> int:
        return sum(operation.deadline is not None for operation in self.operations.values())

    def _due_at(self, deadline: int) -> int:
        return deadline // self.tick * self.tick

    def _drop(self, key: str, entry: _Entry) -> None:
        entries = self.lists.get(key, [])
        if entry in entries:
            entries.remove(entry)
        if not entries:
            self.lists.pop(key, None)
