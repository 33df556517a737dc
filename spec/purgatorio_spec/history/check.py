"""The history of one `check_and_complete`: what it answered, and what it completed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckCall:
    """One returned call. `completed`: the operations whose `try_complete` returned true directly under it, that is, on
    its thread, inside it, and inside no other purgatory call made from within it."""

    key: str
    th: str
    call_i: int
    ret_i: int
    out: int
    completed: tuple[str, ...]
