"""The late bound of a run in virtual time: what is promised, and what comes to it for how time was moved."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["LateBound"]


@dataclass
class LateBound:
    """A task must run in the first drain, after it was added, that is at or after its deadline plus the promised bound.

    So the bound of the run is that of its least lucky task, counted as T2 counts: from the deadline, or from the add
    where that came later. Times in nanoseconds.
    """

    promised_ns: int | None
    drains: list[int] = field(default_factory=list)
    added: list[tuple[int, int, int]] = field(default_factory=list)
    """Deadline, time of the add, and drains there had been."""

    def drain(self, now_ns: int) -> None:
        """Time was moved to here, and what is due had its chance."""
        self.drains.append(now_ns)

    def add(self, now_ns: int, deadline_ns: int) -> None:
        """A task was added."""
        self.added.append((deadline_ns, now_ns, len(self.drains)))

    def of_run(self) -> int | None:
        """None where nothing is promised."""
        if self.promised_ns is None:
            return None
        worst_ns = self.promised_ns
        for deadline_ns, now_ns, before in self.added:
            last_chance_ns = deadline_ns + self.promised_ns
            first = next((drain for drain in self.drains[before:] if drain >= last_chance_ns), None)
            if first is not None:
                worst_ns = max(worst_ns, first - max(deadline_ns, now_ns))
        return worst_ns
