"""The two gauges of a purgatory, as numbers and as OpenMetrics text.

`PurgatorySize` counts the entries in the lists of the keys. An operation with three keys has three entries. A completed
operation counts until a check or a purge removes its entries. `NumDelayedOperations` counts the tasks in the timer, as
in Kafka. If several purgatories share a timer, the gauge of each purgatory counts all tasks of the timer.

The gauges are read without a lock, and are exact only while no call is active. If `PurgatorySize` is much larger than
`NumDelayedOperations`, most entries belong to completed operations.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from purgatorio.owned import Uncopied
from purgatorio.sync import Cell, Lock, Sync
from purgatorio.threads import THREADS


@dataclass(frozen=True, slots=True)
class PurgatoryGauges:
    """One reading of both gauges."""

    purgatory_size: int
    num_delayed_operations: int


class Gauged(Protocol):
    """An object with a name and the two gauges, such as a purgatory."""

    @property
    def name(self) -> str: ...

    def gauges(self) -> PurgatoryGauges: ...


class GaugeRegistry(Uncopied):
    """The purgatories whose gauges are exported. `close` removes a purgatory. After a fork, the child needs its own
    registry, because the gauges of the parent's purgatories raise MadeBeforeFork."""

    __slots__ = ("_lock", "_members")

    def __init__(self, *, sync: Sync = THREADS) -> None:
        self._lock: Lock = sync.lock("gauges")
        self._members: Cell[dict[str, Gauged]] = sync.cell({}, "gauges.members")

    def add(self, member: Gauged) -> None:
        """Export the gauges of a purgatory. Raises ValueError if another purgatory has the same name, because a scraper
        refuses two series of one name."""
        with self._lock:
            if self._members.mutate().setdefault(member.name, member) is not member:
                raise ValueError(f"the registry has another purgatory {member.name!r}: choose another name")

    def remove(self, member: Gauged) -> None:
        """Stop the export of a purgatory. No effect if it is not exported."""
        with self._lock:
            if self._members.get().get(member.name) is member:
                del self._members.mutate()[member.name]

    def members(self) -> list[Gauged]:
        """The exported purgatories, in the order in which they were added."""
        with self._lock:
            return list(self._members.get().values())

    def openmetrics(self) -> str:
        """The text for a scraper."""
        return openmetrics(self.members())


def openmetrics(members: Iterable[Gauged]) -> str:
    """The gauges as OpenMetrics 1.0 text (`application/openmetrics-text`), which ends with `# EOF`."""
    readings = [(_escaped(member.name), member.gauges()) for member in members]
    lines = [
        "# TYPE purgatory_size gauge",
        "# HELP purgatory_size Watch entries in the purgatory (Kafka's PurgatorySize).",
        *(f'purgatory_size{{delayed_operation="{name}"}} {now.purgatory_size}' for name, now in readings),
        "# TYPE num_delayed_operations gauge",
        "# HELP num_delayed_operations Tasks in the timer of the purgatory (Kafka's NumDelayedOperations).",
        *(
            f'num_delayed_operations{{delayed_operation="{name}"}} {now.num_delayed_operations}'
            for name, now in readings
        ),
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
